//! Owns one attempt at running a job: opens its parts, starts the readers and writers, and leaves them to the JobMaster
//! until the source ends, a stop is asked for, or something fails.

mod master;
mod open;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use canalis_connector_api::{DeadLetterQueue, Sink, Source, SourceContext, WriterContext};
use canalis_transforms::Transforms;
use canalis_types::{Result, TableId};
use tokio::{sync::mpsc, task::JoinSet};

use self::{
    master::Master,
    open::{open_fresh, open_restored, skip_for},
};
use crate::{
    budget::Budget,
    checkpoint::{Checkpoint, CheckpointStore},
    job::Control,
    progress::{JobState, Phase, Progress},
    reader::{ReaderTask, SchemaRules, WriterLink},
    writer::{CommitLimits, WriterTask},
};

/// Messages that may wait between a reader and a writer; the byte budget is the tighter bound for rows.
const QUEUE: usize = 64;
/// Rows of a stream that wait behind a window being committed, beyond the size of a window.
const STREAM_AHEAD: u64 = 1 << 20;
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
    let (mut enumerator, checkpoint, recovery, transforms, outputs) = match restore {
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
            skip: skip_for(&checkpoint, &recovery, index),
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
    let master = Master::new(setup, enumerator, checkpoint, outputs, barriers);
    setup.progress.update(|v| v.state = JobState::Running);
    let end = master.run(from_tasks, control).await;
    // Tasks end at the latest when they are aborted here; what they had not committed is read again.
    tasks.shutdown().await;
    end
}
