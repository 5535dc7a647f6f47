//! Owns reading the structure of all captured tables, and that it is still what a state says.

use std::sync::Arc;

use canalis_types::{Code, Error, Result};
use mysql_async::Conn;

use super::{mapping, place::BinlogServer, tracker::NameCase};
use crate::{
    ServerInfo,
    catalog::{self, Match, Table},
    options::SourceOptions,
};

/// How the server compares names.
pub(super) async fn name_case(server: &BinlogServer<'_>, conn: &mut Conn) -> Result<NameCase> {
    let value = server.variable(conn, "lower_case_table_names").await?;
    Ok(if value.is_some_and(|v| v != "0") { NameCase::Ignored } else { NameCase::Exact })
}

/// Structures of all tables, in order.
pub(super) async fn load_all(
    options: &SourceOptions,
    info: &ServerInfo,
    conn: &mut Conn,
    matches: &[Match],
) -> Result<Vec<Arc<Table>>> {
    let mut tables = Vec::with_capacity(matches.len());
    for found in matches {
        let table = catalog::load(&options.endpoint, conn, &found.id, mapping(options, info)).await?;
        tables.push(Arc::new(table));
    }
    Ok(tables)
}

/// What is left of a snapshot has to have the structure that the rows in the sink have.
pub(super) async fn ensure_unaltered(
    options: &SourceOptions,
    info: &ServerInfo,
    conn: &mut Conn,
    known: &[Arc<Table>],
) -> Result<()> {
    for table in known {
        let id = &table.schema.id;
        let now = catalog::load(&options.endpoint, conn, id, mapping(options, info)).await?;
        if now.schema.columns != table.schema.columns || now.schema.primary_key != table.schema.primary_key {
            return Err(Error::new(
                Code::SchemaChangeRefused,
                format!("table {id} was altered while its snapshot was under way; start the job anew"),
            ));
        }
    }
    Ok(())
}
