//! Owns the writer: which rows are written, how they are counted, and what is refused.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    CommitPoint, CommitReport, DeadLetter, DeadLetterQueue, SinkPreview, SinkWriter, SplitBegin, SplitMode,
    WriterContext,
};
use canalis_formats::{ChangeColumn, RowEncoder};
use canalis_types::{Result, RowKind, TableId};
use serde_json::Value;

use super::{
    rolling::{Due, RollingFiles, new_encoder},
    row_kind_clash,
};
use crate::{
    blocking::blocking,
    naming::{job_tag, prefix},
    options::{RowKinds, SinkOptions},
};

/// Rows encoded at once at most.
const CHUNK_ROWS: usize = 4096;
/// Bytes encoded at once, about.
const CHUNK_BYTES: u64 = 1 << 20;

pub(super) struct FilesWriter {
    core: Core,
    dead_letters: Arc<dyn DeadLetterQueue>,
    dead_lettered: BTreeMap<TableId, u64>,
    /// Tells the sink that files are being written.
    _alive: Arc<()>,
}

/// The part that blocks.
struct Core {
    options: Arc<SinkOptions>,
    files: RollingFiles,
    /// Rows come from a source that only ever appends.
    append_only: bool,
    written: BTreeMap<TableId, u64>,
    buffer: Vec<u8>,
}

impl FilesWriter {
    pub(super) fn new(options: Arc<SinkOptions>, ctx: WriterContext, alive: Arc<()>) -> Self {
        let prefix = prefix(SystemTime::now(), &job_tag(&ctx.job), ctx.index);
        Self {
            core: Core {
                files: RollingFiles::new(options.clone(), prefix),
                options,
                append_only: false,
                written: BTreeMap::new(),
                buffer: Vec::new(),
            },
            dead_letters: ctx.dead_letters,
            dead_lettered: BTreeMap::new(),
            _alive: alive,
        }
    }
}

#[async_trait]
impl SinkWriter for FilesWriter {
    async fn begin_split(&mut self, begin: &SplitBegin) -> Result<()> {
        self.core.append_only = begin.split.mode == SplitMode::Append;
        Ok(())
    }

    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        let letters = blocking(|| self.core.write(&batch))?;
        if !letters.is_empty() {
            let count = letters.len() as u64;
            self.dead_letters.reject(letters).await?;
            *self.dead_lettered.entry(batch.schema().id.clone()).or_default() += count;
        }
        Ok(())
    }

    /// Rows are in their files already; a checkpoint makes them durable.
    async fn commit(&mut self, _point: &CommitPoint) -> Result<CommitReport> {
        Ok(CommitReport {
            written: std::mem::take(&mut self.core.written).into_iter().collect(),
            dead_lettered: std::mem::take(&mut self.dead_lettered).into_iter().collect(),
        })
    }

    async fn prepare(&mut self, _epoch: u64) -> Result<Value> {
        blocking(|| self.core.files.prepare(Due::ByAge))?.encode()
    }

    async fn finish(&mut self, _epoch: u64) -> Result<Value> {
        blocking(|| self.core.files.prepare(Due::All))?.encode()
    }
}

impl Core {
    fn write(&mut self, batch: &ChangeBatch) -> Result<Vec<DeadLetter>> {
        let changes = changes(&self.options, batch, self.append_only)?;
        let encoder = self.files.encoder(batch.schema(), &changes)?;
        let (rows, letters) = choose(&self.options, batch, &changes, &*encoder);
        let written = match &rows {
            Rows::All => batch.num_changes(),
            Rows::Some(rows) => rows.iter().filter(|row| batch.kinds()[**row].is_counted()).count() as u64,
        };
        let count = match &rows {
            Rows::All => batch.num_rows(),
            Rows::Some(rows) => rows.len(),
        };
        let mut done = 0;
        while done < count {
            let encoder = self.files.encoder(batch.schema(), &changes)?;
            let room = usize::try_from(self.files.room(&batch.schema().id)).unwrap_or(usize::MAX);
            let chunk = chunk_rows(batch).min(room).min(count - done);
            self.buffer.clear();
            match &rows {
                Rows::All => encoder.write_rows(batch, &mut (done..done + chunk), &mut self.buffer)?,
                Rows::Some(rows) => {
                    let mut rows = rows[done..done + chunk].iter().copied();
                    encoder.write_rows(batch, &mut rows, &mut self.buffer)?;
                }
            }
            self.files.append(&batch.schema().id, &self.buffer, chunk as u64)?;
            done += chunk;
        }
        *self.written.entry(batch.schema().id.clone()).or_default() += written;
        Ok(letters)
    }
}

