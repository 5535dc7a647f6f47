//! A database file of its own for each test, sinks into it, and rows from texts.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_connector_api::{
    CommitPoint, CommitReport, Connector, DeadLetter, DeadLetterQueue, Options, Role, Sink, SinkContext,
    SinkRecovery, SinkWriter, Split, SplitBegin, SplitMode, WriterContext,
};
use canalis_sqlite::{SPEC, SqliteConnector};
use canalis_types::{Column, LogicalType, Position, Result, RowKind, TableId, TableSchema};
use rusqlite::{Connection, types::ValueRef};
use serde_json::Value;

pub const JOB: &str = "job";

/// A fresh directory.
pub struct Lab {
    directory: tempfile::TempDir,
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
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), letters: Arc::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("target.db")
    }

    pub fn sink(&self) -> Arc<dyn Sink> {
        self.sink_at(&self.path())
    }

    pub fn sink_at(&self, path: &Path) -> Arc<dyn Sink> {
        let raw: BTreeMap<String, String> = [("path".to_owned(), path.to_str().unwrap().to_owned())].into();
        SqliteConnector.sink(&Options::validate(&SPEC, Role::Sink, &raw).unwrap()).unwrap()
    }

    /// A sink that is open for a fresh job with these tables made.
    pub async fn open(&self, tables: &[&Arc<TableSchema>]) -> Arc<dyn Sink> {
        let sink = self.sink();
        start(&sink, Start::Fresh).await;
        for table in tables {
            sink.prepare_table(table, true).await.unwrap();
        }
        sink
    }

    pub async fn writer(&self, sink: &Arc<dyn Sink>) -> Box<dyn SinkWriter> {
        let dead_letters = self.letters.clone();
        let ctx = WriterContext { job: JOB.into(), index: 0, writers: 1, dead_letters };
        sink.open_writer(ctx).await.unwrap()
    }

    /// Rows of a query as texts, cells joined by `|`.
    pub fn lines(&self, sql: &str) -> Vec<String> {
        let connection = Connection::open(self.path()).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let cell = |index| match row.get_ref(index).unwrap() {
                ValueRef::Null => "NULL".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => format!("{number:?}"),
                ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                ValueRef::Blob(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
            };
            lines.push((0..columns).map(cell).collect::<Vec<_>>().join("|"));
        }
        lines
    }

    pub fn run(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Fresh,
    Again,
}

pub async fn start(sink: &Arc<dyn Sink>, how: Start) -> SinkRecovery {
    let fresh = how == Start::Fresh;
    sink.open(&SinkContext { job: JOB.into(), writers: 1, fresh, tables: Vec::new() }).await.unwrap()
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

/// Rows of any width; bit fields are given as numbers.
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

pub fn split(id: &str, schema: &Arc<TableSchema>, mode: SplitMode) -> SplitBegin {
    SplitBegin {
        split: Split {
            id: id.into(),
            mode,
            table: Some(schema.id.clone()),
            payload: Value::Null,
            position: None,
            retried: false,
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

/// Written and dead-lettered of all tables of a report.
pub fn counts(report: &CommitReport) -> (u64, u64) {
    let sum = |list: &[(TableId, u64)]| list.iter().map(|(_, n)| n).sum();
    (sum(&report.written), sum(&report.dead_lettered))
}
