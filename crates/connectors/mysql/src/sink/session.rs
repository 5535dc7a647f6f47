//! Owns sessions of the sink: settings under which no value is altered in silence, statements with their
//! outcome, LOAD DATA streams, and what the server allows.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use canalis_types::{Code, Error, Result};
use futures::stream::BoxStream;
use mysql_async::{
    Conn,
    prelude::{FromRow, Queryable},
};

use super::{
    config::{ChangeLog, LoadData, SinkConfig},
    failure::Failure,
};
use crate::{Endpoint, Flavor, ServerInfo, server_info};

/// What a server is and allows.
#[derive(Debug, Clone)]
pub(super) struct ServerFacts {
    /// Family and version.
    pub info: ServerInfo,
    /// Largest packet, in bytes.
    pub max_allowed_packet: usize,
    /// Whether LOAD DATA LOCAL is allowed by the server and wanted.
    pub load_data: bool,
    /// Whether statements that load many rows lock a table with AUTO_INCREMENT against each other.
    pub bulk_inserts_lock: bool,
    /// Whether table names are compared without regard to case.
    pub folds_table_names: bool,
    /// Names of all collations, lower case.
    pub collations: HashSet<String>,
    isolation: &'static str,
}

impl ServerFacts {
    /// Whether it is MariaDB.
    pub(super) fn is_mariadb(&self) -> bool {
        self.info.flavor == Flavor::MariaDb
    }

    /// A collation under which texts are equal only when every byte is, trailing blanks included.
    pub(super) fn exact_collation(&self) -> &'static str {
        if self.is_mariadb() { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" }
    }

    /// Largest statement that the server takes, in bytes.
    pub(super) fn statement_limit(&self) -> usize {
        // Room for the command byte and the server's own bookkeeping.
        self.max_allowed_packet.saturating_sub(1024).max(1024)
    }
}

/// How the session treats values that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Refuses them.
    Strict,
    /// Adjusts them with a warning each; the caller counts the warnings.
    Counted,
}

impl Strictness {
    // Zero and partly-zero dates and days like 31 February are legal values of MySQL; 0 is a legal value of an
    // AUTO_INCREMENT column.
    fn sql_mode(self) -> &'static str {
        match self {
            Strictness::Strict => {
                "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ALLOW_INVALID_DATES,\
                 NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"
            }
            Strictness::Counted => {
                "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"
            }
        }
    }
}

/// What a statement did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    /// Rows changed.
    pub affected: u64,
    /// Warnings and notes.
    pub warnings: u16,
}

/// One connection, in a transaction from its first statement on (`autocommit = 0`).
pub(super) struct Session {
    conn: Conn,
    /// What the server is and allows.
    pub facts: Arc<ServerFacts>,
    endpoint: Endpoint,
    strictness: Strictness,
    /// Statements that were not run, while they are only written down.
    recorded: Option<Vec<String>>,
}

impl Session {
    /// Connects and sets the session up. Facts are asked once per sink and passed on by later calls.
    ///
    /// # Errors
    /// Unreachable or access denied.
    pub(super) async fn open(config: &SinkConfig, known: Option<Arc<ServerFacts>>) -> Result<Self> {
        let mut conn = config.endpoint.connect().await?;
        let facts = match known {
            Some(facts) => facts,
            None => Arc::new(ask_facts(config, &mut conn).await?),
        };
        let mut setup = vec![
            Strictness::Strict.sql_mode().to_owned(),
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", facts.isolation),
            // Rows of child tables may come before their parents: the source has checked them.
            "SET SESSION foreign_key_checks = 0, unique_checks = 1, autocommit = 0".to_owned(),
            // A stream may be quiet for days.
            "SET SESSION wait_timeout = 31536000".to_owned(),
        ];
        if config.change_log == ChangeLog::Skipped {
            setup.push("SET SESSION sql_log_bin = 0".to_owned());
        }
        for statement in setup {
            conn.query_drop(&statement)
                .await
                .map_err(|e| config.endpoint.error("setting up a session of the sink", e))?;
        }
        Ok(Self {
            conn,
            facts,
            endpoint: config.endpoint.clone(),
            strictness: Strictness::Strict,
            recorded: None,
        })
    }

    /// Runs a statement without result rows. Several statements separated by `;` run up to the first failure.
    pub(super) async fn run(&mut self, doing: &str, sql: &[u8]) -> Result<Outcome, Failure> {
        if let Some(recorded) = &mut self.recorded {
            recorded.push(String::from_utf8_lossy(sql).into_owned());
            return Ok(Outcome { affected: 1, warnings: 0 });
        }
        let result = self.conn.query_drop(sql).await;
        self.outcome(doing, result)
    }

    fn outcome(&self, doing: &str, result: mysql_async::Result<()>) -> Result<Outcome, Failure> {
        match result {
            Ok(()) => Ok(Outcome { affected: self.conn.affected_rows(), warnings: self.conn.get_warnings() }),
            Err(error) => Err(Failure::sort(&self.endpoint, doing, error)),
        }
    }

    /// Runs a LOAD DATA LOCAL statement over `data`. The server never fails on a row here: it warns and goes on.
    pub(super) async fn load(
        &mut self,
        doing: &str,
        sql: &str,
        data: impl FnOnce() -> BoxStream<'static, std::io::Result<Bytes>> + Send + Sync + 'static,
    ) -> Result<Outcome, Failure> {
        self.conn.set_infile_handler(async move { Ok(data()) });
        let result = self.conn.query_drop(sql).await;
        self.outcome(doing, result)
    }

