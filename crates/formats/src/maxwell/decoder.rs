//! Owns [`MaxwellDecoder`].

use std::{collections::HashMap, sync::Arc};

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_types::{Result, RowKind, SchemaChangeKind, TableId, TableSchema};

use super::{
    column::{ColumnReader, Scratch},
    definition,
    envelope::{Envelope, Members, plain, plain_str, recycle},
};
use crate::{
    json::{UnknownMembers, scan::Value},
    message::{Gatherer, Message, MessageDecoder, Slot, Step, StructureChange, Undecodable},
};

/// How a [`MaxwellDecoder`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxwellDecoderOptions {
    /// Members of `data` and `old` that are no columns.
    pub unknown: UnknownMembers,
    /// Bytes of the longest message that is read.
    pub max_message_bytes: usize,
}

impl Default for MaxwellDecoderOptions {
    fn default() -> Self {
        Self { unknown: UnknownMembers::Refuse, max_message_bytes: 64 << 20 }
    }
}

/// Reads maxwell-json. Unknown types of messages, bootstraps' beginnings and ends, and messages without payload are passed over.
#[derive(Debug)]
pub struct MaxwellDecoder {
    options: MaxwellDecoderOptions,
    rows: Gatherer<Plan>,
    /// Tables that were declared.
    declared: usize,
    /// Database, table, place.
    by_name: HashMap<Vec<u8>, HashMap<Vec<u8>, usize>>,
    data: Members<'static>,
    old: Members<'static>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Plan {
    columns: Vec<ColumnReader>,
    key: Vec<usize>,
    /// For each member of the last `data` and `old`, its column.
    order: [Vec<usize>; 2],
    /// For each column, the member of `data` and `old` that holds its value.
    data: Vec<Option<usize>>,
    old: Vec<Option<usize>>,
}

impl Plan {
    fn new(schema: &TableSchema) -> Self {
        Self {
            columns: schema.columns.iter().map(ColumnReader::new).collect(),
            key: schema.key_indexes(),
            order: [Vec::new(), Vec::new()],
            data: vec![None; schema.columns.len()],
            old: vec![None; schema.columns.len()],
        }
    }
}

/// What a message of rows is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Delete,
}

impl MaxwellDecoder {
    /// A decoder that knows these tables. A table without a schema part is found in any database; messages that name no table,
    /// as Flink writes them, are of the declared one if there is but one.
    pub fn new(options: MaxwellDecoderOptions, tables: Vec<Arc<TableSchema>>) -> Self {
        let mut decoder = Self {
            options,
            rows: Gatherer::default(),
            declared: tables.len(),
            by_name: HashMap::new(),
            data: Vec::new(),
            old: Vec::new(),
            scratch: Scratch::default(),
        };
        for table in tables {
            decoder.put(table);
        }
        decoder
    }

    fn put(&mut self, table: Arc<TableSchema>) {
        let database = table.id.schema.clone().unwrap_or_default().into_bytes();
        let name = table.id.table.clone().into_bytes();
        let plan = Plan::new(&table);
        let index = self.rows.put(table, plan);
        self.by_name.entry(database).or_default().insert(name, index);
    }

    fn find(&self, database: &[u8], table: &[u8]) -> Option<usize> {
        if table.is_empty() {
            return (self.declared == 1 && database.is_empty()).then_some(0);
        }
        let among = |database: &[u8]| self.by_name.get(database)?.get(table).copied();
        among(database).or_else(|| among(b""))
    }

