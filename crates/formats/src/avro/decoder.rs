//! Owns [`AvroDecoder`]: messages in Avro to rows.

use std::{collections::HashMap, fmt, sync::Arc};

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind, SchemaChangeKind, TableId, TableSchema};

use super::{
    AvroKind, SchemaSource,
    bind::{Binding, Image, Op, Part, Plan, RowReader},
    column::Derived,
    envelope::{Envelope, Operation, Payload},
    read::Reader,
    schema::{Field, Schema},
    tables,
};
use crate::{
    debezium::{Tables, Topics, UNAVAILABLE},
    message::{Gatherer, Message, MessageDecoder, Step, StructureChange, Undecodable},
};

/// How an [`AvroDecoder`] reads.
#[derive(Clone)]
pub struct AvroDecoderOptions {
    /// What messages hold.
    pub kind: AvroKind,
    /// Where the schemas of messages come from, which have a header then.
    pub registry: Option<Arc<dyn SchemaSource>>,
    /// The schema of messages without a header.
    pub schema: Option<String>,
    /// Table of plain rows; without it each topic is one.
    pub table: Option<TableId>,
    /// Key columns of tables that are not declared; without them those that message keys have.
    pub primary_key: Vec<String>,
    /// Bytes of the longest message that is read.
    pub max_message_bytes: usize,
}

impl fmt::Debug for AvroDecoderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AvroDecoderOptions").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A schema that messages were written with.
#[derive(Debug)]
struct Loaded {
    schema: Arc<Schema>,
    /// Of a value in Debezium's form.
    envelope: std::result::Result<Envelope, String>,
}

/// Why a message is not taken.
enum Stop {
    Wrong(Undecodable),
    Failed(Error),
}

impl From<Undecodable> for Stop {
    fn from(why: Undecodable) -> Self {
        Self::Wrong(why)
    }
}

type Outcome<T> = std::result::Result<T, Stop>;

fn wrong<T>(why: impl Into<String>) -> Outcome<T> {
    Err(Stop::Wrong(Undecodable::new(why)))
}

/// Decodes Avro.
#[derive(Debug)]
pub struct AvroDecoder {
    options: AvroDecoderOptions,
    schemas: HashMap<Option<u32>, std::result::Result<Arc<Loaded>, String>>,
    rows: Gatherer<Plan>,
    topics: Topics,
    room: Vec<u8>,
}

/// A record of a message, with the schema that it was written with.
struct Record<'a> {
    origin: Option<u32>,
    loaded: Arc<Loaded>,
    bytes: &'a [u8],
}

enum Located {
    Slot(usize, Arc<Binding>),
    Change(Box<StructureChange>),
}

impl AvroDecoder {
    /// A decoder that knows these declared tables.
    pub fn new(options: AvroDecoderOptions, tables: Vec<Arc<TableSchema>>) -> Self {
        let mut rows = Gatherer::default();
        for table in tables {
            let plan = Plan::new(&table, true);
            rows.put(table, plan);
        }
        Self { options, schemas: HashMap::new(), rows, topics: Topics::default(), room: Vec::new() }
    }

