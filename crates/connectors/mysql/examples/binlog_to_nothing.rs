//! Reads the binlog from a file to its end and drops the rows: what the reader alone can do.
//!
//! `cargo run --release -p canalis-mysql --example binlog_to_nothing -- PORT USER PASSWORD DATABASE FILE`

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use canalis_connector_api::SourceEvent;
use canalis_mysql::{
    Endpoint, Side,
    binlog::{BinlogPosition, FIRST_OFFSET, Reader, ReaderConfig, SchemaTracker, StartPosition, ddl::Ddl},
    server_info,
};
use canalis_types::{
    Column, NativeType, Position, Result, SchemaChange, TableId, TableSchema,
    mysql_type::{TinyInt1, TypeText},
};
use mysql_async::{Row, prelude::Queryable};

/// Captures the tables that a database has now.
struct Present(HashMap<TableId, Arc<TableSchema>>);

impl SchemaTracker for Present {
    fn is_captured(&self, table: &TableId) -> bool {
        self.0.contains_key(table)
    }

    fn schema(&self, table: &TableId) -> Option<Arc<TableSchema>> {
        self.0.get(table).cloned()
    }

    fn apply(&mut self, _: &Ddl, _: &str, _: &Position) -> Result<Option<SchemaChange>> {
        Ok(None)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, username, password, database, file] = arguments.as_slice() else {
        return Err("PORT USER PASSWORD DATABASE FILE".into());
    };
    let endpoint = Endpoint {
        hostname: "127.0.0.1".into(),
        port: port.parse()?,
        username: username.clone(),
        password: password.clone(),
        connect_timeout: Duration::from_secs(10),
        tls: canalis_mysql::TlsOptions::default(),
        role: Side::Source,
    };
    let mut conn = endpoint.connect().await?;
    let info = server_info(&endpoint, &mut conn).await?;
    let status = match info.flavor {
        canalis_mysql::Flavor::MySql => "SHOW BINARY LOG STATUS",
        canalis_mysql::Flavor::MariaDb => "SHOW MASTER STATUS",
    };
    let status: Row = conn.query_first(status).await?.ok_or("the server writes no binlog")?;
    let end_file: String = status.get(0).ok_or("no file")?;
    let end = BinlogPosition::new(end_file, status.get(1).ok_or("no offset")?).to_position()?;
    let columns: Vec<(String, String, String, Option<String>)> = conn
        .exec(
            "SELECT table_name, column_name, column_type, character_set_name FROM information_schema.columns \
             WHERE table_schema = ? ORDER BY table_name, ordinal_position",
            (database,),
        )
        .await?;
    let mut schemas: HashMap<TableId, TableSchema> = HashMap::new();
    for (table, name, sql, charset) in columns {
        let id = TableId::new(database.clone(), table);
        let mut column = Column::new(name, TypeText::parse(&sql)?.logical(TinyInt1::Integer)?, true);
        column.native = Some(NativeType {
            dialect: "mysql".into(),
            sql,
            charset,
            collation: None,
            auto_increment: false,
            generated: None,
        });
        schemas
            .entry(id.clone())
            .or_insert_with(|| TableSchema::new(id, Vec::new(), Vec::new()))
            .columns
            .push(column);
    }
    let tracker = Present(schemas.into_iter().map(|(id, schema)| (id, Arc::new(schema))).collect());
    let start = StartPosition::File(BinlogPosition::new(file.clone(), FIRST_OFFSET));
    let config = ReaderConfig::new(endpoint, info.flavor, std::process::id(), start);
    let began = Instant::now();
    let mut reader = Reader::spawn(config, Box::new(tracker))?;
    let (mut rows, mut changes, mut batches, mut watermarks) = (0usize, 0u64, 0u64, 0u64);
    loop {
        match reader.next().await? {
            SourceEvent::Batch(batch) => {
                rows += batch.num_rows();
                changes += batch.num_changes();
                batches += 1;
            }
            SourceEvent::Watermark(watermark) => {
                watermarks += 1;
                if watermark.position >= end {
                    break;
                }
            }
            _ => {}
        }
    }
    println!(
        "{changes} changes, {rows} images, {batches} batches, {watermarks} watermarks in {:?}",
        began.elapsed()
    );
    reader.close().await;
    Ok(())
}
