//! Owns dead letters of changes that an expression could not handle.

use canalis_batch::{ChangeBatch, cell_to_json, row_to_json};
use canalis_connector_api::DeadLetter;
use canalis_types::{Code, RowKind, TableSchema};
use serde_json::{Map, Value};

use super::keep::Kept;
use crate::evaluate::Refused;

/// Writes one letter for each change with a refused row, with the row as the source had it. An update is told by the row
/// after it.
pub(super) fn write(
    source: &TableSchema,
    batch: &ChangeBatch,
    kept: &Kept,
    refused: &Refused,
    letters: &mut Vec<DeadLetter>,
) {
    let mut skip = None;
    for (&row, reason) in refused {
        if skip == Some(row) {
            continue;
        }
        let (told, reason) = match kept.kinds[row] {
            RowKind::UpdateBefore => {
                // Both sides refused: one letter.
                skip = Some(row + 1);
                (row + 1, format!("{reason} (in the row before the update)"))
            }
            _ => (row, reason.clone()),
        };
        let original = kept.original(told);
        letters.push(DeadLetter {
            table: source.id.clone(),
            kind: batch.kinds()[original],
            key: key(source, batch, original),
            payload: row_to_json(batch.rows(), source, original),
            code: Code::RowRefused,
            reason,
            position: None,
        });
    }
}

fn key(source: &TableSchema, batch: &ChangeBatch, row: usize) -> Value {
    if !source.has_key() {
        return Value::Null;
    }
    let mut key = Map::new();
    for index in source.key_indexes() {
        let column = &source.columns[index];
        key.insert(column.name.clone(), cell_to_json(batch.rows().column(index), &column.ty, row));
    }
    Value::Object(key)
}
