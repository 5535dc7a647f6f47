//! Owns finding the table of a message, and binding its plan to the schema that the message carries.

use canalis_types::TableId;

use super::{
    DebeziumDecoder, DebeziumDecoderOptions,
    column::Plan,
    connect_schema::owned,
    derive::{Derived, derive},
    envelope::Origin,
    key,
    schemas::Known,
    structure,
};
use crate::{
    json::scan::Text,
    message::{Gatherer, Message, Slot, StructureChange, Undecodable},
};

/// Where the rows of a message go.
pub(super) enum Located {
    Slot(usize),
    /// Its structure is not the one that is known.
    Change(Box<StructureChange>),
}

enum Found {
    Slot(usize),
    Unknown(TableId),
}

impl DebeziumDecoder {
    /// The table of a message, its plan bound to the schema in the message or to the declared types.
    pub(super) fn locate(
        &mut self,
        topic: usize,
        message: &Message<'_>,
        origin: &Origin<'_>,
        schema: Option<&[u8]>,
    ) -> Result<Located, Undecodable> {
        let is_declared = schema.is_none();
        let found = self.find(topic, message.topic, origin, is_declared).map_err(Undecodable::new)?;
        let Some(raw) = schema else {
            return match found {
                Found::Slot(slot) => Ok(Located::Slot(self.bind_declared(slot))),
                Found::Unknown(id) => Err(Undecodable::of(
                    &id,
                    format!(
                        "the message has no schema and the table {id} is not declared: declare `columns` for it, \
                         or write the topic with schemas.enable=true"
                    ),
                )),
            };
        };
        let known = self.schemas.get(raw).map_err(Undecodable::new)?;
        if let Found::Slot(slot) = found {
            let bound = self.rows.slot(slot);
            if bound.plan.origin == Some(known.number) && has_key(bound, message.key) {
                return Ok(Located::Slot(slot));
            }
        }
        reconcile(&mut self.rows, found, known, message.key, &self.options)
    }

    /// The table that a tombstone of a topic is of.
    pub(super) fn of_topic(&self, name: &str) -> Option<usize> {
        if let [_] = self.rows.slots() {
            return Some(0);
        }
        id_of_topic(name).and_then(|id| self.rows.find(&id))
    }

    fn find(
        &mut self,
        topic: usize,
        name: &str,
        origin: &Origin<'_>,
        is_declared: bool,
    ) -> Result<Found, String> {
        let id = if let Some(table) = origin.table {
            let outer = origin.schema.or(origin.db);
            if let Some(last) = self.topics.get(topic).last
                && is_named(&self.rows.slot(last).schema.id, outer, table)
            {
                return Ok(Found::Slot(last));
            }
            TableId { namespace: None, schema: outer.map(owned).transpose()?, table: owned(table)? }
        } else {
            // Without a schema only declared tables are read; one alone is the table of every such message.
            if is_declared && let [_] = self.rows.slots() {
                return Ok(Found::Slot(0));
            }
            id_of_topic(name).ok_or("neither `source` nor the topic names a table")?
        };
        Ok(self.rows.find(&id).map_or(Found::Unknown(id), Found::Slot))
    }

    fn bind_declared(&mut self, index: usize) -> usize {
        let slot = self.rows.slot(index);
        if slot.plan.origin.is_some() {
            slot.plan = Plan::declared(&slot.schema, &self.options);
        }
        index
    }
}

/// The last two parts of a topic's name.
fn id_of_topic(name: &str) -> Option<TableId> {
    let mut parts = name.rsplit('.').filter(|part| !part.is_empty());
    let table = parts.next()?.to_owned();
    Some(TableId { namespace: None, schema: parts.next().map(str::to_owned), table })
}

fn is_named(id: &TableId, outer: Option<Text<'_>>, table: Text<'_>) -> bool {
    let plain = !table.escaped && outer.is_none_or(|o| !o.escaped);
    plain
        && id.namespace.is_none()
        && id.table.as_bytes() == table.raw
        && id.schema.as_deref().map(str::as_bytes) == outer.map(|o| o.raw)
}

/// Whether a message key, where there is one, is of the columns of the table's key.
fn has_key(slot: &Slot<Plan>, key: Option<&[u8]>) -> bool {
    let Some(key) = key else { return true };
    if !slot.plan.key_head.is_empty() {
        return key.starts_with(&slot.plan.key_head);
    }
    key::is_of(key, &slot.schema.primary_key)
}

/// Compares the structure in a message with the one known; binds the plan when they are the same.
fn reconcile(
    rows: &mut Gatherer<Plan>,
    found: Found,
    known: &Known,
    message_key: Option<&[u8]>,
    options: &DebeziumDecoderOptions,
) -> Result<Located, Undecodable> {
    let (slot, id) = match found {
        Found::Slot(slot) => (Some(slot), rows.slot(slot).schema.id.clone()),
        Found::Unknown(id) => (None, id),
    };
    let schema = slot.map(|slot| rows.slot(slot).schema.clone());
    let mut derived: Vec<Derived> = Vec::with_capacity(known.row.len());
    for field in &known.row {
        let column = schema.as_ref().and_then(|s| s.column(&field.field));
        // Rows alone carry what else is told of a change in fields of such names.
        if options.unwrapped && field.field.starts_with("__") && column.is_none() {
            continue;
        }
        derived.push(derive(field, column, options).map_err(|why| Undecodable::of(&id, why))?);
    }
    let (key, head) = match message_key.and_then(key::names) {
        Some((mut names, head)) => {
            names.retain(|name| derived.iter().any(|d| d.column.name == *name));
            (names, head)
        }
        None => (schema.as_ref().map(|s| s.primary_key.clone()).unwrap_or_default(), Vec::new()),
    };
    let columns: Vec<&canalis_types::Column> = derived.iter().map(|d| &d.column).collect();
    if let (Some(index), Some(schema)) = (slot, &schema)
        && structure::is_same(schema, &columns, &key)
    {
        let mut plan = Plan::derived(schema, &derived, known.number);
        plan.key_head = head;
        rows.slot(index).plan = plan;
        return Ok(Located::Slot(index));
    }
    let columns = derived.into_iter().map(|d| d.column).collect();
    Ok(Located::Change(Box::new(structure::change(&id, schema.as_ref(), columns, key))))
}
