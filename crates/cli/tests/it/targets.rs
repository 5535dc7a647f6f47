//! Owns the places where a test sends the same rows: a database of each server, and an SQLite file.

use std::path::{Path, PathBuf};

use canalis_testkit::{Server, ServerKind};
use mysql_async::prelude::Queryable;

use super::process::{sink, source};

/// Where the rows go: a database server or an SQLite file.
pub enum Target {
    /// Database (none: of the MySQL family) and schema.
    Server(&'static Server, String, String),
    /// The file.
    Sqlite(PathBuf),
}

impl Target {
    /// One of every kind for a database of a source.
    pub async fn all(database: &str, directory: &Path) -> Vec<Self> {
        let mut targets = vec![Self::Sqlite(directory.join("target.db"))];
        for server in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
            targets.push(Self::Server(server, String::new(), format!("{database}_copy")));
        }
        if let Some(server) = canalis_testkit::postgres() {
            targets.push(Self::Server(server, server.create_database("keys").await, database.to_owned()));
        }
        targets
    }

    /// The pipeline from a source's database to it.
    pub fn pipeline(
        &self,
        from: &Server,
        database: &str,
        more_source: &str,
        more_sink: &str,
        more: &str,
    ) -> String {
        let source = source(from, &format!("{database}.\\.*"), more_source);
        let (sink, schema) = match self {
            Self::Server(server, database, schema) => (sink(server, database), schema.as_str()),
            Self::Sqlite(path) => (format!("sink:\n  type: sqlite\n  path: {}\n", path.display()), database),
        };
        format!(
            "{source}{sink}{more_sink}route:\n  - source-table: {database}.\\.*\n    sink-table: {schema}.<>\n    \
             replace-symbol: <>\n{more}"
        )
    }

    /// A value of `FROM {t}` as text; none while it fails.
    pub async fn value(&self, query: &str, table: &str) -> Option<String> {
        match self {
            Self::Sqlite(path) => {
                let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
                let connection = rusqlite::Connection::open_with_flags(path, flags).ok()?;
                let text = format!("SELECT CAST(({}) AS TEXT)", query.replace("{t}", table));
                connection.query_row(&text, [], |row| row.get(0)).ok()?
            }
            Self::Server(server, database, schema) if server.kind == ServerKind::Postgres => {
                let client = server.postgres(database).await;
                let text = query.replace("{t}", &format!("{schema}.{table}"));
                client.query_one(&format!("SELECT ({text})::text"), &[]).await.ok()?.get(0)
            }
            Self::Server(server, _, schema) => {
                let text = query.replace("{t}", &format!("{schema}.{table}"));
                let mut conn = server.mysql().await;
                conn.query_drop("SET SESSION group_concat_max_len = 100000000").await.ok()?;
                super::behaviour::value(&mut conn, &text).await
            }
        }
    }

    /// The keys of a table by their bytes, with a number beside each, in order.
    pub async fn listed(&self, key: &str, number: &str, table: &str) -> Option<String> {
        let query = match self {
            Self::Sqlite(_) => format!(
                "SELECT group_concat(p, ' ') FROM (SELECT hex({key}) || ':' || {number} AS p FROM {{t}})"
            ),
            Self::Server(server, ..) if server.kind == ServerKind::Postgres => format!(
                "SELECT string_agg(p, ' ') FROM (SELECT \
                 upper(encode(convert_to({key}, 'UTF8'), 'hex')) || ':' || {number} AS p FROM {{t}}) AS x"
            ),
            Self::Server(..) => of_mysql(key, number),
        };
        self.value(&query, table).await.map(sorted)
    }
}

fn sorted(list: String) -> String {
    let mut items: Vec<&str> = list.split(' ').collect();
    items.sort_unstable();
    items.join(" ")
}

/// The same of the MySQL family.
fn of_mysql(key: &str, number: &str) -> String {
    format!(
        "SELECT GROUP_CONCAT(p SEPARATOR ' ') FROM (SELECT CONCAT(HEX(CONVERT({key} USING utf8mb4)), ':', \
         {number}) AS p FROM {{t}}) AS x"
    )
}

/// The same at the source.
pub async fn at_source(from: &Server, database: &str, key: &str, number: &str, table: &str) -> String {
    let mut conn = from.mysql().await;
    conn.query_drop("SET SESSION group_concat_max_len = 100000000").await.unwrap();
    let query = of_mysql(key, number).replace("{t}", &format!("{database}.{table}"));
    sorted(conn.query_first(query).await.unwrap().unwrap())
}

/// Whether a transaction whose statement names `text` waits for a lock. `INNODB_TRX` would not do: InnoDB renews it only
/// when nobody has read it for a tenth of a second.
pub async fn waits_in_innodb(server: &Server, text: &str) -> bool {
    let row: Option<(String, String, String)> =
        server.mysql().await.query_first("SHOW ENGINE INNODB STATUS").await.unwrap();
    let status = row.unwrap().2;
    status.split("---TRANSACTION").any(|of| of.contains("LOCK WAIT") && of.contains(text))
}
