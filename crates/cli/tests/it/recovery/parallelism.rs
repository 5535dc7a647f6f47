//! RS-08: a savepoint goes on with another number of writers, under load, with keys and without.

use std::path::{Path, PathBuf};

use canalis_testkit::{Server, ServerKind, table_digest};
use mysql_async::prelude::Queryable;
use serde_json::Value;

use crate::it::{
    behaviour::run,
    load::{self, Load, TABLES},
    process::{Canalis, newest_checkpoint, sink, source},
};

const ROWS: u64 = 4_000;

struct Job {
    from: &'static Server,
    to: &'static Server,
    database: String,
    target: String,
    directory: tempfile::TempDir,
}

impl Job {
    async fn new(from: &'static Server, to: &'static Server) -> Self {
        let database = from.create_database("rescale").await;
        let target = match to.kind {
            ServerKind::Postgres => to.create_database("rescale").await,
            _ => format!("{database}_copy"),
        };
        Self { from, to, database, target, directory: tempfile::tempdir().unwrap() }
    }

    /// Schema of the tables at the target.
    fn schema(&self) -> &str {
        if self.to.kind == ServerKind::Postgres { &self.database } else { &self.target }
    }

    fn start(&self, parallelism: u32, more: &[&str]) -> Canalis {
        let pipeline = format!(
            "{}{}route:\n  - source-table: {}.\\.*\n    sink-table: {}.<>\n    replace-symbol: <>\n\
             pipeline:\n  parallelism: {parallelism}\n  execution.checkpointing.interval: 200 ms\n",
            source(
                self.from,
                &format!("{}.\\.*", self.database),
                "  scan.incremental.snapshot.chunk.size: 500\n"
            ),
            sink(self.to, &self.target),
            self.database,
            self.schema(),
        );
        Canalis::start_with(self.directory.path(), &pipeline, more)
    }

    /// Takes a savepoint of the running job and puts it aside.
    fn savepoint(&self) -> PathBuf {
        let file = self.directory.path().join("pipeline.yaml");
        let state = self.directory.path().join("state");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (success, output, errors) =
            Canalis::command(&["--json", "savepoint", &text(&file), "--state-dir", &text(&state)]);
        assert!(success, "{errors}");
        let answer: Value = serde_json::from_str(&output).unwrap();
        PathBuf::from(answer["savepoint"].as_str().unwrap())
    }

    /// Whether the mark is in every table.
    async fn has(&self, mark: i64) -> bool {
        for (table, column) in TABLES.iter().zip(["id", "a", "id", "a"]) {
            let query = format!("SELECT 1 FROM {}.{table} WHERE {column} = {mark}", self.schema());
            let found = match self.to.kind {
                ServerKind::Postgres => {
                    let client = self.to.postgres(&self.target).await;
                    client.query(&query, &[]).await.is_ok_and(|rows| !rows.is_empty())
                }
                _ => self.to.mysql().await.query_first::<u8, _>(&query).await.is_ok_and(|row| row.is_some()),
            };
            if !found {
                return false;
            }
        }
        true
    }

    fn same(&self, log: &str) {
        for table in TABLES {
            let there = match self.to.kind {
                ServerKind::Postgres => {
                    table_digest(self.to, &self.target, &format!("{}.{table}", self.database))
                }
                _ => table_digest(self.to, &self.target, table),
            };
            assert_eq!(table_digest(self.from, &self.database, table), there, "table {table}: {log}");
        }
    }
}