    /// Takes the header off, and finds the schema.
    fn open<'a>(&mut self, part: &str, bytes: &'a [u8]) -> Outcome<Record<'a>> {
        let (origin, bytes) = if self.options.registry.is_some() {
            let header = bytes.split_first_chunk::<5>();
            let Some(([0, id @ ..], rest)) = header else {
                return wrong(format!(
                    "the message's {part} does not begin with the header of a schema registry"
                ));
            };
            (Some(u32::from_be_bytes(*id)), rest)
        } else {
            (None, bytes)
        };
        let loaded = match self.schemas.get(&origin) {
            Some(known) => known.clone(),
            None => {
                let text = match self.text(origin).map_err(Stop::Failed)? {
                    Ok(text) => text,
                    // A registry may know it later.
                    Err(why) => return wrong(why),
                };
                let loaded = load(origin, &text);
                self.schemas.insert(origin, loaded.clone());
                loaded
            }
        };
        match loaded {
            Ok(loaded) => Ok(Record { origin, loaded, bytes }),
            Err(why) => wrong(why),
        }
    }

    fn text(&self, origin: Option<u32>) -> Result<std::result::Result<String, String>> {
        match (origin, &self.options.registry, &self.options.schema) {
            (Some(id), Some(registry), _) => registry.by_id(id),
            (_, _, Some(text)) => Ok(Ok(text.clone())),
            _ => Ok(Err("neither a schema registry nor a schema is configured".to_owned())),
        }
    }

    fn message(&mut self, message: &Message<'_>) -> Outcome<Step> {
        let size = message.value.map_or(0, <[u8]>::len) + message.key.map_or(0, <[u8]>::len);
        if size > self.options.max_message_bytes {
            return wrong(format!("message is longer than {} bytes", self.options.max_message_bytes));
        }
        let topic = self.topics.number(message.topic);
        let Some(value) = message.value else { return self.tombstone(topic, message) };
        let record = self.open("value", value)?;
        match self.options.kind {
            AvroKind::Rows => self.row(topic, message, &record, size),
            AvroKind::Debezium => self.change(topic, message, &record, size),
        }
    }

    fn row(
        &mut self,
        topic: usize,
        message: &Message<'_>,
        record: &Record<'_>,
        size: usize,
    ) -> Outcome<Step> {
        let root = record.loaded.schema.root;
        let found = self.topics.get(topic).last.or_else(|| self.rows.find(&self.table_of(message.topic)));
        let id = match found {
            Some(_) => None,
            None => Some(self.table_of(message.topic)),
        };
        let (index, binding) = match self.locate(found, id, message, record, root)? {
            Located::Slot(index, binding) => (index, binding),
            Located::Change(change) => return Ok(Step::Structure(change)),
        };
        self.write(index, size, message.timestamp_ms, |writer| {
            let left = writer.image(record.bytes, &binding, Image::Insert, RowKind::Insert)?;
            if left > 0 { Err("there are bytes behind the row".to_owned()) } else { Ok(()) }
        })?;
        self.topics.get(topic).note(index);
        Ok(Step::Taken)
    }

    fn change(
        &mut self,
        topic: usize,
        message: &Message<'_>,
        record: &Record<'_>,
        size: usize,
    ) -> Outcome<Step> {
        let envelope = record.loaded.envelope.as_ref().map_err(|why| Undecodable::new(why.clone()))?;
        let payload = envelope.open(&record.loaded.schema, record.bytes);
        let payload = payload.map_err(|why| Undecodable::new(format!("the envelope: {why}")))?;
        let Some(operation) = payload.operation.filter(|o| *o != Operation::Aside) else {
            return Ok(Step::Ignored);
        };
        let (found, id) = self.origin(topic, message.topic, &payload)?;
        let (index, binding) = match self.locate(found, id, message, record, envelope.row)? {
            Located::Slot(index, binding) => (index, binding),
            Located::Change(change) => return Ok(Step::Structure(change)),
        };
        if operation == Operation::Truncate {
            return Ok(Step::Structure(Box::new(truncation(&self.rows.slot(index).schema))));
        }
        let key = match (operation, payload.before) {
            (Operation::Delete, None) => self.key(index, message)?,
            _ => None,
        };
        let time = payload.ts_ms.filter(|_| !payload.is_snapshot);
        self.write(index, size, time, |writer| writer.change(operation, &payload, &binding, key.as_ref()))?;
        let topic = self.topics.get(topic);
        topic.note(index);
        if let Some(key) = message.key {
            if operation == Operation::Delete {
                topic.deleted(key);
            } else {
                topic.forget(key);
            }
        }
        Ok(Step::Taken)
    }

    /// The table that a message says it is of: a slot, or the id of one that is new.
    fn origin(
        &mut self,
        topic: usize,
        name: &str,
        payload: &Payload<'_>,
    ) -> Outcome<(Option<usize>, Option<TableId>)> {
        let outer = payload.schema.or(payload.database);
        if let Some(table) = payload.table {
            if let Some(last) = self.topics.get(topic).last {
                let id = &self.rows.slot(last).schema.id;
                if id.namespace.is_none() && id.table == table && id.schema.as_deref() == outer {
                    return Ok((Some(last), None));
                }
            }
            let id = TableId { namespace: None, schema: outer.map(str::to_owned), table: table.to_owned() };
            return Ok(self.rows.find(&id).map_or_else(|| (None, Some(id)), |found| (Some(found), None)));
        }
        let mut parts = name.rsplit('.').filter(|part| !part.is_empty());
        let Some(table) = parts.next() else { return wrong("neither `source` nor the topic names a table") };
        let id =
            TableId { namespace: None, schema: parts.next().map(str::to_owned), table: table.to_owned() };
        Ok(self.rows.find(&id).map_or_else(|| (None, Some(id)), |found| (Some(found), None)))
    }

    fn table_of(&self, topic: &str) -> TableId {
        if let (None, [only]) = (&self.options.table, self.rows.slots())
            && only.plan.declared
        {
            return only.schema.id.clone();
        }
        self.options.table.clone().unwrap_or_else(|| TableId::bare(topic))
    }

    /// How the records of a schema are rows of a table, or how the table has to change first.
    fn locate(
        &mut self,
        found: Option<usize>,
        id: Option<TableId>,
        message: &Message<'_>,
        record: &Record<'_>,
        node: usize,
    ) -> Outcome<Located> {
        if let Some(index) = found
            && let Some(binding) = self.rows.slot(index).plan.binding(Part::Row, record.origin)
        {
            return Ok(Located::Slot(index, binding));
        }
        let schema = &record.loaded.schema;
        let id = match found {
            Some(index) => self.rows.slot(index).schema.id.clone(),
            None => id.ok_or_else(|| Stop::Failed(Error::internal("a message of no table")))?,
        };
        let refuse = |why: String| Stop::Wrong(Undecodable::of(&id, why));
        let Some((_, fields)) = schema.record(node) else {
            return Err(refuse("the schema is not that of a record".to_owned()));
        };
        let derived = derive(schema, fields).map_err(refuse)?;
        let Some(index) = found else {
            let key = self.key_names(message, fields)?;
            let change = tables::create(&id, fields, &derived, key).map_err(refuse)?;
            return Ok(Located::Change(Box::new(change)));
        };
        let slot = self.rows.slot(index);
        if let Some(change) = tables::change(slot, fields, &derived) {
            return Ok(Located::Change(Box::new(change)));
        }
        Ok(Located::Slot(index, slot.plan.bind(Part::Row, record.origin, schema, fields, derived)))
    }

    fn key_names(&mut self, message: &Message<'_>, fields: &[Field]) -> Outcome<Vec<String>> {
        if !self.options.primary_key.is_empty() || self.options.registry.is_none() {
            return Ok(self.options.primary_key.clone());
        }
        let Some(key) = message.key else { return Ok(Vec::new()) };
        match self.open("key", key) {
            Ok(record) => {
                let schema = &record.loaded.schema;
                let names = schema.record(schema.root).map_or(&[][..], |(_, fields)| fields).iter();
                let is_column = |name: &&String| fields.iter().any(|f| f.name == **name);
                Ok(names.map(|f| &f.name).filter(is_column).cloned().collect())
            }
            // A key in another form tells no names.
            Err(Stop::Wrong(_)) => Ok(Vec::new()),
            Err(failed) => Err(failed),
        }
    }

    /// The key of a message as a record of the table's key columns; `None` when it has not all of them.
    fn key<'a>(&mut self, index: usize, message: &Message<'a>) -> Outcome<Option<(&'a [u8], Arc<Binding>)>> {
        let Some(key) = message.key else { return Ok(None) };
        if self.rows.slot(index).schema.primary_key.is_empty() {
            return Ok(None);
        }
        let record = match self.open("key", key) {
            Ok(record) => record,
            Err(Stop::Wrong(_)) => return Ok(None),
            Err(failed) => return Err(failed),
        };
        let plan = &mut self.rows.slot(index).plan;
        let binding = match plan.binding(Part::Key, record.origin) {
            Some(binding) => binding,
            None => {
                let Some(binding) = bind_key(plan, &record, self.options.kind) else { return Ok(None) };
                binding
            }
        };
        let is_whole = !binding.missing.iter().any(|column| plan.columns[*column].is_key);
        Ok(is_whole.then_some((record.bytes, binding)))
    }

    /// A message without a value: nothing after the delete of its key, else a delete by key.
    fn tombstone(&mut self, topic: usize, message: &Message<'_>) -> Outcome<Step> {
        let Some(key) = message.key else { return Ok(Step::Ignored) };
        let seen = self.topics.get(topic);
        if seen.forget(key) {
            return Ok(Step::Ignored);
        }
        let index = match (seen.tables, self.options.kind) {
            (Tables::One(index), _) => Some(index),
            (Tables::None, AvroKind::Rows) => self.rows.find(&self.table_of(message.topic)),
            (Tables::None, AvroKind::Debezium) => self.origin(topic, message.topic, &Payload::default())?.0,
            // Which of its tables the key is of nobody can tell.
            (Tables::Many, _) => None,
        };
        let Some(index) = index else { return Ok(Step::Ignored) };
        let Some((bytes, binding)) = self.key(index, message)? else { return Ok(Step::Ignored) };
        self.write(index, key.len(), message.timestamp_ms, |writer| {
            writer.image(bytes, &binding, Image::Key, RowKind::Delete).map(|_| ())
        })?;
        Ok(Step::Taken)
    }

    /// Writes the rows of one message, or none of them.
    fn write(
        &mut self,
        index: usize,
        bytes: usize,
        time: Option<i64>,
        rows: impl FnOnce(&mut Writer<'_>) -> std::result::Result<(), String>,
    ) -> Outcome<()> {
        let slot = self.rows.slot(index);
        slot.begin();
        let unavailable = match self.options.kind {
            AvroKind::Rows => &b""[..],
            AvroKind::Debezium => UNAVAILABLE.as_bytes(),
        };
        let mut writer =
            Writer { plan: &slot.plan, builder: &mut slot.builder, room: &mut self.room, unavailable, bytes };
        if let Err(why) = rows(&mut writer) {
            slot.undo();
            return Err(Undecodable::of(&slot.schema.id, why).into());
        }
        if let Some(time) = time {
            slot.builder.note_event_time(time);
        }
        self.rows.taken(bytes);
        Ok(())
    }
}

