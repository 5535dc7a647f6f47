//! Owns what the database says about a target table.

use canalis_types::Result;
use rusqlite::{Connection, OptionalExtension};

use crate::{error::to_error, types::Strictness};

/// A table as it is.
#[derive(Debug)]
pub struct ActualTable {
    /// `table`, `view`, `virtual` or `shadow`.
    pub kind: String,
    /// Whether it is STRICT.
    pub strictness: Strictness,
    /// Whether its rows have no rowid.
    pub without_rowid: bool,
    /// Columns in order.
    pub columns: Vec<ActualColumn>,
    /// Unique indexes, the primary key included.
    pub uniques: Vec<UniqueIndex>,
}

/// A column as it is.
#[derive(Debug)]
pub struct ActualColumn {
    /// Name.
    pub name: String,
    /// Declared type.
    pub declared: String,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Whether a row may leave it out.
    pub has_default: bool,
    /// Whether the database computes it.
    pub generated: bool,
}

/// A unique index.
#[derive(Debug)]
pub struct UniqueIndex {
    /// Whether it is over plain columns without a condition.
    pub plain: bool,
    /// Its columns.
    pub columns: Vec<String>,
    /// Whether its texts compare by bytes.
    pub binary: bool,
}

impl ActualTable {
    /// The column of this name; names differ in more than case.
    pub fn column(&self, name: &str) -> Option<&ActualColumn> {
        self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// The unique index over exactly these columns.
    pub fn arbiter(&self, key: &[String]) -> Option<&UniqueIndex> {
        self.uniques.iter().find(|u| u.plain && same(&u.columns, key))
    }
}

fn same(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().all(|name| b.iter().any(|other| other.eq_ignore_ascii_case(name)))
}

/// Looks a table up; `None` when it does not exist.
pub fn load(connection: &Connection, table: &str) -> Result<Option<ActualTable>> {
    read(connection, table).map_err(|e| to_error(&format!("looking up table `{table}`"), e))
}

/// The statements that made a table and its indexes; none when it does not exist.
pub fn statements(connection: &Connection, table: &str) -> Result<Vec<String>> {
    let fail = |e| to_error(&format!("looking up table `{table}`"), e);
    let sql = "SELECT sql FROM sqlite_schema WHERE lower(tbl_name) = lower(?1) AND sql IS NOT NULL \
               AND type IN ('table', 'index') ORDER BY type = 'index'";
    let mut statement = connection.prepare(sql).map_err(fail)?;
    let rows = statement.query_map([table], |row| row.get(0)).map_err(fail)?;
    rows.collect::<rusqlite::Result<_>>().map_err(fail)
}

fn read(connection: &Connection, table: &str) -> rusqlite::Result<Option<ActualTable>> {
    let found: Option<(String, bool, bool)> = connection
        .query_row(
            "SELECT type, strict, wr FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?1)",
            [table],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    let Some((kind, strict, without_rowid)) = found else { return Ok(None) };
    let mut columns = Vec::new();
    let mut key: Vec<(i64, String)> = Vec::new();
    let mut statement = connection.prepare(
        "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, hidden, pk FROM pragma_table_xinfo(?1) ORDER BY cid",
    )?;
    let mut rows = statement.query([table])?;
    while let Some(row) = rows.next()? {
        let column = ActualColumn {
            name: row.get(0)?,
            declared: row.get(1)?,
            not_null: row.get(2)?,
            has_default: row.get(3)?,
            generated: row.get::<_, i64>(4)? >= 2,
        };
        let place: i64 = row.get(5)?;
        if place > 0 {
            key.push((place, column.name.clone()));
        }
        columns.push(column);
    }
    let mut uniques = indexes(connection, table)?;
    // A single INTEGER PRIMARY KEY is the rowid itself and has no index.
    key.sort();
    let key: Vec<String> = key.into_iter().map(|(_, name)| name).collect();
    if !key.is_empty() && !uniques.iter().any(|u| same(&u.columns, &key)) {
        uniques.push(UniqueIndex { plain: true, columns: key, binary: true });
    }
    let strictness = if strict { Strictness::Strict } else { Strictness::Flexible };
    Ok(Some(ActualTable { kind, strictness, without_rowid, columns, uniques }))
}

fn indexes(connection: &Connection, table: &str) -> rusqlite::Result<Vec<UniqueIndex>> {
    let mut statement =
        connection.prepare("SELECT name, partial FROM pragma_index_list(?1) WHERE \"unique\" = 1")?;
    let names: Vec<(String, bool)> =
        statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut uniques = Vec::new();
    for (name, partial) in names {
        let mut statement = connection
            .prepare("SELECT name, coll FROM pragma_index_xinfo(?1) WHERE key = 1 ORDER BY seqno")?;
        let parts: Vec<(Option<String>, String)> =
            statement.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        uniques.push(UniqueIndex {
            plain: !partial && parts.iter().all(|(column, _)| column.is_some()),
            binary: parts.iter().all(|(_, collation)| collation.eq_ignore_ascii_case("BINARY")),
            columns: parts.into_iter().filter_map(|(column, _)| column).collect(),
        });
    }
    Ok(uniques)
}
