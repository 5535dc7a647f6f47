//! Owns writing primitive values in Avro's binary encoding, and cells of columns.

use arrow_array::Array;
use arrow_buffer::i256;
use canalis_types::temporal;

use super::{out::Out, schema::Unit};
use crate::cells::{Cells, TimeForm, Values};

/// Appends a number, zigzag and in groups of seven bits.
pub(super) fn write_long(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest > 0x7f {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// Appends bytes or a text with the length before it.
pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_long(out, bytes.len().try_into().unwrap_or(i64::MAX));
    out.extend_from_slice(bytes);
}

/// Appends a text behind the index of its branch in a union with null before it; `None` as null.
pub(super) fn write_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => {
            write_long(out, 1);
            write_bytes(out, text.as_bytes());
        }
        None => write_long(out, 0),
    }
}

/// The shortest two's complement, big-endian, with its length before it.
fn write_unscaled(out: &mut Vec<u8>, bytes: &[u8]) {
    let filler = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
    let filled = bytes.iter().take_while(|b| **b == filler).count().min(bytes.len() - 1);
    let keeps_sign = (bytes[filled] ^ filler) & 0x80 == 0;
    write_bytes(out, &bytes[if keeps_sign { filled } else { filled - 1 }..]);
}

/// Appends the value of a cell that is not NULL.
pub(super) fn write_cell(form: Out, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) {
    match (form, &cells.values) {
        (Out::Flag, Values::UInt64(a)) => out.push(u8::from(a.value(row) != 0)),
        (Out::Bits(bytes), Values::UInt64(a)) => {
            write_bytes(out, &a.value(row).to_le_bytes()[..usize::from(bytes.min(8))]);
        }
        (Out::Geometry, Values::Binary(a)) => {
            let bytes = a.value(row);
            let (srid, wkb) =
                bytes.split_first_chunk::<4>().map_or((0, bytes), |(s, w)| (u32::from_le_bytes(*s), w));
            write_bytes(out, wkb);
            write_long(out, i64::from(srid != 0));
            if srid != 0 {
                write_long(out, i64::from(srid));
            }
        }
        (Out::Iso, values) => {
            let start = out.len();
            values.write(row, TimeForm::Iso, out);
            let text = out.split_off(start);
            write_bytes(out, &text);
        }
        (_, Values::Boolean(a)) => out.push(u8::from(a.value(row))),
        (_, Values::Int8(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::Int16(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::Int32(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::Int64(a)) => write_long(out, a.value(row)),
        (_, Values::UInt8(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::UInt16(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::UInt32(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::UInt64(a)) => write_unscaled(out, &i128::from(a.value(row)).to_be_bytes()),
        (_, Values::Float32(a)) => out.extend_from_slice(&a.value(row).to_le_bytes()),
        (_, Values::Float64(a)) => out.extend_from_slice(&a.value(row).to_le_bytes()),
        (_, Values::Decimal128(a, _)) => write_unscaled(out, &a.value(row).to_be_bytes()),
        (_, Values::Decimal256(a, _)) => write_unscaled(out, &i256::to_be_bytes(a.value(row))),
        (_, Values::Date(a)) => write_long(out, i64::from(a.value(row))),
        (_, Values::Time(a, _)) => write_long(out, a.value(row)),
        (Out::Timestamp(Unit::Millis), Values::Timestamp(a, _) | Values::Instant(a, _)) => {
            write_long(out, a.value(row).div_euclid(1000));
        }
        (_, Values::Timestamp(a, _) | Values::Instant(a, _)) => write_long(out, a.value(row)),
        (_, Values::Text(a) | Values::Json(a)) => write_bytes(out, a.value(row).as_bytes()),
        (_, Values::Binary(a)) => write_bytes(out, a.value(row)),
    }
}

const NO_DATE: &str = "a date that is on no calendar has no place in Avro";

/// Why the value of a cell cannot be written.
pub(super) fn refusal(form: Out, cells: &Cells<'_>, row: usize) -> Option<&'static str> {
    match (form, &cells.values) {
        (_, Values::Date(a)) => temporal::is_partial_date(a.value(row)).then_some(NO_DATE),
        (_, Values::Timestamp(a, _) | Values::Instant(a, _)) => {
            let micros = a.value(row);
            if temporal::is_partial_datetime(micros) {
                return Some(NO_DATE);
            }
            (form == Out::Timestamp(Unit::Millis) && micros % 1000 != 0)
                .then_some("the value is finer than a millisecond, which the type of its column says")
        }
        (Out::TimeOfDay, Values::Time(a, _)) => {
            let is_of_day = (0..temporal::MICROS_PER_DAY).contains(&a.value(row));
            (!is_of_day).then_some("a negative time or one of 24 hours and more is no time of day")
        }
        (Out::Geometry, Values::Binary(a)) => {
            let srid = a.value(row).first_chunk::<4>().map(|srid| u32::from_le_bytes(*srid));
            match srid {
                None => Some("a geometry is shorter than its SRID"),
                Some(srid) if i32::try_from(srid).is_err() => Some("the SRID has more than 31 bits"),
                Some(_) => None,
            }
        }
        _ => None,
    }
}

/// Whether a column has NULL in places.
pub(super) fn has_nulls(array: &dyn Array) -> bool {
    array.null_count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (-2, &[0x03]),
            (2, &[0x04]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ] {
            let mut out = Vec::new();
            write_long(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn decimals_take_the_fewest_bytes_that_keep_the_sign() {
        for (value, bytes) in [
            (0_i128, &[0x00][..]),
            (127, &[0x7f]),
            (128, &[0x00, 0x80]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
            (-1, &[0xff]),
            (12345, &[0x30, 0x39]),
        ] {
            let mut out = Vec::new();
            write_unscaled(&mut out, &value.to_be_bytes());
            assert_eq!(&out[1..], bytes, "{value}");
            assert_eq!(usize::from(out[0]) / 2, bytes.len());
        }
    }
}
