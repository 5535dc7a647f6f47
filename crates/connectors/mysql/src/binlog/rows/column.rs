//! Owns the decoding of one column: which form its bytes have ([`ColumnDecoder::new`]) and reading one value.

use std::fmt::Write;

use canalis_batch::ColumnBuilder;
use canalis_types::{Code, Column, LogicalType, Result};

use super::{
    address::{write_inet4, write_inet6, write_uuid},
    decimal::DecimalLayout,
    json::write_json,
    temporal,
};
use crate::{
    binlog::{
        compressed,
        cursor::{Cursor, DecodeError, Decoded},
        table_map::{WireType, column_type},
    },
    charset::Charset,
};

/// Buffers that values are put together in, kept from row to row.
#[derive(Debug, Default)]
pub struct Scratch {
    text: String,
    bytes: Vec<u8>,
}

/// How the bytes of a column are read; what they become follows from the builder.
#[derive(Debug)]
enum Form {
    Int8,
    Int16,
    Int24,
    Int32,
    Int64,
    Float,
    Double,
    Decimal(DecimalLayout),
    Year,
    Date,
    DateTime(u8),
    Timestamp(u8),
    Time(u8),
    OldDateTime(u8),
    OldTimestamp(u8),
    OldTime(u8),
    Bit {
        bytes: usize,
    },
    Enum {
        bytes: usize,
        labels: Vec<String>,
    },
    Set {
        bytes: usize,
        labels: Vec<String>,
    },
    /// UTF-8 behind a length of so many bytes.
    Utf8(u8),
    Text(u8, Charset),
    CompressedText(u8, Charset),
    Json(u8),
    Uuid,
    Inet4,
    Inet6,
    Bytes(u8),
    CompressedBytes(u8),
    /// Bytes without their trailing zeros, of a column that has exactly so many.
    Padded(u8, usize),
}

/// Decodes values of one column.
#[derive(Debug)]
pub struct ColumnDecoder {
    form: Form,
}

/// Fraction digits of a temporal type.
fn digits(ty: &LogicalType) -> u8 {
    match ty {
        LogicalType::Time { precision }
        | LogicalType::Timestamp { precision }
        | LogicalType::TimestampTz { precision } => *precision,
        _ => 0,
    }
}

/// Size of the length before a value of at most `max` bytes.
fn prefix(max: u16) -> u8 {
    if max > 255 { 2 } else { 1 }
}

