//! Owns sessions of the source: how they are set up, and how transient connection failures are tried again.

use std::time::Duration;

use canalis_types::{Error, Result};
use mysql_async::{Conn, prelude::Queryable};

use crate::{Endpoint, Flavor, ServerInfo, options::SourceOptions, server_info, wire::Connection};

/// Longest silence of a session while it reads a chunk.
const SILENCE: Duration = Duration::from_secs(3600);

/// Settings under which values and keys read the same on every server: no padding or quoting modes, no limits on
/// time, no limits on rows. A setting that a version does not know is left out by flavour.
fn settings(flavor: Flavor) -> &'static [&'static str] {
    match flavor {
        Flavor::MariaDb => &[
            "SET SESSION sql_mode = '', sql_quote_show_create = 1, wait_timeout = 31536000",
            "SET SESSION max_statement_time = 0, idle_transaction_timeout = 0",
            "SET SESSION idle_readonly_transaction_timeout = 0, sql_select_limit = DEFAULT",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        ],
        Flavor::MySql => &[
            "SET SESSION sql_mode = '', sql_quote_show_create = 1, wait_timeout = 31536000",
            "SET SESSION max_execution_time = 0, information_schema_stats_expiry = 0",
            "SET SESSION sql_select_limit = DEFAULT",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        ],
    }
}

/// Opens a session and says what the server is. Transient failures are tried again with growing pauses.
///
/// # Errors
/// Of the last attempt.
pub(crate) async fn connect(options: &SourceOptions) -> Result<(Conn, ServerInfo)> {
    let mut pause = Duration::from_millis(100);
    let mut attempt = 1;
    loop {
        match try_connect(&options.endpoint).await {
            Err(error) if error.kind().is_retryable() && attempt < options.connect_attempts => {
                tracing::warn!(attempt, %error, "cannot connect to the source, trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
                attempt += 1;
            }
            answer => return answer,
        }
    }
}

async fn try_connect(endpoint: &Endpoint) -> Result<(Conn, ServerInfo)> {
    let mut conn = endpoint.connect().await?;
    let info = server_info(endpoint, &mut conn).await?;
    for setting in settings(info.flavor) {
        conn.query_drop(*setting).await.map_err(|e| endpoint.error("setting up a session", e))?;
    }
    Ok((conn, info))
}

/// Opens sessions for reading chunks. They are blocking: their rows are taken out of the read buffer on threads of
/// their own.
///
/// # Errors
/// Unreachable or access denied.
pub(crate) async fn connect_readers(
    endpoint: &Endpoint,
    flavor: Flavor,
    count: usize,
) -> Result<Vec<Connection>> {
    let endpoint = endpoint.clone();
    on_a_thread(move || {
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            let doing = || format!("opening a snapshot session at {}", endpoint.address());
            let mut session = Connection::connect(&endpoint, SILENCE).map_err(|e| e.into_error(doing()))?;
            for setting in
                ["SET NAMES utf8mb4", "SET time_zone = '+00:00'", "SET SESSION net_write_timeout = 3600"]
                    .iter()
                    .chain(settings(flavor))
            {
                session.query(setting).map_err(|e| e.into_error(doing()))?;
            }
            sessions.push(session);
        }
        Ok(sessions)
    })
    .await
}

/// Runs blocking work on a thread that may block.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::internal("blocking work did not end").with_source(e))?
}
