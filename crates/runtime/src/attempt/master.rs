//! The JobMaster's loop: deals splits, takes checkpoints and carries out schema changes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use canalis_connector_api::{NextSplit, Split, SplitEnumerator, SplitMode};
use canalis_types::{Code, Error, Result, SchemaChange, SchemaChangeKind, TableSchema};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{End, Setup, open::prepare_table};
use crate::{
    checkpoint::Checkpoint,
    job::{Control, Request},
    ledger::Ledger,
    messages::{AfterBarrier, Barrier, ToMaster},
    progress::{JobState, Phase},
};

/// A checkpoint that is being taken.
struct Taking {
    barrier: Barrier,
    readers: BTreeMap<usize, Option<Split>>,
    expect_readers: BTreeSet<usize>,
    prepared: BTreeMap<usize, Value>,
    counts: Ledger,
    savepoints: Vec<oneshot::Sender<Result<std::path::PathBuf>>>,
    /// Splits that became durable after their writer had passed the barrier: they belong to the next one.
    later: Vec<(usize, Vec<String>)>,
}

pub(super) struct Master<'a> {
    setup: &'a Setup<'a>,
    enumerator: Box<dyn SplitEnumerator>,
    checkpoint: Checkpoint,
    base: Ledger,
    writers: usize,
    outputs: Vec<Arc<TableSchema>>,
    /// Barrier senders by reader; one of them only, when the stream is read.
    barriers: BTreeMap<usize, mpsc::Sender<Barrier>>,
    running: BTreeMap<String, Split>,
    stream_ends: BTreeMap<String, usize>,
    waiting: VecDeque<(usize, oneshot::Sender<NextSplit>)>,
    working: BTreeSet<usize>,
    /// Last counts of readers that have ended.
    done: BTreeMap<usize, Ledger>,
    /// A checkpoint that waits: for the one under way, or until readers which have left say their last counts.
    due: Option<AfterBarrier>,
    taking: Option<Taking>,
    pending_savepoints: Vec<oneshot::Sender<Result<std::path::PathBuf>>>,
    stopping: bool,
    stream_reader: Option<usize>,
    /// The stream, and who is to read it once the checkpoint under way is complete.
    held: Option<(usize, Box<Split>, oneshot::Sender<NextSplit>)>,
}

impl<'a> Master<'a> {
    /// `barriers`: the barrier senders of all readers, by index; there are as many writers.
    pub(super) fn new(
        setup: &'a Setup<'a>,
        enumerator: Box<dyn SplitEnumerator>,
        checkpoint: Checkpoint,
        outputs: Vec<Arc<TableSchema>>,
        barriers: BTreeMap<usize, mpsc::Sender<Barrier>>,
    ) -> Self {
        Master {
            setup,
            enumerator,
            base: checkpoint.ledger.clone(),
            checkpoint,
            writers: barriers.len(),
            outputs,
            working: barriers.keys().copied().collect(),
            barriers,
            running: BTreeMap::new(),
            stream_ends: BTreeMap::new(),
            waiting: VecDeque::new(),
            done: BTreeMap::new(),
            due: None,
            taking: None,
            pending_savepoints: Vec::new(),
            stopping: false,
            stream_reader: None,
            held: None,
        }
    }

