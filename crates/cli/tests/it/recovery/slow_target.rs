//! RS-06: with a target that holds writers up, no position is stored before its rows are durable.

use canalis_testkit::{Server, ServerKind, table_digest};
use mysql_async::{Conn, Row, prelude::Queryable};

use crate::it::{
    behaviour::run,
    process::{Canalis, checkpoints, content, newest_checkpoint, sink, source},
    targets::waits_in_innodb,
};

const ROUNDS: u64 = 12;

/// The end of the source's log: number of the file, offset.
async fn end_of_log(conn: &mut Conn, kind: ServerKind) -> (u64, u64) {
    let status = if kind == ServerKind::MySql { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
    let row: Row = conn.query_first(status).await.unwrap().unwrap();
    let file: String = row.get(0).unwrap();
    (file.rsplit('.').next().unwrap().parse().unwrap(), row.get(1).unwrap())
}

/// Where the newest checkpoint lets the stream go on, once there is a stream.
fn stored(directory: &std::path::Path) -> Option<(u64, u64)> {
    let (_, file) = checkpoints(directory).pop()?;
    let checkpoint = content(&file);
    let stream = checkpoint["running"].as_array()?.iter().find(|s| s["mode"] == "stream")?;
    let order = stream["position"]["order"].as_array()?;
    Some((order[0].as_u64()?, order[1].as_u64()?))
}

/// A lock of the test on row 0 of the target.
enum Lock {
    Mysql(Conn),
    Postgres(tokio_postgres::Client),
}

struct Target<'a> {
    server: &'a Server,
    database: String,
    schema: String,
}

impl Target<'_> {
    async fn lock(&self) -> Lock {
        let query = format!("SELECT * FROM {}.t WHERE id = 0 FOR UPDATE", self.schema);
        match self.server.kind {
            ServerKind::Postgres => {
                let client = self.server.postgres(&self.database).await;
                client.batch_execute(&format!("BEGIN; {query}")).await.unwrap();
                Lock::Postgres(client)
            }
            _ => {
                let mut conn = self.server.mysql().await;
                run(&mut conn, &["BEGIN", &query]).await;
                Lock::Mysql(conn)
            }
        }
    }

    /// Whether a writer waits for the lock.
    async fn is_stuck(&self) -> bool {
        match self.server.kind {
            ServerKind::Postgres => {
                let query = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple') \
                             AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())";
                !self.server.postgres(&self.database).await.query(query, &[]).await.unwrap().is_empty()
            }
            _ => waits_in_innodb(self.server, &self.schema).await,
        }
    }

    /// The number of rows with ids from 1 to `to`, keyed and keyless, and what row 0 holds.
    async fn held(&self, to: u64) -> Option<(i64, i64, i64)> {
        let query = format!(
            "SELECT (SELECT COUNT(*) FROM {0}.t WHERE id BETWEEN 1 AND {to}), \
             (SELECT COUNT(*) FROM {0}.k WHERE a BETWEEN 1 AND {to}), (SELECT n FROM {0}.t WHERE id = 0)",
            self.schema
        );
        match self.server.kind {
            ServerKind::Postgres => {
                let client = self.server.postgres(&self.database).await;
                let row = client.query_one(&query, &[]).await.ok()?;
                Some((row.get(0), row.get(1), row.get::<_, Option<i64>>(2)?))
            }
            _ => {
                let row: Option<(i64, i64, Option<i64>)> =
                    self.server.mysql().await.query_first(&query).await.ok()?;
                row.and_then(|(t, k, n)| Some((t, k, n?)))
            }
        }
    }
}

impl Lock {
    async fn release(self) {
        match self {
            Self::Mysql(mut conn) => conn.query_drop("ROLLBACK").await.unwrap(),
            Self::Postgres(client) => client.batch_execute("ROLLBACK").await.unwrap(),
        }
    }
}

