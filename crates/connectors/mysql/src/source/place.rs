//! Owns asking a server for places in its binlog: the end, the beginning, the transactions known, its identity.

use canalis_types::{Code, Error, Result};
use mysql_async::{Conn, Row, prelude::Queryable};

use crate::{Endpoint, Flavor, ServerInfo, binlog::BinlogPosition, quote};

/// How often a list of binlog events is asked for, while its end is being written.
const EVENT_LIST_TRIES: u32 = 200;
/// Pause between two tries.
const EVENT_LIST_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// A server that can be asked about its binlog.
pub(crate) struct BinlogServer<'a> {
    pub endpoint: &'a Endpoint,
    pub info: &'a ServerInfo,
}

/// A transaction as the list of events shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedTransaction {
    /// Offset of its first event.
    pub begin: u64,
    /// Its GTID; none for an anonymous one.
    pub gtid: Option<String>,
    /// Tables whose rows it changes, as `database.table`; none when it does not tell: a statement, or compressed.
    pub tables: Option<Vec<String>>,
}

/// Puts events (offset, type, what) together to transactions.
fn grouped(events: &[(u64, String, String)]) -> Vec<LoggedTransaction> {
    let mut transactions: Vec<LoggedTransaction> = Vec::new();
    for (begin, kind, what) in events {
        if let Some((_, gtid)) = what.split_once("GTID_NEXT= '") {
            let gtid = gtid.trim_end_matches('\'');
            let gtid = (gtid != "ANONYMOUS").then(|| gtid.to_owned());
            transactions.push(LoggedTransaction { begin: *begin, gtid, tables: Some(Vec::new()) });
            continue;
        }
        let Some(transaction) = transactions.last_mut() else { continue };
        match kind.as_str() {
            "Table_map" => {
                let name = what.split_once('(').map(|(_, rest)| rest.trim_end_matches(')').to_owned());
                transaction.tables = match (transaction.tables.take(), name) {
                    (Some(mut tables), Some(name)) => {
                        tables.push(name);
                        Some(tables)
                    }
                    _ => None,
                };
            }
            "Xid" | "Write_rows" | "Update_rows" | "Delete_rows" | "Rows_query" | "Rotate" | "Stop" => {}
            "Query" if what == "BEGIN" || what == "COMMIT" => {}
            _ => transaction.tables = None,
        }
    }
    transactions
}