impl ColumnDecoder {
    /// A decoder for values of `column` that the log holds as `wire`; `None` when the two do not go together.
    ///
    /// # Errors
    /// Those of `charsets`.
    pub fn new(
        column: &Column,
        wire: WireType,
        charsets: &mut dyn FnMut(&str) -> Result<Charset>,
    ) -> Result<Option<Self>> {
        use LogicalType as L;
        use column_type as t;
        let ty = &column.ty;
        let meta = u8::try_from(wire.meta).unwrap_or(u8::MAX);
        let form = match (wire.number, ty) {
            (t::TINY, L::Int8 | L::UInt8 | L::Boolean) => Form::Int8,
            (t::SHORT, L::Int16 | L::UInt16) => Form::Int16,
            (t::INT24, L::Int32 | L::UInt32) => Form::Int24,
            (t::LONG, L::Int32 | L::UInt32) => Form::Int32,
            (t::LONGLONG, L::Int64 | L::UInt64) => Form::Int64,
            (t::FLOAT, L::Float32) => Form::Float,
            (t::DOUBLE, L::Float64) => Form::Double,
            (t::NEWDECIMAL, L::Decimal { precision, scale }) => {
                let [wire_precision, wire_scale] = wire.meta.to_be_bytes();
                if wire_precision > *precision || wire_scale != *scale {
                    return Ok(None);
                }
                match DecimalLayout::new(wire_precision, wire_scale) {
                    Ok(layout) => Form::Decimal(layout),
                    Err(_) => return Ok(None),
                }
            }
            (t::YEAR, L::Year) => Form::Year,
            (t::DATE | t::NEWDATE, L::Date) => Form::Date,
            (t::DATETIME2, L::Timestamp { precision }) if *precision == meta => Form::DateTime(meta),
            (t::TIMESTAMP2, L::TimestampTz { precision }) if *precision == meta => Form::Timestamp(meta),
            (t::TIME2, L::Time { precision }) if *precision == meta => Form::Time(meta),
            (t::DATETIME, L::Timestamp { .. }) => Form::OldDateTime(digits(ty)),
            (t::TIMESTAMP, L::TimestampTz { .. }) => Form::OldTimestamp(digits(ty)),
            (t::TIME, L::Time { .. }) => Form::OldTime(digits(ty)),
            (t::BIT, L::Bit { .. }) => Form::Bit { bytes: usize::from(wire.meta).div_ceil(8) },
            (t::BIT, L::Boolean) if wire.meta == 1 => Form::Bit { bytes: 1 },
            (t::ENUM, L::Enum { labels }) => {
                Form::Enum { bytes: usize::from(wire.meta), labels: labels.clone() }
            }
            (t::SET, L::Set { labels }) => {
                Form::Set { bytes: usize::from(wire.meta), labels: labels.clone() }
            }
            (t::JSON, L::Json) => Form::Json(meta),
            (t::STRING, _) if ty.is_text() => match fixed_type(column) {
                Some("uuid") if wire.meta == 16 => Form::Uuid,
                Some("inet6") if wire.meta == 16 => Form::Inet6,
                Some("inet4") if wire.meta == 4 => Form::Inet4,
                _ => text(prefix(wire.meta), column, charsets)?,
            },
            (t::STRING, L::Binary { length }) => {
                Form::Padded(prefix(wire.meta), usize::try_from(*length).unwrap_or(usize::MAX))
            }
            (t::VARCHAR | t::VAR_STRING, _) if ty.is_text() => text(prefix(wire.meta), column, charsets)?,
            (t::VARCHAR | t::VAR_STRING, _) if ty.is_binary() => Form::Bytes(prefix(wire.meta)),
            (t::VARCHAR_COMPRESSED, _) if ty.is_text() => {
                Form::CompressedText(prefix(wire.meta), charset(column, charsets)?)
            }
            (t::VARCHAR_COMPRESSED, _) if ty.is_binary() => Form::CompressedBytes(prefix(wire.meta)),
            (t::BLOB | t::TINY_BLOB | t::MEDIUM_BLOB | t::LONG_BLOB, _) if ty.is_text() => {
                text(meta, column, charsets)?
            }
            (t::BLOB | t::TINY_BLOB | t::MEDIUM_BLOB | t::LONG_BLOB | t::GEOMETRY | t::VECTOR, _)
                if ty.is_binary() =>
            {
                Form::Bytes(meta)
            }
            (t::BLOB_COMPRESSED, _) if ty.is_text() => Form::CompressedText(meta, charset(column, charsets)?),
            (t::BLOB_COMPRESSED, _) if ty.is_binary() => Form::CompressedBytes(meta),
            _ => return Ok(None),
        };
        Ok(Some(Self { form }))
    }

