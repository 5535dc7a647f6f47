//! Owns table structure as messages tell it: `mysqlType` and `pkNames` against what is known.

use std::sync::Arc;

use canalis_types::{
    Column, ColumnPlace, LogicalType, NativeType, SchemaChangeKind, TableId, TableSchema,
    mysql_type::{TinyInt1, TypeText},
};

use super::envelope::plain;
use crate::{
    json::scan::{Scanner, Value},
    message::StructureChange,
};

/// A column as `mysqlType` has it.
#[derive(Debug)]
pub(super) struct Observed {
    pub name: String,
    pub sql: String,
    pub ty: TypeText,
}

impl Observed {
    fn logical(&self) -> Result<LogicalType, String> {
        self.ty.logical(TinyInt1::Integer).map_err(|e| format!("column `{}`: {e}", self.name))
    }

    fn column(&self, nullable: bool) -> Result<Column, String> {
        let mut column = Column::new(self.name.clone(), self.logical()?, nullable);
        column.native = Some(NativeType {
            dialect: "mysql".to_owned(),
            sql: self.sql.clone(),
            charset: None,
            collation: None,
            auto_increment: false,
            generated: None,
        });
        Ok(column)
    }

    /// Whether `column` holds the same values by the same type; display widths do not matter.
    fn is_same_type(&self, column: &Column) -> Result<bool, String> {
        if column.ty != self.logical()? {
            return Ok(false);
        }
        let native = column.native.as_ref().filter(|native| native.dialect == "mysql");
        Ok(native
            .and_then(|native| TypeText::parse(&native.sql).ok())
            .is_none_or(|known| known.name == self.ty.name && known.unsigned == self.ty.unsigned))
    }
}

fn text(value: Value<'_>, what: &str) -> Result<String, String> {
    let Value::Text(text) = value else { return Err(format!("`{what}` holds something else than strings")) };
    String::from_utf8(plain(text)?.into_owned()).map_err(|_| format!("`{what}` is not UTF-8"))
}

/// The columns of `mysqlType`, an object that was scanned before.
///
/// # Errors
/// When a type cannot be read.
pub(super) fn observe(raw: &[u8]) -> Result<Vec<Observed>, String> {
    let mut columns: Vec<Observed> = Vec::new();
    let mut scanner = Scanner::new(raw);
    scanner.take(b'{');
    while !scanner.take(b'}') {
        let name = text(Value::Text(scanner.name()?), "mysqlType")?;
        let sql = text(scanner.value()?, "mysqlType")?;
        let ty = TypeText::parse(&sql).map_err(|e| format!("column `{name}`: {e}"))?;
        let column = Observed { name, sql, ty };
        match columns.iter_mut().find(|c| c.name == column.name) {
            Some(earlier) => *earlier = column,
            None => columns.push(column),
        }
        scanner.take(b',');
    }
    Ok(columns)
}

/// The names of `pkNames`, an array that was scanned before.
///
/// # Errors
/// When something in it is no string.
pub(super) fn key_names(raw: &[u8]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut scanner = Scanner::new(raw);
    scanner.take(b'[');
    while !scanner.take(b']') {
        names.push(text(scanner.value()?, "pkNames")?);
        scanner.take(b',');
    }
    Ok(names)
}

/// The numbers of `sqlType` by column name; members that are no small numbers are left out.
///
/// # Errors
/// When a name is not a text.
pub(super) fn sql_types(raw: &[u8]) -> Result<Vec<(Vec<u8>, i32)>, String> {
    let mut numbers = Vec::new();
    let mut scanner = Scanner::new(raw);
    scanner.take(b'{');
    while !scanner.take(b'}') {
        let name = plain(scanner.name()?)?.into_owned();
        if let Value::Number(digits) = scanner.value()?
            && let Some(number) = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok())
        {
            numbers.push((name, number));
        }
        scanner.take(b',');
    }
    Ok(numbers)
}

/// The change that makes a table known.
///
/// # Errors
/// When a type has no mapping or the key names no column.
pub(super) fn create(
    id: TableId,
    observed: &[Observed],
    key: Vec<String>,
) -> Result<StructureChange, String> {
    if observed.is_empty() {
        return Err("structure of the table is not known: `mysqlType` is empty".to_owned());
    }
    if let Some(missing) = key.iter().find(|name| !observed.iter().any(|c| c.name == **name)) {
        return Err(format!("key column `{missing}` is not in `mysqlType`"));
    }
    let columns = observed.iter().map(|c| c.column(!key.contains(&c.name))).collect::<Result<_, _>>()?;
    let statement = format!("table {id} is told by the type texts of its rows");
    Ok(StructureChange {
        kind: SchemaChangeKind::CreateTable,
        before: None,
        after: Arc::new(TableSchema::new(id, columns, key)),
        statement,
        alone: false,
    })
}

