//! Owns the rows of one message, by what it holds.

use canalis_batch::{BatchBuilder, ColumnBuilder};
use canalis_types::{LogicalType, RowKind, TableSchema};

use super::{RAW_KEY, RAW_VALUE, RowsKind, RowsOptions};
use crate::{
    ValueDecoder,
    csv::{CsvDialect, FieldsDecoder, FieldsError, Record},
    json::{ObjectDecoder, ObjectError, Strangers, TextColumns, scan::Scanner},
};

/// Why a message holds no rows of the table. Columns may be uneven then.
#[derive(Debug)]
pub(super) enum FormError {
    /// It does not decode.
    Wrong(String),
    /// A JSON member is no column.
    Stranger(String),
}

impl From<ObjectError> for FormError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Syntax(why) => {
                Self::Wrong(format!("message is neither a JSON object nor an array of them: {why}"))
            }
            ObjectError::Value(reason) => Self::Wrong(reason),
            ObjectError::Stranger(name) => Self::Stranger(name),
        }
    }
}

impl From<FieldsError> for FormError {
    fn from(error: FieldsError) -> Self {
        let (FieldsError::Count(reason) | FieldsError::Value(reason)) = error;
        Self::Wrong(reason)
    }
}

/// Reads messages of one table.
#[derive(Debug)]
pub(super) enum Form {
    Json(ObjectDecoder),
    Csv { fields: Box<CsvRows>, keys: ObjectDecoder },
    Raw(RawRows),
}

/// CSV records by the columns' order or by the header that the last message had.
#[derive(Debug)]
pub(super) struct CsvRows {
    dialect: CsvDialect,
    fields: FieldsDecoder,
    header: Vec<u8>,
    /// Splits keys of several columns.
    key_fields: FieldsDecoder,
}

/// Bare payloads.
#[derive(Debug)]
pub(super) struct RawRows {
    value: (usize, ValueDecoder),
    key: Option<(usize, ValueDecoder)>,
}

impl Form {
    /// # Errors
    /// What is wrong with the table.
    pub(super) fn new(kind: RowsKind, options: &RowsOptions, schema: &TableSchema) -> Result<Self, String> {
        Ok(match kind {
            RowsKind::Json => Form::Json(ObjectDecoder::new(schema, TextColumns::AnyScalar)),
            RowsKind::Csv => {
                let order: Vec<usize> = (0..schema.columns.len()).collect();
                let fields = Box::new(CsvRows {
                    dialect: options.csv.clone(),
                    fields: FieldsDecoder::new(schema, &options.csv, &order),
                    header: Vec::new(),
                    key_fields: FieldsDecoder::new(schema, &options.csv, &schema.key_indexes()),
                });
                Form::Csv { fields, keys: ObjectDecoder::new(schema, TextColumns::AnyScalar) }
            }
            RowsKind::Raw => Form::Raw(RawRows::new(schema)?),
        })
    }

    /// Appends the rows of a message.
    pub(super) fn rows(
        &mut self,
        schema: &TableSchema,
        builder: &mut BatchBuilder,
        (key, value): (Option<&[u8]>, &[u8]),
        strangers: Strangers,
    ) -> Result<(), FormError> {
        match self {
            Form::Json(object) => json_rows(object, builder, value, strangers),
            Form::Csv { fields, .. } => fields.rows(schema, builder, value),
            Form::Raw(raw) => raw.row(builder, key, value),
        }
    }

    /// Appends the −D of the row of this key.
    pub(super) fn delete(
        &mut self,
        builder: &mut BatchBuilder,
        key: &[u8],
        columns: &[usize],
    ) -> Result<(), FormError> {
        match (self, columns) {
            (Form::Json(object), [column]) if !is_object(key) => object.plain_key(key, builder, *column)?,
            (Form::Json(object), _) => {
                let mut scanner = Scanner::new(key);
                let keyed = object.key(&mut scanner, builder, columns);
                keyed.and_then(|()| scanner.end().map_err(ObjectError::Syntax)).map_err(|e| match e {
                    ObjectError::Syntax(why) => {
                        FormError::Wrong(format!("message key is not a JSON object: {why}"))
                    }
                    other => other.into(),
                })?;
            }
            (Form::Csv { keys: object, .. }, [column]) => object.plain_key(key, builder, *column)?,
            (Form::Csv { fields, .. }, _) => fields.key(builder, key, columns)?,
            (Form::Raw(raw), _) => raw.delete(builder, key)?,
        }
        builder.end_row(RowKind::Delete, key.len());
        Ok(())
    }
}

fn is_object(key: &[u8]) -> bool {
    key.trim_ascii_start().first() == Some(&b'{')
}

fn json_rows(
    object: &mut ObjectDecoder,
    builder: &mut BatchBuilder,
    value: &[u8],
    strangers: Strangers,
) -> Result<(), FormError> {
    let mut scanner = Scanner::new(value.strip_prefix(b"\xef\xbb\xbf").unwrap_or(value));
    let mut from = 0;
    let mut row = |scanner: &mut Scanner<'_>| -> Result<(), ObjectError> {
        object.row(scanner, builder, strangers)?;
        builder.end_row(RowKind::Insert, scanner.position() - from);
        from = scanner.position();
        Ok(())
    };
    if !scanner.take(b'[') {
        row(&mut scanner)?;
    } else if !scanner.take(b']') {
        loop {
            row(&mut scanner)?;
            if scanner.take(b']') {
                break;
            }
            if !scanner.take(b',') {
                return Err(ObjectError::Syntax("expected a comma or a closing bracket").into());
            }
        }
    }
    Ok(scanner.end().map_err(ObjectError::Syntax)?)
}

