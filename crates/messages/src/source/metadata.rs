//! Owns metadata columns: what a broker tells of each message, behind the columns of its rows.

use std::{collections::HashMap, sync::Arc};

use arrow_array::RecordBatch;
use canalis_batch::{ChangeBatch, ColumnBuilder, arrow_schema};
use canalis_types::{
    Code, Column, ColumnPlace, Error, LogicalType, Result, SchemaChangeKind, TableId, TableSchema,
};
use serde_json::{Map, Value};

use super::{Delivery, Place};

/// A metadata column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataColumn {
    /// Name of the topic.
    Topic,
    /// Partition or queue, as the lane is named.
    Lane,
    /// Offset of the message in its lane.
    Offset,
    /// The broker's time of the message.
    Timestamp,
    /// Key of the message, as text.
    Key,
    /// Headers of the message, as a JSON object.
    Headers,
}

impl MetadataColumn {
    /// All of them, by the names that `metadata.list` has.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("topic", Self::Topic),
        ("partition", Self::Lane),
        ("offset", Self::Offset),
        ("timestamp", Self::Timestamp),
        ("key", Self::Key),
        ("headers", Self::Headers),
    ];

    /// Parses `topic,offset`.
    ///
    /// # Errors
    /// Which word is none of them.
    pub fn parse_list(text: &str) -> std::result::Result<Vec<Self>, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let one = |word: &str| {
            let found = Self::NAMES.iter().find(|(name, _)| *name == word);
            found.map(|(_, column)| *column).ok_or_else(|| {
                let names = Self::NAMES.map(|(name, _)| name).join(", ");
                format!("`{word}` is no metadata column; known are {names}")
            })
        };
        words.map(one).collect()
    }

    /// The column that rows get: its name between double underscores.
    fn column(self) -> Column {
        let name = Self::NAMES.iter().find(|(_, column)| *column == self).map_or("", |(name, _)| name);
        let ty = match self {
            Self::Topic | Self::Lane | Self::Key => LogicalType::Text,
            Self::Offset => LogicalType::UInt64,
            Self::Timestamp => LogicalType::TimestampTz { precision: 3 },
            Self::Headers => LogicalType::Json,
        };
        Column::new(format!("__{name}__"), ty, matches!(self, Self::Timestamp | Self::Key | Self::Headers))
    }
}

/// Headers as a JSON object; a name that comes twice has its last value, bytes that are not UTF-8 are `{"base64": …}`.
pub fn headers_text<'a>(headers: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>) -> String {
    let value = |bytes: Option<&[u8]>| bytes.map_or(Value::Null, super::worker::text_or_base64);
    let members: Map<String, Value> = headers.map(|(name, bytes)| (name.to_owned(), value(bytes))).collect();
    if members.is_empty() { String::new() } else { Value::Object(members).to_string() }
}

/// The metadata columns of a source, and their values for the rows that are gathered.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    columns: Vec<MetadataColumn>,
    waiting: HashMap<TableId, Vec<ColumnBuilder>>,
    /// Structures as they are delivered, by the structure as it is decoded.
    extended: HashMap<TableId, (Arc<TableSchema>, Arc<TableSchema>)>,
}

