//! Owns one attempt at running a job: the JobMaster that restores, deals splits, takes checkpoints and carries out
//! schema changes until the source ends, a stop is asked for, or something fails.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use canalis_connector_api::{
    DeadLetterQueue, NextSplit, Sink, SinkContext, SinkRecovery, Source, SourceContext, SourceRestore, Split,
    SplitEnumerator, SplitMode, TablePlan, WriterContext,
};
use canalis_transforms::{Transforms, merge_check};
use canalis_types::{Code, Error, Position, Result, TableId, TableSchema};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::{
    budget::Budget,
    checkpoint::{Checkpoint, CheckpointStore},
    job::{Control, Request},
    ledger::Ledger,
    messages::{AfterBarrier, Barrier, ToMaster},
    progress::{JobState, Phase, Progress},
    reader::{ReaderTask, SchemaRules, TableTransforms, WriterLink},
    writer::{CommitLimits, Skip, WriterTask},
};

/// Messages that may wait between a reader and a writer; the byte budget is the tighter bound for rows.
const QUEUE: usize = 64;
/// Rows of a stream that wait behind a window being committed, beyond the size of a window.
const STREAM_AHEAD: u64 = 2 << 20;
/// A window of one writer is at least this large, whatever the number of writers.
const MIN_WINDOW: (u64, u64) = (1_000, 1 << 20);
/// Rows that a reader of bounded splits may be ahead of its writer; enough to keep both busy.
const SPLIT_AHEAD: u64 = 4 << 20;
/// Bounded splits share a transaction up to this size.
const SPLIT_BYTES: u64 = 64 << 20;

/// Everything an attempt needs from the job.
pub(crate) struct Setup<'a> {
    pub job: &'a str,
    pub connectors: (String, String),
    pub source: &'a dyn Source,
    pub sink: &'a Arc<dyn Sink>,
    pub transforms: &'a Arc<Transforms>,
    pub schema_rules: &'a Arc<SchemaRules>,
    pub store: &'a CheckpointStore,
    pub dead_letters: &'a Arc<dyn DeadLetterQueue>,
    pub progress: &'a Arc<Progress>,
    pub parallelism: usize,
    pub max_rows: u64,
    pub max_bytes: u64,
    pub checkpoint_interval: Duration,
    pub schema_change_timeout: Duration,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The source has ended.
    Finished,
    /// Stopped on request, after a last checkpoint.
    Stopped,
}

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

struct Master<'a> {
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
    /// A checkpoint that waits until readers which have left say their last counts.
    due: Option<AfterBarrier>,
    taking: Option<Taking>,
    pending_savepoints: Vec<oneshot::Sender<Result<std::path::PathBuf>>>,
    stopping: bool,
    stream_reader: Option<usize>,
}

