//! Owns the composition of statements that store and delete rows.

use canalis_batch::{ChangeBatch, RowRef};

use super::{
    cells::{BatchCells, Cells},
    session::ServerFacts,
    target::{Comparison, Target},
    text::{write_hex, write_literal, write_operand},
};

/// What happens to a row whose key is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// It is refused.
    Insert,
    /// Its written columns are overwritten.
    Upsert,
    /// It is replaced, with every row that holds one of its unique values.
    Replace,
}

/// Rows of one table, over several batches.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// Where they go.
    pub target: &'a Target,
    /// The batches.
    pub batches: &'a [ChangeBatch],
    /// Their columns.
    pub cells: &'a [BatchCells],
}

impl<'a> Rows<'a> {
    /// The batch that a reference points into.
    pub(super) fn batch(&self, row: RowRef) -> (&'a BatchCells, usize) {
        (&self.cells[row.batch as usize], row.row as usize)
    }

    /// Warnings that storing these rows must give.
    pub(super) fn expected_of(&self, refs: &[RowRef]) -> u64 {
        if !self.target.columns.iter().any(|column| column.blank_is_error_value) {
            return 0;
        }
        refs.iter().map(|row| self.expected_warnings(*row)).sum()
    }

    /// Warnings that storing a row must give: one for each error value of an ENUM.
    pub(super) fn expected_warnings(&self, row: RowRef) -> u64 {
        let (cells, index) = self.batch(row);
        let blanks = self.target.columns.iter().zip(&cells.written).filter(|(column, values)| {
            column.blank_is_error_value
                && matches!(values, Cells::Text(a) if !values.is_null(index) && a.value(index).is_empty())
        });
        blanks.count() as u64
    }
}

/// Room in one statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes, unless a single row needs more.
    pub bytes: usize,
    /// Rows.
    pub rows: usize,
}

/// Composes `INSERT … VALUES (…),(…)` from the front of `refs` until there is no more room; gives the number
/// of rows taken, at least one.
pub(super) fn store(
    out: &mut Vec<u8>,
    rows: Rows<'_>,
    refs: &[RowRef],
    verb: Verb,
    facts: &ServerFacts,
    room: Room,
) -> usize {
    let target = rows.target;
    out.clear();
    let word = if verb == Verb::Replace { "REPLACE" } else { "INSERT" };
    out.extend_from_slice(
        format!("{word} INTO {} ({}) VALUES ", target.name, target.column_list()).as_bytes(),
    );
    let tail = if verb == Verb::Upsert { upsert_tail(target, facts) } else { String::new() };
    let mut taken = 0;
    for row in refs.iter().take(room.rows) {
        let before = out.len();
        if taken > 0 {
            out.push(b',');
        }
        let (cells, index) = rows.batch(*row);
        out.push(b'(');
        for (at, values) in cells.written.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_literal(out, values, index);
        }
        out.push(b')');
        if taken > 0 && out.len() + tail.len() > room.bytes {
            out.truncate(before);
            break;
        }
        taken += 1;
    }
    out.extend_from_slice(tail.as_bytes());
    taken
}

fn upsert_tail(target: &Target, facts: &ServerFacts) -> String {
    let has_others = target.columns.len() > target.key.len();
    let text_key = target.key.iter().any(|k| target.columns[*k].comparison == Comparison::Text);
    let assigned = target
        .columns
        .iter()
        .enumerate()
        // A text key may be equal to the stored one and yet be spelt in another way.
        .filter(|(at, _)| !has_others || text_key || !target.key.contains(at));
    // MySQL has put VALUES() on the way out; MariaDB has no alias for the new row.
    let sets: Vec<String> = if facts.is_mariadb() {
        assigned.map(|(_, c)| format!("{0}=VALUES({0})", c.name)).collect()
    } else {
        assigned.map(|(_, c)| format!("{0}=canalis_new.{0}", c.name)).collect()
    };
    let alias = if facts.is_mariadb() { "" } else { " AS canalis_new" };
    format!("{alias} ON DUPLICATE KEY UPDATE {}", sets.join(","))
}

/// How the key of a row is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// As the key's index does.
    Key,
    /// Also character by character.
    Exact,
}

