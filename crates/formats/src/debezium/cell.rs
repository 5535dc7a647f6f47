//! Owns decoding of one JSON value into one column: exactly that value, or a reason.

use arrow_buffer::i256;
use canalis_batch::{ColumnBuilder, ValueError, write_decimal};
use canalis_types::temporal;

use super::{
    BinaryMode,
    column::{ColumnPlan, Size},
    scalar::{Scratch, decode_bytes, is_number, micros, plain, six_digits, unscaled, whole},
    types::{Form, Spelling},
    wrapper::members,
};
use crate::{
    json::scan::{Scanner, Value},
    text::{expand_exponent, refuse, whole_number},
};

/// PostgreSQL's infinity as microseconds; its negative twin lies in the range of impossible dates.
const INFINITY_MICROS: i64 = 9_223_372_036_825_200_000;
const INFINITE: &str = "infinity has no place in the column's type";

type Outcome = Result<(), ValueError>;

/// Appends a value.
///
/// # Errors
/// When it is not one of the column; then nothing is appended. The reason does not show the value.
pub(super) fn append(
    column: &ColumnPlan,
    builder: &mut ColumnBuilder,
    value: Value<'_>,
    scratch: &mut Scratch,
) -> Outcome {
    match (column.form, value) {
        (_, Value::Null) => column.value.append_null(builder),
        (_, Value::Text(text)) => {
            let Scratch { text: room, bytes } = scratch;
            append_text(column, builder, plain(text, room)?, bytes)
        }
        (_, Value::Number(number)) => append_number(column, builder, number, scratch),
        (Form::Document, Value::Boolean(value)) => {
            column.value.append(builder, if value { b"true" } else { b"false" })
        }
        (Form::Boolean | Form::Whole | Form::Bits, Value::Boolean(value)) => boolean(column, builder, value),
        (Form::Document, Value::Container(raw)) => column.value.append(builder, raw),
        (Form::Geometry, Value::Container(raw)) => geometry(builder, raw, scratch),
        (Form::Decimal(_) | Form::VariableDecimal, Value::Container(raw)) => {
            variable_decimal(column, builder, raw, scratch)
        }
        (_, Value::Boolean(_)) => Err(refuse("a boolean does not fit the column's type")),
        (_, Value::Container(_)) => Err(refuse("an object or array does not fit the column's type")),
    }
}

fn boolean(column: &ColumnPlan, builder: &mut ColumnBuilder, value: bool) -> Outcome {
    match builder {
        ColumnBuilder::Boolean(b) => b.append_value(value),
        _ => return column.value.append(builder, if value { b"1" } else { b"0" }),
    }
    Ok(())
}

fn append_number(
    column: &ColumnPlan,
    builder: &mut ColumnBuilder,
    number: &[u8],
    scratch: &mut Scratch,
) -> Outcome {
    let room = &mut scratch.bytes;
    match column.form {
        Form::Whole => integer(column, builder, whole(number, room)?),
        Form::Decimal(_) if matches!(builder, ColumnBuilder::UInt64(_)) => {
            integer(column, builder, whole(number, room)?)
        }
        Form::Float | Form::Document => column.value.append(builder, number),
        Form::Decimal(_) | Form::VariableDecimal => column.value.append(builder, &expand_exponent(number)?),
        Form::Days => days(builder, whole_number(whole(number, room)?)?),
        Form::Time(unit) => time(column, builder, micros(number, unit, room)?),
        Form::Timestamp(unit) => timestamp(column, builder, micros(number, unit, room)?),
        Form::Year => year(column, builder, whole(number, room)?),
        Form::Bits | Form::Boolean => column.value.append(builder, number),
        Form::Instant | Form::Text | Form::Bytes(_) => {
            Err(refuse("a number does not fit the column's type; it must be a string"))
        }
        Form::Geometry => Err(refuse("a number is no geometry")),
    }
}

