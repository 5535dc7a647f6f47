//! Owns values without a column type of their own as JSON texts: records, arrays, maps, unions of several types.

use canalis_batch::write_decimal;
use canalis_types::temporal;

use super::{
    cell::unscaled,
    read::{Outcome, Reader},
    schema::{Kind, Logical, Schema, Unit},
};
use crate::json::string::write_string;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends the value as JSON: decimals as numbers, dates and times as in ISO 8601, bytes as Base64.
///
/// # Errors
/// When the bytes are no such value, or JSON has no form for it.
pub(super) fn write(
    schema: &Schema,
    node: usize,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Outcome<()> {
    if depth == 0 {
        return Err("values are nested too deeply");
    }
    let entry = schema.node(node);
    match &entry.kind {
        Kind::Null => out.extend_from_slice(b"null"),
        Kind::Boolean => out.extend_from_slice(if reader.boolean()? { b"true" } else { b"false" }),
        Kind::Int => whole(i64::from(reader.int()?), entry.logical, out)?,
        Kind::Long => whole(reader.long()?, entry.logical, out)?,
        Kind::Float => {
            let value = reader.float()?;
            finite(value.is_finite())?;
            out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        }
        Kind::Double => {
            let value = reader.double()?;
            finite(value.is_finite())?;
            out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        }
        Kind::String => text(reader.bytes()?, out)?,
        Kind::Enum(symbols) => {
            let symbol = reader.index(symbols.len())?;
            write_string(out, symbols[symbol].as_bytes());
        }
        Kind::Bytes => binary(reader.bytes()?, entry.logical, out)?,
        Kind::Fixed(size) => binary(reader.take(*size)?, entry.logical, out)?,
        Kind::Union(branches) => {
            let branch = branches[reader.index(branches.len())?];
            write(schema, branch, reader, out, depth - 1)?;
        }
        Kind::Record(fields) => {
            out.push(b'{');
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(out, field.name.as_bytes());
                out.push(b':');
                write(schema, field.node, reader, out, depth - 1)?;
            }
            out.push(b'}');
        }
        Kind::Array(items) => {
            out.push(b'[');
            items_of(reader, out, |reader, out| write(schema, *items, reader, out, depth - 1))?;
            out.push(b']');
        }
        Kind::Map(values) => {
            out.push(b'{');
            items_of(reader, out, |reader, out| {
                text(reader.bytes()?, out)?;
                out.push(b':');
                write(schema, *values, reader, out, depth - 1)
            })?;
            out.push(b'}');
        }
    }
    Ok(())
}

fn items_of<'a>(
    reader: &mut Reader<'a>,
    out: &mut Vec<u8>,
    mut item: impl FnMut(&mut Reader<'a>, &mut Vec<u8>) -> Outcome<()>,
) -> Outcome<()> {
    let mut first = true;
    loop {
        let (count, _) = reader.block()?;
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            item(reader, out)?;
        }
    }
}

fn finite(is_finite: bool) -> Outcome<()> {
    if is_finite { Ok(()) } else { Err("JSON has no number for one that is not finite") }
}

fn text(bytes: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
    std::str::from_utf8(bytes).map_err(|_| "text is not UTF-8")?;
    write_string(out, bytes);
    Ok(())
}

fn binary(bytes: &[u8], logical: Logical, out: &mut Vec<u8>) -> Outcome<()> {
    match logical {
        Logical::Decimal { scale, .. } => write_decimal(out, unscaled(bytes)?, scale),
        Logical::Uuid => {
            out.push(b'"');
            uuid(bytes, out);
            out.push(b'"');
        }
        _ => {
            out.push(b'"');
            crate::cells::base64(out, bytes);
            out.push(b'"');
        }
    }
    Ok(())
}

/// Appends 16 bytes as the text of a UUID.
pub(super) fn uuid(bytes: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

fn whole(value: i64, logical: Logical, out: &mut Vec<u8>) -> Outcome<()> {
    const BEYOND: &str = "a date or time is out of range";
    let micros = |unit| match unit {
        Unit::Micros => Ok(value),
        Unit::Millis => value.checked_mul(1000).ok_or(BEYOND),
        Unit::Nanos if value % 1000 == 0 => Ok(value / 1000),
        Unit::Nanos => Err("time is finer than a microsecond"),
    };
    let digits = |unit| if unit == Unit::Millis { 3 } else { 6 };
    out.push(b'"');
    match logical {
        Logical::Date => {
            let days = i32::try_from(value).ok().filter(|d| !temporal::is_partial_date(*d)).ok_or(BEYOND)?;
            temporal::write_date(out, days);
        }
        Logical::Time(unit) => temporal::write_duration(out, micros(unit)?, digits(unit)),
        Logical::Timestamp(unit) | Logical::LocalTimestamp(unit) => {
            let micros = micros(unit)?;
            if temporal::is_partial_datetime(micros) {
                return Err(BEYOND);
            }
            temporal::write_datetime(out, micros, digits(unit));
            if matches!(logical, Logical::Timestamp(_)) {
                out.push(b'Z');
            }
        }
        Logical::Nothing | Logical::Decimal { .. } | Logical::Uuid => {
            out.pop();
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            return Ok(());
        }
    }
    out.push(b'"');
    Ok(())
}
