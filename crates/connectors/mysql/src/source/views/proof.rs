//! Owns proving that transactions under way are not committed in the engine, and so are not shown by views that are
//! open already.
//!
//! A transaction leaves the engine's list of active ones in the same step that makes it visible to later views. So a
//! transaction that is in the list *after* the views have opened is not shown by them. The list names sessions; which
//! GTID a session is committing is in the performance schema. It is read after the list: a session that has the GTID
//! then had it, or was on the way to it, when the list was made.
//!
//! The server caches the list for a moment. A new session that opens a transaction after the views is in the list only
//! when the list is newer than the views.

use std::collections::HashSet;

use canalis_types::Result;
use mysql_async::{Conn, Row, prelude::Queryable};

use crate::source::place::BinlogServer;

/// A session for one look.
pub(super) struct Probe {
    conn: Conn,
}

/// What is on its way into the engine.
pub(super) struct Pipeline {
    /// End of the binlog after the views opened.
    pub end: (String, u64),
    uncommitted: HashSet<String>,
}

/// What a look gave.
pub(super) enum Look {
    /// The transactions under way.
    Seen(Pipeline),
    /// The server could not tell this time; it fails to print statements that hold characters outside its own set.
    Nothing,
    /// The account may not see what is asked for.
    Denied,
}

impl Probe {
    /// Opens the session; to be done before the views open.
    pub(super) async fn open(server: &BinlogServer<'_>) -> Result<Self> {
        Ok(Self { conn: server.endpoint.connect().await? })
    }

    /// Looks, after the views have opened.
    pub(super) async fn look(mut self, server: &BinlogServer<'_>) -> Result<Look> {
        let statements = format!(
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY; {}; \
             SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX; \
             SELECT t.PROCESSLIST_ID, e.GTID FROM performance_schema.events_transactions_current e \
             JOIN performance_schema.threads t ON t.THREAD_ID = e.THREAD_ID WHERE t.PROCESSLIST_ID IS NOT NULL",
            server.status_statement()
        );
        let answer = match self.ask(&statements).await {
            Ok(answer) => answer,
            // No right to see the list or the schema.
            Err(mysql_async::Error::Server(error)) if [1044, 1142, 1143, 1227].contains(&error.code) => {
                return Ok(Look::Denied);
            }
            Err(mysql_async::Error::Server(error)) => {
                tracing::debug!(%error, "transactions under way cannot be told");
                return Ok(Look::Nothing);
            }
            Err(error) => {
                return Err(server.endpoint.error("looking at transactions under way", error));
            }
        };
        let Some((end, active, gtids)) = answer else { return Ok(Look::Nothing) };
        let fresh = active.contains(&u64::from(self.conn.id()));
        let uncommitted = gtids
            .into_iter()
            .filter(|(session, _)| fresh && active.contains(session))
            .map(|(_, gtid)| gtid.to_lowercase())
            .collect();
        // How the goodbye goes does not matter.
        drop(self.conn);
        Ok(Look::Seen(Pipeline { end, uncommitted }))
    }

    #[allow(clippy::type_complexity)] // End of the binlog, active sessions, and the GTID of each session.
    async fn ask(
        &mut self,
        statements: &str,
    ) -> std::result::Result<Option<((String, u64), HashSet<u64>, Vec<(u64, String)>)>, mysql_async::Error>
    {
        let mut result = self.conn.query_iter(statements).await?;
        result.collect::<Row>().await?;
        let end = result.collect::<Row>().await?.pop();
        let active: Vec<Row> = result.collect().await?;
        let gtids: Vec<Row> = result.collect().await?;
        let Some(end) = end.and_then(|mut row| Some((row.take(0)?, row.take(1)?))) else { return Ok(None) };
        let active = active.into_iter().filter_map(|mut row| row.take::<u64, _>(0)).collect();
        let pair = |mut row: Row| Some((row.take(0)?, row.take::<Option<String>, _>(1)??));
        Ok(Some((end, active, gtids.into_iter().filter_map(pair).collect())))
    }
}

impl Pipeline {
    /// A look that proves nothing.
    pub(super) fn ending(end: (String, u64)) -> Self {
        Self { end, uncommitted: HashSet::new() }
    }

    /// Whether the transaction was certainly not committed in the engine when the views opened.
    pub(super) fn is_uncommitted(&self, gtid: &str) -> bool {
        self.uncommitted.contains(&gtid.to_lowercase())
    }
}
