//! Owns the dead-letter queue of a job: JSON lines in the state directory, durable before the job goes on.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use canalis_connector_api::{DeadLetter, DeadLetterQueue};
use canalis_plan::{DeadLetterMode, DeadLetterPolicy};
use canalis_types::{Code, Error, ErrorKind, Result};

/// Appends refused rows to `dead-letters.jsonl`, or fails the job, as the policy says.
#[derive(Debug)]
pub struct FileDeadLetters {
    policy: DeadLetterPolicy,
    path: PathBuf,
    file: Mutex<Option<File>>,
    count: AtomicU64,
}

impl FileDeadLetters {
    /// A queue that holds `count` letters of earlier runs. The file is made with the first letter.
    pub fn new(directory: &Path, policy: DeadLetterPolicy, count: u64) -> Self {
        Self {
            policy,
            path: directory.join("dead-letters.jsonl"),
            file: Mutex::new(None),
            count: AtomicU64::new(count),
        }
    }

    fn append(&self, letters: &[DeadLetter]) -> Result<()> {
        let failed = |e: std::io::Error| {
            Error::new(Code::LocalIo, format!("writing {}", self.path.display())).with_source(e)
        };
        let mut lines = Vec::new();
        for letter in letters {
            serde_json::to_writer(&mut lines, letter)
                .map_err(|e| Error::internal("dead letter has no JSON form").with_source(e))?;
            lines.push(b'\n');
        }
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if file.is_none() {
            *file = Some(OpenOptions::new().create(true).append(true).open(&self.path).map_err(failed)?);
        }
        let open = file.as_mut().expect("just opened");
        open.write_all(&lines).and_then(|()| open.sync_data()).map_err(failed)
    }
}

#[async_trait]
impl DeadLetterQueue for FileDeadLetters {
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
        let count = self.count.fetch_add(letters.len() as u64, Ordering::Relaxed) + letters.len() as u64;
        self.append(&letters)?;
        match self.policy.limit {
            Some(limit) if count > limit => Err(Error::new(
                Code::DeadLetterLimit,
                format!(
                    "{count} rows are in {}, the limit is {limit}; last reason: {}",
                    self.path.display(),
                    first.reason
                ),
            )),
            _ => Ok(()),
        }
    }
}