    fn message<'a>(
        &mut self,
        bytes: &'a [u8],
        data: &mut Members<'a>,
        old: &mut Members<'a>,
    ) -> std::result::Result<Step, Undecodable> {
        data.clear();
        old.clear();
        let envelope = Envelope::read(bytes, data, old).map_err(Undecodable::new)?;
        let Some(kind) = envelope.kind else { return Err(Undecodable::new("`type` is missing")) };
        let kind = plain(kind).map_err(Undecodable::new)?;
        let is = |word: &str| kind.eq_ignore_ascii_case(word.as_bytes());
        let kind = match () {
            () if is("insert") || is("bootstrap-insert") => Kind::Insert,
            () if is("update") => Kind::Update,
            () if is("delete") => Kind::Delete,
            () if is("table-create") || is("table-alter") || is("table-drop") => {
                return self.structure(&envelope, is("table-drop"));
            }
            () => return Ok(Step::Ignored),
        };
        let text = |text| match text {
            Some(text) => plain(text).map_err(Undecodable::new),
            None => Ok(b"".as_slice().into()),
        };
        let (database, table) = (text(envelope.database)?, text(envelope.table)?);
        let Some(index) = self.find(&database, &table) else {
            return Err(unknown_table(&envelope));
        };
        let slot = self.rows.slot(index);
        if !envelope.has_data {
            let why = if envelope.encrypted { "`data` is encrypted" } else { "`data` is missing" };
            return Err(Undecodable::of(&slot.schema.id, why));
        }
        slot.begin();
        match append(slot, kind, [data, old], self.options.unknown, &mut self.scratch) {
            Ok(()) => {
                if let Some(seconds) = envelope.time {
                    slot.builder.note_event_time(seconds.saturating_mul(1000));
                }
                self.rows.taken(bytes.len());
                Ok(Step::Taken)
            }
            Err(reason) => {
                slot.undo();
                Err(Undecodable::of(&slot.schema.id, reason))
            }
        }
    }

    fn structure(&self, envelope: &Envelope<'_>, drop: bool) -> std::result::Result<Step, Undecodable> {
        let Some(id) = table_id(envelope) else {
            return Err(Undecodable::new("message of a changed table does not name it"));
        };
        let wrong = |why: String| Undecodable::of(&id, why);
        let statement =
            envelope.sql.map(plain_str).transpose().map_err(wrong)?.unwrap_or_default().into_owned();
        let known = self.find(id.schema.as_deref().unwrap_or_default().as_bytes(), id.table.as_bytes());
        let before = known.map(|index| self.rows.slots()[index].schema.clone());
        let change = match (drop, before, envelope.definition) {
            (true, None, _) => None,
            (true, Some(before), _) => Some(StructureChange {
                kind: SchemaChangeKind::Other("drop.table".to_owned()),
                before: Some(before.clone()),
                after: before,
                statement,
                alone: true,
            }),
            (false, _, None) => return Err(wrong("`def` is missing".to_owned())),
            (false, before, Some(raw)) => {
                // A table that was declared without its database keeps its id.
                let id = before.as_ref().map_or_else(|| id.clone(), |b| b.id.clone());
                definition::change(before, definition::table(id, raw).map_err(wrong)?, statement)
            }
        };
        Ok(change.map_or(Step::Ignored, |change| Step::Structure(Box::new(change))))
    }
}

fn table_id(envelope: &Envelope<'_>) -> Option<TableId> {
    let text = |text: Option<_>| text.and_then(|t| plain_str(t).ok()).filter(|t| !t.is_empty());
    let table = text(envelope.table)?;
    Some(match text(envelope.database) {
        Some(database) => TableId::new(database, table),
        None => TableId::bare(table),
    })
}

fn unknown_table(envelope: &Envelope<'_>) -> Undecodable {
    match table_id(envelope) {
        None => Undecodable::new("message does not name its table"),
        Some(id) => Undecodable::of(
            &id,
            format!(
                "the structure of {id} is not known, and maxwell-json does not tell types; declare its columns, or read \
                 the topic of its DDL messages first"
            ),
        ),
    }
}

