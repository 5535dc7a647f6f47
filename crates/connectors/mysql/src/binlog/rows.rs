//! Owns row events: their head, and [`TableDecoder`], which writes rows straight into the columns of a batch.

mod address;
mod column;
mod decimal;
mod json;
mod temporal;

pub use json::write_json;

use std::sync::Arc;

use canalis_batch::BatchBuilder;
use canalis_types::{Code, Error, LogicalType, Result, RowKind, TableSchema};

use super::{
    cursor::{Cursor, DecodeError, Decoded},
    table_map::{TableMap, WireType, column_type},
};
use crate::charset::Charset;
use column::{ColumnDecoder, Scratch};

/// What a row event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsKind {
    /// Each row is new.
    Insert,
    /// Each row is an image before and an image after.
    Update,
    /// Each row is removed.
    Delete,
}

/// Where a row event's fixed part is, by version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsVersion {
    /// MariaDB and MySQL 5.1–5.5.
    V1,
    /// MySQL 5.6 and later: with extra data.
    V2,
}

/// The head of a row event.
#[derive(Debug, Clone, Copy)]
pub struct RowsHead<'a> {
    /// Number of the table map.
    pub table_id: u64,
    /// Columns that the event counts.
    pub columns: usize,
    /// Whether every image has every column.
    pub full_images: bool,
    /// The rows, or their compressed form.
    pub rows: &'a [u8],
}

/// Parses the head of a row event; `id_len` is the size of table numbers.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_head(kind: RowsKind, version: RowsVersion, body: &[u8], id_len: usize) -> Decoded<RowsHead<'_>> {
    let mut cursor = Cursor::new(body);
    let table_id = cursor.uint(id_len)?;
    cursor.skip(2)?;
    if version == RowsVersion::V2 {
        let extra = usize::from(cursor.u16()?);
        cursor.skip(
            extra
                .checked_sub(2)
                .ok_or_else(|| DecodeError::malformed("extra data of a row event is short"))?,
        )?;
    }
    let columns = cursor.lenenc_len()?;
    let bitmaps = if kind == RowsKind::Update { 2 } else { 1 };
    let mut full_images = true;
    for _ in 0..bitmaps {
        full_images &= all_set(cursor.take(columns.div_ceil(8))?, columns);
    }
    Ok(RowsHead { table_id, columns, full_images, rows: cursor.rest() })
}

fn all_set(bitmap: &[u8], bits: usize) -> bool {
    let (whole, rest) = (bits / 8, bits % 8);
    let mask = (1u8 << rest) - 1;
    bitmap[..whole].iter().all(|byte| *byte == 0xff) && bitmap[whole..].iter().all(|byte| byte & mask == mask)
}

/// Decodes the rows of one table under one schema version.
#[derive(Debug)]
pub struct TableDecoder {
    schema: Arc<TableSchema>,
    types: Vec<WireType>,
    columns: Vec<ColumnDecoder>,
    scratch: Scratch,
}

impl TableDecoder {
    /// A decoder for rows as `map` announces them, into batches of `schema`. `charsets` gives a character set by name.
    ///
    /// # Errors
    /// Unknown source event when the columns of the map are not those of the schema: the schema history is then
    /// out of step with the log, and rows must not be guessed.
    pub fn new(
        schema: Arc<TableSchema>,
        map: &TableMap<'_>,
        charsets: &mut dyn FnMut(&str) -> Result<Charset>,
    ) -> Result<Self> {
        if schema.columns.len() != map.types.len() {
            return Err(out_of_step(
                &schema,
                format!("it has {} columns, the log {}", schema.columns.len(), map.types.len()),
            ));
        }
        if let Some(names) = &map.names {
            for (column, name) in schema.columns.iter().zip(names) {
                // The log of MariaDB folds no case, but ALTER … CHANGE a A may come between.
                if column.name.to_lowercase() != name.to_lowercase() {
                    let what = format!("column {} is {name} in the log", column.name);
                    return Err(out_of_step(&schema, what));
                }
            }
        }
        labels_agree(&schema, map)?;
        let mut columns = Vec::with_capacity(schema.columns.len());
        for (column, ty) in schema.columns.iter().zip(&map.types) {
            let decoder = ColumnDecoder::new(column, *ty, charsets)?.ok_or_else(|| {
                let what = format!(
                    "column {} is {}, the log has type {} with {}",
                    column.name, column.ty, ty.number, ty.meta
                );
                out_of_step(&schema, what)
            })?;
            columns.push(decoder);
        }
        Ok(Self { schema, types: map.types.clone(), columns, scratch: Scratch::default() })
    }

