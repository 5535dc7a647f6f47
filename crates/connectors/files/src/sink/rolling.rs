//! Owns hidden files under way: appending, handles, and completing them by size, rows and age. Everything here blocks.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{File, OpenOptions},
    io::Write,
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use canalis_formats::{
    ChangeColumn, RowEncoder,
    csv::CsvEncoder,
    json::{JsonEncoder, JsonEncoderOptions},
};
use canalis_types::{Column, Result, TableId, TableSchema};

use super::{
    publish::sync_directory,
    state::{FileState, WriterState},
};
use crate::{
    error::sink_io,
    naming::{hidden, table_directory},
    options::{Format, SinkOptions},
};

/// Files whose handles are kept; others are opened again when they are written.
const MOST_HANDLES: usize = 128;

/// A file under way.
struct OpenFile {
    state: FileState,
    path: PathBuf,
    handle: Option<File>,
    encoder: Arc<dyn RowEncoder>,
    columns: Vec<Column>,
    changes: ChangeColumn,
    opened: Instant,
    /// Written since it was last made durable.
    dirty: bool,
    last_use: u64,
}

/// The hidden files of one writer: one under way for each table, and complete ones that are not visible yet.
pub(super) struct RollingFiles {
    options: Arc<SinkOptions>,
    prefix: String,
    made: u64,
    uses: u64,
    open: HashMap<TableId, OpenFile>,
    finished: Vec<FileState>,
    /// Directories with names that are not durable yet.
    new_names: BTreeSet<PathBuf>,
}

/// The encoder of lines for files of one structure.
pub(super) fn new_encoder(
    options: &SinkOptions,
    schema: &TableSchema,
    changes: &ChangeColumn,
) -> Arc<dyn RowEncoder> {
    match options.format {
        Format::Csv => Arc::new(CsvEncoder::new(schema, &options.csv, changes)),
        Format::Json => {
            let options = JsonEncoderOptions { decimals: options.decimals, changes: changes.clone() };
            Arc::new(JsonEncoder::new(schema, &options))
        }
    }
}

impl RollingFiles {
    pub(super) fn new(options: Arc<SinkOptions>, prefix: String) -> Self {
        Self {
            options,
            prefix,
            made: 0,
            uses: 0,
            open: HashMap::new(),
            finished: Vec::new(),
            new_names: BTreeSet::new(),
        }
    }

    /// The encoder of the table's file under way. A file of another structure is completed first; a new file is begun if
    /// there is none.
    pub(super) fn encoder(
        &mut self,
        schema: &TableSchema,
        changes: &ChangeColumn,
    ) -> Result<Arc<dyn RowEncoder>> {
        if let Some(file) = self.open.get(&schema.id) {
            if file.changes == *changes && file.columns == schema.columns {
                return Ok(file.encoder.clone());
            }
            self.complete(&schema.id)?;
        }
        self.begin(schema, changes)
    }

    /// Rows that the table's file may still take.
    pub(super) fn room(&self, table: &TableId) -> u64 {
        self.options.max_rows - self.open.get(table).map_or(0, |f| f.state.rows)
    }

