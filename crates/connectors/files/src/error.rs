//! Owns the mapping of IO errors to codes and kinds.

use std::{fmt, io};

use canalis_types::{Code, Error, ErrorKind};

/// An error while reading.
pub(crate) fn source_io(doing: impl fmt::Display, error: io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::TableNotFound,
        io::ErrorKind::PermissionDenied => Code::SourceAccessDenied,
        _ => Code::SourceUnreachable,
    };
    Error::new(code, format!("cannot {doing}")).with_source(error)
}

/// An error while writing.
pub(crate) fn sink_io(doing: impl fmt::Display, error: io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::SinkAccessDenied,
        _ => Code::SinkFailed,
    };
    let mends = matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::TimedOut
            | io::ErrorKind::ResourceBusy
    );
    let failed = Error::new(code, format!("cannot {doing}")).with_source(error);
    if mends { failed.with_kind(ErrorKind::Transient) } else { failed }
}
