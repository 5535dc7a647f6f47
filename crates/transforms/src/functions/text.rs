//! Owns functions on text. Positions and lengths are in characters and begin at 1.

use std::{fmt::Write, sync::Arc};

use arrow_array::{ArrayRef, builder::StringBuilder, cast::AsArray};
use arrow_schema::ArrowError;
use canalis_types::LogicalType;

use super::{
    Function, MANY,
    row::{LONGEST, Row, boolean_rows, count, integer_rows, text_rows, whole, written_rows},
};
use crate::{
    call::{Kernel, Volatility, refuse},
    compile::{
        Context, Typed,
        coerce::{as_integer, as_text},
        typed::call,
        types::Family,
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("UPPER", 1, 1, |c, a| map("UPPER", c, a, upper)),
    Function::new("LOWER", 1, 1, |c, a| map("LOWER", c, a, lower)),
    Function::new("UCASE", 1, 1, |c, a| map("UPPER", c, a, upper)),
    Function::new("LCASE", 1, 1, |c, a| map("LOWER", c, a, lower)),
    Function::new("REVERSE", 1, 1, |c, a| map("REVERSE", c, a, |s, out| out.extend(s.chars().rev()))),
    Function::new("TRIM", 1, 2, |c, a| trim("TRIM", c, a, |s, set| s.trim_matches(set))),
    Function::new("BTRIM", 1, 2, |c, a| trim("BTRIM", c, a, |s, set| s.trim_matches(set))),
    Function::new("LTRIM", 1, 2, |c, a| trim("LTRIM", c, a, |s, set| s.trim_start_matches(set))),
    Function::new("RTRIM", 1, 2, |c, a| trim("RTRIM", c, a, |s, set| s.trim_end_matches(set))),
    Function::new("CONCAT", 1, MANY, concat),
    Function::new("CONCAT_WS", 2, MANY, concat_ws),
    Function::new("SUBSTR", 2, 3, substr),
    Function::new("SUBSTRING", 2, 3, substr),
    Function::new("CHAR_LENGTH", 1, 1, char_length),
    Function::new("CHARACTER_LENGTH", 1, 1, char_length),
    Function::new("LENGTH", 1, 1, char_length),
    Function::new("OCTET_LENGTH", 1, 1, octet_length),
    Function::new("BIT_LENGTH", 1, 1, bit_length),
    Function::new("REPLACE", 3, 3, replace),
    Function::new("LPAD", 2, 3, |c, a| pad("LPAD", c, a, |text, fill| format!("{fill}{text}"))),
    Function::new("RPAD", 2, 3, |c, a| pad("RPAD", c, a, |text, fill| format!("{text}{fill}"))),
    Function::new("LEFT", 2, 2, left),
    Function::new("RIGHT", 2, 2, right),
    // POSITION(part IN text), LOCATE(part, text[, from]) and INSTR(text, part).
    Function::new("POSITION", 2, 2, locate),
    Function::new("LOCATE", 2, 3, locate),
    Function::new("INSTR", 2, 2, |c, mut a| {
        a.swap(0, 1);
        locate(c, a)
    }),
    Function::new("REPEAT", 2, 2, repeat),
    Function::new("REPLICATE", 2, 2, repeat),
    Function::new("STARTSWITH", 2, 2, |c, a| test("STARTSWITH", c, a, |s, t| s.starts_with(t))),
    Function::new("STARTS_WITH", 2, 2, |c, a| test("STARTSWITH", c, a, |s, t| s.starts_with(t))),
    Function::new("ENDSWITH", 2, 2, |c, a| test("ENDSWITH", c, a, |s, t| s.ends_with(t))),
    Function::new("ENDS_WITH", 2, 2, |c, a| test("ENDSWITH", c, a, |s, t| s.ends_with(t))),
    Function::new("SPLIT_PART", 3, 3, split_part),
];

/// The first `texts` arguments as text, the others as whole numbers.
pub(super) fn typed(context: &Context, arguments: Vec<Typed>, texts: usize) -> Result<Vec<Typed>, String> {
    let mut out = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.into_iter().enumerate() {
        out.push(if index < texts {
            as_text(argument, context.zone)?
        } else {
            as_integer(argument, &format!("argument {}", index + 1), context.zone)?
        });
    }
    Ok(out)
}

fn map(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    change: fn(&str, &mut String),
) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    written_rows(name, &arguments, LogicalType::Text, move |row, out| change(row.text(0), out))
}

