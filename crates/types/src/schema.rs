//! Owns [`TableSchema`] and its columns: what a table looks like at one moment of its life.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{LogicalType, TableId};

/// The source's own type text, kept so that a sink of the same family can declare the identical column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeType {
    /// Family of systems that understand the text: `mysql`, `postgres`, `sqlite`.
    pub dialect: String,
    /// Type text as the system prints it, for example `int(6) unsigned zerofill`.
    pub sql: String,
    /// Character set of a text column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charset: Option<String>,
    /// Collation of a text column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<String>,
    /// Whether the column numbers itself (AUTO_INCREMENT).
    #[serde(default)]
    pub auto_increment: bool,
    /// Expression and storage of a generated column, as they stand after `GENERATED ALWAYS AS`, for example
    /// `(a + b) STORED`. Its values are in snapshots and change logs; a sink of the same dialect that declares the
    /// column as generated must leave them out of its statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
}

/// Default of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnDefault {
    /// A constant in its text form.
    Literal(String),
    /// An expression of the source's dialect; only sinks of the same dialect may use it.
    Expression(String),
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name, with the case that the source has.
    pub name: String,
    /// Type of the values.
    pub ty: LogicalType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<ColumnDefault>,
    /// Comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The source's own type; `None` for computed columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeType>,
}

impl Column {
    /// A column with neither default nor comment.
    pub fn new(name: impl Into<String>, ty: LogicalType, nullable: bool) -> Self {
        Self { name: name.into(), ty, nullable, default: None, comment: None, native: None }
    }
}

/// A secondary index of the source table, carried to sinks of the same dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Whether it forbids duplicates.
    pub unique: bool,
    /// Definition in the source's dialect, column list included, for example "KEY `k_1` (`k`)".
    pub definition: String,
    /// Names of the indexed columns.
    pub columns: Vec<String>,
}

/// Structure of a table at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// The table.
    pub id: TableId,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Names of the primary-key columns in key order; empty for a table without a key.
    #[serde(default)]
    pub primary_key: Vec<String>,
    /// Names of the partition columns.
    #[serde(default)]
    pub partition_keys: Vec<String>,
    /// Secondary indexes.
    #[serde(default)]
    pub indexes: Vec<Index>,
    /// Options for table creation at the sink.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Grows with every change of the structure.
    #[serde(default)]
    pub version: u64,
}

impl TableSchema {
    /// A schema with columns and key only.
    pub fn new(id: TableId, columns: Vec<Column>, primary_key: Vec<String>) -> Self {
        Self {
            id,
            columns,
            primary_key,
            partition_keys: Vec::new(),
            indexes: Vec::new(),
            options: BTreeMap::new(),
            comment: None,
            version: 0,
        }
    }

    /// Index of the column with exactly this name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Column with exactly this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Indexes of the key columns in key order; empty for a table without a key.
    pub fn key_indexes(&self) -> Vec<usize> {
        self.primary_key.iter().filter_map(|name| self.column_index(name)).collect()
    }

    /// Whether the table has a primary key.
    pub fn has_key(&self) -> bool {
        !self.primary_key.is_empty()
    }
}
