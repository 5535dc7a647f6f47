//! Owns what is read and not yet delivered: when batches go out, when watermarks follow, and the cuts.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use canalis_connector_api::{SourceEvent, Watermark};
use canalis_types::{Code, Error, Position, SchemaChange};

use super::{
    failure::{Failure, Session},
    queue::Queue,
    tables::{Slot, Tables},
};

/// A table's batch goes out at so many rows or bytes.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 2 << 20;
/// A watermark stands at the end of a transaction after so many rows or bytes …
const SOFT_ROWS: usize = 16_384;
const SOFT_BYTES: usize = 8 << 20;
/// … and even inside one after so many.
const HARD_ROWS: usize = 32_768;
const HARD_BYTES: usize = 16 << 20;
/// Watermarks without rows before them are at least so far apart.
const IDLE_WATERMARKS: Duration = Duration::from_secs(1);
/// Rows wait so long at most when the network pauses inside a transaction.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// Rows and watermarks on their way to the queue.
pub struct Pending {
    queue: Arc<Queue>,
    cuts: VecDeque<Position>,
    /// Rows and bytes since the last watermark, delivered ones included.
    rows: usize,
    bytes: usize,
    /// Since when a row waits.
    since: Option<Instant>,
    /// The structure changed since the last watermark.
    changed: bool,
    last: Option<(Position, Instant)>,
}

impl Pending {
    /// Nothing pending.
    pub fn new(queue: Arc<Queue>, cuts: Vec<Position>) -> Self {
        Self { queue, cuts: cuts.into(), rows: 0, bytes: 0, since: None, changed: false, last: None }
    }

    /// Drops the cuts up to where the stream begins.
    pub fn begin_at(&mut self, position: &Position) {
        while self.cuts.front().is_some_and(|cut| cut <= position) {
            self.cuts.pop_front();
        }
    }

    /// Takes off all cuts, for somebody else to find.
    pub fn take_cuts(&mut self) -> VecDeque<Position> {
        std::mem::take(&mut self.cuts)
    }

    /// Whether any cut is ahead.
    pub fn has_cuts(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// Counts one more row (an update is two) of so many bytes.
    pub fn note(&mut self, rows: usize, bytes: usize) {
        self.rows += rows;
        self.bytes += bytes;
        if self.since.is_none() {
            self.since = Some(Instant::now());
        }
    }

    /// Whether rows came since the last watermark.
    pub fn has_rows(&self) -> bool {
        self.rows > 0
    }

    /// Whether a watermark is due at the end of a transaction.
    pub fn is_due_between_transactions(&self) -> bool {
        let idle = self.rows == 0 && self.is_idle_due();
        self.rows >= SOFT_ROWS || self.bytes >= SOFT_BYTES || self.changed || idle
    }

    /// Whether a watermark is due even inside a transaction.
    pub fn is_hard_due(&self) -> bool {
        self.rows >= HARD_ROWS || self.bytes >= HARD_BYTES
    }

    /// Whether rows have waited too long for the rest of a transaction.
    pub fn is_late(&self) -> bool {
        self.rows > 0 && self.since.is_some_and(|since| since.elapsed() >= MAX_PAUSE)
    }

    /// Whether a watermark without rows may be sent.
    pub fn is_idle_due(&self) -> bool {
        self.last.as_ref().is_none_or(|(_, at)| at.elapsed() >= IDLE_WATERMARKS)
    }

    /// Whether a table's rows fill a batch.
    pub fn is_batch(slot: &Slot) -> bool {
        slot.builder.len() >= BATCH_ROWS || slot.builder.bytes() >= BATCH_BYTES
    }

    /// Delivers one table's rows.
    pub fn deliver(&self, slot: &mut Slot) -> Session<()> {
        if slot.builder.is_empty() {
            return Ok(());
        }
        let bytes = slot.builder.bytes();
        let batch = slot.builder.finish()?;
        self.push(SourceEvent::Batch(batch), bytes)
    }

    /// Delivers all rows without a watermark.
    pub fn deliver_all(&self, tables: &mut Tables) -> Session<()> {
        for slot in tables.slots() {
            self.deliver(slot)?;
        }
        Ok(())
    }

    fn push(&self, event: SourceEvent, bytes: usize) -> Session<()> {
        if self.queue.push(event, bytes) { Ok(()) } else { Err(Failure::Closed) }
    }

    /// Delivers all rows and a watermark behind them. Nothing is sent when neither rows came nor the position moved.
    pub fn watermark(
        &mut self,
        tables: &mut Tables,
        position: Position,
        event_time_ms: Option<i64>,
    ) -> Session<()> {
        self.deliver_all(tables)?;
        let moved = self.last.as_ref().is_none_or(|(last, _)| *last < position);
        if self.rows > 0 || moved {
            self.push(SourceEvent::Watermark(Watermark { position: position.clone(), event_time_ms }), 0)?;
            self.last = Some((position, Instant::now()));
        }
        (self.rows, self.bytes, self.since, self.changed) = (0, 0, None, false);
        Ok(())
    }

    /// Delivers a change of structure; all rows must have been delivered.
    pub fn schema_change(&mut self, change: SchemaChange) -> Session<()> {
        self.changed = true;
        self.push(SourceEvent::SchemaChange(Box::new(change)), 0)
    }

    /// Forgets rows that must not be delivered.
    pub fn forget(&mut self, tables: &mut Tables) {
        tables.clear();
        (self.rows, self.bytes, self.since) = (0, 0, None);
    }

    /// Whether a watermark must stand at `position`, which is then taken off the cuts.
    ///
    /// # Errors
    /// When the stream has gone beyond a cut that it did not meet: the log is not the one that the sink has followed.
    pub fn take_cut(&mut self, position: &Position) -> Session<bool> {
        let mut due = false;
        while let Some(cut) = self.cuts.front() {
            if cut > position {
                break;
            }
            // A cut that is passed is as good as met while nothing that could be doubled stands behind it.
            if cut < position && self.rows > 0 {
                return Err(Failure::Fatal(Error::new(
                    Code::StateIncompatible,
                    format!(
                        "the log has no place {cut}, up to which the sink holds rows; it goes on at {position}"
                    ),
                )));
            }
            self.cuts.pop_front();
            due = true;
        }
        Ok(due)
    }
}
