//! Owns following statements of the stream: what they do to captured tables, noted in the schema history and
//! reported as [`SchemaChange`].

use std::sync::{Arc, Mutex, MutexGuard};

use canalis_types::{
    Code, Column, ColumnPlace, Error, LogicalType, Position, Result, SchemaChange, SchemaChangeKind, TableId,
    TableSchema,
};

use super::history::History;
use crate::{
    Flavor,
    binlog::{
        SchemaTracker,
        ddl::{AddedColumn, ColumnDefinition, CreateTable, Ddl, TableShape},
    },
    catalog::{ColumnText, Mapping, Table},
};

/// How the server compares names of databases and tables (`lower_case_table_names`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameCase {
    /// Case matters.
    Exact,
    /// It does not.
    Ignored,
}

/// Follows structures. The history is shared with the enumerator, which makes it durable.
#[derive(Clone)]
pub(crate) struct Tracker {
    history: Arc<Mutex<History>>,
    mapping: Mapping,
    names: NameCase,
}

impl Tracker {
    pub(crate) fn new(history: Arc<Mutex<History>>, mapping: Mapping, names: NameCase) -> Self {
        Self { history, mapping, names }
    }

    fn history(&self) -> Result<MutexGuard<'_, History>> {
        self.history.lock().map_err(|_| Error::internal("the schema history is poisoned"))
    }

    /// The captured table that a name of the stream means.
    fn captured(&self, id: &TableId) -> Option<TableId> {
        let history = self.history().ok()?;
        if history.current(id).is_some() {
            return Some(id.clone());
        }
        let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        let database = |id: &TableId| id.schema.clone().unwrap_or_default();
        (self.names == NameCase::Ignored)
            .then(|| {
                history
                    .ids()
                    .find(|known| same(&known.table, &id.table) && same(&database(known), &database(id)))
                    .cloned()
            })
            .flatten()
    }

    /// Takes what a statement does; gives the changes that concern captured tables. `position` is the first that has
    /// the new structure. The same statement may come again after the stream has gone back.
    ///
    /// # Errors
    /// CNL-2008 when the statement contradicts the structure that is known, CNL-1003 for a type without mapping.
    fn changes(&self, ddl: &Ddl, statement: &str, position: &Position) -> Result<Vec<SchemaChange>> {
        let tables: Vec<TableId> = match ddl {
            Ddl::CreateTable(create) => vec![create.table.clone()],
            Ddl::AddColumns { table, .. }
            | Ddl::Truncate { table }
            | Ddl::DropTable { table }
            | Ddl::Other { table, .. } => vec![table.clone()],
            Ddl::RenameTable { from, to } => vec![from.clone(), to.clone()],
            Ddl::DropDatabase { database } => {
                self.history()?.ids().filter(|id| self.is_in(id, database)).cloned().collect()
            }
        };
        let mut changes = Vec::new();
        for id in tables.iter().filter_map(|id| self.captured(id)) {
            let Some(before) = self.history()?.before(&id, position.order).cloned() else { continue };
            let (kind, after) = match ddl {
                Ddl::AddColumns { columns, .. } => match self.add_columns(&before, columns)? {
                    Some((added, after)) => (SchemaChangeKind::AddColumns(added), after),
                    None => continue,
                },
                Ddl::CreateTable(create) => match self.create_table(&before, create)? {
                    Some(after) => (SchemaChangeKind::CreateTable, after),
                    None => continue,
                },
                other => (SchemaChangeKind::Other(other.tag().to_owned()), before.clone()),
            };
            self.history()?.record(position.order, after.clone());
            changes.push(SchemaChange {
                kind,
                before: Some(before.schema.clone()),
                after: after.schema.clone(),
                statement: statement.to_owned(),
                position: position.clone(),
            });
        }
        Ok(changes)
    }

    fn is_in(&self, id: &TableId, database: &str) -> bool {
        let of = id.schema.as_deref().unwrap_or_default();
        match self.names {
            NameCase::Exact => of == database,
            NameCase::Ignored => of.to_lowercase() == database.to_lowercase(),
        }
    }

    #[allow(clippy::type_complexity)] // The parts of SchemaChangeKind::AddColumns and the table they make.
    fn add_columns(
        &self,
        before: &Arc<Table>,
        added: &[AddedColumn],
    ) -> Result<Option<(Vec<(Column, ColumnPlace)>, Arc<Table>)>> {
        let mut schema = (*before.schema).clone();
        let mut changes = Vec::new();
        let at = |schema: &TableSchema, name: &str| {
            schema.columns.iter().position(|c| c.name.to_lowercase() == name.to_lowercase())
        };
        for AddedColumn { column, place, if_not_exists } in added {
            let contradiction = |what: String| {
                Error::new(
                    Code::SchemaChangeRefused,
                    format!(
                        "the stream adds column `{}` to {}, {what}: the structure of the table at this place is not \
                         known; start with a snapshot or at a later place",
                        column.name, schema.id
                    ),
                )
            };
            if at(&schema, &column.name).is_some() {
                if *if_not_exists {
                    continue;
                }
                return Err(contradiction("which has it already".into()));
            }
            let index = match place {
                ColumnPlace::Last => schema.columns.len(),
                ColumnPlace::First => 0,
                ColumnPlace::After(name) => {
                    at(&schema, name)
                        .ok_or_else(|| contradiction(format!("after `{name}`, which is not there")))?
                        + 1
                }
            };
            let built = self.column(before, column).map_err(|e| e.context(&schema.id))?;
            schema.columns.insert(index, built.clone());
            changes.push((built, place.clone()));
        }
        if changes.is_empty() {
            return Ok(None);
        }
        schema.version += 1;
        let table = Table { schema: Arc::new(schema), ..(**before).clone() };
        Ok(Some((changes, Arc::new(table))))
    }

    /// The structure that CREATE TABLE makes; `None` when the known one is as good.
    fn create_table(&self, before: &Arc<Table>, create: &CreateTable) -> Result<Option<Arc<Table>>> {
        let refuse = |how: &str| {
            Error::new(
                Code::SchemaChangeRefused,
                format!("{} is created {how}, which does not tell its structure", before.schema.id),
            )
        };
        let TableShape::Columns { columns, primary_key, charset, collation, comment } = &create.shape else {
            return match &create.shape {
                _ if create.if_not_exists => Ok(None),
                TableShape::Like(other) => Err(refuse(&format!("like {other}"))),
                _ => Err(refuse("from a query")),
            };
        };
        if create.if_not_exists {
            return Ok(None);
        }
        let mut table = (**before).clone();
        if let Some(collation) = collation {
            table.charset = collation.split('_').next().unwrap_or_default().to_owned();
            table.collation.clone_from(collation);
        }
        if let Some(charset) = charset {
            table.charset.clone_from(charset);
        }
        let built: Result<Vec<Column>> = columns.iter().map(|c| self.column(&table, c)).collect();
        let mut schema = TableSchema::new(
            before.schema.id.clone(),
            built.map_err(|e| e.context(&before.schema.id))?,
            primary_key.clone(),
        );
        let key_columns: Vec<String> = schema.primary_key.clone();
        for column in schema.columns.iter_mut().filter(|c| key_columns.contains(&c.name)) {
            column.nullable = false;
        }
        schema.comment.clone_from(comment);
        schema.version = before.schema.version + 1;
        let shape = |schema: &TableSchema| -> Vec<(String, LogicalType)> {
            schema.columns.iter().map(|c| (c.name.clone(), c.ty.clone())).collect()
        };
        if shape(&schema) == shape(&before.schema) && schema.primary_key == before.schema.primary_key {
            return Ok(None);
        }
        table.schema = Arc::new(schema);
        Ok(Some(Arc::new(table)))
    }

    fn column(&self, table: &Table, definition: &ColumnDefinition) -> Result<Column> {
        let mut type_sql = definition.type_sql.clone();
        let mut charset = definition.charset.clone();
        let mut collation = definition.collation.clone().filter(|c| c != "binary");
        if self.mapping.flavor == Flavor::MariaDb && type_sql == "json" {
            "longtext".clone_into(&mut type_sql);
            charset = Some("utf8mb4".to_owned());
            collation = Some("utf8mb4_bin".to_owned());
        }
        if let (None, Some(collation)) = (&charset, &collation) {
            charset = collation.split('_').next().map(str::to_owned);
        }
        if charset.is_none() {
            charset = Some(table.charset.clone());
            collation = collation.or_else(|| Some(table.collation.clone()));
        }
        if definition.collation.as_deref() == Some("binary") {
            collation = charset.as_ref().map(|charset| format!("{charset}_bin"));
        }
        let text = ColumnText {
            name: definition.name.clone(),
            ty: type_sql.clone(),
            nullable: definition.nullable,
            default: None,
            extra: if definition.auto_increment { "auto_increment".into() } else { String::new() },
            comment: definition.comment.clone().unwrap_or_default(),
            charset,
            collation,
        };
        let mut column = text.build(type_sql, None, self.mapping)?;
        column.default.clone_from(&definition.default);
        if !has_charset(&column.ty)
            && let Some(native) = &mut column.native
        {
            native.charset = None;
            native.collation = None;
        }
        Ok(column)
    }
}

impl SchemaTracker for Tracker {
    fn is_captured(&self, table: &TableId) -> bool {
        self.captured(table).is_some()
    }

    fn schema(&self, table: &TableId) -> Option<Arc<TableSchema>> {
        let id = self.captured(table)?;
        self.history().ok()?.current(&id).map(|table| table.schema.clone())
    }

    fn apply(&mut self, ddl: &Ddl, statement: &str, position: &Position) -> Result<Option<SchemaChange>> {
        // A statement about several captured tables (DROP DATABASE, RENAME) is reported by its first.
        Ok(self.changes(ddl, statement, position)?.into_iter().next())
    }
}

fn has_charset(ty: &LogicalType) -> bool {
    use LogicalType::*;
    matches!(ty, Char { .. } | Varchar { .. } | Text | Enum { .. } | Set { .. })
}
