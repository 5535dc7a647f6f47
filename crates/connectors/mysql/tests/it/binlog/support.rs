//! A tracker for tests, readers over it, and tables as `SELECT` shows them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use canalis_batch::cell_to_text;
use canalis_connector_api::SourceEvent;
use canalis_mysql::{
    Endpoint, Flavor, Side,
    binlog::{
        BinlogPosition, Reader, ReaderConfig, SchemaTracker, StartPosition,
        ddl::{ColumnDefinition, Ddl, TableShape},
    },
};
use canalis_testkit::{Server, ServerKind};
use canalis_types::{
    Column, ColumnPlace, Error, LogicalType, NativeType, Position, Result, RowKind, SchemaChange,
    SchemaChangeKind, TableId, TableSchema,
    mysql_type::{TinyInt1, TypeText},
};
use mysql_async::{Conn, Row, prelude::Queryable};

/// Longest time that a test waits for the log.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a tracker has seen.
#[derive(Default)]
pub struct Seen {
    pub schemas: HashMap<TableId, Arc<TableSchema>>,
    pub statements: Vec<(Ddl, Position)>,
}

/// Captures all tables of one database.
#[derive(Clone)]
pub struct Tracker {
    database: String,
    seen: Arc<Mutex<Seen>>,
}

impl Tracker {
    pub fn new(database: &str) -> Self {
        Self { database: database.to_owned(), seen: Arc::default() }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Learns the present structure of a table.
    pub async fn learn(&self, conn: &mut Conn, table: &str) -> Arc<TableSchema> {
        let schema = Arc::new(schema_of(conn, &self.database, table).await);
        self.seen().schemas.insert(schema.id.clone(), schema.clone());
        schema
    }
}

fn column(definition: &ColumnDefinition) -> Column {
    let ty = TypeText::parse(&definition.type_sql).unwrap().logical(TinyInt1::Integer).unwrap();
    let text = matches!(ty, LogicalType::Char { .. } | LogicalType::Varchar { .. } | LogicalType::Text);
    let mut column = Column::new(&definition.name, ty, definition.nullable);
    column.native = Some(NativeType {
        dialect: "mysql".into(),
        sql: definition.type_sql.clone(),
        charset: text.then(|| definition.charset.clone().unwrap_or_else(|| "utf8mb4".into())),
        collation: None,
        auto_increment: definition.auto_increment,
        generated: None,
    });
    column
}

impl SchemaTracker for Tracker {
    fn is_captured(&self, table: &TableId) -> bool {
        table.schema.as_deref() == Some(&self.database)
    }

    fn schema(&self, table: &TableId) -> Option<Arc<TableSchema>> {
        self.seen().schemas.get(table).cloned()
    }

    fn apply(&mut self, ddl: &Ddl, statement: &str, position: &Position) -> Result<Option<SchemaChange>> {
        let mut seen = self.seen();
        seen.statements.push((ddl.clone(), position.clone()));
        let (before, after, kind) = match ddl {
            Ddl::CreateTable(create) => {
                let TableShape::Columns { columns, primary_key, .. } = &create.shape else { return Ok(None) };
                let columns = columns.iter().map(column).collect();
                let after = TableSchema::new(create.table.clone(), columns, primary_key.clone());
                (None, after, SchemaChangeKind::CreateTable)
            }
            Ddl::AddColumns { table, columns } => {
                let before = seen.schemas[table].clone();
                let mut after = (*before).clone();
                let mut added = Vec::new();
                for item in columns {
                    let at = match &item.place {
                        ColumnPlace::First => 0,
                        ColumnPlace::Last => after.columns.len(),
                        ColumnPlace::After(name) => after.column_index(name).unwrap() + 1,
                    };
                    after.columns.insert(at, column(&item.column));
                    added.push((column(&item.column), item.place.clone()));
                }
                (Some(before), after, SchemaChangeKind::AddColumns(added))
            }
            Ddl::Other { tag: "drop.column", .. } => return Err(Error::internal("refused by the test")),
            _ => return Ok(None),
        };
        let after = Arc::new(after);
        seen.schemas.insert(after.id.clone(), after.clone());
        let (statement, position) = (statement.to_owned(), position.clone());
        Ok(Some(SchemaChange { kind, before, after, statement, position }))
    }
}

/// Name, type, nullable, character set, collation and key of a column.
type CatalogRow = (String, String, String, Option<String>, Option<String>, String);

/// Structure of a table from the catalog.
pub async fn schema_of(conn: &mut Conn, database: &str, table: &str) -> TableSchema {
    let rows: Vec<CatalogRow> = conn
        .exec(
            "SELECT column_name, column_type, is_nullable, character_set_name, collation_name, column_key \
             FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
            (database, table),
        )
        .await
        .unwrap();
    let mut columns = Vec::new();
    let mut key = Vec::new();
    for (name, sql, nullable, charset, collation, column_key) in rows {
        let sql = sql.replace(" /*M!100301 COMPRESSED*/", "");
        let ty = TypeText::parse(&sql).unwrap().logical(TinyInt1::Integer).unwrap();
        if column_key == "PRI" {
            key.push(name.clone());
        }
        let mut column = Column::new(name, ty, nullable == "YES");
        column.native = Some(NativeType {
            dialect: "mysql".into(),
            sql,
            charset,
            collation,
            auto_increment: false,
            generated: None,
        });
        columns.push(column);
    }
    TableSchema::new(TableId::new(database, table), columns, key)
}

pub fn flavor(server: &Server) -> Flavor {
    if server.kind == ServerKind::MySql { Flavor::MySql } else { Flavor::MariaDb }
}

pub fn endpoint(server: &Server) -> Endpoint {
    Endpoint {
        hostname: "127.0.0.1".into(),
        port: server.port,
        username: server.username.clone(),
        password: server.password.clone(),
        connect_timeout: Duration::from_secs(20),
        tls: canalis_mysql::TlsOptions::default(),
        role: Side::Source,
    }
}

/// Where the server's log ends.
pub async fn end_of_log(server: &Server, conn: &mut Conn) -> BinlogPosition {
    let sql = if server.kind == ServerKind::MySql { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
    let row: Row = conn.query_first(sql).await.unwrap().unwrap();
    BinlogPosition::new(row.get::<String, _>(0).unwrap(), row.get::<u64, _>(1).unwrap())
}

/// A reader of everything that a tracker captures.
pub fn reader(server: &Server, start: StartPosition, tracker: &Tracker) -> Reader {
    Reader::spawn(config(server, start), Box::new(tracker.clone())).unwrap()
}

/// Its configuration, with a server id of its own.
pub fn config(server: &Server, start: StartPosition) -> ReaderConfig {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(90_000);
    let id = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() % 1000 * 100;
    ReaderConfig::new(endpoint(server), flavor(server), id, start)
}

/// One delivered row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub table: String,
    pub kind: RowKind,
    pub cells: Vec<Option<String>>,
}

/// Everything up to a place.
#[derive(Debug, Default)]
pub struct Taken {
    pub rows: Vec<Delivered>,
    pub watermarks: Vec<Position>,
    /// Number of rows before each watermark.
    pub rows_at: Vec<usize>,
    pub changes: Vec<SchemaChange>,
}

impl Taken {
    /// Cells of the rows of one kind of a table.
    pub fn of(&self, table: &str, kind: RowKind) -> Vec<Vec<Option<String>>> {
        let rows = self.rows.iter().filter(|row| row.table == table && row.kind == kind);
        rows.map(|row| row.cells.clone()).collect()
    }

