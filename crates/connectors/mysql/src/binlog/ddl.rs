//! Owns recognising what a statement in the binlog does to captured tables ([`parse`] → [`Ddl`]).
//!
//! The parser is tolerant on purpose: it knows exactly the clauses that change rows or columns of a table and those
//! that do not, and passes over everything about other things. What touches a captured table and is neither is
//! an error, never a guess. Types, defaults and expressions stay the text that the user wrote.

mod alter;
mod column;
mod dml;
mod parser;
mod statement;
#[cfg(test)]
mod tests;
mod token;

pub use column::{ColumnDefinition, Generated};
pub use statement::{Statement, classify, parse};
pub use token::Quoting;

use canalis_types::{ColumnPlace, TableId};

/// What is known about a statement beside its text.
#[derive(Debug, Clone, Default)]
pub struct StatementContext {
    /// Database that unqualified names belong to.
    pub default_database: String,
    /// How the session reads quotes.
    pub quoting: Quoting,
}

/// A change of a captured table by a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ddl {
    /// A table is created.
    CreateTable(CreateTable),
    /// Columns are added.
    AddColumns {
        /// The table.
        table: TableId,
        /// The columns, in the order of the statement.
        columns: Vec<AddedColumn>,
    },
    /// All rows are removed.
    Truncate {
        /// The table.
        table: TableId,
    },
    /// The table is removed.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// A database is removed with all its tables. Given for every database; which tables it had, the tracker knows.
    DropDatabase {
        /// The database.
        database: String,
    },
    /// The table gets another name, or another table gets this name.
    RenameTable {
        /// Name before.
        from: TableId,
        /// Name after.
        to: TableId,
    },
    /// Another change of columns, key or rows.
    Other {
        /// The table.
        table: TableId,
        /// What it is: `drop.column`, `rename.column`, `alter.column.type`, `primary.key`, `drop.partition`, ….
        tag: &'static str,
    },
}

impl Ddl {
    /// Tag as `include.schema.changes` has it.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::CreateTable(_) => "create.table",
            Self::AddColumns { .. } => "add.column",
            Self::Truncate { .. } => "truncate.table",
            Self::DropTable { .. } => "drop.table",
            Self::DropDatabase { .. } => "drop.database",
            Self::RenameTable { .. } => "rename.table",
            Self::Other { tag, .. } => tag,
        }
    }
}

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    /// The table.
    pub table: TableId,
    /// With `IF NOT EXISTS`: nothing happens when the table is there.
    pub if_not_exists: bool,
    /// With `OR REPLACE`: an existing table is dropped first.
    pub or_replace: bool,
    /// Where its structure comes from.
    pub shape: TableShape,
}

/// Where the structure of a created table comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableShape {
    /// From a list of columns.
    Columns {
        /// The columns in order.
        columns: Vec<ColumnDefinition>,
        /// Names of the key columns; empty without a primary key.
        primary_key: Vec<String>,
        /// Default character set of the table, if the statement names one.
        charset: Option<String>,
        /// Default collation of the table, if the statement names one.
        collation: Option<String>,
        /// Comment of the table.
        comment: Option<String>,
    },
    /// From another table.
    Like(TableId),
    /// From a query, possibly beside listed columns: not told by the statement alone.
    Select,
}

/// A column that ALTER TABLE adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedColumn {
    /// The column.
    pub column: ColumnDefinition,
    /// Where it stands.
    pub place: ColumnPlace,
    /// With `IF NOT EXISTS`: nothing happens when the column is there.
    pub if_not_exists: bool,
}
