//! Owns functions on regular expressions. The pattern is a constant, compiled once; there is no look-around and no
//! back-reference, so that matching takes linear time.

use canalis_types::LogicalType;
use regex::{NoExpand, Regex};

use super::{
    Function,
    json::write_text,
    row::{LONGEST, boolean_rows, count, integer_rows, text_rows, whole, written_rows},
    text::fits,
};
use crate::{
    call::refuse,
    compile::{
        Context, Typed,
        coerce::{as_integer, as_text},
    },
    similar,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("REGEXP_LIKE", 2, 2, like),
    Function::new("REGEXP", 2, 2, like),
    Function::new("SIMILAR_TO", 2, 3, similar_to),
    Function::new("REGEXP_REPLACE", 3, 3, replace),
    Function::new("REGEXP_EXTRACT", 2, 3, extract),
    Function::new("REGEXP_EXTRACT_ALL", 2, 3, extract_all),
    Function::new("REGEXP_SPLIT_TO_ARRAY", 2, 2, split),
    Function::new("REGEXP_SUBSTR", 2, 2, substr),
    Function::new("REGEXP_COUNT", 2, 2, count_matches),
    Function::new("REGEXP_INSTR", 2, 2, instr),
];

fn pattern(argument: &Typed) -> Result<Regex, String> {
    let text = argument.literal_text().ok_or("the pattern must be a text constant")?;
    Regex::new(text).map_err(|e| {
        let why = e.to_string();
        format!("the pattern is not a regular expression: {}", why.lines().last().unwrap_or_default())
    })
}

/// The pattern and the text of a function that begins with these two.
fn prepared(context: &Context, arguments: &mut Vec<Typed>) -> Result<(Regex, Typed), String> {
    let regex = pattern(&arguments.remove(1))?;
    let text = as_text(arguments.remove(0), context.zone)?;
    Ok((regex, text))
}

/// Whether the pattern is found anywhere.
fn like(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    boolean_rows("REGEXP_LIKE", &[text], move |row| Ok(Some(regex.is_match(row.text(0)))))
}

/// `SIMILAR TO`: whether the whole text is of the pattern of the SQL standard.
fn similar_to(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    if arguments[1].value.as_ref().is_some_and(|v| v.is_null()) {
        return Typed::null(LogicalType::Boolean);
    }
    let pattern = arguments[1].literal_text().ok_or("the pattern must be a text constant")?;
    let escape = match arguments.get(2) {
        None => None,
        Some(escape) => {
            let mut chars = escape.literal_text().unwrap_or_default().chars();
            match (chars.next(), chars.next()) {
                (Some(escape), None) => Some(escape),
                _ => return Err("ESCAPE takes exactly one character in quotes".into()),
            }
        }
    };
    let regex = similar::compile(pattern, escape)?;
    let text = as_text(arguments.into_iter().next().ok_or("a text is needed")?, context.zone)?;
    boolean_rows("SIMILAR_TO", &[text], move |row| Ok(Some(regex.is_match(row.text(0)))))
}

/// Replaces every match by the third argument, literally.
fn replace(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    let by = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows("REGEXP_REPLACE", &[text, by], LogicalType::Text, move |row| {
        let (text, by) = (row.text(0), row.text(1));
        if by.len() > 1 {
            fits(text, regex.find_iter(text).count(), by)?;
        }
        Ok(Some(regex.replace_all(text, NoExpand(by))))
    })
}

/// The group of a function: its own argument, checked here when it is a constant.
fn group(
    context: &Context,
    arguments: &mut Vec<Typed>,
    regex: &Regex,
    default: i64,
) -> Result<Typed, String> {
    let groups = regex.captures_len() - 1;
    let argument = match arguments.pop() {
        Some(argument) => as_integer(argument, "the group", context.zone)?,
        None => Typed::constant(datafusion_common::ScalarValue::Int64(Some(default)), LogicalType::Int64),
    };
    match argument.value {
        Some(datafusion_common::ScalarValue::Int64(Some(n))) if n < 0 || count(n) > groups => {
            Err(format!("the pattern has {groups} groups, there is no group {n}"))
        }
        _ => Ok(argument),
    }
}

/// The first match of a group; NULL when there is none.
fn extract(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    let group = group(context, &mut arguments, &regex, 0)?;
    text_rows("REGEXP_EXTRACT", &[text, group], LogicalType::Text, move |row| {
        let Ok(group) = usize::try_from(row.integer(1)) else { return Ok(None) };
        let found = regex.captures(row.text(0)).and_then(|c| c.get(group));
        Ok(found.map(|m| m.as_str().into()))
    })
}

/// Every match of a group, as a JSON array.
fn extract_all(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    let group = group(context, &mut arguments, &regex, 1)?;
    text_rows("REGEXP_EXTRACT_ALL", &[text, group], LogicalType::Json, move |row| {
        let group = count(row.integer(1));
        if group >= regex.captures_len() {
            return Ok(None);
        }
        let mut out = String::from("[");
        for captures in regex.captures_iter(row.text(0)) {
            if out.len() > 1 {
                out.push(',');
            }
            match captures.get(group) {
                Some(found) => write_text(found.as_str(), &mut out),
                None => out.push_str("null"),
            }
            if out.len() > LONGEST {
                return Err(refuse("the resulting text is too long"));
            }
        }
        out.push(']');
        Ok(Some(out.into()))
    })
}

/// The parts between the matches, as a JSON array.
fn split(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    written_rows("REGEXP_SPLIT_TO_ARRAY", &[text], LogicalType::Json, move |row, out| {
        for (index, part) in regex.split(row.text(0)).enumerate() {
            out.push(if index == 0 { '[' } else { ',' });
            write_text(part, out);
        }
        out.push(']');
    })
}

/// The first match; NULL when there is none.
fn substr(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    text_rows("REGEXP_SUBSTR", &[text], LogicalType::Text, move |row| {
        Ok(regex.find(row.text(0)).map(|m| m.as_str().into()))
    })
}

fn count_matches(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    integer_rows("REGEXP_COUNT", &[text], move |row| Ok(Some(whole(regex.find_iter(row.text(0)).count()))))
}

/// Position of the first match in characters, 0 when there is none.
fn instr(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let (regex, text) = prepared(context, &mut arguments)?;
    integer_rows("REGEXP_INSTR", &[text], move |row| {
        let text = row.text(0);
        Ok(Some(regex.find(text).map_or(0, |m| whole(text[..m.start()].chars().count() + 1))))
    })
}
