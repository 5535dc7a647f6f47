//! Owns [`CanalDecoder`]: which table a message is about, and what becomes of it.

use std::{collections::HashMap, sync::Arc};

use canalis_batch::ChangeBatch;
use canalis_types::{Result, RowKind, SchemaChangeKind, TableId, TableSchema};

use super::{
    Zone,
    envelope::{Envelope, Expected, Rows, plain},
    plan::{Authority, Plan, Room},
    structure,
};
use crate::message::{Gatherer, Message, MessageDecoder, Step, StructureChange, Undecodable};

/// How a [`CanalDecoder`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CanalDecoderOptions {
    /// Zone of TIMESTAMP texts: that of the JVM in which Canal runs.
    pub time_zone: Zone,
}

/// Reads canal-json.
///
/// Tables that are given are declared: their types and key stand, and columns that they leave out are left out. All other
/// tables are made known by their first message with rows, a [`Step::Structure`]; so are new columns and changed types.
/// A column that has been dropped stays, with NULL in new rows. Tables that an earlier run has learnt are given back by
/// [`MessageDecoder::apply`], so that they go on changing.
#[derive(Debug)]
pub struct CanalDecoder {
    options: CanalDecoderOptions,
    gatherer: Gatherer<Plan>,
    /// Tables by database, a zero byte, and name.
    by_name: HashMap<Vec<u8>, usize>,
    name: Vec<u8>,
    /// Table of the message before, which is likely that of the next.
    last: usize,
    declared: usize,
    rows: [Rows<'static>; 2],
    room: Room,
}

impl CanalDecoder {
    /// A decoder that knows `tables`.
    pub fn new(options: CanalDecoderOptions, tables: Vec<Arc<TableSchema>>) -> Self {
        let mut decoder = Self {
            options,
            gatherer: Gatherer::default(),
            by_name: HashMap::new(),
            name: Vec::new(),
            last: 0,
            declared: tables.len(),
            rows: [Rows::default(), Rows::default()],
            room: Room::default(),
        };
        for schema in tables {
            decoder.put(schema, Authority::Declaration);
        }
        decoder
    }

    fn put(&mut self, schema: Arc<TableSchema>, authority: Authority) {
        let name = full_name(schema.id.schema.as_deref().unwrap_or_default(), &schema.id.table);
        let plan = Plan::new(&schema, authority);
        let index = self.gatherer.put(schema, plan);
        self.by_name.insert(name, index);
    }

    fn message<'a>(&mut self, bytes: &'a [u8], [data, old]: [&mut Rows<'a>; 2]) -> Result<Step, Undecodable> {
        let expected = self.gatherer.slots().get(self.last).map_or(Expected::default(), |slot| Expected {
            mysql_type: &slot.plan.mysql_type,
            sql_type: &slot.plan.sql_type,
        });
        let envelope = Envelope::read(bytes, data, old, expected).map_err(Undecodable::new)?;
        let Some(kind) = envelope.kind else { return Err(Undecodable::new("`type` is missing")) };
        let kind = plain(kind).map_err(Undecodable::new)?;
        let is = |word: &str| kind.eq_ignore_ascii_case(word.as_bytes());
        let rows =
            [("INSERT", RowKind::Insert), ("UPDATE", RowKind::UpdateAfter), ("DELETE", RowKind::Delete)];
        match rows.into_iter().find(|(word, _)| is(word)) {
            Some(_) if envelope.is_ddl => {
                Err(Undecodable::new("`isDdl` is true, but `type` is that of rows"))
            }
            Some((_, kind)) => self.change_of_rows(bytes, &envelope, kind, [data, old]),
            None => {
                let tag = ["TRUNCATE", "ERASE", "RENAME"].into_iter().zip(STATEMENTS).find(|(w, _)| is(w));
                tag.map_or(Ok(Step::Ignored), |(_, tag)| self.statement(&envelope, tag))
            }
        }
    }

