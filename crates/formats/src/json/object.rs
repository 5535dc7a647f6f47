//! Owns decoding of one JSON object into one row: members into the columns of their names.

use std::borrow::Cow;

use canalis_batch::{BatchBuilder, ColumnBuilder, ValueError};
use canalis_types::{Column, LogicalType, TableSchema};

use super::{
    scan::{ScanError, Scanner, Text, Value},
    string::unescape,
};
use crate::{
    ValueDecoder,
    text::{expand_exponent, refuse},
};

/// What happens to members that are no columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strangers {
    /// They end the row with [`ObjectError::Stranger`].
    Refuse,
    /// Those that are null are left out, others end the row.
    IgnoreNull,
    /// They are left out.
    Ignore,
}

/// What columns of unlimited text take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextColumns {
    /// Strings.
    TextOnly,
    /// Numbers and booleans too, as they are written.
    AnyScalar,
}

/// Why an object is no row. Some columns may have a value more than others then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectError {
    /// It is not JSON or no object.
    Syntax(ScanError),
    /// A value is not one of its column.
    Value(String),
    /// A member is no column.
    Stranger(String),
}

/// Decodes objects by a table's structure. A missing member is NULL.
#[derive(Debug)]
pub(crate) struct ObjectDecoder {
    columns: Vec<MemberDecoder>,
    seen: Vec<bool>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct MemberDecoder {
    name: Vec<u8>,
    form: Form,
    value: ValueDecoder,
}

/// What a member may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Boolean,
    Whole,
    Decimal,
    Float,
    Document,
    Scalar,
    Text,
}

impl ObjectDecoder {
    pub(crate) fn new(schema: &TableSchema, texts: TextColumns) -> Self {
        use LogicalType as L;
        let member = |column: &Column| MemberDecoder {
            name: column.name.clone().into_bytes(),
            form: match column.ty {
                L::Boolean => Form::Boolean,
                L::Int8 | L::Int16 | L::Int32 | L::Int64 | L::Year | L::Bit { .. } => Form::Whole,
                L::UInt8 | L::UInt16 | L::UInt32 | L::UInt64 => Form::Whole,
                L::Decimal { .. } => Form::Decimal,
                L::Float32 | L::Float64 => Form::Float,
                L::Json => Form::Document,
                L::Text if texts == TextColumns::AnyScalar => Form::Scalar,
                _ => Form::Text,
            },
            value: ValueDecoder::new(column),
        };
        Self {
            columns: schema.columns.iter().map(member).collect(),
            seen: vec![false; schema.columns.len()],
            scratch: Vec::new(),
        }
    }

    /// Appends the object that is next to all columns; the row is not ended.
    ///
    /// # Errors
    /// [`ObjectError`]; then [`ObjectDecoder::complete`] makes all columns equally long again.
    pub(crate) fn row(
        &mut self,
        scanner: &mut Scanner<'_>,
        builder: &mut BatchBuilder,
        strangers: Strangers,
    ) -> Result<(), ObjectError> {
        self.members(scanner, builder, strangers, None)?;
        for (index, column) in self.columns.iter().enumerate() {
            if !self.seen[index] {
                let name = || String::from_utf8_lossy(&column.name);
                column
                    .value
                    .append_null(builder.column(index))
                    .map_err(|e| ObjectError::Value(format!("column `{}` is missing: {e}", name())))?;
                self.seen[index] = true;
            }
        }
        Ok(())
    }

    /// Appends the key columns out of the object that is next and NULL to all others; the row is not ended.
    ///
    /// # Errors
    /// Those of [`ObjectDecoder::row`], and when a key column is missing.
    pub(crate) fn key(
        &mut self,
        scanner: &mut Scanner<'_>,
        builder: &mut BatchBuilder,
        key: &[usize],
    ) -> Result<(), ObjectError> {
        self.members(scanner, builder, Strangers::Ignore, Some(key))?;
        if let Some(missing) = key.iter().find(|index| !self.seen[**index]) {
            let name = String::from_utf8_lossy(&self.columns[*missing].name);
            return Err(ObjectError::Value(format!("key column `{name}` is missing")));
        }
        self.complete(builder);
        Ok(())
    }

    /// Appends the value of one key column from its plain text and NULL to all others; the row is not ended.
    ///
    /// # Errors
    /// When the text is no value of the column.
    pub(crate) fn plain_key(
        &mut self,
        text: &[u8],
        builder: &mut BatchBuilder,
        key: usize,
    ) -> Result<(), ObjectError> {
        self.seen.fill(false);
        let column = &self.columns[key];
        column.value.append(builder.column(key), text).map_err(|e| {
            ObjectError::Value(format!("key column `{}`: {e}", String::from_utf8_lossy(&column.name)))
        })?;
        self.seen[key] = true;
        self.complete(builder);
        Ok(())
    }

