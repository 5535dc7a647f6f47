//! Owns [`Reader`]: a thread that follows a server's binlog and hands [`SourceEvent`]s to the async side through a
//! queue that is bounded in bytes.

mod apply;
mod failure;
mod follow;
mod moved;
mod pending;
mod queue;
mod server;
mod tables;
mod transaction;

use std::{sync::Arc, thread, time::Duration};

use canalis_connector_api::SourceEvent;
use canalis_types::{Error, Position, Result, SchemaChange, TableId, TableSchema};

use super::{BinlogPosition, ddl::Ddl};
use crate::{Endpoint, Flavor};
use queue::Queue;

/// Where to begin.
#[derive(Debug, Clone)]
pub enum StartPosition {
    /// At a place in a file. What the position says about server, file time and GTIDs is checked and kept.
    File(BinlogPosition),
    /// After all transactions of a GTID set (MySQL) or list (MariaDB).
    Gtid(String),
    /// With the oldest event that the server still has.
    Earliest,
}

/// What a reader needs.
#[derive(Clone)]
pub struct ReaderConfig {
    /// The server.
    pub endpoint: Endpoint,
    /// Its family.
    pub flavor: Flavor,
    /// Id among the replicas of the server; no other replica may have it.
    pub server_id: u32,
    /// Where to begin.
    pub start: StartPosition,
    /// Positions at which a watermark must stand exactly, in ascending order.
    pub cuts: Vec<Position>,
    /// Transactions committed before this time, milliseconds since the epoch, are passed over.
    pub not_before_ms: Option<i64>,
    /// How often the server shows that it is alive when nothing happens.
    pub heartbeat: Duration,
    /// Attempts to connect again, one after another without success, before giving up.
    pub max_retries: u32,
}

impl ReaderConfig {
    /// A configuration with a heartbeat of 5 seconds, 10 retries and no cuts.
    pub fn new(endpoint: Endpoint, flavor: Flavor, server_id: u32, start: StartPosition) -> Self {
        Self {
            endpoint,
            flavor,
            server_id,
            start,
            cuts: Vec::new(),
            not_before_ms: None,
            heartbeat: Duration::from_secs(5),
            max_retries: 10,
        }
    }
}

/// What a reader asks about tables. Owned by the reader's thread, which calls it in the order of the log.
pub trait SchemaTracker: Send {
    /// Whether the table is to be read. Asked for every table that the log names, so it must be quick.
    fn is_captured(&self, table: &TableId) -> bool;

    /// Structure of a captured table at this point of the log; `None` when it is not known.
    fn schema(&self, table: &TableId) -> Option<Arc<TableSchema>>;

    /// Takes note of a change. It is called again with the same change after a restart from before it, and must
    /// then lead to the same structure. `position` is the first one that has the new structure.
    ///
    /// # Errors
    /// When the change is not let through; the stream then ends with the error.
    fn apply(&mut self, ddl: &Ddl, statement: &str, position: &Position) -> Result<Option<SchemaChange>>;
}

/// Reads a binlog. Dropping it ends its thread.
pub struct Reader {
    queue: Arc<Queue>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Reader {
    /// Starts the thread; connecting happens there, and its errors come out of [`Reader::next`].
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn spawn(config: ReaderConfig, tracker: Box<dyn SchemaTracker>) -> Result<Self> {
        let queue = Arc::new(Queue::new());
        let for_thread = queue.clone();
        let thread = thread::Builder::new()
            .name("binlog-reader".to_owned())
            .spawn(move || follow::run(config, tracker, &for_thread))
            .map_err(|e| Error::internal("starting the binlog reader").with_source(e))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// The next event. Cancel-safe. After an error every further call gives an error.
    pub async fn next(&mut self) -> Result<SourceEvent> {
        self.queue.pop().await
    }

    /// Ends the thread and waits for it.
    pub async fn close(mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has already come out of `next` as an error.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue.close();
    }
}
