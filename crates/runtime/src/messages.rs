//! Owns the messages between JobMaster, readers and writers of one attempt.

use std::sync::Arc;

use canalis_batch::ChangeBatch;
use canalis_connector_api::{NextSplit, Split, SplitBegin, Watermark};
use canalis_types::{Error, SchemaChange, TableSchema};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{budget::Taken, ledger::Ledger};

/// Whether the job goes on after a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterBarrier {
    /// It does.
    Continue,
    /// It is the last checkpoint.
    Stop,
}

/// A checkpoint marker.
#[derive(Debug, Clone, Copy)]
pub struct Barrier {
    /// Epoch that ends here.
    pub epoch: u64,
    /// What comes after.
    pub after: AfterBarrier,
    /// The reader of the stream is the only one left and passes it to every writer. The barrier says so, not the reader's
    /// state: it may come to that reader before the stream does.
    pub everywhere: bool,
}

/// What a writer gets, in order.
pub enum ToWriter {
    /// A bounded split begins.
    Begin(Box<SplitBegin>),
    /// Rows, with the budget that they hold.
    Rows(ChangeBatch, Taken),
    /// The bounded split has ended.
    End(String),
    /// Everything so far may be committed.
    Watermark(Watermark),
    /// Commit what may be committed, then say so.
    Flush(oneshot::Sender<()>),
    /// A table's structure has changed.
    Schema(Arc<TableSchema>),
    /// Commit, prepare, acknowledge.
    Barrier(Barrier),
}

/// What the JobMaster hears.
pub enum ToMaster {
    /// A reader wants work.
    NeedSplit {
        /// Which reader.
        reader: usize,
        /// Its writer has committed all it can: hold the answer until there is work or the end.
        patient: bool,
        /// Where the answer goes.
        answer: oneshot::Sender<NextSplit>,
    },
    /// A reader has passed a barrier.
    ReaderPassed {
        /// Which reader.
        reader: usize,
        /// Epoch of the barrier.
        epoch: u64,
        /// The split under way, with its position.
        running: Option<Split>,
        /// Counts of this attempt so far.
        counts: Ledger,
    },
    /// Splits are durable in the sink.
    SplitsDurable(usize, Vec<String>),
    /// A writer has passed a barrier.
    WriterPassed {
        /// Which writer.
        writer: usize,
        /// Epoch of the barrier.
        epoch: u64,
        /// What `Sink::publish` needs.
        prepared: Value,
        /// Counts of this attempt so far.
        counts: Ledger,
    },
    /// A change of structure is to be carried out at the sink; every writer has committed.
    SchemaChange(Box<SchemaChange>, oneshot::Sender<()>),
    /// A reader has no more work; the counts are its last ones.
    ReaderDone(usize, Ledger),
    /// A task failed; the attempt is over.
    Failed(Error),
}
