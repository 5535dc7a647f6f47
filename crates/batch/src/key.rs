//! Owns row keys: an encoding whose bytes are equal exactly when the keys are and which sorts integer keys
//! as numbers, and the hash that sends rows of one key to one writer.

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::*};
use arrow_schema::{DataType, TimeUnit};
use canalis_types::{Error, Result, TableSchema};

/// Encodes the key of a row into bytes.
#[derive(Debug, Clone)]
pub struct KeyEncoder {
    columns: Vec<usize>,
}

impl KeyEncoder {
    /// An encoder for the primary key of `schema`; `None` for a table without a key.
    pub fn for_table(schema: &TableSchema) -> Option<Self> {
        schema.has_key().then(|| Self { columns: schema.key_indexes() })
    }

    /// An encoder over the given columns.
    pub fn over(columns: Vec<usize>) -> Self {
        Self { columns }
    }

    /// Indexes of the key columns.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Appends the key of `row` to `out`. Numbers are big-endian with the sign flipped, so that bytes sort like
    /// numbers; texts and bytes are followed by their length, so that composite keys cannot collide.
    ///
    /// # Errors
    /// Internal for a column type that cannot be a key.
    pub fn encode(&self, rows: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<()> {
        for &index in &self.columns {
            encode_column(rows.column(index), row, out)?;
        }
        Ok(())
    }
}

/// Appends the part of a key that is in one column.
pub(crate) fn encode_column(column: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<()> {
    if column.is_null(row) {
        out.push(0);
        return Ok(());
    }
    out.push(1);
    macro_rules! signed {
        ($ty:ty) => {{
            let bytes = column.as_primitive::<$ty>().value(row).to_be_bytes();
            out.push(bytes[0] ^ 0x80);
            out.extend_from_slice(&bytes[1..]);
        }};
    }
    macro_rules! plain {
        ($ty:ty) => {
            out.extend_from_slice(&column.as_primitive::<$ty>().value(row).to_be_bytes())
        };
    }
    fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend_from_slice(bytes);
        out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    }
    match column.data_type() {
        DataType::Boolean => out.push(u8::from(column.as_boolean().value(row))),
        DataType::Int8 => signed!(Int8Type),
        DataType::Int16 => signed!(Int16Type),
        DataType::Int32 => signed!(Int32Type),
        DataType::Int64 => signed!(Int64Type),
        DataType::UInt8 => plain!(UInt8Type),
        DataType::UInt16 => plain!(UInt16Type),
        DataType::UInt32 => plain!(UInt32Type),
        DataType::UInt64 => plain!(UInt64Type),
        DataType::Float32 => plain!(Float32Type),
        DataType::Float64 => plain!(Float64Type),
        DataType::Decimal128(..) => signed!(Decimal128Type),
        DataType::Decimal256(..) => signed!(Decimal256Type),
        DataType::Date32 => signed!(Date32Type),
        DataType::Duration(TimeUnit::Microsecond) => signed!(DurationMicrosecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => signed!(TimestampMicrosecondType),
        DataType::Utf8 => sized(out, column.as_string::<i32>().value(row).as_bytes()),
        DataType::Binary => sized(out, column.as_binary::<i32>().value(row)),
        other => return Err(Error::internal(format!("a column of {other} cannot be part of a key"))),
    }
    Ok(())
}

/// Rows of neighbouring integer keys share a block of this many, so that one writer touches whole pages.
const KEY_BLOCK_BITS: u32 = 8;

/// A stable hash of an encoded key that decides which writer takes the row.
///
/// The last byte of a key that ends in a number is left out: 256 neighbouring keys go to the same
/// writer. Stable over runs and versions: committed positions of writers depend on it.
pub fn route_hash(key: &[u8]) -> u64 {
    let block = &key[..key.len() - (KEY_BLOCK_BITS as usize / 8).min(key.len().saturating_sub(1))];
    // FNV-1a, 64 bits: stable by definition, and keys are short.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in block {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The high bits of FNV mix best.
    hash ^ (hash >> 32)
}
