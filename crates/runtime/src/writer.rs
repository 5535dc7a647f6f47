//! Owns the writer task: takes rows in order, decides when to commit, answers barriers.

use std::sync::Arc;

use canalis_connector_api::{CommitPoint, SinkWriter, Watermark};
use canalis_types::{Error, Position, Result, TableId};
use tokio::sync::mpsc;

use crate::{
    budget::Taken,
    ledger::Ledger,
    messages::{AfterBarrier, Barrier, ToMaster, ToWriter},
    progress::Progress,
};

/// When a writer commits without being told to.
#[derive(Debug, Clone, Copy)]
pub struct CommitLimits {
    /// Rows of a stream window.
    pub rows: u64,
    /// Bytes of a stream window.
    pub bytes: u64,
    /// Bytes of bounded splits in one transaction.
    pub split_bytes: u64,
}

/// What of a stream this writer has committed in an earlier run.
#[derive(Debug, Clone)]
pub enum Skip {
    /// Nothing beyond the checkpoint.
    Nothing,
    /// All rows up to the position.
    All(Position),
    /// Rows of tables without a key up to the position (the number of writers has changed).
    Keyless(Position),
}

pub(crate) struct WriterTask {
    pub index: usize,
    pub writer: Box<dyn SinkWriter>,
    pub input: mpsc::Receiver<ToWriter>,
    pub master: mpsc::Sender<ToMaster>,
    pub limits: CommitLimits,
    pub skip: Skip,
    pub progress: Arc<Progress>,
    pub epoch: u64,
}

/// Rows taken and not committed.
#[derive(Default)]
struct Pending {
    rows: u64,
    bytes: u64,
    splits: Vec<String>,
    held: Vec<Taken>,
    event_time_ms: Option<i64>,
    /// Newest watermark, if no row came after it.
    watermark: Option<Watermark>,
    /// A watermark has moved since the last commit.
    moved: bool,
}

struct State {
    counts: Ledger,
    pending: Pending,
    in_split: Option<(String, Option<TableId>, SplitKind)>,
    streaming: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SplitKind {
    /// Partial commits are harmless: a retry overwrites by key.
    Keyed,
    /// Only as a whole.
    Whole,
}

impl WriterTask {
    /// Runs until the input closes or something fails; a failure goes to the master.
    pub(crate) async fn run(mut self) {
        let mut state = State {
            counts: Ledger::default(),
            pending: Pending::default(),
            in_split: None,
            streaming: false,
        };
        if let Err(error) = self.work(&mut state).await {
            // The master may be gone already; then nobody needs the failure.
            let _ = self.master.send(ToMaster::Failed(error)).await;
        }
    }

    async fn work(&mut self, state: &mut State) -> Result<()> {
        loop {
            let message = match self.input.try_recv() {
                Ok(message) => message,
                Err(mpsc::error::TryRecvError::Empty) => {
                    // A stream with nothing more at hand: what is here becomes visible now.
                    if state.streaming && state.pending.rows > 0 && state.pending.watermark.is_some() {
                        self.commit(state).await?;
                        continue;
                    }
                    match self.input.recv().await {
                        Some(message) => message,
                        None => return Ok(()),
                    }
                }
                Err(mpsc::error::TryRecvError::Disconnected) => return Ok(()),
            };
            self.handle(state, message).await?;
        }
    }

