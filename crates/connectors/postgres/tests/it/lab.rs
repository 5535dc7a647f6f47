//! A database of its own for each test, sinks into it, and rows from texts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_connector_api::{
    CommitPoint, CommitReport, Connector, DeadLetter, DeadLetterQueue, Options, Role, Sink, SinkContext,
    SinkRecovery, SinkWriter, Split, SplitBegin, SplitMode, WriterContext,
};
use canalis_postgres::{PostgresConnector, SPEC};
use canalis_testkit::Server;
use canalis_types::{Column, LogicalType, Position, Result, RowKind, TableId, TableSchema};
use serde_json::Value;
use tokio_postgres::{Client, SimpleQueryMessage};

pub const JOB: &str = "job";

/// A fresh database.
pub struct Lab {
    pub server: &'static Server,
    pub database: String,
    pub client: Client,
    pub letters: Arc<Letters>,
}

/// Keeps dead letters.
#[derive(Default)]
pub struct Letters(Mutex<Vec<DeadLetter>>);

#[async_trait]
impl DeadLetterQueue for Letters {
    async fn reject(&self, letters: Vec<DeadLetter>) -> Result<()> {
        self.0.lock().unwrap().extend(letters);
        Ok(())
    }
}

impl Letters {
    pub fn take(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Lab {
    pub async fn new() -> Option<Self> {
        let server = canalis_testkit::postgres()?;
        let database = server.create_database("sink").await;
        let client = server.postgres(&database).await;
        client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
        Some(Self { server, database, client, letters: Arc::default() })
    }

    pub fn sink(&self, given: &[(&str, &str)]) -> Arc<dyn Sink> {
        let port = self.server.port.to_string();
        let fixed = [
            ("hostname", "127.0.0.1"),
            ("port", port.as_str()),
            ("username", self.server.username.as_str()),
            ("password", self.server.password.as_str()),
            ("database", self.database.as_str()),
        ];
        let mut raw: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in fixed.iter().chain(given) {
            raw.insert((*key).to_owned(), (*value).to_owned());
        }
        PostgresConnector.sink(&Options::validate(&SPEC, Role::Sink, &raw).unwrap()).unwrap()
    }

    /// A sink that is open for a fresh job with these tables made for a stream.
    pub async fn open(&self, given: &[(&str, &str)], tables: &[&Arc<TableSchema>]) -> Arc<dyn Sink> {
        let sink = self.sink(given);
        start(&sink, 1, Start::Fresh).await;
        for table in tables {
            sink.prepare_table(table, false).await.unwrap();
        }
        sink
    }

    pub async fn writer(&self, sink: &Arc<dyn Sink>) -> Box<dyn SinkWriter> {
        self.writer_of(sink, 0, 1).await
    }

    pub async fn writer_of(&self, sink: &Arc<dyn Sink>, index: usize, writers: usize) -> Box<dyn SinkWriter> {
        let dead_letters = self.letters.clone();
        sink.open_writer(WriterContext { job: JOB.into(), index, writers, dead_letters }).await.unwrap()
    }

    /// Rows of a query as texts, `None` for NULL.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let mut rows = Vec::new();
        for message in self.client.simple_query(sql).await.unwrap() {
            if let SimpleQueryMessage::Row(row) = message {
                rows.push((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect());
            }
        }
        rows
    }

    /// Rows of a query, cells joined by `|`.
    pub async fn lines(&self, sql: &str) -> Vec<String> {
        let line = |row: Vec<Option<String>>| {
            let cells: Vec<String> = row.into_iter().map(|c| c.unwrap_or("NULL".into())).collect();
            cells.join("|")
        };
        self.rows(sql).await.into_iter().map(line).collect()
    }

    pub async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Fresh,
    Again,
}

pub async fn start(sink: &Arc<dyn Sink>, writers: usize, how: Start) -> SinkRecovery {
    let fresh = how == Start::Fresh;
    sink.open(&SinkContext { job: JOB.into(), writers, fresh, tables: Vec::new() }).await.unwrap()
}

pub fn table(name: &str, columns: &[(&str, LogicalType, bool)], key: &[&str]) -> Arc<TableSchema> {
    let columns = columns.iter().map(|(n, ty, nullable)| Column::new(*n, ty.clone(), *nullable)).collect();
    let key = key.iter().map(|k| (*k).to_owned()).collect();
    Arc::new(TableSchema::new(TableId::new("app", name), columns, key))
}

/// `id` and a text `v`, keyed.
pub fn pairs(name: &str) -> Arc<TableSchema> {
    table(name, &[("id", LogicalType::Int32, false), ("v", LogicalType::Text, true)], &["id"])
}

pub fn batch(schema: &Arc<TableSchema>, rows: &[(RowKind, &[Option<&[u8]>])]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, cells) in rows {
        for (index, cell) in cells.iter().enumerate() {
            match cell {
                None => builder.column(index).append_null(),
                Some(bytes) => match &schema.columns[index].ty {
                    LogicalType::Bit { .. } => {
                        let number = std::str::from_utf8(bytes).unwrap().parse().unwrap();
                        builder.column(index).append_u64(number).unwrap();
                    }
                    _ => builder.column(index).append_text(bytes).unwrap(),
                },
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

/// Rows of two cells; the text `NULL` stands for NULL.
pub fn pair_batch(schema: &Arc<TableSchema>, rows: &[(RowKind, &str, &str)]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, first, second) in rows {
        for (index, text) in [first, second].into_iter().enumerate() {
            if *text == "NULL" {
                builder.column(index).append_null();
            } else {
                builder.column(index).append_text(text.as_bytes()).unwrap();
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

pub fn split(id: &str, schema: &Arc<TableSchema>, mode: SplitMode, retried: bool) -> SplitBegin {
    SplitBegin {
        split: Split {
            id: id.into(),
            mode,
            table: Some(schema.id.clone()),
            payload: Value::Null,
            position: None,
            retried,
        },
        schema: Some(schema.clone()),
    }
}

pub fn at(number: u64) -> CommitPoint {
    CommitPoint { position: Some(position(number)), epoch: 1, ..CommitPoint::default() }
}

pub fn position(number: u64) -> Position {
    Position::new([number, 0, 0], format!("{{\"at\":{number},\"quote\":\"it's\"}}"))
}

pub fn splits(ids: &[&str]) -> CommitPoint {
    CommitPoint { splits: ids.iter().map(|i| (*i).to_owned()).collect(), epoch: 1, ..CommitPoint::default() }
}

/// Written and dead-lettered of the one table of a report.
pub fn counts(report: &CommitReport) -> (u64, u64) {
    let sum = |list: &[(TableId, u64)]| list.iter().map(|(_, n)| n).sum();
    (sum(&report.written), sum(&report.dead_lettered))
}
