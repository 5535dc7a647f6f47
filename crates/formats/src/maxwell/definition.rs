//! Owns the structure of a table out of the `def` of a DDL message.

use std::sync::Arc;

use canalis_types::{
    Column, ColumnPlace, LogicalType, NativeType, SchemaChangeKind, TableId, TableSchema,
    mysql_type::{TinyInt1, TypeText},
};

use super::envelope::{plain, plain_str};
use crate::{
    json::scan::{Scanner, Value},
    message::StructureChange,
};

/// Characters of the longest text that MySQL takes into a key.
const KEY_CHARACTERS: u32 = 768;
/// Bytes of the longest key.
const KEY_BYTES: u32 = 3072;

/// A column of `def`.
#[derive(Debug, Default)]
struct Defined {
    name: String,
    ty: String,
    signed: Option<bool>,
    length: Option<u32>,
    charset: Option<String>,
    labels: Vec<String>,
}

/// The structure that a definition describes.
///
/// # Errors
/// When it is not a definition or a type of it is not supported.
pub(super) fn table(id: TableId, definition: &[u8]) -> Result<TableSchema, String> {
    let mut scanner = Scanner::new(definition);
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    object(&mut scanner, |name, value| {
        match (name, value) {
            (b"columns", Value::Container(raw)) => {
                array(raw, |value| {
                    columns.push(defined(value)?);
                    Ok(())
                })?;
            }
            (b"primary-key", Value::Container(raw)) => key = strings(raw)?,
            _ => {}
        }
        Ok(())
    })?;
    if columns.is_empty() {
        return Err("`def` has no columns".to_owned());
    }
    let is_key = |name: &str| key.iter().any(|k| k == name);
    let columns: Vec<Column> =
        columns.into_iter().map(|c| c.column(is_key(&c.name))).collect::<Result<_, _>>()?;
    if let Some(missing) = key.iter().find(|k| !columns.iter().any(|c| c.name == **k)) {
        return Err(format!("key column `{missing}` of `def` is not among its columns"));
    }
    Ok(TableSchema::new(id, columns, key))
}

/// The change that leads to a definition; `None` when the structure is known already. Types that the definition does not tell
/// (lengths, precisions) stay as they are known.
pub(super) fn change(
    before: Option<Arc<TableSchema>>,
    defined: TableSchema,
    statement: String,
) -> Option<StructureChange> {
    let Some(before) = before else {
        let (kind, after) = (SchemaChangeKind::CreateTable, Arc::new(defined));
        return Some(StructureChange { kind, before: None, after, statement, alone: true });
    };
    let mut after = defined;
    let (mut added, mut retyped) = (Vec::new(), false);
    let count = after.columns.len();
    let mut previous: Option<String> = None;
    for (at, column) in after.columns.iter_mut().enumerate() {
        match before.column(&column.name) {
            Some(known) if column.native.is_none() || is_same_type(known, column) => *column = known.clone(),
            Some(_) => retyped = true,
            None => {
                let place = match previous.take() {
                    _ if at + 1 == count => ColumnPlace::Last,
                    Some(name) => ColumnPlace::After(name),
                    None => ColumnPlace::First,
                };
                added.push((column.clone(), place));
            }
        }
        previous = Some(column.name.clone());
    }
    let dropped = before.columns.iter().any(|c| after.column(&c.name).is_none());
    let kind = match () {
        () if dropped => SchemaChangeKind::Other("drop.column".to_owned()),
        () if retyped => SchemaChangeKind::Other("alter.column.type".to_owned()),
        () if before.primary_key != after.primary_key => {
            SchemaChangeKind::Other("alter.primary.key".to_owned())
        }
        () if !added.is_empty() => SchemaChangeKind::AddColumns(added),
        () => return None,
    };
    after.version = before.version + 1;
    Some(StructureChange { kind, before: Some(before), after: Arc::new(after), statement, alone: true })
}

fn is_same_type(known: &Column, defined: &Column) -> bool {
    let boolean = |ty: &LogicalType| matches!(ty, LogicalType::Boolean);
    known.ty == defined.ty || (boolean(&known.ty) && defined.ty == LogicalType::Int8)
}

impl Defined {
    fn column(&self, is_key: bool) -> Result<Column, String> {
        let Some(sql) = self.type_text() else {
            return Ok(Column::new(&self.name, self.widest(is_key), !is_key));
        };
        let text = TypeText::parse(&sql).map_err(|e| e.message().to_owned())?;
        let ty = text
            .logical(TinyInt1::Integer)
            .map_err(|e| format!("column `{}` of `def`: {}", self.name, e.message()))?;
        let native = NativeType {
            dialect: "mysql".to_owned(),
            sql,
            charset: self.charset.clone(),
            collation: None,
            auto_increment: false,
            generated: None,
        };
        Ok(Column { native: Some(native), ..Column::new(&self.name, ty, !is_key) })
    }

