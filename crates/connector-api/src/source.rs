//! Owns the contract of sources: an enumerator that deals splits, readers that turn a split into events.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_types::{Position, Result, SchemaChange, TableId, TableSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    DeadLetter, Finding,
    preview::{PreviewRecord, first_rows},
};

/// Whether a source ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundedness {
    /// It ends when all has been read.
    Bounded,
    /// It goes on until stopped.
    Unbounded,
}

/// What the runtime tells a source when it opens it.
#[derive(Debug, Clone)]
pub struct SourceContext {
    /// Stable name of the job, unique per state directory.
    pub job: String,
    /// Number of readers that may work at once on bounded splits.
    pub parallelism: usize,
    /// Whether the sink overwrites by key. If not, a row read by two snapshots would be doubled, so the source
    /// takes all its snapshot splits from one consistent view.
    pub upsert_sink: bool,
}

/// What a restored source gets.
#[derive(Debug, Clone, Default)]
pub struct SourceRestore {
    /// The state that [`SplitEnumerator::state`] gave.
    pub state: Value,
    /// Splits that were under way, with the position each had reached (if it reports positions).
    pub running: Vec<Split>,
    /// Splits that the sink knows to be complete although the checkpoint may not.
    pub done: BTreeSet<String>,
    /// Positions that writers of the sink have committed beyond the checkpoint, in order. A stream reader emits a
    /// [`SourceEvent::Watermark`] exactly at each, and no batch reaches across one.
    pub cuts: Vec<Position>,
}

/// How the rows of a split behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitMode {
    /// A consistent view of part of one table: +I only, read again as a whole after a crash.
    Snapshot,
    /// A bounded piece of append-only input (a file): +I only, with positions to go on from.
    Append,
    /// A change log. One at a time; rows are dealt to all writers by key.
    Stream,
}

/// A unit of source work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Split {
    /// Unique and stable in the job.
    pub id: String,
    /// How its rows behave.
    pub mode: SplitMode,
    /// The one table it belongs to, if there is one.
    pub table: Option<TableId>,
    /// The connector's own description.
    pub payload: Value,
    /// Where to go on; `None` for the beginning.
    pub position: Option<Position>,
    /// True when this split was dealt before and rows of it may be in the sink already.
    pub retried: bool,
}

/// Answer of an enumerator that is asked for work.
#[derive(Debug)]
pub enum NextSplit {
    /// Work.
    Split(Box<Split>),
    /// None before some running split is finished.
    Wait,
    /// None at all: the source has ended.
    Finished,
}

/// Estimated size of a table, for progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableEstimate {
    /// Rows.
    pub rows: u64,
}

/// A source, configured and not yet connected.
#[async_trait]
pub trait Source: Send + Sync {
    /// Whether it ends by itself.
    fn boundedness(&self) -> Boundedness;

    /// Looks at the live system: reachable, rights, settings, keys. Never fails; problems are findings.
    async fn check(&self) -> Vec<Finding>;

    /// The tables that would be read, with their current structure.
    async fn tables(&self) -> Result<Vec<Arc<TableSchema>>>;

    /// Connects and starts or restores an enumerator.
    async fn open(
        &self,
        ctx: SourceContext,
        restore: Option<SourceRestore>,
    ) -> Result<Box<dyn SplitEnumerator>>;

    /// Up to `rows` records, decoded as a job would: those that come first, of messages the newest, newest first. Changes
    /// nothing. By itself it reads what a job that starts now would read first.
    async fn preview(&self, rows: usize) -> Result<Vec<PreviewRecord>> {
        let ctx = SourceContext { job: "preview".to_owned(), parallelism: 1, upsert_sink: true };
        first_rows(self.open(ctx, None).await?, rows).await
    }
}

/// Deals splits. Owned by the JobMaster, called from one task.
#[async_trait]
pub trait SplitEnumerator: Send {
    /// Tables and their structure at the start position, to be made at the sink before any split is dealt.
    fn tables(&self) -> Vec<Arc<TableSchema>>;

    /// Estimated rows of a table's snapshot.
    fn estimate(&self, table: &TableId) -> Option<TableEstimate>;

    /// The next piece of work for the reader of this index. A stream split is only dealt after every snapshot split is
    /// reported complete. Which reader asks is a hint: each writer is fed by one, so a source may give it neighbours.
    async fn next(&mut self, reader: usize) -> Result<NextSplit>;

    /// Notes that a split's rows are all durable in the sink. Called once per split.
    fn split_finished(&mut self, id: &str);

    /// A reader; it is used for one split after another. No IO needed before [`SourceReader::start`].
    async fn open_reader(&mut self) -> Result<Box<dyn SourceReader>>;

    /// Durable state, without running splits (the runtime keeps those). Restoring from it with the running splits
    /// must lead to the same rows.
    fn state(&self) -> Value;

    /// Tells the source that a checkpoint with this stream position is durable, for feedback to the upstream system.
    async fn checkpoint_durable(&mut self, position: Option<&Position>) -> Result<()> {
        let _ = position;
        Ok(())
    }
}

/// A place where everything before is emitted, so that rows may be committed with it.
#[derive(Debug, Clone)]
pub struct Watermark {
    /// Position to go on from.
    pub position: Position,
    /// Commit time of the newest change before it, milliseconds since the epoch.
    pub event_time_ms: Option<i64>,
}

/// What a reader delivers, in order.
#[derive(Debug)]
pub enum SourceEvent {
    /// Rows.
    Batch(ChangeBatch),
    /// Input that does not decode, one letter per row; counted as read and dead-lettered.
    Undecodable(Vec<DeadLetter>),
    /// A change of structure between the rows before and after it.
    SchemaChange(Box<SchemaChange>),
    /// Everything so far may be committed. Streams emit one at least after every 32,768 rows or 16 MiB of
    /// rows, whichever is first, and always before they wait for input.
    Watermark(Watermark),
    /// The split is at its end.
    SplitEnd,
}

/// Reads splits, one after another. Runs in one task.
#[async_trait]
pub trait SourceReader: Send {
    /// Begins a split at its position.
    async fn start(&mut self, split: Split) -> Result<()>;

    /// The next event of the split. Cancel-safe: a dropped call loses nothing.
    async fn next(&mut self) -> Result<SourceEvent>;
}