impl Metadata {
    pub(super) fn new(columns: Vec<MetadataColumn>) -> Self {
        Self { columns, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// A structure with the metadata columns.
    ///
    /// # Errors
    /// `CNL-2008` when the table has a column of such a name.
    pub(super) fn extend(&self, schema: &Arc<TableSchema>) -> Result<Arc<TableSchema>> {
        if self.columns.is_empty() {
            return Ok(schema.clone());
        }
        let mut extended = TableSchema::clone(schema);
        for column in self.columns.iter().map(|c| c.column()) {
            if schema.column(&column.name).is_some() {
                return Err(Error::new(
                    Code::SchemaChangeRefused,
                    format!(
                        "table {} has a column `{}`, which `metadata.list` adds too",
                        schema.id, column.name
                    ),
                ));
            }
            extended.columns.push(column);
        }
        Ok(Arc::new(extended))
    }

    /// A change of structure as it is delivered: new columns stand before the metadata columns.
    pub(super) fn place(&self, kind: &SchemaChangeKind, before: Option<&TableSchema>) -> SchemaChangeKind {
        let (SchemaChangeKind::AddColumns(added), Some(before), false) =
            (kind, before, self.columns.is_empty())
        else {
            return kind.clone();
        };
        let mut behind = before.columns.last().map(|c| c.name.clone());
        let added = added.iter().map(|(column, place)| {
            let place = match (place, &behind) {
                (ColumnPlace::Last, Some(last)) => ColumnPlace::After(last.clone()),
                (place, _) => place.clone(),
            };
            behind = Some(column.name.clone());
            (column.clone(), place)
        });
        SchemaChangeKind::AddColumns(added.collect())
    }

    /// Notes the message that `rows` rows of the table came from.
    ///
    /// # Errors
    /// A reason when the key is not text; nothing is noted then.
    pub(super) fn note(
        &mut self,
        table: &TableId,
        rows: usize,
        lane: &str,
        delivery: &Delivery<'_>,
    ) -> std::result::Result<(), String> {
        let key = delivery.message.key.map(std::str::from_utf8).transpose();
        let key =
            key.map_err(|_| "the key is not UTF-8, and `metadata.list` asks for it as text".to_owned())?;
        let columns = &self.columns;
        let fresh = || columns.iter().map(|c| ColumnBuilder::new(&c.column().ty, 1024)).collect();
        let builders = match self.waiting.get_mut(table) {
            Some(builders) => builders,
            None => self.waiting.entry(table.clone()).or_insert_with(fresh),
        };
        let Place([next, ..]) = delivery.next;
        for _ in 0..rows {
            for (column, builder) in columns.iter().zip(builders.iter_mut()) {
                let text = match column {
                    MetadataColumn::Topic => Some(delivery.message.topic),
                    MetadataColumn::Lane => Some(lane),
                    MetadataColumn::Key => key,
                    MetadataColumn::Headers => delivery.headers,
                    MetadataColumn::Offset => {
                        builder.append_u64(next.saturating_sub(1)).map_err(|why| why.reason)?;
                        continue;
                    }
                    MetadataColumn::Timestamp => {
                        match (builder, delivery.message.timestamp_ms) {
                            (ColumnBuilder::Timestamp(builder), Some(millis)) => {
                                builder.append_value(millis * 1000)
                            }
                            (builder, _) => builder.append_null(),
                        }
                        continue;
                    }
                };
                match text {
                    Some(text) => builder.append_text(text.as_bytes()).map_err(|why| why.reason)?,
                    None => builder.append_null(),
                }
            }
        }
        Ok(())
    }

    /// A batch with the metadata of its rows.
    ///
    /// # Errors
    /// Internal when rows and notes do not agree.
    pub(super) fn attach(&mut self, batch: ChangeBatch) -> Result<ChangeBatch> {
        if self.columns.is_empty() {
            return Ok(batch);
        }
        let inner = batch.schema().clone();
        let schema = match self.extended.get(&inner.id) {
            Some((known, extended)) if Arc::ptr_eq(known, &inner) => extended.clone(),
            _ => {
                let extended = self.extend(&inner)?;
                self.extended.insert(inner.id.clone(), (inner.clone(), extended.clone()));
                extended
            }
        };
        let mut arrays = batch.rows().columns().to_vec();
        for builder in self.waiting.get_mut(&inner.id).into_iter().flatten() {
            arrays.push(builder.finish());
        }
        let rows = RecordBatch::try_new(arrow_schema(&schema), arrays).map_err(|error| {
            Error::internal(format!("metadata of {} does not fit", inner.id)).with_source(error)
        })?;
        let mut masks = batch.unchanged().map(<[_]>::to_vec).unwrap_or_default();
        masks.resize(if masks.is_empty() { 0 } else { schema.columns.len() }, None);
        let extended = ChangeBatch::new(schema, rows, batch.kinds().to_vec())?;
        Ok(extended.with_event_time(batch.event_time_ms).with_unchanged(masks))
    }
}
