//! Owns writing cells: [`Out`] is the form that values of a column get, chosen once per structure.

use arrow_buffer::i256;
use base64::{
    Engine,
    engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE},
};
use canalis_types::{Column, LogicalType, temporal};

use super::{
    BigintUnsignedMode, BinaryMode, DebeziumEncoderOptions, DecimalMode, TimeMode, UNAVAILABLE, ZeroDates,
    point::coordinates,
    types::{Unit, time_unit, timestamp_unit},
};
use crate::{
    cells::{Cells, TimeForm, Values},
    json::string::write_string,
    message::{write_java_f32, write_java_f64},
};

/// How values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    Boolean,
    /// A number or text as the value prints.
    Plain,
    Float,
    /// Unsigned 64 bits as signed ones.
    Wrapped,
    /// Base64 of the unscaled integer.
    Unscaled,
    /// Digits in quotes.
    DecimalText,
    /// A rounded number.
    DecimalDouble,
    Days,
    IsoDate,
    Time(Unit),
    IsoTime(u8),
    Timestamp(Unit),
    IsoTimestamp(u8),
    Instant(u8),
    /// One bit as true or false.
    Flag,
    /// So many bytes, little-endian.
    Bits(u8),
    Text,
    Document,
    Bytes(BinaryMode, Padding),
    Geometry,
    Point,
}

/// Bytes that short values are filled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Padding(pub u32);

impl Out {
    pub(super) fn of(column: &Column, options: &DebeziumEncoderOptions) -> Self {
        use LogicalType as L;
        let mode = options.time_mode;
        let is_iso = mode == TimeMode::IsoString;
        match &column.ty {
            L::Boolean => Self::Boolean,
            L::Int8 | L::Int16 | L::Int32 | L::Int64 | L::UInt8 | L::UInt16 | L::UInt32 | L::Year => {
                Self::Plain
            }
            L::UInt64 if options.bigint_unsigned == BigintUnsignedMode::Long => Self::Wrapped,
            L::UInt64 => Self::Unscaled,
            L::Float32 | L::Float64 => Self::Float,
            L::Decimal { .. } => match options.decimal_mode {
                DecimalMode::Precise => Self::Unscaled,
                DecimalMode::String => Self::DecimalText,
                DecimalMode::Double => Self::DecimalDouble,
            },
            L::Date if is_iso => Self::IsoDate,
            L::Date => Self::Days,
            L::Time { precision } if is_iso => Self::IsoTime(*precision),
            L::Time { precision } => Self::Time(time_unit(mode, *precision)),
            L::Timestamp { precision } if is_iso => Self::IsoTimestamp(*precision),
            L::Timestamp { precision } => Self::Timestamp(timestamp_unit(mode, *precision)),
            L::TimestampTz { precision } => Self::Instant(*precision),
            L::Bit { length: 1 } => Self::Flag,
            L::Bit { length } => Self::Bits(length.div_ceil(8)),
            L::Json => Self::Document,
            L::Char { .. } | L::Varchar { .. } | L::Text => Self::Text,
            L::Enum { .. } | L::Set { .. } | L::Uuid => Self::Text,
            L::Binary { length } => Self::Bytes(options.binary_mode, Padding(*length)),
            L::Varbinary { .. } | L::Bytes => Self::Bytes(options.binary_mode, Padding(0)),
            L::Geometry if is_point(column) => Self::Point,
            L::Geometry => Self::Geometry,
        }
    }

    /// Writes what stands for a value that was not logged; numbers have nothing that could.
    pub(super) fn write_unavailable(self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Text | Self::Document | Self::DecimalText => write_string(out, UNAVAILABLE.as_bytes()),
            Self::IsoDate | Self::IsoTime(_) | Self::IsoTimestamp(_) | Self::Instant(_) => {
                write_string(out, UNAVAILABLE.as_bytes());
            }
            Self::Bytes(mode, _) => coded(out, UNAVAILABLE.as_bytes(), mode),
            Self::Unscaled | Self::Bits(_) => coded(out, UNAVAILABLE.as_bytes(), BinaryMode::Bytes),
            _ => return false,
        }
        true
    }
}

fn is_point(column: &Column) -> bool {
    column.native.as_ref().is_some_and(|native| {
        native.dialect == "mysql"
            && native
                .sql
                .split(|c: char| !c.is_ascii_alphabetic())
                .next()
                .unwrap_or("")
                .eq_ignore_ascii_case("point")
    })
}