fn append_text(column: &ColumnPlan, builder: &mut ColumnBuilder, text: &[u8], room: &mut Vec<u8>) -> Outcome {
    match column.form {
        Form::Text | Form::Document | Form::Boolean | Form::Float => column.value.append(builder, text),
        Form::Whole => integer(column, builder, whole(text, room)?),
        Form::Decimal(Spelling::Unscaled) => {
            decode_bytes(text, BinaryMode::Bytes, room)?;
            append_unscaled(column, builder, unscaled(room)?)
        }
        Form::Decimal(Spelling::Text) | Form::VariableDecimal if is_number(text) => {
            column.value.append(builder, &expand_exponent(text)?)
        }
        Form::Decimal(Spelling::Text) | Form::VariableDecimal => column.value.append(builder, text),
        Form::Year => year(column, builder, whole(text, room)?),
        Form::Days if is_plain(text) => days(builder, whole_number(text)?),
        Form::Days => column.value.append(builder, local(text)),
        Form::Time(unit) if is_plain(text) => time(column, builder, micros(text, unit, room)?),
        Form::Time(_) => column.value.append(builder, six_digits(local(text), room)?),
        Form::Timestamp(unit) if is_plain(text) => timestamp(column, builder, micros(text, unit, room)?),
        Form::Timestamp(_) => column.value.append(builder, six_digits(local(signless(text)?), room)?),
        Form::Instant => column.value.append(builder, six_digits(signless(text)?, room)?),
        Form::Bits if column.bits == 1 && matches!(text, b"true" | b"false") => {
            boolean(column, builder, text == b"true")
        }
        Form::Bits => {
            decode_bytes(text, BinaryMode::Bytes, room)?;
            bits(column, builder, room)
        }
        Form::Bytes(mode) => {
            decode_bytes(text, mode, room)?;
            bytes(column, builder, room)
        }
        Form::Geometry => Err(refuse("a text is no geometry")),
    }
}

/// Whether a text is digits and nothing else: a number that was written as a string.
fn is_plain(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Local times carry a `Z` that says nothing.
fn local(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"Z").unwrap_or(text)
}

/// Years beyond 9999 have a plus before them.
fn signless(text: &[u8]) -> Result<&[u8], ValueError> {
    if matches!(text, b"infinity" | b"-infinity") {
        return Err(refuse(INFINITE));
    }
    Ok(text.strip_prefix(b"+").unwrap_or(text))
}

fn integer(column: &ColumnPlan, builder: &mut ColumnBuilder, text: &[u8]) -> Outcome {
    if let ColumnBuilder::UInt64(b) = builder
        && text.first() == Some(&b'-')
    {
        b.append_value(whole_number(text)?.cast_unsigned());
        return Ok(());
    }
    column.value.append(builder, text)
}

fn year(column: &ColumnPlan, builder: &mut ColumnBuilder, text: &[u8]) -> Outcome {
    // The binlog holds years less 1900, and 0 for the year 0; YEAR has no 1900.
    column.value.append(builder, if text == b"1900" { b"0" } else { text })
}

fn days(builder: &mut ColumnBuilder, days: i64) -> Outcome {
    let ColumnBuilder::Date(b) = builder else { return Err(mismatch()) };
    let days = i32::try_from(days).ok().filter(|d| !temporal::is_partial_date(*d));
    b.append_value(days.ok_or_else(|| refuse("date is out of the column's range"))?);
    Ok(())
}

fn time(column: &ColumnPlan, builder: &mut ColumnBuilder, micros: i64) -> Outcome {
    let ColumnBuilder::Duration(b) = builder else { return Err(mismatch()) };
    check_unit(column, micros)?;
    b.append_value(micros);
    Ok(())
}

fn timestamp(column: &ColumnPlan, builder: &mut ColumnBuilder, micros: i64) -> Outcome {
    let ColumnBuilder::Timestamp(b) = builder else { return Err(mismatch()) };
    if micros == INFINITY_MICROS {
        return Err(refuse(INFINITE));
    }
    if temporal::is_partial_datetime(micros) {
        return Err(refuse("date-time is out of the column's range"));
    }
    check_unit(column, micros)?;
    b.append_value(micros);
    Ok(())
}

fn check_unit(column: &ColumnPlan, micros: i64) -> Outcome {
    if micros % column.unit != 0 {
        return Err(refuse("time has more fraction digits than the column"));
    }
    Ok(())
}

fn bits(column: &ColumnPlan, builder: &mut ColumnBuilder, bytes: &[u8]) -> Outcome {
    let too_long = || refuse("bit field has more bits than the column");
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let mut whole = [0; 8];
    whole[..low.len()].copy_from_slice(low);
    let value = u64::from_le_bytes(whole);
    if high.iter().any(|b| *b != 0) || (column.bits < 64 && value >> column.bits != 0) {
        return Err(too_long());
    }
    builder.append_u64(value)
}

