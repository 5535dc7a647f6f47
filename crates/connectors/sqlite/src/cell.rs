//! Owns the value of a cell as SQLite stores it.

use arrow_array::{Array, ArrayRef, cast::AsArray, types::*};
use canalis_batch::cell_to_text;
use canalis_types::LogicalType;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use crate::types::Storage;

/// The value of a cell, exactly.
///
/// # Errors
/// Why SQLite cannot hold it.
pub fn value<'a>(
    column: &'a ArrayRef,
    ty: &LogicalType,
    storage: Storage,
    row: usize,
) -> Result<ToSqlOutput<'a>, String> {
    if column.is_null(row) {
        return Ok(ToSqlOutput::Borrowed(ValueRef::Null));
    }
    Ok(match storage {
        Storage::Integer | Storage::WideInteger => match integer(column, ty, row) {
            Some(number) => match i64::try_from(number) {
                Ok(number) => ToSqlOutput::Owned(Value::Integer(number)),
                Err(_) if storage == Storage::WideInteger => {
                    ToSqlOutput::Owned(Value::Text(number.to_string()))
                }
                Err(_) => return Err(format!("{number} is above 2^63 - 1")),
            },
            None => return Err(format!("{ty} is no whole number")),
        },
        Storage::Real => ToSqlOutput::Owned(Value::Real(real(column, ty, row)?)),
        Storage::Text => match ty {
            LogicalType::TimestampTz { .. } => {
                let mut text = cell_to_text(column, ty, row).unwrap_or_default();
                text.push('Z');
                ToSqlOutput::Owned(Value::Text(text))
            }
            _ if ty.is_text() => {
                ToSqlOutput::Borrowed(ValueRef::Text(column.as_string::<i32>().value(row).as_bytes()))
            }
            _ => ToSqlOutput::Owned(Value::Text(cell_to_text(column, ty, row).unwrap_or_default())),
        },
        Storage::Blob => ToSqlOutput::Borrowed(ValueRef::Blob(column.as_binary::<i32>().value(row))),
    })
}

fn integer(column: &ArrayRef, ty: &LogicalType, row: usize) -> Option<i128> {
    use LogicalType::*;
    Some(match ty {
        Boolean => i128::from(column.as_boolean().value(row)),
        Int8 => column.as_primitive::<Int8Type>().value(row).into(),
        Int16 => column.as_primitive::<Int16Type>().value(row).into(),
        Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        UInt8 => column.as_primitive::<UInt8Type>().value(row).into(),
        UInt16 | Year => column.as_primitive::<UInt16Type>().value(row).into(),
        UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        UInt64 | Bit { .. } => column.as_primitive::<UInt64Type>().value(row).into(),
        _ => return None,
    })
}

/// A FLOAT goes through its shortest digits, so that 0.1 does not become 0.10000000149.
fn real(column: &ArrayRef, ty: &LogicalType, row: usize) -> Result<f64, String> {
    let number = match ty {
        LogicalType::Float32 => {
            let narrow = column.as_primitive::<Float32Type>().value(row);
            narrow.to_string().parse().unwrap_or_else(|_| f64::from(narrow))
        }
        _ => column.as_primitive::<Float64Type>().value(row),
    };
    if number.is_nan() {
        return Err("SQLite has no NaN".to_owned());
    }
    Ok(number)
}
