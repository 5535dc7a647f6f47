//! RS-05: killed in the middle of the snapshot while rows are changed and deleted; finished chunks are not read again.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use canalis_testkit::{Server, ServerKind, table_digest};
use mysql_async::prelude::Queryable;
use rand::Rng;
use tokio::task::JoinHandle;

use crate::it::{
    behaviour::run,
    process::{Canalis, DEBUG, checkpoints, content, sink, source},
    targets::waits_in_innodb,
};

const ROWS: u32 = 20_000;
/// Rows of a chunk, so that there are a hundred.
const CHUNK: u32 = 200;
/// A row that the target does not let in, in the middle of what the second of two readers reads.
const BLOCKED: u32 = 15_100;

/// A transaction of the test at the target that holds the key [`BLOCKED`].
enum Blocker {
    Mysql(mysql_async::Conn),
    Postgres(tokio_postgres::Client),
}

impl Blocker {
    /// Makes the target's table and takes the key.
    async fn new(to: &Server, database: &str, schema: &str) -> Self {
        let insert = format!("INSERT INTO {schema}.t VALUES ({BLOCKED}, 0, NULL)");
        match to.kind {
            ServerKind::Postgres => {
                let client = to.postgres(database).await;
                let table = format!(
                    "CREATE SCHEMA {schema}; CREATE TABLE {schema}.t (id bigint PRIMARY KEY, n integer, v varchar(2000))"
                );
                client.batch_execute(&table).await.unwrap();
                // On its own: what stands before a BEGIN in one message is part of the transaction.
                client.batch_execute(&format!("BEGIN; {insert}")).await.unwrap();
                Self::Postgres(client)
            }
            _ => {
                let mut conn = to.mysql().await;
                let table =
                    format!("CREATE TABLE {schema}.t (id BIGINT PRIMARY KEY, n INT, v VARCHAR(2000))");
                run(&mut conn, &[&format!("CREATE DATABASE {schema}"), &table, "BEGIN", &insert]).await;
                Self::Mysql(conn)
            }
        }
    }

    /// Whether a transaction of the tool waits for it.
    async fn is_waited_for(to: &Server, database: &str, schema: &str) -> bool {
        match to.kind {
            ServerKind::Postgres => {
                let query = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' \
                             AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
                !to.postgres(database).await.query(query, &[]).await.unwrap().is_empty()
            }
            _ => waits_in_innodb(to, schema).await,
        }
    }

    /// Lets the key go.
    async fn release(self) {
        match self {
            Self::Mysql(mut conn) => conn.query_drop("ROLLBACK").await.unwrap(),
            Self::Postgres(client) => client.batch_execute("ROLLBACK").await.unwrap(),
        }
    }
}

/// Changes, deletes and inserts rows all over the table until it is told to stop.
async fn changes(from: &Server, database: &str) -> (Arc<AtomicBool>, JoinHandle<()>) {
    let mut conn = from.mysql().await;
    let (table, stop) = (format!("{database}.t"), Arc::new(AtomicBool::new(false)));
    let task = tokio::spawn({
        let stop = stop.clone();
        async move {
            let mut fresh = ROWS;
            while !stop.load(Ordering::Relaxed) {
                let at = rand::rng().random_range(1..=ROWS);
                fresh += 1;
                for statement in [
                    format!(
                        "UPDATE {table} SET n = n + 1, v = 'changed' WHERE id BETWEEN {at} AND {}",
                        at + 9
                    ),
                    format!("DELETE FROM {table} WHERE id = {at}"),
                    format!("INSERT INTO {table} VALUES ({fresh}, 1, 'new')"),
                    format!("UPDATE {table} SET id = id + 1000000 WHERE id = {}", at + 5),
                ] {
                    conn.query_drop(statement).await.unwrap();
                }
            }
        }
    });
    (stop, task)
}

/// Ids of the splits that a part of a log says were dealt.
fn dealt(log: &str) -> Vec<String> {
    let plain = log.replace("\u{1b}[3m", "").replace("\u{1b}[0m", "").replace("\u{1b}[2m", "");
    let lines = plain.lines().filter(|line| line.contains("a split is dealt"));
    lines
        .filter_map(|line| Some(line.split_once("split=")?.1.split_whitespace().next()?.to_owned()))
        .collect()
}

/// Chunks that the newest checkpoint holds to be finished: they were dealt before it began, and it does not name them.
fn finished(log: &str, directory: &Path) -> BTreeSet<String> {
    let (epoch, file) = checkpoints(directory).pop().unwrap();
    let begun = log.find(&format!("epoch: {epoch}, after")).unwrap();
    let checkpoint = content(&file);
    let open: BTreeSet<&str> =
        checkpoint["running"].as_array().unwrap().iter().map(|split| split["id"].as_str().unwrap()).collect();
    dealt(&log[..begun]).into_iter().filter(|id| !open.contains(id.trim_matches('"'))).collect()
}

