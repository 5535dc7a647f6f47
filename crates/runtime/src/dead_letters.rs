//! Owns the dead-letter queue of a job: the declared policy, over a store in the state directory that is durable before
//! the job goes on.

mod json_lines;
mod sqlite;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use canalis_connector_api::{DeadLetter, DeadLetterQueue};
use canalis_plan::{DeadLetterFormat, DeadLetterMode, DeadLetterPolicy};
use canalis_types::{Code, Error, ErrorKind, Result};

use json_lines::JsonLines;
use sqlite::SqliteFile;

/// Keeps refused rows, or fails the job, as the policy says.
#[derive(Debug)]
pub struct DeadLetters {
    policy: DeadLetterPolicy,
    store: Arc<dyn Store>,
    count: AtomicU64,
}

/// Where letters are kept. Its methods block.
trait Store: fmt::Debug + Send + Sync {
    /// The file, for messages.
    fn path(&self) -> &Path;

    /// Keeps letters. When it returns Ok all of them are on the disk; after an error or a crash none counts, because the
    /// rows are not committed either and come again.
    fn append(&self, letters: &[DeadLetter]) -> Result<()>;
}

impl DeadLetters {
    /// A queue in `directory` after `count` letters of earlier runs. Its file is made with the first letter.
    pub fn new(directory: &Path, policy: DeadLetterPolicy, count: u64) -> Self {
        let store: Arc<dyn Store> = match policy.format {
            DeadLetterFormat::JsonLines => Arc::new(JsonLines::new(directory.join("dead-letters.jsonl"))),
            DeadLetterFormat::Sqlite => Arc::new(SqliteFile::new(directory.join("dead-letters.db"))),
        };
        Self { policy, store, count: AtomicU64::new(count) }
    }
}

#[async_trait]
impl DeadLetterQueue for DeadLetters {
    async fn reject(&self, letters: Vec<DeadLetter>) -> Result<()> {
        let Some(first) = letters.first() else { return Ok(()) };
        if self.policy.mode == DeadLetterMode::Fail {
            let at = first.position.as_ref().map(|p| format!(" at {p}")).unwrap_or_default();
            return Err(Error::new(
                first.code,
                format!(
                    "table {}, key {}{at}: {} (set `dead-letter.policy: queue` to go on without such rows)",
                    first.table, first.key, first.reason
                ),
            )
            .with_kind(ErrorKind::Row));
        }
        let added = letters.len() as u64;
        let reason = first.reason.clone();
        let count = self.count.fetch_add(added, Ordering::Relaxed) + added;
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || store.append(&letters))
            .await
            .map_err(|e| Error::internal("a thread of the dead-letter queue ended early").with_source(e))??;
        match self.policy.limit {
            Some(limit) if count > limit => Err(Error::new(
                Code::DeadLetterLimit,
                format!(
                    "{count} rows are in {}, the limit is {limit}; last reason: {reason}",
                    self.store.path().display()
                ),
            )),
            _ => Ok(()),
        }
    }
}