    /// Takes one event in; true at a watermark.
    pub fn take(&mut self, event: SourceEvent) -> bool {
        match event {
            SourceEvent::Batch(batch) => {
                for (row, kind) in batch.kinds().iter().enumerate() {
                    let cells = batch
                        .schema()
                        .columns
                        .iter()
                        .zip(batch.rows().columns())
                        .map(|(column, array)| cell_to_text(array, &column.ty, row))
                        .collect();
                    self.rows.push(Delivered { table: batch.schema().id.table.clone(), kind: *kind, cells });
                }
                false
            }
            SourceEvent::Watermark(watermark) => {
                self.watermarks.push(watermark.position);
                self.rows_at.push(self.rows.len());
                true
            }
            SourceEvent::SchemaChange(change) => {
                self.changes.push(*change);
                false
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Reads up to a place in the log.
pub async fn take_until(reader: &mut Reader, end: &BinlogPosition) -> Result<Taken> {
    let end = end.to_position().unwrap();
    take_while(reader, |taken| taken.watermarks.last().is_none_or(|last| *last < end)).await
}

/// Reads as long as a condition holds, which is looked at after each watermark.
pub async fn take_while(reader: &mut Reader, more: impl Fn(&Taken) -> bool) -> Result<Taken> {
    let mut taken = Taken::default();
    tokio::time::timeout(PATIENCE, async {
        loop {
            let event = reader.next().await?;
            if taken.take(event) && !more(&taken) {
                return Ok(());
            }
        }
    })
    .await
    .expect("the log is read in time")?;
    Ok(taken)
}

/// A table's rows by id, as `SELECT` shows them, in the form of [`Delivered::cells`].
pub async fn selected(conn: &mut Conn, schema: &TableSchema) -> Vec<Vec<Option<String>>> {
    let expressions: Vec<String> = schema
        .columns
        .iter()
        .map(|column| {
            let name = format!("`{}`", column.name);
            match &column.ty {
                ty if ty.is_binary() => format!("HEX({name})"),
                LogicalType::Bit { .. } | LogicalType::Year => format!("{name} + 0"),
                LogicalType::Float32 => format!("CAST({name} AS DOUBLE)"),
                // Zerofill and display width are dressing of the text.
                ty if format!("{ty}").contains("INT") => format!("{name} + 0"),
                _ => name,
            }
        })
        .collect();
    let id = &schema.id;
    let sql = format!(
        "SELECT {} FROM `{}`.`{}` ORDER BY 1",
        expressions.join(", "),
        id.schema.as_deref().unwrap(),
        id.table
    );
    conn.query_drop("SET NAMES utf8mb4, time_zone = '+00:00'").await.unwrap();
    let rows: Vec<Row> = conn.query(sql).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let cells = row.unwrap().into_iter().map(|value| match value {
                mysql_async::Value::NULL => None,
                mysql_async::Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
                other => panic!("{other:?}"),
            });
            cells.collect()
        })
        .collect()
}

/// Whether two cells are the same value; doubles are compared as numbers.
pub fn same(ty: &LogicalType, left: &Option<String>, right: &Option<String>) -> bool {
    match (ty, left, right) {
        (LogicalType::Float32, Some(ours), Some(theirs)) => {
            f64::from(ours.parse::<f32>().unwrap()) == theirs.parse::<f64>().unwrap()
        }
        (LogicalType::Float64, Some(ours), Some(theirs)) => {
            ours.parse::<f64>().unwrap() == theirs.parse::<f64>().unwrap()
        }
        _ => left == right,
    }
}
