//! Owns the statements that make and change tables.

use canalis_batch::{ColumnBuilder, cell_to_text};
use canalis_types::{
    Code, Column, ColumnDefault, Error, LogicalType, Result, TableId, TableSchema, temporal,
};

use crate::{
    catalog::{ActualColumn, ActualTable, UniqueIndex},
    options::{InvalidDatePolicy, PostgresOptions},
    quote::{check_identifier, ident, literal},
    types::{self, ActualType},
};

/// Schema of ids that have none.
const DEFAULT_SCHEMA: &str = "public";

/// Schema and table that take the rows of `id`, unquoted.
///
/// # Errors
/// `CNL-3004` for names that PostgreSQL would cut, and for an id of another database.
pub fn place(id: &TableId, options: &PostgresOptions) -> Result<(String, String)> {
    if let Some(database) = id.namespace.as_ref().filter(|n| **n != options.endpoint.database) {
        return Err(Error::new(
            Code::TargetIncompatible,
            format!(
                "{id} names the database `{database}`, and the sink writes into `{}`",
                options.endpoint.database
            ),
        ));
    }
    let schema = options.schema.as_deref().or(id.schema.as_deref()).unwrap_or(DEFAULT_SCHEMA);
    check_identifier("schema", schema)?;
    check_identifier("table", &id.table)?;
    Ok((schema.to_owned(), id.table.clone()))
}

/// The quoted, qualified name of the table that takes the rows of `id`.
pub fn qualified(id: &TableId, options: &PostgresOptions) -> Result<String> {
    let (schema, table) = place(id, options)?;
    Ok(format!("{}.{}", ident(&schema), ident(&table)))
}

/// Whether the primary key is part of the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTime {
    /// Made with the table.
    Now,
    /// Added later.
    Later,
}

/// Statements that create the schema and table of the rows of `schema`, and notes for the user.
pub fn create_table(
    schema: &TableSchema,
    key: KeyTime,
    options: &PostgresOptions,
) -> Result<(Vec<String>, Vec<String>)> {
    let (namespace, _) = place(&schema.id, options)?;
    let table = qualified(&schema.id, options)?;
    let mut parts = Vec::new();
    let mut notes = Vec::new();
    let mut comments = Vec::new();
    if let Some(comment) = schema.comment.as_deref().filter(|c| !c.is_empty()) {
        comments.push(format!("COMMENT ON TABLE {table} IS {}", literal(comment)));
    }
    for column in &schema.columns {
        check_identifier("column", &column.name)?;
        let in_key = schema.primary_key.contains(&column.name);
        let not_null = if in_key || !column.nullable { " NOT NULL" } else { "" };
        parts.push(format!(
            "{} {}{not_null}",
            ident(&column.name),
            types::declare(&column.ty, in_key, options)
        ));
        if let Some(note) = types::declare_note(&column.ty, options) {
            notes.push(format!("column `{}`: {note}", column.name));
        }
        if column.default.is_some() {
            notes.push(format!(
                "column `{}`: the default is not carried over; values come from the source",
                column.name
            ));
        }
        if let Some(comment) = column.comment.as_deref().filter(|c| !c.is_empty()) {
            let name = ident(&column.name);
            comments.push(format!("COMMENT ON COLUMN {table}.{name} IS {}", literal(comment)));
        }
    }
    if schema.has_key() && key == KeyTime::Now {
        parts.push(format!("PRIMARY KEY ({})", key_list(schema)));
    }
    let mut statements = vec![
        format!("CREATE SCHEMA IF NOT EXISTS {}", ident(&namespace)),
        format!("CREATE TABLE {table} (\n  {}\n)", parts.join(",\n  ")),
    ];
    statements.extend(comments);
    Ok((statements, notes))
}

/// What the catalog will say of the table that [`create_table`] makes.
pub fn foreseen_table(schema: &TableSchema, options: &PostgresOptions) -> ActualTable {
    let column = |column: &Column| {
        let in_key = schema.primary_key.contains(&column.name);
        let not_null = in_key || !column.nullable;
        ActualColumn {
            name: column.name.clone(),
            ty: ActualType::of_declared(&types::declare(&column.ty, in_key, options)),
            not_null,
            generated: false,
            has_default: !not_null,
        }
    };
    let key = UniqueIndex { primary: true, arbiter: true, columns: schema.primary_key.clone() };
    ActualTable {
        kind: 'r',
        columns: schema.columns.iter().map(column).collect(),
        uniques: schema.has_key().then_some(key).into_iter().collect(),
        foreign_keys: Vec::new(),
    }
}

/// Statement that adds the primary key.
pub fn add_key(schema: &TableSchema, options: &PostgresOptions) -> Result<String> {
    Ok(format!("ALTER TABLE {} ADD PRIMARY KEY ({})", qualified(&schema.id, options)?, key_list(schema)))
}

