//! Owns applying changes to a table without a key: in order, each delete and update to exactly one row that is equal
//! in every column.

use canalis_batch::{ChangeBatch, RowRef};
use canalis_connector_api::DeadLetter;
use canalis_types::{Error, Result, RowKind};

use super::{
    cells::BatchCells,
    failure::Failure,
    keyed::store_many,
    screen::Sieve,
    session::Session,
    statement::{Room, Rows, Verb, write_row_condition},
    strict::{Care, Checked, letter, run_checked, store_rows, too_large},
    target::Target,
    text::write_literal,
};

const NOT_FOUND: &str = "no row of the target is equal to the row that was changed";

/// Applies changes of one table, in order. Must happen exactly once.
pub(super) async fn apply_ordered(
    session: &mut Session,
    target: &Target,
    batches: &[ChangeBatch],
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    let cells = BatchCells::of_all(batches, target)?;
    let rows = Rows { target, batches, cells: &cells };
    let sieve = Sieve::new(rows);
    let mut letters = Vec::new();
    let mut run: Vec<RowRef> = Vec::new();
    for (at, batch) in batches.iter().enumerate() {
        let mut before = None;
        for (index, kind) in batch.kinds().iter().enumerate() {
            let row = reference(at, index)?;
            match kind {
                RowKind::Insert => run.push(row),
                RowKind::UpdateBefore => before = Some(row),
                RowKind::UpdateAfter | RowKind::Delete => {
                    letters
                        .extend(insert(session, rows, &sieve, std::mem::take(&mut run), care, room).await?);
                    let refused = match (kind, before.take()) {
                        (RowKind::UpdateAfter, Some(before)) => {
                            update(session, rows, &sieve, [before, row], care).await?
                        }
                        _ => delete(session, rows, row).await?,
                    };
                    letters.extend(refused);
                }
            }
        }
    }
    letters.extend(insert(session, rows, &sieve, run, care, room).await?);
    Ok(letters)
}

fn reference(batch: usize, row: usize) -> Result<RowRef> {
    match (u32::try_from(batch), u32::try_from(row)) {
        (Ok(batch), Ok(row)) => Ok(RowRef { batch, row }),
        _ => Err(Error::internal("a window has more than 2^32 rows")),
    }
}

async fn insert(
    session: &mut Session,
    rows: Rows<'_>,
    sieve: &Sieve,
    run: Vec<RowRef>,
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    if run.is_empty() {
        return Ok(Vec::new());
    }
    let sifted = sieve.sift(rows, run);
    let mut letters = sifted.letters;
    letters.extend(store_many(session, rows, &sifted.ordinary, Verb::Insert, care, room).await?);
    let alone = Room { rows: 1, ..room };
    letters.extend(store_rows(session, rows, &sifted.large, Verb::Insert, care, alone).await?);
    Ok(letters)
}

async fn delete(session: &mut Session, rows: Rows<'_>, row: RowRef) -> Result<Option<DeadLetter>, Failure> {
    let mut sql = format!("DELETE FROM {} WHERE ", rows.target.name).into_bytes();
    write_row_condition(&mut sql, rows, row);
    sql.extend_from_slice(b" LIMIT 1");
    if sql.len() > session.facts.statement_limit() {
        return Ok(Some(letter(rows, row, too_large(sql.len(), session.facts.max_allowed_packet))));
    }
    match session.run("deleting a row", &sql).await {
        Ok(outcome) if outcome.affected == 1 => Ok(None),
        Ok(_) => Ok(Some(letter(rows, row, NOT_FOUND.to_owned()))),
        Err(Failure::Row(refusal)) => Ok(Some(letter(rows, row, refusal.message))),
        Err(other) => Err(other),
    }
}

async fn update(
    session: &mut Session,
    rows: Rows<'_>,
    sieve: &Sieve,
    [before, after]: [RowRef; 2],
    care: Care,
) -> Result<Option<DeadLetter>, Failure> {
    let target = rows.target;
    if let Some(refused) = sieve.sift(rows, vec![after]).letters.pop() {
        return Ok(Some(refused));
    }
    let batch = &rows.batches[after.batch as usize];
    let (cells, index) = rows.batch(after);
    let mut sql = format!("UPDATE {} SET ", target.name).into_bytes();
    let mut first = true;
    for (column, values) in target.columns.iter().zip(&cells.written) {
        if batch.is_unchanged(column.index, index) {
            continue;
        }
        if !std::mem::take(&mut first) {
            sql.push(b',');
        }
        sql.extend_from_slice(column.name.as_bytes());
        sql.push(b'=');
        write_literal(&mut sql, values, index);
    }
    if first {
        return Ok(None);
    }
    sql.extend_from_slice(b" WHERE ");
    write_row_condition(&mut sql, rows, before);
    sql.extend_from_slice(b" LIMIT 1");
    if sql.len() > session.facts.statement_limit() {
        return Ok(Some(letter(rows, after, too_large(sql.len(), session.facts.max_allowed_packet))));
    }
    let expected = rows.expected_warnings(after);
    match run_checked(session, "updating a row", &sql, expected, care).await {
        Ok(Checked::Done(outcome)) if outcome.affected == 1 => Ok(None),
        Ok(Checked::Done(_)) => {
            // The server counts a row only when a value has changed.
            let mut look = format!("SELECT 1 FROM {} WHERE ", target.name).into_bytes();
            write_row_condition(&mut look, rows, before);
            look.extend_from_slice(b" LIMIT 1");
            let found: Vec<u8> = session.rows("looking for a row", look).await?;
            Ok(found.is_empty().then(|| letter(rows, after, NOT_FOUND.to_owned())))
        }
        Ok(Checked::Altered(reason)) => Ok(Some(letter(rows, after, reason))),
        Err(Failure::Row(refusal)) => Ok(Some(letter(rows, after, refusal.message))),
        Err(other) => Err(other),
    }
}
