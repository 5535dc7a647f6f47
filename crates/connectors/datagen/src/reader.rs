//! Owns the reader: batches in time, a watermark behind each.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{SourceEvent, SourceReader, Split, Watermark};
use canalis_types::{Code, Error, Position, Result, TableSchema};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::{generator::Generator, options::DatagenOptions};

/// Changes of a full batch.
const FULL: u64 = 8192;
/// Batches a second when the rate is limited.
const TICKS: u64 = 200;

/// Text form of a position.
#[derive(Debug, Serialize, Deserialize)]
struct PositionDetail {
    change: u64,
}

fn position(change: u64) -> Result<Position> {
    let detail = serde_json::to_string(&PositionDetail { change })
        .map_err(|e| Error::internal("cannot encode the number of a change").with_source(e))?;
    Ok(Position::new([change, 0, 0], detail))
}

/// The number of the change that a position is before.
pub(crate) fn change_of(position: &Position) -> Result<u64> {
    let detail: PositionDetail = serde_json::from_str(&position.detail).map_err(|e| {
        let text = format!("cannot decode the position `{position}` of the source `datagen`");
        Error::new(Code::CheckpointDamaged, text).with_source(e)
    })?;
    Ok(detail.change)
}

pub(crate) struct DatagenReader {
    options: DatagenOptions,
    schema: Arc<TableSchema>,
    /// Changes before which a batch must end, in order.
    cuts: Vec<u64>,
    work: Work,
    pace: Option<Pace>,
    events: VecDeque<SourceEvent>,
}

/// Where the generator is.
enum Work {
    /// Nowhere: no split was begun, or a call has failed.
    None,
    Idle(Generator),
    /// On another thread, with the number of its next change after that.
    Running(JoinHandle<(Generator, Result<ChangeBatch>)>),
}

impl DatagenReader {
    pub(crate) fn new(options: DatagenOptions, schema: Arc<TableSchema>, mut cuts: Vec<u64>) -> Self {
        cuts.sort_unstable();
        Self { options, schema, cuts, work: Work::None, pace: None, events: VecDeque::new() }
    }

    /// Changes from `next` on that may be generated now: up to the end, the next cut and what the rate allows.
    fn allowed(&mut self, next: u64) -> u64 {
        let end = self.options.changes.unwrap_or(u64::MAX);
        let cut = self.cuts.iter().find(|cut| **cut > next).copied().unwrap_or(u64::MAX);
        let most = FULL.min(end.saturating_sub(next)).min(cut - next);
        match &mut self.pace {
            Some(pace) => most.min(pace.due(next)),
            None => most,
        }
    }

    fn spawn(&mut self, mut generator: Generator, changes: u64) {
        let changes = usize::try_from(changes).unwrap_or_default();
        // A thread of its own: generating takes milliseconds, and goes on while the rows before are worked on.
        self.work = Work::Running(tokio::task::spawn_blocking(move || {
            let batch = generator.batch(changes);
            (generator, batch)
        }));
    }

    fn queue(&mut self, batch: ChangeBatch, next: u64) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let now = now.and_then(|d| i64::try_from(d.as_millis()).ok());
        self.events.push_back(SourceEvent::Batch(batch.with_event_time(now)));
        self.events
            .push_back(SourceEvent::Watermark(Watermark { position: position(next)?, event_time_ms: now }));
        Ok(())
    }
}

#[async_trait]
impl SourceReader for DatagenReader {
    async fn start(&mut self, split: Split) -> Result<()> {
        let next = split.position.as_ref().map(change_of).transpose()?.unwrap_or(0);
        self.work = Work::Idle(Generator::new(self.options.mix, self.schema.clone(), next));
        self.pace = self.options.rate.map(|rate| Pace::new(rate, next));
        self.events.clear();
        Ok(())
    }

    async fn next(&mut self) -> Result<SourceEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            // Cancel-safe: nothing is taken out before an await that is not put back or queued after it.
            if let Work::Running(handle) = &mut self.work {
                let done = handle.await;
                self.work = Work::None;
                let (generator, batch) =
                    done.map_err(|e| Error::internal("the generator has died").with_source(e))?;
                let next = generator.next();
                self.queue(batch?, next)?;
                let more = if self.pace.is_none() { self.allowed(next) } else { 0 };
                if more > 0 {
                    self.spawn(generator, more);
                } else {
                    self.work = Work::Idle(generator);
                }
                continue;
            }
            let Work::Idle(generator) = &self.work else {
                return Err(Error::internal("a datagen reader was asked for rows without a split"));
            };
            let next = generator.next();
            if self.options.changes.is_some_and(|end| next >= end) {
                return Ok(SourceEvent::SplitEnd);
            }
            match self.allowed(next) {
                0 => {
                    let wait = self.pace.as_ref().map_or(Duration::ZERO, |pace| pace.wait(next));
                    tokio::time::sleep(wait).await;
                }
                changes => {
                    if let Work::Idle(generator) = std::mem::replace(&mut self.work, Work::None) {
                        self.spawn(generator, changes);
                    }
                }
            }
        }
    }
}

/// Holds the stream to a rate. What back-pressure has held up is made good for one second at most.
struct Pace {
    rate: u64,
    began: Instant,
    /// Number of the change that was due at `began`.
    first: u64,
}

impl Pace {
    fn new(rate: u64, first: u64) -> Self {
        Self { rate, began: Instant::now(), first }
    }

    /// Changes from `next` on that are due.
    fn due(&mut self, next: u64) -> u64 {
        let millionths = self.began.elapsed().as_micros() * u128::from(self.rate);
        let due = self.first.saturating_add(u64::try_from(millionths / 1_000_000).unwrap_or(u64::MAX));
        let behind = due.saturating_sub(next);
        if behind > self.rate {
            *self = Self::new(self.rate, next);
            return self.rate;
        }
        behind
    }

    /// Time until a worthwhile number of changes from `next` on is due.
    fn wait(&self, next: u64) -> Duration {
        let ahead = next.saturating_sub(self.first) + (self.rate / TICKS).max(1);
        let micros = u128::from(ahead) * 1_000_000 / u128::from(self.rate) + 1;
        let at = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        at.saturating_sub(self.began.elapsed())
    }
}
