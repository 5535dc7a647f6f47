//! Owns making files visible, recovery and removal. Everything here blocks.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use canalis_types::{Code, Error, Result};
use serde_json::Value;

use super::state::{FileState, WriterState};
use crate::{
    error::sink_io,
    naming::{hidden, is_hidden_of},
};

/// Works on the files below the sink's path.
#[derive(Debug)]
pub(super) struct Publisher {
    root: PathBuf,
}

impl Publisher {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Creates the sink's directory, or one below it, durably.
    pub(super) fn create_directory(&self, below: Option<&str>) -> Result<()> {
        let directory = below.map_or(self.root.clone(), |name| self.root.join(name));
        if directory.is_dir() {
            return Ok(());
        }
        let doing = || format!("create directory {}", directory.display());
        fs::create_dir_all(&directory).map_err(|e| sink_io(doing(), e))?;
        let parent = directory.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_directory(parent)
    }

    /// Whether files can be created: tries one in the sink's directory or, when that is missing, in the closest one above.
    pub(super) fn probe(&self) -> Result<()> {
        let mut directory = self.root.as_path();
        while !directory.exists() {
            match directory.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => directory = parent,
                _ => directory = Path::new("."),
            }
        }
        let probe = directory.join(format!(".canalis-check-{}", std::process::id()));
        let doing = || format!("write in {}", directory.display());
        File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|e| sink_io(doing(), e))
    }

    /// Makes complete files visible. Those that are visible already stay as they are.
    pub(super) fn publish(&self, prepared: &[Value]) -> Result<()> {
        let mut changed = BTreeSet::new();
        for state in prepared {
            for file in &WriterState::decode(state)?.finished {
                self.show(file, &mut changed)?;
            }
        }
        self.sync_directories(&changed)
    }

    /// The same after a crash, when no file is being written: open files are cut back to what the checkpoint covers.
    pub(super) fn recover(&self, prepared: &[Value]) -> Result<()> {
        let mut changed = BTreeSet::new();
        for state in prepared {
            let state = WriterState::decode(state)?;
            for file in &state.open {
                self.cut_back(file)?;
            }
            for file in state.finished.iter().chain(&state.open) {
                self.show(file, &mut changed)?;
            }
        }
        self.sync_directories(&changed)
    }

    fn cut_back(&self, state: &FileState) -> Result<()> {
        let path = self.root.join(&state.directory).join(hidden(&state.name));
        let doing = || format!("cut {} back to its checkpoint", path.display());
        let file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            // An earlier recovery from the same checkpoint has been here.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(sink_io(doing(), e)),
        };
        let length = file.metadata().map_err(|e| sink_io(doing(), e))?.len();
        if length < state.length {
            return Err(shorter(&path, length, state.length));
        }
        if length > state.length {
            file.set_len(state.length).and_then(|()| file.sync_all()).map_err(|e| sink_io(doing(), e))?;
        }
        Ok(())
    }

    fn show(&self, state: &FileState, changed: &mut BTreeSet<PathBuf>) -> Result<()> {
        let directory = self.root.join(&state.directory);
        let (from, to) = (directory.join(hidden(&state.name)), directory.join(&state.name));
        let doing = || format!("make {} visible", to.display());
        let length = match fs::metadata(&from) {
            Ok(metadata) => metadata.len(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if !to.exists() {
                    tracing::warn!(file = %to.display(), rows = state.rows, "a published file has been taken away");
                }
                return Ok(());
            }
            Err(e) => return Err(sink_io(doing(), e)),
        };
        if length != state.length {
            return Err(shorter(&from, length, state.length));
        }
        if to.exists() {
            return Err(Error::new(
                Code::SinkFailed,
                format!("cannot {}: a file of that name is there", doing()),
            ));
        }
        fs::rename(&from, &to).map_err(|e| sink_io(doing(), e))?;
        changed.insert(directory);
        Ok(())
    }

    fn sync_directories(&self, directories: &BTreeSet<PathBuf>) -> Result<()> {
        directories.iter().try_for_each(|directory| sync_directory(directory))
    }

    /// Removes hidden files of the job; no writer may be at work.
    pub(super) fn remove_hidden(&self, tag: &str) -> Result<()> {
        let doing = |path: &Path| format!("remove unpublished files in {}", path.display());
        let entries = |path: &Path| match fs::read_dir(path) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>().map_err(|e| sink_io(doing(path), e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(sink_io(doing(path), e)),
        };
        for directory in entries(&self.root)? {
            if !directory.file_type().is_ok_and(|t| t.is_dir()) {
                continue;
            }
            for file in entries(&directory.path())? {
                if is_hidden_of(&file.file_name().to_string_lossy(), tag) {
                    tracing::info!(file = %file.path().display(), "removing a file that no checkpoint covers");
                    fs::remove_file(file.path()).map_err(|e| sink_io(doing(&file.path()), e))?;
                }
            }
        }
        Ok(())
    }
}

fn shorter(path: &Path, found: u64, expected: u64) -> Error {
    let text = format!(
        "cannot publish {}: it has {found} bytes, its checkpoint covers {expected}; rows would be lost or doubled",
        path.display()
    );
    Error::new(Code::StateIncompatible, text)
}

/// Makes names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory)
        .and_then(|d| d.sync_all())
        .map_err(|e| sink_io(format!("make names in {} durable", directory.display()), e))
}
