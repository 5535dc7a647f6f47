//! Owns the functions of pipeline expressions: their names, numbers of arguments, and how they are compiled.
//! Unless its page says otherwise, a function of a NULL is NULL.

mod bits;
mod calendar;
mod choice;
mod clock;
mod encode;
mod hash;
mod json;
mod mask;
mod math;
mod number;
mod regexp;
mod row;
mod text;
mod time;
mod time_parts;
mod web;
mod words;

use crate::{
    compile::{Context, Typed},
    syntax::Unit,
};

pub(crate) use encode::bytes_of_hex;

/// How a call is compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// From its arguments.
    Plain(fn(&Context, Vec<Typed>) -> Result<Typed, String>),
    /// From a unit of time and its arguments.
    Unit(fn(&Context, Unit, Vec<Typed>) -> Result<Typed, String>),
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    /// Name in capitals; calls may use any case.
    pub name: &'static str,
    /// Fewest arguments, the unit not counted.
    least: usize,
    /// Most arguments.
    most: usize,
    /// How it is compiled.
    pub body: Body,
}

impl Function {
    const fn new(
        name: &'static str,
        least: usize,
        most: usize,
        build: fn(&Context, Vec<Typed>) -> Result<Typed, String>,
    ) -> Self {
        Self { name, least, most, body: Body::Plain(build) }
    }

    const fn with_unit(
        name: &'static str,
        count: usize,
        build: fn(&Context, Unit, Vec<Typed>) -> Result<Typed, String>,
    ) -> Self {
        Self { name, least: count, most: count, body: Body::Unit(build) }
    }

    /// Whether the first argument is a unit of time.
    pub fn takes_unit(&self) -> bool {
        matches!(self.body, Body::Unit(_))
    }

    /// Whether it can be called with so many arguments.
    pub fn takes(&self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }

    /// The number of arguments in words.
    pub fn arity_text(&self) -> String {
        let unit = if self.takes_unit() { "a unit of time and " } else { "" };
        let count = match (self.least, self.most) {
            (0, 0) => "no arguments".to_owned(),
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, MANY) => format!("{least} or more arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        };
        format!("{unit}{count}")
    }
}

/// No limit to the number of arguments.
const MANY: usize = usize::MAX;

/// Every function.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    [
        text::FUNCTIONS,
        words::FUNCTIONS,
        web::FUNCTIONS,
        regexp::FUNCTIONS,
        number::FUNCTIONS,
        math::FUNCTIONS,
        bits::FUNCTIONS,
        choice::FUNCTIONS,
        hash::FUNCTIONS,
        mask::FUNCTIONS,
        encode::FUNCTIONS,
        clock::FUNCTIONS,
        time::FUNCTIONS,
        time_parts::FUNCTIONS,
        calendar::FUNCTIONS,
        json::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// The function of a name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    all().find(|f| f.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_function_is_in_the_reference_and_has_one_meaning() {
        let page = include_str!("../../../docs/functions.md");
        let words: HashSet<&str> = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
        let missing: Vec<&str> = all().map(|f| f.name).filter(|name| !words.contains(name)).collect();
        assert!(missing.is_empty(), "not in docs/functions.md: {missing:?}");
        let mut seen = HashSet::new();
        let twice: Vec<&str> = all().map(|f| f.name).filter(|name| !seen.insert(*name)).collect();
        assert!(twice.is_empty(), "defined twice: {twice:?}");
    }
}
