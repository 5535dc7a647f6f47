//! Owns dead letters as rows of an SQLite database: a transaction for each call, on the disk when it returns.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use canalis_connector_api::DeadLetter;
use canalis_types::{Code, Error, Result};
use rusqlite::{Connection, TransactionBehavior};
use serde::Serialize;

use super::Store;

/// How long a letter waits for another program that writes to the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Version of the table, kept as `user_version`.
const VERSION: i64 = 1;

/// Others may read at any time (WAL), and a commit is on the disk when it returns (FULL).
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

/// The fields of a JSON line, with JSON as text. `dead_letters_once`: the place of a record that does not decode is
/// exact, so the same record is kept once however often it is read.
const TABLE: &str = r#"
    CREATE TABLE dead_letters (
        id INTEGER PRIMARY KEY,
        table_namespace TEXT,
        table_schema TEXT,
        table_name TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT,
        payload TEXT NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        position TEXT
    ) STRICT;
    CREATE UNIQUE INDEX dead_letters_once ON dead_letters (table_name, position, payload)
        WHERE code = 'CNL-2006' AND position IS NOT NULL;
    PRAGMA user_version = 1;"#;

const INSERT: &str = "INSERT INTO dead_letters \
    (table_namespace, table_schema, table_name, kind, key, payload, code, reason, position) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
    ON CONFLICT (table_name, position, payload) WHERE code = 'CNL-2006' AND position IS NOT NULL DO NOTHING";

/// A database file with the table `dead_letters`.
#[derive(Debug)]
pub(super) struct SqliteFile {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl SqliteFile {
    /// The file is opened, and made if it is missing, with the first letter.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, connection: Mutex::new(None) }
    }

    fn failed(&self, error: rusqlite::Error) -> Error {
        Error::new(Code::LocalIo, format!("writing {}", self.path.display())).with_source(error)
    }

    fn open(&self) -> Result<Connection> {
        let fail = |e| self.failed(e);
        let mut connection = Connection::open(&self.path).map_err(fail)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
        connection.execute_batch(SETTINGS).map_err(fail)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        let version: i64 =
            transaction.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fail)?;
        match version {
            0 => transaction.execute_batch(TABLE).map_err(fail)?,
            VERSION => {}
            _ => {
                let text = format!("{} is of version {version}, known is {VERSION}", self.path.display());
                return Err(Error::new(Code::StateIncompatible, text));
            }
        }
        transaction.commit().map_err(fail)?;
        Ok(connection)
    }

    fn write(&self, connection: &mut Connection, letters: &[DeadLetter]) -> Result<()> {
        let fail = |e| self.failed(e);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
        {
            let mut insert = transaction.prepare_cached(INSERT).map_err(fail)?;
            for letter in letters {
                let kind = serde_json::to_value(letter.kind).map_err(no_json)?;
                let key = if letter.key.is_null() { None } else { Some(json(&letter.key)?) };
                insert
                    .execute((
                        &letter.table.namespace,
                        &letter.table.schema,
                        &letter.table.table,
                        kind.as_str(),
                        key,
                        json(&letter.payload)?,
                        letter.code.to_string(),
                        &letter.reason,
                        letter.position.as_ref().map(json).transpose()?,
                    ))
                    .map_err(fail)?;
            }
        }
        transaction.commit().map_err(fail)
    }
}

impl Store for SqliteFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn append(&self, letters: &[DeadLetter]) -> Result<()> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        self.write(&mut connection, letters)?;
        *slot = Some(connection);
        Ok(())
    }
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> Error {
    Error::internal("dead letter has no JSON form").with_source(error)
}
