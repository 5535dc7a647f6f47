//! Owns writing a cell: a column's value to the text that Canal gives it.

use canalis_types::{LogicalType, mysql_type::TypeText, temporal};

use super::Zone;
use crate::{
    cells::{Cells, TimeForm, Values},
    json::string::write_string,
    message::{write_java_f32, write_java_f64},
};

/// How texts of a column are written.
#[derive(Debug)]
pub(super) enum Form {
    /// Digits, signs, dates: nothing to escape.
    Plain,
    Boolean,
    Year,
    /// In local time of the zone.
    Instant(Zone),
    /// One character per byte.
    Latin1,
    /// The same without zeros at the end, which the binlog does not have.
    Padded,
    Text,
    Index(Vec<String>),
    Mask(Vec<String>),
}

impl Form {
    /// The form of columns of `ty`, declared as `mysql_type`; labels are written by number unless `by_label`.
    pub(super) fn new(ty: &LogicalType, mysql_type: &TypeText, zone: Zone, labels: LabelForm) -> Self {
        use LogicalType as L;
        match ty {
            L::Boolean => Form::Boolean,
            L::Year => Form::Year,
            L::TimestampTz { .. } if !zone.is_utc() => Form::Instant(zone),
            L::Binary { .. } if mysql_type.name == "binary" => Form::Padded,
            ty if ty.is_binary() => Form::Latin1,
            L::Enum { labels: list } if labels == LabelForm::Number => Form::Index(list.clone()),
            L::Set { labels: list } if labels == LabelForm::Number => Form::Mask(list.clone()),
            ty if ty.is_text() => Form::Text,
            _ => Form::Plain,
        }
    }

    /// Whether some values cannot be written.
    pub(super) fn may_refuse(&self) -> bool {
        matches!(self, Form::Instant(_) | Form::Index(_) | Form::Mask(_))
    }

    /// Appends the JSON of a cell: a string or null.
    ///
    /// # Errors
    /// Why the value cannot be written; then something may be appended.
    pub(super) fn write(&self, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
        if cells.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match (self, &cells.values) {
            (Form::Text, Values::Text(a) | Values::Json(a)) => {
                write_string(out, a.value(row).as_bytes());
                return Ok(());
            }
            (Form::Latin1, Values::Binary(a)) => {
                write_latin1(out, a.value(row));
                return Ok(());
            }
            (Form::Padded, Values::Binary(a)) => {
                let bytes = a.value(row);
                let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                write_latin1(out, &bytes[..end]);
                return Ok(());
            }
            _ => {}
        }
        out.push(b'"');
        self.write_bare(&cells.values, row, out)?;
        out.push(b'"');
        Ok(())
    }

    /// Values whose texts need no escapes.
    fn write_bare(&self, values: &Values<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match (self, values) {
            (Form::Boolean, Values::Boolean(a)) => out.push(if a.value(row) { b'1' } else { b'0' }),
            (Form::Year, Values::UInt16(a)) => {
                if a.value(row) < 1000 {
                    out.extend_from_slice(&b"000"[itoa::Buffer::new().format(a.value(row)).len() - 1..]);
                }
                values.write(row, TimeForm::Blank, out);
            }
            (Form::Instant(zone), Values::Instant(a, precision)) => {
                temporal::write_datetime(out, local(a.value(row), *zone)?, *precision);
            }
            (_, Values::Instant(a, precision)) => temporal::write_datetime(out, a.value(row), *precision),
            (Form::Index(labels), Values::Text(a)) => number(out, index(a.value(row), labels)?),
            (Form::Mask(labels), Values::Text(a)) => number(out, mask(a.value(row), labels)?),
            (_, Values::Float32(a)) => write_java_f32(out, a.value(row)),
            (_, Values::Float64(a)) => write_java_f64(out, a.value(row)),
            _ => values.write(row, TimeForm::Blank, out),
        }
        Ok(())
    }
}

/// How labels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelForm {
    /// By index or mask.
    Number,
    /// As texts.
    Text,
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The local time of an instant, if it reads back as the same.
fn local(instant: i64, zone: Zone) -> Result<i64, &'static str> {
    if temporal::is_partial_datetime(instant) {
        return Ok(instant);
    }
    let local = zone.local(instant).ok_or("instant is out of range in the time zone")?;
    if zone.instant(local) == Ok(instant) {
        return Ok(local);
    }
    Err("instant stands in an hour that clocks of the time zone show twice, the second time; write in UTC")
}

fn index(label: &str, labels: &[String]) -> Result<u64, &'static str> {
    match labels.iter().position(|known| known == label) {
        Some(at) => Ok(at as u64 + 1),
        None if label.is_empty() => Ok(0),
        None => Err("text is none of the column's labels"),
    }
}

fn mask(text: &str, labels: &[String]) -> Result<u64, &'static str> {
    let mut mask = 0;
    if text.is_empty() {
        return Ok(mask);
    }
    for part in text.split(',') {
        let at = labels.iter().position(|known| known == part).filter(|at| *at < 64);
        mask |= 1_u64 << at.ok_or("text is not a list of the column's labels")?;
    }
    Ok(mask)
}

/// Appends a string of one character per byte.
fn write_latin1(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_ascii() {
        return write_string(out, bytes);
    }
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in bytes {
        match crate::json::string::ESCAPES[usize::from(*byte)] {
            _ if *byte >= 0x80 => out.extend_from_slice(&[0xc0 | byte >> 6, 0x80 | byte & 0x3f]),
            0 => out.push(*byte),
            b'u' => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
    }
    out.push(b'"');
}

/// Whether the top bit of an unsigned value is set.
pub(super) fn has_top_bit(cells: &Cells<'_>, row: usize) -> bool {
    !cells.is_null(row)
        && match &cells.values {
            Values::UInt8(a) => a.value(row) >> 7 == 1,
            Values::UInt16(a) => a.value(row) >> 15 == 1,
            Values::UInt32(a) => a.value(row) >> 31 == 1,
            Values::UInt64(a) => a.value(row) >> 63 == 1,
            _ => false,
        }
}