    /// Fills the columns without a value in the row under way with NULL.
    pub(crate) fn complete(&mut self, builder: &mut BatchBuilder) {
        for (index, seen) in self.seen.iter_mut().enumerate() {
            if !*seen {
                builder.column(index).append_null();
                *seen = true;
            }
        }
    }

    fn members(
        &mut self,
        scanner: &mut Scanner<'_>,
        builder: &mut BatchBuilder,
        strangers: Strangers,
        only: Option<&[usize]>,
    ) -> Result<(), ObjectError> {
        self.seen.fill(false);
        if !scanner.take(b'{') {
            return Err(ObjectError::Syntax("expected an opening brace"));
        }
        if scanner.take(b'}') {
            return Ok(());
        }
        let mut expected = 0;
        loop {
            let name = scanner.name().map_err(ObjectError::Syntax)?;
            let value = scanner.value().map_err(ObjectError::Syntax)?;
            match self.find(name, expected)? {
                Some(index) if only.is_none_or(|only| only.contains(&index)) => {
                    self.member(index, value, builder)?;
                    expected = index + 1;
                }
                Some(index) => expected = index + 1,
                None if strangers == Strangers::Ignore => {}
                None if strangers == Strangers::IgnoreNull && value == Value::Null => {}
                None => return Err(ObjectError::Stranger(String::from_utf8_lossy(name.raw).into_owned())),
            }
            if scanner.take(b'}') {
                return Ok(());
            }
            if !scanner.take(b',') {
                return Err(ObjectError::Syntax("expected a comma or a closing brace"));
            }
        }
    }

    /// The column of a member: nearly always the one after the last.
    fn find(&mut self, name: Text<'_>, expected: usize) -> Result<Option<usize>, ObjectError> {
        let name = if name.escaped {
            unescape(name.raw, &mut self.scratch).map_err(|why| ObjectError::Value(why.to_owned()))?;
            self.scratch.as_slice()
        } else {
            name.raw
        };
        if self.columns.get(expected).is_some_and(|c| c.name == name) {
            return Ok(Some(expected));
        }
        Ok(self.columns.iter().position(|c| c.name == name))
    }

    fn member(
        &mut self,
        index: usize,
        value: Value<'_>,
        builder: &mut BatchBuilder,
    ) -> Result<(), ObjectError> {
        let column = &self.columns[index];
        let name = || String::from_utf8_lossy(&column.name);
        if self.seen[index] {
            return Err(ObjectError::Value(format!("member `{}` stands twice", name())));
        }
        append(column, builder.column(index), value, &mut self.scratch)
            .map_err(|e| ObjectError::Value(format!("column `{}`: {e}", name())))?;
        self.seen[index] = true;
        Ok(())
    }
}

fn append(
    column: &MemberDecoder,
    builder: &mut ColumnBuilder,
    value: Value<'_>,
    scratch: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let decoder = &column.value;
    match (value, column.form) {
        (Value::Null, _) => decoder.append_null(builder),
        (Value::Boolean(value), Form::Boolean | Form::Scalar) => {
            decoder.append(builder, if value { b"true" } else { b"false" })
        }
        (Value::Number(number), Form::Whole) => decoder.append(builder, &whole(number)?),
        (Value::Number(number), Form::Decimal) => decoder.append(builder, &expand_exponent(number)?),
        (Value::Number(number), Form::Float | Form::Scalar) => decoder.append(builder, number),
        (Value::Container(raw), Form::Document) => decoder.append(builder, raw),
        (Value::Number(raw), Form::Document) => decoder.append(builder, raw),
        (Value::Boolean(value), Form::Document) => {
            decoder.append(builder, if value { b"true" } else { b"false" })
        }
        (Value::Text(text), _) if text.escaped => {
            unescape(text.raw, scratch).map_err(refuse)?;
            decoder.append(builder, scratch)
        }
        (Value::Text(text), _) => decoder.append(builder, text.raw),
        (Value::Boolean(_), _) => Err(refuse("a boolean does not fit the column's type")),
        (Value::Number(_), _) => Err(refuse("a number does not fit the column's type; it must be a string")),
        (Value::Container(_), _) => Err(refuse(
            "an object or array does not fit the column's type; declare the column as JSON to keep it",
        )),
    }
}

/// A whole number out of a JSON number, which may be written as `1.0` or `1e3`.
pub(crate) fn whole(number: &[u8]) -> Result<Cow<'_, [u8]>, ValueError> {
    let mut number = expand_exponent(number)?;
    if let Some(point) = memchr::memchr(b'.', &number) {
        if number[point + 1..].iter().any(|b| *b != b'0') {
            return Err(refuse("number is not whole"));
        }
        match &mut number {
            Cow::Borrowed(text) => *text = &text[..point],
            Cow::Owned(text) => text.truncate(point),
        }
    }
    Ok(number)
}
