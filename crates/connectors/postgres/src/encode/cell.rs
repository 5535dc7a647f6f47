//! Owns the text of one cell.

use std::borrow::Cow;

use canalis_batch::write_decimal;
use canalis_types::temporal::{
    DateFields, DateTimeFields, MICROS_PER_DAY, is_partial_date, is_partial_datetime, write_date,
    write_datetime, write_duration,
};
use memchr::memmem;

use super::{Column, Refusal, Style, TextColumn, Values, wide};
use crate::{
    options::{InvalidDatePolicy, NulPolicy},
    types::{Form, TextRules},
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Flag of a type word that says an SRID follows (EWKB).
const EWKB_SRID: u32 = 0x2000_0000;

impl Column<'_> {
    /// Names the column in a reason.
    pub(super) fn refuse(&self, reason: &str) -> Refusal {
        Refusal { reason: format!("column `{}`: {reason}", self.target.name) }
    }

    /// Appends the cell of `row`. After an error `out` holds part of it.
    pub(super) fn cell(&self, row: usize, style: Style, out: &mut Vec<u8>) -> Result<(), String> {
        if self.nulls.is_some_and(|n| n.is_null(row)) {
            return self.null("is NULL and the target column is NOT NULL", style, out);
        }
        if self.impossible_date(row) {
            return match self.dates {
                InvalidDatePolicy::Error => {
                    Err("no calendar has this date (see the option `invalid-date.policy`)".to_owned())
                }
                InvalidDatePolicy::Null => {
                    self.null("holds a date that no calendar has, and NULL is not allowed", style, out)
                }
                InvalidDatePolicy::Epoch => {
                    quote(style, out);
                    self.epoch(out);
                    quote(style, out);
                    Ok(())
                }
            };
        }
        quote(style, out);
        self.value(row, style, out)?;
        quote(style, out);
        Ok(())
    }

    fn null(&self, reason: &str, style: Style, out: &mut Vec<u8>) -> Result<(), String> {
        if self.target.not_null {
            return Err(reason.to_owned());
        }
        out.extend_from_slice(match style {
            Style::Copy => b"\\N",
            Style::Literal => b"NULL",
        });
        Ok(())
    }

    fn impossible_date(&self, row: usize) -> bool {
        if self.target.any_date {
            return false;
        }
        match &self.values {
            Values::Date(a) => is_partial_date(a.value(row)),
            Values::Timestamp(a) => is_partial_datetime(a.value(row)),
            _ => false,
        }
    }

    fn epoch(&self, out: &mut Vec<u8>) {
        match self.target.form {
            Form::Timestamp(precision) => write_datetime(out, 0, precision),
            Form::Instant(precision) => {
                write_datetime(out, 0, precision);
                out.extend_from_slice(b"+00");
            }
            _ => write_date(out, 0),
        }
    }

    fn value(&self, row: usize, style: Style, out: &mut Vec<u8>) -> Result<(), String> {
        match &self.values {
            Values::Bool(a) => out.extend_from_slice(if a.value(row) { b"true" } else { b"false" }),
            Values::I8(a) => integer(out, a.value(row)),
            Values::I16(a) => integer(out, a.value(row)),
            Values::I32(a) => integer(out, a.value(row)),
            Values::I64(a) => integer(out, a.value(row)),
            Values::U8(a) => integer(out, a.value(row)),
            Values::U16(a) => integer(out, a.value(row)),
            Values::U32(a) => integer(out, a.value(row)),
            Values::U64(a) => match self.target.form {
                Form::Bits(length) => bits(out, a.value(row), length),
                _ => integer(out, a.value(row)),
            },
            Values::F32(a) => float(out, a.value(row)),
            Values::F64(a) => float(out, a.value(row)),
            Values::D128(a) => write_decimal(out, wide(a.value(row)), self.scale()),
            Values::D256(a) => write_decimal(out, a.value(row), self.scale()),
            Values::Date(a) => date(out, a.value(row)),
            Values::Duration(a) => return self.duration(a.value(row), out),
            Values::Timestamp(a) => self.timestamp(a.value(row), out),
            Values::Text(a) => return self.text(a, row, style, out),
            Values::Bytes(a) => match self.target.form {
                Form::Geometry => return geometry(a.value(row), style, out),
                _ => bytes(a.value(row), style, out),
            },
        }
        Ok(())
    }

    fn scale(&self) -> u8 {
        match self.target.form {
            Form::Decimal(scale) => scale,
            _ => 0,
        }
    }

    fn duration(&self, micros: i64, out: &mut Vec<u8>) -> Result<(), String> {
        match self.target.form {
            Form::TimeOfDay(precision) if (0..MICROS_PER_DAY).contains(&micros) => {
                write_duration(out, micros, precision);
            }
            Form::TimeOfDay(_) => return Err("the duration is no time of a day".to_owned()),
            Form::Interval(precision) => write_duration(out, micros, precision),
            _ => write_duration(out, micros, 6),
        }
        Ok(())
    }

    fn timestamp(&self, micros: i64, out: &mut Vec<u8>) {
        let (precision, zone): (u8, &[u8]) = match self.target.form {
            Form::Instant(precision) => (precision, b"+00"),
            Form::Timestamp(precision) => (precision, b""),
            _ => (6, b""),
        };
        let fields = DateTimeFields::decode(micros);
        if fields.date.year > 0 || is_partial_datetime(micros) {
            write_datetime(out, micros, precision);
            out.extend_from_slice(zone);
        } else {
            let date = DateFields { year: 1 - fields.date.year, ..fields.date };
            // PostgreSQL's input has no negative years but an era; 4 BC is year −3. The year is replaced in the
            // text, because the mirrored year need not have the same leap day.
            let mut text = Vec::new();
            write_datetime(&mut text, micros.rem_euclid(MICROS_PER_DAY), precision);
            out.extend_from_slice(format!("{:04}-{:02}-{:02}", date.year, date.month, date.day).as_bytes());
            out.extend_from_slice(&text[10..]);
            out.extend_from_slice(zone);
            out.extend_from_slice(b" BC");
        }
    }

    fn text(&self, column: &TextColumn, row: usize, style: Style, out: &mut Vec<u8>) -> Result<(), String> {
        let value = column.array.value(row);
        match &self.target.form {
            Form::Text(rules) => {
                let value = clean(value, rules, column.has_nul)?;
                too_long(&value, rules)?;
                escape(value.as_bytes(), style, column.has_escapes, out);
            }
            Form::JsonBinary(policy) => {
                let value = clean_json(value, *policy)?;
                escape(value.as_bytes(), style, column.has_escapes, out);
            }
            _ => escape(value.as_bytes(), style, column.has_escapes, out),
        }
        Ok(())
    }
}

