//! Owns columns of a batch with their Arrow types resolved once, and the text of values that need no escaping.

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    DurationMicrosecondArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    StringArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::i256;
use canalis_batch::{ChangeBatch, write_decimal};
use canalis_types::{Error, LogicalType, Result, temporal};

use super::target::{Target, WriteColumn};

/// One column. Clones share the data.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The variants are the Arrow arrays of the same name.
pub(super) enum Cells {
    Boolean(BooleanArray),
    Int8(Int8Array),
    Int16(Int16Array),
    Int32(Int32Array),
    Int64(Int64Array),
    UInt8(UInt8Array),
    UInt16(UInt16Array),
    UInt32(UInt32Array),
    UInt64(UInt64Array),
    Year(UInt16Array),
    Float32(Float32Array),
    Float64(Float64Array),
    Decimal128(Decimal128Array, u8),
    Decimal256(Decimal256Array, u8),
    Date(Date32Array),
    Time(DurationMicrosecondArray, u8),
    Timestamp(TimestampMicrosecondArray, u8),
    Text(StringArray),
    Bytes(BinaryArray),
}

macro_rules! on_cells {
    ($self:expr, $a:ident => $body:expr) => {
        match $self {
            Cells::Boolean($a) => $body,
            Cells::Int8($a) => $body,
            Cells::Int16($a) => $body,
            Cells::Int32($a) => $body,
            Cells::Int64($a) => $body,
            Cells::UInt8($a) => $body,
            Cells::UInt16($a) | Cells::Year($a) => $body,
            Cells::UInt32($a) => $body,
            Cells::UInt64($a) => $body,
            Cells::Float32($a) => $body,
            Cells::Float64($a) => $body,
            Cells::Decimal128($a, _) => $body,
            Cells::Decimal256($a, _) => $body,
            Cells::Date($a) => $body,
            Cells::Time($a, _) => $body,
            Cells::Timestamp($a, _) => $body,
            Cells::Text($a) => $body,
            Cells::Bytes($a) => $body,
        }
    };
}

impl Cells {
    /// The cells of `array`, whose values are of type `ty`.
    ///
    /// # Errors
    /// Internal when the array has another Arrow type than `canalis_batch::arrow_type` says.
    pub(super) fn new(array: &ArrayRef, ty: &LogicalType) -> Result<Self> {
        use LogicalType::*;
        Ok(match ty {
            Boolean => Self::Boolean(cast(array, ty)?),
            Int8 => Self::Int8(cast(array, ty)?),
            Int16 => Self::Int16(cast(array, ty)?),
            Int32 => Self::Int32(cast(array, ty)?),
            Int64 => Self::Int64(cast(array, ty)?),
            UInt8 => Self::UInt8(cast(array, ty)?),
            UInt16 => Self::UInt16(cast(array, ty)?),
            UInt32 => Self::UInt32(cast(array, ty)?),
            UInt64 | Bit { .. } => Self::UInt64(cast(array, ty)?),
            Year => Self::Year(cast(array, ty)?),
            Float32 => Self::Float32(cast(array, ty)?),
            Float64 => Self::Float64(cast(array, ty)?),
            Decimal { precision, scale } if *precision <= 38 => Self::Decimal128(cast(array, ty)?, *scale),
            Decimal { scale, .. } => Self::Decimal256(cast(array, ty)?, *scale),
            Date => Self::Date(cast(array, ty)?),
            Time { precision } => Self::Time(cast(array, ty)?, *precision),
            Timestamp { precision } | TimestampTz { precision } => {
                Self::Timestamp(cast(array, ty)?, *precision)
            }
            Char { .. } | Varchar { .. } | Text | Json | Enum { .. } | Set { .. } | Uuid => {
                Self::Text(cast(array, ty)?)
            }
            Binary { .. } | Varbinary { .. } | Bytes | Geometry => Self::Bytes(cast(array, ty)?),
        })
    }

