//! Owns [`Target`]: how rows of one table go into one existing table.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use canalis_types::{Code, Column, Error, LogicalType, Result, TableId, TableSchema};

use super::{
    ddl::planned_table,
    existing::{ExistingColumn, ExistingTable, same_name},
    fit::{Fit, Guard, fit},
    session::ServerFacts,
};
use crate::quote;

/// How a value travels in LOAD DATA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As text.
    Plain,
    /// As hexadecimal digits.
    Hex,
    /// As a number for a bit field.
    Bits,
}

/// A column that is written.
#[derive(Debug, Clone)]
pub(super) struct WriteColumn {
    /// Index in the table's schema.
    pub index: usize,
    /// Quoted name.
    pub name: String,
    /// See [`Form`].
    pub form: Form,
    /// Checks that the sink makes itself.
    pub guard: Guard,
    /// Whether the empty text stands for the error value of an ENUM, which the server takes only when it is not
    /// strict, with one warning each.
    pub blank_is_error_value: bool,
    /// How an exact comparison with the stored value is written.
    pub comparison: Comparison,
    /// Whether singles go into a column of double precision, where the digits they are shown with are kept.
    pub widens: bool,
}

/// How to find a stored value again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// By the column's own comparison, which is exact.
    Own,
    /// Texts by the column's collation and by every character.
    Text,
    /// JSON documents by value.
    Document,
    /// Values without a comparison, by their bytes.
    Bytes,
}

/// How changes of a keyed table are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// No key: in order, one by one.
    Ordered,
    /// INSERT … ON DUPLICATE KEY UPDATE: columns of the target that are not written keep their values.
    Upsert,
    /// REPLACE: a row that holds a unique value of the new row is stale by the source's own uniqueness, and goes.
    Replace,
    /// DELETE of exactly the same key, then INSERT: the target may refuse rows that the source can hold at once.
    Exact,
}

/// A table of the target with everything that writers need.
#[derive(Debug)]
pub(super) struct Target {
    /// Structure of the rows that come.
    pub schema: Arc<TableSchema>,
    /// Quoted, qualified name.
    pub name: String,
    /// Columns that are written, in the order of the schema.
    pub columns: Vec<WriteColumn>,
    /// Indexes into `columns` of the key, in key order.
    pub key: Vec<usize>,
    /// See [`Mode`].
    pub mode: Mode,
    /// Whether the target has columns that are not written and would be reset by REPLACE.
    pub keeps_columns: bool,
    /// Whether a column numbers itself.
    pub auto_increment: bool,
    /// Whether rows were there before the job began.
    pub was_filled: bool,
    /// A collation for exact comparisons.
    pub exact_collation: &'static str,
}

/// Whether rows were in a table before the job began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// None.
    No,
    /// Some, or it is not known.
    Perhaps,
}

impl Target {
    /// Pairs the columns of `schema` with those of `existing`. Also gives notes for the user.
    ///
    /// # Errors
    /// [`Code::TargetIncompatible`] with every reason.
    pub(super) fn build(
        schema: &Arc<TableSchema>,
        place: &TableId,
        existing: &ExistingTable,
        facts: &ServerFacts,
        filled: Filled,
    ) -> Result<(Self, Vec<String>)> {
        let mut notes = Vec::new();
        let mut problems = Vec::new();
        let mut columns = Vec::new();
        if !existing.transactional {
            problems.push(format!("its engine {} has no transactions", existing.engine));
        }
        for (index, column) in schema.columns.iter().enumerate() {
            let Some(stored) = existing.column(&column.name) else {
                problems.push(format!("column `{}` is missing", column.name));
                continue;
            };
            if stored.generated {
                if schema.primary_key.contains(&column.name) {
                    problems.push(format!("key column `{}` is computed by the target", column.name));
                }
                continue;
            }
            match fit(column, stored) {
                Fit::Holds { note, guard } => {
                    notes.extend(note);
                    if column.nullable && !stored.nullable {
                        notes.push(format!(
                            "column `{}` is NOT NULL: rows with NULL are refused",
                            column.name
                        ));
                    }
                    columns.push(write_column(index, column, stored, guard));
                }
                Fit::Cannot => problems.push(format!(
                    "column `{}` of type {} cannot hold {} without altering values",
                    column.name, stored.column_type, column.ty
                )),
            }
        }
        let mut keeps_columns = false;
        for stored in existing.columns.iter().filter(|stored| !stored.generated) {
            if !schema.columns.iter().any(|column| same_name(&column.name, &stored.name)) {
                keeps_columns = true;
                if !stored.nullable && !stored.has_default {
                    problems.push(format!(
                        "its column `{}` is not among the source's columns and has no default",
                        stored.name
                    ));
                }
            }
        }
        let mode = mode(schema, existing, facts, &mut notes, &mut problems);
        if keeps_columns && matches!(mode, Mode::Replace | Mode::Exact) {
            notes.push("columns that only the target has are reset when a row is changed".to_owned());
        }
        if !problems.is_empty() {
            return Err(Error::new(
                Code::TargetIncompatible,
                format!("table {place}: {}", problems.join("; ")),
            ));
        }
        let key = schema
            .key_indexes()
            .into_iter()
            .filter_map(|index| columns.iter().position(|column| column.index == index))
            .collect();
        let target = Self {
            schema: schema.clone(),
            name: quote::table(place),
            columns,
            key,
            mode,
            keeps_columns,
            auto_increment: existing.columns.iter().any(|column| column.auto_increment),
            was_filled: filled == Filled::Perhaps,
            exact_collation: facts.exact_collation(),
        };
        Ok((target, notes))
    }

