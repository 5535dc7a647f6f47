//! Owns the commit of windows: first everything at once in as few round trips as possible, and only when the server
//! refuses a row the careful way.

use std::sync::Arc;

use canalis_batch::RowRef;
use canalis_connector_api::{CommitPoint, DeadLetter};
use canalis_types::Result;

use super::{
    PostgresWriter, Window,
    fold::{Operations, operations},
    land::{CONTENTION_RETRIES, back_off, control, execute, final_error, land, run},
    rows::{Refused, RowSet},
    statement::{Op, Piece, Route, pieces},
};
use crate::{error::Trouble, sink::Shared, target::Target};

/// Begins a transaction in which a deferred constraint speaks up at once, while its row can still be found.
pub const BEGIN: &str = "BEGIN; SET CONSTRAINTS ALL IMMEDIATE;";

/// A window, folded.
pub struct Folded {
    target: Arc<Target>,
    operations: Operations,
}

/// A window with what is to be done.
pub struct Work<'a> {
    set: RowSet<'a>,
    operations: &'a [(Op, Vec<RowRef>)],
    refused: &'a Refused,
    route: Route,
}

/// Folds all windows.
pub fn fold_all(windows: Vec<Window>) -> Result<Vec<Folded>> {
    let fold = |Window { target, batches }| {
        let operations = operations(&target, batches)?;
        Ok(Folded { target, operations })
    };
    windows.into_iter().map(fold).collect()
}

/// Makes folded windows ready to be written.
pub fn plan<'a>(windows: &'a [Folded], shared: &Shared) -> Result<Vec<Work<'a>>> {
    let mut works = Vec::with_capacity(windows.len());
    for Folded { target, operations } in windows {
        works.push(Work {
            set: RowSet::new(target, &operations.batches, shared.options.invalid_date)?,
            operations: &operations.steps,
            refused: &operations.refused,
            route: if operations.repeats { Route::Again } else { Route::Fast },
        });
    }
    Ok(works)
}

/// Rows of a table without a key that have to be put back: their images were removed for updates that are refused.
/// With a key an old row is only ever overwritten, so it stays by itself.
fn kept(set: &RowSet<'_>, operations: &[(Op, Vec<RowRef>)], refused: &Refused) -> Vec<RowRef> {
    let by_images = operations.iter().any(|(op, _)| *op == Op::DeleteImages);
    if by_images { refused.replaced(set) } else { Vec::new() }
}

impl PostgresWriter {
    /// Commits the windows together with the point. Deadlocks and serialization failures are tried again from memory.
    pub(super) async fn commit_windows(&mut self, point: &CommitPoint) -> Result<()> {
        let windows = fold_all(std::mem::take(&mut self.windows))?;
        let shared = self.shared.clone();
        let works = plan(&windows, &shared)?;
        let mut retry = 0;
        loop {
            match self.try_fast(&works, point).await {
                Ok(()) => return Ok(()),
                Err(Trouble::Fatal(error)) => return Err(error),
                Err(Trouble::Row(row)) => {
                    tracing::debug!(reason = %row.reason, "a row is refused, applying the window carefully");
                    control(&self.client, "ROLLBACK").await?;
                    break;
                }
                Err(Trouble::Contention(error)) => {
                    control(&self.client, "ROLLBACK").await?;
                    if retry >= CONTENTION_RETRIES {
                        return Err(error);
                    }
                    tracing::debug!(%error, retry, "contention at the PostgreSQL sink");
                    tokio::time::sleep(back_off(retry, self.ctx.index)).await;
                    retry += 1;
                }
            }
        }
        control(&self.client, BEGIN).await?;
        self.apply_carefully(&works, point).await?;
        let record = self.record(point)?;
        control(&self.client, &format!("{record} COMMIT")).await
    }

    /// All windows, the point and the COMMIT. Small windows travel in one message.
    async fn try_fast(&mut self, works: &[Work<'_>], point: &CommitPoint) -> Result<(), Trouble> {
        let mut sql = BEGIN.to_owned();
        let mut letters = Vec::new();
        for Work { set, operations, refused, route } in works {
            let mut refused = (*refused).clone();
            let mut satisfied = Refused::default();
            for (op, rows) in *operations {
                // A row that cannot be written to the target cannot be in it: its removal is done.
                let note = match op {
                    Op::Delete | Op::DeleteImages => &mut satisfied,
                    _ => &mut refused,
                };
                self.add(set, (*op, *route), rows, note, &mut sql).await?;
            }
            let kept = kept(set, operations, &refused);
            self.add(set, (Op::Insert, *route), &kept, &mut satisfied, &mut sql).await?;
            letters.extend(refused.letters(set, point.position.as_ref()));
        }
        sql.push_str(&self.record(point)?);
        if !letters.is_empty() {
            execute(&self.client, "applying changes", &sql).await?;
            self.reject(letters).await?;
            sql.clear();
        }
        sql.push_str("COMMIT");
        execute(&self.client, "applying changes", &sql).await
    }

    /// Adds what does `op` with `rows` to the statements that wait; a COPY sends them and itself.
    async fn add(
        &self,
        set: &RowSet<'_>,
        (op, route): (Op, Route),
        rows: &[RowRef],
        note: &mut Refused,
        sql: &mut String,
    ) -> Result<(), Trouble> {
        for piece in pieces(set, op, rows, route, note)? {
            match piece {
                Piece::Sql(more) => sql.push_str(&more),
                copy @ Piece::Copy { .. } => {
                    let steps = vec![Piece::Sql(std::mem::take(sql)), copy];
                    run(&self.client, set, steps, note).await?;
                }
            }
        }
        Ok(())
    }

    /// All windows inside the open transaction; refused rows are handed over.
    pub(super) async fn apply_carefully(&mut self, works: &[Work<'_>], point: &CommitPoint) -> Result<()> {
        let mut letters: Vec<DeadLetter> = Vec::new();
        for Work { set, operations, refused, .. } in works {
            let mut refused = (*refused).clone();
            for (op, rows) in *operations {
                land(&self.client, set, *op, rows, &mut refused).await?;
            }
            let kept = kept(set, operations, &refused);
            land(&self.client, set, Op::Insert, &kept, &mut Refused::default()).await?;
            letters.extend(refused.letters(set, point.position.as_ref()));
        }
        self.reject(letters).await
    }

    /// Executes the last statements of a transaction.
    pub(super) async fn end(&self, sql: &str) -> Result<()> {
        execute(&self.client, "committing", sql).await.map_err(final_error)
    }
}
