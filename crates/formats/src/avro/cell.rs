//! Owns decoding of one value into one column: exactly that value, or a reason.

use arrow_buffer::i256;
use canalis_batch::{ColumnBuilder, ValueError, write_decimal};
use canalis_types::temporal;

use super::{
    bind::Op,
    column::{ColumnPlan, Form, power_of_ten},
    document,
    read::{DEPTH, Reader},
    schema::{Kind, Schema, Unit},
};
use crate::text::{expand_exponent, refuse};

/// PostgreSQL's infinity as microseconds; its negative twin lies in the range of impossible dates.
const INFINITY_MICROS: i64 = 9_223_372_036_825_200_000;

type Outcome = Result<(), ValueError>;

/// What a cell holds.
pub(super) enum Found {
    Value,
    Null,
    /// The placeholder of a value that the source's log did not have; nothing is appended.
    Unavailable,
}

/// Where values are read from, with room that is used again.
pub(super) struct Cells<'r, 'a> {
    pub schema: &'r Schema,
    pub reader: &'r mut Reader<'a>,
    pub room: &'r mut Vec<u8>,
    /// Text that stands for a value which was not logged; empty when there is none.
    pub unavailable: &'r [u8],
}

impl From<&'static str> for Wrong {
    fn from(why: &'static str) -> Self {
        Self(refuse(why))
    }
}

impl From<ValueError> for Wrong {
    fn from(why: ValueError) -> Self {
        Self(why)
    }
}

/// Why a value cannot be appended; the reason does not show the value.
pub(super) struct Wrong(pub ValueError);

impl Cells<'_, '_> {
    /// Reads a value, and appends it unless it is null or stands for one that is not known.
    ///
    /// # Errors
    /// When the bytes are no such value or it is not one of the column; then nothing is appended.
    pub(super) fn append(
        &mut self,
        op: &Op,
        column: &ColumnPlan,
        builder: &mut ColumnBuilder,
    ) -> Result<Found, Wrong> {
        let mut node = op.derived.node;
        if let Some((branches, null)) = &op.derived.union {
            let branch = self.reader.index(branches.len())?;
            if Some(branch) == *null {
                return Ok(Found::Null);
            }
            node = branches[branch];
        }
        let reader = &mut *self.reader;
        match &op.derived.form {
            Form::Boolean => boolean(column, builder, reader.boolean()?)?,
            Form::Whole { narrow: true } => whole(column, builder, i64::from(reader.int()?))?,
            Form::Whole { narrow: false } => whole(column, builder, reader.long()?)?,
            Form::Float => float(builder, f64::from(reader.float()?))?,
            Form::Double => float(builder, reader.double()?)?,
            Form::Text => {
                let text = reader.bytes()?;
                if !text.is_empty() && text == self.unavailable {
                    return Ok(Found::Unavailable);
                }
                string(column, builder, text)?;
            }
            Form::Symbol(symbols) => {
                let symbol = reader.index(symbols.len())?;
                string(column, builder, symbols[symbol].as_bytes())?;
            }
            Form::Bytes => {
                let raw = reader.bytes()?;
                if !raw.is_empty() && raw == self.unavailable {
                    return Ok(Found::Unavailable);
                }
                bytes(column, builder, raw)?;
            }
            Form::Fixed(size) => bytes(column, builder, reader.take(*size)?)?,
            Form::Decimal { scale, size } => {
                let raw = match size {
                    Some(size) => reader.take(*size)?,
                    None => reader.bytes()?,
                };
                decimal(column, builder, unscaled(raw)?, *scale, self.room)?;
            }
            Form::VariableDecimal => self.variable_decimal(node, column, builder)?,
            Form::Days => days(builder, reader.long()?)?,
            Form::Time(unit) => time(column, builder, micros(reader.long()?, *unit)?)?,
            Form::Timestamp(unit) => timestamp(column, builder, micros(reader.long()?, *unit)?)?,
            Form::Iso { zoned } => {
                let text = reader.bytes()?;
                if !text.is_empty() && text == self.unavailable {
                    return Ok(Found::Unavailable);
                }
                let text = text.strip_prefix(b"+").unwrap_or(text);
                let text = if *zoned { text } else { text.strip_suffix(b"Z").unwrap_or(text) };
                column.value.append(builder, text)?;
            }
            Form::Uuid => {
                self.room.clear();
                document::uuid(reader.take(16)?, self.room);
                column.value.append(builder, self.room)?;
            }
            // The binlog holds years less 1900, and 0 for the year 0; YEAR has no 1900.
            Form::Year => match reader.int()? {
                1900 => column.value.append(builder, b"0")?,
                year => column.value.append(builder, itoa::Buffer::new().format(year).as_bytes())?,
            },
            Form::Bits => bits(column, builder, reader.bytes()?)?,
            Form::Geometry => self.geometry(node, builder)?,
            Form::Document => {
                if matches!(self.schema.node(node).kind, Kind::Null) {
                    return Ok(Found::Null);
                }
                self.room.clear();
                document::write(self.schema, node, reader, self.room, DEPTH)?;
                column.value.append(builder, self.room)?;
            }
        }
        Ok(Found::Value)
    }

