//! Owns quoting of identifiers and literals in MySQL's SQL.

use canalis_types::TableId;

/// An identifier in backquotes.
pub fn ident(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A qualified table name in backquotes; the schema part is the database.
pub fn table(id: &TableId) -> String {
    match &id.schema {
        Some(database) => format!("{}.{}", ident(database), ident(&id.table)),
        None => ident(&id.table),
    }
}

/// A text literal that is right under every `sql_mode` (no backslash escapes are relied on).
pub fn text(value: &str) -> String {
    format!("_utf8mb4 X'{}'", hex(value.as_bytes()))
}

/// A binary literal.
pub fn bytes(value: &[u8]) -> String {
    format!("X'{}'", hex(value))
}

fn hex(value: &[u8]) -> String {
    value.iter().map(|b| format!("{b:02X}")).collect()
}