/// A savepoint at parallelism 2; then from it at 5, at 1, and at 2 again, each killed in the middle of the load.
async fn rescaled(from: Option<&'static Server>, to: Option<&'static Server>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    let job = Job::new(from, to).await;
    let mut conn = from.mysql().await;
    load::create(&mut conn, &job.database, ROWS).await;
    let load = Load::start(from, &job.database, ROWS, u64::from(from.port)).await;
    let mut canalis = job.start(2, &[]);
    load::mark(&mut conn, &job.database, -1).await;
    canalis.until(async || job.has(-1).await).await;
    let epoch = newest_checkpoint(job.directory.path());
    canalis.until(async || newest_checkpoint(job.directory.path()) > epoch).await;
    let savepoint = job.savepoint();
    // The target goes beyond the savepoint before the crash.
    load::mark(&mut conn, &job.database, -2).await;
    canalis.until(async || job.has(-2).await).await;
    assert!(canalis.kill9(), "{}", canalis.log());
    let mut mark = -2;
    for parallelism in [5, 1, 2] {
        mark -= 1;
        let mut canalis = job.start(parallelism, &["--from-savepoint", savepoint.to_str().unwrap()]);
        load::mark(&mut conn, &job.database, mark).await;
        canalis.until(async || job.has(mark).await).await;
        assert!(canalis.kill9(), "{}", canalis.log());
    }
    // From its newest checkpoint, with yet another number.
    load.end().await;
    let mut canalis = job.start(3, &[]);
    // The second can only come by the stream, behind everything else.
    for mark in [-100, -101] {
        load::mark(&mut conn, &job.database, mark).await;
        canalis.until(async || job.has(mark).await).await;
    }
    assert!(canalis.stop().success(), "{}", canalis.log());
    job.same(&canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_08_another_parallelism_mariadb_to_mysql() {
    rescaled(canalis_testkit::mariadb(), canalis_testkit::mysql()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_08_another_parallelism_mysql_to_postgres() {
    rescaled(canalis_testkit::mysql(), canalis_testkit::postgres()).await;
}

/// Writer 0 of five runs ahead of the others; then two writers go on from the savepoint of two.
#[tokio::test(flavor = "multi_thread")]
async fn rs_08_a_position_of_one_of_five_writers_says_nothing_about_one_of_two() {
    let (Some(from), Some(to)) = (canalis_testkit::mariadb(), canalis_testkit::postgres()) else { return };
    let job = Job::new(from, to).await;
    let mut conn = from.mysql().await;
    let schema = job.database.clone();
    let rows: Vec<String> = (0..64).map(|id| format!("({id}, 0)")).collect();
    run(
        &mut conn,
        &[
            &format!("USE {schema}"),
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE k (a INT)",
            &format!("INSERT INTO t VALUES {}", rows.join(",")),
        ],
    )
    .await;
    let client = to.postgres(&job.target).await;
    let count = async |what: &str| -> Option<i64> {
        let query = format!("SELECT COUNT(*) FROM {schema}.{what}");
        client.query_one(&query, &[]).await.ok().map(|row| row.get(0))
    };
    // Everything in one transaction, so that every writer commits its share at once.
    let update = async |conn: &mut mysql_async::Conn, v: i32| {
        let (t, k) = (format!("UPDATE t SET v = {v}"), format!("INSERT INTO k VALUES ({v})"));
        run(conn, &["BEGIN", &t, &k, "COMMIT"]).await;
    };
    let mut canalis = job.start(2, &[]);
    canalis.until(async || count("t WHERE v = 0").await == Some(64)).await;
    let epoch = newest_checkpoint(job.directory.path());
    canalis.until(async || newest_checkpoint(job.directory.path()) > epoch).await;
    let savepoint = job.savepoint();
    assert!(canalis.stop().success(), "{}", canalis.log());
    let from_savepoint = ["--from-savepoint", savepoint.to_str().unwrap()];

    let mut canalis = job.start(5, &from_savepoint);
    update(&mut conn, 1).await;
    canalis
        .until(async || count("t WHERE v = 1").await == Some(64) && count("k WHERE a = 1").await == Some(1))
        .await;
    // Writer 0 has the table without a key: the rows of its transaction are its own.
    let others = format!("FROM {schema}.t WHERE xmin <> (SELECT xmin FROM {schema}.k WHERE a = 1)");
    let query = format!("SELECT COUNT(*) {others}");
    assert!(client.query_one(&query, &[]).await.unwrap().get::<_, i64>(0) > 20);
    let mut locker = to.postgres(&job.target).await;
    let lock = locker.transaction().await.unwrap();
    lock.query(&format!("SELECT * {others} FOR UPDATE"), &[]).await.unwrap();
    update(&mut conn, 2).await;
    let waits = async || {
        let query = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                     AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
        client.query_one(query, &[]).await.unwrap().get::<_, i64>(0) > 0
    };
    canalis.until(async || count("k WHERE a = 2").await == Some(1) && waits().await).await;
    assert!(canalis.kill9());
    // Else what the killed process had sent would still be committed once the rows are free.
    let waiting = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE NOT granted \
                     AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
    assert!(client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0);
    lock.rollback().await.unwrap();

    let mut canalis = job.start(2, &from_savepoint);
    run(&mut conn, &["INSERT INTO t VALUES (1000, 3)", "INSERT INTO k VALUES (3)"]).await;
    canalis
        .until(async || {
            count("t WHERE id = 1000").await == Some(1) && count("k WHERE a = 3").await == Some(1)
        })
        .await;
    // Both writers have come to the end once a checkpoint began after the last row.
    let epoch = newest_checkpoint(job.directory.path());
    canalis.until(async || newest_checkpoint(job.directory.path()) > epoch + 1).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    for table in ["t", "k"] {
        let there = table_digest(to, &job.target, &format!("{schema}.{table}"));
        assert_eq!(table_digest(from, &schema, table), there, "{table}: {}", canalis.log());
    }
}
