//! Owns the running of one job in process: the JobMaster (splits, checkpoints, schema changes, restart
//! strategy), reader and writer tasks joined by bounded channels, dead letters, the ledger and progress.
//!
//! Must not know: connectors by name, HTTP, terminals.

mod attempt;
mod budget;
mod checkpoint;
mod dead_letters;
mod job;
mod ledger;
mod messages;
mod progress;
mod reader;
mod restart;
mod router;
mod writer;

pub use checkpoint::{Checkpoint, CheckpointStore, read as read_checkpoint};
pub use job::{JobControl, JobReport, JobSpec, run};
pub use ledger::{Ledger, TableCounts};
pub use progress::{JobState, Phase, Progress, ProgressView, TableProgress};
