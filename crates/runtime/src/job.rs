//! Owns the life of a job: open its state, run attempts, apply the restart strategy, report.

use std::{path::PathBuf, sync::Arc};

use canalis_connector_api::{DeadLetterQueue, Sink, Source};
use canalis_plan::{SchemaChangeBehavior, ValidatedPlan};
use canalis_transforms::Transforms;
use canalis_types::{Code, Error, Result};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{
    attempt::{self, End, Setup},
    checkpoint::{self, CheckpointStore},
    dead_letters::DeadLetters,
    ledger::Ledger,
    progress::{JobState, Progress},
    reader::SchemaRules,
    restart::Restarts,
};

/// A job to run.
pub struct JobSpec {
    /// Stable name; key of progress records in the sink, so unique per target.
    pub job: String,
    /// What to run.
    pub plan: ValidatedPlan,
    /// The source that the plan names.
    pub source: Box<dyn Source>,
    /// The sink that the plan names.
    pub sink: Arc<dyn Sink>,
    /// Where checkpoints and dead letters live.
    pub state_dir: PathBuf,
    /// Savepoint or checkpoint to start from, instead of the newest checkpoint in `state_dir`.
    pub from_savepoint: Option<PathBuf>,
}

pub(crate) enum Request {
    Stop,
    Abort,
    Savepoint(oneshot::Sender<Result<PathBuf>>),
}

pub(crate) struct Control {
    pub requests: mpsc::Receiver<Request>,
}

/// Steers a running job. Cheap to clone.
#[derive(Clone)]
pub struct JobControl {
    requests: mpsc::Sender<Request>,
    progress: Arc<Progress>,
}

impl JobControl {
    /// Drains to a last checkpoint and ends the job.
    pub async fn stop(&self) {
        // A job that has ended needs no stopping.
        let _ = self.requests.send(Request::Stop).await;
    }

    /// Ends the job at once; it goes on from its last checkpoint next time.
    pub async fn abort(&self) {
        // A job that has ended needs no stopping.
        let _ = self.requests.send(Request::Abort).await;
    }

    /// Takes a savepoint and returns its file.
    pub async fn savepoint(&self) -> Result<PathBuf> {
        let (answer, wait) = oneshot::channel();
        let gone = || Error::new(Code::StateIncompatible, "the job has ended");
        self.requests.send(Request::Savepoint(answer)).await.map_err(|_| gone())?;
        wait.await.map_err(|_| gone())?
    }

    /// What the job is doing.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

/// How a job ended.
#[derive(Debug, Clone)]
pub struct JobReport {
    /// `Finished` or `Canceled`.
    pub state: JobState,
    /// Counts since the job's first start.
    pub ledger: Ledger,
    /// Number of the last checkpoint.
    pub epoch: u64,
    /// Restarts of this run.
    pub restarts: u64,
}

/// Prepares a job: a control to steer it and a future that runs it to its end.
pub fn run(spec: JobSpec) -> (JobControl, impl Future<Output = Result<JobReport>>) {
    let (sender, requests) = mpsc::channel(4);
    let progress = Arc::new(Progress::default());
    let control = JobControl { requests: sender.clone(), progress: progress.clone() };
    let work = async move {
        // The future keeps one sender alive, so that dropping every control does not stop the job.
        let _keep = sender;
        let result = work(spec, Control { requests }, &progress).await;
        if let Err(error) = &result {
            progress.update(|v| {
                v.state = JobState::Failed;
                v.last_error = Some(error.to_string());
            });
        }
        result
    };
    (control, work)
}

async fn work(spec: JobSpec, mut control: Control, progress: &Arc<Progress>) -> Result<JobReport> {
    let runtime = &spec.plan.runtime;
    let store = CheckpointStore::open(&spec.state_dir, runtime.checkpoints_retained)?;
    let transforms = Arc::new(Transforms::new(
        spec.plan.transforms.clone(),
        spec.plan.routes.clone(),
        spec.plan.transform_options.clone(),
    )?);
    let connectors = (spec.plan.source.connector.clone(), spec.plan.sink.connector.clone());
    let (latest, damaged) = store.latest()?;
    for error in damaged {
        tracing::error!(%error, "a damaged checkpoint is passed over, the one before it is used");
    }
    let mut restore = match &spec.from_savepoint {
        Some(path) => Some(checkpoint::read(path)?),
        None => latest,
    };
    if let Some(found) = &restore
        && (found.connectors != connectors || found.job != spec.job)
    {
        return Err(Error::new(
            Code::StateIncompatible,
            format!(
                "{} holds state of job {} ({} to {}), this is {} ({} to {}); use another --state-dir",
                spec.state_dir.display(),
                found.job,
                found.connectors.0,
                found.connectors.1,
                spec.job,
                connectors.0,
                connectors.1
            ),
        ));
    }
    if spec.from_savepoint.is_some() {
        restore = restore.map(|savepoint| store.adopt(savepoint)).transpose()?;
    }
    let refused = restore.as_ref().map_or(0, |c| c.ledger.totals().3);
    let dead_letters: Arc<dyn DeadLetterQueue> =
        Arc::new(DeadLetters::new(&spec.state_dir, runtime.dead_letters, refused));
    let setup = Setup {
        job: &spec.job,
        connectors,
        source: spec.source.as_ref(),
        sink: &spec.sink,
        transforms: &transforms,
        schema_rules: &Arc::new(SchemaRules {
            evolve: spec.plan.schema_changes.behavior == SchemaChangeBehavior::Evolve,
            accepted: spec.plan.schema_changes.accepted.clone(),
        }),
        store: &store,
        dead_letters: &dead_letters,
        progress,
        parallelism: runtime.parallelism,
        max_rows: runtime.max_batch_rows as u64,
        max_bytes: runtime.max_batch_bytes,
        checkpoint_interval: runtime.checkpoint_interval,
        schema_change_timeout: runtime.schema_change_timeout,
    };
    let mut restarts = Restarts::new(runtime.restart.clone());
    let mut count = 0;
    loop {
        let error = match attempt::run(&setup, restore.take(), &mut control).await {
            Ok(end) => {
                let state = match end {
                    End::Finished => JobState::Finished,
                    End::Stopped => JobState::Canceled,
                };
                progress.update(|v| v.state = state);
                let (latest, _) = store.latest()?;
                let (ledger, epoch) = latest.map(|c| (c.ledger, c.epoch)).unwrap_or_default();
                return Ok(JobReport { state, ledger, epoch, restarts: count });
            }
            Err(error) => error,
        };
        if !error.kind().is_retryable() {
            return Err(error);
        }
        let Some(delay) = restarts.next_delay(Instant::now()) else {
            return Err(Error::new(Code::RestartsExhausted, format!("gave up after {count} restarts"))
                .with_source(error));
        };
        count += 1;
        tracing::warn!(%error, delay_ms = delay.as_millis(), "the job failed and is going to be restarted");
        progress.update(|v| {
            v.state = JobState::Restarting;
            v.restarts = count;
            v.last_error = Some(error.to_string());
        });
        let wake = Instant::now() + delay;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(wake) => break,
                request = control.requests.recv() => match request {
                    Some(Request::Savepoint(answer)) => {
                        // Who asked may have gone away.
                        let _ = answer.send(Err(Error::new(Code::StateIncompatible, "the job is restarting")));
                    }
                    Some(Request::Stop | Request::Abort) | None => {
                        return Err(error.context("stopped while waiting for a restart"));
                    }
                },
            }
        }
        restore = store.latest()?.0;
    }
}
