//! Owns the classes of server errors: rows that are refused, conflicts of locks, and everything else.

use canalis_types::{Code, Error};

use crate::Endpoint;

/// What the server said about a row.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    /// The server's error number.
    pub code: u16,
    /// The server's text.
    pub message: String,
}

impl Refusal {
    /// The row of the statement that the text names, counted from 0.
    pub(super) fn row(&self) -> Option<usize> {
        let at = self.message.rfind(" at row ")? + " at row ".len();
        let digits: String = self.message[at..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()?.checked_sub(1)
    }

    /// Whether a key was already there.
    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self.code, 1062 | 1586)
    }
}

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// A row cannot be held; the statement changed nothing.
    Row(Refusal),
    /// The server accepted rows with warnings, so a value may have been altered.
    Suspicious,
    /// A deadlock or lock time-out; the transaction is gone.
    Contention(Error),
    /// Anything else.
    Fatal(Error),
}

impl Failure {
    /// Sorts a driver error.
    pub(super) fn sort(endpoint: &Endpoint, doing: &str, error: mysql_async::Error) -> Self {
        if let mysql_async::Error::Server(server) = &error
            && is_row_error(server.code, &server.state)
        {
            return Failure::Row(Refusal { code: server.code, message: server.message.clone() });
        }
        let error = endpoint.error(doing, error);
        if error.code() == Code::SinkContention { Failure::Contention(error) } else { Failure::Fatal(error) }
    }

    /// The error for callers that can do nothing about single rows.
    pub(super) fn into_error(self, doing: &str) -> Error {
        match self {
            Failure::Row(refusal) => {
                Error::new(Code::SinkFailed, format!("{doing}: {} ({})", refusal.message, refusal.code))
            }
            Failure::Suspicious => Error::internal(format!("{doing}: warnings were left unchecked")),
            Failure::Contention(error) | Failure::Fatal(error) => error,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Fatal(error)
    }
}

/// Whether an error says that a value or row cannot be held. SQLSTATE classes 22 (data exception) and 23
/// (integrity constraint) do; many of MySQL's numbers carry the general states HY000 or 01000.
pub(super) fn is_row_error(code: u16, state: &str) -> bool {
    match code {
        // Lock conflicts have integrity states in some versions.
        1205 | 1213 | 1020 => false,
        // Truncated, no default, out of range, wrong value, conversion of characters, no partition, row too
        // large, geometry, JSON, CHECK, trigger signal, vector, foreign keys.
        1118
        | 1265
        | 1264
        | 1292
        | 1300
        | 1301
        | 1364
        | 1366
        | 1367
        | 1406
        | 1411
        | 1416
        | 1467
        | 1525
        | 1526
        | 1644
        | 1690
        | 1713
        | 1748
        | 1830
        | 3037
        | 3140..=3160
        | 3643
        | 3819
        | 3977
        | 4025
        | 4161
        | 6136
        | 6137 => true,
        _ => state.starts_with("22") || state.starts_with("23"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_is_read_from_the_text() {
        for (message, row) in [
            ("Out of range value for column 'v' at row 3", Some(2)),
            ("Data too long for column ' at row 9' at row 1", Some(0)),
            ("Duplicate entry '1' for key 'PRIMARY'", None),
            ("Column 'a' cannot be null", None),
        ] {
            assert_eq!(Refusal { code: 1264, message: message.into() }.row(), row, "{message}");
        }
    }

    #[test]
    fn lock_conflicts_are_no_row_errors() {
        for (code, state, expect) in [
            (1213, "40001", false),
            (1205, "HY000", false),
            (1020, "HY000", false),
            (1062, "23000", true),
            (1048, "23000", true),
            (1406, "22001", true),
            (4025, "23000", true),
            (1146, "42S02", false),
            (1153, "08S01", false),
        ] {
            assert_eq!(is_row_error(code, state), expect, "{code}");
        }
    }
}