    /// Reads one value and appends it.
    ///
    /// # Errors
    /// When the bytes break the format or are not text of the column's character set.
    #[inline]
    pub fn decode(
        &self,
        cursor: &mut Cursor<'_>,
        out: &mut ColumnBuilder,
        scratch: &mut Scratch,
    ) -> Decoded<()> {
        use ColumnBuilder as B;
        match (&self.form, out) {
            (Form::Int32, B::Int32(b)) => b.append_value(cursor.i32()?),
            (Form::Int64, B::Int64(b)) => b.append_value(cursor.i64()?),
            (Form::Int64, B::UInt64(b)) => b.append_value(cursor.u64()?),
            (Form::Utf8(prefix), B::Utf8(b)) => {
                let bytes = cursor.prefixed(*prefix)?;
                b.append_value(std::str::from_utf8(bytes).map_err(|_| not_text())?);
            }
            (Form::Int8, B::Int8(b)) => b.append_value(cursor.u8()?.cast_signed()),
            (Form::Int8, B::UInt8(b)) => b.append_value(cursor.u8()?),
            (Form::Int8, B::Boolean(b)) => b.append_value(cursor.u8()? != 0),
            (Form::Int16, B::Int16(b)) => b.append_value(cursor.i16()?),
            (Form::Int16, B::UInt16(b)) => b.append_value(cursor.u16()?),
            (Form::Int24, B::Int32(b)) => b.append_value((cursor.u24()? << 8).cast_signed() >> 8),
            (Form::Int24, B::UInt32(b)) => b.append_value(cursor.u24()?),
            (Form::Int32, B::UInt32(b)) => b.append_value(cursor.u32()?),
            (Form::Float, B::Float32(b)) => b.append_value(cursor.f32()?),
            (Form::Double, B::Float64(b)) => b.append_value(cursor.f64()?),
            (Form::Decimal(layout), B::Decimal128(b, _)) => b.append_value(layout.read_i128(cursor)?),
            (Form::Decimal(layout), B::Decimal256(b, _)) => b.append_value(layout.read_i256(cursor)?),
            (Form::Year, B::UInt16(b)) => {
                let year = u16::from(cursor.u8()?);
                b.append_value(if year == 0 { 0 } else { 1900 + year });
            }
            (Form::Date, B::Date(b)) => b.append_value(temporal::read_date(cursor)?),
            (Form::DateTime(digits), B::Timestamp(b)) => {
                b.append_value(temporal::read_datetime2(cursor, *digits)?)
            }
            (Form::Timestamp(digits), B::Timestamp(b)) => {
                b.append_value(temporal::read_timestamp2(cursor, *digits)?);
            }
            (Form::Time(digits), B::Duration(b)) => b.append_value(temporal::read_time2(cursor, *digits)?),
            (Form::OldDateTime(digits), B::Timestamp(b)) => {
                b.append_value(temporal::read_old_datetime(cursor, *digits)?);
            }
            (Form::OldTimestamp(digits), B::Timestamp(b)) => {
                b.append_value(temporal::read_old_timestamp(cursor, *digits)?);
            }
            (Form::OldTime(digits), B::Duration(b)) => {
                b.append_value(temporal::read_old_time(cursor, *digits)?)
            }
            (Form::Bit { bytes }, B::UInt64(b)) => b.append_value(cursor.uint_be(*bytes)?),
            (Form::Bit { bytes }, B::Boolean(b)) => b.append_value(cursor.uint_be(*bytes)? != 0),
            (Form::Text(prefix, charset), B::Utf8(b)) => {
                let bytes = cursor.prefixed(*prefix)?;
                if let Some(text) = charset.borrow(bytes) {
                    b.append_value(text);
                } else {
                    scratch.text.clear();
                    charset.append(bytes, &mut scratch.text).map_err(|_| not_text())?;
                    b.append_value(&scratch.text);
                }
            }
            (form, B::Utf8(b)) => {
                scratch.text.clear();
                form.read_text(cursor, scratch)?;
                b.append_value(&scratch.text);
            }
            (Form::Bytes(prefix), B::Binary(b)) => b.append_value(cursor.prefixed(*prefix)?),
            (Form::Padded(prefix, len), B::Binary(b)) => {
                let bytes = cursor.prefixed(*prefix)?;
                if bytes.len() == *len {
                    b.append_value(bytes);
                } else {
                    scratch.bytes.clear();
                    scratch.bytes.extend_from_slice(bytes);
                    scratch.bytes.resize((*len).max(bytes.len()), 0);
                    b.append_value(&scratch.bytes);
                }
            }
            (Form::CompressedBytes(prefix), B::Binary(b)) => {
                scratch.bytes.clear();
                compressed::column_value(cursor.prefixed(*prefix)?, &mut scratch.bytes)?;
                b.append_value(&scratch.bytes);
            }
            _ => return Err(DecodeError::new(Code::Internal, "column builder does not fit its decoder")),
        }
        Ok(())
    }
}

