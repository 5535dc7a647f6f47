//! Owns digests of tables, for comparing a source with its target. They are computed by the databases and
//! fetched with their own command line clients by `scripts/table-digest`, so that none of our code is involved.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::server::{Server, ServerKind};

/// What a table holds, regardless of the order of its rows: equal tables have equal digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// The number of rows.
    pub rows: u64,
    /// Exclusive or, and sum, over the SHA-256 of the canonical text of each row.
    pub content: String,
}

/// The digest of all columns of a table, taken in the order of their names.
///
/// For PostgreSQL `table` may be `schema.table`; without a schema it is in `public`. It blocks while the
/// client runs.
///
/// # Panics
/// When the client cannot be run or the table cannot be read.
pub fn table_digest(server: &Server, database: &str, table: &str) -> Digest {
    table_digest_of(server, database, table, &[])
}

/// The digest of the named columns only; all of them when there are none.
///
/// # Panics
/// When the client cannot be run or the table cannot be read.
pub fn table_digest_of(server: &Server, database: &str, table: &str, columns: &[&str]) -> Digest {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/table-digest");
    let client = match server.kind {
        ServerKind::MariaDb | ServerKind::MySql => "mysql",
        ServerKind::Postgres => "postgres",
        ServerKind::Kafka | ServerKind::Pulsar | ServerKind::RocketMq => panic!("{server} has no tables"),
    };
    let output = Command::new("bash")
        .arg(&script)
        .arg(client)
        .arg(server.port.to_string())
        .args([server.username.as_str(), database, table])
        .args(columns)
        .env("CANALIS_PASSWORD", &server.password)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("running {}: {error}", script.display()));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "digest of {database}.{table} on {server}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let (rows, content) = text.trim().split_once(' ').expect("the script prints rows and content");
    Digest { rows: rows.parse().expect("the script prints a number of rows"), content: content.to_owned() }
}
