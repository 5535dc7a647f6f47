//! Tests of the source on real servers: snapshot, stream, and that both give the same value.
#![allow(clippy::unwrap_used)] // Helpers of tests are tests too.

#[path = "source/chunks.rs"]
mod chunks;
#[path = "source/resume.rs"]
mod resume;
#[path = "source/start.rs"]
mod start;
#[path = "source/types.rs"]
mod types;
#[path = "source/values.rs"]
mod values;
#[path = "source/views.rs"]
mod views;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use canalis_batch::{ChangeBatch, cell_to_text};
use canalis_connector_api::{
    Connector, NextSplit, Options, Registry, Role, Source, SourceContext, SourceEvent, SourceReader,
    SourceRestore, Split, SplitEnumerator,
};
use canalis_testkit::Server;
use canalis_types::{Position, Result, RowKind};
use mysql_async::prelude::Queryable;

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(120);

/// A row as kind and cell texts.
pub type TextRow = (RowKind, Vec<Option<String>>);

pub fn servers() -> Vec<&'static Server> {
    [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten().collect()
}

pub async fn execute(server: &Server, database: &str, statements: &[&str]) {
    let mut conn = server.mysql().await;
    for setting in ["SET NAMES utf8mb4", &format!("USE `{database}`")] {
        conn.query_drop(setting).await.unwrap();
    }
    for statement in statements {
        conn.query_drop(*statement).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    conn.disconnect().await.unwrap();
}

pub fn connector() -> Arc<dyn Connector> {
    let mut registry = Registry::new();
    canalis_mysql::register(&mut registry);
    registry.get("mysql").unwrap().clone()
}

/// A source over all tables of a database.
pub fn source(server: &Server, database: &str, extra: &[(&str, &str)]) -> Box<dyn Source> {
    let mut raw: BTreeMap<String, String> = [
        ("hostname", "127.0.0.1".to_owned()),
        ("port", server.port.to_string()),
        ("username", server.username.clone()),
        ("password", server.password.clone()),
        ("tables", format!(r"{database}.\.*")),
        ("server-id", rand::random_range(10_000..1_000_000_000u32).to_string()),
        ("heartbeat.interval", "1s".to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    raw.extend(extra.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let connector = connector();
    let options = Options::validate(connector.spec(), Role::Source, &raw).unwrap();
    assert_eq!(connector.validate(Role::Source, &options), []);
    connector.source(&options).unwrap()
}

pub fn context(parallelism: usize) -> SourceContext {
    SourceContext { job: "test".into(), parallelism, upsert_sink: true }
}

/// An enumerator and one reader that does all the work.
pub struct Run {
    pub enumerator: Box<dyn SplitEnumerator>,
    reader: Option<Box<dyn SourceReader>>,
    stream: Option<Split>,
    /// The last watermark of the stream.
    pub at: Option<Position>,
}

impl Run {
    pub async fn begin(source: &dyn Source) -> Self {
        Self::open(source, None).await.unwrap()
    }

    pub async fn open(source: &dyn Source, restore: Option<SourceRestore>) -> Result<Self> {
        let enumerator = source.open(context(2), restore).await?;
        Ok(Self { enumerator, reader: None, stream: None, at: None })
    }

    /// The next snapshot split with its rows, finished at once; `None` when the stream or the end is reached.
    pub async fn chunk(&mut self) -> Option<(Split, Vec<ChangeBatch>)> {
        let work = async {
            match self.enumerator.next(0).await.unwrap() {
                NextSplit::Split(split) if split.id != "stream" => {
                    let batches = self.read(&split).await;
                    self.enumerator.split_finished(&split.id);
                    Some((*split, batches))
                }
                NextSplit::Split(split) => {
                    self.stream = Some(*split);
                    None
                }
                NextSplit::Finished => None,
                NextSplit::Wait => panic!("nothing is running"),
            }
        };
        tokio::time::timeout(DEADLINE, work).await.expect("a chunk in time")
    }

    /// Rows of a split.
    pub async fn read(&mut self, split: &Split) -> Vec<ChangeBatch> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.enumerator.open_reader().await.unwrap(),
        };
        reader.start(split.clone()).await.unwrap();
        let mut batches = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                SourceEvent::Batch(batch) => batches.push(batch),
                SourceEvent::SplitEnd => break,
                other => panic!("unexpected {other:?}"),
            }
        }
        self.reader = Some(reader);
        batches
    }

    /// All rows of the snapshot.
    pub async fn snapshot(&mut self) -> Vec<TextRow> {
        let mut rows = Vec::new();
        while let Some((_, batches)) = self.chunk().await {
            rows.extend(batches.iter().flat_map(texts));
        }
        rows
    }

    /// Events of the stream until `changes` rows have come and a watermark after them; the rows.
    pub async fn stream(&mut self, changes: u64) -> Vec<TextRow> {
        let work = async {
            let mut reader = match self.reader.take() {
                Some(reader) => reader,
                None => self.enumerator.open_reader().await.unwrap(),
            };
            if let Some(split) = self.stream.take() {
                reader.start(split).await.unwrap();
            }
            let (mut rows, mut count) = (Vec::new(), 0);
            loop {
                match reader.next().await.unwrap() {
                    SourceEvent::Batch(batch) => {
                        count += batch.num_changes();
                        rows.extend(texts(&batch));
                    }
                    SourceEvent::Watermark(watermark) => {
                        self.at = Some(watermark.position);
                        if count >= changes {
                            break;
                        }
                    }
                    SourceEvent::SchemaChange(change) => assert_eq!(change.tag(), "add.column", "{change:?}"),
                    other => panic!("unexpected {other:?}"),
                }
            }
            self.reader = Some(reader);
            rows
        };
        tokio::time::timeout(DEADLINE, work).await.expect("changes in time")
    }
}

/// Rows of a batch as texts.
pub fn texts(batch: &ChangeBatch) -> Vec<TextRow> {
    let schema = batch.schema();
    (0..batch.num_rows())
        .map(|row| {
            let cells = schema
                .columns
                .iter()
                .enumerate()
                .map(|(i, column)| cell_to_text(batch.rows().column(i), &column.ty, row))
                .collect();
            (batch.kinds()[row], cells)
        })
        .collect()
}

/// Cells of +I rows, sorted, without the first column when `skip` is 1.
pub fn cells(rows: Vec<TextRow>, skip: usize) -> Vec<Vec<Option<String>>> {
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|(kind, cells)| {
            assert_eq!(kind, RowKind::Insert);
            cells.into_iter().skip(skip).collect()
        })
        .collect();
    rows.sort();
    rows
}
