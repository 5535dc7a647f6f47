//! Owns what a PostgreSQL error means: refuse a row, try again, or stop.

use canalis_types::{Code, Error};
use tokio_postgres::error::DbError;

/// Outcome of a failed statement, as the writer acts on it.
#[derive(Debug)]
pub enum Trouble {
    /// A row of the statement cannot be held; the others can.
    Row(RowTrouble),
    /// A deadlock, serialization failure or lock time-out: the same statement may succeed later.
    Contention(Error),
    /// Anything else, lost connections included.
    Fatal(Error),
}

/// What the server said about a row.
#[derive(Debug, Clone)]
pub struct RowTrouble {
    /// Reason in the server's words, with column, constraint and SQLSTATE.
    pub reason: String,
    /// SQLSTATE.
    pub state: String,
    /// Number of the line inside a COPY, starting at 1.
    pub line: Option<usize>,
}

impl RowTrouble {
    /// Whether a unique or exclusion constraint was violated.
    pub fn is_unique(&self) -> bool {
        matches!(self.state.as_str(), "23505" | "23P01")
    }

    /// Whether it is a division by zero, by which a DELETE says that it did not find its rows.
    pub fn is_missing(&self) -> bool {
        self.state == "22012"
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// Judges an error of a statement that writes rows.
pub fn trouble(doing: &str, error: tokio_postgres::Error) -> Trouble {
    let Some(db) = error.as_db_error() else { return Trouble::Fatal(to_error(doing, error)) };
    match code_of(db.code().code()) {
        Code::RowRefused => Trouble::Row(RowTrouble {
            reason: reason(db),
            state: db.code().code().to_owned(),
            line: db.where_().and_then(line),
        }),
        Code::SinkContention => Trouble::Contention(to_error(doing, error)),
        _ => Trouble::Fatal(to_error(doing, error)),
    }
}

/// Turns a driver error into ours.
pub fn to_error(doing: &str, error: tokio_postgres::Error) -> Error {
    let code = match error.as_db_error() {
        Some(db) => match code_of(db.code().code()) {
            // A data error outside of a row is a wrong setting of the sink.
            Code::RowRefused => Code::SinkFailed,
            code => code,
        },
        // Without an answer of the server it is the connection.
        None => Code::SinkUnreachable,
    };
    Error::new(code, doing.to_owned()).with_source(error)
}

/// Code of an SQLSTATE (PostgreSQL manual, appendix A).
fn code_of(state: &str) -> Code {
    match state {
        // Serialization failure, deadlock, lock not available, query canceled by a time-out or an administrator.
        "40001" | "40P01" | "55P03" | "57014" => Code::SinkContention,
        // Shutdown, crash of another session, starting up, idle session closed.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Code::SinkUnreachable,
        // Password, roles, privileges.
        "42501" => Code::SinkAccessDenied,
        // Raised by a trigger or a view's check option.
        "P0001" | "44000" => Code::RowRefused,
        _ => match state.get(..2).unwrap_or_default() {
            "22" | "23" | "54" => Code::RowRefused,
            "08" | "53" => Code::SinkUnreachable,
            "28" => Code::SinkAccessDenied,
            _ => Code::SinkFailed,
        },
    }
}

fn reason(db: &DbError) -> String {
    let mut text = format!("{} (SQLSTATE {}", db.message(), db.code().code());
    if let Some(column) = db.column().or_else(|| db.where_().and_then(column)) {
        text.push_str(&format!(", column `{column}`"));
    }
    if let Some(constraint) = db.constraint() {
        text.push_str(&format!(", constraint `{constraint}`"));
    }
    text.push(')');
    if let Some(detail) = db.detail() {
        text.push_str(": ");
        // A detail may quote the whole row.
        text.extend(detail.chars().take(300));
    }
    text
}

/// The line of `COPY t, line 12, column v: "…"`.
fn line(context: &str) -> Option<usize> {
    let rest = context.lines().find_map(|l| l.strip_prefix("COPY "))?;
    let (_, rest) = rest.split_once(", line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The column of `COPY t, line 12, column v: "…"`.
fn column(context: &str) -> Option<&str> {
    let rest = context.lines().find_map(|l| l.strip_prefix("COPY "))?;
    let (_, rest) = rest.split_once(", column ")?;
    Some(rest.split_once(": ").map_or(rest, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_contexts_name_line_and_column() {
        let context = "COPY order, line 712, column a b: \"abcdef\"\nmore";
        assert_eq!(line(context), Some(712));
        assert_eq!(column(context), Some("a b"));
        assert_eq!(line("COPY t, line 3: \"x\""), Some(3));
        assert_eq!(column("COPY t, line 3"), None);
        assert_eq!(line("PL/pgSQL function f() line 3 at RAISE"), None);
    }

    #[test]
    fn states_decide_what_happens() {
        for (state, code) in [
            ("22021", Code::RowRefused),
            ("23505", Code::RowRefused),
            ("54000", Code::RowRefused),
            ("40P01", Code::SinkContention),
            ("40001", Code::SinkContention),
            ("57P01", Code::SinkUnreachable),
            ("53300", Code::SinkUnreachable),
            ("28P01", Code::SinkAccessDenied),
            ("42501", Code::SinkAccessDenied),
            ("42P01", Code::SinkFailed),
        ] {
            assert_eq!(code_of(state), code, "{state}");
        }
    }
}
