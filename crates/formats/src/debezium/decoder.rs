//! Owns [`DebeziumDecoder`]: messages of Debezium to rows.

use std::sync::Arc;

use canalis_batch::ChangeBatch;
use canalis_types::{Result, RowKind, SchemaChangeKind, TableId, TableSchema};

use super::{
    BigintUnsignedMode, BinaryMode, DecimalMode, TimeMode, UNAVAILABLE,
    column::Plan,
    envelope::{Images, Operation, Payload, Side, enveloped, reuse, unwrapped},
    image::{self, Image, Placeholders},
    key,
    scalar::Scratch,
    schemas::{Layout, Schemas},
    tables::Located,
    topics::{Tables, Topics},
    wrapper::Wrapped,
};
use crate::{
    json::scan::Value,
    message::{Gatherer, Message, MessageDecoder, Slot, Step, StructureChange, Undecodable},
};

/// How a [`DebeziumDecoder`] reads. The modes are those that the topic was written with; where messages carry a schema, only
/// what the schema leaves open depends on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebeziumDecoderOptions {
    /// Decimals that are strings.
    pub decimal_mode: DecimalMode,
    /// `BIGINT UNSIGNED` that is a string.
    pub bigint_unsigned: BigintUnsignedMode,
    /// Bytes.
    pub binary_mode: BinaryMode,
    /// Dates and times that are numbers.
    pub time_mode: TimeMode,
    /// Values are rows alone, as the transform ExtractNewRecordState leaves them.
    pub unwrapped: bool,
    /// What stands for values that the database did not log.
    pub unavailable: String,
}

impl Default for DebeziumDecoderOptions {
    fn default() -> Self {
        Self {
            decimal_mode: DecimalMode::default(),
            bigint_unsigned: BigintUnsignedMode::default(),
            binary_mode: BinaryMode::default(),
            time_mode: TimeMode::default(),
            unwrapped: false,
            unavailable: UNAVAILABLE.to_owned(),
        }
    }
}

/// Decodes debezium-json.
#[derive(Debug)]
pub struct DebeziumDecoder {
    pub(super) options: DebeziumDecoderOptions,
    pub(super) rows: Gatherer<Plan>,
    pub(super) topics: Topics,
    pub(super) schemas: Schemas,
    placeholders: Placeholders,
    images: Images<'static>,
    cells: Vec<Option<Value<'static>>>,
    scratch: Scratch,
}

