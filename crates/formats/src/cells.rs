//! Owns typed access to the cells of a column, and the text forms that CSV and JSON share.

use arrow_array::{Array, ArrayRef, PrimitiveArray, cast::AsArray, types::*};
use arrow_array::{BinaryArray, BooleanArray, StringArray};
use arrow_buffer::{NullBuffer, i256};
use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_batch::write_decimal;
use canalis_types::{Error, LogicalType, Result, temporal};

/// How date and time of day are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// `2026-01-02 03:04:05`.
    Blank,
    /// `2026-01-02T03:04:05`.
    Iso,
}

/// A column, ready for row-wise access.
pub(crate) struct Cells<'a> {
    nulls: Option<&'a NullBuffer>,
    pub values: Values<'a>,
}

/// Values of a column by their physical form.
pub(crate) enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt8(&'a PrimitiveArray<UInt8Type>),
    UInt16(&'a PrimitiveArray<UInt16Type>),
    UInt32(&'a PrimitiveArray<UInt32Type>),
    UInt64(&'a PrimitiveArray<UInt64Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Decimal128(&'a PrimitiveArray<Decimal128Type>, u8),
    Decimal256(&'a PrimitiveArray<Decimal256Type>, u8),
    Date(&'a PrimitiveArray<Date32Type>),
    Time(&'a PrimitiveArray<DurationMicrosecondType>, u8),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>, u8),
    Instant(&'a PrimitiveArray<TimestampMicrosecondType>, u8),
    Text(&'a StringArray),
    Json(&'a StringArray),
    Binary(&'a BinaryArray),
}

impl<'a> Cells<'a> {
    /// # Errors
    /// Internal when the array is not of the type's physical form.
    pub(crate) fn new(array: &'a ArrayRef, ty: &LogicalType) -> Result<Self> {
        let values = values(array, ty)
            .ok_or_else(|| Error::internal(format!("a column of {ty} is held as {}", array.data_type())))?;
        Ok(Self { nulls: array.nulls(), values })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|n| n.is_null(row))
    }

    /// Whether two rows hold the same value, NULL like NULL and floats bit by bit.
    pub(crate) fn is_same(&self, one: usize, other: usize) -> bool {
        if self.is_null(one) || self.is_null(other) {
            return self.is_null(one) == self.is_null(other);
        }
        macro_rules! eq {
            ($a:expr) => {
                $a.value(one) == $a.value(other)
            };
        }
        match &self.values {
            Values::Boolean(a) => eq!(a),
            Values::Int8(a) => eq!(a),
            Values::Int16(a) => eq!(a),
            Values::Int32(a) => eq!(a),
            Values::Int64(a) => eq!(a),
            Values::UInt8(a) => eq!(a),
            Values::UInt16(a) => eq!(a),
            Values::UInt32(a) => eq!(a),
            Values::UInt64(a) => eq!(a),
            Values::Float32(a) => a.value(one).to_bits() == a.value(other).to_bits(),
            Values::Float64(a) => a.value(one).to_bits() == a.value(other).to_bits(),
            Values::Decimal128(a, _) => eq!(a),
            Values::Decimal256(a, _) => eq!(a),
            Values::Date(a) => eq!(a),
            Values::Time(a, _) => eq!(a),
            Values::Timestamp(a, _) | Values::Instant(a, _) => eq!(a),
            Values::Text(a) | Values::Json(a) => eq!(a),
            Values::Binary(a) => eq!(a),
        }
    }
}

fn values<'a>(array: &'a ArrayRef, ty: &LogicalType) -> Option<Values<'a>> {
    use LogicalType as L;
    Some(match ty {
        L::Boolean => Values::Boolean(array.as_boolean_opt()?),
        L::Int8 => Values::Int8(array.as_primitive_opt()?),
        L::Int16 => Values::Int16(array.as_primitive_opt()?),
        L::Int32 => Values::Int32(array.as_primitive_opt()?),
        L::Int64 => Values::Int64(array.as_primitive_opt()?),
        L::UInt8 => Values::UInt8(array.as_primitive_opt()?),
        L::UInt16 | L::Year => Values::UInt16(array.as_primitive_opt()?),
        L::UInt32 => Values::UInt32(array.as_primitive_opt()?),
        L::UInt64 | L::Bit { .. } => Values::UInt64(array.as_primitive_opt()?),
        L::Float32 => Values::Float32(array.as_primitive_opt()?),
        L::Float64 => Values::Float64(array.as_primitive_opt()?),
        L::Decimal { precision, scale } if *precision <= 38 => {
            Values::Decimal128(array.as_primitive_opt()?, *scale)
        }
        L::Decimal { scale, .. } => Values::Decimal256(array.as_primitive_opt()?, *scale),
        L::Date => Values::Date(array.as_primitive_opt()?),
        L::Time { precision } => Values::Time(array.as_primitive_opt()?, *precision),
        L::Timestamp { precision } => Values::Timestamp(array.as_primitive_opt()?, *precision),
        L::TimestampTz { precision } => Values::Instant(array.as_primitive_opt()?, *precision),
        L::Json => Values::Json(array.as_string_opt()?),
        L::Char { .. } | L::Varchar { .. } | L::Text | L::Enum { .. } | L::Set { .. } | L::Uuid => {
            Values::Text(array.as_string_opt()?)
        }
        L::Binary { .. } | L::Varbinary { .. } | L::Bytes | L::Geometry => {
            Values::Binary(array.as_binary_opt()?)
        }
    })
}

impl Values<'_> {
    /// Appends the bare text of a cell: bytes as Base64, instants with `Z`.
    pub(crate) fn write(&self, row: usize, form: TimeForm, out: &mut Vec<u8>) {
        match self {
            Values::Boolean(a) => out.extend_from_slice(if a.value(row) { b"true" } else { b"false" }),
            Values::Int8(a) => integer(out, a.value(row)),
            Values::Int16(a) => integer(out, a.value(row)),
            Values::Int32(a) => integer(out, a.value(row)),
            Values::Int64(a) => integer(out, a.value(row)),
            Values::UInt8(a) => integer(out, a.value(row)),
            Values::UInt16(a) => integer(out, a.value(row)),
            Values::UInt32(a) => integer(out, a.value(row)),
            Values::UInt64(a) => integer(out, a.value(row)),
            Values::Float32(a) => out.extend_from_slice(ryu::Buffer::new().format(a.value(row)).as_bytes()),
            Values::Float64(a) => out.extend_from_slice(ryu::Buffer::new().format(a.value(row)).as_bytes()),
            Values::Decimal128(a, scale) => decimal(out, a.value(row), *scale),
            Values::Decimal256(a, scale) => write_decimal(out, a.value(row), *scale),
            Values::Date(a) => temporal::write_date(out, a.value(row)),
            Values::Time(a, precision) => temporal::write_duration(out, a.value(row), *precision),
            Values::Timestamp(a, precision) => datetime(out, a.value(row), *precision, form),
            Values::Instant(a, precision) => {
                datetime(out, a.value(row), *precision, form);
                out.push(b'Z');
            }
            Values::Text(a) | Values::Json(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Values::Binary(a) => base64(out, a.value(row)),
        }
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The same text as [`write_decimal`]; values that fit 64 bits, nearly all, take the short way.
fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    let Ok(short) = i64::try_from(unscaled) else {
        return write_decimal(out, i256::from_i128(unscaled), scale);
    };
    if short < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(short.unsigned_abs()).as_bytes();
    let scale = usize::from(scale);
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
        out.extend_from_slice(digits);
    }
}

fn datetime(out: &mut Vec<u8>, micros: i64, precision: u8, form: TimeForm) {
    temporal::write_datetime(out, micros, precision);
    if form == TimeForm::Iso {
        // The time of day has a fixed length; the year before it has not.
        let fraction = usize::from(precision.min(6));
        let time = 8 + if fraction > 0 { fraction + 1 } else { 0 };
        let at = out.len() - time - 1;
        out[at] = b'T';
    }
}

pub(crate) fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).expect("the room is the encoded length");
    out.truncate(start + written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_decimals_have_the_text_of_long_ones() {
        for (value, scale) in
            [(0, 0), (0, 2), (-1, 2), (5, 3), (-1250, 2), (i128::from(i64::MIN), 18), (12345, 5), (99, 38)]
        {
            let (mut short, mut long) = (Vec::new(), Vec::new());
            decimal(&mut short, value, scale);
            write_decimal(&mut long, i256::from_i128(value), scale);
            assert_eq!(String::from_utf8(short).unwrap(), String::from_utf8(long).unwrap());
        }
    }

    #[test]
    fn iso_times_have_a_t_at_every_precision() {
        for (precision, text) in
            [(0, "1969-12-31T23:59:59"), (3, "1969-12-31T23:59:59.999"), (6, "1969-12-31T23:59:59.999999")]
        {
            let mut out = b"x".to_vec();
            datetime(&mut out, -1, precision, TimeForm::Iso);
            assert_eq!(String::from_utf8(out).unwrap(), format!("x{text}"));
        }
    }
}