fn quote(style: Style, out: &mut Vec<u8>) {
    if style == Style::Literal {
        out.push(b'\'');
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn float(out: &mut Vec<u8>, value: impl ryu::Float) {
    out.extend_from_slice(ryu::Buffer::new().format(value).as_bytes());
}

fn bits(out: &mut Vec<u8>, value: u64, length: u8) {
    for place in (0..u32::from(length)).rev() {
        out.push(if value.checked_shr(place).unwrap_or(0) & 1 == 1 { b'1' } else { b'0' });
    }
}

fn date(out: &mut Vec<u8>, days: i32) {
    let fields = DateFields::decode(days);
    if fields.year > 0 || is_partial_date(days) {
        write_date(out, days);
    } else {
        let year = 1 - fields.year;
        out.extend_from_slice(format!("{year:04}-{:02}-{:02} BC", fields.month, fields.day).as_bytes());
    }
}

/// Hexadecimal form of bytea; COPY wants its backslash doubled.
fn bytes(value: &[u8], style: Style, out: &mut Vec<u8>) {
    out.extend_from_slice(match style {
        Style::Copy => b"\\\\x",
        Style::Literal => b"\\x",
    });
    hex(value, out);
}

fn hex(value: &[u8], out: &mut Vec<u8>) {
    const PART: usize = 64;
    out.reserve(value.len() * 2);
    for part in value.chunks(PART) {
        let mut digits = [0; PART * 2];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(part) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        out.extend_from_slice(&digits[..part.len() * 2]);
    }
}

/// MySQL's SRID + WKB as EWKB, the SRID inside the header in the byte order of the WKB.
fn geometry(value: &[u8], style: Style, out: &mut Vec<u8>) -> Result<(), String> {
    let (Some((srid, wkb)), true) = (value.split_first_chunk::<4>(), value.len() >= 9) else {
        return Err("the geometry is shorter than its header".to_owned());
    };
    let srid = u32::from_le_bytes(*srid);
    if srid == 0 {
        bytes(wkb, style, out);
        return Ok(());
    }
    let word = [wkb[1], wkb[2], wkb[3], wkb[4]];
    let (word, srid) = match wkb[0] {
        0 => ((u32::from_be_bytes(word) | EWKB_SRID).to_be_bytes(), srid.to_be_bytes()),
        1 => ((u32::from_le_bytes(word) | EWKB_SRID).to_le_bytes(), srid.to_le_bytes()),
        _ => return Err("the geometry has an unknown byte order".to_owned()),
    };
    bytes(&wkb[..1], style, out);
    hex(&word, out);
    hex(&srid, out);
    hex(&wkb[5..], out);
    Ok(())
}

fn clean<'v>(value: &'v str, rules: &TextRules, column_has_nul: bool) -> Result<Cow<'v, str>, String> {
    if !column_has_nul || !value.contains('\0') {
        return Ok(Cow::Borrowed(value));
    }
    match rules.nul {
        NulPolicy::Error => {
            Err("a NUL character cannot be held (see the option `nul-character.policy`)".to_owned())
        }
        NulPolicy::Strip => Ok(Cow::Owned(value.replace('\0', ""))),
        NulPolicy::Replace => Ok(Cow::Owned(value.replace('\0', "\u{fffd}"))),
    }
}

