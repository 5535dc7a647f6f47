//! Owns DDL messages: the type of a change of structure, and its statement where the source has none for MySQL.

use canalis_types::{Column, ColumnPlace, SchemaChangeKind, TableId, TableSchema};

use super::template::mysql_type;
use crate::message::StructureChange;

/// The fields `type` and `sql` of the message of a change. The statement of a MySQL source is kept; of others a statement is
/// composed for new tables and columns.
pub(super) fn statement(change: &StructureChange) -> (&'static str, String) {
    let kind = match &change.kind {
        SchemaChangeKind::CreateTable => "CREATE",
        SchemaChangeKind::AddColumns(_) => "ALTER",
        SchemaChangeKind::Other(tag) => match tag.as_str() {
            "truncate.table" => "TRUNCATE",
            "drop.table" => "ERASE",
            "rename.table" => "RENAME",
            "drop.database" => "QUERY",
            _ => "ALTER",
        },
    };
    let of_mysql = |c: &Column| c.native.as_ref().is_some_and(|native| native.dialect == "mysql");
    let words = ["create", "alter", "rename", "truncate", "drop"];
    let first = change.statement.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    if words.contains(&first.as_str()) && change.after.columns.iter().all(of_mysql) {
        return (kind, change.statement.clone());
    }
    let sql = match &change.kind {
        SchemaChangeKind::CreateTable => create_table(&change.after),
        SchemaChangeKind::AddColumns(added) => add_columns(&change.after.id, added),
        SchemaChangeKind::Other(_) => change.statement.clone(),
    };
    (kind, sql)
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn table(id: &TableId) -> String {
    match &id.schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&id.table)),
        None => quoted(&id.table),
    }
}

fn column(column: &Column) -> String {
    let null = if column.nullable { "NULL" } else { "NOT NULL" };
    format!("{} {} {null}", quoted(&column.name), mysql_type(column).0)
}

fn create_table(schema: &TableSchema) -> String {
    let mut parts: Vec<String> = schema.columns.iter().map(column).collect();
    if schema.has_key() {
        let key: Vec<String> = schema.primary_key.iter().map(|name| quoted(name)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {} ({})", table(&schema.id), parts.join(", "))
}

fn add_columns(id: &TableId, added: &[(Column, ColumnPlace)]) -> String {
    let parts: Vec<String> = added
        .iter()
        .map(|(added, place)| match place {
            ColumnPlace::Last => format!("ADD COLUMN {}", column(added)),
            ColumnPlace::First => format!("ADD COLUMN {} FIRST", column(added)),
            ColumnPlace::After(name) => format!("ADD COLUMN {} AFTER {}", column(added), quoted(name)),
        })
        .collect();
    format!("ALTER TABLE {} {}", table(id), parts.join(", "))
}