/// The first of the changes that lead from `known` to what a message shows: new columns, then types, then the key.
///
/// # Errors
/// When a type has no mapping or the key names no column.
pub(super) fn difference(
    known: &Arc<TableSchema>,
    observed: &[Observed],
    key: Option<Vec<String>>,
) -> Result<Option<StructureChange>, String> {
    let mut after = (**known).clone();
    after.version += 1;
    let change = |kind, after, statement| {
        Some(StructureChange {
            kind,
            before: Some(known.clone()),
            after: Arc::new(after),
            statement,
            alone: false,
        })
    };
    let added = add_columns(&mut after, observed)?;
    if !added.is_empty() {
        let names: Vec<&str> = added.iter().map(|(c, _)| c.name.as_str()).collect();
        let statement = format!("rows of {} have new columns: {}", known.id, names.join(", "));
        return Ok(change(SchemaChangeKind::AddColumns(added), after, statement));
    }
    let retyped = change_types(&mut after, observed)?;
    if !retyped.is_empty() {
        let statement = format!("columns of {} have other types: {}", known.id, retyped.join(", "));
        return Ok(change(SchemaChangeKind::Other("alter.column.type".to_owned()), after, statement));
    }
    let Some(key) = key.filter(|key| !key.is_empty() && *key != known.primary_key) else { return Ok(None) };
    for column in &mut after.columns {
        let (was, is) = (known.primary_key.contains(&column.name), key.contains(&column.name));
        column.nullable = if is { false } else { was || column.nullable };
    }
    if let Some(missing) = key.iter().find(|name| after.column(name).is_none()) {
        return Err(format!("key column `{missing}` is not in `mysqlType`"));
    }
    let statement = format!("table {} has the key {}", known.id, key.join(", "));
    after.primary_key = key;
    Ok(change(SchemaChangeKind::Other("alter.primary.key".to_owned()), after, statement))
}

fn add_columns(after: &mut TableSchema, observed: &[Observed]) -> Result<Vec<(Column, ColumnPlace)>, String> {
    let mut added = Vec::new();
    let mut previous: Option<&str> = None;
    for seen in observed {
        if after.column(&seen.name).is_none() {
            let at = previous.and_then(|name| after.column_index(name)).map_or(0, |index| index + 1);
            let place = match previous {
                _ if at == after.columns.len() => ColumnPlace::Last,
                Some(name) => ColumnPlace::After(name.to_owned()),
                None => ColumnPlace::First,
            };
            let column = seen.column(true)?;
            after.columns.insert(at, column.clone());
            added.push((column, place));
        }
        previous = Some(&seen.name);
    }
    Ok(added)
}

fn change_types(after: &mut TableSchema, observed: &[Observed]) -> Result<Vec<String>, String> {
    let mut changed = Vec::new();
    for seen in observed {
        let Some(column) = after.columns.iter_mut().find(|c| c.name == seen.name) else { continue };
        if !seen.is_same_type(column)? {
            changed.push(format!("{} is {}", seen.name, seen.sql));
            *column = seen.column(column.nullable)?;
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(raw: &str, key: &[&str]) -> Arc<TableSchema> {
        let key = key.iter().map(|k| (*k).to_owned()).collect();
        create(TableId::new("d", "t"), &observe(raw.as_bytes()).unwrap(), key).unwrap().after
    }

    fn names(schema: &TableSchema) -> Vec<&str> {
        schema.columns.iter().map(|c| c.name.as_str()).collect()
    }

    #[test]
    fn new_columns_stand_where_the_message_has_them() {
        let known = table(r#"{"a":"int","b":"int"}"#, &["a"]);
        let observed =
            observe(br#"{"z":"int","a":"int","m":"text","n":"date","b":"int","e":"json"}"#).unwrap();
        let change = difference(&known, &observed, None).unwrap().unwrap();
        assert_eq!(names(&change.after), ["z", "a", "m", "n", "b", "e"]);
        let SchemaChangeKind::AddColumns(added) = change.kind else { panic!("{:?}", change.kind) };
        let places: Vec<ColumnPlace> = added.into_iter().map(|(_, place)| place).collect();
        let after = |name: &str| ColumnPlace::After(name.to_owned());
        assert_eq!(places, [ColumnPlace::First, after("a"), after("m"), ColumnPlace::Last]);
        assert!(difference(&change.after, &observed, None).unwrap().is_none());
    }

    #[test]
    fn other_types_and_keys_are_changes_of_their_own() {
        let known = table(r#"{"a":"int(11)","b":"text"}"#, &[]);
        let tag = |raw: &str, key: Option<&str>| {
            let key = key.map(|k| vec![k.to_owned()]);
            difference(&known, &observe(raw.as_bytes()).unwrap(), key).unwrap().map(|c| match c.kind {
                SchemaChangeKind::Other(tag) => tag,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(tag(r#"{"a":"int","b":"text"}"#, None), None);
        assert_eq!(tag(r#"{"b":"text"}"#, None), None);
        assert_eq!(tag(r#"{"a":"int","b":"longtext"}"#, None).as_deref(), Some("alter.column.type"));
        assert_eq!(tag(r#"{"a":"int unsigned","b":"text"}"#, None).as_deref(), Some("alter.column.type"));
        assert_eq!(tag(r#"{"a":"int","b":"text"}"#, Some("a")).as_deref(), Some("alter.primary.key"));
    }

    #[test]
    fn types_that_cannot_be_read_are_refused() {
        for raw in [r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":""}"#, r#"{"a":"enum('x"}"#] {
            assert!(observe(raw.as_bytes()).is_err(), "{raw}");
        }
        let id = || TableId::new("d", "t");
        assert!(create(id(), &[], Vec::new()).is_err());
        assert!(create(id(), &observe(br#"{"a":"hyperloglog"}"#).unwrap(), Vec::new()).is_err());
        assert!(create(id(), &observe(br#"{"a":"int"}"#).unwrap(), vec!["b".into()]).is_err());
    }
}
