//! Owns the stream: the binlog reader with the schema history, and what it leaves out because the snapshot has it.

use std::collections::HashMap;

use canalis_connector_api::SourceEvent;
use canalis_types::{Position, Result, TableId};

use super::{
    reader::{Shared, StreamPayload},
    tracker::Tracker,
};
use crate::binlog::{BinlogPosition, FIRST_OFFSET, Reader, ReaderConfig, StartPosition};

/// Reads the stream from a position on.
pub(crate) struct StreamReader {
    reader: Reader,
    /// Tables whose changes up to the position are in the snapshot.
    skip: HashMap<TableId, Position>,
    /// Everything before it has been delivered.
    at: Position,
}

/// Starts the stream.
pub(crate) async fn start(
    shared: &Shared,
    position: &Position,
    payload: StreamPayload,
) -> Result<StreamReader> {
    let place = BinlogPosition::parse(position)?;
    let untouched = place.offset == FIRST_OFFSET && place.time_ms.is_none();
    let start = match payload.begin_after {
        // Only the very first position has a set of transactions and no place of its own.
        Some(set) if untouched && place.gtid_set.as_deref() == Some(set.as_str()) => StartPosition::Gtid(set),
        _ => StartPosition::File(place),
    };
    let options = &shared.options;
    let mut config =
        ReaderConfig::new(options.endpoint.clone(), shared.info.flavor, options.server_id, start);
    config.heartbeat = options.heartbeat;
    config.max_retries = u32::try_from(options.connect_attempts).unwrap_or(u32::MAX);
    config.not_before_ms = payload.skip_before_ms;
    // A watermark stands exactly where a table's own snapshot ends, so that no batch reaches across it.
    config.cuts = shared.cuts.iter().chain(payload.watermarks.iter().map(|(_, p)| p)).cloned().collect();
    config.cuts.sort();
    config.cuts.dedup();
    let tracker = Tracker::new(shared.history.clone(), shared.mapping, shared.names);
    Ok(StreamReader {
        reader: Reader::spawn(config, Box::new(tracker))?,
        skip: payload.watermarks.into_iter().filter(|(_, end)| end > position).collect(),
        at: position.clone(),
    })
}

impl StreamReader {
    /// The next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<SourceEvent> {
        loop {
            let event = self.reader.next().await?;
            match event {
                SourceEvent::Batch(batch) if self.is_in_snapshot(&batch.schema().id) => {}
                SourceEvent::Undecodable(mut letters) => {
                    letters.retain(|letter| !self.is_in_snapshot(&letter.table));
                    if !letters.is_empty() {
                        return Ok(SourceEvent::Undecodable(letters));
                    }
                }
                SourceEvent::Watermark(watermark) => {
                    self.at = watermark.position.clone();
                    let at = &self.at;
                    self.skip.retain(|_, end| *end > *at);
                    return Ok(SourceEvent::Watermark(watermark));
                }
                other => return Ok(other),
            }
        }
    }

    fn is_in_snapshot(&self, table: &TableId) -> bool {
        self.skip.get(table).is_some_and(|end| self.at < *end)
    }
}
