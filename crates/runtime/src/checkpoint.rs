//! Owns checkpoints on local disk: written aside, synced, renamed, checksummed, the last few kept.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use canalis_connector_api::Split;
use canalis_types::{Code, Error, Result, TableId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ledger::Ledger;

/// Version of the file form.
const VERSION: u32 = 1;

/// Everything needed to go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Version of this form.
    pub version: u32,
    /// Name of the job.
    pub job: String,
    /// Connector types of source and sink: state of one pair means nothing to another.
    pub connectors: (String, String),
    /// Number of the checkpoint.
    pub epoch: u64,
    /// State of the enumerator.
    pub source: Value,
    /// Splits under way, with their positions.
    pub running: Vec<Split>,
    /// What the writers prepared.
    pub prepared: Vec<Value>,
    /// Tables at the sink.
    pub tables: Vec<TableId>,
    /// Of these, the ones that the job created.
    pub created: Vec<TableId>,
    /// Whether every snapshot split is done and the sink has finished its part.
    pub snapshot_complete: bool,
    /// Whether the job has ended.
    pub finished: bool,
    /// Counts since the job's first start.
    pub ledger: Ledger,
}

impl Checkpoint {
    /// A checkpoint of this version with nothing in it.
    pub fn empty(job: &str, connectors: (String, String)) -> Self {
        Self {
            version: VERSION,
            job: job.to_owned(),
            connectors,
            epoch: 0,
            source: Value::Null,
            running: Vec::new(),
            prepared: Vec::new(),
            tables: Vec::new(),
            created: Vec::new(),
            snapshot_complete: false,
            finished: false,
            ledger: Ledger::default(),
        }
    }
}

/// Checkpoints of one job in one directory, which it owns by a lock as long as it lives.
#[derive(Debug)]
pub struct CheckpointStore {
    directory: PathBuf,
    retained: usize,
    _lock: File,
}

fn io(doing: impl std::fmt::Display, error: std::io::Error) -> Error {
    Error::new(Code::LocalIo, doing.to_string()).with_source(error)
}

