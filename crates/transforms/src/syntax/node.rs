//! Owns [`Node`]: an expression after all spellings of one thing have become one form, each with its place.

use std::fmt;

use canalis_types::LogicalType;
use datafusion_expr::Operator;
use sqlparser::{parser::ParserError, tokenizer::Location};

use crate::functions::Function;

/// A place inside the text of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    /// From 1.
    pub line: u64,
    /// From 1, in characters.
    pub column: u64,
}

impl From<Location> for At {
    fn from(location: Location) -> Self {
        // The parser says 0 where it does not know.
        At { line: location.line.max(1), column: location.column.max(1) }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where.
    pub at: At,
    /// What, in lower case.
    pub text: String,
}

impl Problem {
    pub fn new(at: At, text: impl Into<String>) -> Self {
        Self { at, text: text.into() }
    }

    /// Takes the place out of a parser's message, which ends in `at Line: 1, Column: 8`.
    pub fn from_parser(error: &ParserError) -> Self {
        let (ParserError::ParserError(message) | ParserError::TokenizerError(message)) = error else {
            return Self::new(At { line: 1, column: 1 }, "the expression is nested too deeply");
        };
        let (text, place) = message.rsplit_once(" at Line: ").unwrap_or((message, ""));
        let (line, column) = place.split_once(", Column: ").unwrap_or(("1", "1"));
        let at = At { line: line.trim().parse().unwrap_or(1), column: column.trim().parse().unwrap_or(1) };
        let mut text = text.to_owned();
        if let Some(first) = text.get(..1) {
            let lower = first.to_lowercase();
            text.replace_range(..1, &lower);
        }
        Self::new(at, text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.text)
    }
}

/// An entry of a projection.
#[derive(Debug)]
pub(crate) enum Item {
    /// All columns of the source.
    Star,
    /// A column or metadata column as it is, possibly under another name.
    Column { name: String, alias: Option<String>, at: At },
    /// An expression with its name.
    Computed { node: Node, alias: String, at: At },
}

/// Whether a failed conversion refuses the row or gives NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// CAST.
    Strict,
    /// TRY_CAST.
    Try,
}

/// A part or step of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub(crate) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    DayOfWeek,
    DayOfYear,
    Epoch,
}

impl Unit {
    /// The unit of a word, in any case, singular or plural.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word.to_ascii_uppercase().as_str() {
            "MICROSECOND" | "MICROSECONDS" => Unit::Microsecond,
            "MILLISECOND" | "MILLISECONDS" => Unit::Millisecond,
            "SECOND" | "SECONDS" => Unit::Second,
            "MINUTE" | "MINUTES" => Unit::Minute,
            "HOUR" | "HOURS" => Unit::Hour,
            "DAY" | "DAYS" => Unit::Day,
            "WEEK" | "WEEKS" => Unit::Week,
            "MONTH" | "MONTHS" => Unit::Month,
            "QUARTER" | "QUARTERS" => Unit::Quarter,
            "YEAR" | "YEARS" => Unit::Year,
            "DOW" | "DAYOFWEEK" => Unit::DayOfWeek,
            "DOY" | "DAYOFYEAR" => Unit::DayOfYear,
            "EPOCH" => Unit::Epoch,
            _ => return None,
        })
    }
}

/// An expression and where it begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    pub at: At,
}

/// The forms of expressions.
#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Boolean(bool),
    /// Digits as written.
    Number(String),
    Text(String),
    Bytes(Vec<u8>),
    Column(String),
    Call {
        function: &'static Function,
        /// First argument of functions that take one.
        unit: Option<Unit>,
        arguments: Vec<Node>,
    },
    /// `+ - * / %`.
    Arithmetic {
        operator: Operator,
        left: Box<Node>,
        right: Box<Node>,
    },
    /// `= <> < <= > >=`, IS [NOT] DISTINCT FROM.
    Compare {
        operator: Operator,
        left: Box<Node>,
        right: Box<Node>,
    },
    /// AND over all.
    All(Vec<Node>),
    /// OR over all.
    Any(Vec<Node>),
    Not(Box<Node>),
    IsNull {
        operand: Box<Node>,
        negated: bool,
    },
    In {
        operand: Box<Node>,
        list: Vec<Node>,
        negated: bool,
    },
    Between {
        operand: Box<Node>,
        low: Box<Node>,
        high: Box<Node>,
        negated: bool,
    },
    Like {
        operand: Box<Node>,
        pattern: Box<Node>,
        escape: Option<char>,
        negated: bool,
    },
    Case {
        operand: Option<Box<Node>>,
        branches: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
    },
    Cast {
        operand: Box<Node>,
        target: LogicalType,
        mode: Mode,
    },
}
