//! Owns the SQL dialect of pipeline files: back-quoted names, single-quoted texts without backslash escapes.

use sqlparser::dialect::Dialect;

/// Names in back quotes, Unicode letters in names, nothing vendor-specific.
#[derive(Debug)]
pub(super) struct PipelineDialect;

impl Dialect for PipelineDialect {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }

    fn supports_in_empty_list(&self) -> bool {
        false
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
}
