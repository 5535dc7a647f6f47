//! Owns asking a server for places in its binlog: the end, the beginning, the transactions known, its identity.

use canalis_types::{Code, Error, Result};
use mysql_async::{Conn, Row, prelude::Queryable};

use crate::{Endpoint, Flavor, ServerInfo, binlog::BinlogPosition, quote};

/// A server that can be asked about its binlog.
pub(crate) struct BinlogServer<'a> {
    pub endpoint: &'a Endpoint,
    pub info: &'a ServerInfo,
}

impl BinlogServer<'_> {
    fn failed<'e>(&'e self, doing: &'e str) -> impl Fn(mysql_async::Error) -> Error + 'e {
        move |error| self.endpoint.error(doing, error)
    }

    fn status_statement(&self) -> &'static str {
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

    /// Begin and identity (`None` for an anonymous one) of each transaction of `file` that begins at or after `from`
    /// and before `to`.
    pub(crate) async fn transactions(
        &self,
        conn: &mut Conn,
        file: &str,
        from: u64,
        to: u64,
    ) -> Result<Vec<(u64, Option<String>)>> {
        let rows: Vec<Row> = conn
            .query(format!("SHOW BINLOG EVENTS IN {} FROM {from}", plain_text(file)))
            .await
            .map_err(self.failed("listing binlog events"))?;
        let mut transactions = Vec::new();
        for mut row in rows {
            let (Some(begin), Some(what)) = (row.take::<u64, _>(1), row.take::<String, _>(5)) else {
                continue;
            };
            let Some((_, gtid)) = what.split_once("GTID_NEXT= '") else { continue };
            if begin < to {
                let gtid = gtid.trim_end_matches('\'');
                transactions.push((begin, (gtid != "ANONYMOUS").then(|| gtid.to_owned())));
            }
        }
        Ok(transactions)
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