    /// Structure that rows are decoded to.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Whether the decoder also fits rows that another map announces for the same schema.
    pub fn fits(&self, schema: &Arc<TableSchema>, map: &TableMap<'_>) -> bool {
        (Arc::ptr_eq(&self.schema, schema) || self.schema == *schema)
            && self.types == map.types
            && labels_agree(schema, map).is_ok()
    }

    /// Decodes the next row, an update as two, and appends it to `out`, which must have this decoder's schema.
    ///
    /// # Errors
    /// When the bytes break the format or hold text that does not decode. `out` is then not to be used any more.
    pub fn decode_row(
        &mut self,
        kind: RowsKind,
        cursor: &mut Cursor<'_>,
        out: &mut BatchBuilder,
    ) -> Decoded<()> {
        match kind {
            RowsKind::Insert => self.image(RowKind::Insert, cursor, out),
            RowsKind::Delete => self.image(RowKind::Delete, cursor, out),
            RowsKind::Update => {
                self.image(RowKind::UpdateBefore, cursor, out)?;
                self.image(RowKind::UpdateAfter, cursor, out)
            }
        }
    }

    fn image(&mut self, kind: RowKind, cursor: &mut Cursor<'_>, out: &mut BatchBuilder) -> Decoded<()> {
        let before = cursor.rest().len();
        let nulls = cursor.take(self.columns.len().div_ceil(8))?;
        for (index, (decoder, builder)) in self.columns.iter().zip(out.columns()).enumerate() {
            if nulls[index / 8] & (1 << (index % 8)) != 0 {
                builder.append_null();
            } else if let Err(error) = decoder.decode(cursor, builder, &mut self.scratch) {
                let name = self.schema.columns.get(index).map_or("", |column| column.name.as_str());
                return Err(error.within(format_args!("column {name} of {}", self.schema.id)));
            }
        }
        out.end_row(kind, before - cursor.rest().len());
        Ok(())
    }
}

/// Rows hold the numbers of labels, so the labels of the structure must be those that the rows were written with. A
/// server that does not log them, or a character set that the server has to be asked for, leaves this open.
fn labels_agree(schema: &TableSchema, map: &TableMap<'_>) -> Result<()> {
    let mut enums = map.enum_labels.iter().flatten();
    let mut sets = map.set_labels.iter().flatten();
    for (column, ty) in schema.columns.iter().zip(&map.types) {
        let logged = match ty.number {
            column_type::ENUM => enums.next(),
            column_type::SET => sets.next(),
            _ => continue,
        };
        let (LogicalType::Enum { labels } | LogicalType::Set { labels }) = &column.ty else { continue };
        let Some(logged) = logged else { continue };
        let charset = match column.native.as_ref().and_then(|native| native.charset.as_deref()) {
            Some(name) => Charset::known(name),
            None => Some(Charset::UTF8),
        };
        let mut texts = Vec::with_capacity(logged.len());
        for (index, bytes) in logged.iter().enumerate() {
            let mut text = String::new();
            match &charset {
                Some(charset) if charset.append(bytes, &mut text).is_ok() => texts.push(text),
                _ if bytes.is_ascii() => texts.push(String::from_utf8_lossy(bytes).into_owned()),
                // Taken as it should be.
                _ => texts.extend(labels.get(index).cloned()),
            }
        }
        if texts != *labels {
            let what = format!(
                "column {} has the labels {labels:?}, the log {texts:?}: rows of another time than the structure; \
                 start at a later position or with a snapshot",
                column.name
            );
            return Err(out_of_step(schema, what));
        }
    }
    Ok(())
}

fn out_of_step(schema: &TableSchema, what: String) -> Error {
    Error::new(
        Code::SourceEventUnknown,
        format!("schema history of {} is out of step with the log: {what}", schema.id),
    )
}

#[cfg(test)]
mod tests {
    use canalis_batch::cell_to_text;
    use canalis_types::{Column, TableId};
    use proptest::prelude::*;

    use super::*;

    fn schema(types: &[LogicalType]) -> Arc<TableSchema> {
        let columns =
            types.iter().enumerate().map(|(i, ty)| Column::new(format!("c{i}"), ty.clone(), true)).collect();
        Arc::new(TableSchema::new(TableId::new("d", "t"), columns, Vec::new()))
    }

