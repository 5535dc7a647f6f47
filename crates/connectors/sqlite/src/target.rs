//! Owns [`Target`]: a table of the source joined with the table that takes its rows, and the statements for it.

use canalis_types::{Code, Error, LogicalType, Result, TableId, TableSchema};

use crate::{
    catalog::ActualTable,
    ddl::ident,
    types::{self, Storage, Strictness},
};

/// Names that stand for the rowid, unless a column has taken them.
const ROWID_NAMES: [&str; 3] = ["_rowid_", "rowid", "oid"];

/// A column that is written.
#[derive(Debug, Clone)]
pub struct TargetColumn {
    /// Index among the columns of the source table.
    pub source: usize,
    /// Name.
    pub name: String,
    /// Type of the values.
    pub ty: LogicalType,
    /// Storage class that they get.
    pub storage: Storage,
}

/// Where and how the rows of a table go.
#[derive(Debug, Clone)]
pub struct Target {
    /// The table as the job names it.
    pub id: TableId,
    /// Columns that are written.
    pub columns: Vec<TargetColumn>,
    /// Key columns as indexes into `columns`; empty for a table without a key.
    pub key: Vec<usize>,
    /// Whether `ON CONFLICT` over the key is possible.
    pub arbiter: bool,
    /// Whether values are read back with the storage class that they were written with.
    pub keeps_class: bool,
    /// Inserts a row, or overwrites it by key where that is possible.
    pub upsert: String,
    /// Inserts a row.
    pub insert: String,
    /// Deletes by key.
    pub delete: String,
    /// Deletes one row that equals an image (all columns).
    pub delete_image: String,
    /// Reads rowid and all columns.
    pub scan: String,
    /// Deletes by rowid.
    pub delete_rowid: String,
}

impl Target {
    /// Joins a table of the source with the table in the database; also gives notes for the user.
    ///
    /// # Errors
    /// `CNL-3004` naming every column that is missing or does not fit.
    pub fn join(schema: &TableSchema, actual: &ActualTable) -> Result<(Self, Vec<String>)> {
        let mut problems = Vec::new();
        let mut notes = Vec::new();
        if actual.kind != "table" {
            problems.push(format!("it is a {}", actual.kind));
        }
        let mut columns = Vec::new();
        for (source, column) in schema.columns.iter().enumerate() {
            match actual.column(&column.name) {
                None => problems.push(format!("column `{}` is missing", column.name)),
                Some(target) if target.generated => {
                    notes.push(format!("column `{}` is computed by the target", column.name));
                }
                Some(target) => {
                    let affinity = types::affinity(&target.declared, actual.strictness);
                    match types::fit(&column.ty, affinity, actual.strictness) {
                        Ok((storage, note)) => {
                            notes.extend(note.map(|n| format!("column `{}`: {n}", column.name)));
                            let (name, ty) = (column.name.clone(), column.ty.clone());
                            columns.push(TargetColumn { source, name, ty, storage });
                        }
                        Err(why) => problems.push(format!("column `{}`: {why}", column.name)),
                    }
                }
            }
        }
        for column in &actual.columns {
            let known = schema.columns.iter().any(|c| c.name.eq_ignore_ascii_case(&column.name));
            if !known && column.not_null && !column.has_default && !column.generated {
                problems.push(format!(
                    "column `{}` is NOT NULL without a default and not in the data",
                    column.name
                ));
            }
        }
        let arbiter = actual.arbiter(&schema.primary_key).filter(|_| schema.has_key());
        if arbiter.is_some_and(|a| !a.binary) {
            problems.push(
                "different keys of the source can be equal under the collation of the target's key".into(),
            );
        }
        let rowid = ROWID_NAMES.iter().find(|name| actual.column(name).is_none());
        if !schema.has_key() && (actual.without_rowid || rowid.is_none()) {
            problems.push("rows without a primary key need a table with a rowid".into());
        }
        if !problems.is_empty() {
            return Err(Error::new(
                Code::TargetIncompatible,
                format!("table `{}` does not fit {}: {}", schema.id.table, schema.id, problems.join("; ")),
            ));
        }
        if schema.has_key() && arbiter.is_none() {
            notes.push("no unique index over the key: changes are applied by scanning the table".to_owned());
        }
        let arbiter = arbiter.is_some();
        let mut target = Self::statements(schema, columns, arbiter, rowid.unwrap_or(&ROWID_NAMES[0]));
        target.keeps_class = actual.strictness == Strictness::Strict;
        Ok((target, notes))
    }

    fn statements(schema: &TableSchema, columns: Vec<TargetColumn>, arbiter: bool, rowid: &str) -> Self {
        let table = ident(&schema.id.table);
        let key: Vec<usize> =
            schema.primary_key.iter().filter_map(|k| columns.iter().position(|c| c.name == *k)).collect();
        let list = |indexes: &mut dyn Iterator<Item = usize>, text: &dyn Fn(&str) -> String, glue: &str| {
            let parts: Vec<String> = indexes.map(|i| text(&ident(&columns[i].name))).collect();
            parts.join(glue)
        };
        let all = || 0..columns.len();
        let marks = vec!["?"; columns.len()].join(", ");
        let names = list(&mut all(), &str::to_owned, ", ");
        let insert = format!("INSERT INTO {table} ({names}) VALUES ({marks})");
        let keys = list(&mut key.iter().copied(), &str::to_owned, ", ");
        let sets = list(&mut all().filter(|i| !key.contains(i)), &|n| format!("{n} = excluded.{n}"), ", ");
        let upsert = match (arbiter, sets.is_empty()) {
            (false, _) => insert.clone(),
            (true, true) => format!("{insert} ON CONFLICT ({keys}) DO NOTHING"),
            (true, false) => format!("{insert} ON CONFLICT ({keys}) DO UPDATE SET {sets}"),
        };
        let delete = format!(
            "DELETE FROM {table} WHERE {}",
            list(&mut key.iter().copied(), &|n| format!("{n} = ?"), " AND ")
        );
        // By bytes: a column's own collation may take different texts for the same.
        let images = list(&mut all(), &|n| format!("{n} IS ? COLLATE BINARY"), " AND ");
        Self {
            id: schema.id.clone(),
            key,
            arbiter,
            keeps_class: false,
            upsert,
            insert,
            delete,
            delete_image: format!(
                "DELETE FROM {table} WHERE {rowid} = (SELECT {rowid} FROM {table} WHERE {images} LIMIT 1)"
            ),
            scan: format!("SELECT {rowid}, {names} FROM {table}"),
            delete_rowid: format!("DELETE FROM {table} WHERE {rowid} = ?"),
            columns,
        }
    }

    /// Sets some columns (indexes into `columns`) by key.
    pub fn patch(&self, columns: &[usize]) -> String {
        let list = |indexes: &[usize], glue: &str| {
            let parts: Vec<String> =
                indexes.iter().map(|i| format!("{} = ?", ident(&self.columns[*i].name))).collect();
            parts.join(glue)
        };
        let table = ident(&self.id.table);
        format!("UPDATE {table} SET {} WHERE {}", list(columns, ", "), list(&self.key, " AND "))
    }

    /// Whether the table has a key.
    pub fn has_key(&self) -> bool {
        !self.key.is_empty()
    }
}
