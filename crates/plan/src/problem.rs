//! Owns [`Problem`], one thing that is wrong with a pipeline file, and the report that gathers them.

use std::fmt;

use canalis_types::Code;
use serde::{Serialize, Serializer};

use crate::document::Mark;

/// One thing that is wrong with a pipeline file. Shows as `line:column: CNL-nnnn message (hint)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Stable code.
    #[serde(serialize_with = "code_text")]
    pub code: Code,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// JSON pointer of the node: `/source/hostname`, `/transform/0/projection`; empty for the whole file.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn code_text<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(code)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} {}", self.line, self.column, self.code, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// Adds what to write instead.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(hint.into());
    }

    /// Adds the nearest valid word, if there is one.
    pub(crate) fn did_you_mean(&mut self, nearest: Option<&str>) {
        if let Some(word) = nearest {
            self.hint(format!("did you mean `{word}`?"));
        }
    }
}

/// Where in the file something stands.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) mark: Mark,
    pub(crate) path: String,
}

impl Place {
    /// The place of a key below this one.
    pub(crate) fn key(&self, key: &str, mark: Mark) -> Self {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        Self { mark, path: format!("{}/{escaped}", self.path) }
    }

    /// The place of a list item below this one.
    pub(crate) fn item(&self, index: usize, mark: Mark) -> Self {
        Self { mark, path: format!("{}/{index}", self.path) }
    }
}

/// All that is found while a file is read.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Report {
    /// Something breaks the grammar.
    pub(crate) fn invalid(&mut self, place: &Place, message: impl Into<String>) -> &mut Problem {
        self.refuse(place, Code::PipelineInvalid, message)
    }

    /// Something is known and not built.
    pub(crate) fn not_yet(&mut self, place: &Place, message: impl Into<String>) -> &mut Problem {
        self.refuse(place, Code::NotSupportedYet, message)
    }

    /// Something is wrong in its own way.
    pub(crate) fn refuse(&mut self, place: &Place, code: Code, message: impl Into<String>) -> &mut Problem {
        push(&mut self.problems, place, code, message.into())
    }

    /// Something is allowed and most likely not meant.
    pub(crate) fn warn(&mut self, place: &Place, message: impl Into<String>) -> &mut Problem {
        push(&mut self.warnings, place, Code::PipelineInvalid, message.into())
    }

    /// Whether anything is wrong so far.
    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Problems and warnings, each in order of the file.
    pub(crate) fn finish(mut self) -> (Vec<Problem>, Vec<Problem>) {
        self.problems.sort_by_key(|p| (p.line, p.column));
        self.warnings.sort_by_key(|p| (p.line, p.column));
        (self.problems, self.warnings)
    }
}

fn push<'a>(list: &'a mut Vec<Problem>, place: &Place, code: Code, message: String) -> &'a mut Problem {
    let Mark { line, column } = place.mark;
    list.push(Problem { code, line, column, path: place.path.clone(), message, hint: None });
    list.last_mut().expect("just pushed")
}
