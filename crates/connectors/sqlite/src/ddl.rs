//! Owns quoting, names, and the statements that make and change tables.

use canalis_batch::{ColumnBuilder, cell_to_text};
use canalis_types::{Code, Column, ColumnDefault, Error, LogicalType, Result, TableId, TableSchema};

use crate::types::{self, Storage};

/// Tables of our own records.
pub const RECORDS: [&str; 3] = ["canalis_progress", "canalis_marks", "canalis_owners"];

/// An identifier in double quotes.
pub fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    // A NUL would end the statement; as a blob cast to text it is exact.
    if text.contains('\0') {
        let hex: String = text.bytes().map(|b| format!("{b:02X}")).collect();
        return format!("(CAST(X'{hex}' AS TEXT))");
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Refuses names that SQLite keeps for itself or that our records have.
///
/// # Errors
/// `CNL-3004` naming the table.
pub fn check_name(id: &TableId) -> Result<()> {
    let lower = id.table.to_lowercase();
    let why = if lower.is_empty() || lower.contains('\0') {
        "is not a name"
    } else if lower.starts_with("sqlite_") {
        "begins with `sqlite_`, which SQLite keeps for itself"
    } else if RECORDS.contains(&lower.as_str()) {
        "has the name of a table of progress records"
    } else {
        return Ok(());
    };
    Err(Error::new(
        Code::TargetIncompatible,
        format!("table `{}` {why}; give it another name by a route", id.table),
    ))
}

/// Statement that creates the table, and notes for the user.
pub fn create_table(schema: &TableSchema) -> Result<(String, Vec<String>)> {
    check_name(&schema.id)?;
    let mut parts = Vec::new();
    let mut notes = Vec::new();
    for column in &schema.columns {
        let required = schema.primary_key.contains(&column.name) || !column.nullable;
        let not_null = if required { " NOT NULL" } else { "" };
        parts.push(format!("{} {}{not_null}", ident(&column.name), types::declare(&column.ty)));
        if let Some(note) = types::declare_note(&column.ty) {
            notes.push(format!("column `{}`: {note}", column.name));
        }
        if column.default.is_some() {
            notes.push(format!(
                "column `{}`: the default is not carried over; values come from the source",
                column.name
            ));
        }
    }
    if schema.has_key() {
        let key: Vec<String> = schema.primary_key.iter().map(|k| ident(k)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    let sql = format!("CREATE TABLE {} (\n  {}\n) STRICT", ident(&schema.id.table), parts.join(",\n  "));
    Ok((sql, notes))
}

/// Whether a table has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptiness {
    /// It has none.
    Empty,
    /// It has some.
    HasRows,
}

/// Statement that adds a column; rows that exist get the value that the source gave them.
///
/// # Errors
/// `CNL-2008` when only the source knows that value and the table has rows.
pub fn add_column(id: &TableId, column: &Column, table: Emptiness) -> Result<String> {
    let value = match existing_value(column) {
        Ok(value) => value,
        Err(_) if table == Emptiness::Empty => None,
        Err(why) => {
            return Err(Error::new(
                Code::SchemaChangeRefused,
                format!(
                    "adding column `{}` to {id}: {why}; add the column with its values in the database file, or copy \
                     the table again",
                    column.name
                ),
            ));
        }
    };
    let constraint = match (value, column.nullable) {
        (Some(value), true) => format!(" DEFAULT {value}"),
        (Some(value), false) => format!(" NOT NULL DEFAULT {value}"),
        // SQLite adds no NOT NULL column without a default, not even to an empty table.
        (None, _) => String::new(),
    };
    let (table, name) = (ident(&id.table), ident(&column.name));
    Ok(format!("ALTER TABLE {table} ADD COLUMN {name} {}{constraint}", types::declare(&column.ty)))
}

/// The value that the source gave to existing rows, as a literal: the default, or MySQL's implicit one for NOT NULL.
fn existing_value(column: &Column) -> Result<Option<String>, String> {
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
        (LogicalType::Bit { .. }, None) => {
            let value: u64 = text.parse().map_err(|_| format!("the default `{text}` is no bit field"))?;
            builder.append_u64(value).map_err(unfit)?;
        }
        _ => builder.append_text(text.as_bytes()).map_err(unfit)?,
    }
    let canonical = cell_to_text(&builder.finish(), &column.ty, 0).unwrap_or_default();
    Ok(Some(match types::storage(&column.ty) {
        Storage::Integer if column.ty == LogicalType::Boolean => u8::from(canonical == "true").to_string(),
        Storage::WideInteger if canonical.parse::<i64>().is_err() => literal(&canonical),
        Storage::Integer | Storage::WideInteger | Storage::Real => canonical,
        Storage::Text if matches!(column.ty, LogicalType::TimestampTz { .. }) => {
            literal(&format!("{canonical}Z"))
        }
        Storage::Text => literal(&canonical),
        Storage::Blob => format!("X'{canonical}'"),
    }))
}

/// What MySQL stores in existing rows of an added NOT NULL column without a default.
fn implicit_default(ty: &LogicalType) -> Option<String> {
    use LogicalType::*;
    Some(match ty {
        Date => "0000-00-00".to_owned(),
        Timestamp { .. } | TimestampTz { .. } => "0000-00-00 00:00:00".to_owned(),
        Time { .. } => "00:00:00".to_owned(),
        Char { .. } | Varchar { .. } | Text | Set { .. } | Varbinary { .. } | Bytes => String::new(),
        Binary { length } => "\0".repeat(usize::try_from(*length).unwrap_or(0)),
        Enum { labels } => labels.first()?.clone(),
        Json | Geometry | Uuid => return None,
        _ => "0".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_tables_are_strict_and_quoted() {
        let columns = vec![
            Column::new("id", LogicalType::Int32, true),
            Column::new("x\"y", LogicalType::UInt64, false),
            Column::new("d", LogicalType::Decimal { precision: 5, scale: 2 }, true),
        ];
        let schema = TableSchema::new(TableId::new("app", "order"), columns, vec!["id".into()]);
        let (sql, notes) = create_table(&schema).unwrap();
        assert_eq!(
            sql,
            "CREATE TABLE \"order\" (\n  \"id\" INTEGER NOT NULL,\n  \"x\"\"y\" ANY NOT NULL,\n  \"d\" TEXT,\n  \
             PRIMARY KEY (\"id\")\n) STRICT"
        );
        assert_eq!(notes.len(), 2);
    }

    #[test]
    fn names_of_others_are_refused() {
        for name in ["sqlite_stat1", "SQLITE_x", "canalis_progress", "Canalis_Marks", ""] {
            assert!(check_name(&TableId::bare(name)).is_err(), "{name}");
        }
        check_name(&TableId::bare("order")).unwrap();
    }

    #[test]
    fn added_columns_give_existing_rows_their_value() {
        let add = |ty: LogicalType, nullable, default: Option<&str>| {
            let mut column = Column::new("c", ty, nullable);
            column.default = default.map(|d| ColumnDefault::Literal(d.to_owned()));
            add_column(&TableId::bare("t"), &column, Emptiness::HasRows)
                .map(|s| s.replace("ALTER TABLE \"t\" ADD COLUMN \"c\" ", ""))
        };
        assert_eq!(add(LogicalType::Int32, true, None).unwrap(), "INTEGER");
        assert_eq!(add(LogicalType::Int32, false, None).unwrap(), "INTEGER NOT NULL DEFAULT 0");
        assert_eq!(add(LogicalType::Text, true, Some("it's")).unwrap(), "TEXT DEFAULT 'it''s'");
        assert_eq!(add(LogicalType::Date, false, None).unwrap(), "TEXT NOT NULL DEFAULT '0000-00-00'");
        assert_eq!(
            add(LogicalType::Binary { length: 2 }, false, None).unwrap(),
            "BLOB NOT NULL DEFAULT X'0000'"
        );
        assert_eq!(add(LogicalType::Bit { length: 4 }, true, Some("b'101'")).unwrap(), "INTEGER DEFAULT 5");
        let huge = "18446744073709551615";
        assert_eq!(add(LogicalType::UInt64, true, Some(huge)).unwrap(), format!("ANY DEFAULT '{huge}'"));
        assert!(add(LogicalType::Json, false, None).is_err());
    }
}