async fn killed_inside(from: Option<&'static Server>, to: Option<&'static Server>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    let database = from.create_database("inside").await;
    let mut conn = from.mysql().await;
    run(
        &mut conn,
        &[&format!("USE {database}"), "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, v VARCHAR(2000))"],
    )
    .await;
    for first in (1..=ROWS).step_by(1000) {
        let rows: Vec<String> =
            (first..first + 1000).map(|id| format!("({id}, 0, REPEAT('v', 1000))")).collect();
        run(&mut conn, &[&format!("INSERT INTO t VALUES {}", rows.join(","))]).await;
    }
    run(&mut conn, &["ANALYZE TABLE t"]).await;
    let (target, schema) = match to.kind {
        ServerKind::Postgres => (to.create_database("inside").await, database.clone()),
        _ => (String::new(), format!("{database}_copy")),
    };
    let blocker = Blocker::new(to, &target, &schema).await;
    let pipeline = format!(
        "{}{}route:\n  - source-table: {database}.\\.*\n    sink-table: {schema}.<>\n    replace-symbol: <>\n\
         pipeline:\n  parallelism: 2\n  execution.checkpointing.interval: 10 ms\n",
        source(from, &format!("{database}.t"), &format!("  scan.incremental.snapshot.chunk.size: {CHUNK}\n")),
        sink(to, &target)
    );
    let (stop, load) = changes(from, &database).await;
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start_as(directory.path(), &pipeline, &[], DEBUG);
    canalis.until(async || Blocker::is_waited_for(to, &target, &schema).await).await;
    assert!(canalis.kill9());
    let first_log = canalis.log();
    let finished = finished(&first_log, directory.path());
    // A server notices late that the killed client has gone; until then it may wait for the key.
    blocker.release().await;

    let mut canalis = Canalis::start_as(directory.path(), &pipeline, &[], DEBUG);
    stop.store(true, Ordering::Relaxed);
    load.await.unwrap();
    let arrived = async |mark: i32| match to.kind {
        ServerKind::Postgres => {
            let query = format!("SELECT 1 FROM {schema}.t WHERE id = {mark}");
            !to.postgres(&target).await.query(&query, &[]).await.unwrap().is_empty()
        }
        _ => {
            let query = format!("SELECT 1 FROM {schema}.t WHERE id = {mark}");
            to.mysql().await.query_first::<u8, _>(query).await.unwrap().is_some()
        }
    };
    // The first mark may come with the snapshot; the second only by the stream, behind everything else.
    for mark in [-1, -2] {
        run(&mut conn, &[&format!("INSERT INTO t VALUES ({mark}, 0, 'mark')")]).await;
        canalis.until(async || arrived(mark).await).await;
    }
    assert!(canalis.stop().success(), "{}", canalis.log());
    let log = canalis.log();
    let second = dealt(&log[first_log.len()..]);
    let again: Vec<&String> = second.iter().filter(|id| finished.contains(*id)).collect();
    assert!(finished.len() > 10, "{} chunks were finished: {first_log}", finished.len());
    assert!(
        again.is_empty(),
        "{} of {} finished chunks were read again: {again:?}",
        again.len(),
        finished.len()
    );
    let there = match to.kind {
        ServerKind::Postgres => table_digest(to, &target, &format!("{schema}.t")),
        _ => table_digest(to, &schema, "t"),
    };
    assert_eq!(table_digest(from, &database, "t"), there, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_05_killed_inside_the_snapshot_mariadb_to_mariadb() {
    killed_inside(canalis_testkit::mariadb(), canalis_testkit::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_05_killed_inside_the_snapshot_mysql_to_postgres() {
    killed_inside(canalis_testkit::mysql(), canalis_testkit::postgres()).await;
}

/// Killed with rows in the target and nothing but the first place on record: what is changed until the next start still
/// comes, because the stream begins at that place.
#[tokio::test(flavor = "multi_thread")]
async fn rs_05_killed_before_the_first_checkpoint() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        for to in [canalis_testkit::mariadb(), canalis_testkit::mysql(), canalis_testkit::postgres()] {
            let Some(to) = to else { continue };
            let database = from.create_database("early").await;
            let mut conn = from.mysql().await;
            run(&mut conn, &[&format!("USE {database}"), "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)"])
                .await;
            let rows: Vec<String> = (1..=2000).map(|id| format!("({id}, 0)")).collect();
            run(&mut conn, &[&format!("INSERT INTO t VALUES {}", rows.join(",")), "ANALYZE TABLE t"]).await;
            let (target, schema) = match to.kind {
                ServerKind::Postgres => (to.create_database("early").await, database.clone()),
                _ => (String::new(), format!("{database}_copy")),
            };
            let pipeline = format!(
                "{}{}route:\n  - source-table: {database}.\\.*\n    sink-table: {schema}.<>\n    replace-symbol: <>\n\
                 pipeline:\n  parallelism: 3\n  execution.checkpointing.interval: 1 h\n",
                source(from, &format!("{database}.t"), "  scan.incremental.snapshot.chunk.size: 100\n"),
                sink(to, &target)
            );
            let held = async || {
                let query = format!("SELECT COUNT(*) FROM {schema}.t");
                match to.kind {
                    ServerKind::Postgres => to
                        .postgres(&target)
                        .await
                        .query_one(&query, &[])
                        .await
                        .map_or(0, |row| row.get::<_, i64>(0)),
                    _ => to.mysql().await.query_first(&query).await.unwrap_or(None).unwrap_or(0),
                }
            };
            let directory = tempfile::tempdir().unwrap();
            for round in 0..5 {
                let mut canalis = Canalis::start(directory.path(), &pipeline);
                canalis.until(async || held().await > 0).await;
                assert!(canalis.kill9());
                let at = round * 300 + 1;
                let delete = format!("DELETE FROM t WHERE id BETWEEN {at} AND {}", at + 50);
                let moves =
                    format!("UPDATE t SET id = id + 100000 WHERE id BETWEEN {} AND {}", at + 60, at + 90);
                run(&mut conn, &[&delete, &moves]).await;
            }
            let mut canalis = Canalis::start(directory.path(), &pipeline);
            run(&mut conn, &["INSERT INTO t VALUES (-1, 0)"]).await;
            canalis.until(async || held().await == 2001 - 5 * 51).await;
            assert!(canalis.stop().success(), "{}", canalis.log());
        }
    }
}
