//! Owns the structure of a table from the schemas of its messages: what is new in them, and what changes.

use std::sync::Arc;

use canalis_types::{Column, ColumnPlace, SchemaChangeKind, TableId, TableSchema};

use super::{
    bind::Plan,
    column::{Derived, takes},
    schema::Field,
};
use crate::message::{Slot, StructureChange};

/// The structure of a table that is new.
///
/// # Errors
/// When a key column is not there.
pub(super) fn create(
    id: &TableId,
    fields: &[Field],
    derived: &[Derived],
    key: Vec<String>,
) -> Result<StructureChange, String> {
    if let Some(missing) = key.iter().find(|k| !fields.iter().any(|f| f.name == **k)) {
        return Err(format!("the schema of the table's first message lacks the key column `{missing}`"));
    }
    if fields.is_empty() {
        return Err("the schema of the table's first message has no fields".to_owned());
    }
    let column = |(field, derived): (&Field, &Derived)| {
        Column::new(field.name.clone(), derived.ty.clone(), derived.nullable && !key.contains(&field.name))
    };
    let columns = fields.iter().zip(derived).map(column).collect();
    Ok(StructureChange {
        kind: SchemaChangeKind::CreateTable,
        before: None,
        after: Arc::new(TableSchema::new(id.clone(), columns, key)),
        statement: format!("a schema shows the table {id}"),
        alone: false,
    })
}

/// What a schema changes in a table that is known; `None` when its rows can be read as the table is.
///
/// Columns are only added, or become able to take more: messages of the schemas before may still come.
pub(super) fn change(slot: &Slot<Plan>, fields: &[Field], derived: &[Derived]) -> Option<StructureChange> {
    if slot.plan.declared {
        return None;
    }
    let known = &slot.schema;
    let mut after = TableSchema::clone(known);
    let (mut added, mut altered) = (Vec::new(), Vec::new());
    for (field, derived) in fields.iter().zip(derived) {
        let Some(at) = known.column_index(&field.name) else {
            // Rows that are there already have no value for it.
            let column = Column::new(field.name.clone(), derived.ty.clone(), true);
            after.columns.push(column.clone());
            added.push((column, ColumnPlace::Last));
            continue;
        };
        let column = &mut after.columns[at];
        let is_key = known.primary_key.contains(&column.name);
        let mut changed = derived.nullable && !column.nullable && !is_key;
        column.nullable |= changed;
        if !takes(&column.ty, &derived.ty) {
            changed = true;
            column.ty = derived.ty.clone();
            column.native = None;
        }
        if changed {
            altered.push(field.name.clone());
        }
    }
    for (at, column) in after.columns.iter_mut().enumerate().take(known.columns.len()) {
        let is_missing = !fields.iter().any(|f| f.name == column.name);
        let has_value = column.nullable || slot.plan.defaults[at].is_some();
        if is_missing && !has_value && !known.primary_key.contains(&column.name) {
            column.nullable = true;
            altered.push(column.name.clone());
        }
    }
    let names = |names: Vec<String>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let (kind, statement) = if !altered.is_empty() {
        let words = format!("a schema shows other columns: {}", names(altered));
        (SchemaChangeKind::Other("alter.column.type".into()), words)
    } else if !added.is_empty() {
        let list = names(added.iter().map(|(c, _)| c.name.clone()).collect());
        (SchemaChangeKind::AddColumns(added), format!("a schema shows new columns: {list}"))
    } else {
        return None;
    };
    after.version += 1;
    Some(StructureChange {
        kind,
        before: Some(known.clone()),
        after: Arc::new(after),
        statement,
        alone: false,
    })
}