impl DebeziumDecoder {
    /// A decoder that knows these tables; without schemas in the messages it reads only them.
    pub fn new(options: DebeziumDecoderOptions, tables: Vec<Arc<TableSchema>>) -> Self {
        let mut rows = Gatherer::default();
        for table in tables {
            let plan = Plan::declared(&table, &options);
            rows.put(table, plan);
        }
        let layout = if options.unwrapped { Layout::Unwrapped } else { Layout::Enveloped };
        Self {
            rows,
            topics: Topics::default(),
            schemas: Schemas::new(layout),
            placeholders: Placeholders::new(&options.unavailable),
            options,
            images: Images::default(),
            cells: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    fn message<'a>(
        &mut self,
        message: &Message<'a>,
        images: &mut Images<'a>,
        cells: &mut Vec<Option<Value<'a>>>,
    ) -> std::result::Result<Step, Undecodable> {
        let topic = self.topics.number(message.topic);
        let Some(value) = message.value else { return self.tombstone(topic, message, images, cells) };
        let syntax = |why: &str| Undecodable::new(format!("the message is not JSON: {why}"));
        let mut wrapped = Wrapped::open(value, self.schemas.last_raw()).map_err(syntax)?;
        let payload = if self.options.unwrapped {
            unwrapped(&mut wrapped.scanner, images)
        } else {
            enveloped(&mut wrapped.scanner, images)
        };
        let payload = payload.map_err(Undecodable::new)?;
        wrapped.close().map_err(syntax)?;
        let Some(payload) = payload else { return self.tombstone(topic, message, images, cells) };
        if payload.operation == Operation::Aside {
            return Ok(Step::Ignored);
        }
        let index = match self.locate(topic, message, &payload.origin, wrapped.schema)? {
            Located::Slot(index) => index,
            Located::Change(change) => return Ok(Step::Structure(change)),
        };
        let slot = self.rows.slot(index);
        if payload.operation == Operation::Truncate {
            return Ok(Step::Structure(Box::new(truncation(slot))));
        }
        slot.begin();
        let bytes = value.len() + message.key.map_or(0, <[u8]>::len);
        let mut writer =
            Writer { slot, cells, placeholders: &self.placeholders, scratch: &mut self.scratch, bytes };
        writer.change(&payload, images, message.key, self.options.unwrapped).map_err(|why| {
            let slot = &mut *writer.slot;
            slot.undo();
            Undecodable::of(&slot.schema.id, why)
        })?;
        if let Some(ts_ms) = payload.origin.ts_ms
            && !payload.origin.is_snapshot
        {
            slot.builder.note_event_time(ts_ms);
        }
        self.rows.taken(bytes);
        let topic = self.topics.get(topic);
        topic.note(index);
        if let Some(key) = message.key {
            if payload.operation == Operation::Delete {
                topic.deleted(key);
            } else {
                topic.forget(key);
            }
        }
        Ok(Step::Taken)
    }

    /// A message without a value: nothing after the delete of its key, else a delete by key.
    fn tombstone<'a>(
        &mut self,
        topic: usize,
        message: &Message<'a>,
        images: &mut Images<'a>,
        cells: &mut Vec<Option<Value<'a>>>,
    ) -> std::result::Result<Step, Undecodable> {
        let Some(key) = message.key else { return Ok(Step::Ignored) };
        if self.topics.get(topic).forget(key) {
            return Ok(Step::Ignored);
        }
        let index = match self.topics.get(topic).tables {
            Tables::One(index) => Some(index),
            Tables::None => self.of_topic(message.topic),
            // Which of its tables the key is of nobody can tell.
            Tables::Many => None,
        };
        let Some(index) = index else { return Ok(Step::Ignored) };
        let slot = self.rows.slot(index);
        slot.begin();
        let mut writer = Writer {
            slot,
            cells,
            placeholders: &self.placeholders,
            scratch: &mut self.scratch,
            bytes: key.len(),
        };
        let outcome = writer.key_cells(Some(key), images).and_then(|found| {
            if found {
                writer.append(Image::Key)?;
                writer.end(RowKind::Delete);
            }
            Ok(found)
        });
        let found = outcome.map_err(|why| {
            let slot = &mut *writer.slot;
            slot.undo();
            Undecodable::of(&slot.schema.id, format!("tombstone: {why}"))
        })?;
        if !found {
            return Ok(Step::Ignored);
        }
        self.rows.taken(key.len());
        Ok(Step::Taken)
    }
}

fn truncation(slot: &Slot<Plan>) -> StructureChange {
    StructureChange {
        kind: SchemaChangeKind::Other("truncate.table".into()),
        before: Some(slot.schema.clone()),
        after: slot.schema.clone(),
        statement: format!("TRUNCATE TABLE {}", slot.schema.id),
        alone: true,
    }
}

/// Writes the rows of one message.
struct Writer<'w, 'a> {
    slot: &'w mut Slot<Plan>,
    cells: &'w mut Vec<Option<Value<'a>>>,
    placeholders: &'w Placeholders,
    scratch: &'w mut Scratch,
    /// Bytes of the message, for its first row.
    bytes: usize,
}

