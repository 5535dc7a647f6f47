//! Owns decoding of one split record into one row.

use canalis_batch::BatchBuilder;
use canalis_types::TableSchema;

use super::{
    CsvDialect,
    split::{Field, Record, Splitter},
};
use crate::ValueDecoder;

/// Splits records and puts their fields into columns.
#[derive(Debug)]
pub(crate) struct FieldsDecoder {
    pub(super) splitter: Splitter,
    null_literal: Vec<u8>,
    /// For each field of a record, its column.
    targets: Vec<Target>,
    fields: Vec<Field>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Target {
    column: usize,
    name: String,
    value: ValueDecoder,
}

/// Why a record is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldsError {
    /// Nothing is in the columns.
    Count(String),
    /// All columns have a value of the row, NULL where there was none.
    Value(String),
}

impl FieldsDecoder {
    /// A decoder of records whose fields belong to the columns `order`.
    pub(crate) fn new(schema: &TableSchema, dialect: &CsvDialect, order: &[usize]) -> Self {
        let target = |column: &usize| Target {
            column: *column,
            name: schema.columns[*column].name.clone(),
            value: ValueDecoder::new(&schema.columns[*column]),
        };
        Self {
            splitter: Splitter::new(dialect),
            null_literal: dialect.null_literal.clone(),
            targets: order.iter().map(target).collect(),
            fields: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Finds the record at the front of `input` and keeps its fields; see [`Splitter::split`].
    pub(crate) fn split(&mut self, input: &[u8], last: bool) -> Record {
        self.splitter.split(input, last, &mut self.fields)
    }

    /// Whether the record that was split may hold line breaks.
    pub(crate) fn may_span_lines(&self) -> bool {
        self.fields.iter().any(|f| f.quoted || f.escaped)
    }

    /// Fields of a record.
    pub(crate) fn count(&self) -> usize {
        self.targets.len()
    }

    /// Appends the fields of the record that was split to their columns; the row is not ended.
    ///
    /// # Errors
    /// [`FieldsError`].
    pub(crate) fn append(&mut self, record: &[u8], builder: &mut BatchBuilder) -> Result<(), FieldsError> {
        if self.fields.len() != self.targets.len() {
            let (found, wanted) = (self.fields.len(), self.targets.len());
            let reason = format!("record has {found} fields, the table has {wanted} columns");
            return Err(FieldsError::Count(reason));
        }
        for (done, (field, target)) in self.fields.iter().zip(&self.targets).enumerate() {
            let column = builder.column(target.column);
            let raw = &record[field.start..field.end];
            let outcome = if !field.quoted && raw == self.null_literal {
                target.value.append_null(column)
            } else if field.escaped {
                self.splitter.unescape(raw, field.quoted, &mut self.scratch);
                target.value.append(column, &self.scratch)
            } else {
                target.value.append(column, raw)
            };
            if let Err(error) = outcome {
                let reason = format!("column `{}`: {error}", target.name);
                for target in &self.targets[done..] {
                    builder.column(target.column).append_null();
                }
                return Err(FieldsError::Value(reason));
            }
        }
        Ok(())
    }
}
