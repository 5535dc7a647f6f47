//! Owns writing a cell as a value of `data`, `old` or a key.

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_types::{Column, LogicalType};

use super::{java_decimal::write_java_decimal, wkt};
use crate::{
    cells::{Cells, TimeForm, Values},
    json,
    message::{write_java_f32, write_java_f64},
};

/// Writes the cells of one column.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    /// `"name":`.
    pub name: Vec<u8>,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By the physical form alone.
    Plain,
    Year,
    Enum,
    /// An ENUM that has the empty text among its labels.
    EnumWithEmpty,
    Set,
    /// Without the zeros at the end.
    Stripped,
    Geometry,
}

impl ColumnWriter {
    pub(super) fn new(column: &Column) -> Self {
        use LogicalType as L;
        let mut name = Vec::new();
        write_text(&mut name, column.name.as_bytes());
        name.push(b':');
        let form = match &column.ty {
            L::Year => Form::Year,
            L::Enum { labels } if labels.iter().any(String::is_empty) => Form::EnumWithEmpty,
            L::Enum { .. } => Form::Enum,
            L::Set { .. } => Form::Set,
            L::Binary { .. } => Form::Stripped,
            L::Geometry => Form::Geometry,
            _ => Form::Plain,
        };
        Self { name, form }
    }

    /// Why a cell has no form, or `None` when it has one.
    pub(super) fn refusal(&self, cells: &Cells<'_>, row: usize) -> Option<String> {
        if cells.is_null(row) {
            return None;
        }
        match &cells.values {
            Values::Float32(a) if !a.value(row).is_finite() => Some(NOT_FINITE.to_owned()),
            Values::Float64(a) if !a.value(row).is_finite() => Some(NOT_FINITE.to_owned()),
            Values::Json(a) if a.value(row).trim() == "null" => {
                Some("the JSON document null cannot be told from NULL".to_owned())
            }
            Values::Json(a) if !json::is_valid(a.value(row).as_bytes()) => {
                Some("text is not JSON".to_owned())
            }
            Values::Binary(a) if self.form == Form::Geometry => {
                wkt::write(a.value(row), &mut Vec::new()).err().map(str::to_owned)
            }
            _ => None,
        }
    }

    /// The SRID of a cell, if the column holds geometries.
    pub(super) fn srid(&self, cells: &Cells<'_>, row: usize) -> Option<u32> {
        match &cells.values {
            Values::Binary(a) if self.form == Form::Geometry && !cells.is_null(row) => {
                wkt::srid(a.value(row))
            }
            _ => None,
        }
    }

    /// Whether the cell is written as `null`.
    pub(super) fn is_null(&self, cells: &Cells<'_>, row: usize) -> bool {
        cells.is_null(row)
            || matches!(&cells.values, Values::Text(a) if self.form == Form::Enum && a.value(row).is_empty())
    }

    /// Appends the value; the cell has one.
    pub(super) fn write(&self, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) {
        if self.is_null(cells, row) {
            return out.extend_from_slice(b"null");
        }
        let mut digits = itoa::Buffer::new();
        match &cells.values {
            Values::Boolean(a) => out.push(if a.value(row) { b'1' } else { b'0' }),
            Values::UInt16(a) if self.form == Form::Year && a.value(row) == 0 => {
                out.extend_from_slice(b"1900");
            }
            Values::Float32(a) => write_java_f32(out, a.value(row)),
            Values::Float64(a) => write_java_f64(out, a.value(row)),
            Values::Decimal128(a, scale) => write_java_decimal(out, digits.format(a.value(row)), *scale),
            Values::Decimal256(a, scale) => write_java_decimal(out, &a.value(row).to_string(), *scale),
            Values::Text(a) if self.form == Form::Set => write_labels(out, a.value(row)),
            Values::Text(a) => write_text(out, a.value(row).as_bytes()),
            Values::Json(a) => write_compact(out, a.value(row).as_bytes()),
            Values::Binary(a) if self.form == Form::Geometry => {
                out.push(b'"');
                // Callers ask `refusal` first.
                let _refused = wkt::write(a.value(row), out);
                out.push(b'"');
            }
            Values::Binary(a) => {
                let mut bytes = a.value(row);
                while let ([rest @ .., 0], Form::Stripped) = (bytes, self.form) {
                    bytes = rest;
                }
                write_base64(out, bytes);
            }
            // An instant is written in UTC without saying so.
            Values::Instant(a, precision) => quoted(out, |out| {
                canalis_types::temporal::write_datetime(out, a.value(row), *precision);
            }),
            values @ (Values::Date(_) | Values::Time(..) | Values::Timestamp(..)) => {
                quoted(out, |out| values.write(row, TimeForm::Blank, out));
            }
            values => values.write(row, TimeForm::Blank, out),
        }
    }
}

const NOT_FINITE: &str = "a floating-point number is not finite, which JSON cannot say";

fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    quoted(out, |out| {
        let start = out.len();
        out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        let written =
            STANDARD.encode_slice(bytes, &mut out[start..]).expect("the room is the encoded length");
        out.truncate(start + written);
    });
}

fn write_labels(out: &mut Vec<u8>, joined: &str) {
    out.push(b'[');
    if !joined.is_empty() {
        for (at, label) in joined.split(',').enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_text(out, label.as_bytes());
        }
    }
    out.push(b']');
}

/// Appends a JSON text without the blanks between its parts.
fn write_compact(out: &mut Vec<u8>, text: &[u8]) {
    let mut in_string = false;
    let mut from = 0;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => {
                out.extend_from_slice(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    out.extend_from_slice(&text[from.min(text.len())..]);
}

/// Appends a string with its quotes; control characters without a short form in upper-case digits, as Jackson writes them.
pub(super) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'"');
    let mut from = 0;
    for (at, byte) in text.iter().enumerate() {
        let escape = json::string::ESCAPES[usize::from(*byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        from = at + 1;
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'"');
}