    /// `{scale, value}`.
    fn variable_decimal(
        &mut self,
        node: usize,
        column: &ColumnPlan,
        builder: &mut ColumnBuilder,
    ) -> Result<(), Wrong> {
        let (mut scale, mut value) = (None, None);
        let Kind::Record(fields) = &self.schema.node(node).kind else { return Err("no record".into()) };
        for field in fields {
            match (field.name.as_str(), &self.schema.node(field.node).kind) {
                ("scale", Kind::Int) => scale = Some(self.reader.int()?),
                ("value", Kind::Bytes) => value = Some(unscaled(self.reader.bytes()?)?),
                _ => self.reader.skip(self.schema, field.node, DEPTH)?,
            }
        }
        let (Some(scale), Some(value)) = (scale, value) else {
            return Err("a record is no decimal with `scale` and `value`".into());
        };
        self.room.clear();
        if let Ok(scale) = u8::try_from(scale) {
            write_decimal(self.room, value, scale);
            return Ok(column.value.append(builder, self.room)?);
        }
        if !(-1000..0).contains(&scale) {
            return Err("decimal has a scale beyond all columns".into());
        }
        write_decimal(self.room, value, 0);
        self.room.extend_from_slice(format!("e{}", -scale).as_bytes());
        let digits = expand_exponent(self.room)?;
        Ok(column.value.append(builder, &digits)?)
    }

    /// `{wkb, srid}`, with `x` and `y` for points, which WKB has too.
    fn geometry(&mut self, node: usize, builder: &mut ColumnBuilder) -> Result<(), Wrong> {
        let ColumnBuilder::Binary(out) = builder else { return Err(mismatch().into()) };
        let (mut srid, mut wkb) = (0_u32, None);
        let Kind::Record(fields) = &self.schema.node(node).kind else { return Err("no record".into()) };
        for field in fields {
            let mut inner = field.node;
            if let Kind::Union(branches) = &self.schema.node(field.node).kind {
                inner = branches[self.reader.index(branches.len())?];
            }
            match (field.name.as_str(), &self.schema.node(inner).kind) {
                ("wkb", Kind::Bytes) => wkb = Some(self.reader.bytes()?),
                ("srid", Kind::Int) => {
                    srid = u32::try_from(self.reader.int()?).map_err(|_| "`srid` is negative")?;
                }
                _ => self.reader.skip(self.schema, inner, DEPTH)?,
            }
        }
        let wkb = wkb.ok_or("a record is no geometry with `wkb`")?;
        self.room.clear();
        self.room.extend_from_slice(&srid.to_le_bytes());
        self.room.extend_from_slice(wkb);
        out.append_value(&*self.room);
        Ok(())
    }
}

fn mismatch() -> ValueError {
    refuse("value does not fit the column's type")
}

fn boolean(column: &ColumnPlan, builder: &mut ColumnBuilder, value: bool) -> Outcome {
    match builder {
        ColumnBuilder::Boolean(b) => b.append_value(value),
        ColumnBuilder::Utf8(_) => {
            return column.value.append(builder, if value { b"true" } else { b"false" });
        }
        ColumnBuilder::Float32(_)
        | ColumnBuilder::Float64(_)
        | ColumnBuilder::Date(_)
        | ColumnBuilder::Duration(_)
        | ColumnBuilder::Timestamp(_)
        | ColumnBuilder::Binary(_) => return Err(mismatch()),
        _ => return column.value.append(builder, if value { b"1" } else { b"0" }),
    }
    Ok(())
}

