//! Owns what `canalis check` reports.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// The job can run; something deserves attention.
    Warning,
    /// The job would fail or be wrong.
    Error,
}

/// One finding of a look at a live system.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at, for example `source mysql: binlog_format`.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do about it, as a command or setting where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub fn ok(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, subject: subject.into(), message: message.into(), remedy: None }
    }

    /// Something that deserves attention.
    pub fn warning(
        subject: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            subject: subject.into(),
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// Something that makes the job fail or be wrong.
    pub fn error(subject: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            subject: subject.into(),
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }
}