async fn slow(from: Option<&'static Server>, to: Option<&'static Server>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    let database = from.create_database("slow").await;
    let mut conn = from.mysql().await;
    run(
        &mut conn,
        &[
            &format!("USE {database}"),
            "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)",
            "CREATE TABLE k (a BIGINT)",
            "INSERT INTO t VALUES (0, 0)",
        ],
    )
    .await;
    let target = match to.kind {
        ServerKind::Postgres => {
            Target { server: to, database: to.create_database("slow").await, schema: database.clone() }
        }
        _ => Target { server: to, database: String::new(), schema: format!("{database}_copy") },
    };
    let pipeline = format!(
        "{}{}route:\n  - source-table: {database}.\\.*\n    sink-table: {}.<>\n    replace-symbol: <>\n\
         pipeline:\n  parallelism: 3\n  execution.checkpointing.interval: 20 ms\n",
        source(from, &format!("{database}.\\.*"), ""),
        sink(to, &target.database),
        target.schema
    );
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    // Ends of the log after each transaction; the first is of the snapshot.
    let mut ends = vec![end_of_log(&mut conn, from.kind).await];
    for round in 0..ROUNDS {
        // The stream must have begun, and the row must be there to be locked.
        canalis.until(async || stored(directory.path()).is_some()).await;
        let last = ends.len() as u64 - 1;
        let whole = i64::try_from(last).unwrap();
        canalis.until(async || target.held(last).await == Some((whole, whole, whole))).await;
        let lock = target.lock().await;
        for id in last + 1..=last + 20 {
            run(
                &mut conn,
                &[
                    "BEGIN",
                    &format!("INSERT INTO t VALUES ({id}, 0)"),
                    &format!("INSERT INTO k VALUES ({id})"),
                    &format!("UPDATE t SET n = {id} WHERE id = 0"),
                    "COMMIT",
                ],
            )
            .await;
            ends.push(end_of_log(&mut conn, from.kind).await);
        }
        canalis.until(async || target.is_stuck().await).await;
        if round % 2 == 0 {
            // While a writer is held up.
            assert!(canalis.kill9());
            let position = stored(directory.path()).unwrap();
            assert!(position <= ends[usize::try_from(last).unwrap() + 1], "a position passed the locked row");
            proved(&target, position, &ends).await;
            lock.release().await;
        } else {
            // In the moment in which the next checkpoint is there.
            let before = newest_checkpoint(directory.path());
            lock.release().await;
            while newest_checkpoint(directory.path()) == before && !canalis.has_ended() {
                std::hint::spin_loop();
            }
            assert!(canalis.kill9(), "{}", canalis.log());
            proved(&target, stored(directory.path()).unwrap(), &ends).await;
        }
        canalis = Canalis::start(directory.path(), &pipeline);
    }
    let last = ends.len() as u64 - 1;
    let whole = i64::try_from(last).unwrap();
    // Everything may be there from before; this run has to have begun to be stopped.
    let before = newest_checkpoint(directory.path());
    canalis.until(async || newest_checkpoint(directory.path()) > before).await;
    canalis.until(async || target.held(last).await == Some((whole, whole, whole))).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    for table in ["t", "k"] {
        let there = match to.kind {
            ServerKind::Postgres => table_digest(to, &target.database, &format!("{}.{table}", target.schema)),
            _ => table_digest(to, &target.schema, table),
        };
        assert_eq!(table_digest(from, &database, table), there, "{table}: {}", canalis.log());
    }
}

/// Every transaction that ends at or before a stored position must be in the target.
async fn proved(target: &Target<'_>, position: (u64, u64), ends: &[(u64, u64)]) {
    let durable = ends.iter().rposition(|end| *end <= position).map_or(0, |n| n as u64);
    let (keyed, keyless, newest) = target.held(durable).await.unwrap();
    let wanted = i64::try_from(durable).unwrap();
    assert_eq!(
        (keyed, keyless),
        (wanted, wanted),
        "the stored position {position:?} covers rows that are not there"
    );
    assert!(newest >= wanted, "row 0 holds {newest}, the stored position covers {wanted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_06_positions_wait_for_a_slow_postgres() {
    slow(canalis_testkit::mysql(), canalis_testkit::postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_06_positions_wait_for_a_slow_mariadb() {
    slow(canalis_testkit::mariadb(), canalis_testkit::mariadb()).await;
}
