//! Owns the execution of row statements, and the careful way: inside an open transaction, with savepoints, the rows
//! that the server refuses are found by halving while all others land.

use std::{collections::HashSet, pin::pin, time::Duration};

use bytes::Bytes;
use canalis_batch::RowRef;
use canalis_types::{Code, Error, Result};
use futures::SinkExt;
use tokio_postgres::{Client, CopyInSink};

use super::{
    patch::NO_ROW,
    rows::{Refused, RowSet},
    statement::{Op, Piece, Route, pieces},
};
use crate::{
    encode::Style,
    error::{RowTrouble, Trouble, trouble},
};

/// Bytes of COPY text that are encoded at once; also what one message carries.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Why the removal of an image is refused that no row has.
const MISSING: &str = "no row of the target is equal to the one that was removed at the source";

/// How often a statement that met a deadlock or a lock is tried again.
pub const CONTENTION_RETRIES: u32 = 8;

/// Pause before try `attempt` after contention, from 10 ms doubling; writers do not step in time.
pub fn back_off(attempt: u32, writer: usize) -> Duration {
    let spread = u64::try_from(writer % 7).unwrap_or(0) * 3;
    Duration::from_millis((10 << attempt.min(8)) + spread)
}

/// A row that the server refused.
pub struct Failed {
    /// Which.
    pub at: RowRef,
    /// Why.
    pub trouble: RowTrouble,
}

/// Executes statements without rows or with rows as literals.
pub async fn execute(client: &Client, doing: &str, sql: &str) -> Result<(), Trouble> {
    tracing::trace!(bytes = sql.len(), "executing");
    client.batch_execute(sql).await.map_err(|e| trouble(doing, e))
}

/// Executes steps one after another; neighbouring statements travel together.
pub async fn run(
    client: &Client,
    set: &RowSet<'_>,
    steps: Vec<Piece>,
    refused: &mut Refused,
) -> Result<(), Trouble> {
    let doing = format!("writing into {}", set.target.table);
    for step in steps {
        match step {
            Piece::Sql(sql) => execute(client, &doing, &sql).await?,
            Piece::Copy { sql, rows, columns } => copy(client, set, &sql, &rows, &columns, refused).await?,
        }
    }
    Ok(())
}

/// Opens a COPY.
pub async fn open_copy(client: &Client, doing: &str, sql: &str) -> Result<CopyInSink<Bytes>, Trouble> {
    client.copy_in(sql).await.map_err(|e| trouble(doing, e))
}

async fn copy(
    client: &Client,
    set: &RowSet<'_>,
    sql: &str,
    rows: &[RowRef],
    columns: &[usize],
    refused: &mut Refused,
) -> Result<(), Trouble> {
    let doing = format!("copying into {}", set.target.table);
    let mut sink = pin!(open_copy(client, &doing, sql).await?);
    let mut buffer = Vec::new();
    for at in rows {
        if let Err(refusal) = set.some(columns, *at, Style::Copy, &mut buffer) {
            refused.note(*at, refusal.reason);
        }
        if buffer.len() >= CHUNK_BYTES && send(&mut sink, &mut buffer).await.is_err() {
            break;
        }
    }
    // After a failed send the server's reason comes with the end.
    let _ = send(&mut sink, &mut buffer).await;
    sink.finish().await.map_err(|e| trouble(&doing, e))?;
    Ok(())
}

/// Sends what is in the buffer.
pub async fn send<S>(sink: &mut S, buffer: &mut Vec<u8>) -> Result<(), tokio_postgres::Error>
where
    S: futures::Sink<Bytes, Error = tokio_postgres::Error> + Unpin,
{
    if buffer.is_empty() {
        return Ok(());
    }
    sink.send(Bytes::from(std::mem::take(buffer))).await
}

/// Does `op` with the rows inside the open transaction; rows that cannot be held are noted, all others land.
///
/// # Errors
/// Contention that does not end, and everything that is not about a row. The transaction is then lost.
pub async fn land(
    client: &Client,
    set: &RowSet<'_>,
    op: Op,
    rows: &[RowRef],
    refused: &mut Refused,
) -> Result<()> {
    let mut satisfied = Refused::default();
    let failed = match op {
        // A row that cannot be written to the target cannot be in it: its removal is done.
        Op::Delete | Op::DeleteImages => bisect(client, set, op, rows, &mut satisfied).await?,
        Op::Upsert => {
            let failed = bisect(client, set, op, rows, refused).await?;
            // A value of another unique index may have moved from row to row: such rows are replaced together.
            if set.target.other_unique && failed.iter().any(|f| f.trouble.is_unique()) {
                let again: Vec<RowRef> = failed.iter().map(|f| f.at).collect();
                replace(client, set, &again, refused).await?
            } else {
                failed
            }
        }
        Op::Replace => replace(client, set, rows, refused).await?,
        Op::Insert | Op::Patch | Op::Move => bisect(client, set, op, rows, refused).await?,
    };
    for Failed { at, trouble } in failed {
        let reason = match op {
            Op::DeleteImages if trouble.is_missing() => MISSING.to_owned(),
            Op::Patch | Op::Move if trouble.is_missing() => NO_ROW.to_owned(),
            _ => trouble.reason,
        };
        refused.note(at, reason);
    }
    Ok(())
}

