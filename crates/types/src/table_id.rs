//! Owns [`TableId`], the name of a table in one to three parts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of a table: `table`, `schema.table` or `namespace.schema.table`. For MySQL the schema part is
/// the database; for PostgreSQL it is the schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableId {
    /// Outermost part, if the system has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Database (MySQL) or schema (PostgreSQL).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The table itself.
    pub table: String,
}

impl TableId {
    /// `schema.table`.
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { namespace: None, schema: Some(schema.into()), table: table.into() }
    }

    /// A bare table name.
    pub fn bare(table: impl Into<String>) -> Self {
        Self { namespace: None, schema: None, table: table.into() }
    }

    /// Parses a literal id by splitting at every dot; `None` with no or more than three parts, or an empty part.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('.').map(str::trim).collect();
        if parts.iter().any(|p| p.is_empty()) {
            return None;
        }
        match parts.as_slice() {
            [t] => Some(Self::bare(*t)),
            [s, t] => Some(Self::new(*s, *t)),
            [n, s, t] => {
                Some(Self { namespace: Some((*n).into()), schema: Some((*s).into()), table: (*t).into() })
            }
            _ => None,
        }
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.namespace, &self.schema].into_iter().flatten() {
            write!(f, "{part}.")?;
        }
        f.write_str(&self.table)
    }
}
