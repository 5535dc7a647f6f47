//! Owns the statements for rows that are known in part: the columns that the source sent are set, the others stay.

use canalis_batch::RowRef;
use canalis_types::Result;

use super::{
    rows::{Refused, RowSet},
    statement::{all_found, utf8},
};
use crate::encode::Style;

/// Why a row that is known in part is refused when there is none that it could change.
pub const NO_ROW: &str = "the source did not send all columns of the row, and no row of the target has its key to keep the others of";

/// Rows in one statement.
const ROWS: usize = 1000;
/// Bytes of values in one statement.
const BYTES: usize = 1 << 20;

/// Statements that change rows of the target in place; `None` when no row is left. Each fails as a whole when the target
/// lacks one of its rows.
pub fn patch(set: &RowSet<'_>, rows: &[RowRef], refused: &mut Refused) -> Result<Option<String>> {
    let target = set.target;
    // Rows with the same columns share a statement; keys differ, so order does not matter.
    let mut groups: Vec<(Vec<usize>, Vec<RowRef>)> = Vec::new();
    for at in rows {
        let sent: Vec<usize> =
            target.all().into_iter().filter(|c| target.key.contains(c) || set.is_sent(*c, *at)).collect();
        match groups.iter_mut().find(|(columns, _)| *columns == sent) {
            Some((_, rows)) => rows.push(*at),
            None => groups.push((sent, vec![*at])),
        }
    }
    let mut sql = String::new();
    for (columns, rows) in groups {
        let mut values = Vec::new();
        let mut count = 0;
        for at in rows {
            let start = values.len();
            if count > 0 {
                values.push(b',');
            }
            if let Err(refusal) = set.some(&columns, at, Style::Literal, &mut values) {
                values.truncate(start);
                refused.note(at, refusal.reason);
                continue;
            }
            count += 1;
            if count == ROWS || values.len() >= BYTES {
                sql.push_str(&update(set, &columns, &utf8(std::mem::take(&mut values))?, count));
                count = 0;
            }
        }
        if count > 0 {
            sql.push_str(&update(set, &columns, &utf8(values)?, count));
        }
    }
    Ok((!sql.is_empty()).then_some(sql))
}

/// One statement for rows of the same columns; `values` are their literals.
fn update(set: &RowSet<'_>, columns: &[usize], values: &str, count: usize) -> String {
    let target = set.target;
    let places: Vec<String> = columns.iter().map(|c| format!("c{c}")).collect();
    let same: Vec<String> = target
        .key
        .iter()
        .map(|c| &target.columns[*c])
        .zip(&target.key)
        .map(|(column, c)| format!("t.{} = v.c{c}::{}", column.quoted, column.cast))
        .collect();
    let sets: Vec<String> = columns
        .iter()
        .filter(|c| !target.key.contains(c))
        .map(|c| format!("{} = v.c{c}::{}", target.columns[*c].quoted, target.columns[*c].uncut))
        .collect();
    let (table, places, same) = (&target.table, places.join(", "), same.join(" AND "));
    let keys: Vec<String> = target.key.iter().map(|c| format!("v.c{c}")).collect();
    let keys = keys.join(", ");
    // A row of nothing but its key changes nothing, yet has to be there.
    let found = if sets.is_empty() {
        format!("SELECT {keys} FROM {table} t, (VALUES {values}) v({places}) WHERE {same}")
    } else {
        let sets = sets.join(", ");
        format!(
            "UPDATE {table} t SET {sets} FROM (VALUES {values}) v({places}) WHERE {same} RETURNING {keys}"
        )
    };
    // Without an index over the key more than one row may have it.
    let number = format!("(SELECT count(*) FROM (SELECT DISTINCT * FROM d) k) = {count}");
    all_found(&found, &number)
}

/// A statement that changes a row and its key; `None` when the values cannot be written.
pub fn relocate(set: &RowSet<'_>, after: RowRef, refused: &mut Refused) -> Result<Option<String>> {
    let target = set.target;
    // −U stands right before its +U.
    let before = RowRef { row: after.row - 1, ..after };
    let list = |columns: &[usize], at: RowRef, glue: &str| -> Result<Result<String, String>> {
        let mut parts = Vec::with_capacity(columns.len());
        for column in columns {
            let mut literal = Vec::new();
            if let Err(refusal) = set.literal(*column, at, &mut literal) {
                return Ok(Err(refusal.reason));
            }
            let column = &target.columns[*column];
            parts.push(format!("{} = {}", column.quoted, utf8(literal)?));
        }
        Ok(Ok(parts.join(glue)))
    };
    let sent: Vec<usize> =
        target.all().into_iter().filter(|c| target.key.contains(c) || set.is_sent(*c, after)).collect();
    match (list(&sent, after, ", ")?, list(&target.key, before, " AND ")?) {
        (Ok(sets), Ok(same)) => {
            let found = format!("UPDATE {} SET {sets} WHERE {same} RETURNING 1", target.table);
            Ok(Some(all_found(&found, "EXISTS (SELECT FROM d)")))
        }
        (Err(reason), _) | (_, Err(reason)) => {
            refused.note(after, reason);
            Ok(None)
        }
    }
}
