//! Owns functions on texts as lists and words: parts, sets, codes, tests of characters. As in `text`, positions begin at
//! 1 unless a function says otherwise.

use std::cmp::Ordering;

use canalis_types::LogicalType;

use super::{
    Function, MANY,
    row::{LONGEST, boolean_rows, count, integer_rows, text_rows, whole},
    text::{first_chars, skip_chars, typed},
};
use crate::{
    call::refuse,
    compile::{
        Context, Typed,
        coerce::{as_integer, as_text},
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("SPLIT_INDEX", 3, 3, split_index),
    Function::new("SUBSTRING_INDEX", 3, 3, substring_index),
    Function::new("FIND_IN_SET", 2, 2, find_in_set),
    Function::new("ELT", 2, MANY, elt),
    Function::new("STRCMP", 2, 2, strcmp),
    Function::new("CONTAINS", 2, 2, contains),
    Function::new("SPACE", 1, 1, space),
    Function::new("TRANSLATE", 3, 3, translate),
    Function::new("OVERLAY", 3, 4, overlay),
    Function::new("INSERT", 4, 4, insert),
    Function::new("INITCAP", 1, 1, initcap),
    Function::new("ASCII", 1, 1, ascii),
    Function::new("CHR", 1, 1, chr),
    Function::new("SOUNDEX", 1, 1, soundex),
    Function::new("IS_ALPHA", 1, 1, |c, a| all("IS_ALPHA", c, a, |s| every(s, char::is_alphabetic))),
    Function::new("IS_DIGIT", 1, 1, |c, a| all("IS_DIGIT", c, a, |s| every(s, |c| c.is_ascii_digit()))),
    Function::new("IS_DECIMAL", 1, 1, |c, a| all("IS_DECIMAL", c, a, is_decimal)),
];

/// Part number n counted from 0; NULL when there is none.
fn split_index(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    text_rows("SPLIT_INDEX", &arguments, LogicalType::Text, |row| {
        let (text, separator, index) = (row.text(0), row.text(1), row.integer(2));
        let Ok(index) = usize::try_from(index) else { return Ok(None) };
        if separator.is_empty() {
            return Ok((index == 0).then(|| text.into()));
        }
        Ok(text.split(separator).nth(index).map(Into::into))
    })
}

/// Everything before the n-th separator, or behind the n-th from the end for a negative n.
fn substring_index(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    text_rows("SUBSTRING_INDEX", &arguments, LogicalType::Text, |row| {
        let (text, separator, number) = (row.text(0), row.text(1), row.integer(2));
        if separator.is_empty() || number == 0 {
            return Ok(Some("".into()));
        }
        let nth = count(number.saturating_abs()) - 1;
        Ok(Some(if number > 0 {
            text.match_indices(separator).nth(nth).map_or(text, |(at, _)| &text[..at]).into()
        } else {
            text.rmatch_indices(separator)
                .nth(nth)
                .map_or(text, |(at, _)| &text[at + separator.len()..])
                .into()
        }))
    })
}

/// Position of a text in a list with commas, 0 when it is not there.
fn find_in_set(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    integer_rows("FIND_IN_SET", &arguments, |row| {
        let (part, list) = (row.text(0), row.text(1));
        if list.is_empty() {
            return Ok(Some(0));
        }
        Ok(Some(list.split(',').position(|p| p == part).map_or(0, |at| whole(at + 1))))
    })
}

/// The argument of a number; NULL when there is none.
fn elt(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let index = as_integer(arguments.remove(0), "the first argument", context.zone)?;
    let mut whens = Vec::with_capacity(arguments.len());
    let mut texts = Vec::with_capacity(arguments.len());
    for (number, text) in (1_i64..).zip(arguments) {
        let number = datafusion_common::ScalarValue::Int64(Some(number));
        let number = Typed::constant(number, LogicalType::Int64);
        let equal = datafusion_expr::Operator::Eq;
        whens.push(crate::compile::condition::compare(equal, index.clone(), number, context.zone)?);
        texts.push(as_text(text, context.zone)?);
    }
    crate::compile::condition::case(whens, texts, None, context.zone)
}

fn strcmp(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    integer_rows("STRCMP", &arguments, |row| {
        Ok(Some(match row.text(0).cmp(row.text(1)) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }))
    })
}

fn contains(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    boolean_rows("CONTAINS", &arguments, |row| Ok(Some(row.text(0).contains(row.text(1)))))
}

fn space(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 0)?;
    text_rows("SPACE", &arguments, LogicalType::Text, |row| {
        let blanks = count(row.integer(0));
        if blanks > LONGEST {
            return Err(refuse("the resulting text is too long"));
        }
        Ok(Some(" ".repeat(blanks).into()))
    })
}