/// Runs the job from its newest checkpoint until it ends.
pub(crate) async fn run(
    setup: &Setup<'_>,
    restore: Option<Checkpoint>,
    control: &mut Control,
) -> Result<End> {
    setup.progress.update(|v| v.state = JobState::Initializing);
    if restore.as_ref().is_some_and(|c| c.finished) {
        setup.progress.set_phases(|_| Phase::Done);
        return Ok(End::Finished);
    }
    let capabilities = setup.sink.capabilities();
    let writers = if capabilities.parallel { setup.parallelism } else { 1 };
    let context =
        SourceContext { job: setup.job.to_owned(), parallelism: writers, upsert_sink: capabilities.upsert };
    let fresh = restore.is_none();
    let (enumerator, checkpoint, recovery, transforms, outputs) = match restore {
        None => open_fresh(setup, context, writers).await?,
        Some(checkpoint) => open_restored(setup, context, writers, checkpoint).await?,
    };
    let mut tasks = JoinSet::new();
    let (to_master, from_tasks) = mpsc::channel(QUEUE);
    let mut links = Vec::with_capacity(writers);
    // The limits are those of the job; each writer has its share. A writer commits at a watermark once it has its share, so
    // a budget above the share always has something to give back.
    let share = writers as u64;
    let limits = CommitLimits {
        rows: (setup.max_rows / share).max(MIN_WINDOW.0),
        bytes: (setup.max_bytes / share).max(MIN_WINDOW.1),
        split_bytes: SPLIT_BYTES,
    };
    let budget = limits.bytes + STREAM_AHEAD;
    for index in 0..writers {
        let writer = setup
            .sink
            .open_writer(WriterContext {
                job: setup.job.to_owned(),
                index,
                writers,
                dead_letters: setup.dead_letters.clone(),
            })
            .await?;
        let (sender, input) = mpsc::channel(QUEUE);
        links.push(WriterLink { sender, budget: Budget::new(budget), ahead: Budget::new(SPLIT_AHEAD) });
        let task = WriterTask {
            index,
            writer,
            input,
            master: to_master.clone(),
            limits,
            skip: skip_for(&checkpoint, &recovery, index, writers),
            progress: setup.progress.clone(),
            epoch: checkpoint.epoch,
        };
        tasks.spawn(task.run());
    }
    let created: BTreeSet<TableId> = checkpoint.created.iter().cloned().collect();
    let by_source: BTreeMap<TableId, Vec<TableId>> = transforms
        .iter()
        .map(|(id, t)| (id.clone(), t.outputs().iter().map(|o| o.id.clone()).collect()))
        .collect();
    // Only into a table that this very run made can rows go without overwriting.
    let overwrite: Arc<dyn Fn(&TableId) -> bool + Send + Sync> = Arc::new(move |source| {
        !fresh || by_source.get(source).is_none_or(|sinks| !sinks.iter().all(|t| created.contains(t)))
    });
    let mut enumerator = enumerator;
    let committed = Arc::new(recovery.split_positions.clone());
    let mut barriers = BTreeMap::new();
    for index in 0..writers {
        let (sender, receiver) = mpsc::channel(4);
        barriers.insert(index, sender);
        let task = ReaderTask {
            index,
            reader: enumerator.open_reader().await?,
            links: links.clone(),
            barriers: receiver,
            master: to_master.clone(),
            transforms: setup.transforms.clone(),
            tables: transforms.clone(),
            schema_rules: setup.schema_rules.clone(),
            dead_letters: setup.dead_letters.clone(),
            progress: setup.progress.clone(),
            committed: committed.clone(),
            overwrite: overwrite.clone(),
        };
        tasks.spawn(task.run());
    }
    drop((links, to_master));
    let base = checkpoint.ledger.clone();
    let master = Master {
        setup,
        enumerator,
        checkpoint,
        base,
        writers,
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
    };
    setup.progress.update(|v| v.state = JobState::Running);
    let end = master.run(from_tasks, control).await;
    // Tasks end at the latest when they are aborted here; what they had not committed is read again.
    tasks.shutdown().await;
    end
}

type Opened = (Box<dyn SplitEnumerator>, Checkpoint, SinkRecovery, TableTransforms, Vec<Arc<TableSchema>>);

/// First start: the start position is durable before anything is read or written.
async fn open_fresh(setup: &Setup<'_>, context: SourceContext, writers: usize) -> Result<Opened> {
    let enumerator = setup.source.open(context, None).await?;
    let (transforms, outputs) = plan_tables(setup, enumerator.as_ref())?;
    let tables: Vec<TableId> = outputs.iter().map(|o| o.id.clone()).collect();
    let sink_context =
        SinkContext { job: setup.job.to_owned(), writers, fresh: true, tables: tables.clone() };
    let recovery = setup.sink.open(&sink_context).await?;
    let mut checkpoint = Checkpoint::empty(setup.job, setup.connectors.clone());
    for output in &outputs {
        let plan = prepare_table(setup, output, true).await?;
        if !plan.statements.is_empty() {
            checkpoint.created.push(output.id.clone());
        }
    }
    checkpoint.source = enumerator.state();
    checkpoint.writers = writers;
    checkpoint.tables = tables;
    setup.store.save(&checkpoint)?;
    Ok((enumerator, checkpoint, recovery, transforms, outputs))
}

async fn open_restored(
    setup: &Setup<'_>,
    context: SourceContext,
    writers: usize,
    checkpoint: Checkpoint,
) -> Result<Opened> {
    let sink_context =
        SinkContext { job: setup.job.to_owned(), writers, fresh: false, tables: checkpoint.tables.clone() };
    let recovery = setup.sink.open(&sink_context).await?;
    setup.sink.publish(&checkpoint.prepared).await?;
    let stream = checkpoint.running.iter().find(|s| s.mode == SplitMode::Stream);
    let from = stream.and_then(|s| s.position.as_ref());
    let mut cuts: Vec<Position> = (0..writers)
        .filter_map(|index| match skip_for(&checkpoint, &recovery, index, writers) {
            Skip::Nothing => None,
            Skip::All(position) | Skip::Keyless(position) => Some(position),
        })
        .filter(|p| from.is_none_or(|from| p > from))
        .collect();
    cuts.sort();
    cuts.dedup();
    let restore = SourceRestore {
        state: checkpoint.source.clone(),
        running: checkpoint.running.clone(),
        done: recovery.done_splits.clone(),
        cuts,
    };
    let enumerator = setup.source.open(context, Some(restore)).await?;
    let (transforms, outputs) = plan_tables(setup, enumerator.as_ref())?;
    for output in &outputs {
        prepare_table(setup, output, !checkpoint.snapshot_complete).await?;
    }
    Ok((enumerator, checkpoint, recovery, transforms, outputs))
}

