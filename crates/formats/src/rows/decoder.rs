//! Owns [`RowsDecoder`].

use std::sync::Arc;

use canalis_batch::ChangeBatch;
use canalis_types::{Column, ColumnPlace, LogicalType, Result, SchemaChangeKind, TableId, TableSchema};

use super::{
    RowsKind, RowsOptions, UnknownFields,
    form::{Form, FormError},
    infer,
};
use crate::{
    json::Strangers,
    message::{Gatherer, Message, MessageDecoder, Slot, Step, StructureChange, Undecodable},
};

/// Reads plain rows out of messages.
///
/// A table is declared, or inferred from the first message of its topic: a number without a point that fits 64 bits becomes
/// BIGINT, any other number STRING with its digits, booleans BOOLEAN, strings STRING, objects and arrays JSON, all of them
/// nullable. STRING columns take numbers and booleans as they are written.
#[derive(Debug)]
pub struct RowsDecoder {
    kind: RowsKind,
    options: RowsOptions,
    tables: Tables,
    rows: Gatherer<Plan>,
}

/// Which table a message belongs to.
#[derive(Debug)]
enum Tables {
    /// Every message to one table.
    One(TableId, Option<usize>),
    /// Each topic is a table; the topic of the last message and its table.
    ByTopic(String, Option<usize>),
}

#[derive(Debug)]
struct Plan {
    form: Form,
    /// Key columns in key order.
    key: Vec<usize>,
}

impl Plan {
    fn new(kind: RowsKind, options: &RowsOptions, schema: &TableSchema) -> std::result::Result<Self, String> {
        Ok(Self { form: Form::new(kind, options, schema)?, key: schema.key_indexes() })
    }
}

impl RowsDecoder {
    /// A decoder for topics whose rows are those of one declared table.
    ///
    /// # Errors
    /// A message when such messages cannot hold rows of the table.
    pub fn new(
        kind: RowsKind,
        options: RowsOptions,
        table: Arc<TableSchema>,
    ) -> std::result::Result<Self, String> {
        let plan = Plan::new(kind, &options, &table)?;
        let mut rows = Gatherer::default();
        let id = table.id.clone();
        let index = rows.put(table, plan);
        Ok(Self { kind, options, tables: Tables::One(id, Some(index)), rows })
    }

    /// A decoder of JSON rows whose structure is inferred: of all topics as one table `table`, or of each topic as a table of
    /// its name.
    pub fn inferring(options: RowsOptions, table: Option<TableId>) -> Self {
        let tables = match table {
            Some(id) => Tables::One(id, None),
            None => Tables::ByTopic(String::new(), None),
        };
        Self { kind: RowsKind::Json, options, tables, rows: Gatherer::default() }
    }

    fn find(&mut self, topic: &str) -> Option<usize> {
        match &mut self.tables {
            Tables::One(_, index) => *index,
            Tables::ByTopic(last, index) => {
                if index.is_none() || last != topic {
                    topic.clone_into(last);
                    *index = self.rows.find(&TableId::bare(topic));
                }
                *index
            }
        }
    }

    /// The structure of a table by its first message.
    fn create(&self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let id = match &self.tables {
            Tables::One(id, _) => id.clone(),
            Tables::ByTopic(..) => TableId::bare(message.topic),
        };
        // A delete in a table that has no row yet.
        let Some(value) = message.value else { return Ok(Step::Ignored) };
        let wrong = |why: String| Undecodable::of(&id, why);
        let mut columns = Vec::new();
        for (name, ty) in infer::members(value).map_err(wrong)? {
            // What is null throughout waits for a value where columns can be added later.
            let ty = match (ty, self.options.unknown) {
                (None, UnknownFields::Evolve) => continue,
                (ty, _) => ty.unwrap_or(LogicalType::Text),
            };
            let nullable = !self.options.primary_key.contains(&name);
            columns.push(Column::new(name, ty, nullable));
        }
        let key = &self.options.primary_key;
        if let Some(missing) = key.iter().find(|k| !columns.iter().any(|c| c.name == **k)) {
            return Err(wrong(format!("the first message of the table lacks the key column `{missing}`")));
        }
        if columns.is_empty() {
            return Err(wrong("the first message of the table has no member with a value".to_owned()));
        }
        let after = Arc::new(TableSchema::new(id, columns, key.clone()));
        Ok(Step::Structure(Box::new(StructureChange {
            kind: SchemaChangeKind::CreateTable,
            before: None,
            after,
            statement: format!("first message of topic `{}`", message.topic),
            alone: false,
        })))
    }

