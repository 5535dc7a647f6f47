//! Owns JSON lines: one object per line, one member per column.
//!
//! Numbers up to 64 bits are JSON numbers; decimals are strings unless asked otherwise, because readers round numbers;
//! dates and times are ISO 8601 strings, instants end in `Z`; bytes are Base64. A JSON column that holds an object or array is
//! embedded as it is; any other JSON text (a scalar, `null`, a document with line breaks) is a string that holds the
//! text. So NULL, the document `null` and the text `"null"` stay apart, and every value reads back as it was.

mod decoder;
mod encoder;
mod object;
pub(crate) mod scan;
pub(crate) mod string;

pub use decoder::{JsonDecoder, JsonDecoderOptions, UnknownMembers};
pub(crate) use encoder::open_columns;
pub use encoder::{DecimalForm, JsonEncoder, JsonEncoderOptions, write_row};
pub(crate) use object::{ObjectDecoder, ObjectError, Strangers, TextColumns, whole};

/// Whether the bytes are one JSON value and blanks around it, in UTF-8, with at most 128 levels.
pub fn is_valid(text: &[u8]) -> bool {
    let mut scanner = scan::Scanner::new(text);
    scanner.value().is_ok() && scanner.end().is_ok() && std::str::from_utf8(text).is_ok()
}
