//! Owns the mapping from logical types to their physical Arrow form.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use canalis_types::{LogicalType, TableSchema};

/// The Arrow type that holds values of `ty`.
///
/// Decimals up to 38 digits are `Decimal128`, longer ones `Decimal256`. TIME is `Duration(µs)` because it is
/// signed and may exceed a day. Date, date-time and instant may hold the reserved range of
/// [`canalis_types::temporal`]. BIT is `UInt64`, YEAR `UInt16`; every text is `Utf8`, all bytes are `Binary`.
pub fn arrow_type(ty: &LogicalType) -> DataType {
    use LogicalType::*;
    match ty {
        Boolean => DataType::Boolean,
        Int8 => DataType::Int8,
        Int16 => DataType::Int16,
        Int32 => DataType::Int32,
        Int64 => DataType::Int64,
        UInt8 => DataType::UInt8,
        UInt16 | Year => DataType::UInt16,
        UInt32 => DataType::UInt32,
        UInt64 | Bit { .. } => DataType::UInt64,
        Float32 => DataType::Float32,
        Float64 => DataType::Float64,
        Decimal { precision, scale } => {
            let scale = i8::try_from(*scale).expect("scale is at most 76");
            if *precision <= 38 {
                DataType::Decimal128(*precision, scale)
            } else {
                DataType::Decimal256(*precision, scale)
            }
        }
        Date => DataType::Date32,
        Time { .. } => DataType::Duration(TimeUnit::Microsecond),
        Timestamp { .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
        TimestampTz { .. } => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Char { .. } | Varchar { .. } | Text | Json | Enum { .. } | Set { .. } | Uuid => DataType::Utf8,
        Binary { .. } | Varbinary { .. } | Bytes | Geometry => DataType::Binary,
    }
}

/// The Arrow schema of a table; every field is nullable there, because a before-image may miss columns.
pub fn arrow_schema(schema: &TableSchema) -> SchemaRef {
    let fields: Vec<Field> =
        schema.columns.iter().map(|c| Field::new(&c.name, arrow_type(&c.ty), true)).collect();
    Arc::new(Schema::new(fields))
}
