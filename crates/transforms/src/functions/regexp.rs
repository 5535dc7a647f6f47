//! Owns functions on regular expressions. The pattern is a constant, compiled once; there is no look-around and no
//! back-reference, so that matching takes linear time.

use canalis_types::LogicalType;
use regex::{NoExpand, Regex};

use super::{
    Function,
    row::{boolean_rows, text_rows},
    text::fits,
};
use crate::compile::{Context, Typed, coerce::as_text};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("REGEXP_LIKE", 2, 2, like), Function::new("REGEXP_REPLACE", 3, 3, replace)];

fn pattern(argument: &Typed) -> Result<Regex, String> {
    let text = argument.literal_text().ok_or("the pattern must be a text constant")?;
    Regex::new(text).map_err(|e| {
        let why = e.to_string();
        format!("the pattern is not a regular expression: {}", why.lines().last().unwrap_or_default())
    })
}

/// Whether the pattern is found anywhere.
fn like(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let regex = pattern(&arguments[1])?;
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    boolean_rows("REGEXP_LIKE", &[text], move |row| Ok(Some(regex.is_match(row.text(0)))))
}

/// Replaces every match by the third argument, literally.
fn replace(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let regex = pattern(&arguments[1])?;
    let by = as_text(arguments.swap_remove(2), context.zone)?;
    let text = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows("REGEXP_REPLACE", &[text, by], LogicalType::Text, move |row| {
        let (text, by) = (row.text(0), row.text(1));
        if by.len() > 1 {
            fits(text, regex.find_iter(text).count(), by)?;
        }
        Ok(Some(regex.replace_all(text, NoExpand(by))))
    })
}
