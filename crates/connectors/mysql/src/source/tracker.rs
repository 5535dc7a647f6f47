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

#[cfg(test)]
mod tests {
    use canalis_types::{ColumnDefault, mysql_type::TinyInt1};

    use super::*;
    use crate::{
        binlog::ddl::{StatementContext, parse},
        catalog::Comments,
    };

    fn tracker(flavor: Flavor, names: NameCase) -> Tracker {
        let table = Table {
            schema: Arc::new(TableSchema::new(
                TableId::new("d", "t"),
                vec![Column::new("id", LogicalType::Int32, false), Column::new("v", LogicalType::Text, true)],
                vec!["id".into()],
            )),
            charset: "latin1".into(),
            collation: "latin1_swedish_ci".into(),
            prefix_key: false,
        };
        let mapping = Mapping { flavor, tinyint1: TinyInt1::Integer, comments: Comments::Keep };
        Tracker::new(Arc::new(Mutex::new(History::new([Arc::new(table)]))), mapping, names)
    }

    fn apply(tracker: &mut Tracker, statement: &str, offset: u64) -> Result<Vec<SchemaChange>> {
        let context = StatementContext { default_database: "d".into(), ..StatementContext::default() };
        let position = Position::new([1, offset, 0], "{}");
        let mut changes = Vec::new();
        for ddl in parse(statement, &context, &|_| true).unwrap() {
            changes.extend(tracker.apply(&ddl, statement, &position)?);
        }
        Ok(changes)
    }

    fn names(tracker: &Tracker) -> Vec<String> {
        let schema = tracker.schema(&TableId::new("d", "t")).unwrap();
        schema.columns.iter().map(|column| column.name.clone()).collect()
    }

    #[test]
    fn my_08_added_columns_get_type_place_and_charset() {
        let mut tracker = tracker(Flavor::MySql, NameCase::Exact);
        let statement = "ALTER TABLE t ADD COLUMN z INT(6) ZEROFILL NOT NULL DEFAULT 5 FIRST, \
                         ADD COLUMN e ENUM('a','b') AFTER id, ADD COLUMN s VARCHAR(9) CHARACTER SET utf8mb4";
        let changes = apply(&mut tracker, statement, 100).unwrap();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].tag(), "add.column");
        assert_eq!(names(&tracker), ["z", "id", "e", "v", "s"]);
        let after = &changes[0].after;
        assert_eq!(after.version, 1);
        let column = |name: &str| after.column(name).unwrap();
        assert_eq!((&column("z").ty, column("z").nullable), (&LogicalType::UInt32, false));
        assert_eq!(column("z").default, Some(ColumnDefault::Literal("5".into())));
        let charset = |name: &str| column(name).native.as_ref().and_then(|n| n.charset.clone());
        assert_eq!(charset("z"), None);
        assert_eq!(charset("e").as_deref(), Some("latin1"));
        assert_eq!(charset("s").as_deref(), Some("utf8mb4"));
    }

    #[test]
    fn a_statement_that_comes_again_leads_to_the_same_structure() {
        let mut tracker = tracker(Flavor::MariaDb, NameCase::Exact);
        let first = "ALTER TABLE t ADD COLUMN j JSON";
        let second = "ALTER TABLE d.t ADD COLUMN IF NOT EXISTS j INT, ADD k INT";
        let once = (apply(&mut tracker, first, 100).unwrap(), apply(&mut tracker, second, 200).unwrap());
        assert_eq!(once.0[0].after.column("j").unwrap().ty, LogicalType::Text);
        assert_eq!(names(&tracker), ["id", "v", "j", "k"]);
        let again = (apply(&mut tracker, first, 100).unwrap(), apply(&mut tracker, second, 200).unwrap());
        assert_eq!((&again.0[0].after, &again.1[0].after), (&once.0[0].after, &once.1[0].after));
        assert_eq!(names(&tracker), ["id", "v", "j", "k"]);
    }

    #[test]
    fn contradictions_are_errors_and_not_guesses() {
        let mut tracker = tracker(Flavor::MySql, NameCase::Exact);
        for statement in ["ALTER TABLE t ADD COLUMN v INT", "ALTER TABLE t ADD COLUMN x INT AFTER absent"] {
            let error = apply(&mut tracker, statement, 100).unwrap_err();
            assert_eq!(error.code(), Code::SchemaChangeRefused, "{error}");
        }
        assert_eq!(names(&tracker), ["id", "v"]);
    }

    #[test]
    fn other_changes_are_named_and_other_tables_passed_over() {
        let mut tracker = tracker(Flavor::MySql, NameCase::Ignored);
        for (statement, expect) in [
            ("ALTER TABLE T DROP COLUMN v", Some("drop.column")),
            ("TRUNCATE TABLE D.t", Some("truncate.table")),
            ("DROP TABLE t", Some("drop.table")),
            ("RENAME TABLE t TO old", Some("rename.table")),
            ("DROP DATABASE d", Some("drop.database")),
            ("DROP DATABASE other", None),
            ("ALTER TABLE other ADD COLUMN x INT", None),
            ("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", None),
            ("CREATE TABLE IF NOT EXISTS t (id INT)", None),
            ("CREATE TABLE t (id INT PRIMARY KEY, w TEXT)", Some("create.table")),
        ] {
            let changes = apply(&mut tracker, statement, 100).unwrap();
            assert_eq!(changes.first().map(SchemaChange::tag), expect, "{statement}");
        }
        assert_eq!(names(&tracker), ["id", "w"]);
    }
}