impl BinlogServer<'_> {
    fn failed<'e>(&'e self, doing: &'e str) -> impl Fn(mysql_async::Error) -> Error + 'e {
        move |error| self.endpoint.error(doing, error)
    }

    /// The statement for the end of the binlog.
    pub(crate) fn status_statement(&self) -> &'static str {
        match self.info.flavor {
            Flavor::MySql if self.info.version >= (8, 2, 0) => "SHOW BINARY LOG STATUS",
            _ => "SHOW MASTER STATUS",
        }
    }

    /// File and offset of the end of the binlog.
    ///
    /// # Errors
    /// CNL-2003 when there is no binlog.
    pub(crate) async fn end(&self, conn: &mut Conn) -> Result<(String, u64)> {
        let row: Option<Row> = conn
            .query_first(self.status_statement())
            .await
            .map_err(self.failed("asking for the end of the binlog"))?;
        let place = row.and_then(|mut row| Some((row.take(0)?, row.take(1)?)));
        place.ok_or_else(|| {
            Error::new(
                Code::SourceMisconfigured,
                format!("{} keeps no binlog; start it with log_bin", self.endpoint.address()),
            )
        })
    }

    /// Names and sizes of the files that the server still has, oldest first.
    pub(crate) async fn files(&self, conn: &mut Conn) -> Result<Vec<(String, u64)>> {
        let rows: Vec<Row> =
            conn.query("SHOW BINARY LOGS").await.map_err(self.failed("listing binlog files"))?;
        Ok(rows.into_iter().filter_map(|mut row| Some((row.take(0)?, row.take(1)?))).collect())
    }

    /// Transactions that are committed, on a MySQL server with GTIDs; `None` on any other.
    pub(crate) async fn executed(&self, conn: &mut Conn) -> Result<Option<String>> {
        if !self.has_gtid(conn).await? {
            return Ok(None);
        }
        self.variable(conn, "gtid_executed").await
    }

    /// Whether it is a MySQL server on which every transaction has a GTID.
    pub(crate) async fn has_gtid(&self, conn: &mut Conn) -> Result<bool> {
        let on = |mode: Option<String>| mode.is_some_and(|m| m.eq_ignore_ascii_case("on"));
        Ok(self.info.flavor == Flavor::MySql && on(self.variable(conn, "gtid_mode").await?))
    }

    /// A global variable; `None` when the server does not know it.
    pub(crate) async fn variable(&self, conn: &mut Conn, name: &str) -> Result<Option<String>> {
        let row: Option<(String, String)> = conn
            .query_first(format!("SHOW GLOBAL VARIABLES LIKE '{}'", name.replace('_', "\\_")))
            .await
            .map_err(self.failed("asking for a setting"))?;
        Ok(row.map(|(_, value)| value.replace('\n', "")))
    }

    /// What tells this server from another one: `server_uuid` of MySQL, `server_id` of MariaDB.
    pub(crate) async fn identity(&self, conn: &mut Conn) -> Result<Option<String>> {
        let name = if self.info.flavor == Flavor::MySql { "server_uuid" } else { "server_id" };
        self.variable(conn, name).await
    }

    /// The position at a file and offset. MariaDB is asked which transactions come before it.
    pub(crate) async fn at(&self, conn: &mut Conn, file: &str, offset: u64) -> Result<BinlogPosition> {
        let mut gtid_set = None;
        if self.info.flavor == Flavor::MariaDb {
            gtid_set = conn
                .query_first::<Option<String>, _>(format!(
                    "SELECT BINLOG_GTID_POS({}, {offset})",
                    quote::text(file)
                ))
                .await
                .map_err(self.failed("asking for the GTID of a position"))?
                .flatten();
        }
        let server = self.identity(conn).await?;
        Ok(BinlogPosition::new(file, offset).with_gtid_set(gtid_set).with_server(server))
    }

    /// Transactions of `file` that begin at or after `from` and before `to`.
    pub(crate) async fn transactions(
        &self,
        conn: &mut Conn,
        file: &str,
        from: u64,
        to: u64,
    ) -> Result<Vec<LoggedTransaction>> {
        let statement = format!("SHOW BINLOG EVENTS IN {} FROM {from}", plain_text(file));
        let mut patience = EVENT_LIST_TRIES;
        let rows: Vec<Row> = loop {
            match conn.query(&statement).await {
                Ok(rows) => break rows,
                // MySQL lists up to the end of the file and may meet an event that is half written.
                Err(mysql_async::Error::Server(error)) if error.code == 1220 && patience > 0 => {
                    patience -= 1;
                    tokio::time::sleep(EVENT_LIST_PAUSE).await;
                }
                Err(error) => return Err(self.failed("listing binlog events")(error)),
            }
        };
        let event = |mut row: Row| Some((row.take(1)?, row.take(2)?, row.take(5)?));
        let events: Vec<(u64, String, String)> = rows.into_iter().filter_map(event).collect();
        let mut transactions = grouped(&events);
        transactions.retain(|transaction| transaction.begin < to);
        Ok(transactions)
    }

    /// Those of `gtids` that are not in `set`, in the same order.
    pub(crate) async fn missing(&self, conn: &mut Conn, gtids: &[&str], set: &str) -> Result<Vec<String>> {
        if gtids.is_empty() || self.is_subset(conn, &gtids.join(","), set).await? {
            return Ok(Vec::new());
        }
        let set = quote::text(set);
        let mut missing = Vec::new();
        for some in gtids.chunks(200) {
            let tests: Vec<String> =
                some.iter().map(|gtid| format!("GTID_SUBSET({}, @s)", quote::text(gtid))).collect();
            conn.query_drop(format!("SET @s = {set}")).await.map_err(self.failed("comparing GTID sets"))?;
            let row: Option<Row> = conn
                .query_first(format!("SELECT {}", tests.join(", ")))
                .await
                .map_err(self.failed("comparing GTID sets"))?;
            let mut row = row.ok_or_else(|| Error::internal("a SELECT gave no row"))?;
            for (index, gtid) in some.iter().enumerate() {
                if row.take::<Option<u8>, _>(index).flatten() != Some(1) {
                    missing.push((*gtid).to_owned());
                }
            }
        }
        Ok(missing)
    }

    /// Whether all of `part` is in `whole`; sets as MySQL writes them.
    pub(crate) async fn is_subset(&self, conn: &mut Conn, part: &str, whole: &str) -> Result<bool> {
        let answer: Option<Option<u8>> = conn
            .query_first(format!("SELECT GTID_SUBSET({}, {})", quote::text(part), quote::text(whole)))
            .await
            .map_err(self.failed("comparing GTID sets"))?;
        Ok(answer.flatten() == Some(1))
    }
}

/// A literal for statements that take no character set introducer.
fn plain_text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_to_transactions() {
        let events: Vec<(u64, String, String)> = [
            (100, "Query", "the end of an earlier one"),
            (200, "Gtid", "SET @@SESSION.GTID_NEXT= 'u:7'"),
            (280, "Query", "BEGIN"),
            (300, "Table_map", "table_id: 92 (d.t)"),
            (340, "Write_rows", "table_id: 92 flags: STMT_END_F"),
            (400, "Xid", "COMMIT /* xid=5 */"),
            (430, "Anonymous_Gtid", "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"),
            (500, "Query", "use `d`; ALTER TABLE t ADD c INT"),
            (600, "Gtid_tagged", "SET @@SESSION.GTID_NEXT= 'u:tag:8'"),
            (700, "Transaction_payload", "compression='ZSTD'"),
        ]
        .into_iter()
        .map(|(begin, kind, what)| (begin, kind.to_owned(), what.to_owned()))
        .collect();
        let transaction = |begin, gtid: Option<&str>, tables: Option<&[&str]>| LoggedTransaction {
            begin,
            gtid: gtid.map(str::to_owned),
            tables: tables.map(|t| t.iter().map(|n| (*n).to_owned()).collect()),
        };
        assert_eq!(
            grouped(&events),
            [
                transaction(200, Some("u:7"), Some(&["d.t"])),
                transaction(430, None, None),
                transaction(600, Some("u:tag:8"), None),
            ]
        );
    }
}
