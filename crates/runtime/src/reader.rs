//! Owns the reader task: asks for splits, puts rows through transforms, deals them to writers, passes barriers
//! on at safe points.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    DeadLetter, DeadLetterQueue, NextSplit, SourceEvent, SourceReader, Split, SplitBegin, SplitMode,
    Watermark,
};
use canalis_transforms::{TableTransform, Transforms};
use canalis_types::{Code, Error, Position, Result, SchemaChange, SchemaChangeKind, TableId, TableSchema};
use tokio::sync::{mpsc, oneshot};

use crate::{
    budget::Budget,
    ledger::Ledger,
    messages::{AfterBarrier, Barrier, ToMaster, ToWriter},
    progress::{Phase, Progress},
    router::Router,
};

/// What the transforms make of each source table.
pub(crate) type TableTransforms = HashMap<TableId, Arc<TableTransform>>;

/// The way to a writer.
#[derive(Clone)]
pub(crate) struct WriterLink {
    pub sender: mpsc::Sender<ToWriter>,
    /// Rows of a stream, from the reader until they are committed.
    pub budget: Budget,
    /// Rows of a bounded split, from the reader until the writer has taken them.
    pub ahead: Budget,
}

/// What is done about a change of structure.
pub(crate) struct SchemaRules {
    /// `schema.change.behavior` lets changes through at all.
    pub evolve: bool,
    /// Tags that are let through.
    pub accepted: BTreeSet<String>,
}

pub(crate) struct ReaderTask {
    pub index: usize,
    pub reader: Box<dyn SourceReader>,
    pub links: Vec<WriterLink>,
    pub barriers: mpsc::Receiver<Barrier>,
    pub master: mpsc::Sender<ToMaster>,
    pub transforms: Arc<Transforms>,
    pub tables: TableTransforms,
    pub schema_rules: Arc<SchemaRules>,
    pub dead_letters: Arc<dyn DeadLetterQueue>,
    pub progress: Arc<Progress>,
    /// Positions of append splits that the sink has committed beyond the checkpoint.
    pub committed: Arc<BTreeMap<String, Position>>,
    /// Tables of which rows may be in the sink from before, so that splits must overwrite.
    pub overwrite: Arc<dyn Fn(&TableId) -> bool + Send + Sync>,
}

/// Whether a reader goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    Continue,
    Stop,
}

struct State {
    counts: Ledger,
    router: Router,
    /// The split under way, its position kept up to date.
    split: Option<Split>,
    /// This reader feeds every writer, because it reads the stream.
    feeds_all: bool,
}

impl ReaderTask {
    /// Runs until there is no more work, a stop, or a failure; a failure goes to the master.
    pub(crate) async fn run(mut self) {
        let mut state = State {
            counts: Ledger::default(),
            router: Router::new(self.links.len()),
            split: None,
            feeds_all: false,
        };
        let end = match self.work(&mut state).await {
            Ok(()) => ToMaster::ReaderDone(self.index, state.counts.clone()),
            Err(error) => ToMaster::Failed(error),
        };
        // The master may be gone already; then nobody needs the message.
        let _ = self.master.send(end).await;
        // Barriers that come after the end of work still have to reach the writers.
        while let Some(barrier) = self.barriers.recv().await {
            if self.pass(&mut state, barrier).await.is_err() {
                return;
            }
        }
    }

