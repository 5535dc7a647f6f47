//! What the tests of the sink share: a sink on a fresh database, batches from text, and answers of the server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_connector_api::{
    CommitPoint, DeadLetter, DeadLetterQueue, Options, Registry, Role, Sink, SinkContext, SinkRecovery,
    SinkWriter, Split, SplitBegin, SplitMode, WriterContext,
};
use canalis_mysql::{
    Endpoint, Flavor, Side,
    catalog::{self, Comments, Mapping},
};
use canalis_testkit::{Server, ServerKind};
use canalis_types::{
    Column, LogicalType, Position, Result, RowKind, TableId, TableSchema, mysql_type::TinyInt1,
};
use mysql_async::{Value, prelude::Queryable};

/// Servers to run on; empty when none can be had.
pub fn servers() -> Vec<&'static Server> {
    [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten().collect()
}

/// Keeps what is refused.
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
    /// Reasons so far.
    pub fn reasons(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|letter| letter.reason.clone()).collect()
    }

    /// Keys of refused rows.
    pub fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|letter| letter.key.to_string()).collect()
    }
}

/// A sink on a database of its own.
pub struct Target {
    pub server: &'static Server,
    pub database: String,
    pub sink: Arc<dyn Sink>,
    pub letters: Arc<Letters>,
}

/// A sink with options on a server.
pub fn sink_on(server: &Server, database: &str, extra: &[(&str, &str)]) -> Arc<dyn Sink> {
    let mut registry = Registry::new();
    canalis_mysql::register(&mut registry);
    let connector = registry.get("mysql").unwrap();
    let mut raw: BTreeMap<String, String> = [
        ("hostname", "127.0.0.1"),
        ("port", &server.port.to_string()),
        ("username", &server.username),
        ("password", &server.password),
        ("database", database),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect();
    raw.extend(extra.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    connector.sink(&Options::validate(connector.spec(), Role::Sink, &raw).unwrap()).unwrap()
}

impl Target {
    pub async fn new(server: &'static Server, extra: &[(&str, &str)]) -> Self {
        let database = server.create_database("sink").await;
        let sink = sink_on(server, &database, extra);
        let target = Self { server, database, sink, letters: Arc::default() };
        target.open("job", 1, true).await;
        target
    }

    pub async fn open(&self, job: &str, writers: usize, fresh: bool) -> SinkRecovery {
        let context = SinkContext { job: job.into(), writers, fresh, tables: Vec::new() };
        self.sink.open(&context).await.unwrap()
    }

    pub fn id(&self, table: &str) -> TableId {
        TableId::new(&self.database, table)
    }

    /// A table with columns `(name, type)`, all nullable but the key.
    pub fn table(&self, name: &str, columns: &[(&str, LogicalType)], key: &[&str]) -> Arc<TableSchema> {
        let columns =
            columns.iter().map(|(name, ty)| Column::new(*name, ty.clone(), !key.contains(name))).collect();
        let key = key.iter().map(|name| (*name).to_owned()).collect();
        Arc::new(TableSchema::new(self.id(name), columns, key))
    }

    pub async fn writer(&self, index: usize, writers: usize) -> Box<dyn SinkWriter> {
        let context = WriterContext { job: "job".into(), index, writers, dead_letters: self.letters.clone() };
        self.sink.open_writer(context).await.unwrap()
    }

    /// Prepares the table and commits one stream window.
    pub async fn apply(&self, schema: &Arc<TableSchema>, changes: &[Change<'_>]) {
        self.sink.prepare_table(schema, false).await.unwrap();
        let mut writer = self.writer(0, 1).await;
        writer.write(batch(schema, changes)).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
    }

    pub async fn run(&self, sql: &str) {
        let sql = sql.replace("{db}", &self.database);
        self.server.mysql().await.query_drop(sql).await.unwrap();
    }

    /// Rows as text, NULL as `NULL`, columns joined by `|`.
    pub async fn query(&self, sql: &str) -> Vec<String> {
        query(self.server, &sql.replace("{db}", &self.database)).await
    }
}

/// See [`Target::query`].
pub async fn query(server: &Server, sql: &str) -> Vec<String> {
    let mut conn = server.mysql().await;
    conn.query_drop("SET time_zone = '+00:00'").await.unwrap();
    let rows: Vec<mysql_async::Row> = conn.query(sql).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let texts: Vec<String> = row
                .unwrap()
                .into_iter()
                .map(|value| match value {
                    Value::NULL => "NULL".to_owned(),
                    Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    other => other.as_sql(true),
                })
                .collect();
            texts.join("|")
        })
        .collect()
}

/// A change with its values as canonical text; `None` is NULL.
pub type Change<'a> = (RowKind, Vec<Option<&'a [u8]>>);