fn whole(column: &ColumnPlan, builder: &mut ColumnBuilder, value: i64) -> Outcome {
    match builder {
        ColumnBuilder::Int64(b) => b.append_value(value),
        ColumnBuilder::Int32(_) | ColumnBuilder::Int16(_) | ColumnBuilder::Int8(_) => {
            return builder.append_i64(value);
        }
        ColumnBuilder::UInt32(_) | ColumnBuilder::UInt8(_) => return builder.append_i64(value),
        // Only numbers that the float holds exactly.
        ColumnBuilder::Float64(_) if value.unsigned_abs() <= 1 << 53 => {
            return column.value.append(builder, itoa::Buffer::new().format(value).as_bytes());
        }
        ColumnBuilder::Float32(_) if value.unsigned_abs() <= 1 << 24 => {
            return column.value.append(builder, itoa::Buffer::new().format(value).as_bytes());
        }
        ColumnBuilder::UInt16(_) | ColumnBuilder::UInt64(_) | ColumnBuilder::Utf8(_) => {
            return column.value.append(builder, itoa::Buffer::new().format(value).as_bytes());
        }
        ColumnBuilder::Decimal128(..) | ColumnBuilder::Decimal256(..) => {
            return column.value.append(builder, itoa::Buffer::new().format(value).as_bytes());
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn float(builder: &mut ColumnBuilder, value: f64) -> Outcome {
    match builder {
        ColumnBuilder::Float64(b) => b.append_value(value),
        ColumnBuilder::Float32(b) => {
            #[allow(clippy::cast_possible_truncation)] // Compared right after.
            let short = value as f32;
            if f64::from(short).to_bits() != value.to_bits() && !value.is_nan() {
                return Err(refuse("a number has more digits than the column holds"));
            }
            b.append_value(short);
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn string(column: &ColumnPlan, builder: &mut ColumnBuilder, text: &[u8]) -> Outcome {
    match builder {
        ColumnBuilder::Binary(_) => bytes(column, builder, text),
        _ => column.value.append(builder, text),
    }
}

fn bytes(column: &ColumnPlan, builder: &mut ColumnBuilder, bytes: &[u8]) -> Outcome {
    match builder {
        ColumnBuilder::Binary(b) => {
            let (least, most) = column.size;
            if !(least..=most).contains(&bytes.len()) {
                return Err(refuse(format!("holds {least} to {most} bytes, has {}", bytes.len())));
            }
            b.append_value(bytes);
            Ok(())
        }
        ColumnBuilder::Utf8(_) => column.value.append(builder, bytes),
        _ => Err(mismatch()),
    }
}

/// A number in two's complement, big-endian, of any length.
pub(super) fn unscaled(bytes: &[u8]) -> Result<i256, &'static str> {
    let Some(first) = bytes.first() else { return Err("a decimal has no bytes") };
    let filler = if first & 0x80 == 0 { 0 } else { 0xff };
    let mut whole = [filler; 32];
    let kept = bytes.len().min(32);
    let (above, low) = bytes.split_at(bytes.len() - kept);
    whole[32 - kept..].copy_from_slice(low);
    if above.iter().any(|b| *b != filler) || (whole[0] ^ filler) & 0x80 != 0 {
        return Err("a decimal has more than 76 digits");
    }
    Ok(i256::from_be_bytes(whole))
}

fn decimal(
    column: &ColumnPlan,
    builder: &mut ColumnBuilder,
    value: i256,
    scale: u8,
    room: &mut Vec<u8>,
) -> Outcome {
    let target = match builder {
        ColumnBuilder::Decimal128(_, scale) | ColumnBuilder::Decimal256(_, scale) => *scale,
        ColumnBuilder::UInt64(_) => 0,
        _ => {
            room.clear();
            write_decimal(room, value, scale);
            return column.value.append(builder, room);
        }
    };
    let beyond = || refuse("decimal has more digits than the column");
    let value = match target.cmp(&scale) {
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Greater => value.checked_mul(power_of_ten(target - scale)).ok_or_else(beyond)?,
        std::cmp::Ordering::Less => {
            let by = power_of_ten(scale - target);
            let short = value.wrapping_div(by);
            if short.wrapping_mul(by) != value {
                return Err(refuse("decimal has more fraction digits than the column"));
            }
            short
        }
    };
    if value >= column.bound || value <= column.bound.wrapping_neg() {
        return Err(beyond());
    }
    match builder {
        ColumnBuilder::Decimal128(b, _) => b.append_value(value.to_i128().ok_or_else(beyond)?),
        ColumnBuilder::Decimal256(b, _) => b.append_value(value),
        _ => {
            let value = value.to_i128().and_then(|v| u64::try_from(v).ok());
            return builder.append_u64(value.ok_or_else(|| refuse("number is out of the column's range"))?);
        }
    }
    Ok(())
}

fn days(builder: &mut ColumnBuilder, days: i64) -> Outcome {
    let ColumnBuilder::Date(b) = builder else { return Err(mismatch()) };
    let days = i32::try_from(days).ok().filter(|d| !temporal::is_partial_date(*d));
    b.append_value(days.ok_or_else(|| refuse("date is out of the column's range"))?);
    Ok(())
}

fn micros(value: i64, unit: Unit) -> Result<i64, ValueError> {
    match unit {
        Unit::Micros => Ok(value),
        Unit::Millis => value.checked_mul(1000).ok_or_else(|| refuse("time is out of the column's range")),
        Unit::Nanos if value % 1000 == 0 => Ok(value / 1000),
        Unit::Nanos => Err(refuse("time is finer than a microsecond")),
    }
}

fn time(column: &ColumnPlan, builder: &mut ColumnBuilder, micros: i64) -> Outcome {
    let ColumnBuilder::Duration(b) = builder else { return Err(mismatch()) };
    check_unit(column, micros)?;
    b.append_value(micros);
    Ok(())
}

fn timestamp(column: &ColumnPlan, builder: &mut ColumnBuilder, micros: i64) -> Outcome {
    let ColumnBuilder::Timestamp(b) = builder else { return Err(mismatch()) };
    if micros == INFINITY_MICROS || temporal::is_partial_datetime(micros) {
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
    let ColumnBuilder::UInt64(b) = builder else { return Err(mismatch()) };
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let mut whole = [0; 8];
    whole[..low.len()].copy_from_slice(low);
    let value = u64::from_le_bytes(whole);
    if high.iter().any(|b| *b != 0) || (column.bits < 64 && value >> column.bits != 0) {
        return Err(refuse("bit field has more bits than the column"));
    }
    b.append_value(value);
    Ok(())
}
