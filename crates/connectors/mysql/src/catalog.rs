//! Owns what the server's catalog says: which tables match a selection, and the structure of each.

mod column;
mod create_table;

use std::sync::Arc;

use canalis_connector_api::TableSelector;
use canalis_types::{Code, Error, Result, TableId, TableSchema, mysql_type::TinyInt1};
use mysql_async::{Conn, Row, prelude::Queryable};
use serde::{Deserialize, Serialize};

pub use column::ColumnText;

use crate::{Endpoint, Flavor, quote};

/// Databases that are never captured.
const SYSTEM_DATABASES: &str = "'mysql','information_schema','performance_schema','sys'";

/// A table as the catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Structure.
    pub schema: Arc<TableSchema>,
    /// Character set of text columns that name none.
    pub charset: String,
    /// Collation of text columns that name none.
    pub collation: String,
    /// Whether the primary key covers only the beginning of a column, so that the key index cannot sort rows.
    pub prefix_key: bool,
}

/// How columns are mapped.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// Family of the server.
    pub flavor: Flavor,
    /// What TINYINT(1) stands for.
    pub tinyint1: TinyInt1,
    /// Whether comments enter the structure.
    pub comments: Comments,
}

/// Whether table and column comments enter the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    /// They do.
    Keep,
    /// They do not.
    Drop,
}

/// A table that a selection matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its name.
    pub id: TableId,
    /// Rows, as the engine estimates them.
    pub rows: u64,
}

/// Tables that `include` matches and `exclude` does not, by name.
///
/// # Errors
/// CNL-2007 when nothing is matched, or nothing is left.
pub async fn discover(
    endpoint: &Endpoint,
    conn: &mut Conn,
    include: &TableSelector,
    exclude: Option<&TableSelector>,
) -> Result<Vec<Match>> {
    let rows: Vec<(String, String, Option<u64>)> = conn
        .query(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES \
             WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND LOWER(TABLE_SCHEMA) NOT IN ({SYSTEM_DATABASES})"
        ))
        .await
        .map_err(|e| endpoint.error("listing tables", e))?;
    let found = |database: String, table: String, rows: Option<u64>| Match {
        id: TableId::new(database, table),
        rows: rows.unwrap_or(0),
    };
    let mut matches: Vec<Match> = rows.into_iter().map(|(d, t, r)| found(d, t, r)).collect();
    let visible = matches.len();
    matches.retain(|m| include.matches(&m.id));
    if matches.is_empty() {
        return Err(Error::new(
            Code::TableNotFound,
            format!(
                "no table matches `tables: {}` ({visible} tables are visible to the account `{}`)",
                include.text(),
                endpoint.username
            ),
        ));
    }
    if let Some(exclude) = exclude {
        matches.retain(|m| !exclude.matches(&m.id));
        if matches.is_empty() {
            return Err(Error::new(
                Code::TableNotFound,
                format!(
                    "every table that matches `tables: {}` is taken away by `tables.exclude: {}`",
                    include.text(),
                    exclude.text()
                ),
            ));
        }
    }
    matches.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(matches)
}

/// The current structure of one table.
///
/// # Errors
/// CNL-2007 when it has gone, CNL-1003 when a column has a type without mapping.
pub async fn load(endpoint: &Endpoint, conn: &mut Conn, id: &TableId, mapping: Mapping) -> Result<Table> {
    let doing = |what: &str| format!("reading {what} of {id}");
    let gone = || Error::new(Code::TableNotFound, format!("table {id} has gone"));
    let database = quote::text(id.schema.as_deref().unwrap_or_default());
    let condition = format!(
        "TABLE_SCHEMA = {database} AND TABLE_NAME = {} AND TABLE_CATALOG = 'def'",
        quote::text(&id.table)
    );
    let create: Option<(String, String)> = conn
        .query_first(format!("SHOW CREATE TABLE {}", quote::table(id)))
        .await
        .map_err(|e| missing_or(endpoint, e, &doing("the definition"), &gone))?;
    let create = create_table::parse(&create.ok_or_else(gone)?.1);
    if create.system_versioned {
        return Err(Error::new(
            Code::NotSupportedYet,
            format!("table {id} is system-versioned, which is not supported yet; leave it out"),
        ));
    }
    let about: Option<(Option<String>, Option<String>)> = conn
        .query_first(format!(
            "SELECT TABLE_COLLATION, TABLE_COMMENT FROM information_schema.TABLES WHERE {condition}"
        ))
        .await
        .map_err(|e| endpoint.error(&doing("properties"), e))?;
    let (collation, comment) = about.ok_or_else(gone)?;
    let rows: Vec<Row> = conn
        .query(format!(
            "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT, \
             CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE {condition} \
             ORDER BY ORDINAL_POSITION"
        ))
        .await
        .map_err(|e| endpoint.error(&doing("columns"), e))?;
    let mut columns = Vec::with_capacity(rows.len());
    for row in rows {
        let text = ColumnText::from_row(row).ok_or_else(|| {
            Error::internal(format!("the catalog's answer for columns of {id} is not as expected"))
        })?;
        let details = create.columns.get(&text.name);
        columns.push(text.into_column(details, mapping).map_err(|e| e.context(id))?);
    }
    if columns.is_empty() {
        return Err(gone());
    }
    let key: Vec<(String, Option<u64>)> = conn
        .query(format!(
            "SELECT COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {condition} \
             AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX"
        ))
        .await
        .map_err(|e| endpoint.error(&doing("the key"), e))?;
    let prefix_key = key.iter().any(|(_, part)| part.is_some());
    let mut schema = TableSchema::new(id.clone(), columns, key.into_iter().map(|(name, _)| name).collect());
    schema.indexes = create.indexes;
    schema.comment = comment.filter(|c| !c.is_empty() && mapping.comments == Comments::Keep);
    let collation = collation.unwrap_or_else(|| "utf8mb4_general_ci".to_owned());
    let charset = collation.split('_').next().unwrap_or("utf8mb4").to_owned();
    Ok(Table { schema: Arc::new(schema), charset, collation, prefix_key })
}

/// Rows that the engine estimates for a table.
pub async fn estimate(endpoint: &Endpoint, conn: &mut Conn, id: &TableId) -> Result<u64> {
    let rows: Option<Option<u64>> = conn
        .query_first(format!(
            "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            quote::text(id.schema.as_deref().unwrap_or_default()),
            quote::text(&id.table)
        ))
        .await
        .map_err(|e| endpoint.error(&format!("estimating the size of {id}"), e))?;
    Ok(rows.flatten().unwrap_or(0))
}

fn missing_or(
    endpoint: &Endpoint,
    error: mysql_async::Error,
    doing: &str,
    gone: &impl Fn() -> Error,
) -> Error {
    match &error {
        // Unknown database, table does not exist.
        mysql_async::Error::Server(e) if e.code == 1049 || e.code == 1146 => gone(),
        _ => endpoint.error(doing, error),
    }
}
