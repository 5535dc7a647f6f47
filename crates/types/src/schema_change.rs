//! Owns [`SchemaChange`]: a change of a table's structure on its way from source to sink.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Column, Position, TableSchema};

/// Where a new column stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnPlace {
    /// After all others.
    Last,
    /// Before all others.
    First,
    /// After the named column.
    After(String),
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaChangeKind {
    /// A table that matches the pattern has appeared.
    CreateTable,
    /// Columns were added, in order.
    AddColumns(Vec<(Column, ColumnPlace)>),
    /// A change that is recognised and not carried out yet, named by its tag (`drop.column`, `truncate.table`, …).
    Other(String),
}

/// A change of structure. Rows before it have the schema `before`, rows after it the schema `after`.
#[derive(Debug, Clone)]
pub struct SchemaChange {
    /// What changed.
    pub kind: SchemaChangeKind,
    /// Structure until now; `None` for a new table.
    pub before: Option<Arc<TableSchema>>,
    /// Structure from now on.
    pub after: Arc<TableSchema>,
    /// The statement as the source wrote it.
    pub statement: String,
    /// Where in the stream it stands.
    pub position: Position,
}

impl SchemaChange {
    /// Tag used by `include.schema.changes` and in messages.
    pub fn tag(&self) -> &str {
        match &self.kind {
            SchemaChangeKind::CreateTable => "create.table",
            SchemaChangeKind::AddColumns(_) => "add.column",
            SchemaChangeKind::Other(tag) => tag,
        }
    }
}
