//! Owns reading a cell: what stands in `data` or `old` to the column's value, checked against its type.

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_batch::{ColumnBuilder, ValueError};
use canalis_types::{Column, LogicalType};

use super::wkt;
use crate::{
    ValueDecoder,
    json::{
        scan::{Scanner, Value},
        string::unescape,
        whole,
    },
    text::{expand_exponent, refuse},
};

/// Buffers for values that do not stand in the message as they are.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    text: Vec<u8>,
    value: Vec<u8>,
}

/// Reads the cells of one column.
#[derive(Debug)]
pub(super) struct ColumnReader {
    pub name: Vec<u8>,
    form: Form,
    value: ValueDecoder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Boolean,
    Whole,
    Year,
    Decimal,
    Float,
    Document,
    Set,
    /// Filled up with zeros to this length.
    Padded(usize),
    Geometry,
    Text,
}

impl ColumnReader {
    pub(super) fn new(column: &Column) -> Self {
        use LogicalType as L;
        let form = match &column.ty {
            L::Boolean => Form::Boolean,
            L::Int8 | L::Int16 | L::Int32 | L::Int64 | L::Bit { .. } => Form::Whole,
            L::UInt8 | L::UInt16 | L::UInt32 | L::UInt64 => Form::Whole,
            L::Year => Form::Year,
            L::Decimal { .. } => Form::Decimal,
            L::Float32 | L::Float64 => Form::Float,
            L::Json => Form::Document,
            L::Set { .. } => Form::Set,
            L::Binary { length } => Form::Padded(usize::try_from(*length).unwrap_or(usize::MAX)),
            L::Geometry => Form::Geometry,
            _ => Form::Text,
        };
        Self { name: column.name.clone().into_bytes(), form, value: ValueDecoder::new(column) }
    }

    /// Appends a value; `None` is NULL.
    ///
    /// # Errors
    /// When it is not one of the column; then nothing is appended.
    pub(super) fn append(
        &self,
        builder: &mut ColumnBuilder,
        value: Option<Value<'_>>,
        scratch: &mut Scratch,
    ) -> Result<(), ValueError> {
        match (value.unwrap_or(Value::Null), self.form) {
            (Value::Null, _) => self.value.append_null(builder),
            (value, Form::Document) => self.append_document(builder, value, scratch),
            (Value::Text(text), form) => {
                let Scratch { text: unescaped, value } = scratch;
                let text = if text.escaped {
                    unescape(text.raw, unescaped).map_err(refuse)?;
                    unescaped.as_slice()
                } else {
                    text.raw
                };
                self.append_text(builder, form, text, value)
            }
            (Value::Number(b"0"), Form::Boolean) => self.value.append(builder, b"false"),
            (Value::Number(b"1"), Form::Boolean) => self.value.append(builder, b"true"),
            (Value::Number(number), Form::Whole) => self.value.append(builder, &whole(number)?),
            (Value::Number(number), Form::Year) => {
                let year = whole(number)?;
                self.append_text(builder, Form::Year, &year, &mut scratch.value)
            }
            (Value::Number(number), Form::Decimal) => self.value.append(builder, &expand_exponent(number)?),
            (Value::Number(number), Form::Float) => self.value.append(builder, number),
            (Value::Boolean(value), Form::Boolean) => {
                self.value.append(builder, if value { b"true" } else { b"false" })
            }
            (Value::Boolean(value), Form::Whole) => {
                self.value.append(builder, if value { b"1" } else { b"0" })
            }
            (Value::Container(array), Form::Set) => self.append_set(builder, array, scratch),
            (Value::Number(_), _) => Err(refuse("a number does not fit the column's type")),
            (Value::Boolean(_), _) => Err(refuse("a boolean does not fit the column's type")),
            (Value::Container(_), _) => Err(refuse("an object or array does not fit the column's type")),
        }
    }

    fn append_text(
        &self,
        builder: &mut ColumnBuilder,
        form: Form,
        text: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        match (form, &mut *builder) {
            // The year 0000 goes through an offset of 1900 on its way.
            (Form::Year, _) if text == b"1900" => self.value.append(builder, b"0"),
            (Form::Boolean, _) => builder.append_text(text),
            (Form::Decimal, _) => self.value.append(builder, &expand_exponent(text)?),
            (Form::Padded(length), ColumnBuilder::Binary(column)) => {
                decode_base64(text, scratch)?;
                if scratch.len() > length {
                    return Err(refuse(format!("holds {length} bytes, has {}", scratch.len())));
                }
                // The change log strips the zeros at the end.
                scratch.resize(length, 0);
                column.append_value(&*scratch);
                Ok(())
            }
            (Form::Geometry, ColumnBuilder::Binary(column)) => {
                wkt::parse(text, scratch).map_err(refuse)?;
                column.append_value(&*scratch);
                Ok(())
            }
            _ => self.value.append(builder, text),
        }
    }

    /// A JSON document stands in the message as itself, a string among them.
    fn append_document(
        &self,
        builder: &mut ColumnBuilder,
        value: Value<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), ValueError> {
        match value {
            Value::Container(raw) | Value::Number(raw) => self.value.append(builder, raw),
            Value::Boolean(value) => self.value.append(builder, if value { b"true" } else { b"false" }),
            Value::Null => self.value.append_null(builder),
            Value::Text(text) => {
                let quoted = &mut scratch.value;
                quoted.clear();
                quoted.push(b'"');
                quoted.extend_from_slice(text.raw);
                quoted.push(b'"');
                self.value.append(builder, quoted)
            }
        }
    }

    /// `["a","c"]` as `a,c`.
    fn append_set(
        &self,
        builder: &mut ColumnBuilder,
        array: &[u8],
        scratch: &mut Scratch,
    ) -> Result<(), ValueError> {
        let Scratch { text: label, value: joined } = scratch;
        joined.clear();
        let wrong = || refuse("value is not an array of labels");
        let mut scanner = Scanner::new(array);
        if !scanner.take(b'[') {
            return Err(wrong());
        }
        if !scanner.take(b']') {
            for at in 0.. {
                let Ok(Value::Text(text)) = scanner.value() else { return Err(wrong()) };
                if at > 0 {
                    joined.push(b',');
                }
                unescape(text.raw, label).map_err(refuse)?;
                joined.extend_from_slice(label);
                if scanner.take(b']') {
                    break;
                }
                if !scanner.take(b',') {
                    return Err(wrong());
                }
            }
        }
        self.value.append(builder, joined)
    }
}

fn decode_base64(text: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    out.clear();
    STANDARD.decode_vec(text, out).map_err(|_| refuse("bytes are not Base64 with padding"))
}