fn load(origin: Option<u32>, text: &str) -> std::result::Result<Arc<Loaded>, String> {
    let schema = Schema::parse(text).map_err(|why| match origin {
        Some(id) => format!("schema {id}: {why}"),
        None => why,
    })?;
    let envelope = Envelope::of(&schema);
    Ok(Arc::new(Loaded { schema: Arc::new(schema), envelope }))
}

fn derive(schema: &Schema, fields: &[Field]) -> std::result::Result<Vec<Derived>, String> {
    let of = |field: &Field| {
        Derived::of(schema, field.node).map_err(|why| format!("column `{}`: {why}", field.name))
    };
    fields.iter().map(of).collect()
}

fn bind_key(plan: &mut Plan, record: &Record<'_>, kind: AvroKind) -> Option<Arc<Binding>> {
    let schema = &record.loaded.schema;
    if record.origin.is_none() {
        // Without a registry the key is a record of the key columns, in the types of the row.
        let row = match plan.binding(Part::Row, None) {
            Some(row) => row,
            None => {
                let root = match kind {
                    AvroKind::Rows => schema.root,
                    AvroKind::Debezium => record.loaded.envelope.as_ref().ok()?.row,
                };
                let (_, fields) = schema.record(root)?;
                let derived = derive(schema, fields).ok()?;
                plan.bind(Part::Row, None, schema, fields, derived)
            }
        };
        let is_key = |op: &&Op| op.target.is_some_and(|at| plan.columns[at].is_key);
        let ops = row.ops.iter().filter(is_key);
        let ops =
            ops.map(|op| Op { target: op.target, node: op.node, derived: op.derived.clone() }).collect();
        return Some(plan.add(Part::Key, None, schema, ops));
    }
    if let Some((_, fields)) = schema.record(schema.root) {
        let derived = derive(schema, fields).ok()?;
        return Some(plan.bind(Part::Key, record.origin, schema, fields, derived));
    }
    // A key that is no record is that of the only key column.
    let mut keys = (0..plan.columns.len()).filter(|at| plan.columns[*at].is_key);
    let (Some(only), None) = (keys.next(), keys.next()) else { return None };
    let derived = Derived::of(schema, schema.root).ok()?;
    let op = Op { target: Some(only), node: schema.root, derived };
    Some(plan.add(Part::Key, record.origin, schema, vec![op]))
}

