//! Owns MySQL's binary JSON and its text: exactly what `SELECT` prints, numbers never through a double unless they
//! are doubles.

use std::fmt::Write;

use canalis_batch::write_decimal;
use canalis_types::temporal;

use super::{
    decimal::DecimalLayout,
    temporal::{unpack_datetime, unpack_time},
};
use crate::binlog::{
    cursor::{Cursor, DecodeError, Decoded},
    table_map::column_type,
};

/// The server allows 100 levels.
const MAX_DEPTH: usize = 110;

const SMALL_OBJECT: u8 = 0x00;
const LARGE_OBJECT: u8 = 0x01;
const SMALL_ARRAY: u8 = 0x02;
const LARGE_ARRAY: u8 = 0x03;
const LITERAL: u8 = 0x04;
const INT16: u8 = 0x05;
const UINT16: u8 = 0x06;
const INT32: u8 = 0x07;
const UINT32: u8 = 0x08;
const INT64: u8 = 0x09;
const UINT64: u8 = 0x0a;
const DOUBLE: u8 = 0x0b;
const STRING: u8 = 0x0c;
const OPAQUE: u8 = 0x0f;

/// Appends the text of a document.
///
/// # Errors
/// When the bytes break the format.
pub fn write_json(out: &mut String, document: &[u8]) -> Decoded<()> {
    // The server reads the empty value, which it makes for NULL in NOT NULL columns, as the JSON null.
    let Some((kind, value)) = document.split_first() else {
        out.push_str("null");
        return Ok(());
    };
    // Values may be shared by damaged offsets; the text of an honest document is at most 8 times as long.
    let limit = out.len() + document.len().saturating_mul(32) + 1024;
    Writer { out, limit }.value(*kind, value, 0)
}

fn bad(what: &'static str) -> DecodeError {
    DecodeError::malformed(what)
}

struct Writer<'o> {
    out: &'o mut String,
    limit: usize,
}

/// A container: its bytes, sizes of its offsets, number of members.
struct Container<'a> {
    bytes: &'a [u8],
    offset_len: usize,
    count: usize,
}