/// Prepares a table at the sink; creates it only if `create.table` is not excluded.
async fn prepare_table(setup: &Setup<'_>, output: &Arc<TableSchema>, snapshot: bool) -> Result<TablePlan> {
    if !setup.schema_rules.accepted.contains("create.table") {
        let plan = setup.sink.plan_table(output).await?;
        if !plan.statements.is_empty() {
            return Err(Error::new(
                Code::TargetIncompatible,
                format!(
                    "table {} does not exist at the sink as it is needed, and `create.table` is excluded; needed: {}",
                    plan.table,
                    plan.statements.join("; ")
                ),
            ));
        }
    }
    setup.sink.prepare_table(output, snapshot).await
}

fn plan_tables(
    setup: &Setup<'_>,
    enumerator: &dyn SplitEnumerator,
) -> Result<(TableTransforms, Vec<Arc<TableSchema>>)> {
    let mut transforms = TableTransforms::new();
    let mut outputs: Vec<Arc<TableSchema>> = Vec::new();
    for schema in enumerator.tables() {
        let transform = setup.transforms.plan(&schema)?;
        outputs.extend(transform.outputs().iter().cloned());
        let estimate = enumerator.estimate(&schema.id).map(|e| e.rows);
        setup.progress.table(&schema.id, |t| t.estimated_rows = estimate);
        transforms.insert(schema.id.clone(), Arc::new(transform));
    }
    merge_check(&outputs)?;
    let mut seen = BTreeSet::new();
    outputs.retain(|o| seen.insert(o.id.clone()));
    Ok((transforms, outputs))
}

/// What writer `index` has to skip after a restore.
fn skip_for(checkpoint: &Checkpoint, recovery: &SinkRecovery, index: usize, writers: usize) -> Skip {
    let Some(Some(position)) = recovery.positions.get(index) else { return Skip::Nothing };
    let stream = checkpoint.running.iter().find(|s| s.mode == SplitMode::Stream);
    if stream.and_then(|s| s.position.as_ref()).is_some_and(|from| position <= from) {
        return Skip::Nothing;
    }
    if checkpoint.writers == writers {
        Skip::All(position.clone())
    } else if index == 0 {
        Skip::Keyless(position.clone())
    } else {
        Skip::Nothing
    }
}

impl Master<'_> {
    async fn run(mut self, mut inbox: mpsc::Receiver<ToMaster>, control: &mut Control) -> Result<End> {
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
                _ = timer.tick() => self.begin_checkpoint(AfterBarrier::Continue).await?,
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
                tokio::time::timeout(limit, self.setup.sink.apply_schema_change(&change)).await.map_err(
                    |_| {
                        Error::new(
                            Code::SinkContention,
                            format!(
                                "changing table {} at the sink took longer than {limit:?}",
                                change.after.id
                            ),
                        )
                    },
                )??;
                for output in &mut self.outputs {
                    if output.id == change.after.id {
                        *output = change.after.clone();
                    }
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
        match self.enumerator.next().await? {
            NextSplit::Split(split) => {
                if split.mode == SplitMode::Stream {
                    self.complete_snapshot().await?;
                    self.stream_reader = Some(reader);
                    // From now on this reader feeds every writer; the others leave without a word to theirs.
                    self.barriers.retain(|r, _| *r == reader);
                    for (_, other) in self.waiting.drain(..) {
                        let _ = other.send(NextSplit::Finished);
                    }
                }
                tracing::debug!(reader, split = split.id, "a split is dealt");
                self.running.insert(split.id.clone(), (*split).clone());
                let _ = answer.send(NextSplit::Split(split));
            }
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
            // One at a time; a stop or savepoint that comes meanwhile follows when it is complete.
            return Ok(());
        }
        if self.stream_reader.is_some_and(|reader| self.working.iter().any(|r| *r != reader)) {
            tracing::debug!(working = ?self.working, "a checkpoint waits for readers that are leaving");
            if self.due != Some(AfterBarrier::Stop) {
                self.due = Some(after);
            }
            return Ok(());
        }
        let barrier = Barrier { epoch: self.checkpoint.epoch + 1, after };
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
        self.checkpoint.writers = self.writers;
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
        if self.stopping || self.working.is_empty() {
            self.begin_checkpoint(AfterBarrier::Stop).await?;
        } else if !self.pending_savepoints.is_empty() {
            self.begin_checkpoint(AfterBarrier::Continue).await?;
        }
        Ok(None)
    }
}