    /// The whole type text; `None` when the definition does not tell it.
    fn type_text(&self) -> Option<String> {
        let ty = self.ty.to_ascii_lowercase();
        match ty.as_str() {
            "enum" | "set" => {
                let labels: Vec<String> = self.labels.iter().map(|l| quoted(l)).collect();
                Some(format!("{ty}({})", labels.join(",")))
            }
            "time" | "datetime" | "timestamp" => Some(match self.length {
                Some(length) if length > 0 => format!("{ty}({length})"),
                _ => ty,
            }),
            "bit" => self.length.map(|length| format!("bit({length})")),
            "decimal" | "numeric" | "char" | "varchar" | "binary" | "varbinary" => None,
            _ if self.signed == Some(false) => Some(format!("{ty} unsigned")),
            _ => Some(ty),
        }
    }

    /// A type that holds whatever the column may.
    fn widest(&self, is_key: bool) -> LogicalType {
        match self.ty.to_ascii_lowercase().as_str() {
            "bit" => LogicalType::Bit { length: 64 },
            "decimal" | "numeric" => LogicalType::Decimal { precision: 65, scale: 30 },
            "char" | "varchar" if self.charset.as_deref() != Some("binary") => {
                if is_key {
                    LogicalType::Varchar { length: KEY_CHARACTERS }
                } else {
                    LogicalType::Text
                }
            }
            _ if is_key => LogicalType::Varbinary { length: KEY_BYTES },
            _ => LogicalType::Bytes,
        }
    }
}

fn quoted(label: &str) -> String {
    format!("'{}'", label.replace('\\', "\\\\").replace('\'', "''"))
}

fn defined(value: Value<'_>) -> Result<Defined, String> {
    let Value::Container(raw) = value else { return Err(wrong("a column is not an object")) };
    let mut column = Defined::default();
    object(&mut Scanner::new(raw), |name, value| {
        match (name, value) {
            (b"name", Value::Text(text)) => column.name = plain_str(text)?.into_owned(),
            (b"type", Value::Text(text)) => column.ty = plain_str(text)?.into_owned(),
            (b"charset", Value::Text(text)) => column.charset = Some(plain_str(text)?.into_owned()),
            (b"signed", Value::Boolean(signed)) => column.signed = Some(signed),
            (b"column-length", Value::Number(digits)) => {
                column.length = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
            }
            (b"enum-values", Value::Container(raw)) => column.labels = strings(raw)?,
            _ => {}
        }
        Ok(())
    })?;
    if column.name.is_empty() || column.ty.is_empty() {
        return Err(wrong("a column lacks its name or type"));
    }
    Ok(column)
}

fn wrong(why: &str) -> String {
    format!("`def` is not a table definition: {why}")
}

fn object<'a>(
    scanner: &mut Scanner<'a>,
    mut member: impl FnMut(&[u8], Value<'a>) -> Result<(), String>,
) -> Result<(), String> {
    if !scanner.take(b'{') {
        return Err(wrong("expected an object"));
    }
    if scanner.take(b'}') {
        return Ok(());
    }
    loop {
        let name = plain(scanner.name().map_err(wrong)?)?;
        member(&name, scanner.value().map_err(wrong)?)?;
        if scanner.take(b'}') {
            return Ok(());
        }
        if !scanner.take(b',') {
            return Err(wrong("expected a comma or a closing brace"));
        }
    }
}

fn array<'a>(raw: &'a [u8], mut item: impl FnMut(Value<'a>) -> Result<(), String>) -> Result<(), String> {
    let mut scanner = Scanner::new(raw);
    if !scanner.take(b'[') {
        return Err(wrong("expected an array"));
    }
    if scanner.take(b']') {
        return Ok(());
    }
    loop {
        item(scanner.value().map_err(wrong)?)?;
        if scanner.take(b']') {
            return Ok(());
        }
        if !scanner.take(b',') {
            return Err(wrong("expected a comma or a closing bracket"));
        }
    }
}

fn strings(raw: &[u8]) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    array(raw, |value| match value {
        Value::Text(text) => {
            out.push(plain_str(text)?.into_owned());
            Ok(())
        }
        _ => Err(wrong("expected strings")),
    })?;
    Ok(out)
}