    /// The target that [`Target::build`] would give for a table that the sink has just made for `schema`.
    pub(super) fn planned(schema: &Arc<TableSchema>, place: &TableId, facts: &ServerFacts) -> Self {
        let table = planned_table(schema, facts);
        let mut columns = Vec::new();
        for (index, (column, stored)) in schema.columns.iter().zip(&table.columns).enumerate() {
            // Such a column holds every value but for digits that no decimal of the server has.
            let scale = match column.ty {
                LogicalType::Decimal { scale, .. } if scale > 30 => Some(30),
                _ => None,
            };
            if !stored.generated {
                columns.push(write_column(index, column, stored, Guard { scale, fraction: None }));
            }
        }
        let position = |index| columns.iter().position(|column| column.index == index);
        Self {
            schema: schema.clone(),
            name: quote::table(place),
            key: schema.key_indexes().into_iter().filter_map(position).collect(),
            columns,
            mode: mode(schema, &table, facts, &mut Vec::new(), &mut Vec::new()),
            keeps_columns: false,
            auto_increment: table.columns.iter().any(|column| column.auto_increment),
            was_filled: false,
            exact_collation: facts.exact_collation(),
        }
    }

    /// The quoted names of the written columns, separated by commas.
    pub(super) fn column_list(&self) -> String {
        self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(",")
    }
}

fn write_column(index: usize, column: &Column, stored: &ExistingColumn, guard: Guard) -> WriteColumn {
    let form = match (&column.ty, stored.data_type.as_str()) {
        (ty, _) if ty.is_binary() => Form::Hex,
        (_, "bit") => Form::Bits,
        _ => Form::Plain,
    };
    let comparison = match stored.data_type.as_str() {
        "json" => Comparison::Document,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" | "vector" => Comparison::Bytes,
        _ if stored.charset.is_some() && !matches!(stored.data_type.as_str(), "enum" | "set") => {
            Comparison::Text
        }
        _ => Comparison::Own,
    };
    let blank_is_error_value = stored.data_type == "enum"
        && !stored.column_type.contains("''")
        && !matches!(&column.ty, LogicalType::Enum { labels } if labels.iter().any(String::is_empty));
    WriteColumn {
        index,
        name: quote::ident(&stored.name),
        form,
        guard,
        blank_is_error_value,
        comparison,
        widens: column.ty == LogicalType::Float32 && stored.data_type == "double",
    }
}

/// Decides how changes are applied.
fn mode(
    schema: &TableSchema,
    existing: &ExistingTable,
    facts: &ServerFacts,
    notes: &mut Vec<String>,
    problems: &mut Vec<String>,
) -> Mode {
    if !schema.has_key() {
        notes.push(
            "has no key: rows are found again by all their values, and applied in order by one writer".into(),
        );
        return Mode::Ordered;
    }
    let same_columns = |a: &[String], b: &[String]| {
        a.len() == b.len() && a.iter().all(|name| b.iter().any(|other| same_name(name, other)))
    };
    let Some(key) = existing
        .unique
        .iter()
        .filter(|index| !index.by_prefix)
        .find(|index| same_columns(&index.columns, &schema.primary_key))
    else {
        problems.push(format!(
            "it has neither a primary key nor a unique index on exactly ({})",
            schema.primary_key.join(", ")
        ));
        return Mode::Upsert;
    };
    if let Some(reason) = coarser_key(schema, existing, facts) {
        notes.push(reason);
        return Mode::Exact;
    }
    let written = |name: &String| schema.columns.iter().any(|column| same_name(&column.name, name));
    let mut mode = Mode::Upsert;
    for other in existing.unique.iter().filter(|index| index.name != key.name) {
        // An index over columns that only the target has cannot meet a value of the source.
        if !other.columns.is_empty() && !other.columns.iter().any(written) {
            continue;
        }
        let known =
            schema.indexes.iter().any(|index| index.unique && same_columns(&index.columns, &other.columns));
        if !known {
            notes.push(format!(
                "unique index `{}` is not known to the source: rows that break it are refused",
                other.name
            ));
            return Mode::Exact;
        }
        mode = Mode::Replace;
    }
    mode
}

