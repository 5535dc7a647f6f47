//! Owns the contract of sinks: tables are prepared once, writers take rows and commit them with the position.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_types::{Position, Result, SchemaChange, TableId, TableSchema};
use serde_json::Value;

use crate::{DeadLetterQueue, Finding, SinkPreview, Split, SplitMode};

/// What a sink can do.
#[derive(Debug, Clone, Copy)]
pub struct SinkCapabilities {
    /// Overwrites by key: a repeated row changes nothing.
    pub upsert: bool,
    /// Takes more than one writer.
    pub parallel: bool,
    /// Carries out added columns.
    pub add_column: bool,
}

/// What the runtime tells a sink when a job starts.
#[derive(Debug, Clone)]
pub struct SinkContext {
    /// Stable name of the job; key of the sink's own progress records.
    pub job: String,
    /// Number of writers.
    pub writers: usize,
    /// Whether the job starts from nothing: progress records of an earlier run of this name are removed.
    pub fresh: bool,
    /// Tables that will be written, as the sink names them.
    pub tables: Vec<TableId>,
}

/// What a sink knows about earlier runs of the job from its own transactions.
#[derive(Debug, Clone, Default)]
pub struct SinkRecovery {
    /// Committed stream position of each writer; shorter or empty when unknown. Given only if the number of
    /// writers was the same when it was stored; that of writer 0 is given for any number, because tables without a key
    /// belong to it.
    pub positions: Vec<Option<Position>>,
    /// The position of writer 0 was stored beside another number of writers: it counts for tables without a key only.
    pub other_writers: bool,
    /// Snapshot splits known to be complete.
    pub done_splits: BTreeSet<String>,
    /// Append splits and the positions up to which their rows are committed.
    pub split_positions: BTreeMap<String, Position>,
}

/// What would be or was done for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    /// The table as the sink names it.
    pub table: TableId,
    /// Statements that create or change it; empty when it exists and fits.
    pub statements: Vec<String>,
    /// Things the user should know: narrowings, lossy types.
    pub notes: Vec<String>,
}

/// A sink, configured and not yet connected. Shared by all tasks of a job.
#[async_trait]
pub trait Sink: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> SinkCapabilities;

    /// Looks at the live system: reachable, rights, each table creatable or fitting. Never fails.
    async fn check(&self, tables: &[Arc<TableSchema>]) -> Vec<Finding>;

    /// What [`Sink::prepare_table`] would do. Looks at the live system, changes nothing.
    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan>;

    /// What a writer would do with the rows of a split of this mode, composed by the code that writes. Looks at the live
    /// system, changes nothing; a table that is not there is taken to be as [`Sink::plan_table`] would make it.
    ///
    /// # Errors
    /// Those that would stop the writer.
    async fn preview(&self, batch: &ChangeBatch, mode: SplitMode) -> Result<SinkPreview>;

    /// Connects, makes the progress records, and tells what is known of earlier runs.
    async fn open(&self, ctx: &SinkContext) -> Result<SinkRecovery>;

    /// Creates a missing table or checks that an existing one fits. Idempotent. When the table is going to be filled
    /// by a snapshot the sink may leave secondary indexes for [`Sink::snapshot_complete`].
    async fn prepare_table(&self, schema: &Arc<TableSchema>, snapshot: bool) -> Result<TablePlan>;

    /// All snapshot rows of these tables are durable: builds what was put off. Idempotent.
    async fn snapshot_complete(&self, tables: &[Arc<TableSchema>]) -> Result<()>;

    /// Carries out a change of structure. Every writer has committed all earlier rows, none writes. Idempotent: a
    /// change that is already there is no error.
    async fn apply_schema_change(&self, change: &SchemaChange) -> Result<()>;

    /// Opens writer `ctx.index`.
    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>>;

    /// Makes visible what writers prepared for a checkpoint that is now durable. Idempotent; called again
    /// after a restore with the states of that checkpoint, before any writer is opened.
    async fn publish(&self, prepared: &[Value]) -> Result<()> {
        let _ = prepared;
        Ok(())
    }
}

/// What a writer gets.
#[derive(Clone)]
pub struct WriterContext {
    /// Stable name of the job.
    pub job: String,
    /// Which writer.
    pub index: usize,
    /// How many there are.
    pub writers: usize,
    /// Where refused rows go.
    pub dead_letters: Arc<dyn DeadLetterQueue>,
}

/// Announces a bounded split.
#[derive(Debug, Clone)]
pub struct SplitBegin {
    /// The split.
    pub split: Split,
    /// Structure of its table at the sink, if it has one table.
    pub schema: Option<Arc<TableSchema>>,
}

/// What a commit stands for.
#[derive(Debug, Clone, Default)]
pub struct CommitPoint {
    /// Stream position up to which this writer has seen everything.
    pub position: Option<Position>,
    /// Snapshot splits that end with this commit.
    pub splits: Vec<String>,
    /// Append split under way and the position up to which this writer has all of its rows.
    pub split_position: Option<(String, Position)>,
    /// Epoch the rows belong to.
    pub epoch: u64,
}

/// What was committed.
#[derive(Debug, Clone, Default)]
pub struct CommitReport {
    /// Changes written per table since the last commit. Changes that a fold made needless count as written.
    pub written: Vec<(TableId, u64)>,
    /// Changes handed to the dead-letter queue per table.
    pub dead_lettered: Vec<(TableId, u64)>,
}

/// Writes rows. Runs in one task; calls come one at a time.
#[async_trait]
pub trait SinkWriter: Send {
    /// A bounded split of +I rows begins. Nothing else is written before it ends. A split with `retried` may
    /// have rows in the target already.
    async fn begin_split(&mut self, begin: &SplitBegin) -> Result<()> {
        let _ = begin;
        Ok(())
    }

    /// Takes rows. They may stay in memory or in an open transaction until [`SinkWriter::commit`].
    async fn write(&mut self, batch: ChangeBatch) -> Result<()>;

    /// Makes all rows taken so far durable, together with the point, in one transaction where the system has
    /// them. After a transient failure the runtime drops the writer and restores the job from its checkpoint.
    async fn commit(&mut self, point: &CommitPoint) -> Result<CommitReport>;

    /// Called after a commit when checkpoint `epoch` is taken: what [`Sink::publish`] needs.
    async fn prepare(&mut self, epoch: u64) -> Result<Value> {
        let _ = epoch;
        Ok(Value::Null)
    }

    /// Called instead of [`SinkWriter::prepare`] at the last checkpoint of a job that ends (bounded end or drain):
    /// the [`Sink::publish`] that follows must make everything visible. Nothing is written afterwards.
    async fn finish(&mut self, epoch: u64) -> Result<Value> {
        self.prepare(epoch).await
    }

    /// The structure of a table has changed; later batches have the new schema.
    async fn schema_changed(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        let _ = schema;
        Ok(())
    }
}
