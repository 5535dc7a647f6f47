//! Owns bounded splits: rows stream through COPY inside one transaction over several batches and splits. The rows of
//! the COPY under way stay in memory up to a limit and behind a savepoint, so that a refused row costs only itself.

use std::{collections::BTreeSet, pin::Pin, sync::Arc};

use bytes::Bytes;
use canalis_batch::{ChangeBatch, RowRef};
use canalis_connector_api::{CommitPoint, DeadLetter, SplitMode};
use canalis_types::{Result, TableSchema};
use tokio_postgres::CopyInSink;

use super::{
    PostgresWriter,
    fold::operations,
    land::{CHUNK_BYTES, control, final_error, land, open_copy, send},
    rows::{Refused, RowSet},
    statement::Op,
    window::{BEGIN, fold_all, plan},
};
use crate::{
    encode::Style,
    error::{Trouble, trouble},
    target::Target,
};

/// Rows of one COPY that are kept until it has ended.
const SEGMENT_BYTES: u64 = 8 << 20;

/// Refused rows that wait for the commit before they are handed over earlier.
const MAX_WAITING_LETTERS: usize = 500;

/// An open transaction of bounded splits.
pub struct Bulk {
    segment: Option<Segment>,
    letters: Vec<DeadLetter>,
    /// Numbers of targets in which rows with the same keys were met; their rows are merged from then on.
    merging: BTreeSet<u64>,
}

/// Rows of one table that share a savepoint.
struct Segment {
    target: Arc<Target>,
    way: Way,
    batches: Vec<ChangeBatch>,
    bytes: u64,
    refused: Refused,
    /// Whether no row of it can be in the table yet.
    all_new: bool,
}

enum Way {
    /// Straight into the table.
    Copy(Pin<Box<CopyInSink<Bytes>>>),
    /// By key, at the end of the segment.
    Merge,
}

impl PostgresWriter {
    /// Takes rows of a bounded split.
    pub(super) async fn write_bulk(&mut self, batch: ChangeBatch) -> Result<()> {
        if self.current_segment().is_some_and(|s| s.target.id != batch.schema().id) {
            self.finish_segment().await?;
        }
        let target = match self.current_segment() {
            Some(segment) => segment.target.clone(),
            None => self.begin_segment(batch.schema()).await?,
        };
        let dates = self.shared.options.invalid_date;
        let Some(segment) = self.bulk.as_mut().and_then(|b| b.segment.as_mut()) else { return Ok(()) };
        if let Way::Copy(sink) = &mut segment.way {
            let set = RowSet::new(&target, std::slice::from_ref(&batch), dates)?;
            let place = u32::try_from(segment.batches.len()).unwrap_or(u32::MAX);
            let mut buffer = Vec::with_capacity(CHUNK_BYTES + 4096);
            for at in set.all() {
                if let Err(refusal) = set.row(at, Style::Copy, &mut buffer) {
                    segment.refused.note(RowRef { batch: place, row: at.row }, refusal.reason);
                }
                if buffer.len() >= CHUNK_BYTES {
                    // When this fails the server's reason comes with the end of the segment.
                    if send(sink, &mut buffer).await.is_err() {
                        break;
                    }
                    buffer.reserve(CHUNK_BYTES + 4096);
                }
            }
            let _ = send(sink, &mut buffer).await;
        }
        segment.bytes += batch.num_bytes();
        segment.batches.push(batch);
        if segment.bytes >= SEGMENT_BYTES {
            self.finish_segment().await?;
        }
        Ok(())
    }

    fn current_segment(&self) -> Option<&Segment> {
        self.bulk.as_ref().and_then(|b| b.segment.as_ref())
    }