fn too_long(value: &str, rules: &TextRules) -> Result<(), String> {
    let Some(limit) = rules.max_characters else { return Ok(()) };
    // No text has more characters than bytes.
    if value.len() > limit {
        let count = value.chars().count();
        if count > limit {
            return Err(format!("the text has {count} characters and the target column holds {limit}"));
        }
    }
    Ok(())
}

/// `jsonb` refuses the escape `\u0000` (an odd number of backslashes before the `u`).
fn clean_json(value: &str, policy: NulPolicy) -> Result<Cow<'_, str>, String> {
    const NUL: &str = "\\u0000";
    let mut out = String::new();
    let mut kept = 0;
    for at in memmem::find_iter(value.as_bytes(), NUL) {
        let before = value.as_bytes()[..at].iter().rev().take_while(|b| **b == b'\\').count();
        if before % 2 == 1 {
            continue;
        }
        out.push_str(&value[kept..at]);
        kept = at + NUL.len();
        match policy {
            NulPolicy::Error => {
                return Err("jsonb cannot hold \\u0000 (see the option `nul-character.policy`)".to_owned());
            }
            NulPolicy::Strip => {}
            NulPolicy::Replace => out.push_str("\\ufffd"),
        }
    }
    if kept == 0 {
        return Ok(Cow::Borrowed(value));
    }
    out.push_str(&value[kept..]);
    Ok(Cow::Owned(out))
}

/// Appends text with what the style needs escaped.
fn escape(value: &[u8], style: Style, column_has_escapes: bool, out: &mut Vec<u8>) {
    if !column_has_escapes {
        out.extend_from_slice(value);
        return;
    }
    let mut kept = 0;
    for (at, byte) in value.iter().enumerate() {
        let replacement: &[u8] = match (style, byte) {
            (Style::Copy, b'\\') => b"\\\\",
            (Style::Copy, b'\n') => b"\\n",
            (Style::Copy, b'\r') => b"\\r",
            (Style::Copy, b'\t') => b"\\t",
            (Style::Literal, b'\'') => b"''",
            _ => continue,
        };
        out.extend_from_slice(&value[kept..at]);
        out.extend_from_slice(replacement);
        kept = at + 1;
    }
    out.extend_from_slice(&value[kept..]);
}

#[cfg(test)]
mod tests;