impl Form {
    /// Reads a value that becomes text by way of the scratch text, which is empty.
    fn read_text(&self, cursor: &mut Cursor<'_>, scratch: &mut Scratch) -> Decoded<()> {
        let text = &mut scratch.text;
        match self {
            Self::CompressedText(prefix, charset) => {
                scratch.bytes.clear();
                compressed::column_value(cursor.prefixed(*prefix)?, &mut scratch.bytes)?;
                charset.append(&scratch.bytes, text).map_err(|_| not_text())?;
            }
            Self::Json(prefix) => write_json(text, cursor.prefixed(*prefix)?)?,
            Self::Enum { bytes, labels } => match cursor.uint(*bytes)? {
                // The error value of ENUM is the empty text.
                0 => {}
                index => {
                    let label = usize::try_from(index - 1).ok().and_then(|index| labels.get(index));
                    text.push_str(label.ok_or_else(|| DecodeError::malformed("enum value has no label"))?);
                }
            },
            Self::Set { bytes, labels } => {
                let mut bits = cursor.uint(*bytes)?;
                for label in labels {
                    if bits & 1 != 0 {
                        if !text.is_empty() {
                            text.push(',');
                        }
                        text.push_str(label);
                    }
                    bits >>= 1;
                }
                if bits != 0 {
                    return Err(DecodeError::malformed("set value has a member without label"));
                }
            }
            Self::Uuid => write_uuid(text, unpadded(cursor)?),
            Self::Inet6 => write_inet6(text, unpadded(cursor)?),
            Self::Inet4 => write_inet4(text, unpadded(cursor)?),
            Self::Bit { bytes } => {
                write!(text, "{}", cursor.uint_be(*bytes)?).expect("a string takes any text")
            }
            _ => return Err(DecodeError::new(Code::Internal, "column builder does not fit its decoder")),
        }
        Ok(())
    }
}

#[cold]
fn not_text() -> DecodeError {
    DecodeError::malformed("text holds bytes that its character set does not have")
}

/// Bytes behind one length byte, with the trailing zeros that the log leaves out.
fn unpadded<const N: usize>(cursor: &mut Cursor<'_>) -> Decoded<[u8; N]> {
    let bytes = cursor.prefixed(1)?;
    let mut all = [0; N];
    let Some(to) = all.get_mut(..bytes.len()) else {
        return Err(DecodeError::malformed("fixed value is too long"));
    };
    to.copy_from_slice(bytes);
    Ok(all)
}

/// MariaDB's types that the log holds as fixed bytes.
fn fixed_type(column: &Column) -> Option<&'static str> {
    let sql = column.native.as_ref()?.sql.to_ascii_lowercase();
    ["uuid", "inet6", "inet4"].into_iter().find(|name| sql.trim() == *name)
}

/// Text without a declared character set (JSON, UUID, …) is UTF-8.
fn charset(column: &Column, charsets: &mut dyn FnMut(&str) -> Result<Charset>) -> Result<Charset> {
    match column.native.as_ref().and_then(|native| native.charset.as_deref()) {
        Some(name) => charsets(name),
        None => Ok(Charset::UTF8),
    }
}

fn text(prefix: u8, column: &Column, charsets: &mut dyn FnMut(&str) -> Result<Charset>) -> Result<Form> {
    let charset = charset(column, charsets)?;
    Ok(if charset.is_utf8() { Form::Utf8(prefix) } else { Form::Text(prefix, charset) })
}