fn upper(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_uppercase();
    } else {
        out.push_str(&text.to_uppercase());
    }
}

fn lower(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        // As a whole: what a final sigma becomes depends on its place.
        out.push_str(&text.to_lowercase());
    }
}

fn test(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    holds: fn(&str, &str) -> bool,
) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    boolean_rows(name, &arguments, move |row| Ok(Some(holds(row.text(0), row.text(1)))))
}

/// Takes away blanks, or every character of the second argument.
fn trim(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    cut: for<'a> fn(&'a str, &[char]) -> &'a str,
) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    text_rows(name, &arguments, LogicalType::Text, move |row| {
        if row.len() == 1 {
            return Ok(Some(cut(row.text(0), &[' ']).into()));
        }
        let set: Vec<char> = row.text(1).chars().collect();
        Ok(Some(cut(row.text(0), &set).into()))
    })
}

fn concat(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let count = arguments.len();
    let arguments = typed(context, arguments, count)?;
    written_rows("CONCAT", &arguments, LogicalType::Text, |row, out| {
        for index in 0..row.len() {
            out.push_str(row.text(index));
        }
    })
}

/// Skips NULLs; a NULL separator gives NULL.
fn concat_ws(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let count = arguments.len();
    let arguments = typed(context, arguments, count)?;
    let kernel: Kernel = Arc::new(|arguments, rows| {
        let Some((separators, parts)) = arguments.split_first() else {
            return Err(refuse("CONCAT_WS needs a separator"));
        };
        let mut out = StringBuilder::with_capacity(rows, rows * 16);
        let (mut text, mut bytes) = (String::new(), 0_usize);
        for row in 0..rows {
            if separators.is_null(row) {
                out.append_null();
                continue;
            }
            let separator = separators.array.as_string::<i32>().value(separators.at(row));
            let mut is_first = true;
            text.clear();
            for part in parts.iter().filter(|p| !p.is_null(row)) {
                if !std::mem::take(&mut is_first) {
                    text.push_str(separator);
                }
                text.push_str(part.array.as_string::<i32>().value(part.at(row)));
            }
            bytes += text.len();
            if i32::try_from(bytes).is_err() {
                return Err(refuse("the resulting text is too long"));
            }
            out.append_value(&text);
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("CONCAT_WS", &arguments, LogicalType::Text, Volatility::Pure, kernel)
}

/// From a position: 0 is as 1, a negative one counts from the end, one outside gives an empty text.
fn substr(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("SUBSTR", &arguments, LogicalType::Text, |row| {
        let (text, from) = (row.text(0), row.integer(1));
        let skip = if from > 0 {
            count(from - 1)
        } else if from == 0 {
            0
        } else {
            match text.chars().count().checked_sub(count(from.saturating_neg())) {
                Some(skip) => skip,
                None => return Ok(Some("".into())),
            }
        };
        let rest = skip_chars(text, skip);
        if row.len() == 2 {
            return Ok(Some(rest.into()));
        }
        let length = row.integer(2);
        if length < 0 {
            return Err(refuse("a length is negative"));
        }
        Ok(Some(first_chars(rest, count(length)).into()))
    })
}

pub(super) fn skip_chars(text: &str, skip: usize) -> &str {
    text.char_indices().nth(skip).map_or("", |(at, _)| &text[at..])
}

pub(super) fn first_chars(text: &str, keep: usize) -> &str {
    text.char_indices().nth(keep).map_or(text, |(at, _)| &text[..at])
}

/// Characters of text, bytes of binary values.
fn char_length(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    if arguments[0].family() == Family::Binary {
        return octet_length(context, arguments);
    }
    let arguments = typed(context, arguments, 1)?;
    integer_rows("CHAR_LENGTH", &arguments, |row| Ok(Some(whole(row.text(0).chars().count()))))
}

fn octet_length(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    if arguments[0].family() != Family::Binary {
        arguments = typed(context, arguments, 1)?;
    }
    integer_rows("OCTET_LENGTH", &arguments, |row| Ok(Some(whole(row.bytes(0).len()))))
}

fn bit_length(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    if arguments[0].family() != Family::Binary {
        arguments = typed(context, arguments, 1)?;
    }
    integer_rows("BIT_LENGTH", &arguments, |row| Ok(Some(whole(row.bytes(0).len()).saturating_mul(8))))
}

fn replace(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 3)?;
    text_rows("REPLACE", &arguments, LogicalType::Text, |row| {
        let (text, part, by) = (row.text(0), row.text(1), row.text(2));
        if part.is_empty() || !text.contains(part) {
            return Ok(Some(text.into()));
        }
        fits(text, text.matches(part).count(), by)?;
        Ok(Some(text.replace(part, by).into()))
    })
}

/// Refuses a replacement that would grow without measure, before it is made.
pub(super) fn fits(text: &str, matches: usize, by: &str) -> Result<(), ArrowError> {
    if text.len().saturating_add(matches.saturating_mul(by.len())) > LONGEST {
        return Err(refuse("the resulting text is too long"));
    }
    Ok(())
}

/// Fills up to a length, or cuts to it. NULL for a negative length or an empty filling.
fn pad(
    name: &str,
    context: &Context,
    mut arguments: Vec<Typed>,
    join: fn(&str, &str) -> String,
) -> Result<Typed, String> {
    if arguments.len() == 2 {
        arguments.push(Typed::text(" "));
    }
    // Text, length, text.
    let filling = arguments.split_off(2);
    let mut arguments = typed(context, arguments, 1)?;
    arguments.extend(typed(context, filling, 1)?);
    text_rows(name, &arguments, LogicalType::Text, move |row: Row<'_>| {
        let (text, length, filling) = (row.text(0), row.integer(1), row.text(2));
        if length < 0 || filling.is_empty() {
            return Ok(None);
        }
        let (length, has) = (count(length), text.chars().count());
        if has >= length {
            return Ok(Some(first_chars(text, length).into()));
        }
        if length > LONGEST {
            return Err(refuse("the resulting text is too long"));
        }
        let fill: String = filling.chars().cycle().take(length - has).collect();
        Ok(Some(join(text, &fill).into()))
    })
}

fn left(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("LEFT", &arguments, LogicalType::Text, |row| {
        Ok(Some(first_chars(row.text(0), count(row.integer(1))).into()))
    })
}

fn right(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("RIGHT", &arguments, LogicalType::Text, |row| {
        let text = row.text(0);
        let skip = text.chars().count().saturating_sub(count(row.integer(1)));
        Ok(Some(skip_chars(text, skip).into()))
    })
}

/// Position of the first argument in the second, 0 if it is not there.
fn locate(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    integer_rows("LOCATE", &arguments, |row| {
        let (part, text) = (row.text(0), row.text(1));
        let from = if row.len() == 3 { row.integer(2) } else { 1 };
        if from < 1 {
            return Ok(Some(0));
        }
        let skip = count(from - 1);
        if skip > text.chars().count() {
            return Ok(Some(0));
        }
        let rest = skip_chars(text, skip);
        Ok(Some(rest.find(part).map_or(0, |at| whole(skip + rest[..at].chars().count() + 1))))
    })
}

fn repeat(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("REPEAT", &arguments, LogicalType::Text, |row| {
        let (text, times) = (row.text(0), count(row.integer(1)));
        if text.len().saturating_mul(times) > LONGEST {
            return Err(refuse("the resulting text is too long"));
        }
        let mut out = String::new();
        for _ in 0..if text.is_empty() { 0 } else { times } {
            out.write_str(text).map_err(|_| refuse("the resulting text is too long"))?;
        }
        Ok(Some(out.into()))
    })
}

/// Part number n between separators; a negative n counts from the end; empty when there is no such part.
fn split_part(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    text_rows("SPLIT_PART", &arguments, LogicalType::Text, |row| {
        let (text, separator, index) = (row.text(0), row.text(1), row.integer(2));
        if index == 0 {
            return Err(refuse("parts are counted from 1, or from -1 at the end"));
        }
        let nth = count(index.saturating_abs() - 1);
        if separator.is_empty() {
            return Ok(Some(if nth == 0 { text.into() } else { "".into() }));
        }
        let part = if index > 0 { text.split(separator).nth(nth) } else { text.rsplit(separator).nth(nth) };
        Ok(Some(part.unwrap_or_default().into()))
    })
}