    fn begin(&mut self, schema: &TableSchema, changes: &ChangeColumn) -> Result<Arc<dyn RowEncoder>> {
        let encoder = new_encoder(&self.options, schema, changes);
        self.made += 1;
        let directory = table_directory(&schema.id);
        let name = format!("{}-{:06}.{}", self.prefix, self.made, self.options.format.ending());
        let parent = self.options.path.join(&directory);
        let path = parent.join(hidden(&name));
        // Routes may make tables that were not announced.
        std::fs::create_dir_all(&parent)
            .map_err(|e| sink_io(format!("create directory {}", parent.display()), e))?;
        let handle = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| sink_io(format!("create {}", path.display()), e))?;
        self.new_names.insert(self.options.path.clone());
        self.new_names.insert(parent);
        let file = OpenFile {
            state: FileState { directory, name, length: 0, rows: 0 },
            path,
            handle: Some(handle),
            encoder: encoder.clone(),
            columns: schema.columns.clone(),
            changes: changes.clone(),
            opened: Instant::now(),
            dirty: false,
            last_use: 0,
        };
        self.open.insert(schema.id.clone(), file);
        let mut head = Vec::new();
        encoder.write_head(&mut head);
        self.append(&schema.id, &head, 0)?;
        Ok(encoder)
    }

    /// Appends encoded rows to the table's file, and completes it when it is large enough.
    pub(super) fn append(&mut self, table: &TableId, bytes: &[u8], rows: u64) -> Result<()> {
        self.limit_handles(table);
        self.uses += 1;
        let Some(file) = self.open.get_mut(table) else {
            return Err(canalis_types::Error::internal(format!("no file of {table} is open")));
        };
        file.last_use = self.uses;
        file.handle()?.write_all(bytes).map_err(|e| sink_io(format!("write {}", file.path.display()), e))?;
        file.dirty |= !bytes.is_empty();
        file.state.length += bytes.len() as u64;
        file.state.rows += rows;
        if file.state.length >= self.options.max_bytes && file.state.rows > 0
            || file.state.rows >= self.options.max_rows
        {
            self.complete(table)?;
        }
        Ok(())
    }

    fn limit_handles(&mut self, table: &TableId) {
        let held = |file: &&mut OpenFile| file.handle.is_some();
        if self.open.values().filter(|f| f.handle.is_some()).count() <= MOST_HANDLES {
            return;
        }
        let others = self.open.iter_mut().filter(|(id, _)| *id != table).map(|(_, file)| file);
        if let Some(oldest) = others.filter(held).min_by_key(|f| f.last_use) {
            oldest.handle = None;
        }
    }

    fn complete(&mut self, table: &TableId) -> Result<()> {
        let Some(mut file) = self.open.remove(table) else { return Ok(()) };
        if file.state.rows == 0 {
            // Every row that was meant for it was refused.
            return std::fs::remove_file(&file.path)
                .map_err(|e| sink_io(format!("remove {}", file.path.display()), e));
        }
        file.sync()?;
        self.finished.push(file.state);
        Ok(())
    }

    /// Makes everything durable and tells what there is. Files that are due by age, or all of them, are completed.
    pub(super) fn prepare(&mut self, due: Due) -> Result<WriterState> {
        let interval = self.options.interval;
        let is_due = |file: &OpenFile| due == Due::All || file.opened.elapsed() >= interval;
        let tables: Vec<TableId> =
            self.open.iter().filter(|(_, file)| is_due(file)).map(|(id, _)| id.clone()).collect();
        for table in tables {
            self.complete(&table)?;
        }
        for file in self.open.values_mut() {
            file.sync()?;
        }
        for directory in std::mem::take(&mut self.new_names) {
            sync_directory(&directory)?;
        }
        // What an earlier checkpoint has published needs no mention; what it has not is still hidden.
        let root = &self.options.path;
        self.finished.retain(|file| root.join(&file.directory).join(hidden(&file.name)).exists());
        let open = self.open.values().filter(|f| f.state.rows > 0).map(|f| f.state.clone()).collect();
        Ok(WriterState::new(self.finished.clone(), open))
    }
}

/// Which files a checkpoint completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Those that are old enough.
    ByAge,
    /// All, because nothing follows.
    All,
}

impl OpenFile {
    fn handle(&mut self) -> Result<&mut File> {
        if self.handle.is_none() {
            let file = OpenOptions::new().append(true).open(&self.path);
            self.handle = Some(file.map_err(|e| sink_io(format!("open {} again", self.path.display()), e))?);
        }
        self.handle.as_mut().ok_or_else(|| canalis_types::Error::internal("a handle has just been opened"))
    }

    fn sync(&mut self) -> Result<()> {
        if self.dirty {
            let synced = self.handle()?.sync_data();
            synced.map_err(|e| sink_io(format!("make {} durable", self.path.display()), e))?;
            self.dirty = false;
        }
        Ok(())
    }
}