/// A row of text values.
pub fn row<'a>(kind: RowKind, values: &[&'a str]) -> Change<'a> {
    (kind, values.iter().map(|value| (*value != "NULL").then_some(value.as_bytes())).collect())
}

pub fn batch(schema: &Arc<TableSchema>, changes: &[Change<'_>]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), changes.len());
    for (kind, values) in changes {
        assert_eq!(values.len(), schema.columns.len());
        for (index, value) in values.iter().enumerate() {
            match value {
                Some(text) => builder.column(index).append_text(text).unwrap(),
                None => builder.column(index).append_null(),
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

/// A commit at stream position `n`.
pub fn point(n: u64) -> CommitPoint {
    CommitPoint { position: Some(position(n)), epoch: n, ..CommitPoint::default() }
}

pub fn position(n: u64) -> Position {
    Position::new([1, n, 0], format!("{{\"n\":{n}}}"))
}

/// Announces a snapshot split.
pub fn split(id: &str, schema: &Arc<TableSchema>, retried: bool) -> SplitBegin {
    SplitBegin {
        split: Split {
            id: id.into(),
            mode: SplitMode::Snapshot,
            table: Some(schema.id.clone()),
            payload: serde_json::Value::Null,
            position: None,
            retried,
        },
        schema: Some(schema.clone()),
    }
}

/// A commit that ends a split.
pub fn split_point(id: &str) -> CommitPoint {
    CommitPoint { splits: vec![id.into()], epoch: 1, ..CommitPoint::default() }
}

fn endpoint(server: &Server) -> Endpoint {
    Endpoint {
        hostname: "127.0.0.1".into(),
        port: server.port,
        username: server.username.clone(),
        password: server.password.clone(),
        connect_timeout: std::time::Duration::from_secs(10),
        tls: canalis_mysql::TlsOptions::default(),
        role: Side::Source,
    }
}

/// Structure of a table as the source gives it.
pub async fn structure(server: &Server, database: &str, table: &str) -> TableSchema {
    let endpoint = endpoint(server);
    let mut conn = endpoint.connect().await.unwrap();
    let flavor = if server.kind == ServerKind::MariaDb { Flavor::MariaDb } else { Flavor::MySql };
    let mapping = Mapping { flavor, tinyint1: TinyInt1::Integer, comments: Comments::Keep };
    let id = TableId::new(database, table);
    let loaded = catalog::load(&endpoint, &mut conn, &id, mapping).await.unwrap();
    loaded.schema.as_ref().clone()
}

/// All rows of a table as one batch, each value in its canonical text.
pub async fn read(server: &Server, schema: &Arc<TableSchema>, from: &str) -> ChangeBatch {
    let mut conn = server.mysql().await;
    conn.query_drop("SET NAMES utf8mb4, time_zone = '+00:00'").await.unwrap();
    let list: Vec<String> = schema
        .columns
        .iter()
        .map(|column| match column.ty {
            LogicalType::Bit { .. } => format!("`{}` + 0", column.name),
            // The server shows six digits of a single.
            LogicalType::Float32 => format!("CAST(`{}` AS DOUBLE)", column.name),
            _ => format!("`{}`", column.name),
        })
        .collect();
    let rows: Vec<mysql_async::Row> =
        conn.query(format!("SELECT {} FROM {from}", list.join(","))).await.unwrap();
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for row in rows {
        for (index, value) in row.unwrap().into_iter().enumerate() {
            match value {
                Value::NULL => builder.column(index).append_null(),
                Value::Bytes(bytes) => builder.column(index).append_text(&bytes).unwrap(),
                other => panic!("text protocol gave {other:?}"),
            }
        }
        builder.end_row(RowKind::Insert, 0);
    }
    builder.finish().unwrap()
}