/// How a column writes cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellWriter {
    pub form: Out,
    pub nullable: bool,
    pub zero_dates: ZeroDates,
}

impl CellWriter {
    pub(super) fn write(self, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) {
        if cells.is_null(row) {
            return out.extend_from_slice(b"null");
        }
        match (self.form, &cells.values) {
            (Out::Float, Values::Float32(a)) => {
                let value = a.value(row);
                quoted_unless(out, value.is_finite(), |out| write_java_f32(out, value));
            }
            (Out::Float, Values::Float64(a)) => {
                let value = a.value(row);
                quoted_unless(out, value.is_finite(), |out| write_java_f64(out, value));
            }
            (Out::Wrapped, Values::UInt64(a)) => integer(out, a.value(row).cast_signed()),
            (Out::Unscaled, Values::UInt64(a)) => unscaled(out, i128::from(a.value(row))),
            (Out::Unscaled, Values::Decimal128(a, _)) => unscaled(out, a.value(row)),
            (Out::Unscaled, Values::Decimal256(a, _)) => unscaled_wide(out, a.value(row)),
            (Out::DecimalText, values) => {
                quoted_unless(out, false, |out| values.write(row, TimeForm::Iso, out))
            }
            (Out::DecimalDouble, values) => double(out, values, row),
            (Out::Flag, Values::UInt64(a)) => {
                out.extend_from_slice(if a.value(row) == 0 { b"false" } else { b"true" });
            }
            (Out::Bits(bytes), Values::UInt64(a)) => {
                coded(out, &a.value(row).to_le_bytes()[..usize::from(bytes.min(8))], BinaryMode::Bytes);
            }
            (Out::Text, Values::Text(a)) => write_string(out, a.value(row).as_bytes()),
            (Out::Document, Values::Json(a)) => document(out, a.value(row).as_bytes()),
            (Out::Bytes(mode, padding), Values::Binary(a)) => padded(out, a.value(row), mode, padding),
            (Out::Geometry, Values::Binary(a)) => geometry(out, a.value(row), None),
            (Out::Point, Values::Binary(a)) => {
                let bytes = a.value(row);
                geometry(out, bytes, coordinates(bytes.get(4..).unwrap_or_default()));
            }
            (_, Values::Date(a)) => self.date(a.value(row), out),
            (_, Values::Time(a, _)) => self.time(a.value(row), out),
            (_, Values::Timestamp(a, _) | Values::Instant(a, _)) => self.timestamp(a.value(row), out),
            (_, values) => values.write(row, TimeForm::Iso, out),
        }
    }

    /// What a date that is on no calendar is written as; those that must not be are refused before.
    fn impossible(self, out: &mut Vec<u8>) -> Option<i64> {
        if self.nullable {
            out.extend_from_slice(b"null");
            return None;
        }
        Some(0)
    }

    fn date(self, days: i32, out: &mut Vec<u8>) {
        let mut days = days;
        if temporal::is_partial_date(days) {
            if self.impossible(out).is_none() {
                return;
            }
            days = 0;
        }
        if self.form == Out::IsoDate {
            out.push(b'"');
            if days > LAST_DAY {
                out.push(b'+');
            }
            temporal::write_date(out, days);
            out.extend_from_slice(b"Z\"");
        } else {
            integer(out, days);
        }
    }

    fn time(self, micros: i64, out: &mut Vec<u8>) {
        match self.form {
            Out::IsoTime(precision) => {
                out.push(b'"');
                temporal::write_duration(out, micros, precision);
                out.extend_from_slice(b"Z\"");
            }
            Out::Time(unit) => units(out, micros, unit),
            _ => integer(out, micros),
        }
    }

    fn timestamp(self, micros: i64, out: &mut Vec<u8>) {
        let mut micros = micros;
        if temporal::is_partial_datetime(micros) {
            let Some(epoch) = self.impossible(out) else { return };
            micros = epoch;
        }
        match self.form {
            Out::Instant(precision) | Out::IsoTimestamp(precision) => iso(out, micros, precision),
            Out::Timestamp(unit) => units(out, micros, unit),
            _ => integer(out, micros),
        }
    }
}

/// 9999-12-31.
const LAST_DAY: i32 = 2_932_896;

