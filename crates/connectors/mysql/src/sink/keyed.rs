//! Owns applying a window of changes to a table with a key: fold, delete, store.

use arrow_array::UInt32Array;
use canalis_batch::{ChangeBatch, Folded, KeyEncoder, RowRef, fold};
use canalis_connector_api::DeadLetter;
use canalis_types::{Result, RowKind};

use super::{
    cells::BatchCells,
    failure::Failure,
    load::{Loaded, load},
    screen::Sieve,
    session::Session,
    statement::{Match, Room, Rows, Verb, delete, write_key_condition},
    strict::{Care, Checked, letter, run_checked, store_rows, too_large},
    target::{Mode, Target},
    text::write_literal,
};

/// Upserts from this many rows on are loaded, where that is allowed: below, a multi-row statement costs less.
const LOAD_ROWS: usize = 5_000;
/// Keys in one DELETE. MariaDB turns lists of 1,000 and more into a temporary table.
const DELETE_ROWS: usize = 500;

/// Applies changes of one table. The result does not depend on what of them has been applied before.
pub(super) async fn apply_keyed(
    session: &mut Session,
    target: &Target,
    batches: &[ChangeBatch],
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    if batches.iter().all(|batch| batch.unchanged().is_none()) {
        return apply_folded(session, target, batches, care, room).await;
    }
    // Cells that the source left out are not in the last image of a row: such updates are applied in their place.
    let mut letters = Vec::new();
    let mut run: Vec<ChangeBatch> = Vec::new();
    for batch in batches {
        let mut whole: Vec<u32> = Vec::new();
        for row in 0..batch.num_rows() {
            let index =
                u32::try_from(row).map_err(|_| canalis_types::Error::internal("batch is too long"))?;
            let is_partial = (0..batch.schema().columns.len()).any(|c| batch.is_unchanged(c, row));
            if !(is_partial && batch.kinds()[row] == RowKind::UpdateAfter) {
                whole.push(index);
                continue;
            }
            whole.pop();
            if !whole.is_empty() {
                run.push(batch.take(&UInt32Array::from(std::mem::take(&mut whole)))?);
            }
            letters.extend(apply_folded(session, target, &run, care, room).await?);
            run.clear();
            letters.extend(update_present(session, target, batch, row, care).await?);
        }
        if !whole.is_empty() {
            run.push(batch.take(&UInt32Array::from(whole))?);
        }
    }
    letters.extend(apply_folded(session, target, &run, care, room).await?);
    Ok(letters)
}

async fn apply_folded(
    session: &mut Session,
    target: &Target,
    batches: &[ChangeBatch],
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let cells = BatchCells::of_all(batches, target)?;
    let rows = Rows { target, batches, cells: &cells };
    let key = KeyEncoder::over(target.key.iter().map(|k| target.columns[*k].index).collect());
    let Folded { deletes, upserts } = fold(batches, &key)?;
    let mut sifted = Sieve::new(rows).sift(rows, upserts);
    match target.mode {
        Mode::Exact => {
            let mut gone = deletes;
            gone.extend(sifted.ordinary.iter().chain(&sifted.large));
            delete_rows(session, rows, &gone, Match::Exact, room).await?;
        }
        _ => delete_rows(session, rows, &deletes, Match::Key, room).await?,
    }
    let verb = match target.mode {
        Mode::Upsert => Verb::Upsert,
        Mode::Replace => Verb::Replace,
        Mode::Exact | Mode::Ordered => Verb::Insert,
    };
    let mut letters = std::mem::take(&mut sifted.letters);
    letters.extend(store_many(session, rows, &sifted.ordinary, verb, care, room).await?);
    let alone = Room { rows: 1, ..room };
    letters.extend(store_rows(session, rows, &sifted.large, verb, care, alone).await?);
    Ok(letters)
}