impl CsvRows {
    fn rows(
        &mut self,
        schema: &TableSchema,
        builder: &mut BatchBuilder,
        value: &[u8],
    ) -> Result<(), FormError> {
        let mut rest = value.strip_prefix(b"\xef\xbb\xbf").unwrap_or(value);
        if self.dialect.header {
            rest = self.take_header(schema, rest)?;
        }
        while !rest.is_empty() {
            match self.fields.split(rest, true) {
                Record::Complete { length, content } => {
                    if content > 0 || self.fields.count() == 1 {
                        self.fields.append(&rest[..content], builder)?;
                        builder.end_row(RowKind::Insert, length);
                    }
                    rest = &rest[length..];
                }
                Record::Malformed { reason, .. } => return Err(FormError::Wrong(reason.to_owned())),
                Record::Incomplete { .. } => return Err(FormError::Wrong("record has no end".to_owned())),
            }
        }
        Ok(())
    }

    /// Passes over the header; another header than that of the last message gives fields other columns.
    fn take_header<'a>(&mut self, schema: &TableSchema, value: &'a [u8]) -> Result<&'a [u8], FormError> {
        if !self.header.is_empty() && value.starts_with(&self.header) {
            return Ok(&value[self.header.len()..]);
        }
        let (order, length) = crate::csv::header_order(schema, &self.dialect, value)
            .map_err(|error| FormError::Wrong(error.message().to_owned()))?;
        self.fields = FieldsDecoder::new(schema, &self.dialect, &order);
        let (header, rest) = value.split_at(length);
        // Only one that ends its line tells where it ends in another message.
        self.header.clear();
        if header.ends_with(b"\n") {
            self.header.extend_from_slice(header);
        }
        Ok(rest)
    }

    fn key(&mut self, builder: &mut BatchBuilder, key: &[u8], columns: &[usize]) -> Result<(), FormError> {
        match self.key_fields.split(key, true) {
            Record::Complete { content, .. } if content == key.len() => {
                self.key_fields.append(key, builder)?;
                for (index, column) in builder.columns().iter_mut().enumerate() {
                    if !columns.contains(&index) {
                        column.append_null();
                    }
                }
                Ok(())
            }
            _ => Err(FormError::Wrong("message key is not one CSV record".to_owned())),
        }
    }
}

impl RawRows {
    fn new(schema: &TableSchema) -> Result<Self, String> {
        let column = |name: &str| {
            let Some(index) = schema.column_index(name) else { return Ok(None) };
            let column = &schema.columns[index];
            match column.ty {
                LogicalType::Bytes | LogicalType::Text => Ok(Some((index, ValueDecoder::new(column)))),
                _ => Err(format!(
                    "column `{name}` of raw messages must be BYTES or STRING, it is {}",
                    column.ty
                )),
            }
        };
        let value = column(RAW_VALUE)?.ok_or("raw messages need a column `value` of BYTES or STRING")?;
        let key = column(RAW_KEY)?;
        if let Some(other) = schema.columns.iter().find(|c| c.name != RAW_VALUE && c.name != RAW_KEY) {
            return Err(format!(
                "raw messages have the columns `value` and `key` only, not `{}`",
                other.name
            ));
        }
        Ok(Self { value, key })
    }

    fn row(&mut self, builder: &mut BatchBuilder, key: Option<&[u8]>, value: &[u8]) -> Result<(), FormError> {
        let size = value.len() + key.map_or(0, <[u8]>::len);
        append_raw(&self.value, builder, value, RAW_VALUE)?;
        match (&self.key, key) {
            (Some(column), Some(key)) => append_raw(column, builder, key, RAW_KEY)?,
            (Some((index, decoder)), None) => decoder
                .append_null(builder.column(*index))
                .map_err(|e| FormError::Wrong(format!("message has no key: {e}")))?,
            (None, _) => {}
        }
        builder.end_row(RowKind::Insert, size);
        Ok(())
    }

    fn delete(&mut self, builder: &mut BatchBuilder, key: &[u8]) -> Result<(), FormError> {
        if let Some(column) = &self.key {
            append_raw(column, builder, key, RAW_KEY)?;
        }
        builder.column(self.value.0).append_null();
        Ok(())
    }
}

fn append_raw(
    (index, decoder): &(usize, ValueDecoder),
    builder: &mut BatchBuilder,
    bytes: &[u8],
    name: &str,
) -> Result<(), FormError> {
    match builder.column(*index) {
        ColumnBuilder::Binary(column) => column.append_value(bytes),
        column => {
            decoder.append(column, bytes).map_err(|e| FormError::Wrong(format!("column `{name}`: {e}")))?;
        }
    }
    Ok(())
}