impl Writer<'_> {
    fn value(&mut self, kind: u8, bytes: &[u8], depth: usize) -> Decoded<()> {
        if self.out.len() > self.limit {
            return Err(bad("json document refers to itself"));
        }
        let mut cursor = Cursor::new(bytes);
        match kind {
            SMALL_OBJECT | LARGE_OBJECT | SMALL_ARRAY | LARGE_ARRAY => {
                if depth > MAX_DEPTH {
                    return Err(bad("json document is nested too deeply"));
                }
                self.container(kind, bytes, depth)?;
            }
            LITERAL => self.literal(cursor.u8()?)?,
            INT16 => self.number(cursor.i16()?),
            UINT16 => self.number(cursor.u16()?),
            INT32 => self.number(cursor.i32()?),
            UINT32 => self.number(cursor.u32()?),
            INT64 => self.number(cursor.i64()?),
            UINT64 => self.number(cursor.u64()?),
            DOUBLE => write_double(self.out, cursor.f64()?),
            STRING => {
                let len = variable_len(&mut cursor)?;
                self.string(cursor.take(len)?)?;
            }
            OPAQUE => self.opaque(&mut cursor)?,
            _ => return Err(bad("json value has an unknown type")),
        }
        Ok(())
    }

    fn literal(&mut self, literal: u8) -> Decoded<()> {
        self.out.push_str(match literal {
            0 => "null",
            1 => "true",
            2 => "false",
            _ => return Err(bad("json literal is not known")),
        });
        Ok(())
    }

    fn number(&mut self, number: impl itoa::Integer) {
        self.out.push_str(itoa::Buffer::new().format(number));
    }

    fn container(&mut self, kind: u8, bytes: &[u8], depth: usize) -> Decoded<()> {
        let offset_len = if matches!(kind, SMALL_OBJECT | SMALL_ARRAY) { 2 } else { 4 };
        let is_object = matches!(kind, SMALL_OBJECT | LARGE_OBJECT);
        let mut head = Cursor::new(bytes);
        let count = size(head.uint(offset_len)?)?;
        let len = size(head.uint(offset_len)?)?;
        let bytes = bytes.get(..len).ok_or_else(|| bad("json container ends too early"))?;
        let container = Container { bytes, offset_len, count };
        let keys_len = if is_object { container.count.saturating_mul(offset_len + 2) } else { 0 };
        let mut keys =
            Cursor::new(bytes.get(2 * offset_len..).ok_or_else(|| bad("json container is short"))?);
        let mut values = keys;
        values.skip(keys_len)?;
        self.out.push(if is_object { '{' } else { '[' });
        for index in 0..container.count {
            if index > 0 {
                self.out.push_str(", ");
            }
            if is_object {
                let offset = size(keys.uint(offset_len)?)?;
                let len = usize::from(keys.u16()?);
                let key = bytes.get(offset..).and_then(|rest| rest.get(..len));
                self.string(key.ok_or_else(|| bad("json key lies outside its object"))?)?;
                self.out.push_str(": ");
            }
            self.member(&container, &mut values, depth)?;
        }
        self.out.push(if is_object { '}' } else { ']' });
        Ok(())
    }

    /// One member's value: inline in its entry if it fits there, else at an offset.
    fn member(&mut self, container: &Container<'_>, entries: &mut Cursor<'_>, depth: usize) -> Decoded<()> {
        let kind = entries.u8()?;
        let entry = entries.take(container.offset_len)?;
        let inline = match kind {
            LITERAL | INT16 | UINT16 => true,
            INT32 | UINT32 => container.offset_len == 4,
            _ => false,
        };
        if inline {
            return self.value(kind, entry, depth + 1);
        }
        let offset = size(Cursor::new(entry).uint(container.offset_len)?)?;
        let value =
            container.bytes.get(offset..).ok_or_else(|| bad("json value lies outside its container"))?;
        self.value(kind, value, depth + 1)
    }

    fn string(&mut self, bytes: &[u8]) -> Decoded<()> {
        let text = std::str::from_utf8(bytes).map_err(|_| bad("json text is not UTF-8"))?;
        self.out.push('"');
        let mut plain = 0;
        for (index, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                0x08 => "\\b",
                0x0c => "\\f",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0..0x20 => "",
                _ => continue,
            };
            self.out.push_str(&text[plain..index]);
            plain = index + 1;
            self.out.push_str(escape);
            if escape.is_empty() {
                write!(self.out, "\\u{byte:04x}").expect("a string takes any text");
            }
        }
        self.out.push_str(&text[plain..]);
        self.out.push('"');
        Ok(())
    }

    /// A value of an SQL type that JSON does not have.
    fn opaque(&mut self, cursor: &mut Cursor<'_>) -> Decoded<()> {
        let kind = cursor.u8()?;
        let len = variable_len(cursor)?;
        let data = cursor.take(len)?;
        match kind {
            column_type::NEWDECIMAL => self.decimal(data),
            column_type::DATE | column_type::DATETIME | column_type::TIMESTAMP | column_type::TIME => {
                self.temporal(kind, data)
            }
            _ => {
                self.out.push('"');
                write!(self.out, "base64:type{kind}:").expect("a string takes any text");
                write_base64(self.out, data);
                self.out.push('"');
                Ok(())
            }
        }
    }

    fn decimal(&mut self, data: &[u8]) -> Decoded<()> {
        let mut cursor = Cursor::new(data);
        let (precision, scale) = (cursor.u8()?, cursor.u8()?);
        let value = DecimalLayout::new(precision, scale)?.read_i256(&mut cursor)?;
        let mut text = Vec::with_capacity(80);
        write_decimal(&mut text, value, scale);
        self.ascii(&text);
        Ok(())
    }

    fn temporal(&mut self, kind: u8, data: &[u8]) -> Decoded<()> {
        let packed = Cursor::new(data).i64()?;
        let magnitude = packed.unsigned_abs();
        let (fields, micro) = (magnitude >> 24, magnitude & 0xff_ffff);
        let mut text = Vec::with_capacity(32);
        if kind == column_type::TIME {
            temporal::write_duration(&mut text, unpack_time(fields, micro, packed < 0)?, 6);
        } else {
            temporal::write_datetime(&mut text, unpack_datetime(fields, micro)?, 6);
            if kind == column_type::DATE {
                text.truncate(10);
            }
        }
        self.out.push('"');
        self.ascii(&text);
        self.out.push('"');
        Ok(())
    }

    fn ascii(&mut self, text: &[u8]) {
        self.out.extend(text.iter().map(|byte| char::from(*byte)));
    }
}

