//! Owns what a writer tells a checkpoint about its files.

use std::path::{Component, Path};

use canalis_types::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const VERSION: u32 = 1;

/// A file below the sink's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    /// Directory of its table.
    pub directory: String,
    /// Its visible name.
    pub name: String,
    /// Bytes that the checkpoint covers.
    pub length: u64,
    /// Rows in them.
    pub rows: u64,
}

/// Files of one writer at a checkpoint.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WriterState {
    version: u32,
    /// Complete: become visible when the checkpoint is durable.
    pub finished: Vec<FileState>,
    /// To be written on; after a crash they are cut back and become visible.
    pub open: Vec<FileState>,
}

impl WriterState {
    pub(crate) fn new(finished: Vec<FileState>, open: Vec<FileState>) -> Self {
        Self { version: VERSION, finished, open }
    }

    pub(crate) fn encode(&self) -> Result<Value> {
        serde_json::to_value(self)
            .map_err(|e| Error::internal("cannot encode the state of files").with_source(e))
    }

    /// The state of one writer; null stands for a writer that had none.
    pub(crate) fn decode(value: &Value) -> Result<Self> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let damaged = || Error::new(Code::CheckpointDamaged, "cannot decode the state of the sink `files`");
        let state: Self = serde_json::from_value(value.clone()).map_err(|e| damaged().with_source(e))?;
        if state.version != VERSION {
            let text = format!("state of the sink `files` has version {}, known is {VERSION}", state.version);
            return Err(Error::new(Code::StateIncompatible, text));
        }
        let one_name = |text: &str| {
            let mut parts = Path::new(text).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        };
        let sound = |file: &FileState| one_name(&file.directory) && one_name(&file.name);
        if !state.finished.iter().chain(&state.open).all(sound) {
            return Err(damaged());
        }
        Ok(state)
    }
}
