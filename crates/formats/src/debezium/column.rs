//! Owns the plan of a table's columns for reading, made once per structure.

use arrow_buffer::i256;
use canalis_types::{Column, LogicalType, TableSchema};

use super::{DebeziumDecoderOptions, derive::Derived, types::Form};
use crate::ValueDecoder;

/// How many bytes a column takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Any,
    Exactly(usize),
    AtMost(usize),
}

/// How to read a column.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    pub name: Vec<u8>,
    pub form: Form,
    pub value: ValueDecoder,
    pub nullable: bool,
    pub is_key: bool,
    /// Microseconds that times are multiples of.
    pub unit: i64,
    pub size: Size,
    /// Bits of a bit field.
    pub bits: u8,
    /// Ten to the power of a decimal's digits.
    pub bound: i256,
}

/// How to read a table.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub columns: Vec<ColumnPlan>,
    /// Number of the schema that the forms are from; `None` for those of the declared types.
    pub origin: Option<u64>,
    /// What stands before the payload of keys that have the schema of this table's key.
    pub key_head: Vec<u8>,
}

impl Plan {
    /// A plan by the declared types.
    pub(super) fn declared(schema: &TableSchema, options: &DebeziumDecoderOptions) -> Self {
        let forms = schema.columns.iter().map(|c| Form::of(&c.ty, options));
        Self::new(schema, forms, None)
    }

    /// A plan by a schema in the messages.
    pub(super) fn derived(schema: &TableSchema, derived: &[Derived], origin: u64) -> Self {
        Self::new(schema, derived.iter().map(|d| d.form), Some(origin))
    }

    fn new(schema: &TableSchema, forms: impl Iterator<Item = Form>, origin: Option<u64>) -> Self {
        let plan = |(column, form): (&Column, Form)| {
            ColumnPlan::new(column, form, schema.primary_key.contains(&column.name))
        };
        Self { columns: schema.columns.iter().zip(forms).map(plan).collect(), origin, key_head: Vec::new() }
    }
}

impl ColumnPlan {
    fn new(column: &Column, form: Form, is_key: bool) -> Self {
        use LogicalType as L;
        let precision = match column.ty {
            L::Time { precision } | L::Timestamp { precision } | L::TimestampTz { precision } => precision,
            _ => 6,
        };
        let bytes = |length: u32| usize::try_from(length).unwrap_or(usize::MAX);
        let digits = if let L::Decimal { precision, .. } = column.ty { precision } else { 20 };
        Self {
            name: column.name.clone().into_bytes(),
            form,
            value: ValueDecoder::new(column),
            nullable: column.nullable,
            is_key,
            unit: 10_i64.pow(u32::from(6 - precision.min(6))),
            size: match column.ty {
                L::Binary { length } => Size::Exactly(bytes(length)),
                L::Varbinary { length } => Size::AtMost(bytes(length)),
                _ => Size::Any,
            },
            bits: if let L::Bit { length } = column.ty { length } else { 64 },
            bound: (0..digits).fold(i256::ONE, |n, _| n.wrapping_mul(i256::from_i128(10))),
        }
    }
}
