//! Crashes: `kill -9` at random moments of snapshot, hand-over and stream, under load, for every pair of
//! source and target; afterwards both sides are equal by their own digests.

use std::time::Duration;

use canalis_testkit::{Server, ServerKind, table_digest, wait_until};
use mysql_async::prelude::Queryable;
use rand::Rng;

use super::{
    load::{self, Load, TABLES},
    process::{Canalis, sink, source},
};

/// Kills of one pair.
const KILLS: u32 = 50;
/// Rows of the largest table at the start.
const ROWS: u64 = 40_000;
/// Last rows. The first may come with a snapshot that is not caught up by the stream yet; the second, made when the first
/// is there, can only come by the stream, behind everything else.
const MARKS: [i64; 2] = [-1_000, -2_000];

async fn survives(source_server: Option<&'static Server>, target_server: Option<&'static Server>) {
    let (Some(from), Some(to)) = (source_server, target_server) else { return };
    let database = from.create_database("crash").await;
    let mut conn = from.mysql().await;
    load::create(&mut conn, &database, ROWS).await;
    // The target of a PostgreSQL pair is a schema of the source's name in a database of its own.
    let target_database = match to.kind {
        ServerKind::Postgres => to.create_database("crash").await,
        _ if std::ptr::eq(from, to) => format!("{database}_copy"),
        _ => database.clone(),
    };
    let mut pipeline = source(
        from,
        &format!("{database}.\\.*"),
        "  scan.incremental.snapshot.chunk.size: 2000\n  scan.startup.mode: initial\n",
    );
    pipeline.push_str(&sink(to, &target_database));
    if target_database != database && to.kind != ServerKind::Postgres {
        pipeline.push_str(&format!(
            "route:\n  - source-table: {database}.\\.*\n    sink-table: {target_database}.<>\n    replace-symbol: <>\n"
        ));
    }
    pipeline.push_str("pipeline:\n  parallelism: 3\n  execution.checkpointing.interval: 300 ms\n");
    let directory = tempfile::tempdir().unwrap();
    let load = Load::start(from, &database, ROWS, u64::from(from.port)).await;
    let mut killed = 0;
    for round in 0..KILLS {
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        // Short lives at first, so that the snapshot is hit often; longer ones later for hand-over and stream.
        let longest = if round < KILLS / 2 { 700 } else { 1500 };
        let life = Duration::from_millis(rand::rng().random_range(20..longest));
        tokio::time::sleep(life).await;
        assert!(canalis.kill9(), "it ended by itself in round {round}: {}", canalis.log());
        killed += 1;
    }
    assert_eq!(killed, KILLS);
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let rate = load.end().await;
    let arrived = async {
        for mark in MARKS {
            load::mark(&mut conn, &database, mark).await;
            wait_until(Duration::from_secs(120), async || marks(to, &target_database, &database, mark).await)
                .await;
        }
    };
    tokio::select! {
        () = arrived => {}
        () = async { while !canalis.has_ended() { tokio::time::sleep(Duration::from_millis(100)).await } } => {
            panic!("it ended by itself: {}", canalis.log());
        }
    }
    assert!(canalis.stop().success(), "{}", canalis.log());
    for table in TABLES {
        let here = table_digest(from, &database, table);
        let there = match to.kind {
            ServerKind::Postgres => table_digest(to, &target_database, &format!("{database}.{table}")),
            _ => table_digest(to, &target_database, table),
        };
        assert_eq!(here, there, "table {table} of {from} differs from {to}; log: {}", canalis.log());
    }
    eprintln!("{from} to {to}: {KILLS} kills under {rate} row changes per second");
}

/// Whether a last row has arrived in every table.
pub async fn marks(to: &Server, target_database: &str, schema: &str, mark: i64) -> bool {
    for (table, column) in TABLES.iter().zip(["id", "a", "id", "a"]) {
        // Until the tool has made the table, the query fails.
        let found = match to.kind {
            ServerKind::Postgres => {
                let client = to.postgres(target_database).await;
                let query = format!("SELECT 1 FROM \"{schema}\".{table} WHERE {column} = {mark}");
                client.query(&query, &[]).await.is_ok_and(|rows| !rows.is_empty())
            }
            _ => {
                let mut conn = to.mysql().await;
                let query = format!("SELECT 1 FROM {target_database}.{table} WHERE {column} = {mark}");
                conn.query_first::<u8, _>(query).await.is_ok_and(|row| row.is_some())
            }
        };
        if !found {
            return false;
        }
    }
    true
}

macro_rules! pairs {
    ($($name:ident: $from:ident => $to:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                survives(canalis_testkit::$from(), canalis_testkit::$to()).await;
            }
        )*
    };
}

pairs! {
    crash_mariadb_to_mariadb: mariadb => mariadb;
    crash_mariadb_to_mysql: mariadb => mysql;
    crash_mariadb_to_postgres: mariadb => postgres;
    crash_mysql_to_mariadb: mysql => mariadb;
    crash_mysql_to_mysql: mysql => mysql;
    crash_mysql_to_postgres: mysql => postgres;
}
