//! Owns what a running job tells the outside: state, per-table phase and counts, lag, position.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use canalis_types::{Position, TableId};
use serde::Serialize;

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobState {
    /// Connecting, restoring, preparing tables.
    Initializing,
    /// Rows flow.
    Running,
    /// Waiting to try again after a failure.
    Restarting,
    /// Draining to a last checkpoint.
    Cancelling,
    /// Stopped on request.
    Canceled,
    /// The source has ended and everything is in the sink.
    Finished,
    /// Given up.
    Failed,
}

/// What is being done with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing yet.
    Waiting,
    /// Its snapshot is copied.
    Snapshot,
    /// The sink builds what was put off (indexes).
    Finishing,
    /// Its changes are followed.
    Stream,
    /// Bounded, and all is done.
    Done,
}

/// Progress of one source table.
#[derive(Debug, Clone, Serialize)]
pub struct TableProgress {
    /// What is being done.
    pub phase: Phase,
    /// Estimated rows of the snapshot.
    pub estimated_rows: Option<u64>,
    /// Changes read since this process began.
    pub read: u64,
    /// Bytes read since this process began.
    pub bytes: u64,
    /// Changes dropped by filters.
    pub filtered: u64,
    /// Changes refused.
    pub dead_lettered: u64,
}

/// A view of everything at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct ProgressView {
    /// State.
    pub state: JobState,
    /// Seconds since this process began.
    pub uptime_seconds: f64,
    /// Newest durable checkpoint.
    pub epoch: u64,
    /// Restarts so far.
    pub restarts: u64,
    /// The last failure.
    pub last_error: Option<String>,
    /// Tables by source id.
    pub tables: Vec<(TableId, TableProgress)>,
    /// Changes durable in the sink, since this process began.
    pub written: u64,
    /// Newest stream position that the source has handed out.
    pub position: Option<Position>,
    /// Milliseconds between a change's commit at the source and its commit at the sink, for the newest one.
    pub lag_ms: Option<i64>,
    /// Bytes in flight between readers and writers.
    pub in_flight_bytes: u64,
}

/// Shared progress; cheap to update once per batch.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    inner: Mutex<ProgressView>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            inner: Mutex::new(ProgressView {
                state: JobState::Initializing,
                uptime_seconds: 0.0,
                epoch: 0,
                restarts: 0,
                last_error: None,
                tables: Vec::new(),
                written: 0,
                position: None,
                lag_ms: None,
                in_flight_bytes: 0,
            }),
        }
    }
}

impl Progress {
    /// Everything at this moment.
    pub fn view(&self) -> ProgressView {
        let mut view = self.lock().clone();
        view.uptime_seconds = self.started.elapsed().as_secs_f64();
        view
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut ProgressView)) {
        change(&mut self.lock());
    }

    pub(crate) fn table(&self, id: &TableId, change: impl FnOnce(&mut TableProgress)) {
        let mut view = self.lock();
        let index = match view.tables.binary_search_by(|(t, _)| t.cmp(id)) {
            Ok(index) => index,
            Err(index) => {
                let fresh = TableProgress {
                    phase: Phase::Waiting,
                    estimated_rows: None,
                    read: 0,
                    bytes: 0,
                    filtered: 0,
                    dead_lettered: 0,
                };
                view.tables.insert(index, (id.clone(), fresh));
                index
            }
        };
        change(&mut view.tables[index].1);
    }

    pub(crate) fn set_phases(&self, change: impl Fn(Phase) -> Phase) {
        for (_, table) in &mut self.lock().tables {
            table.phase = change(table.phase);
        }
    }

    /// Notes a commit of `written` changes whose newest was committed at the source at `event_time_ms`.
    pub(crate) fn committed(&self, written: u64, event_time_ms: Option<i64>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let mut view = self.lock();
        view.written += written;
        if let Some(at) = event_time_ms {
            view.lag_ms = Some((i64::try_from(now).unwrap_or(i64::MAX) - at).max(0));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressView> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Phases by table, for tests and summaries.
impl ProgressView {
    /// The tables as a map.
    pub fn by_table(&self) -> BTreeMap<&TableId, &TableProgress> {
        self.tables.iter().map(|(id, t)| (id, t)).collect()
    }
}