impl CheckpointStore {
    /// Opens (and makes) the state directory.
    ///
    /// # Errors
    /// `CNL-4005` when another process owns it, `CNL-4006` when the disk refuses.
    pub fn open(directory: &Path, retained: usize) -> Result<Self> {
        fs::create_dir_all(directory).map_err(|e| io(format!("creating {}", directory.display()), e))?;
        let path = directory.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| io(format!("opening {}", path.display()), e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::new(
                    Code::StateLocked,
                    format!("{} is in use by another canalis process", directory.display()),
                ));
            }
            Err(fs::TryLockError::Error(e)) => return Err(io(format!("locking {}", path.display()), e)),
        }
        Ok(Self { directory: directory.to_owned(), retained: retained.max(1), _lock: lock })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The newest checkpoint that reads back whole, with a message for each newer one that does not.
    pub fn latest(&self) -> Result<(Option<Checkpoint>, Vec<Error>)> {
        let mut damaged = Vec::new();
        let mut files = self.files()?;
        while let Some((_, path)) = files.pop() {
            match read(&path) {
                Ok(checkpoint) => return Ok((Some(checkpoint), damaged)),
                Err(error) => damaged.push(error),
            }
        }
        // Only damaged ones: starting anew in silence would copy everything again.
        match damaged.pop() {
            Some(error) => Err(error.context("no checkpoint can be read")),
            None => Ok((None, damaged)),
        }
    }

    /// Makes a checkpoint durable and removes the oldest ones.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf> {
        let path = self.directory.join(format!("checkpoint-{:012}.json", checkpoint.epoch));
        write(&path, checkpoint)?;
        let files = self.files()?;
        for (_, old) in files.iter().take(files.len().saturating_sub(self.retained)) {
            fs::remove_file(old).map_err(|e| io(format!("removing {}", old.display()), e))?;
        }
        Ok(path)
    }

    /// Writes a copy that is never removed.
    pub fn save_savepoint(&self, checkpoint: &Checkpoint) -> Result<PathBuf> {
        let path = self.directory.join(format!("savepoint-{:012}.json", checkpoint.epoch));
        write(&path, checkpoint)?;
        Ok(path)
    }

    /// Makes a savepoint the newest checkpoint, so that whatever happens next, the job goes on from it and not from what
    /// was there before.
    pub fn adopt(&self, mut savepoint: Checkpoint) -> Result<Checkpoint> {
        if let Some((newest, _)) = self.files()?.pop() {
            savepoint.epoch = savepoint.epoch.max(newest + 1);
        }
        self.save(&savepoint)?;
        Ok(savepoint)
    }

    fn files(&self) -> Result<Vec<(u64, PathBuf)>> {
        let doing = || format!("listing {}", self.directory.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(|e| io(doing(), e))? {
            let path = entry.map_err(|e| io(doing(), e))?.path();
            let epoch = path
                .file_name()
                .and_then(|n| n.to_str())
                .and_then(|n| n.strip_prefix("checkpoint-")?.strip_suffix(".json")?.parse().ok());
            if let Some(epoch) = epoch {
                files.push((epoch, path));
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

/// First line: magic, version, CRC-32 of the rest. Rest: JSON.
fn write(path: &Path, checkpoint: &Checkpoint) -> Result<()> {
    let doing = || format!("writing {}", path.display());
    let body = serde_json::to_vec(checkpoint)
        .map_err(|e| Error::internal("checkpoint has no JSON form").with_source(e))?;
    let aside = path.with_extension("part");
    let mut file = File::create(&aside).map_err(|e| io(doing(), e))?;
    let header = format!("canalis-checkpoint {VERSION} {:08x}\n", crc32fast::hash(&body));
    file.write_all(header.as_bytes())
        .and_then(|()| file.write_all(&body))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&aside, path))
        .and_then(|()| File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all())
        .map_err(|e| io(doing(), e))
}

/// Reads a checkpoint or savepoint file.
///
/// # Errors
/// `CNL-4001` when it is damaged or of another version.
pub fn read(path: &Path) -> Result<Checkpoint> {
    let bytes = fs::read(path).map_err(|e| io(format!("reading {}", path.display()), e))?;
    let damaged =
        |why: &str| Error::new(Code::CheckpointDamaged, format!("{} is damaged: {why}", path.display()));
    let end = bytes.iter().position(|b| *b == b'\n').ok_or_else(|| damaged("it has no header"))?;
    let header = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged("its header is not text"))?;
    let body = &bytes[end + 1..];
    let mut words = header.split(' ');
    if words.next() != Some("canalis-checkpoint") {
        return Err(damaged("it is not a checkpoint"));
    }
    if words.next() != Some(&VERSION.to_string()) {
        return Err(damaged("it was written by another version"));
    }
    if words.next() != Some(&format!("{:08x}", crc32fast::hash(body))) {
        return Err(damaged("its checksum does not match"));
    }
    serde_json::from_slice(body).map_err(|e| damaged("its body does not parse").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: u64) -> Checkpoint {
        Checkpoint { epoch, ..Checkpoint::empty("j", ("a".into(), "b".into())) }
    }

    #[test]
    fn rs_07_a_damaged_checkpoint_is_passed_over_with_an_alert() {
        let directory = tempfile::tempdir().unwrap();
        let store = CheckpointStore::open(directory.path(), 3).unwrap();
        store.save(&at(1)).unwrap();
        let newest = store.save(&at(2)).unwrap();
        let whole = fs::read(&newest).unwrap();
        for length in 0..whole.len() {
            fs::write(&newest, &whole[..length]).unwrap();
            let (found, damaged) = store.latest().unwrap();
            assert_eq!(found.map(|c| c.epoch), Some(1), "cut at {length}");
            assert_eq!(damaged.len(), 1);
            assert_eq!(damaged[0].code(), Code::CheckpointDamaged);
        }
    }

    #[test]
    fn only_damaged_checkpoints_are_an_error_not_a_new_start() {
        let directory = tempfile::tempdir().unwrap();
        let store = CheckpointStore::open(directory.path(), 3).unwrap();
        fs::write(store.save(&at(1)).unwrap(), "rubbish").unwrap();
        assert_eq!(store.latest().unwrap_err().code(), Code::CheckpointDamaged);
    }

    #[test]
    fn old_checkpoints_go_and_savepoints_stay() {
        let directory = tempfile::tempdir().unwrap();
        let store = CheckpointStore::open(directory.path(), 2).unwrap();
        let savepoint = store.save_savepoint(&at(1)).unwrap();
        for epoch in 1..=5 {
            store.save(&at(epoch)).unwrap();
        }
        let kept: Vec<u64> = store.files().unwrap().into_iter().map(|(e, _)| e).collect();
        assert_eq!(kept, [4, 5]);
        assert_eq!(read(&savepoint).unwrap().epoch, 1);
    }

    #[test]
    fn an_adopted_savepoint_is_the_newest_checkpoint() {
        let directory = tempfile::tempdir().unwrap();
        let store = CheckpointStore::open(directory.path(), 2).unwrap();
        for (savepoint, expect) in [(7, 7), (3, 8), (20, 20)] {
            assert_eq!(store.adopt(at(savepoint)).unwrap().epoch, expect);
            assert_eq!(store.latest().unwrap().0.map(|c| c.epoch), Some(expect));
        }
    }

    #[test]
    fn a_directory_has_one_owner() {
        let directory = tempfile::tempdir().unwrap();
        let _first = CheckpointStore::open(directory.path(), 3).unwrap();
        assert_eq!(CheckpointStore::open(directory.path(), 3).unwrap_err().code(), Code::StateLocked);
    }
}
