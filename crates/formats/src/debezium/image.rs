//! Owns turning the members of a row image into one row of columns: which cells have a value, which are NULL, which the source
//! left out.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use canalis_batch::BatchBuilder;

use super::{
    cell,
    column::{ColumnPlan, Plan},
    envelope::Member,
    scalar::{Scratch, plain},
};
use crate::json::scan::Value;

/// What an image is, which decides what a cell that it lacks means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Image {
    /// A whole row: a cell that is missing is NULL.
    Insert,
    /// A row before its update or delete: a cell that is missing was not sent.
    Before,
    /// A row before its update or delete of which only the key is known.
    Key,
    /// A row after an update: a cell that is missing was not sent.
    After,
}

/// Texts that stand for a value that the database did not log.
#[derive(Debug)]
pub(super) struct Placeholders {
    plain: Vec<u8>,
    listed: Vec<u8>,
    coded: [Vec<u8>; 3],
}

impl Placeholders {
    pub(super) fn new(text: &str) -> Self {
        let hex = text.bytes().flat_map(|b| format!("{b:02x}").into_bytes()).collect();
        Self {
            plain: text.as_bytes().to_vec(),
            listed: format!("[\"{text}\"]").into_bytes(),
            coded: [STANDARD.encode(text).into_bytes(), URL_SAFE.encode(text).into_bytes(), hex],
        }
    }

    fn has(&self, column: &ColumnPlan, value: Value<'_>) -> bool {
        match value {
            Value::Text(text) => {
                text.raw == self.plain
                    || (column.form.is_coded() && self.coded.iter().any(|coded| text.raw == *coded))
            }
            Value::Container(raw) => raw == self.listed,
            _ => false,
        }
    }

    /// Whether any of the cells holds it.
    pub(super) fn any(&self, plan: &Plan, cells: &[Option<Value<'_>>]) -> bool {
        plan.columns.iter().zip(cells).any(|(column, cell)| cell.is_some_and(|value| self.has(column, value)))
    }
}

/// Puts members in the order of the columns; of two with the same name the last counts, those that are no columns do not.
pub(super) fn assign<'a>(
    plan: &Plan,
    members: &[Member<'a>],
    cells: &mut Vec<Option<Value<'a>>>,
    scratch: &mut Scratch,
) -> Result<(), String> {
    cells.clear();
    cells.resize(plan.columns.len(), None);
    let mut expected = 0;
    for member in members {
        let name = plain(member.name, &mut scratch.text).map_err(|e| e.reason)?;
        let index = if plan.columns.get(expected).is_some_and(|c| c.name == name) {
            Some(expected)
        } else {
            plan.columns.iter().position(|c| c.name == name)
        };
        if let Some(index) = index {
            cells[index] = Some(member.value);
            expected = index + 1;
        }
    }
    Ok(())
}

/// Whether all cells beside the key are null or missing, and there are any.
pub(super) fn is_key_only(plan: &Plan, cells: &[Option<Value<'_>>]) -> bool {
    let mut others = plan.columns.iter().zip(cells).filter(|(column, _)| !column.is_key).peekable();
    others.peek().is_some() && others.all(|(_, cell)| cell.is_none_or(|value| value == Value::Null))
}

/// Appends a row image to all columns; the row is not ended.
///
/// # Errors
/// When a cell is no value of its column or may not be missing, with the column named. Some columns may have a value more than
/// others then.
pub(super) fn append(
    plan: &Plan,
    builder: &mut BatchBuilder,
    cells: &[Option<Value<'_>>],
    image: Image,
    placeholders: &Placeholders,
    scratch: &mut Scratch,
) -> Result<(), String> {
    for (index, (column, cell)) in plan.columns.iter().zip(cells).enumerate() {
        let place = place(column, *cell, image, placeholders).map_err(|why| named(column, &why))?;
        match place {
            Place::Value(value) => cell::append(column, builder.column(index), value, scratch)
                .map_err(|e| named(column, &e.reason))?,
            Place::Unchanged => builder.append_unchanged(index),
        }
    }
    Ok(())
}

enum Place<'a> {
    Value(Value<'a>),
    Unchanged,
}

fn place<'a>(
    column: &ColumnPlan,
    cell: Option<Value<'a>>,
    image: Image,
    placeholders: &Placeholders,
) -> Result<Place<'a>, String> {
    let is_before = matches!(image, Image::Before | Image::Key);
    if image == Image::Key && !column.is_key {
        return Ok(Place::Unchanged);
    }
    match cell {
        None if image == Image::Insert => Ok(Place::Value(Value::Null)),
        None if column.is_key => Err("the key is missing in the row".into()),
        None => Ok(Place::Unchanged),
        // Where only the key is logged, the others are null whatever the column allows.
        Some(Value::Null) if is_before && !column.is_key && !column.nullable => Ok(Place::Unchanged),
        Some(value) if placeholders.has(column, value) => match image {
            Image::Insert => Err("its value was not logged by the source, and an insert needs it".into()),
            _ if column.is_key => Err("its value was not logged by the source, and it is of the key".into()),
            _ => Ok(Place::Unchanged),
        },
        Some(value) => Ok(Place::Value(value)),
    }
}

fn named(column: &ColumnPlan, why: &str) -> String {
    format!("column `{}`: {why}", String::from_utf8_lossy(&column.name))
}