/// The lines that a writer would append for a batch, and the rows it would refuse.
pub(super) fn preview(options: &SinkOptions, batch: &ChangeBatch, mode: SplitMode) -> Result<SinkPreview> {
    let changes = changes(options, batch, mode == SplitMode::Append)?;
    let encoder = new_encoder(options, batch.schema(), &changes);
    let (rows, refused) = choose(options, batch, &changes, &*encoder);
    let rows = match rows {
        Rows::All => (0..batch.num_rows()).collect(),
        Rows::Some(rows) => rows,
    };
    let mut statements = Vec::with_capacity(rows.len());
    for row in rows {
        let mut line = Vec::new();
        encoder.write_rows(batch, &mut std::iter::once(row), &mut line)?;
        statements.push(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
    }
    Ok(SinkPreview { statements, refused })
}

/// Whether the rows of this batch say what they stand for.
fn changes(options: &SinkOptions, batch: &ChangeBatch, append_only: bool) -> Result<ChangeColumn> {
    let absent = match options.row_kinds {
        RowKinds::Never => true,
        RowKinds::Always => false,
        RowKinds::Auto => append_only,
    };
    if absent {
        return Ok(ChangeColumn::Absent);
    }
    let name = &options.row_kind_column;
    if batch.schema().column(name).is_some() {
        return Err(row_kind_clash(batch.schema(), name));
    }
    Ok(ChangeColumn::Named(name.clone()))
}

/// The rows that are written, and those that cannot be. An update is written or refused as one.
fn choose(
    options: &SinkOptions,
    batch: &ChangeBatch,
    changes: &ChangeColumn,
    encoder: &dyn RowEncoder,
) -> (Rows, Vec<DeadLetter>) {
    let insert_only = batch.is_insert_only();
    let kinds_fit = insert_only || (*changes != ChangeColumn::Absent && options.update_before);
    if kinds_fit && batch.unchanged().is_none() {
        return (Rows::All, Vec::new());
    }
    let (mut rows, mut letters) = (Vec::with_capacity(batch.num_rows()), Vec::new());
    let kinds = batch.kinds();
    let mut row = 0;
    while row < kinds.len() {
        let before = kinds[row] == RowKind::UpdateBefore;
        let counted = row + usize::from(before);
        let refusal = if *changes == ChangeColumn::Absent && kinds[counted] != RowKind::Insert {
            Some(format!("`row-kind: never` takes inserts only, the row is {}", kinds[counted].symbol()))
        } else {
            encoder.refusal(batch, counted)
        };
        match refusal {
            Some(reason) => letters.push(DeadLetter::refused(batch, counted, reason)),
            None => {
                let first = if options.update_before { row } else { counted };
                rows.extend(first..=counted);
            }
        }
        row = counted + 1;
    }
    (Rows::Some(rows), letters)
}

enum Rows {
    All,
    Some(Vec<usize>),
}

/// Rows of about [`CHUNK_BYTES`].
fn chunk_rows(batch: &ChangeBatch) -> usize {
    let rows = batch.num_rows() as u64;
    let fitting = rows * CHUNK_BYTES / batch.num_bytes().max(1);
    usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, CHUNK_ROWS)
}
