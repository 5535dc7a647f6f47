//! Owns what the server's catalog says about a target table.

use canalis_types::{Code, Error, Result};
use tokio_postgres::Client;

use crate::{error::to_error, types::ActualType};

/// A table as it is.
#[derive(Debug)]
pub struct ActualTable {
    /// `pg_class.relkind`: `r` table, `p` partitioned table, `v` view, …
    pub kind: char,
    /// Columns in order.
    pub columns: Vec<ActualColumn>,
    /// Unique indexes and exclusion constraints.
    pub uniques: Vec<UniqueIndex>,
    /// Names of its foreign keys.
    pub foreign_keys: Vec<String>,
}

/// A column as it is.
#[derive(Debug)]
pub struct ActualColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: ActualType,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Whether the server computes it, so that it cannot be written.
    pub generated: bool,
    /// Whether a row may leave it out.
    pub has_default: bool,
}

/// A unique index.
#[derive(Debug)]
pub struct UniqueIndex {
    /// Whether it is the primary key.
    pub primary: bool,
    /// Whether it can settle `ON CONFLICT`: plain columns, no condition, checked at once.
    pub arbiter: bool,
    /// Its columns.
    pub columns: Vec<String>,
}

impl ActualTable {
    /// The column with exactly this name.
    pub fn column(&self, name: &str) -> Option<&ActualColumn> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Whether some unique index over exactly these columns can settle `ON CONFLICT`.
    pub fn has_arbiter(&self, key: &[String]) -> bool {
        self.uniques.iter().any(|u| u.arbiter && same(&u.columns, key))
    }

    /// Whether rows with different keys can collide in another unique index.
    pub fn has_other_unique(&self, key: &[String]) -> bool {
        self.uniques.iter().any(|u| !same(&u.columns, key))
    }
}

fn same(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().all(|name| b.contains(name))
}

const COLUMNS: &str = "SELECT a.attname::text, b.typname::text, b.typtype::text, \
    CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END, \
    coalesce(c.collisdeterministic, true), format_type(a.atttypid, a.atttypmod), \
    a.attnotnull OR (t.typtype = 'd' AND t.typnotnull), a.attgenerated <> '', \
    a.atthasdef OR a.attidentity <> '' OR NOT a.attnotnull \
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
    JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END \
    LEFT JOIN pg_collation c ON c.oid = a.attcollation \
    WHERE a.attrelid = to_regclass($1::text) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

const UNIQUES: &str = "SELECT i.indisprimary, \
    i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL, \
    ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place) \
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number \
      WHERE k.place <= i.indnkeyatts ORDER BY k.place) \
    FROM pg_index i WHERE i.indrelid = to_regclass($1::text) AND i.indisvalid \
    AND (i.indisunique OR i.indisexclusion)";

const FOREIGN_KEYS: &str = "SELECT conname::text FROM pg_constraint \
    WHERE contype = 'f' AND conrelid = to_regclass($1::text) ORDER BY 1";

/// Looks a table up by its quoted, qualified name; `None` when it does not exist.
pub async fn load(client: &Client, table: &str) -> Result<Option<ActualTable>> {
    let fail = |e| to_error(&format!("looking up table {table}"), e);
    let kind = client
        .query_opt("SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1::text)", &[&table])
        .await
        .map_err(fail)?;
    let Some(kind) = kind else { return Ok(None) };
    let letter = |text: String| text.chars().next().unwrap_or(' ');
    let mut columns = Vec::new();
    for row in client.query(COLUMNS, &[&table]).await.map_err(fail)? {
        columns.push(ActualColumn {
            name: row.get(0),
            ty: ActualType {
                name: row.get(1),
                kind: letter(row.get(2)),
                modifier: row.get(3),
                deterministic: row.get(4),
                sql: row.get(5),
            },
            not_null: row.get(6),
            generated: row.get(7),
            has_default: row.get(8),
        });
    }
    let mut uniques = Vec::new();
    for row in client.query(UNIQUES, &[&table]).await.map_err(fail)? {
        uniques.push(UniqueIndex { primary: row.get(0), arbiter: row.get(1), columns: row.get(2) });
    }
    let rows = client.query(FOREIGN_KEYS, &[&table]).await.map_err(fail)?;
    let foreign_keys = rows.iter().map(|r| r.get(0)).collect();
    Ok(Some(ActualTable { kind: letter(kind.get(0)), columns, uniques, foreign_keys }))
}

/// Server version as `server_version_num` has it: 150004 is 15.4.
pub async fn server_version(client: &Client) -> Result<i32> {
    let text: String = client
        .query_one("SELECT current_setting('server_version_num')", &[])
        .await
        .map_err(|e| to_error("asking for the server version", e))?
        .get(0);
    text.parse().map_err(|_| Error::new(Code::SinkFailed, format!("server version `{text}` is not a number")))
}
