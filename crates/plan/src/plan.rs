//! Owns the validated plan: what a pipeline file means once every problem is ruled out that can be seen without
//! looking at a live system.

use std::{collections::BTreeSet, time::Duration};

use canalis_connector_api::Options;
use canalis_transforms::{RouteRule, TransformOptions, TransformRule};
use serde::Serialize;

use crate::Problem;

/// A pipeline definition without problems.
#[derive(Debug, Clone)]
pub struct ValidatedPlan {
    /// `pipeline.name`, for display; files that give none share the default name.
    pub name: String,
    /// Where rows come from.
    pub source: ConnectorInstance,
    /// Where rows go.
    pub sink: ConnectorInstance,
    /// Entries of `transform`, in order; the first that matches a table counts.
    pub transforms: Vec<TransformRule>,
    /// Entries of `route`, in order.
    pub routes: Vec<RouteRule>,
    /// What expressions and routes need to know of the rest of the file.
    pub transform_options: TransformOptions,
    /// What happens when the structure of a source table changes.
    pub schema_changes: SchemaChangePolicy,
    /// Settings of the runtime.
    pub runtime: RuntimeOptions,
    /// What is allowed but most likely not meant, in order of the file.
    pub warnings: Vec<Problem>,
}

/// A configured source or sink.
#[derive(Debug, Clone)]
pub struct ConnectorInstance {
    /// `type`: a connector of the registry that can take this role.
    pub connector: String,
    /// `name`, for display.
    pub name: Option<String>,
    /// Checked options, defaults filled in, secrets resolved.
    pub options: Options,
}

/// What happens when the structure of a source table changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChangePolicy {
    /// What an accepted change does.
    pub behavior: SchemaChangeBehavior,
    /// Tags of the changes that reach the behaviour (`create.table`, `add.column`, …), after include and exclude.
    /// Every other change is dropped.
    pub accepted: BTreeSet<String>,
}

/// What an accepted schema change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaChangeBehavior {
    /// Stops the job, except for new tables.
    Exception,
    /// Is carried out at the sink; a failure stops the job.
    Evolve,
}

/// Settings of the runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeOptions {
    /// Readers of bounded splits, and writers.
    pub parallelism: usize,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Checkpoints kept on disk, at least 1.
    pub checkpoints_retained: usize,
    /// What a transient failure leads to.
    pub restart: RestartStrategy,
    /// What happens to rows that the sink refuses.
    pub dead_letters: DeadLetterPolicy,
    /// Rows after which a writer commits.
    pub max_batch_rows: usize,
    /// Bytes of rows after which a writer commits.
    pub max_batch_bytes: u64,
    /// How long a schema change at the sink may take.
    pub schema_change_timeout: Duration,
}

/// What a transient failure leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum RestartStrategy {
    /// The job fails.
    None,
    /// A limited number of restarts, evenly spaced.
    FixedDelay {
        /// Restarts before the job fails.
        attempts: u64,
        /// Wait before each restart.
        delay: Duration,
    },
    /// Restarts until failures come too often.
    FailureRate {
        /// Failures inside the interval that are borne.
        max_failures: u64,
        /// Length of the interval.
        interval: Duration,
        /// Wait before each restart.
        delay: Duration,
    },
    /// Restarts with growing waits.
    ExponentialDelay {
        /// First wait.
        initial_backoff: Duration,
        /// Longest wait.
        max_backoff: Duration,
        /// Factor from one wait to the next, at least 1.
        multiplier: f64,
        /// Time without failure after which the wait is the first again.
        reset_threshold: Duration,
        /// Part of the wait by which it varies at random, 0 to 1.
        jitter: f64,
        /// Restarts before the job fails, counted since the last reset; `None` is no limit.
        attempts: Option<u64>,
    },
}

/// What happens to rows that the sink refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetterPolicy {
    /// Whether the job goes on.
    pub mode: DeadLetterMode,
    /// Rows after which the job fails all the same; `None` is no limit.
    pub limit: Option<u64>,
    /// How they are kept.
    pub format: DeadLetterFormat,
}

/// Whether a job goes on after a refused row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadLetterMode {
    /// The first refused row fails the job.
    Fail,
    /// Refused rows are kept aside and the others land.
    Queue,
}

/// How refused rows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadLetterFormat {
    /// One JSON object per line.
    JsonLines,
    /// Rows of a table in an SQLite database.
    Sqlite,
}

/// The settings of a file without a `pipeline` block.
impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            parallelism: 4,
            checkpoint_interval: Duration::from_secs(3),
            checkpoints_retained: 3,
            restart: RestartStrategy::default(),
            dead_letters: DeadLetterPolicy::default(),
            max_batch_rows: 50_000,
            max_batch_bytes: 32 << 20,
            schema_change_timeout: Duration::from_secs(180),
        }
    }
}

/// Exponential delay without a limit of attempts.
impl Default for RestartStrategy {
    fn default() -> Self {
        Self::ExponentialDelay {
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
            multiplier: 1.5,
            reset_threshold: Duration::from_secs(3600),
            jitter: 0.1,
            attempts: None,
        }
    }
}

/// The first refused row fails the job.
impl Default for DeadLetterPolicy {
    fn default() -> Self {
        Self { mode: DeadLetterMode::Fail, limit: None, format: DeadLetterFormat::JsonLines }
    }
}
