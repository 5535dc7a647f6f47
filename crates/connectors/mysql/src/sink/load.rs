//! Owns LOAD DATA LOCAL: rows are encoded piece by piece while the server takes them, and the outcome is compared
//! with what was sent, because without REPLACE this statement turns every error into a warning.

use bytes::Bytes;
use canalis_batch::RowRef;
use futures::{StreamExt, stream};

use super::{
    cells::BatchCells,
    failure::Failure,
    session::{Session, Strictness},
    statement::{Rows, Verb},
    target::{Form, Target},
    text::write_line,
};

/// Bytes sent at once.
const PIECE: usize = 128 << 10;

/// What became of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loaded {
    /// All are stored as they were sent.
    Clean,
    /// Some were altered or left out; the statement is to be undone.
    Doubtful,
}

/// Loads rows. [`Verb::Upsert`] is carried out as REPLACE, so columns that are not written are reset.
pub(super) async fn load(
    session: &mut Session,
    rows: Rows<'_>,
    refs: &[RowRef],
    verb: Verb,
) -> Result<Loaded, Failure> {
    let expected = rows.expected_of(refs);
    let sql = statement(rows.target, verb);
    let mut lines = Lines { cells: rows.cells.to_vec(), refs: refs.to_vec(), at: 0 };
    if expected > 0 {
        session.set_strictness(Strictness::Counted).await?;
    }
    let result = session
        .load("loading rows", &sql, move || stream::iter(std::iter::from_fn(move || lines.next())).boxed())
        .await;
    session.set_strictness(Strictness::Strict).await?;
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(Failure::Row(_)) => return Ok(Loaded::Doubtful),
        Err(other) => return Err(other),
    };
    let sent = refs.len() as u64;
    let all_there = match verb {
        Verb::Insert => outcome.affected == sent,
        // A replaced row counts twice.
        Verb::Upsert | Verb::Replace => outcome.affected >= sent,
    };
    let clean = all_there && u64::from(outcome.warnings) == expected;
    Ok(if clean { Loaded::Clean } else { Loaded::Doubtful })
}

fn statement(target: &Target, verb: Verb) -> String {
    let mut names = Vec::with_capacity(target.columns.len());
    let mut sets = Vec::new();
    for (at, column) in target.columns.iter().enumerate() {
        match column.form {
            Form::Plain => names.push(column.name.clone()),
            Form::Hex | Form::Bits => {
                let variable = format!("@canalis_{at}");
                sets.push(match column.form {
                    Form::Bits => format!("{} = CAST({variable} AS UNSIGNED)", column.name),
                    _ => format!("{} = UNHEX({variable})", column.name),
                });
                names.push(variable);
            }
        }
    }
    let replace = if verb == Verb::Insert { "" } else { " REPLACE" };
    let set = if sets.is_empty() { String::new() } else { format!(" SET {}", sets.join(", ")) };
    format!(
        "LOAD DATA LOCAL INFILE 'canalis'{replace} INTO TABLE {} CHARACTER SET utf8mb4 \
         FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({}){set}",
        target.name,
        names.join(", ")
    )
}

/// Rows that are still to be encoded.
struct Lines {
    cells: Vec<BatchCells>,
    refs: Vec<RowRef>,
    at: usize,
}

impl Lines {
    fn next(&mut self) -> Option<std::io::Result<Bytes>> {
        if self.at == self.refs.len() {
            return None;
        }
        let mut piece = Vec::with_capacity(PIECE + (PIECE >> 3));
        while piece.len() < PIECE && self.at < self.refs.len() {
            let row = self.refs[self.at];
            write_line(&mut piece, &self.cells[row.batch as usize].written, row.row as usize);
            self.at += 1;
        }
        Some(Ok(Bytes::from(piece)))
    }
}
