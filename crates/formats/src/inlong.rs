//! Owns the bodies of InLong messages: CSV and key-value text of one declared table.
//!
//! The escape character takes the meaning from the character behind it, whatever that is; quotes take it from all characters
//! between them and are no data. A field that is the null literal as it stands, without quotes and escapes, is NULL. Every record
//! is a +I row. The binary envelope that InLong's proxy puts around bodies is not read here.

mod decoder;
mod split;

pub use decoder::InlongDecoder;

use crate::{Charset, json::UnknownMembers};

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InlongBody {
    /// Fields in the order of the columns.
    Csv {
        /// Byte between fields.
        separator: u8,
    },
    /// Names with their values, in any order; a column that is missing is NULL.
    KeyValue {
        /// Byte between entries.
        entry_separator: u8,
        /// Byte between a name and its value.
        kv_separator: u8,
    },
}

/// How bodies are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlongOptions {
    /// What a body holds.
    pub body: InlongBody,
    /// Byte that takes the meaning from the one behind it.
    pub escape: Option<u8>,
    /// Byte around text.
    pub quote: Option<u8>,
    /// Byte between the records of a body; without one, a body is one record.
    pub line_separator: Option<u8>,
    /// Text that stands for NULL.
    pub null_literal: Option<Vec<u8>>,
    /// Names of a key-value body that are no columns.
    pub unknown: UnknownMembers,
    /// Character set of the bodies; `None` is UTF-8.
    pub charset: Option<Charset>,
    /// Bytes of the longest body that is read.
    pub max_message_bytes: usize,
}

impl InlongOptions {
    /// The options of bodies without escapes, quotes and NULL.
    pub fn new(body: InlongBody) -> Self {
        Self {
            body,
            escape: None,
            quote: None,
            line_separator: None,
            null_literal: None,
            unknown: UnknownMembers::Refuse,
            charset: None,
            max_message_bytes: 64 << 20,
        }
    }
}