/// Statement that keeps the youngest of rows with equal keys: what writing by key would have left.
pub fn keep_youngest(schema: &TableSchema, options: &PostgresOptions) -> Result<String> {
    let table = qualified(&schema.id, options)?;
    let same: Vec<String> = schema.primary_key.iter().map(|k| format!("a.{0} = b.{0}", ident(k))).collect();
    Ok(format!("DELETE FROM {table} a USING {table} b WHERE {} AND a.ctid < b.ctid", same.join(" AND ")))
}

fn key_list(schema: &TableSchema) -> String {
    let names: Vec<String> = schema.primary_key.iter().map(|k| ident(k)).collect();
    names.join(", ")
}

/// Statement that adds a column; rows that exist get the value that the source gave them.
///
/// # Errors
/// `CNL-2008` when only the source knows that value and the table has rows.
pub fn add_column(
    id: &TableId,
    column: &Column,
    table_is_empty: Emptiness,
    options: &PostgresOptions,
) -> Result<String> {
    check_identifier("column", &column.name)?;
    let value = match existing_value(column, options) {
        Ok(value) => value,
        Err(_) if table_is_empty == Emptiness::Empty => None,
        Err(why) => {
            return Err(Error::new(
                Code::SchemaChangeRefused,
                format!(
                    "adding column `{}` to {id}: {why}; add the column with its values at the sink, or copy the \
                     table again",
                    column.name
                ),
            ));
        }
    };
    let constraint = match (&value, column.nullable) {
        (Some(value), true) => format!(" DEFAULT {}", literal(value)),
        (Some(value), false) => format!(" NOT NULL DEFAULT {}", literal(value)),
        (None, false) if table_is_empty == Emptiness::Empty => " NOT NULL".to_owned(),
        (None, _) => String::new(),
    };
    Ok(format!(
        "ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} {}{constraint}",
        qualified(id, options)?,
        ident(&column.name),
        types::declare(&column.ty, false, options)
    ))
}

/// Whether a table has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptiness {
    /// It has none.
    Empty,
    /// It has some.
    HasRows,
}

/// The value that the source gave to existing rows: the default, or MySQL's implicit one for NOT NULL. `None` is NULL.
fn existing_value(column: &Column, options: &PostgresOptions) -> Result<Option<String>, String> {
    let text = match &column.default {
        Some(ColumnDefault::Literal(text)) => text.clone(),
        Some(ColumnDefault::Expression(text)) => {
            return Err(format!("only the source knows what `{text}` was for the rows that exist"));
        }
        None if column.nullable => return Ok(None),
        None => implicit_default(&column.ty).ok_or("the value of existing rows is not known")?,
    };
    let unfit = |_| format!("the default `{text}` is not a {}", column.ty);
    let mut builder = ColumnBuilder::new(&column.ty, 1);
    match (&column.ty, text.strip_prefix("b'").and_then(|t| t.strip_suffix('\''))) {
        (LogicalType::Bit { .. }, Some(bits)) => {
            let value =
                u64::from_str_radix(bits, 2).map_err(|_| format!("the default `{text}` is no bit field"))?;
            builder.append_u64(value).map_err(unfit)?;
        }
        _ => builder.append_text(text.as_bytes()).map_err(unfit)?,
    }
    let cell = builder.finish();
    let canonical = cell_to_text(&cell, &column.ty, 0).unwrap_or_default();
    Ok(match &column.ty {
        LogicalType::Date | LogicalType::Timestamp { .. } | LogicalType::TimestampTz { .. }
            if impossible(&canonical) =>
        {
            match options.invalid_date {
                InvalidDatePolicy::Error => return Err(format!("no calendar has the date `{canonical}`")),
                InvalidDatePolicy::Null => None,
                InvalidDatePolicy::Epoch => Some("1970-01-01 00:00:00+00".to_owned()),
            }
        }
        LogicalType::TimestampTz { .. } => Some(format!("{canonical}+00")),
        LogicalType::Bit { length } => {
            let value: u64 = canonical.parse().unwrap_or(0);
            Some(format!("{value:0width$b}", width = usize::from(*length)))
        }
        ty if ty.is_binary() => Some(format!("\\x{canonical}")),
        _ => Some(canonical),
    })
}

fn impossible(text: &str) -> bool {
    text.get(..10).and_then(|d| temporal::parse_date(d.as_bytes())).is_some_and(temporal::is_partial_date)
}

