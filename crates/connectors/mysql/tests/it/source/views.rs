//! The place of a view is exact, however busy the server is.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use canalis_testkit::{OwnedServer, Server};
use mysql_async::prelude::Queryable;

use super::{Run, context, execute, source};

const DURABLE: &[&str] = &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];

/// Number of the last transaction of a GTID set that has one range.
fn last(set: &str) -> u64 {
    set.rsplit(['-', ':']).next().unwrap().parse().unwrap()
}

async fn executed(server: &Server) -> u64 {
    let mut conn = server.mysql().await;
    let mysql = server.kind == canalis_testkit::ServerKind::MySql;
    let statement = if mysql { "SELECT @@global.gtid_executed" } else { "SELECT @@global.gtid_binlog_pos" };
    last(&conn.query_first::<String, _>(statement).await.unwrap().unwrap())
}

/// Every transaction after the first ones inserts one row, so a view shows as many rows as its place has transactions.
async fn check(server: OwnedServer) {
    let server: &'static OwnedServer = Box::leak(Box::new(server));
    let database = server.create_database("src_views").await;
    execute(server, &database, &["CREATE TABLE nk (a INT)", "CREATE TABLE other (a INT PRIMARY KEY)"]).await;
    let before = executed(server).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..6)
        .map(|_| {
            let (stop, database) = (stop.clone(), database.clone());
            tokio::spawn(async move {
                let mut conn = server.mysql().await;
                while !stop.load(Ordering::Relaxed) {
                    conn.query_drop(format!("INSERT INTO `{database}`.nk VALUES (1)")).await.unwrap();
                }
            })
        })
        .collect();
    let source = source(server, &database, &[("connection.pool.size", "3")]);
    for round in 0..8 {
        let enumerator = source.open(context(3), None).await.unwrap();
        let state = enumerator.state();
        let place: serde_json::Value =
            serde_json::from_str(state["view"]["detail"].as_str().unwrap()).unwrap();
        let shown = last(place["gtid_set"].as_str().unwrap()) - before;
        let mut run = Run { enumerator, reader: None, stream: None, at: None };
        assert_eq!(run.snapshot().await.len() as u64, shown, "round {round} on {}", server.kind.word());
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    // SAFETY of the leak: the server is a child process that ends with this one.
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_of_mariadb_show_exactly_the_transactions_before_their_place() {
    if let Some(server) = canalis_testkit::start_mariadb(DURABLE) {
        check(server).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_of_mysql_show_exactly_the_transactions_before_their_place() {
    if let Some(server) = canalis_testkit::start_mysql(DURABLE) {
        check(server).await;
    }
}
