//! Owns what an SQLite error means: refuse a row, try again, or stop.

use canalis_types::{Code, Error};
use rusqlite::ErrorCode;

/// The reason when the error is about the row that was written and not about the database.
pub fn row_reason(error: &rusqlite::Error) -> Option<String> {
    let rusqlite::Error::SqliteFailure(failure, message) = error else { return None };
    match failure.code {
        ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => {
            Some(message.clone().unwrap_or_else(|| failure.to_string()))
        }
        _ => None,
    }
}

/// Whether the error says that another row holds the same unique value.
pub fn is_unique_violation(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::SqliteFailure(failure, _)
            if matches!(
                failure.extended_code,
                rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
                    | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
                    | rusqlite::ffi::SQLITE_CONSTRAINT_ROWID
            )
    )
}

/// Turns a driver error into ours.
pub fn to_error(doing: &str, error: rusqlite::Error) -> Error {
    let code = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::SinkContention,
        // Space may be made.
        Some(ErrorCode::DiskFull) => Code::SinkUnreachable,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            Code::SinkAccessDenied
        }
        _ => Code::SinkFailed,
    };
    Error::new(code, doing.to_owned()).with_source(error)
}