/// Removes the old rows of all keys, then adds the new ones. When some cannot be added everything is undone and done
/// again without them, so that their old rows stay.
async fn replace(
    client: &Client,
    set: &RowSet<'_>,
    rows: &[RowRef],
    refused: &mut Refused,
) -> Result<Vec<Failed>> {
    let mut failed: Vec<Failed> = Vec::new();
    let mut left = rows.to_vec();
    while !left.is_empty() {
        let Err(_) = attempt(client, set, Op::Replace, &left, refused).await? else { break };
        control(client, "SAVEPOINT canalis_all").await?;
        let mut bad = bisect(client, set, Op::Delete, &left, refused).await?;
        bad.extend(bisect(client, set, Op::Insert, &left, refused).await?);
        control(client, "ROLLBACK TO SAVEPOINT canalis_all; RELEASE SAVEPOINT canalis_all").await?;
        if bad.is_empty() {
            // Row by row they fit, together they did not: cannot happen, and must not loop.
            return Err(Error::new(
                Code::SinkFailed,
                format!("replacing rows of {} fails", set.target.table),
            ));
        }
        let gone: HashSet<(u32, u32)> = bad.iter().map(|b| (b.at.batch, b.at.row)).collect();
        left.retain(|at| !gone.contains(&(at.batch, at.row)) && !refused.contains(*at));
        failed.append(&mut bad);
    }
    Ok(failed)
}

/// Lands what it can in growing and shrinking pieces; gives the rows that fail alone.
async fn bisect(
    client: &Client,
    set: &RowSet<'_>,
    op: Op,
    rows: &[RowRef],
    refused: &mut Refused,
) -> Result<Vec<Failed>> {
    let mut failed = Vec::new();
    let mut at = 0;
    let mut size = rows.len();
    while at < rows.len() {
        let part = &rows[at..rows.len().min(at + size)];
        match attempt(client, set, op, part, refused).await? {
            Ok(()) => {
                at += part.len();
                size = size.saturating_mul(4);
            }
            Err(trouble) if part.len() == 1 => {
                failed.push(Failed { at: part[0], trouble });
                at += 1;
                size = 1;
            }
            // The line of a COPY tells how many rows before it are good; it is a hint, so progress is forced.
            Err(trouble) => {
                let good = trouble.line.map_or(part.len() / 2, |line| line.saturating_sub(1));
                size = good.clamp(1, part.len() - 1);
            }
        }
    }
    Ok(failed)
}

/// One try inside a savepoint; the inner error is about a row.
async fn attempt(
    client: &Client,
    set: &RowSet<'_>,
    op: Op,
    rows: &[RowRef],
    refused: &mut Refused,
) -> Result<Result<(), RowTrouble>> {
    let route = if rows.len() == 1 { Route::Traced } else { Route::Again };
    let mut retry = 0;
    loop {
        let steps = pieces(set, op, rows, route, refused)?;
        control(client, "SAVEPOINT canalis_part").await?;
        let outcome = run(client, set, steps, refused).await;
        match outcome {
            Ok(()) => {
                control(client, "RELEASE SAVEPOINT canalis_part").await?;
                return Ok(Ok(()));
            }
            Err(Trouble::Fatal(error)) => return Err(error),
            Err(Trouble::Row(trouble)) => {
                control(client, "ROLLBACK TO SAVEPOINT canalis_part; RELEASE SAVEPOINT canalis_part").await?;
                return Ok(Err(trouble));
            }
            Err(Trouble::Contention(error)) if retry >= CONTENTION_RETRIES => return Err(error),
            Err(Trouble::Contention(error)) => {
                tracing::debug!(%error, retry, "contention at the PostgreSQL sink");
                control(client, "ROLLBACK TO SAVEPOINT canalis_part; RELEASE SAVEPOINT canalis_part").await?;
                tokio::time::sleep(back_off(retry, rows.len())).await;
                retry += 1;
            }
        }
    }
}

/// Executes transaction control.
pub async fn control(client: &Client, sql: &str) -> Result<()> {
    execute(client, sql, sql).await.map_err(final_error)
}

/// The error of a statement where no row can be to blame.
pub fn final_error(trouble: Trouble) -> Error {
    match trouble {
        Trouble::Fatal(error) | Trouble::Contention(error) => error,
        Trouble::Row(row) => Error::new(Code::SinkFailed, row.reason),
    }
}