/// What MySQL stores in existing rows of an added NOT NULL column without a default.
fn implicit_default(ty: &LogicalType) -> Option<String> {
    use LogicalType::*;
    Some(match ty {
        Boolean
        | Int8
        | Int16
        | Int32
        | Int64
        | UInt8
        | UInt16
        | UInt32
        | UInt64
        | Float32
        | Float64
        | Year
        | Decimal { .. }
        | Bit { .. } => "0".to_owned(),
        Date => "0000-00-00".to_owned(),
        Timestamp { .. } | TimestampTz { .. } => "0000-00-00 00:00:00".to_owned(),
        Time { .. } => "00:00:00".to_owned(),
        Char { .. } | Varchar { .. } | Text | Set { .. } | Varbinary { .. } | Bytes => String::new(),
        Binary { length } => "\0".repeat(usize::try_from(*length).unwrap_or(0)),
        Enum { labels } => labels.first()?.clone(),
        Json | Geometry | Uuid => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    fn schema() -> TableSchema {
        let mut id = Column::new("id", LogicalType::UInt64, false);
        id.comment = Some("it's the key".into());
        let columns = vec![id, Column::new("x\"y", LogicalType::Varchar { length: 5 }, true)];
        TableSchema::new(TableId::new("app", "order"), columns, vec!["id".into()])
    }

    #[test]
    fn sk_03_create_table_quotes_everything() {
        let (statements, _) = create_table(&schema(), KeyTime::Now, &options(&[])).unwrap();
        assert_eq!(
            statements,
            [
                "CREATE SCHEMA IF NOT EXISTS \"app\"",
                "CREATE TABLE \"app\".\"order\" (\n  \"id\" numeric(20,0) NOT NULL,\n  \"x\"\"y\" varchar(5),\n  \
                 PRIMARY KEY (\"id\")\n)",
                "COMMENT ON COLUMN \"app\".\"order\".\"id\" IS 'it''s the key'",
            ]
        );
    }

    #[test]
    fn foreseen_tables_take_what_they_are_made_for() {
        use LogicalType::*;
        let types = [
            Boolean,
            Int8,
            UInt8,
            UInt32,
            UInt64,
            Float32,
            Float64,
            Decimal { precision: 38, scale: 10 },
            Decimal { precision: 65, scale: 0 },
            Date,
            Time { precision: 6 },
            Timestamp { precision: 3 },
            TimestampTz { precision: 0 },
            Year,
            Char { length: 5 },
            Varchar { length: 20_000_000 },
            Text,
            Binary { length: 4 },
            Bytes,
            Bit { length: 12 },
            Json,
            Enum { labels: vec!["a".into()] },
            Geometry,
            Uuid,
        ];
        for given in [&[][..], &[("json.type", "json")]] {
            let options = options(given);
            for ty in &types {
                for primary_key in [vec!["k".into()], vec!["c".into()]] {
                    let columns = vec![Column::new("k", Int64, false), Column::new("c", ty.clone(), true)];
                    let schema = TableSchema::new(TableId::new("app", "t"), columns, primary_key);
                    let table = foreseen_table(&schema, &options);
                    let joined = crate::target::Target::join(&schema, "t", &table, &options);
                    assert!(
                        joined.is_ok_and(|(target, _)| target.arbiter && target.columns.len() == 2),
                        "{ty}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_option_schema_overrides_ids() {
        let name = |id, given: &[(&str, &str)]| qualified(&id, &options(given)).unwrap();
        assert_eq!(name(TableId::new("app", "t"), &[]), "\"app\".\"t\"");
        assert_eq!(name(TableId::bare("t"), &[]), "\"public\".\"t\"");
        assert_eq!(name(TableId::new("app", "t"), &[("schema", "lake")]), "\"lake\".\"t\"");
        let other = TableId { namespace: Some("other".into()), ..TableId::new("a", "t") };
        assert!(qualified(&other, &options(&[])).is_err());
    }

    #[test]
    fn sk_09_names_that_would_be_cut_are_refused() {
        for last in ["aaaaa", "bbbbb"] {
            let name = format!("{}{last}", "t".repeat(65));
            let error = qualified(&TableId::new("app", name.clone()), &options(&[])).unwrap_err();
            assert_eq!(error.code(), Code::TargetIncompatible);
            assert!(error.message().contains(&name));
        }
    }

    #[test]
    fn added_columns_give_existing_rows_their_value() {
        let add = |ty: LogicalType, nullable, default: Option<&str>| {
            let mut column = Column::new("c", ty, nullable);
            column.default = default.map(|d| ColumnDefault::Literal(d.to_owned()));
            add_column(&TableId::new("app", "t"), &column, Emptiness::HasRows, &options(&[]))
                .map(|s| s.replace("ALTER TABLE \"app\".\"t\" ADD COLUMN IF NOT EXISTS \"c\" ", ""))
        };
        assert_eq!(add(LogicalType::Int32, true, None).unwrap(), "integer");
        assert_eq!(add(LogicalType::Int32, false, None).unwrap(), "integer NOT NULL DEFAULT '0'");
        assert_eq!(add(LogicalType::Int32, true, Some("5")).unwrap(), "integer DEFAULT '5'");
        assert_eq!(
            add(LogicalType::Bit { length: 4 }, false, Some("b'101'")).unwrap(),
            "bit(4) NOT NULL DEFAULT '0101'"
        );
        assert!(add(LogicalType::Date, false, None).is_err());
        let mut column = Column::new("c", LogicalType::Timestamp { precision: 0 }, false);
        column.default = Some(ColumnDefault::Expression("CURRENT_TIMESTAMP".into()));
        let id = TableId::new("app", "t");
        let error = add_column(&id, &column, Emptiness::HasRows, &options(&[])).unwrap_err();
        assert_eq!(error.code(), Code::SchemaChangeRefused);
        assert!(add_column(&id, &column, Emptiness::Empty, &options(&[])).is_ok());
    }
}
