//! Owns dealing files: one append split per file.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use async_trait::async_trait;
use canalis_connector_api::{
    NextSplit, SourceReader, SourceRestore, Split, SplitEnumerator, SplitMode, TableEstimate,
};
use canalis_types::{Code, Error, Result, TableId, TableSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Catalog, FileEntry, reader::FilesReader, scan};
use crate::{blocking::blocking, options::SourceOptions};

/// Durable state: what is still to be dealt.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u32,
    tables: Vec<TableSchema>,
    pending: Vec<FileEntry>,
}

const STATE_VERSION: u32 = 1;

pub(super) struct FilesEnumerator {
    options: Arc<SourceOptions>,
    tables: BTreeMap<TableId, Arc<TableSchema>>,
    /// Splits that were under way before a restart.
    interrupted: VecDeque<Split>,
    pending: VecDeque<FileEntry>,
    estimates: BTreeMap<TableId, u64>,
}

impl FilesEnumerator {
    pub(super) fn new(options: Arc<SourceOptions>, catalog: Catalog) -> Self {
        let estimates = blocking(|| estimates(&options, &catalog.files));
        Self {
            options,
            tables: catalog.tables,
            interrupted: VecDeque::new(),
            pending: catalog.files.into(),
            estimates,
        }
    }

    /// # Errors
    /// `CNL-4001` when the state does not decode, `CNL-4002` when `schema` has changed since.
    pub(super) fn restore(options: Arc<SourceOptions>, restore: SourceRestore) -> Result<Self> {
        let state: State = serde_json::from_value(restore.state).map_err(|e| {
            Error::new(Code::CheckpointDamaged, "cannot decode the state of the source `files`")
                .with_source(e)
        })?;
        if state.version != STATE_VERSION {
            return Err(Error::new(
                Code::StateIncompatible,
                format!(
                    "state of the source `files` has version {}, known is {STATE_VERSION}",
                    state.version
                ),
            ));
        }
        for table in &state.tables {
            let same = |c: &Vec<canalis_types::Column>| {
                let key = |name: &String| options.primary_key.contains(name);
                c.len() == table.columns.len()
                    && c.iter().zip(&table.columns).all(|(now, then)| {
                        now.name == then.name
                            && now.ty == then.ty
                            && (now.nullable == then.nullable || key(&now.name))
                    })
            };
            if options.columns.as_ref().is_some_and(|c| !same(c)) || options.primary_key != table.primary_key
            {
                return Err(Error::new(
                    Code::StateIncompatible,
                    format!(
                        "`schema` or `primary-keys` of {} differs from the one the job started with",
                        table.id
                    ),
                ));
            }
        }
        let done = restore.done;
        let mut interrupted: VecDeque<Split> = restore.running.into();
        interrupted.retain(|split| !done.contains(&split.id));
        interrupted.iter_mut().for_each(|split| split.retried = true);
        let mut pending: VecDeque<FileEntry> = state.pending.into();
        pending.retain(|file| !done.contains(&file.path));
        let files: Vec<FileEntry> = pending.iter().cloned().collect();
        let estimates = blocking(|| estimates(&options, &files));
        Ok(Self {
            options,
            tables: state.tables.into_iter().map(|t| (t.id.clone(), Arc::new(t))).collect(),
            interrupted,
            pending,
            estimates,
        })
    }
}

/// Rows of each table, by the length of the first lines of its files. Files that have gone are told of when they are read.
fn estimates(options: &SourceOptions, files: &[FileEntry]) -> BTreeMap<TableId, u64> {
    let mut rows = BTreeMap::new();
    for file in files {
        *rows.entry(file.table.clone()).or_default() += scan::estimate_rows(options, file).unwrap_or(0);
    }
    rows
}

#[async_trait]
impl SplitEnumerator for FilesEnumerator {
    fn tables(&self) -> Vec<Arc<TableSchema>> {
        self.tables.values().cloned().collect()
    }

    fn estimate(&self, table: &TableId) -> Option<TableEstimate> {
        self.estimates.get(table).map(|rows| TableEstimate { rows: *rows })
    }

    async fn next(&mut self, _reader: usize) -> Result<NextSplit> {
        if let Some(split) = self.interrupted.pop_front() {
            return Ok(NextSplit::Split(Box::new(split)));
        }
        let Some(file) = self.pending.pop_front() else { return Ok(NextSplit::Finished) };
        let payload = serde_json::to_value(&file)
            .map_err(|e| Error::internal("cannot encode the split of a file").with_source(e))?;
        Ok(NextSplit::Split(Box::new(Split {
            id: file.path,
            mode: SplitMode::Append,
            table: Some(file.table),
            payload,
            position: None,
            retried: false,
        })))
    }

    fn split_finished(&mut self, _id: &str) {}

    async fn open_reader(&mut self) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(FilesReader::new(self.options.clone(), self.tables.clone())))
    }

    fn state(&self) -> Value {
        let state = State {
            version: STATE_VERSION,
            tables: self.tables.values().map(|t| TableSchema::clone(t)).collect(),
            pending: self.pending.iter().cloned().collect(),
        };
        serde_json::to_value(state).expect("the state holds nothing that JSON cannot")
    }
}