/// Composes `DELETE … WHERE key IN (…)` from the front of `refs` until there is no more room.
pub(super) fn delete(out: &mut Vec<u8>, rows: Rows<'_>, refs: &[RowRef], how: Match, room: Room) -> usize {
    let target = rows.target;
    out.clear();
    out.extend_from_slice(format!("DELETE FROM {} WHERE ", target.name).as_bytes());
    let single = target.key.len() == 1;
    if how == Match::Key {
        let names: Vec<&str> = target.key.iter().map(|k| target.columns[*k].name.as_str()).collect();
        let list = if single { names.join(",") } else { format!("({})", names.join(",")) };
        out.extend_from_slice(format!("{list} IN (").as_bytes());
    }
    let mut taken = 0;
    for row in refs.iter().take(room.rows) {
        let before = out.len();
        if how == Match::Exact {
            if taken > 0 {
                out.extend_from_slice(b" OR ");
            }
            out.push(b'(');
            write_key_condition(out, rows, *row, how);
            out.push(b')');
        } else {
            if taken > 0 {
                out.push(b',');
            }
            let (cells, index) = rows.batch(*row);
            if !single {
                out.push(b'(');
            }
            for (at, values) in cells.key.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_operand(out, values, index);
            }
            if !single {
                out.push(b')');
            }
        }
        if taken > 0 && out.len() + 1 > room.bytes {
            out.truncate(before);
            break;
        }
        taken += 1;
    }
    if how == Match::Key {
        out.push(b')');
    }
    taken
}

/// Appends `` `k` = 1 AND … `` for the key of a row.
pub(super) fn write_key_condition(out: &mut Vec<u8>, rows: Rows<'_>, row: RowRef, how: Match) {
    let (cells, index) = rows.batch(row);
    for (at, (key, values)) in rows.target.key.iter().zip(&cells.key).enumerate() {
        if at > 0 {
            out.extend_from_slice(b" AND ");
        }
        let column = &rows.target.columns[*key];
        out.extend_from_slice(column.name.as_bytes());
        out.extend_from_slice(b" = ");
        write_operand(out, values, index);
        if how == Match::Exact && column.comparison == Comparison::Text {
            out.extend_from_slice(b" AND ");
            write_exact_text(out, rows, &column.name, values, index);
        }
    }
}

fn write_exact_text(out: &mut Vec<u8>, rows: Rows<'_>, name: &str, values: &Cells, index: usize) {
    out.extend_from_slice(
        format!("CONVERT({name} USING utf8mb4) COLLATE {} <=> ", rows.target.exact_collation).as_bytes(),
    );
    write_operand(out, values, index);
}

/// Appends a condition that holds for rows that are equal in every written column, NULL being equal to NULL.
pub(super) fn write_row_condition(out: &mut Vec<u8>, rows: Rows<'_>, row: RowRef) {
    let (cells, index) = rows.batch(row);
    for (at, (column, values)) in rows.target.columns.iter().zip(&cells.written).enumerate() {
        if at > 0 {
            out.extend_from_slice(b" AND ");
        }
        let name = &column.name;
        match column.comparison {
            _ if values.is_null(index) => {
                out.extend_from_slice(format!("{name} IS NULL").as_bytes());
                continue;
            }
            Comparison::Own => {
                out.extend_from_slice(format!("{name} <=> ").as_bytes());
                write_operand(out, values, index);
            }
            Comparison::Text => {
                // The first part may use an index, the second tells apart what the collation does not.
                out.extend_from_slice(format!("{name} = ").as_bytes());
                write_operand(out, values, index);
                out.extend_from_slice(b" AND ");
                write_exact_text(out, rows, name, values, index);
            }
            Comparison::Document => {
                out.extend_from_slice(format!("{name} = CAST(").as_bytes());
                write_operand(out, values, index);
                out.extend_from_slice(b" AS JSON)");
            }
            Comparison::Bytes => {
                out.extend_from_slice(format!("HEX({name}) = '").as_bytes());
                let mut bytes = Vec::new();
                values.write_plain(index, &mut bytes);
                write_hex(out, &bytes);
                out.push(b'\'');
            }
        }
    }
}