/// Finds the columns of members; of a member that stands twice the last counts.
fn arrange(
    columns: &[ColumnReader],
    order: &mut Vec<usize>,
    members: &Members<'_>,
    found: &mut [Option<usize>],
    unknown: UnknownMembers,
) -> std::result::Result<(), String> {
    found.fill(None);
    for (at, (name, _)) in members.iter().enumerate() {
        let name = plain(*name)?;
        // Messages of one table nearly always have the same members.
        let expected = order.get(at).copied().filter(|column| columns[*column].name == *name);
        let column = expected.or_else(|| columns.iter().position(|c| c.name == *name));
        match column {
            Some(column) => {
                found[column] = Some(at);
                if expected.is_none() {
                    order.resize(order.len().max(at + 1), column);
                    order[at] = column;
                }
            }
            None if unknown == UnknownMembers::Ignore => {}
            None => return Err(format!("member `{}` is no column", String::from_utf8_lossy(&name))),
        }
    }
    Ok(())
}

fn append(
    slot: &mut Slot<Plan>,
    kind: Kind,
    [data, old]: [&Members<'_>; 2],
    unknown: UnknownMembers,
    scratch: &mut Scratch,
) -> std::result::Result<(), String> {
    let Slot { plan: Plan { columns, key, order, data: new_at, old: old_at }, builder, .. } = slot;
    arrange(columns, &mut order[0], data, new_at, unknown)?;
    let new = |column: usize| new_at[column].map(|at| data[at].1);
    match kind {
        Kind::Insert => after(columns, builder, new, scratch)?,
        Kind::Delete => before(columns, builder, key, new, scratch)?,
        Kind::Update => {
            arrange(columns, &mut order[1], old, old_at, unknown)?;
            let previous = |column: usize| old_at[column].map(|at| old[at].1).or_else(|| new(column));
            before(columns, builder, key, previous, scratch)?;
            builder.end_row(RowKind::UpdateBefore, 0);
            after(columns, builder, new, scratch)?;
        }
    }
    let kind = match kind {
        Kind::Insert => RowKind::Insert,
        Kind::Update => RowKind::UpdateAfter,
        Kind::Delete => RowKind::Delete,
    };
    let size: usize = data.iter().map(|(_, value)| value.len()).sum();
    builder.end_row(kind, size);
    Ok(())
}

/// A row as it is now.
fn after<'a>(
    columns: &[ColumnReader],
    builder: &mut BatchBuilder,
    value: impl Fn(usize) -> Option<Value<'a>>,
    scratch: &mut Scratch,
) -> std::result::Result<(), String> {
    for (index, column) in columns.iter().enumerate() {
        column
            .append(builder.column(index), value(index), scratch)
            .map_err(|e| format!("column `{}`: {e}", String::from_utf8_lossy(&column.name)))?;
    }
    Ok(())
}

/// A row as it was: only its key must be there.
fn before<'a>(
    columns: &[ColumnReader],
    builder: &mut BatchBuilder,
    key: &[usize],
    value: impl Fn(usize) -> Option<Value<'a>>,
    scratch: &mut Scratch,
) -> std::result::Result<(), String> {
    for (index, column) in columns.iter().enumerate() {
        let name = || String::from_utf8_lossy(&column.name);
        match value(index) {
            None | Some(Value::Null) if key.contains(&index) => {
                return Err(format!("key column `{}` is missing", name()));
            }
            None | Some(Value::Null) => builder.column(index).append_null(),
            value => column
                .append(builder.column(index), value, scratch)
                .map_err(|e| format!("column `{}`: {e}", name()))?,
        }
    }
    Ok(())
}

impl MessageDecoder for MaxwellDecoder {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let Some(bytes) = message.value else { return Ok(Step::Ignored) };
        if bytes.len() > self.options.max_message_bytes {
            let most = self.options.max_message_bytes;
            return Err(Undecodable::new(format!("message is longer than {most} bytes")));
        }
        let mut data = recycle(std::mem::take(&mut self.data));
        let mut old = recycle(std::mem::take(&mut self.old));
        let outcome = self.message(bytes, &mut data, &mut old);
        (self.data, self.old) = (recycle(data), recycle(old));
        outcome
    }

    fn apply(&mut self, change: &StructureChange) {
        // A dropped table stays known: its messages may come from another topic, after the one of its end.
        self.put(change.after.clone());
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
