//! Owns plain rows as messages: one row a message (or several) as a JSON object, CSV records or bare bytes, with the row's key as
//! the message's key.
//!
//! A message is an insert, or the new state of its key for a sink that overwrites. A message without a payload deletes
//! the row of its key. So an update is written as its new row, with a delete of the old key before it when the key
//! changed; a table without a key has no way to say which row an update or delete means, and these are refused.
//!
//! The key of a JSON row is the object of its key columns (read also: the plain text of a single key column); that of a CSV
//! row is the text of its key column, of several columns a CSV record. A bare payload is the column `value`, its
//! key the column `key`.

mod decoder;
mod encoder;
mod form;
mod infer;

use canalis_types::{Column, LogicalType, TableId, TableSchema};

use crate::{csv::CsvDialect, json::DecimalForm};

pub use decoder::RowsDecoder;
pub use encoder::RowsEncoder;

/// What a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsKind {
    /// A JSON object, or an array of objects.
    Json,
    /// CSV records.
    Csv,
    /// Any bytes, see [`raw_table`].
    Raw,
}

/// What happens to members of JSON objects that are no columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownFields {
    /// The message does not decode.
    Refuse,
    /// They are left out.
    Ignore,
    /// They become columns.
    Evolve,
}

/// How rows are read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsOptions {
    /// Members that are no columns.
    pub unknown: UnknownFields,
    /// Key columns of a table whose structure is inferred.
    pub primary_key: Vec<String>,
    /// Bytes of the longest message that is read.
    pub max_message_bytes: usize,
    /// CSV. With a header, the first record of each message names the columns.
    pub csv: CsvDialect,
    /// Decimals in JSON.
    pub decimals: DecimalForm,
}

impl Default for RowsOptions {
    fn default() -> Self {
        Self {
            unknown: UnknownFields::Refuse,
            primary_key: Vec::new(),
            max_message_bytes: 64 << 20,
            csv: CsvDialect { header: false, ..CsvDialect::default() },
            decimals: DecimalForm::String,
        }
    }
}

/// Column of a bare payload.
pub const RAW_VALUE: &str = "value";
/// Column of the key of a bare payload.
pub const RAW_KEY: &str = "key";

/// Form of a bare payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawForm {
    /// Bytes as they are.
    Bytes,
    /// Text; a message that is not UTF-8 does not decode.
    Text,
}

/// Whether a table of bare payloads has a column of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawKey {
    /// It has none.
    Absent,
    /// The key of the message, NULL without one.
    Column,
    /// The key of the message is the key of the row: every message needs one, a message without payload deletes.
    Primary,
}

/// The structure of a table of bare payloads.
pub fn raw_table(id: TableId, form: RawForm, key: RawKey) -> TableSchema {
    let ty = match form {
        RawForm::Bytes => LogicalType::Bytes,
        RawForm::Text => LogicalType::Text,
    };
    let mut columns = vec![Column::new(RAW_VALUE, ty.clone(), false)];
    if key != RawKey::Absent {
        columns.insert(0, Column::new(RAW_KEY, ty, key == RawKey::Column));
    }
    let primary_key = if key == RawKey::Primary { vec![RAW_KEY.to_owned()] } else { Vec::new() };
    TableSchema::new(id, columns, primary_key)
}
