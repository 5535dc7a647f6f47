//! Owns what a table of the target looks like now, read from `information_schema`.

use canalis_types::Result;

use super::session::Session;
use crate::quote;

/// A column of an existing table.
#[derive(Debug, Clone, Default)]
pub(super) struct ExistingColumn {
    /// Name.
    pub name: String,
    /// Type without attributes, lower case: `int`, `varchar`.
    pub data_type: String,
    /// Type as the server prints it, lower case but for labels.
    pub column_type: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Whether a row may leave it out although it is NOT NULL.
    pub has_default: bool,
    /// Whether the server computes it.
    pub generated: bool,
    /// Whether it numbers itself.
    pub auto_increment: bool,
    /// Characters (text) or bytes (binary) it holds.
    pub length: Option<u64>,
    /// Digits.
    pub precision: Option<u64>,
    /// Digits after the point.
    pub scale: Option<u64>,
    /// Fraction digits of seconds.
    pub fraction: Option<u64>,
    /// Character set of a text column.
    pub charset: Option<String>,
    /// Collation of a text column.
    pub collation: Option<String>,
}

impl ExistingColumn {
    /// Whether it is an unsigned number.
    pub(super) fn unsigned(&self) -> bool {
        self.column_type.contains("unsigned")
    }
}

/// A unique index, the primary key included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UniqueIndex {
    /// Name; `PRIMARY` for the primary key.
    pub name: String,
    /// Column names in index order; empty when an expression is indexed.
    pub columns: Vec<String>,
    /// Whether a column is indexed by its first characters only.
    pub by_prefix: bool,
}

/// An existing table.
#[derive(Debug, Clone, Default)]
pub(super) struct ExistingTable {
    /// Columns in order.
    pub columns: Vec<ExistingColumn>,
    /// Unique indexes.
    pub unique: Vec<UniqueIndex>,
    /// Names of all indexes.
    pub indexes: Vec<String>,
    /// Storage engine.
    pub engine: String,
    /// Whether the engine has transactions.
    pub transactional: bool,
}

impl ExistingTable {
    /// The column of this name, without regard to case, as the server compares names.
    pub(super) fn column(&self, name: &str) -> Option<&ExistingColumn> {
        self.columns.iter().find(|c| same_name(&c.name, name))
    }
}

/// Whether two column or index names are the same to the server.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

/// Reads a table; `None` when there is none of this name.
pub(super) async fn read_table(
    session: &mut Session,
    database: &str,
    table: &str,
) -> Result<Option<ExistingTable>> {
    let doing = format!("reading the structure of {database}.{table}");
    let place = format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", quote::text(database), quote::text(table));
    let engines: Vec<(Option<String>, Option<String>)> = session
        .ask(
            &doing,
            &format!(
                "SELECT t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t \
                 LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE {}",
                place.replace("TABLE_", "t.TABLE_")
            ),
        )
        .await?;
    let Some((engine, transactions)) = engines.into_iter().next() else { return Ok(None) };
    let rows: Vec<mysql_async::Row> = session
        .ask(
            &doing,
            &format!(
                "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, \
                 CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, \
                 CHARACTER_SET_NAME, COLLATION_NAME \
                 FROM information_schema.COLUMNS WHERE {place} ORDER BY ORDINAL_POSITION"
            ),
        )
        .await?;
    let columns = rows.into_iter().map(column).collect();
    let statistics: Vec<(String, u8, Option<String>, Option<u64>)> = session
        .ask(
            &doing,
            &format!(
                "SELECT INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS \
                 WHERE {place} ORDER BY INDEX_NAME, SEQ_IN_INDEX"
            ),
        )
        .await?;
    let mut indexes: Vec<String> = Vec::new();
    let mut unique: Vec<UniqueIndex> = Vec::new();
    for (name, non_unique, column, prefix) in statistics {
        if indexes.last() != Some(&name) {
            indexes.push(name.clone());
            if non_unique == 0 {
                unique.push(UniqueIndex { name: name.clone(), columns: Vec::new(), by_prefix: false });
            }
        }
        if let Some(index) = unique.last_mut().filter(|index| index.name == name) {
            index.by_prefix |= prefix.is_some() || column.is_none();
            index.columns.extend(column);
        }
    }
    Ok(Some(ExistingTable {
        columns,
        unique,
        indexes,
        engine: engine.unwrap_or_default(),
        transactional: transactions.is_some_and(|t| t.eq_ignore_ascii_case("yes")),
    }))
}

/// Reads one row of `information_schema.COLUMNS`; absent or odd values become empty, which later checks refuse.
fn column(mut row: mysql_async::Row) -> ExistingColumn {
    let mut text = |index: usize| row.take_opt::<Option<String>, _>(index).and_then(Result::ok).flatten();
    let name = text(0).unwrap_or_default();
    let data_type = text(1).unwrap_or_default().to_lowercase();
    let column_type = text(2).unwrap_or_default();
    let nullable = text(3).is_some_and(|t| t.eq_ignore_ascii_case("yes"));
    let default = text(4);
    let extra = text(5).unwrap_or_default().to_lowercase();
    let mut number = |index: usize| text(index).and_then(|digits| digits.parse().ok());
    let (length, precision, scale, fraction) = (number(6), number(7), number(8), number(9));
    let auto_increment = extra.contains("auto_increment");
    ExistingColumn {
        name,
        data_type,
        column_type,
        nullable,
        has_default: default.is_some() || extra.contains("default_generated") || auto_increment,
        generated: extra.contains("generated") && !extra.contains("default_generated"),
        auto_increment,
        length,
        precision,
        scale,
        fraction,
        charset: text(10).map(|t| t.to_lowercase()),
        collation: text(11).map(|t| t.to_lowercase()),
    }
}
