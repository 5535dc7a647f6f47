//! Owns a change load on a source: inserts, updates, deletes and key changes on tables with and without keys.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use canalis_testkit::Server;
use mysql_async::{Conn, prelude::Queryable};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::task::JoinHandle;

/// Tables of the load, in the order in which they are made.
pub const TABLES: [&str; 4] = ["keyed", "composite", "uniq", "keyless"];

/// Makes the tables in `database` and fills them.
pub async fn create(conn: &mut Conn, database: &str, rows: u64) {
    conn.query_drop(format!("USE {database}")).await.unwrap();
    for statement in [
        "CREATE TABLE keyed (id BIGINT PRIMARY KEY, k INT NOT NULL, v VARCHAR(100) CHARACTER SET utf8mb4, \
         m DECIMAL(20,4), t DATETIME(6), KEY (k))",
        "CREATE TABLE composite (a INT NOT NULL, b VARCHAR(20) CHARACTER SET utf8mb4 NOT NULL, n INT, PRIMARY KEY (a, b))",
        "CREATE TABLE uniq (id BIGINT PRIMARY KEY, u BIGINT NOT NULL, v VARCHAR(40), UNIQUE KEY (u))",
        "CREATE TABLE keyless (a INT, b VARCHAR(50), c DECIMAL(12,2))",
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let mut from = 1;
    while from <= rows {
        let to = (from + 999).min(rows);
        let list = |row: &dyn Fn(u64) -> String| (from..=to).map(row).collect::<Vec<_>>().join(",");
        let keyed = list(&|i| {
            format!("({i}, {}, 'näme-{i}', {}.25, '2024-02-03 04:05:06.{:06}')", i % 97, i % 1000, i)
        });
        conn.query_drop(format!("INSERT INTO keyed VALUES {keyed}")).await.unwrap();
        if from <= rows / 4 {
            let composite = list(&|i| format!("({}, 'k{i}', {i})", i % 7));
            conn.query_drop(format!("INSERT INTO composite VALUES {composite}")).await.unwrap();
            let uniq = list(&|i| format!("({i}, {}, 'u')", i * 3));
            conn.query_drop(format!("INSERT INTO uniq VALUES {uniq}")).await.unwrap();
            // Every row twice: twins must stay twins.
            let keyless = list(&|i| format!("({}, 'b{}', {}.50)", i / 2, i / 2, i % 50));
            conn.query_drop(format!("INSERT INTO keyless VALUES {keyless}")).await.unwrap();
        }
        from = to + 1;
    }
}

/// A running load.
pub struct Load {
    stop: Arc<AtomicBool>,
    changes: Arc<AtomicU64>,
    started: Instant,
    task: JoinHandle<()>,
}

impl Load {
    /// Starts changing rows of the tables made by [`create`], in transactions of about 35 rows, every 8 ms.
    pub async fn start(server: &Server, database: &str, rows: u64, seed: u64) -> Self {
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE {database}")).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let changes = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn({
            let (stop, changes) = (stop.clone(), changes.clone());
            async move {
                let mut random = StdRng::seed_from_u64(seed);
                let mut next = rows + 1;
                let mut tick = tokio::time::interval(Duration::from_millis(8));
                while !stop.load(Ordering::Relaxed) {
                    tick.tick().await;
                    let changed = transaction(&mut conn, &mut random, &mut next, rows).await;
                    changes.fetch_add(changed, Ordering::Relaxed);
                }
            }
        });
        Self { stop, changes, started: Instant::now(), task }
    }

    /// Ends it: row changes per second over its life.
    pub async fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap().max(1);
        self.changes.load(Ordering::Relaxed) * 1000 / millis
    }
}

async fn transaction(conn: &mut Conn, random: &mut StdRng, next: &mut u64, rows: u64) -> u64 {
    conn.query_drop("BEGIN").await.unwrap();
    let mut changed = 0;
    for _ in 0..4 {
        let at = random.random_range(1..=rows);
        let fresh = *next;
        *next += 10;
        let statement = match random.random_range(0..12) {
            0 => format!("UPDATE keyed SET k = k + 1, v = 'ü{fresh}' WHERE id BETWEEN {at} AND {}", at + 19),
            1 => format!(
                "INSERT INTO keyed VALUES {}",
                (0..10)
                    .map(|i| format!("({}, {i}, NULL, {i}.5, NOW(6))", fresh + i))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            2 => format!("DELETE FROM keyed WHERE id BETWEEN {at} AND {}", at + 3),
            // Key changes.
            3 => format!("UPDATE keyed SET id = 1000000000 + {fresh} WHERE id = {at}"),
            4 => {
                format!("UPDATE composite SET b = CONCAT('m', {fresh}) WHERE a = {} AND b = 'k{at}'", at % 7)
            }
            5 => format!("UPDATE composite SET n = n + 1 WHERE a = {} LIMIT 20", at % 7),
            6 => format!(
                "UPDATE uniq SET v = 'x{fresh}', u = u + 100000000 WHERE id BETWEEN {at} AND {}",
                at + 9
            ),
            // A unique value goes from one row to another inside one transaction.
            7 => format!(
                "DELETE FROM uniq WHERE id = {fresh}; INSERT INTO uniq VALUES ({fresh}, {fresh}000000, 'first'); \
                 UPDATE uniq SET u = {fresh}000001 WHERE id = {fresh}; \
                 INSERT INTO uniq VALUES ({}, {fresh}000000, 'second')",
                fresh + 1
            ),
            8 => format!("DELETE FROM keyless WHERE a = {} LIMIT 1", at / 2),
            9 => format!("INSERT INTO keyless VALUES ({fresh}, 'twin', 1.25), ({fresh}, 'twin', 1.25)"),
            10 => {
                format!("UPDATE keyless SET c = c + 1 WHERE a BETWEEN {} AND {} LIMIT 10", at / 2, at / 2 + 8)
            }
            _ => format!("UPDATE keyed SET m = m + 0.0001 WHERE id BETWEEN {at} AND {}", at + 29),
        };
        for part in statement.split("; ") {
            conn.query_drop(part).await.unwrap();
            changed += conn.affected_rows();
        }
    }
    conn.query_drop("COMMIT").await.unwrap();
    changed
}

/// Puts a last row into every table, to be waited for at the target.
pub async fn mark(conn: &mut Conn, database: &str, mark: i64) {
    for statement in [
        format!("INSERT INTO {database}.keyed VALUES ({mark}, 0, 'mark', NULL, NULL)"),
        format!("INSERT INTO {database}.composite VALUES ({mark}, 'mark', 0)"),
        format!("INSERT INTO {database}.uniq VALUES ({mark}, {mark}, 'mark')"),
        format!("INSERT INTO {database}.keyless VALUES ({mark}, 'mark', 0)"),
    ] {
        conn.query_drop(statement).await.unwrap();
    }
}
