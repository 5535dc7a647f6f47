//! Owns making sources and sinks, driving readers, and looking at directories.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_batch::{BatchBuilder, ChangeBatch, cell_to_text};
use canalis_connector_api::{
    DeadLetter, DeadLetterQueue, NextSplit, Options, Registry, Role, Sink, SinkContext, SinkWriter, Source,
    SourceContext, SourceEvent, SourceReader, SourceRestore, Split, SplitBegin, SplitEnumerator, SplitMode,
    WriterContext,
};
use canalis_types::{Column, LogicalType, Position, Result, RowKind, TableId, TableSchema};

pub fn options(role: Role, pairs: &[(&str, &str)]) -> Options {
    let mut registry = Registry::new();
    canalis_files::register(&mut registry);
    let raw: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Options::validate(registry.get("files").unwrap().spec(), role, &raw).unwrap()
}

pub fn source(path: &str, pairs: &[(&str, &str)]) -> Box<dyn Source> {
    let mut registry = Registry::new();
    canalis_files::register(&mut registry);
    let all: Vec<_> = pairs.iter().copied().chain([("path", path)]).collect();
    registry.get("files").unwrap().source(&options(Role::Source, &all)).unwrap()
}

pub fn sink(path: &Path, pairs: &[(&str, &str)]) -> Arc<dyn Sink> {
    let mut registry = Registry::new();
    canalis_files::register(&mut registry);
    let path = path.to_str().unwrap();
    let all: Vec<_> = pairs.iter().copied().chain([("path", path)]).collect();
    registry.get("files").unwrap().sink(&options(Role::Sink, &all)).unwrap()
}

#[derive(Default)]
pub struct Letters(pub Mutex<Vec<DeadLetter>>);

#[async_trait]
impl DeadLetterQueue for Letters {
    async fn reject(&self, letters: Vec<DeadLetter>) -> Result<()> {
        self.0.lock().unwrap().extend(letters);
        Ok(())
    }
}

pub fn sink_context() -> SinkContext {
    SinkContext { job: "job".into(), writers: 1, fresh: true, tables: Vec::new() }
}

pub async fn writer(sink: &dyn Sink, job: &str, index: usize, letters: &Arc<Letters>) -> Box<dyn SinkWriter> {
    let ctx = WriterContext { job: job.into(), index, writers: 2, dead_letters: letters.clone() };
    sink.open_writer(ctx).await.unwrap()
}

pub fn append_split() -> SplitBegin {
    let split = Split {
        id: "file".into(),
        mode: SplitMode::Append,
        table: None,
        payload: serde_json::Value::Null,
        position: None,
        retried: false,
    };
    SplitBegin { split, schema: None }
}

pub fn numbers_schema(table: &str) -> Arc<TableSchema> {
    let columns =
        vec![Column::new("id", LogicalType::Int64, false), Column::new("t", LogicalType::Text, true)];
    Arc::new(TableSchema::new(TableId::parse(table).unwrap(), columns, vec!["id".into()]))
}

pub fn numbers(schema: &Arc<TableSchema>, rows: &[(RowKind, i64)]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, id) in rows {
        builder.column(0).append_i64(*id).unwrap();
        builder.column(1).append_text(format!("text, {id}").as_bytes()).unwrap();
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

pub fn inserts(schema: &Arc<TableSchema>, ids: std::ops::Range<i64>) -> ChangeBatch {
    numbers(schema, &ids.map(|id| (RowKind::Insert, id)).collect::<Vec<_>>())
}

/// Names in the directories below `root`: visible and hidden.
pub fn names(root: &Path) -> (Vec<String>, Vec<String>) {
    let mut all: Vec<String> = Vec::new();
    for directory in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(directory.unwrap().path()).unwrap() {
            all.push(file.unwrap().path().strip_prefix(root).unwrap().display().to_string());
        }
    }
    all.sort();
    all.into_iter().partition(|name| !name.contains("/."))
}

/// Lines of all visible files, in order of the names.
pub fn visible_lines(root: &Path) -> Vec<String> {
    let read = |name: String| fs::read_to_string(root.join(name)).unwrap();
    let texts: Vec<String> = names(root).0.into_iter().map(read).collect();
    texts.iter().flat_map(|t| t.lines()).map(str::to_owned).collect()
}

pub async fn open(source: &dyn Source, restore: Option<SourceRestore>) -> Box<dyn SplitEnumerator> {
    let ctx = SourceContext { job: "job".into(), parallelism: 2, upsert_sink: false };
    source.open(ctx, restore).await.unwrap()
}

pub async fn next_split(enumerator: &mut dyn SplitEnumerator) -> Option<Split> {
    match enumerator.next(0).await.unwrap() {
        NextSplit::Split(split) => Some(*split),
        NextSplit::Finished => None,
        NextSplit::Wait => panic!("files never wait"),
    }
}

/// What a reader delivers of one split.
#[derive(Default)]
pub struct Delivered {
    pub rows: Vec<Vec<Option<String>>>,
    pub letters: Vec<DeadLetter>,
    /// Each watermark with the number of rows and letters before it.
    pub watermarks: Vec<(usize, usize, Position)>,
}

pub async fn read(reader: &mut dyn SourceReader, split: Split) -> Result<Delivered> {
    let mut delivered = Delivered::default();
    reader.start(split).await?;
    loop {
        match reader.next().await? {
            SourceEvent::Batch(batch) => {
                let columns = &batch.schema().columns;
                for row in 0..batch.num_rows() {
                    let cell = |(at, c): (usize, &Column)| cell_to_text(batch.rows().column(at), &c.ty, row);
                    delivered.rows.push(columns.iter().enumerate().map(cell).collect());
                }
            }
            SourceEvent::Undecodable(letters) => delivered.letters.extend(letters),
            SourceEvent::Watermark(mark) => {
                let counts = (delivered.rows.len(), delivered.letters.len());
                delivered.watermarks.push((counts.0, counts.1, mark.position));
            }
            SourceEvent::SplitEnd => return Ok(delivered),
            SourceEvent::SchemaChange(_) => panic!("files do not change their structure"),
        }
    }
}

pub async fn read_all(source: &dyn Source) -> Delivered {
    let mut enumerator = open(source, None).await;
    let mut all = Delivered::default();
    let mut reader = enumerator.open_reader().await.unwrap();
    while let Some(split) = next_split(&mut *enumerator).await {
        let one = read(&mut *reader, split).await.unwrap();
        all.rows.extend(one.rows);
        all.letters.extend(one.letters);
    }
    all
}