    async fn work(&mut self, state: &mut State) -> Result<()> {
        let mut patient = false;
        loop {
            let (answer, mut next) = oneshot::channel();
            self.tell(ToMaster::NeedSplit { reader: self.index, patient, answer }).await?;
            let next = loop {
                tokio::select! {
                    biased;
                    Some(barrier) = self.barriers.recv() => {
                        if self.pass(state, barrier).await? == Flow::Stop { return Ok(()) }
                    }
                    next = &mut next => break next.map_err(|_| Error::internal("the master is gone"))?,
                }
            };
            match next {
                // The end of the snapshot is only announced when everything is durable.
                NextSplit::Finished => {
                    return Self::flush(&self.links[self.index..=self.index]).await;
                }
                NextSplit::Wait => {
                    // The splits that others wait for may sit uncommitted in our writer.
                    Self::flush(&self.links[self.index..=self.index]).await?;
                    patient = true;
                }
                NextSplit::Split(split) => {
                    patient = false;
                    if self.read_split(state, *split).await? == Flow::Stop {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn read_split(&mut self, state: &mut State, mut split: Split) -> Result<Flow> {
        let streaming = split.mode == SplitMode::Stream;
        let output = split.table.as_ref().and_then(|t| self.tables.get(t)).cloned();
        // The sink may have more of an append split than the checkpoint knows.
        if let Some(position) = self.committed.get(&split.id)
            && split.position.as_ref().is_none_or(|p| p < position)
        {
            split.position = Some(position.clone());
        }
        split.retried |= split.table.as_ref().is_some_and(|t| (self.overwrite)(t));
        if streaming {
            state.feeds_all = true;
            self.progress.set_phases(|_| Phase::Stream);
            if let Some(position) = split.position.clone() {
                // A writer may hold exactly this place from before; it has nothing to pass over then.
                self.watermark(Watermark { position, event_time_ms: None }, true).await?;
            }
        } else {
            if let Some(table) = &split.table {
                self.progress.table(table, |t| t.phase = Phase::Snapshot);
            }
            let schema = output.and_then(|t| t.outputs().first().cloned());
            let begin = SplitBegin { split: split.clone(), schema };
            self.send(self.index, ToWriter::Begin(Box::new(begin))).await?;
        }
        let id = split.id.clone();
        let mode = split.mode;
        state.split = Some(split.clone());
        self.reader.start(split).await?;
        // A snapshot split is read again as a whole, so its only safe points are its ends.
        let mut safe = mode != SplitMode::Snapshot;
        loop {
            let event = tokio::select! {
                biased;
                Some(barrier) = self.barriers.recv(), if safe => {
                    if self.pass(state, barrier).await? == Flow::Stop { return Ok(Flow::Stop) }
                    continue;
                }
                event = self.reader.next() => event?,
            };
            match event {
                SourceEvent::Batch(batch) => {
                    safe = false;
                    self.rows(state, batch, streaming).await?;
                }
                SourceEvent::Undecodable(letters) => {
                    let covered = std::mem::replace(&mut safe, false);
                    if let Err(stop) = self.undecodable(state, letters).await {
                        // What came before stays: the job stops at exactly this record.
                        if covered && streaming {
                            Self::flush(&self.links).await?;
                        }
                        return Err(stop);
                    }
                }
                SourceEvent::Watermark(watermark) => {
                    if let Some(split) = &mut state.split {
                        split.position = Some(watermark.position.clone());
                    }
                    self.watermark(watermark, streaming).await?;
                    safe = mode != SplitMode::Snapshot;
                }
                SourceEvent::SchemaChange(change) => {
                    if !safe {
                        return Err(Error::internal("a schema change came without a watermark before it"));
                    }
                    self.schema_change(*change).await?;
                }
                SourceEvent::SplitEnd => {
                    state.split = None;
                    if streaming {
                        // Nothing comes after a bounded stream; its end is durable with the last checkpoint.
                        for link in 0..self.links.len() {
                            self.send(link, ToWriter::End(id.clone())).await?;
                        }
                        Self::flush(&self.links).await?;
                    } else {
                        self.send(self.index, ToWriter::End(id)).await?;
                    }
                    return Ok(Flow::Continue);
                }
            }
        }
    }

    async fn rows(&mut self, state: &mut State, batch: ChangeBatch, streaming: bool) -> Result<()> {
        let table = batch.schema().id.clone();
        let changes = batch.num_changes();
        let bytes = batch.num_bytes();
        let transform = self
            .tables
            .get(&table)
            .ok_or_else(|| Error::internal(format!("rows of table {table}, which was not announced")))?
            .clone();
        let applied = transform.apply(&batch)?;
        drop(batch);
        let refused = applied.rejected.len() as u64;
        let counts = state.counts.source(&table);
        counts.read += changes;
        counts.bytes += bytes;
        counts.filtered += applied.filtered;
        counts.refused += refused;
        counts.emitted += changes - applied.filtered - refused;
        self.progress.table(&table, |t| {
            t.read += changes;
            t.bytes += bytes;
            t.filtered += applied.filtered;
            t.dead_lettered += refused;
        });
        if refused > 0 {
            self.dead_letters.reject(applied.rejected).await?;
        }
        let passed = changes - applied.filtered - refused;
        for batch in applied.batches {
            if batch.num_changes() != passed {
                return Err(Error::new(
                    Code::LedgerMismatch,
                    format!(
                        "table {table}: {passed} changes passed the filter, {} go to {}",
                        batch.num_changes(),
                        batch.schema().id
                    ),
                ));
            }
            if streaming {
                for (writer, part) in state.router.deal(batch)? {
                    self.send_rows(state, writer, part).await?;
                }
            } else {
                self.send_rows(state, self.index, batch).await?;
            }
        }
        Ok(())
    }

    async fn undecodable(&mut self, state: &mut State, letters: Vec<DeadLetter>) -> Result<()> {
        for letter in &letters {
            let counts = state.counts.source(&letter.table);
            counts.read += 1;
            counts.refused += 1;
            self.progress.table(&letter.table, |t| {
                t.read += 1;
                t.dead_lettered += 1;
            });
        }
        self.dead_letters.reject(letters).await
    }

    async fn watermark(&mut self, watermark: Watermark, streaming: bool) -> Result<()> {
        if streaming {
            self.progress.update(|view| {
                view.position = Some(watermark.position.clone());
                view.in_flight_bytes = self.links.iter().map(|l| l.budget.used()).sum();
            });
            for link in 0..self.links.len() {
                self.send(link, ToWriter::Watermark(watermark.clone())).await?;
                self.links[link].budget.cover();
            }
            Ok(())
        } else {
            self.send(self.index, ToWriter::Watermark(watermark)).await
        }
    }

    /// Every writer commits what came before, the sink changes its table, rows go on with the new structure.
    async fn schema_change(&mut self, change: SchemaChange) -> Result<()> {
        let table = change.after.id.clone();
        let refuse = |why: &str| {
            Error::new(
                Code::SchemaChangeRefused,
                format!(
                    "{why}: table {table}, position {}, statement: {}",
                    change.position, change.statement
                ),
            )
        };
        if change.kind != SchemaChangeKind::CreateTable && !self.tables.contains_key(&table) {
            return Err(Error::internal(format!("schema change of table {table}, which was not announced")));
        }
        if !self.schema_rules.evolve {
            return Err(refuse("`schema.change.behavior` is `exception`"));
        }
        if !matches!(change.kind, SchemaChangeKind::AddColumns(_) | SchemaChangeKind::CreateTable) {
            return Err(refuse(&format!("`{}` is not supported yet", change.tag())));
        }
        if !self.schema_rules.accepted.contains(change.tag()) {
            return Err(refuse(&format!("the sink excludes `{}`", change.tag())));
        }
        let current: Vec<&TableTransform> = self.tables.values().map(|t| &**t).collect();
        let next = self.transforms.replan(&current, &change.after)?;
        Self::flush(&self.links).await?;
        for (before, after) in next.targets {
            let kind = match &before {
                Some(before) => SchemaChangeKind::AddColumns(added_columns(before, &after)),
                None => SchemaChangeKind::CreateTable,
            };
            let at_sink = SchemaChange {
                kind,
                before,
                after: after.clone(),
                statement: change.statement.clone(),
                position: change.position.clone(),
            };
            let (done, wait) = oneshot::channel();
            self.tell(ToMaster::SchemaChange(Box::new(at_sink), done)).await?;
            wait.await.map_err(|_| Error::internal("the master is gone"))?;
            for link in 0..self.links.len() {
                self.send(link, ToWriter::Schema(after.clone())).await?;
            }
        }
        self.progress.table(&table, |t| t.phase = Phase::Stream);
        for transform in next.tables {
            self.tables.insert(transform.source().id.clone(), Arc::new(transform));
        }
        Ok(())
    }

    async fn flush(links: &[WriterLink]) -> Result<()> {
        let mut waits = Vec::with_capacity(links.len());
        for link in links {
            let (done, wait) = oneshot::channel();
            link.sender.send(ToWriter::Flush(done)).await.map_err(|_| writer_gone())?;
            waits.push(wait);
        }
        for wait in waits {
            wait.await.map_err(|_| writer_gone())?;
        }
        Ok(())
    }

    /// Passes a barrier on to the writers this reader feeds.
    async fn pass(&mut self, state: &mut State, barrier: Barrier) -> Result<Flow> {
        for link in 0..self.links.len() {
            if barrier.everywhere || link == self.index {
                self.send(link, ToWriter::Barrier(barrier)).await?;
            }
        }
        self.tell(ToMaster::ReaderPassed {
            reader: self.index,
            epoch: barrier.epoch,
            running: state.split.clone(),
            counts: state.counts.clone(),
        })
        .await?;
        Ok(if barrier.after == AfterBarrier::Stop { Flow::Stop } else { Flow::Continue })
    }

    async fn send_rows(&mut self, state: &mut State, writer: usize, batch: ChangeBatch) -> Result<()> {
        state.counts.sink(&batch.schema().id).expected += batch.num_changes();
        let link = &self.links[writer];
        let taken = if state.feeds_all {
            link.budget.take_uncovered(batch.num_bytes()).await
        } else {
            link.ahead.take(batch.num_bytes()).await
        };
        self.send(writer, ToWriter::Rows(batch, taken)).await
    }

    async fn send(&mut self, writer: usize, message: ToWriter) -> Result<()> {
        self.links[writer].sender.send(message).await.map_err(|_| writer_gone())
    }

    async fn tell(&mut self, message: ToMaster) -> Result<()> {
        self.master.send(message).await.map_err(|_| Error::internal("the master is gone"))
    }
}

/// A writer tells the master why it went; this error only ends the reader.
fn writer_gone() -> Error {
    Error::internal("a writer is gone")
}

/// Columns of `after` that `before` has not, with their places.
fn added_columns(
    before: &TableSchema,
    after: &TableSchema,
) -> Vec<(canalis_types::Column, canalis_types::ColumnPlace)> {
    use canalis_types::ColumnPlace;
    let mut added = Vec::new();
    for (index, column) in after.columns.iter().enumerate() {
        if before.column(&column.name).is_none() {
            let place = match index {
                _ if index + 1 == after.columns.len() => ColumnPlace::Last,
                0 => ColumnPlace::First,
                _ => ColumnPlace::After(after.columns[index - 1].name.clone()),
            };
            added.push((column.clone(), place));
        }
    }
    added
}