/// Stores rows the cheapest way that keeps them exact.
pub(super) async fn store_many(
    session: &mut Session,
    rows: Rows<'_>,
    refs: &[RowRef],
    verb: Verb,
    care: Care,
    room: Room,
) -> Result<Vec<DeadLetter>, Failure> {
    let target = rows.target;
    let least = if verb == Verb::Insert { LOAD_ROWS / 10 } else { LOAD_ROWS };
    let locks_others = verb != Verb::Insert && session.facts.bulk_inserts_lock && target.auto_increment;
    let resets = verb == Verb::Upsert && target.keeps_columns;
    if refs.len() < least || !session.facts.load_data || locks_others || resets {
        return store_rows(session, rows, refs, verb, care, room).await;
    }
    session.run("setting a savepoint", b"SAVEPOINT canalis_load").await?;
    if load(session, rows, refs, verb).await? == Loaded::Clean {
        return Ok(Vec::new());
    }
    session.run("undoing a load", b"ROLLBACK TO SAVEPOINT canalis_load").await?;
    store_rows(session, rows, refs, verb, Care::Careful, room).await
}

/// Deletes rows by key.
pub(super) async fn delete_rows(
    session: &mut Session,
    rows: Rows<'_>,
    refs: &[RowRef],
    how: Match,
    room: Room,
) -> Result<(), Failure> {
    let room = Room { bytes: room.bytes.min(session.facts.statement_limit()), rows: DELETE_ROWS };
    let mut sql = Vec::new();
    let mut rest = refs;
    while !rest.is_empty() {
        let taken = delete(&mut sql, rows, rest, how, room);
        rest = &rest[taken..];
        session.run("deleting rows", &sql).await.map_err(|failure| match failure {
            Failure::Row(refusal) => Failure::Fatal(Failure::Row(refusal).into_error("deleting rows")),
            other => other,
        })?;
    }
    Ok(())
}

/// Applies an update that does not have all columns: those that it has are set.
async fn update_present(
    session: &mut Session,
    target: &Target,
    batch: &ChangeBatch,
    row: usize,
    care: Care,
) -> Result<Option<DeadLetter>, Failure> {
    let batches = std::slice::from_ref(batch);
    let cells = BatchCells::of_all(batches, target)?;
    let rows = Rows { target, batches, cells: &cells };
    let at = |row: usize| -> Result<RowRef> {
        let row = u32::try_from(row).map_err(|_| canalis_types::Error::internal("batch is too long"))?;
        Ok(RowRef { batch: 0, row })
    };
    let (before, after) = (at(row.saturating_sub(1))?, at(row)?);
    if let Some(refused) = Sieve::new(rows).sift(rows, vec![after]).letters.pop() {
        return Ok(Some(refused));
    }
    let mut sql = format!("UPDATE {} SET ", target.name).into_bytes();
    let mut first = true;
    for (column, values) in target.columns.iter().zip(&cells[0].written) {
        if batch.is_unchanged(column.index, row) {
            continue;
        }
        if !std::mem::take(&mut first) {
            sql.push(b',');
        }
        sql.extend_from_slice(column.name.as_bytes());
        sql.push(b'=');
        write_literal(&mut sql, values, row);
    }
    if first {
        return Ok(None);
    }
    sql.extend_from_slice(b" WHERE ");
    let how = if target.mode == Mode::Exact { Match::Exact } else { Match::Key };
    write_key_condition(&mut sql, rows, before, how);
    if sql.len() > session.facts.statement_limit() {
        let reason = too_large(sql.len(), session.facts.max_allowed_packet);
        return Ok(Some(letter(rows, after, reason)));
    }
    let expected = rows.expected_warnings(after);
    match run_checked(session, "updating a row", &sql, expected, care).await {
        // Nothing changes where the row is as it should be, and where there is none.
        Ok(Checked::Done(outcome)) if outcome.affected == 0 => {
            let mut question = format!("SELECT 1 FROM {} WHERE ", target.name).into_bytes();
            write_key_condition(&mut question, rows, before, how);
            question.extend_from_slice(b" LIMIT 1");
            let found: Vec<u8> = session.rows("looking for a row", &question[..]).await?;
            let reason = "no row has the key, and the source left columns out, so it cannot be inserted";
            Ok(found.is_empty().then(|| letter(rows, after, reason.to_owned())))
        }
        Ok(Checked::Done(_)) => Ok(None),
        Ok(Checked::Altered(reason)) => Ok(Some(letter(rows, after, reason))),
        Err(Failure::Row(refusal)) => Ok(Some(letter(rows, after, refusal.message))),
        Err(other) => Err(other),
    }
}