/// A note when the target may take two keys of the source for the same.
fn coarser_key(schema: &TableSchema, existing: &ExistingTable, facts: &ServerFacts) -> Option<String> {
    for name in &schema.primary_key {
        let (column, stored) = (schema.column(name)?, existing.column(name)?);
        let Some(collation) = stored.collation.as_deref() else { continue };
        if !column.ty.is_text() || matches!(column.ty, LogicalType::Enum { .. } | LogicalType::Set { .. }) {
            continue;
        }
        let same_as_source = column.native.as_ref().is_some_and(|native| {
            native.dialect == "mysql"
                && native.collation.as_deref().is_some_and(|source| source.eq_ignore_ascii_case(collation))
        });
        if !same_as_source && collation != facts.exact_collation() && collation != "ascii_nopad_bin" {
            return Some(format!(
                "key column `{name}` has the collation {collation}, under which different keys of the source \
                 may be equal: such rows are refused"
            ));
        }
    }
    None
}

/// Targets by table, shared by the sink and its writers.
#[derive(Debug, Default)]
pub(super) struct Targets {
    known: Mutex<HashMap<TableId, Arc<Target>>>,
    claimed: Mutex<HashMap<String, TableId>>,
}

impl Targets {
    /// The target of a table, if it was made for this structure.
    pub(super) fn get(&self, schema: &Arc<TableSchema>) -> Option<Arc<Target>> {
        let targets = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let target = targets.get(&schema.id)?;
        let same = Arc::ptr_eq(&target.schema, schema)
            || target.schema.columns == schema.columns && target.schema.primary_key == schema.primary_key;
        same.then(|| target.clone())
    }

    /// Whether the table held rows before the job began, as far as it is known.
    pub(super) fn filled(&self, table: &TableId) -> Filled {
        let targets = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match targets.get(table) {
            Some(target) if !target.was_filled => Filled::No,
            _ => Filled::Perhaps,
        }
    }

    /// Notes that `id` is written to `place`; gives another id that is written there already. `place` is folded to
    /// lower case where the server does so.
    pub(super) fn claim(&self, id: &TableId, place: String) -> Option<TableId> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = claimed.entry(place).or_insert_with(|| id.clone());
        (owner != id).then(|| owner.clone())
    }

    /// Keeps a target.
    pub(super) fn put(&self, target: Target) -> Arc<Target> {
        let target = Arc::new(target);
        let mut targets = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        targets.insert(target.schema.id.clone(), target.clone());
        target
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use canalis_types::{Index, NativeType};

    use super::*;
    use crate::{Flavor, ServerInfo};

    fn native(mut column: Column, sql: &str, generated: Option<&str>) -> Column {
        column.native = Some(NativeType {
            dialect: "mysql".into(),
            sql: sql.into(),
            charset: None,
            collation: None,
            auto_increment: false,
            generated: generated.map(str::to_owned),
        });
        column
    }

    fn planned(schema: TableSchema) -> Target {
        let info = ServerInfo { flavor: Flavor::MySql, version: (9, 7, 0), version_text: String::new() };
        let place = schema.id.clone();
        Target::planned(&Arc::new(schema), &place, &ServerFacts::sample(info, HashSet::new()))
    }

    #[test]
    fn planned_tables_are_written_as_they_will_be_made() {
        let columns = || {
            vec![
                native(Column::new("id", LogicalType::Int32, false), "int", None),
                Column::new("sum", LogicalType::Decimal { precision: 65, scale: 35 }, true),
                Column::new("doc", LogicalType::Json, true),
                Column::new("name", LogicalType::Text, true),
                native(Column::new("twice", LogicalType::Int32, true), "int", Some("(`id` * 2)")),
                Column::new("kind", LogicalType::Enum { labels: vec!["a".into()] }, true),
            ]
        };
        let keyed = TableSchema::new(TableId::new("d", "t"), columns(), vec!["id".into()]);
        let target = planned(keyed.clone());
        assert_eq!(target.mode, Mode::Upsert);
        assert_eq!(target.column_list(), "`id`,`sum`,`doc`,`name`,`kind`");
        assert_eq!(target.key, [0]);
        let comparisons: Vec<Comparison> = target.columns.iter().map(|c| c.comparison).collect();
        use Comparison::{Document, Own, Text};
        assert_eq!(comparisons, [Own, Own, Document, Text, Own]);
        assert_eq!(target.columns[1].guard.scale, Some(30));
        assert!(target.columns[4].blank_is_error_value);
        let mut unique = keyed;
        unique.indexes.push(Index {
            name: "u".into(),
            unique: true,
            columns: vec!["sum".into()],
            definition: "UNIQUE KEY `u` (`sum`)".into(),
        });
        assert_eq!(planned(unique).mode, Mode::Replace);
        let keyless = TableSchema::new(TableId::new("d", "t"), columns(), Vec::new());
        assert_eq!(planned(keyless).mode, Mode::Ordered);
    }
}