    async fn handle(&mut self, state: &mut State, message: ToWriter) -> Result<()> {
        match message {
            ToWriter::Begin(begin) => {
                let keyed = begin.schema.as_ref().is_some_and(|s| s.has_key());
                let kind = if keyed { SplitKind::Keyed } else { SplitKind::Whole };
                state.in_split = Some((begin.split.id.clone(), begin.split.table.clone(), kind));
                state.streaming = false;
                self.writer.begin_split(&begin).await
            }
            ToWriter::Rows(batch, taken) => {
                if state.in_split.is_none() {
                    state.streaming = true;
                }
                let changes = batch.num_changes();
                let table = &batch.schema().id;
                state.counts.sink(table).sent += changes;
                let skipped = match &self.skip {
                    Skip::Nothing => false,
                    Skip::All(_) => state.streaming,
                    Skip::Keyless(_) => state.streaming && !batch.schema().has_key(),
                };
                if skipped {
                    state.counts.sink(table).skipped += changes;
                    return Ok(());
                }
                state.pending.rows += batch.num_rows() as u64;
                state.pending.bytes += batch.num_bytes();
                state.pending.event_time_ms = state.pending.event_time_ms.max(batch.event_time_ms);
                state.pending.watermark = None;
                self.writer.write(batch).await?;
                if state.streaming {
                    state.pending.held.push(taken);
                } else if state.pending.bytes >= self.limits.split_bytes
                    && state.in_split.as_ref().is_some_and(|(_, _, kind)| *kind == SplitKind::Keyed)
                {
                    self.commit(state).await?;
                }
                Ok(())
            }
            ToWriter::End(id) => {
                state.in_split = None;
                state.pending.splits.push(id);
                if state.pending.bytes >= self.limits.split_bytes {
                    self.commit(state).await?;
                }
                Ok(())
            }
            ToWriter::Watermark(watermark) => {
                if let Skip::All(position) | Skip::Keyless(position) = &self.skip
                    && watermark.position >= *position
                {
                    self.skip = Skip::Nothing;
                }
                state.pending.watermark = Some(watermark);
                state.pending.moved = true;
                if state.pending.rows >= self.limits.rows || state.pending.bytes >= self.limits.bytes {
                    self.commit(state).await?;
                }
                Ok(())
            }
            ToWriter::Flush(done) => {
                // A reader that leaves asks for what it has sent; meanwhile the stream may have begun to feed this writer,
                // and its rows wait for their watermark.
                let between = state.streaming && state.pending.rows > 0 && state.pending.watermark.is_none();
                if !between && (state.in_split.is_none() || state.pending.watermark.is_some()) {
                    self.commit(state).await?;
                }
                // A reader that is gone no longer waits.
                let _ = done.send(());
                Ok(())
            }
            ToWriter::Schema(schema) => self.writer.schema_changed(&schema).await,
            ToWriter::Barrier(barrier) => self.barrier(state, barrier).await,
        }
    }

    async fn barrier(&mut self, state: &mut State, barrier: Barrier) -> Result<()> {
        self.commit(state).await?;
        let prepared = match barrier.after {
            AfterBarrier::Continue => self.writer.prepare(barrier.epoch).await?,
            AfterBarrier::Stop => self.writer.finish(barrier.epoch).await?,
        };
        self.epoch = barrier.epoch;
        let passed = ToMaster::WriterPassed {
            writer: self.index,
            epoch: barrier.epoch,
            prepared,
            counts: state.counts.clone(),
        };
        self.tell(passed).await
    }

    async fn commit(&mut self, state: &mut State) -> Result<()> {
        let pending = std::mem::take(&mut state.pending);
        // The watermark stays valid until the next row.
        state.pending.watermark = pending.watermark.clone();
        if pending.rows == 0 && pending.splits.is_empty() && !pending.moved {
            return Ok(());
        }
        if state.streaming && pending.rows > 0 && pending.watermark.is_none() {
            return Err(Error::internal("a stream was to be committed between two watermarks"));
        }
        let position = pending.watermark.map(|w| w.position);
        let split = state.in_split.as_ref().map(|(id, ..)| id.clone());
        let point = CommitPoint {
            split_position: split.zip(position.clone()),
            position: position.filter(|_| state.streaming),
            splits: pending.splits.clone(),
            epoch: self.epoch + 1,
        };
        tracing::debug!(writer = self.index, rows = pending.rows, position = ?point.position, "committing");
        let report = self.writer.commit(&point).await?;
        let mut written = 0;
        for (table, changes) in report.written {
            state.counts.sink(&table).written += changes;
            written += changes;
        }
        for (table, changes) in report.dead_lettered {
            state.counts.sink(&table).dead_lettered += changes;
        }
        self.progress.committed(written, pending.event_time_ms);
        drop(pending.held);
        if !pending.splits.is_empty() {
            self.tell(ToMaster::SplitsDurable(self.index, pending.splits)).await?;
        }
        Ok(())
    }

    async fn tell(&mut self, message: ToMaster) -> Result<()> {
        self.master.send(message).await.map_err(|_| Error::internal("the master is gone"))
    }
}