    /// The structure with columns for the members that have none.
    fn evolve(&self, before: Arc<TableSchema>, value: &[u8]) -> std::result::Result<Step, Undecodable> {
        let members = infer::members(value).map_err(|why| Undecodable::of(&before.id, why))?;
        let fresh = |(name, ty): (String, Option<LogicalType>)| {
            (before.column_index(&name).is_none()).then_some(Column::new(name, ty?, true))
        };
        let fresh: Vec<Column> = members.into_iter().filter_map(fresh).collect();
        let names = fresh.iter().map(|c| format!("`{}`", c.name)).collect::<Vec<_>>().join(", ");
        let mut after = TableSchema::clone(&before);
        after.columns.extend(fresh.iter().cloned());
        after.version += 1;
        Ok(Step::Structure(Box::new(StructureChange {
            kind: SchemaChangeKind::AddColumns(fresh.into_iter().map(|c| (c, ColumnPlace::Last)).collect()),
            before: Some(before),
            after: Arc::new(after),
            statement: format!("a message has new members: {names}"),
            alone: false,
        })))
    }
}

fn gather(
    slot: &mut Slot<Plan>,
    message: &Message<'_>,
    strangers: Strangers,
) -> std::result::Result<bool, FormError> {
    let Slot { schema, plan, builder, .. } = slot;
    let rows = builder.len();
    match (message.value, message.key) {
        (Some(value), key) => plan.form.rows(schema, builder, (key, value), strangers)?,
        (None, Some(key)) if !plan.key.is_empty() => plan.form.delete(builder, key, &plan.key)?,
        (None, _) => {}
    }
    if builder.len() == rows {
        return Ok(false);
    }
    if let Some(time) = message.timestamp_ms {
        builder.note_event_time(time);
    }
    Ok(true)
}

impl MessageDecoder for RowsDecoder {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let size = message.value.map_or(0, <[u8]>::len) + message.key.map_or(0, <[u8]>::len);
        let found = self.find(message.topic);
        if size > self.options.max_message_bytes {
            let table = found.map(|index| self.rows.slot(index).schema.id.clone());
            let reason = format!("message is longer than {} bytes", self.options.max_message_bytes);
            return Err(Undecodable { table, reason });
        }
        let Some(index) = found else { return self.create(message) };
        let strangers = match self.options.unknown {
            UnknownFields::Refuse => Strangers::Refuse,
            UnknownFields::Ignore => Strangers::Ignore,
            UnknownFields::Evolve => Strangers::IgnoreNull,
        };
        let slot = self.rows.slot(index);
        slot.begin();
        match gather(slot, message, strangers) {
            Ok(true) => {
                self.rows.taken(size);
                Ok(Step::Taken)
            }
            Ok(false) => Ok(Step::Ignored),
            Err(FormError::Wrong(reason)) => {
                slot.undo();
                Err(Undecodable::of(&slot.schema.id, reason))
            }
            Err(FormError::Stranger(name)) => {
                slot.undo();
                let schema = slot.schema.clone();
                match message.value {
                    Some(value) if self.options.unknown == UnknownFields::Evolve => {
                        self.evolve(schema, value)
                    }
                    _ => {
                        let reason = format!("member `{name}` is no column of {}", schema.id);
                        Err(Undecodable::of(&schema.id, reason))
                    }
                }
            }
        }
    }

    fn apply(&mut self, change: &StructureChange) {
        // A table that such messages cannot hold was refused when the decoder was made; changes only add columns to JSON.
        let Ok(plan) = Plan::new(self.kind, &self.options, &change.after) else { return };
        let index = self.rows.put(change.after.clone(), plan);
        if let Tables::One(id, found) = &mut self.tables
            && *id == change.after.id
        {
            *found = Some(index);
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