impl<'a> Writer<'_, 'a> {
    fn change(
        &mut self,
        payload: &Payload<'a>,
        images: &mut Images<'a>,
        key: Option<&'a [u8]>,
        is_alone: bool,
    ) -> std::result::Result<(), String> {
        let needs = |side: Side, name: &str| match side {
            Side::Object => Ok(()),
            Side::Absent => Err(format!("`{name}` is null or missing")),
            Side::Strange => Err(format!("`{name}` is no object")),
        };
        if payload.before == Side::Strange {
            return needs(Side::Strange, "before");
        }
        match payload.operation {
            Operation::Create => {
                needs(payload.after, "after")?;
                self.assign(&images.after)?;
                // A row alone does not tell an insert from an update; one that lacks values can only be an update.
                if is_alone && self.placeholders.any(&self.slot.plan, self.cells) {
                    return self.update_by_key();
                }
                self.append(Image::Insert)?;
                self.end(RowKind::Insert);
            }
            Operation::Update => {
                needs(payload.after, "after")?;
                if payload.before == Side::Absent {
                    self.assign(&images.after)?;
                    return self.update_by_key();
                }
                self.before(&images.before, payload.origin.is_postgres)?;
                self.end(RowKind::UpdateBefore);
                self.assign(&images.after)?;
                self.append(Image::After)?;
                self.end(RowKind::UpdateAfter);
            }
            Operation::Delete if is_alone => {
                self.before(&images.after, payload.origin.is_postgres)?;
                self.end(RowKind::Delete);
            }
            Operation::Delete if payload.before == Side::Object => {
                self.before(&images.before, payload.origin.is_postgres)?;
                self.end(RowKind::Delete);
            }
            Operation::Delete => {
                if !self.key_cells(key, images)? {
                    return Err(
                        "`before` is null or missing, and the message key is not that of the table".into()
                    );
                }
                self.append(Image::Key)?;
                self.end(RowKind::Delete);
            }
            Operation::Truncate | Operation::Aside => {}
        }
        Ok(())
    }

    /// An update of which only the row after it is known: the key tells which row it was.
    fn update_by_key(&mut self) -> std::result::Result<(), String> {
        if !self.slot.schema.has_key() {
            return Err("the row before the update is missing, and the table has no key to find it by".into());
        }
        self.append(Image::Key)?;
        self.end(RowKind::UpdateBefore);
        self.append(Image::After)?;
        self.end(RowKind::UpdateAfter);
        Ok(())
    }

    /// The image before a change. PostgreSQL logs only the key unless the table says otherwise; the rest is null then.
    fn before(
        &mut self,
        members: &[super::envelope::Member<'a>],
        is_postgres: bool,
    ) -> std::result::Result<(), String> {
        self.assign(members)?;
        let is_key =
            is_postgres && self.slot.schema.has_key() && image::is_key_only(&self.slot.plan, self.cells);
        self.append(if is_key { Image::Key } else { Image::Before })
    }

    /// Takes cells from the message key; false when it has not the whole key of the table.
    fn key_cells(
        &mut self,
        key: Option<&'a [u8]>,
        images: &mut Images<'a>,
    ) -> std::result::Result<bool, String> {
        let Some(key) = key else { return Ok(false) };
        key::parts(key, &mut images.before);
        self.assign(&images.before)?;
        let mut keys = self.slot.plan.columns.iter().zip(&*self.cells).filter(|(c, _)| c.is_key).peekable();
        Ok(keys.peek().is_some() && keys.all(|(_, cell)| cell.is_some()))
    }

    fn assign(&mut self, members: &[super::envelope::Member<'a>]) -> std::result::Result<(), String> {
        image::assign(&self.slot.plan, members, self.cells, self.scratch)
    }

    fn append(&mut self, image: Image) -> std::result::Result<(), String> {
        let Slot { plan, builder, .. } = &mut *self.slot;
        image::append(plan, builder, self.cells, image, self.placeholders, self.scratch)
    }

    fn end(&mut self, kind: RowKind) {
        self.slot.builder.end_row(kind, std::mem::take(&mut self.bytes));
    }
}

impl MessageDecoder for DebeziumDecoder {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let mut images = std::mem::take(&mut self.images).reuse();
        let mut cells = reuse(std::mem::take(&mut self.cells));
        let step = self.message(message, &mut images, &mut cells);
        self.images = images.reuse();
        self.cells = reuse(cells);
        step
    }

    fn apply(&mut self, change: &StructureChange) {
        let known = self.rows.find(&change.after.id).map(|index| &self.rows.slots()[index].schema);
        if known.is_none_or(|known| **known != *change.after) {
            let plan = Plan::declared(&change.after, &self.options);
            self.rows.put(change.after.clone(), plan);
        }
    }

    fn tables(&self) -> Vec<Arc<TableSchema>> {
        self.rows.tables()
    }

    fn rows(&self) -> usize {
        self.rows.rows()
    }

    fn newest(&self) -> Option<&TableId> {
        self.rows.newest()
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn take(&mut self) -> Result<Vec<ChangeBatch>> {
        self.rows.take()
    }
}