    fn statement(&mut self, envelope: &Envelope<'_>, tag: &str) -> Result<Step, Undecodable> {
        let text = |text| -> Result<String, Undecodable> {
            let bytes = plain(text).map_err(Undecodable::new)?;
            String::from_utf8(bytes.into_owned()).map_err(|_| Undecodable::new("message is not UTF-8"))
        };
        let database = envelope.database.map(text).transpose()?.unwrap_or_default();
        let table = envelope.table.map(text).transpose()?.unwrap_or_default();
        if table.is_empty() {
            return Ok(Step::Ignored);
        }
        let known = self.find(database.as_bytes(), table.as_bytes());
        let known = known.map(|index| &self.gatherer.slots()[index]);
        let before = known.filter(|slot| slot.plan.authority != Authority::Dropped).map(|s| s.schema.clone());
        let after = before
            .clone()
            .unwrap_or_else(|| Arc::new(TableSchema::new(id(database, table), Vec::new(), Vec::new())));
        let statement = envelope.sql.map(text).transpose()?.unwrap_or_default();
        let kind = SchemaChangeKind::Other(tag.to_owned());
        Ok(Step::Structure(Box::new(StructureChange { kind, before, after, statement, alone: true })))
    }

    fn change_of_rows(
        &mut self,
        bytes: &[u8],
        envelope: &Envelope<'_>,
        kind: RowKind,
        [data, old]: [&Rows<'_>; 2],
    ) -> Result<Step, Undecodable> {
        let index = match self.table(envelope)? {
            Ok(index) => index,
            Err(id) => return unknown_table(id, envelope),
        };
        self.last = index;
        let slot = self.gatherer.slot(index);
        let undecodable = |reason: String| Undecodable::of(&slot.schema.id, reason);
        if let Some(change) = look(&slot.schema, &mut slot.plan, envelope).map_err(undecodable)? {
            return Ok(Step::Structure(Box::new(change)));
        }
        if !data.is_present() {
            return Err(undecodable("`data` is missing".to_owned()));
        }
        if kind == RowKind::UpdateAfter && old.is_present() && old.len() != data.len() {
            return Err(undecodable("`old` and `data` have different numbers of rows".to_owned()));
        }
        if data.len() == 0 {
            return Ok(Step::Ignored);
        }
        slot.begin();
        let rows = [data, old];
        if let Err(reason) =
            slot.plan.append(&mut slot.builder, kind, rows, self.options.time_zone, &mut self.room)
        {
            slot.undo();
            return Err(Undecodable::of(&slot.schema.id, reason));
        }
        if let Some(millis) = envelope.event_time {
            slot.builder.note_event_time(millis);
        }
        self.gatherer.taken(bytes.len());
        Ok(Step::Taken)
    }

    /// The table of a message, or its name when it is not known.
    fn table(&mut self, envelope: &Envelope<'_>) -> Result<Result<usize, TableId>, Undecodable> {
        let name = |text| plain(text).map_err(Undecodable::new);
        let database = envelope.database.map(name).transpose()?.unwrap_or_default();
        let table = envelope.table.map(name).transpose()?.unwrap_or_default();
        if table.is_empty() {
            // Flink writes no names: there is one table then.
            return match self.declared {
                1 => Ok(Ok(0)),
                _ => Err(Undecodable::new("`table` is missing")),
            };
        }
        if let Some(slot) = self.gatherer.slots().get(self.last)
            && slot.schema.id.table.as_bytes() == &*table
            && slot.schema.id.schema.as_deref().unwrap_or_default().as_bytes() == &*database
            && slot.plan.authority != Authority::Dropped
        {
            return Ok(Ok(self.last));
        }
        match self.find(&database, &table) {
            Some(index) if self.gatherer.slots()[index].plan.authority != Authority::Dropped => Ok(Ok(index)),
            _ => {
                let text = |name: &[u8]| {
                    let text = std::str::from_utf8(name).map(str::to_owned);
                    text.map_err(|_| Undecodable::new("the table's name is not UTF-8"))
                };
                Ok(Err(id(text(&database)?, text(&table)?)))
            }
        }
    }

    fn find(&mut self, database: &[u8], table: &[u8]) -> Option<usize> {
        self.name.clear();
        self.name.extend_from_slice(database);
        self.name.push(0);
        self.name.extend_from_slice(table);
        self.by_name.get(&self.name).copied()
    }
}

/// Tags of TRUNCATE, ERASE and RENAME.
const STATEMENTS: [&str; 3] = ["truncate.table", DROP_TABLE, "rename.table"];
const DROP_TABLE: &str = "drop.table";

fn full_name(database: &str, table: &str) -> Vec<u8> {
    [database.as_bytes(), &[0], table.as_bytes()].concat()
}

fn id(database: String, table: String) -> TableId {
    if database.is_empty() { TableId::bare(table) } else { TableId::new(database, table) }
}

fn unknown_table(id: TableId, envelope: &Envelope<'_>) -> Result<Step, Undecodable> {
    let Some(raw) = envelope.mysql_type else {
        return Err(Undecodable::of(
            &id,
            "structure of the table is not known: the message has no `mysqlType`; declare the table",
        ));
    };
    let key = envelope.pk_names.map(structure::key_names).transpose();
    let change =
        key.and_then(|key| structure::create(id.clone(), &structure::observe(raw)?, key.unwrap_or_default()));
    match change {
        Ok(change) => Ok(Step::Structure(Box::new(change))),
        Err(reason) => Err(Undecodable::of(&id, reason)),
    }
}

/// Looks whether a message tells another structure; else prepares the plan for the way it writes values. What a message
/// has in the very bytes of the one before is not looked at.
fn look(
    schema: &Arc<TableSchema>,
    plan: &mut Plan,
    envelope: &Envelope<'_>,
) -> Result<Option<StructureChange>, String> {
    let differs = |field: Option<&[u8]>, known: &[u8]| field.is_some_and(|raw| raw != known);
    let types = differs(envelope.mysql_type, &plan.mysql_type);
    let key = plan.authority == Authority::Messages && differs(envelope.pk_names, &plan.pk_names);
    let numbers = differs(envelope.sql_type, &plan.sql_type);
    if !types && !key && !numbers {
        return Ok(None);
    }
    let raw_types = envelope.mysql_type.unwrap_or(&plan.mysql_type);
    if types || key || plan.uses_sql_type() {
        let observed = if raw_types.is_empty() { Vec::new() } else { structure::observe(raw_types)? };
        if plan.authority == Authority::Messages && (types || key) {
            let names = envelope.pk_names.map(structure::key_names).transpose()?;
            if let Some(change) = structure::difference(schema, &observed, names)? {
                return Ok(Some(change));
            }
        }
        plan.expect(&observed, envelope.sql_type)?;
    }
    let note = |field: Option<&[u8]>, known: &mut Vec<u8>| {
        if let Some(raw) = field {
            known.clear();
            known.extend_from_slice(raw);
        }
    };
    note(envelope.mysql_type, &mut plan.mysql_type);
    note(envelope.sql_type, &mut plan.sql_type);
    note(envelope.pk_names, &mut plan.pk_names);
    Ok(None)
}

impl MessageDecoder for CanalDecoder {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let Some(bytes) = message.value else { return Ok(Step::Ignored) };
        let [data, old] = std::mem::take(&mut self.rows);
        let (mut data, mut old) = (data.recycle(), old.recycle());
        let outcome = self.message(bytes, [&mut data, &mut old]);
        self.rows = [data.recycle(), old.recycle()];
        outcome
    }

    fn apply(&mut self, change: &StructureChange) {
        if !change.alone {
            return self.put(change.after.clone(), Authority::Messages);
        }
        let is_drop = matches!(&change.kind, SchemaChangeKind::Other(tag) if tag == DROP_TABLE);
        if is_drop && let Some(index) = self.gatherer.find(&change.after.id) {
            let slot = self.gatherer.slot(index);
            if slot.plan.authority == Authority::Messages {
                slot.plan.authority = Authority::Dropped;
            }
        }
    }

    fn tables(&self) -> Vec<Arc<TableSchema>> {
        let slots = self.gatherer.slots().iter();
        slots.filter(|s| s.plan.authority != Authority::Dropped).map(|s| s.schema.clone()).collect()
    }

    fn rows(&self) -> usize {
        self.gatherer.rows()
    }

    fn newest(&self) -> Option<&TableId> {
        self.gatherer.newest()
    }

    fn bytes(&self) -> usize {
        self.gatherer.bytes()
    }

    fn take(&mut self) -> Result<Vec<ChangeBatch>> {
        self.gatherer.take()
    }
}
