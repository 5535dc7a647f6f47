//! Owns CSV: fields parted by one byte, records by line feeds (with or without a carriage return before) or another byte, fields
//! in quotes when they hold any of these.
//!
//! A field without quotes that is the null literal (empty by default) is NULL; a field in quotes never is. So `""` is the
//! empty text. A quote inside quotes is doubled, or stands behind the escape byte if there is one; a quote inside a field
//! without quotes is data. Empty lines are passed over, except in tables of one column, where they are rows. Dates are as in
//! SQL, instants end in `Z`, bytes are Base64.

mod decoder;
mod dialect;
mod encoder;
mod fields;
mod split;

pub(crate) use decoder::header_order;
pub use decoder::{CsvDecoder, Header, read_header};
pub use dialect::{CsvDialect, LineEnd, parse_byte};
pub use encoder::CsvEncoder;
pub(crate) use fields::{FieldsDecoder, FieldsError};
pub(crate) use split::Record;