    /// Works until the job ends, on what tasks and users ask for.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<ToMaster>,
        control: &mut Control,
    ) -> Result<End> {
        let period = self.setup.checkpoint_interval;
        let mut timer = interval_at(Instant::now() + period, period);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = inbox.recv() => {
                    let message = message.ok_or_else(|| Error::internal("all tasks are gone"))?;
                    if let Some(end) = self.handle(message).await? {
                        return Ok(end);
                    }
                }
                _ = timer.tick(), if self.taking.is_none() => {
                    self.begin_checkpoint(AfterBarrier::Continue).await?;
                }
                request = control.requests.recv() => match request {
                    Some(Request::Savepoint(answer)) => {
                        self.pending_savepoints.push(answer);
                        self.begin_checkpoint(AfterBarrier::Continue).await?;
                    }
                    Some(Request::Stop) => {
                        self.stopping = true;
                        self.setup.progress.update(|v| v.state = JobState::Cancelling);
                        self.begin_checkpoint(AfterBarrier::Stop).await?;
                    }
                    Some(Request::Abort) | None => {
                        return Err(Error::new(Code::RestartsExhausted, "stopped without a last checkpoint"));
                    }
                },
            }
        }
    }

    async fn handle(&mut self, message: ToMaster) -> Result<Option<End>> {
        match message {
            ToMaster::NeedSplit { reader, patient, answer } => {
                if !self.deal(reader, patient, answer).await? {
                    return Ok(None);
                }
            }
            ToMaster::SplitsDurable(writer, splits) => match &mut self.taking {
                Some(taking) if taking.prepared.contains_key(&writer) => taking.later.push((writer, splits)),
                _ => self.splits_durable(splits).await?,
            },
            ToMaster::ReaderPassed { reader, epoch, running, counts } => {
                tracing::debug!(reader, epoch, "a reader has passed the barrier");
                if let Some(taking) = self.taking.as_mut().filter(|t| t.barrier.epoch == epoch) {
                    taking.readers.insert(reader, running);
                    taking.counts.add(&counts);
                }
                return self.finish_checkpoint_if_complete().await;
            }
            ToMaster::WriterPassed { writer, epoch, prepared, counts } => {
                tracing::debug!(writer, epoch, "a writer has passed the barrier");
                if let Some(taking) = self.taking.as_mut().filter(|t| t.barrier.epoch == epoch) {
                    taking.prepared.insert(writer, prepared);
                    taking.counts.add(&counts);
                }
                return self.finish_checkpoint_if_complete().await;
            }
            ToMaster::SchemaChange(change, done) => {
                let limit = self.setup.schema_change_timeout;
                tokio::time::timeout(limit, self.change_table(&change)).await.map_err(|_| {
                    Error::new(
                        Code::SinkContention,
                        format!("changing table {} at the sink took longer than {limit:?}", change.after.id),
                    )
                })??;
                match self.outputs.iter_mut().find(|output| output.id == change.after.id) {
                    Some(output) => *output = change.after.clone(),
                    None => self.outputs.push(change.after.clone()),
                }
                // The reader may have failed meanwhile; then its failure follows.
                let _ = done.send(());
            }
            ToMaster::ReaderDone(reader, counts) => {
                tracing::debug!(reader, "a reader has no more work");
                self.working.remove(&reader);
                self.done.insert(reader, counts);
                if let Some(after) = self.due.take() {
                    self.begin_checkpoint(after).await?;
                }
                if self.working.is_empty() && !self.stopping {
                    self.complete_snapshot().await?;
                    self.begin_checkpoint(AfterBarrier::Stop).await?;
                }
            }
            ToMaster::Failed(error) => return Err(error),
        }
        Ok(None)
    }

    async fn change_table(&self, change: &SchemaChange) -> Result<()> {
        match change.kind {
            // A stream that is read from an old place on tells again how tables came to be that the sink has already.
            SchemaChangeKind::CreateTable => prepare_table(self.setup, &change.after, false).await.map(drop),
            _ => self.setup.sink.apply_schema_change(change).await,
        }
    }

    /// Answers a request for work; false when the answer waits.
    async fn deal(
        &mut self,
        reader: usize,
        patient: bool,
        answer: oneshot::Sender<NextSplit>,
    ) -> Result<bool> {
        if self.stream_reader.is_some_and(|r| r != reader) {
            // A reader that has left no longer listens.
            let _ = answer.send(NextSplit::Finished);
            return Ok(true);
        }
        if self.stopping {
            self.waiting.push_back((reader, answer));
            return Ok(false);
        }
        match self.enumerator.next(reader).await? {
            NextSplit::Split(split) if split.mode == SplitMode::Stream => {
                if self.taking.is_some() {
                    // Another reader's barrier may still be on its way to a writer that the stream would feed.
                    self.held = Some((reader, split, answer));
                    return Ok(false);
                }
                self.begin_stream(reader, split, answer).await?;
            }
            NextSplit::Split(split) => self.hand_out(reader, split, answer),
            NextSplit::Wait if patient => {
                self.waiting.push_back((reader, answer));
                return Ok(false);
            }
            other => {
                let _ = answer.send(other);
            }
        }
        Ok(true)
    }

    fn hand_out(&mut self, reader: usize, split: Box<Split>, answer: oneshot::Sender<NextSplit>) {
        tracing::debug!(reader, split = split.id, "a split is dealt");
        self.running.insert(split.id.clone(), (*split).clone());
        // A reader that has failed no longer listens; its failure follows.
        let _ = answer.send(NextSplit::Split(split));
    }

    /// From now on this reader feeds every writer; the others leave without a word to theirs.
    async fn begin_stream(
        &mut self,
        reader: usize,
        split: Box<Split>,
        answer: oneshot::Sender<NextSplit>,
    ) -> Result<()> {
        self.complete_snapshot().await?;
        self.stream_reader = Some(reader);
        self.barriers.retain(|r, _| *r == reader);
        for (_, other) in self.waiting.drain(..) {
            let _ = other.send(NextSplit::Finished);
        }
        self.hand_out(reader, split, answer);
        // The end of the snapshot is worth a checkpoint of its own: from here on a restart needs neither the snapshot's
        // list of splits nor the tables as they were when it was made.
        self.begin_checkpoint(AfterBarrier::Continue).await
    }

    async fn splits_durable(&mut self, splits: Vec<String>) -> Result<()> {
        for id in splits {
            let Some(split) = self.running.get(&id) else { continue };
            if split.mode == SplitMode::Stream {
                let ends = self.stream_ends.entry(id.clone()).or_default();
                *ends += 1;
                if *ends < self.writers {
                    continue;
                }
            }
            self.running.remove(&id);
            self.enumerator.split_finished(&id);
        }
        for (reader, answer) in std::mem::take(&mut self.waiting) {
            self.deal(reader, true, answer).await?;
        }
        Ok(())
    }

    /// All snapshot rows are durable: the sink does what it had put off.
    async fn complete_snapshot(&mut self) -> Result<()> {
        if self.checkpoint.snapshot_complete {
            return Ok(());
        }
        self.setup.progress.set_phases(|p| if p == Phase::Snapshot { Phase::Finishing } else { p });
        self.setup.sink.snapshot_complete(&self.outputs).await?;
        self.checkpoint.snapshot_complete = true;
        Ok(())
    }

    async fn begin_checkpoint(&mut self, after: AfterBarrier) -> Result<()> {
        if self.taking.is_some() {
            // One at a time; what is asked for meanwhile follows when it is complete.
            self.wait_with(after);
            return Ok(());
        }
        if self.stream_reader.is_some_and(|reader| self.working.iter().any(|r| *r != reader)) {
            tracing::debug!(working = ?self.working, "a checkpoint waits for readers that are leaving");
            self.wait_with(after);
            return Ok(());
        }
        let after = if self.due.take() == Some(AfterBarrier::Stop) { AfterBarrier::Stop } else { after };
        let barrier =
            Barrier { epoch: self.checkpoint.epoch + 1, after, everywhere: self.stream_reader.is_some() };
        let mut expect_readers = BTreeSet::new();
        for (reader, sender) in &self.barriers {
            if sender.send(barrier).await.is_ok() {
                expect_readers.insert(*reader);
            }
        }
        tracing::debug!(?barrier, readers = ?expect_readers, "a checkpoint has begun");
        self.taking = Some(Taking {
            barrier,
            readers: BTreeMap::new(),
            expect_readers,
            prepared: BTreeMap::new(),
            counts: Ledger::default(),
            savepoints: std::mem::take(&mut self.pending_savepoints),
            later: Vec::new(),
        });
        Ok(())
    }

    /// Remembers a checkpoint that cannot begin yet; a last one takes precedence.
    fn wait_with(&mut self, after: AfterBarrier) {
        if self.due != Some(AfterBarrier::Stop) {
            self.due = Some(after);
        }
    }

    async fn finish_checkpoint_if_complete(&mut self) -> Result<Option<End>> {
        let complete = self.taking.as_ref().is_some_and(|t| {
            t.prepared.len() == self.writers && t.expect_readers.iter().all(|r| t.readers.contains_key(r))
        });
        if !complete {
            return Ok(None);
        }
        let taking = self.taking.take().expect("just seen");
        let mut ledger = self.base.clone();
        ledger.add(&taking.counts);
        for (reader, counts) in &self.done {
            if !taking.readers.contains_key(reader) {
                ledger.add(counts);
            }
        }
        ledger.verify()?;
        let mut running = self.running.clone();
        let mut stream_position = None;
        for split in taking.readers.into_values().flatten() {
            if split.mode == SplitMode::Stream {
                stream_position = split.position.clone();
            }
            if let Some(known) = running.get_mut(&split.id) {
                known.position = split.position;
            }
        }
        for split in running.values_mut() {
            split.retried = true;
        }
        let stopped = taking.barrier.after == AfterBarrier::Stop;
        let finished = stopped && !self.stopping && self.running.is_empty();
        self.checkpoint.epoch = taking.barrier.epoch;
        self.checkpoint.source = self.enumerator.state();
        self.checkpoint.running = running.into_values().collect();
        self.checkpoint.prepared = taking.prepared.into_values().collect();
        self.checkpoint.tables = self.outputs.iter().map(|o| o.id.clone()).collect();
        self.checkpoint.ledger = ledger;
        self.checkpoint.finished = finished;
        self.setup.store.save(&self.checkpoint)?;
        for savepoint in taking.savepoints {
            // Who asked may have gone away.
            let _ = savepoint.send(self.setup.store.save_savepoint(&self.checkpoint));
        }
        self.setup.sink.publish(&self.checkpoint.prepared).await?;
        self.enumerator.checkpoint_durable(stream_position.as_ref()).await?;
        self.setup.progress.update(|v| v.epoch = self.checkpoint.epoch);
        for (_, splits) in taking.later {
            self.splits_durable(splits).await?;
        }
        if stopped {
            if finished {
                self.setup.progress.set_phases(|_| Phase::Done);
            }
            return Ok(Some(if finished { End::Finished } else { End::Stopped }));
        }
        if let Some((reader, split, answer)) = self.held.take() {
            if self.stopping {
                self.waiting.push_back((reader, answer));
            } else {
                self.begin_stream(reader, split, answer).await?;
            }
        }
        if let Some(after) = self.due.take() {
            self.begin_checkpoint(after).await?;
        }
        Ok(None)
    }
}