fn truncation(schema: &Arc<TableSchema>) -> StructureChange {
    StructureChange {
        kind: SchemaChangeKind::Other("truncate.table".into()),
        before: Some(schema.clone()),
        after: schema.clone(),
        statement: format!("TRUNCATE TABLE {}", schema.id),
        alone: true,
    }
}

/// Writes the rows of one message.
struct Writer<'w> {
    plan: &'w Plan,
    builder: &'w mut canalis_batch::BatchBuilder,
    room: &'w mut Vec<u8>,
    unavailable: &'w [u8],
    /// Bytes of the message, for its first row.
    bytes: usize,
}

impl Writer<'_> {
    /// Appends a row; bytes that are left behind it.
    fn image(
        &mut self,
        bytes: &[u8],
        binding: &Binding,
        image: Image,
        kind: RowKind,
    ) -> std::result::Result<usize, String> {
        let mut row = RowReader {
            plan: self.plan,
            binding,
            reader: Reader::new(bytes),
            room: self.room,
            unavailable: self.unavailable,
        };
        row.append(self.builder, image)?;
        let left = row.reader.left();
        self.builder.end_row(kind, std::mem::take(&mut self.bytes));
        Ok(left)
    }

    fn change(
        &mut self,
        operation: Operation,
        payload: &Payload<'_>,
        binding: &Binding,
        key: Option<&(&[u8], Arc<Binding>)>,
    ) -> std::result::Result<(), String> {
        let after = || payload.after.ok_or_else(|| "`after` is null".to_owned());
        match operation {
            Operation::Create => {
                self.image(after()?, binding, Image::Insert, RowKind::Insert)?;
            }
            Operation::Update => {
                let after = after()?;
                match payload.before {
                    Some(before) => self.before(before, payload, binding, RowKind::UpdateBefore)?,
                    None if !self.plan.columns.iter().any(|c| c.is_key) => {
                        return Err("`before` is null, and the table has no key to find the row by".into());
                    }
                    // The key tells which row it was.
                    None => {
                        self.image(after, binding, Image::Key, RowKind::UpdateBefore)?;
                    }
                }
                self.image(after, binding, Image::After, RowKind::UpdateAfter)?;
            }
            Operation::Delete => match (payload.before, key) {
                (Some(before), _) => self.before(before, payload, binding, RowKind::Delete)?,
                (None, Some((bytes, binding))) => {
                    self.image(bytes, binding, Image::Key, RowKind::Delete)?;
                }
                (None, None) => {
                    return Err("`before` is null, and the message key is not that of the table".into());
                }
            },
            Operation::Truncate | Operation::Aside => {}
        }
        Ok(())
    }

    /// The image before a change. PostgreSQL logs only the key unless the table says otherwise; the rest is null then.
    fn before(
        &mut self,
        bytes: &[u8],
        payload: &Payload<'_>,
        binding: &Binding,
        kind: RowKind,
    ) -> std::result::Result<(), String> {
        let is_key = payload.is_postgres && self.is_key_only(bytes, binding)?;
        self.image(bytes, binding, if is_key { Image::Key } else { Image::Before }, kind)?;
        Ok(())
    }

    /// Whether all cells beside the key are null, and there are any.
    fn is_key_only(&self, bytes: &[u8], binding: &Binding) -> std::result::Result<bool, String> {
        let mut reader = Reader::new(bytes);
        let (mut keys, mut others) = (false, false);
        for op in &binding.ops {
            let is_key = op.target.is_some_and(|at| self.plan.columns[at].is_key);
            let mut ahead = reader.clone();
            let is_null = match &op.derived.union {
                Some((branches, null)) => Some(ahead.index(branches.len())?) == *null,
                None => false,
            };
            if !is_key && op.target.is_some() && !is_null {
                return Ok(false);
            }
            keys |= is_key;
            others |= !is_key;
            reader.skip(&binding.schema, op.node, super::read::DEPTH)?;
        }
        Ok(keys && others)
    }
}

impl MessageDecoder for AvroDecoder {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        match self.message(message) {
            Ok(step) => Ok(step),
            Err(Stop::Wrong(why)) => Err(why),
            Err(Stop::Failed(error)) => Ok(Step::Failed(Box::new(error))),
        }
    }

    fn apply(&mut self, change: &StructureChange) {
        let mut plan = Plan::new(&change.after, false);
        if let Some(index) = self.rows.find(&change.after.id) {
            let slot = self.rows.slot(index);
            if slot.schema == change.after {
                return;
            }
            plan.inherit(std::mem::replace(&mut slot.plan, Plan::new(&change.after, false)));
        }
        self.rows.put(change.after.clone(), plan);
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