fn size(number: u64) -> Decoded<usize> {
    usize::try_from(number).map_err(|_| bad("json size is too great"))
}

/// A length in groups of seven bits, the low ones first.
fn variable_len(cursor: &mut Cursor<'_>) -> Decoded<usize> {
    let mut len = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = cursor.u8()?;
        len |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return size(len);
        }
    }
    Err(bad("json length is too long"))
}

/// Appends a double as the server prints it in JSON: the fewest digits that read back the same; plain notation
/// from 1e-15 and for whole numbers up to 15 digits, with `.0` behind whole ones; else with an exponent.
fn write_double(out: &mut String, value: f64) {
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value.is_sign_negative() {
        out.push('-');
    }
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // Digits before the point in plain notation.
    let whole = exponent + 1;
    if whole > -15 && (whole <= 15 || count > whole) {
        if whole <= 0 {
            out.push_str("0.");
            out.extend((whole..0).map(|_| '0'));
            out.push_str(&digits);
        } else if count > whole {
            let (before, after) = digits.split_at(usize::try_from(whole).unwrap_or(0));
            write!(out, "{before}.{after}").expect("a string takes any text");
        } else {
            out.push_str(&digits);
            out.extend((count..whole).map(|_| '0'));
            out.push_str(".0");
        }
        return;
    }
    let (first, rest) = digits.split_at(1);
    out.push_str(first);
    if !rest.is_empty() {
        write!(out, ".{rest}").expect("a string takes any text");
    }
    write!(out, "e{exponent}").expect("a string takes any text");
}

/// Appends base64 with the server's line breaks after 76 characters, escaped as JSON needs.
fn write_base64(out: &mut String, data: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (index, chunk) in data.chunks(3).enumerate() {
        if index > 0 && index % 19 == 0 {
            out.push_str("\\n");
        }
        let mut wide = [0; 4];
        wide[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(wide);
        for place in 0..4 {
            let digit = bits >> (18 - 6 * place) & 63;
            let padding = place > chunk.len();
            out.push(if padding { '=' } else { char::from(DIGITS[usize::try_from(digit).unwrap_or(0)]) });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn my_16_doubles_print_as_the_server_does() {
        for (value, text) in [
            (1.0, "1.0"),
            (1e20, "1e20"),
            (1e15, "1e15"),
            (1e14, "100000000000000.0"),
            (123_456_789_012_345_678.0, "1.2345678901234568e17"),
            (0.1, "0.1"),
            (0.00001, "0.00001"),
            (1.5e-20, "1.5e-20"),
            (-1.5e300, "-1.5e300"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (123_456_789_012_345.6, "123456789012345.6"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
            (2.2250738585072014e-308, "2.2250738585072014e-308"),
            (-0.0, "-0.0"),
            (5e-324, "5e-324"),
            (0.0, "0.0"),
        ] {
            let mut out = String::new();
            write_double(&mut out, value);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn documents_have_the_servers_spacing() {
        // {"a": [1, null]} as a small object.
        let array = [2, 0, 10, 0, INT16, 1, 0, LITERAL, 0, 0];
        let mut document = vec![SMALL_OBJECT, 1, 0, 22, 0, 11, 0, 1, 0, SMALL_ARRAY, 12, 0, b'a'];
        document.extend_from_slice(&array);
        let mut out = String::new();
        write_json(&mut out, &document).unwrap();
        assert_eq!(out, r#"{"a": [1, null]}"#);
        out.clear();
        write_json(&mut out, &[]).unwrap();
        assert_eq!(out, "null");
    }

    #[test]
    fn base64_breaks_lines() {
        let mut out = String::new();
        write_base64(&mut out, &[b'a'; 58]);
        assert_eq!(out.matches("\\n").count(), 1);
        assert!(out.ends_with("YQ=="));
        assert_eq!(out.len(), 80 + 2);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(document in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..16) {
            let mut document = document;
            if let Some(first) = document.first_mut() {
                *first = kind;
            }
            let mut out = String::new();
            let _ = write_json(&mut out, &document);
        }
    }
}
