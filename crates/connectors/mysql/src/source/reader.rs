//! Owns the reader of splits: chunks of the snapshot, then the stream.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_connector_api::{SourceEvent, SourceReader, Split, SplitMode};
use canalis_types::{Code, Error, Position, Result, TableId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    chunks::Chunk,
    history::History,
    snapshot::{ChunkReader, ChunkRequest, Sessions},
    stream::{self, StreamReader},
    tracker::NameCase,
};
use crate::{
    ServerInfo,
    catalog::{Mapping, Table},
    options::SourceOptions,
};

/// What the enumerator and all readers of a source share.
pub(crate) struct Shared {
    pub options: SourceOptions,
    pub info: ServerInfo,
    pub mapping: Mapping,
    pub names: NameCase,
    pub sessions: Arc<Sessions>,
    /// Structures that snapshots are read with.
    pub tables: HashMap<TableId, Arc<Table>>,
    pub history: Arc<Mutex<History>>,
    /// Positions at which the stream emits a watermark, see `SourceRestore::cuts`.
    pub cuts: Vec<Position>,
}

/// Description of the stream split.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StreamPayload {
    /// GTID set or list to begin after, when the stream begins where no file and offset are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_after: Option<String>,
    /// Transactions before this commit time are passed over, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_before_ms: Option<i64>,
    /// Tables whose changes up to a later position than the start are in the snapshot.
    #[serde(default)]
    pub watermarks: Vec<(TableId, Position)>,
}

enum Current {
    None,
    Chunk(ChunkReader),
    Stream(Box<StreamReader>),
}

/// Reads one split after another.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    current: Current,
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, current: Current::None }
    }

    async fn chunk(&self, split: Split) -> Result<ChunkReader> {
        let chunk: Chunk = payload(&split)?;
        let table = split.table.as_ref().and_then(|id| self.shared.tables.get(id)).cloned();
        let table = table.ok_or_else(|| {
            Error::new(Code::StateIncompatible, format!("split {} is of no captured table", split.id))
        })?;
        ChunkReader::start(ChunkRequest {
            sessions: self.shared.sessions.clone(),
            table,
            chunk,
            batch_rows: self.shared.options.batch_rows,
        })
        .await
    }
}

fn payload<T: for<'de> Deserialize<'de>>(split: &Split) -> Result<T> {
    let value: Value = split.payload.clone();
    serde_json::from_value(value).map_err(|e| {
        Error::new(Code::StateIncompatible, format!("reading the description of split {}", split.id))
            .with_source(e)
    })
}

#[async_trait]
impl SourceReader for Reader {
    async fn start(&mut self, split: Split) -> Result<()> {
        self.current = Current::None;
        self.current = match split.mode {
            SplitMode::Snapshot => Current::Chunk(self.chunk(split).await?),
            SplitMode::Stream => {
                let description: StreamPayload = payload(&split)?;
                let position =
                    split.position.ok_or_else(|| Error::internal("the stream split has no position"))?;
                Current::Stream(Box::new(stream::start(&self.shared, &position, description).await?))
            }
            SplitMode::Append => return Err(Error::internal("mysql has no append splits")),
        };
        Ok(())
    }

    async fn next(&mut self) -> Result<SourceEvent> {
        match &mut self.current {
            Current::None => Err(Error::internal("a reader without a split was asked for events")),
            Current::Chunk(chunk) => {
                let event = chunk.next().await?;
                if matches!(event, SourceEvent::SplitEnd) {
                    self.current = Current::None;
                }
                Ok(event)
            }
            Current::Stream(stream) => stream.next().await,
        }
    }
}