    fn map(types: &[(u8, u16)]) -> TableMap<'static> {
        let types = types.iter().map(|(number, meta)| WireType { number: *number, meta: *meta }).collect();
        TableMap {
            table_id: 1,
            database: "d",
            table: "t",
            types,
            names: None,
            enum_labels: None,
            set_labels: None,
        }
    }

    fn decoder(schema: &Arc<TableSchema>, map: &TableMap<'_>) -> Result<TableDecoder> {
        TableDecoder::new(schema.clone(), map, &mut |name| {
            Charset::known(name).ok_or_else(|| Error::internal("no server here"))
        })
    }

    #[test]
    fn my_04_unsigned_numbers_keep_their_top_bit() {
        let schema =
            schema(&[LogicalType::UInt64, LogicalType::UInt32, LogicalType::Int32, LogicalType::Boolean]);
        let map = map(&[
            (column_type::LONGLONG, 0),
            (column_type::INT24, 0),
            (column_type::INT24, 0),
            (column_type::TINY, 0),
        ]);
        let mut decoder = decoder(&schema, &map).unwrap();
        let mut out = BatchBuilder::new(schema.clone(), 1);
        let mut row = vec![0];
        row.extend_from_slice(&[0xff; 8 + 3 + 3 + 1]);
        decoder.decode_row(RowsKind::Insert, &mut Cursor::new(&row), &mut out).unwrap();
        let batch = out.finish().unwrap();
        let texts: Vec<String> =
            (0..4).map(|c| cell_to_text(batch.rows().column(c), &schema.columns[c].ty, 0).unwrap()).collect();
        assert_eq!(texts, ["18446744073709551615", "16777215", "-1", "true"]);
    }

    #[test]
    fn my_18_partial_images_are_seen() {
        // Table 1, 3 columns, before-image with the first column only.
        let body = [1, 0, 0, 0, 0, 0, 1, 0, 3, 0b001, 0b111, 9, 9];
        let head = parse_head(RowsKind::Update, RowsVersion::V1, &body, 6).unwrap();
        assert!(!head.full_images);
        assert_eq!((head.table_id, head.columns, head.rows), (1, 3, &[9u8, 9][..]));
        let body = [1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0b111, 7];
        let head = parse_head(RowsKind::Insert, RowsVersion::V2, &body, 6).unwrap();
        assert!(head.full_images);
        assert_eq!(head.rows, [7]);
    }

    #[test]
    fn a_schema_that_does_not_fit_the_log_is_an_error() {
        let two = schema(&[LogicalType::Int32, LogicalType::Text]);
        for types in [
            &[(column_type::LONG, 0)][..],
            &[(column_type::LONGLONG, 0), (column_type::BLOB, 2)],
            &[(column_type::LONG, 0), (column_type::DATE, 0)],
        ] {
            let error = decoder(&two, &map(types)).unwrap_err();
            assert_eq!(error.code(), Code::SourceEventUnknown);
        }
        let mut named = map(&[(column_type::LONG, 0), (column_type::BLOB, 2)]);
        named.names = Some(vec!["c0", "other"]);
        assert!(decoder(&two, &named).is_err());
        named.names = Some(vec!["C0", "c1"]);
        assert!(decoder(&two, &named).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(row in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..3) {
            let kind = [RowsKind::Insert, RowsKind::Update, RowsKind::Delete][usize::from(kind)];
            let _ = parse_head(kind, RowsVersion::V2, &row, 6);
            let schema = schema(&[
                LogicalType::Decimal { precision: 65, scale: 30 }, LogicalType::Timestamp { precision: 6 },
                LogicalType::Time { precision: 3 }, LogicalType::Json, LogicalType::Text,
                LogicalType::Binary { length: 4 }, LogicalType::Enum { labels: vec!["a".into()] },
                LogicalType::Set { labels: vec!["a".into(), "b".into()] }, LogicalType::Year,
            ]);
            let map = map(&[
                (column_type::NEWDECIMAL, 65 << 8 | 30), (column_type::DATETIME2, 6), (column_type::TIME2, 3),
                (column_type::JSON, 4), (column_type::BLOB, 4), (column_type::STRING, 4), (column_type::ENUM, 1),
                (column_type::SET, 1), (column_type::YEAR, 0),
            ]);
            let mut decoder = decoder(&schema, &map).unwrap();
            let mut out = BatchBuilder::new(schema.clone(), 1);
            let mut cursor = Cursor::new(&row);
            while !cursor.is_empty() && decoder.decode_row(kind, &mut cursor, &mut out).is_ok() {}
        }
    }
}