/// Replaces each character of the second argument by the one at the same place of the third, or takes it away when the
/// third is shorter.
fn translate(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 3)?;
    text_rows("TRANSLATE", &arguments, LogicalType::Text, |row| {
        let from: Vec<char> = row.text(1).chars().collect();
        let to: Vec<char> = row.text(2).chars().collect();
        let translated = row.text(0).chars().filter_map(|c| match from.iter().position(|f| *f == c) {
            None => Some(c),
            Some(at) => to.get(at).copied(),
        });
        Ok(Some(translated.collect::<String>().into()))
    })
}

/// OVERLAY(text PLACING part FROM position [FOR length]).
fn overlay(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 2)?;
    text_rows("OVERLAY", &arguments, LogicalType::Text, |row| {
        let (text, part, from) = (row.text(0), row.text(1), row.integer(2));
        let length = if row.len() == 4 { row.integer(3) } else { whole(part.chars().count()) };
        // A place outside of the text leaves it alone.
        if from < 1 || count(from) > text.chars().count() {
            return Ok(Some(text.into()));
        }
        if length < 0 {
            return Err(refuse("a length is negative"));
        }
        let head = first_chars(text, count(from) - 1);
        let tail = skip_chars(text, (count(from) - 1).saturating_add(count(length)));
        Ok(Some(format!("{head}{part}{tail}").into()))
    })
}

/// INSERT(text, position, length, part), as in MySQL.
fn insert(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let part = as_text(arguments.remove(3), context.zone)?;
    let mut arguments = typed(context, arguments, 1)?;
    arguments.push(part);
    text_rows("INSERT", &arguments, LogicalType::Text, |row| {
        let (text, from, length, part) = (row.text(0), row.integer(1), row.integer(2), row.text(3));
        let characters = text.chars().count();
        if from < 1 || count(from) > characters {
            return Ok(Some(text.into()));
        }
        // A length that reaches behind the end, or is negative, means the rest.
        let length = if length < 0 { characters } else { count(length) };
        let head = first_chars(text, count(from) - 1);
        let tail = skip_chars(text, (count(from) - 1).saturating_add(length));
        Ok(Some(format!("{head}{part}{tail}").into()))
    })
}

/// The first letter of each word large, all others small.
fn initcap(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("INITCAP", &arguments, LogicalType::Text, |row| {
        let mut out = String::with_capacity(row.text(0).len());
        let mut inside = false;
        for c in row.text(0).chars() {
            if inside {
                out.extend(c.to_lowercase());
            } else {
                out.extend(c.to_uppercase());
            }
            inside = c.is_alphanumeric();
        }
        Ok(Some(out.into()))
    })
}

/// The first byte of the text in UTF-8, 0 for an empty text.
fn ascii(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    integer_rows("ASCII", &arguments, |row| Ok(Some(row.bytes(0).first().map_or(0, |b| i64::from(*b)))))
}

/// The character of a Unicode code point.
fn chr(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 0)?;
    text_rows("CHR", &arguments, LogicalType::Varchar { length: 1 }, |row| {
        let found = u32::try_from(row.integer(0)).ok().and_then(char::from_u32);
        let found =
            found.filter(|c| *c != '\0').ok_or_else(|| refuse("there is no character of this number"))?;
        Ok(Some(found.to_string().into()))
    })
}

/// The American Soundex code: the first letter and three digits; empty when there is no letter.
fn soundex(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    text_rows("SOUNDEX", &arguments, LogicalType::Varchar { length: 4 }, |row| {
        let mut code = String::with_capacity(4);
        let mut last = b'0';
        for letter in row.text(0).bytes().filter(u8::is_ascii_alphabetic) {
            let digit = match letter.to_ascii_uppercase() {
                b'B' | b'F' | b'P' | b'V' => b'1',
                b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => b'2',
                b'D' | b'T' => b'3',
                b'L' => b'4',
                b'M' | b'N' => b'5',
                b'R' => b'6',
                // H and W do not part letters of one sound; vowels do.
                b'H' | b'W' => last,
                _ => b'0',
            };
            if code.is_empty() {
                code.push(char::from(letter.to_ascii_uppercase()));
            } else if digit != b'0' && digit != last && code.len() < 4 {
                code.push(char::from(digit));
            }
            last = digit;
        }
        while !code.is_empty() && code.len() < 4 {
            code.push('0');
        }
        Ok(Some(code.into()))
    })
}

fn all(
    name: &str,
    context: &Context,
    arguments: Vec<Typed>,
    holds: fn(&str) -> bool,
) -> Result<Typed, String> {
    let arguments = typed(context, arguments, 1)?;
    boolean_rows(name, &arguments, move |row| Ok(Some(holds(row.text(0)))))
}

fn every(text: &str, holds: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(holds)
}

/// Digits with an optional sign and at most one point.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    !(whole.is_empty() && fraction.is_empty()) && is_digits(whole) && is_digits(fraction)
}
