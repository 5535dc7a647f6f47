//! Owns the text and JSON forms of cells, exact for every type: used by dead letters, text sinks and tests.

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::*};
use arrow_buffer::i256;
use canalis_types::{LogicalType, TableSchema, temporal};
use serde_json::Value;

/// Appends the canonical text of a decimal from its unscaled integer: `-1250` at scale 2 is `-12.50`.
pub fn write_decimal(out: &mut Vec<u8>, unscaled: i256, scale: u8) {
    let mut wide;
    let mut narrow = itoa::Buffer::new();
    let digits: &str = if let Some(value) = unscaled.to_i128() {
        narrow.format(value)
    } else {
        wide = unscaled.to_string();
        wide.shrink_to_fit();
        &wide
    };
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let scale = usize::from(scale);
    out.extend_from_slice(sign.as_bytes());
    if scale == 0 {
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    if digits.len() <= scale {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
        out.extend_from_slice(digits.as_bytes());
    } else {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole.as_bytes());
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

/// The canonical text of a cell, `None` for NULL. Bytes are rendered as upper-case hex.
pub fn cell_to_text(column: &ArrayRef, ty: &LogicalType, row: usize) -> Option<String> {
    use LogicalType::*;
    if column.is_null(row) {
        return None;
    }
    let mut out = Vec::new();
    match ty {
        Boolean => out.extend_from_slice(if column.as_boolean().value(row) { b"true" } else { b"false" }),
        Int8 => int(&mut out, column.as_primitive::<Int8Type>().value(row)),
        Int16 => int(&mut out, column.as_primitive::<Int16Type>().value(row)),
        Int32 => int(&mut out, column.as_primitive::<Int32Type>().value(row)),
        Int64 => int(&mut out, column.as_primitive::<Int64Type>().value(row)),
        UInt8 => int(&mut out, column.as_primitive::<UInt8Type>().value(row)),
        UInt16 | Year => int(&mut out, column.as_primitive::<UInt16Type>().value(row)),
        UInt32 => int(&mut out, column.as_primitive::<UInt32Type>().value(row)),
        UInt64 | Bit { .. } => int(&mut out, column.as_primitive::<UInt64Type>().value(row)),
        Float32 => float(&mut out, column.as_primitive::<Float32Type>().value(row)),
        Float64 => float(&mut out, column.as_primitive::<Float64Type>().value(row)),
        Decimal { precision, scale } => {
            let value = if *precision <= 38 {
                i256::from_i128(column.as_primitive::<Decimal128Type>().value(row))
            } else {
                column.as_primitive::<Decimal256Type>().value(row)
            };
            write_decimal(&mut out, value, *scale);
        }
        Date => temporal::write_date(&mut out, column.as_primitive::<Date32Type>().value(row)),
        Time { precision } => temporal::write_duration(
            &mut out,
            column.as_primitive::<DurationMicrosecondType>().value(row),
            *precision,
        ),
        Timestamp { precision } | TimestampTz { precision } => temporal::write_datetime(
            &mut out,
            column.as_primitive::<TimestampMicrosecondType>().value(row),
            *precision,
        ),
        Char { .. } | Varchar { .. } | Text | Json | Enum { .. } | Set { .. } | Uuid => {
            out.extend_from_slice(column.as_string::<i32>().value(row).as_bytes());
        }
        Binary { .. } | Varbinary { .. } | Bytes | Geometry => {
            for byte in column.as_binary::<i32>().value(row) {
                out.extend_from_slice(format!("{byte:02X}").as_bytes());
            }
        }
    }
    Some(String::from_utf8(out).expect("canonical texts are UTF-8"))
}

fn int(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Shortest text that reads back as the same number; `NaN`, `inf`, `-inf` as Rust prints them.
fn float<T: ryu::Float + std::fmt::Display>(out: &mut Vec<u8>, value: T) {
    out.extend_from_slice(ryu::Buffer::new().format(value).as_bytes());
}

/// The JSON form of a cell: small numbers as numbers, everything that JSON readers may round (64-bit
/// numbers, decimals) and all other types as their canonical text.
pub fn cell_to_json(column: &ArrayRef, ty: &LogicalType, row: usize) -> Value {
    use LogicalType::*;
    let Some(text) = cell_to_text(column, ty, row) else { return Value::Null };
    match ty {
        Boolean => Value::Bool(text == "true"),
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Year => {
            text.parse::<i64>().map_or(Value::Null, Value::from)
        }
        _ => Value::String(text),
    }
}

/// A whole row as a JSON object in column order.
pub fn row_to_json(rows: &RecordBatch, schema: &TableSchema, row: usize) -> Value {
    let mut object = serde_json::Map::with_capacity(schema.columns.len());
    for (index, column) in schema.columns.iter().enumerate() {
        object.insert(column.name.clone(), cell_to_json(rows.column(index), &column.ty, row));
    }
    Value::Object(object)
}