    /// Rows of a query.
    pub(super) async fn rows<T>(&mut self, doing: &str, sql: impl AsRef<[u8]>) -> Result<Vec<T>, Failure>
    where
        T: FromRow + Send + 'static,
    {
        if self.is_recording() {
            return Ok(Vec::new());
        }
        self.conn.query(sql.as_ref()).await.map_err(|error| Failure::sort(&self.endpoint, doing, error))
    }

    /// From now on statements are written down instead of run, and taken to have done what they should.
    pub(super) fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// Whether statements are only written down.
    pub(super) fn is_recording(&self) -> bool {
        self.recorded.is_some()
    }

    /// Ends the recording with what was written down.
    pub(super) fn recorded(&mut self) -> Vec<String> {
        self.recorded.take().unwrap_or_default()
    }

    /// Number and text of the last statement's warnings (the server keeps a limited number).
    pub(super) async fn warnings(&mut self) -> Result<Vec<(u16, String)>, Failure> {
        let rows: Vec<(String, u16, String)> = self.rows("reading warnings", "SHOW WARNINGS").await?;
        Ok(rows.into_iter().map(|(_, code, message)| (code, message)).collect())
    }

    /// Switches how values that do not fit are treated.
    pub(super) async fn set_strictness(&mut self, strictness: Strictness) -> Result<(), Failure> {
        if self.strictness != strictness {
            self.run("setting sql_mode", strictness.sql_mode().as_bytes()).await?;
            self.strictness = strictness;
        }
        Ok(())
    }

    /// Runs a statement of structure or bookkeeping and commits it.
    pub(super) async fn execute(&mut self, doing: &str, sql: &str) -> Result<()> {
        self.run(doing, sql.as_bytes()).await.map_err(|f| f.into_error(doing))?;
        self.run(doing, b"COMMIT").await.map(drop).map_err(|f| f.into_error(doing))
    }

    /// Rows of a query outside any transaction of rows.
    pub(super) async fn ask<T>(&mut self, doing: &str, sql: &str) -> Result<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        let rows = self.rows(doing, sql).await.map_err(|f| f.into_error(doing))?;
        self.run(doing, b"COMMIT").await.map_err(|f| f.into_error(doing))?;
        Ok(rows)
    }

    /// Gives up the transaction.
    pub(super) async fn rollback(&mut self) -> Result<()> {
        self.run("rolling back", b"ROLLBACK").await.map(drop).map_err(|f| f.into_error("rolling back"))
    }

    /// Ends the connection politely.
    pub(super) async fn close(self) {
        // The work is done; a failure to say goodbye changes nothing.
        let _ = self.conn.disconnect().await;
    }
}

async fn ask_facts(config: &SinkConfig, conn: &mut Conn) -> Result<ServerFacts> {
    let endpoint = &config.endpoint;
    let info = server_info(endpoint, conn).await?;
    let doing = "asking for the server's settings";
    let settings: Option<(u64, u8, u8, u8, u8, Option<String>)> = conn
        .query_first(
            "SELECT @@max_allowed_packet, @@local_infile, @@innodb_autoinc_lock_mode, \
             @@lower_case_table_names, @@log_bin, @@binlog_format",
        )
        .await
        .map_err(|e| endpoint.error(doing, e))?;
    let (packet, local_infile, lock_mode, fold, log_bin, binlog_format) =
        settings.ok_or_else(|| Error::new(Code::SinkFailed, format!("{doing}: no answer")))?;
    let mut collations: HashSet<String> = conn
        .query("SELECT COLLATION_NAME FROM information_schema.COLLATIONS")
        .await
        .map_err(|e| endpoint.error(doing, e))?
        .into_iter()
        .map(|name: String| name.to_lowercase())
        .collect();
    if info.flavor == Flavor::MariaDb && info.version >= (10, 10, 1) {
        // Collations that fit several character sets are listed under a short name only.
        let full: Vec<Option<String>> = conn
            .query("SELECT FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY")
            .await
            .map_err(|e| endpoint.error(doing, e))?;
        collations.extend(full.into_iter().flatten().map(|name| name.to_lowercase()));
    }
    // Statement-based logging refuses row changes under READ COMMITTED.
    let by_statement =
        log_bin == 1 && binlog_format.is_some_and(|format| format.eq_ignore_ascii_case("statement"));
    Ok(ServerFacts {
        info,
        max_allowed_packet: usize::try_from(packet).unwrap_or(usize::MAX),
        load_data: config.load_data == LoadData::Auto && local_infile == 1,
        bulk_inserts_lock: lock_mode == 1,
        folds_table_names: fold != 0,
        collations,
        isolation: if by_statement { "REPEATABLE READ" } else { "READ COMMITTED" },
    })
}

#[cfg(test)]
impl ServerFacts {
    /// Facts for tests that need no server.
    pub(super) fn sample(info: ServerInfo, collations: HashSet<String>) -> Self {
        Self {
            info,
            max_allowed_packet: 64 << 20,
            load_data: true,
            bulk_inserts_lock: false,
            folds_table_names: false,
            collations,
            isolation: "READ COMMITTED",
        }
    }
}