fn iso(out: &mut Vec<u8>, micros: i64, precision: u8) {
    out.push(b'"');
    if micros >= (i64::from(LAST_DAY) + 1) * temporal::MICROS_PER_DAY {
        out.push(b'+');
    }
    let start = out.len();
    temporal::write_datetime(out, micros, precision);
    if let Some(blank) = memchr::memchr(b' ', &out[start..]) {
        out[start + blank] = b'T';
    }
    out.extend_from_slice(b"Z\"");
}

fn units(out: &mut Vec<u8>, micros: i64, unit: Unit) {
    match unit {
        Unit::Millis => integer(out, micros.div_euclid(1000)),
        Unit::Micros => integer(out, micros),
        Unit::Nanos => integer(out, i128::from(micros) * 1000),
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn quoted_unless(out: &mut Vec<u8>, bare: bool, write: impl FnOnce(&mut Vec<u8>)) {
    if bare {
        return write(out);
    }
    out.push(b'"');
    write(out);
    out.push(b'"');
}

fn double(out: &mut Vec<u8>, values: &Values<'_>, row: usize) {
    let mut digits = Vec::with_capacity(48);
    values.write(row, TimeForm::Iso, &mut digits);
    let value = std::str::from_utf8(&digits).ok().and_then(|t| t.parse().ok()).unwrap_or(f64::NAN);
    write_java_f64(out, value);
}

fn unscaled(out: &mut Vec<u8>, value: i128) {
    shortest(out, &value.to_be_bytes());
}

fn unscaled_wide(out: &mut Vec<u8>, value: i256) {
    shortest(out, &value.to_be_bytes());
}

/// The fewest bytes that keep value and sign, as Java's `BigInteger.toByteArray`.
fn shortest(out: &mut Vec<u8>, bytes: &[u8]) {
    let fill = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
    let mut from = 0;
    while from + 1 < bytes.len() && bytes[from] == fill && (bytes[from + 1] ^ fill) & 0x80 == 0 {
        from += 1;
    }
    coded(out, &bytes[from..], BinaryMode::Bytes);
}

fn coded(out: &mut Vec<u8>, bytes: &[u8], mode: BinaryMode) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    match mode {
        BinaryMode::Bytes | BinaryMode::Base64 => base64(out, bytes, &STANDARD),
        BinaryMode::Base64UrlSafe => base64(out, bytes, &URL_SAFE),
        BinaryMode::Hex => {
            for byte in bytes {
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.push(b'"');
}

fn base64(out: &mut Vec<u8>, bytes: &[u8], engine: &GeneralPurpose) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = engine.encode_slice(bytes, &mut out[start..]).expect("the room is the encoded length");
    out.truncate(start + written);
}

fn padded(out: &mut Vec<u8>, bytes: &[u8], mode: BinaryMode, padding: Padding) {
    let length = usize::try_from(padding.0).unwrap_or(0);
    if bytes.len() >= length {
        return coded(out, bytes, mode);
    }
    let mut whole = bytes.to_vec();
    whole.resize(length, 0);
    coded(out, &whole, mode);
}

/// SRID 0 is null.
fn geometry(out: &mut Vec<u8>, bytes: &[u8], point: Option<(f64, f64)>) {
    let (srid, wkb) = bytes.split_first_chunk::<4>().map_or((0, bytes), |(s, w)| (u32::from_le_bytes(*s), w));
    out.push(b'{');
    if let Some((x, y)) = point {
        out.extend_from_slice(b"\"x\":");
        quoted_unless(out, x.is_finite(), |out| write_java_f64(out, x));
        out.extend_from_slice(b",\"y\":");
        quoted_unless(out, y.is_finite(), |out| write_java_f64(out, y));
        out.push(b',');
    }
    out.extend_from_slice(b"\"wkb\":");
    coded(out, wkb, BinaryMode::Bytes);
    out.extend_from_slice(b",\"srid\":");
    if srid == 0 {
        out.extend_from_slice(b"null}");
    } else {
        integer(out, srid);
        out.push(b'}');
    }
}

/// A string that holds JSON, without the blanks between its parts that MySQL prints and its binlog has not.
fn document(out: &mut Vec<u8>, text: &[u8]) {
    if memchr::memchr3(b' ', b'\n', b'\t', text).is_none() {
        return write_string(out, text);
    }
    out.push(b'"');
    let (mut in_string, mut escaped) = (false, false);
    for &byte in text {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' if !in_string => continue,
            b'"' => {
                in_string ^= !escaped;
                out.extend_from_slice(b"\\\"");
            }
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(byte),
        }
        escaped = byte == b'\\' && in_string && !escaped;
    }
    out.push(b'"');
}