    async fn begin_segment(&mut self, schema: &Arc<TableSchema>) -> Result<Arc<Target>> {
        let target = self.target(schema).await?;
        let (retried, appends) = self
            .split
            .as_ref()
            .map_or((true, false), |s| (s.split.retried, s.split.mode == SplitMode::Append));
        let waits = target.has_key() && self.shared.waits_for_key(&target.table);
        let target = if waits && appends {
            // Appended rows may share keys, which only the key itself notices.
            let client = self.shared.options.endpoint.connect().await?;
            self.shared.build_key(&client, schema).await?;
            self.target(schema).await?
        } else {
            target
        };
        let begin = if self.bulk.is_some() { "" } else { BEGIN };
        let bulk = self.bulk.get_or_insert_with(|| Bulk {
            segment: None,
            letters: Vec::new(),
            merging: BTreeSet::new(),
        });
        // Without an index over the key the server would not notice a row that is there already; only a table
        // that this run has made is known to hold none. With one a COPY that meets such a row is done again by key.
        let all_new = !target.has_key() || (waits && !appends && !retried);
        let guarded = target.arbiter && !bulk.merging.contains(&target.number);
        let merge = !all_new && !guarded;
        control(&self.client, &format!("{begin} SAVEPOINT canalis_segment")).await?;
        let way = if merge {
            Way::Merge
        } else {
            let doing = format!("copying into {}", target.table);
            let sink = open_copy(&self.client, &doing, &target.copy()).await.map_err(final_error)?;
            Way::Copy(Box::pin(sink))
        };
        bulk.segment = Some(Segment {
            target: target.clone(),
            way,
            batches: Vec::new(),
            bytes: 0,
            refused: Refused::default(),
            all_new,
        });
        Ok(target)
    }

    /// Ends the COPY under way; afterwards all its rows are in the transaction or refused.
    pub(super) async fn finish_segment(&mut self) -> Result<()> {
        let Some(bulk) = self.bulk.as_mut() else { return Ok(()) };
        let Some(segment) = bulk.segment.take() else { return Ok(()) };
        let Segment { target, way, batches, mut refused, all_new, .. } = segment;
        let dates = self.shared.options.invalid_date;
        let mut again = true;
        if let Way::Copy(mut sink) = way {
            match sink.as_mut().finish().await {
                Ok(_) => again = false,
                Err(error) => match trouble(&format!("copying into {}", target.table), error) {
                    Trouble::Row(row) => {
                        tracing::debug!(reason = %row.reason, "a row is refused, copying the segment again");
                        if row.is_unique() && target.has_key() {
                            bulk.merging.insert(target.number);
                        }
                        control(&self.client, "ROLLBACK TO SAVEPOINT canalis_segment").await?;
                    }
                    other => return Err(final_error(other)),
                },
            }
        }
        if again || !refused.is_empty() {
            let folded =
                if again && !all_new { operations(&target, batches.clone())?.steps } else { Vec::new() };
            let set = RowSet::new(&target, &batches, dates)?;
            let steps = if again && all_new { vec![(Op::Insert, set.all())] } else { folded };
            for (op, rows) in steps {
                land(&self.client, &set, op, &rows, &mut refused).await?;
            }
            bulk.letters.extend(refused.letters(&set, None));
        }
        control(&self.client, "RELEASE SAVEPOINT canalis_segment").await?;
        if bulk.letters.len() >= MAX_WAITING_LETTERS {
            let letters = std::mem::take(&mut bulk.letters);
            self.reject(letters).await?;
        }
        Ok(())
    }

    /// Ends the transaction of bounded splits, with changes that came after them.
    pub(super) async fn commit_bulk(&mut self, point: &CommitPoint) -> Result<()> {
        self.finish_segment().await?;
        if !self.windows.is_empty() {
            let windows = fold_all(std::mem::take(&mut self.windows))?;
            let shared = self.shared.clone();
            let works = plan(&windows, &shared)?;
            self.apply_carefully(&works, point).await?;
        }
        let letters = self.bulk.take().map(|b| b.letters).unwrap_or_default();
        self.reject(letters).await?;
        let record = self.record(point)?;
        self.end(&format!("{record} COMMIT")).await
    }
}
