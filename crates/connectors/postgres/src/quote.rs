//! Owns quoting of identifiers and literals in PostgreSQL's SQL.

use canalis_types::{Code, Error, Result};

/// Bytes of an identifier that the server keeps; it cuts longer ones in silence (`NAMEDATALEN`).
pub const MAX_IDENTIFIER_BYTES: usize = 63;

/// Names that a user column cannot have.
const SYSTEM_COLUMNS: &[&str] = &["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// An identifier in double quotes.
pub fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text literal; needs `standard_conforming_strings = on`, which every session of ours sets.
pub fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// Refuses a name that PostgreSQL would cut or cannot hold.
///
/// # Errors
/// `CNL-3004` naming the identifier.
pub fn check_identifier(what: &str, name: &str) -> Result<()> {
    let refuse = |why: String| Err(Error::new(Code::TargetIncompatible, format!("{what} `{name}` {why}")));
    if name.len() > MAX_IDENTIFIER_BYTES {
        return refuse(format!(
            "has {} bytes and PostgreSQL keeps {MAX_IDENTIFIER_BYTES}; give a shorter name by a route or projection",
            name.len()
        ));
    }
    if name.is_empty() || name.contains('\0') {
        return refuse("is not an identifier".to_owned());
    }
    if what == "column" && SYSTEM_COLUMNS.contains(&name) {
        return refuse("has the name of a system column; rename it by a projection".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sk_03_odd_names_are_quoted() {
        assert_eq!(ident("x\"y"), "\"x\"\"y\"");
        assert_eq!(ident("a`b"), "\"a`b\"");
        assert_eq!(literal("it's \\"), "'it''s \\'");
    }

    #[test]
    fn sk_09_long_names_are_refused() {
        assert!(check_identifier("table", &"n".repeat(63)).is_ok());
        assert!(check_identifier("table", &"n".repeat(64)).is_err());
        // 22 characters of three bytes.
        assert!(check_identifier("table", &"列".repeat(22)).is_err());
        assert!(check_identifier("column", "ctid").is_err());
        assert!(check_identifier("table", "ctid").is_ok());
    }
}