    /// Whether the cell is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        on_cells!(self, a => a.is_null(row))
    }

    /// Singles as the doubles that their shortest texts stand for: 0.1 stays 0.1.
    fn widened(self) -> Self {
        let Self::Float32(singles) = self else { return self };
        let widen =
            |value: f32| ryu::Buffer::new().format(value).parse().unwrap_or_else(|_| f64::from(value));
        Self::Float64(singles.iter().map(|value| value.map(widen)).collect())
    }

    /// Appends the value as text that holds no character with a meaning in SQL or TSV. The cell is not NULL.
    /// Texts and bytes are appended as they are; callers escape them.
    pub(super) fn write_plain(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Boolean(a) => out.push(if a.value(row) { b'1' } else { b'0' }),
            Self::Int8(a) => whole(out, a.value(row)),
            Self::Int16(a) => whole(out, a.value(row)),
            Self::Int32(a) => whole(out, a.value(row)),
            Self::Int64(a) => whole(out, a.value(row)),
            Self::UInt8(a) => whole(out, a.value(row)),
            Self::UInt16(a) => whole(out, a.value(row)),
            Self::UInt32(a) => whole(out, a.value(row)),
            Self::UInt64(a) => whole(out, a.value(row)),
            // Four digits: the server reads the text "0" as the year 2000.
            Self::Year(a) => {
                let year = a.value(row);
                if year < 1000 {
                    out.extend_from_slice(format!("{year:04}").as_bytes());
                } else {
                    whole(out, year);
                }
            }
            Self::Float32(a) => single(out, a.value(row)),
            Self::Float64(a) => out.extend_from_slice(ryu::Buffer::new().format(a.value(row)).as_bytes()),
            Self::Decimal128(a, scale) => write_decimal(out, i256::from_i128(a.value(row)), *scale),
            Self::Decimal256(a, scale) => write_decimal(out, a.value(row), *scale),
            Self::Date(a) => temporal::write_date(out, a.value(row)),
            Self::Time(a, precision) => temporal::write_duration(out, a.value(row), *precision),
            Self::Timestamp(a, precision) => temporal::write_datetime(out, a.value(row), *precision),
            Self::Text(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Self::Bytes(a) => out.extend_from_slice(a.value(row)),
        }
    }
}

fn cast<A: Array + Clone + 'static>(array: &ArrayRef, ty: &LogicalType) -> Result<A> {
    array.as_any().downcast_ref::<A>().cloned().ok_or_else(|| {
        Error::internal(format!("a column of type {ty} arrived as Arrow {}", array.data_type()))
    })
}

fn whole(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that a server, which parses to double precision and then rounds, reads as this number.
fn single(out: &mut Vec<u8>, value: f32) {
    let mut buffer = ryu::Buffer::new();
    let short = buffer.format(value);
    // The digits of the largest single stand for a double beyond it, which the server refuses.
    let through_double = short.parse::<f64>().ok().filter(|double| double.abs() <= f64::from(f32::MAX));
    if through_double.is_some_and(|double| narrow(double).to_bits() == value.to_bits()) {
        out.extend_from_slice(short.as_bytes());
    } else {
        out.extend_from_slice(ryu::Buffer::new().format(f64::from(value)).as_bytes());
    }
}

// The rounding of the server itself is what is wanted here.
#[allow(clippy::cast_possible_truncation)]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// The columns of a batch that a target takes, in the target's order.
#[derive(Debug, Clone)]
pub(super) struct BatchCells {
    /// One entry per written column of the target.
    pub written: Vec<Cells>,
    /// One entry per key column, in key order.
    pub key: Vec<Cells>,
}

impl BatchCells {
    /// Resolves the columns of `batch`.
    pub(super) fn new(batch: &ChangeBatch, target: &Target) -> Result<Self> {
        let schema = batch.schema();
        let resolve = |column: &WriteColumn| {
            let index = column.index;
            let cells = Cells::new(batch.rows().column(index), &schema.columns[index].ty)?;
            Ok(if column.widens { cells.widened() } else { cells })
        };
        let written: Vec<Cells> = target.columns.iter().map(resolve).collect::<Result<_>>()?;
        let key = target.key.iter().map(|k| written[*k].clone()).collect();
        Ok(Self { written, key })
    }

    /// Resolves the columns of several batches.
    pub(super) fn of_all(batches: &[ChangeBatch], target: &Target) -> Result<Vec<Self>> {
        batches.iter().map(|batch| Self::new(batch, target)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn my_10_singles_read_back_through_double_precision() {
        for value in [0.1f32, 16_777_216.0, -0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45, 12_345_678.0] {
            let mut out = Vec::new();
            single(&mut out, value);
            let text = String::from_utf8(out).unwrap();
            assert_eq!(narrow(text.parse::<f64>().unwrap()).to_bits(), value.to_bits(), "{text}");
        }
        let mut out = Vec::new();
        single(&mut out, 0.1);
        assert_eq!(out, b"0.1");
    }
}