fn bytes(column: &ColumnPlan, builder: &mut ColumnBuilder, bytes: &[u8]) -> Outcome {
    let ColumnBuilder::Binary(b) = builder else { return Err(mismatch()) };
    match column.size {
        Size::Exactly(n) if bytes.len() != n => {
            Err(refuse(format!("needs exactly {n} bytes, has {}", bytes.len())))
        }
        Size::AtMost(n) if bytes.len() > n => {
            Err(refuse(format!("holds at most {n} bytes, has {}", bytes.len())))
        }
        _ => {
            b.append_value(bytes);
            Ok(())
        }
    }
}

fn append_unscaled(column: &ColumnPlan, builder: &mut ColumnBuilder, value: i256) -> Outcome {
    let beyond = || refuse("decimal has more digits than the column");
    if value >= column.bound || value <= column.bound.wrapping_neg() {
        return Err(beyond());
    }
    match builder {
        ColumnBuilder::Decimal128(b, _) => b.append_value(value.to_i128().ok_or_else(beyond)?),
        ColumnBuilder::Decimal256(b, _) => b.append_value(value),
        ColumnBuilder::UInt64(b) => {
            let value = value.to_i128().and_then(|v| u64::try_from(v).ok());
            b.append_value(value.ok_or_else(|| refuse("number is out of the column's range"))?);
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn mismatch() -> ValueError {
    refuse("value does not fit the column's type")
}

/// `{"scale":2,"value":"…"}`.
fn variable_decimal(
    column: &ColumnPlan,
    builder: &mut ColumnBuilder,
    raw: &[u8],
    scratch: &mut Scratch,
) -> Outcome {
    let (mut scale, mut value) = (None, None);
    let mut scanner = Scanner::new(raw);
    if scanner.take(b'{') {
        members(&mut scanner, |name, scanner| {
            match (name.raw, scanner.value()?) {
                (b"scale", Value::Number(number)) => scale = whole_number(number).ok(),
                (b"value", Value::Text(text)) => value = Some(text),
                _ => {}
            }
            Ok(())
        })
        .map_err(refuse)?;
    }
    let (Some(scale), Some(value)) = (scale, value) else {
        return Err(refuse("an object is no decimal with `scale` and `value`"));
    };
    let scale = i16::try_from(scale).ok().filter(|s| (-1000..=255).contains(s));
    let scale = scale.ok_or_else(|| refuse("decimal has a scale beyond all columns"))?;
    let Scratch { text, bytes } = scratch;
    decode_bytes(plain(value, text)?, BinaryMode::Bytes, bytes)?;
    let value = unscaled(bytes)?;
    text.clear();
    // Zeros at the end of the fraction are kept: the scale is part of the value.
    if let Ok(scale) = u8::try_from(scale) {
        write_decimal(text, value, scale);
        return column.value.append(builder, text);
    }
    write_decimal(text, value, 0);
    text.extend_from_slice(format!("e{}", -scale).as_bytes());
    let digits = expand_exponent(text)?;
    column.value.append(builder, &digits)
}

/// `{"wkb":"…","srid":null}`, with `x` and `y` for points, which WKB has too.
fn geometry(builder: &mut ColumnBuilder, raw: &[u8], scratch: &mut Scratch) -> Outcome {
    let ColumnBuilder::Binary(out) = builder else { return Err(mismatch()) };
    let (mut srid, mut wkb) = (Value::Null, None);
    let mut scanner = Scanner::new(raw);
    if scanner.take(b'{') {
        members(&mut scanner, |name, scanner| {
            match (name.raw, scanner.value()?) {
                (b"srid", value) => srid = value,
                (b"wkb", Value::Text(text)) => wkb = Some(text),
                _ => {}
            }
            Ok(())
        })
        .map_err(refuse)?;
    }
    let Some(wkb) = wkb else { return Err(refuse("an object is no geometry with `wkb`")) };
    let srid = match srid {
        Value::Null => Some(0),
        Value::Number(number) => whole_number(number).ok().and_then(|n| u32::try_from(n).ok()),
        _ => None,
    };
    let srid = srid.ok_or_else(|| refuse("`srid` is no number of 32 bits"))?;
    let Scratch { text, bytes } = scratch;
    decode_bytes(plain(wkb, text)?, BinaryMode::Bytes, bytes)?;
    bytes.splice(0..0, srid.to_le_bytes());
    out.append_value(bytes);
    Ok(())
}
