//! Values that the calendar, the time zone, the type or a later ALTER could spoil (MY-01, MY-02, MY-03, MY-06, MY-08,
//! MY-15), from the source to every target, by snapshot and by stream.

use canalis_testkit::{Server, ServerKind};
use mysql_async::{Conn, Row, prelude::Queryable};
use serde_json::Value;

use super::{behaviour::run, process::Canalis, targets::Target};

const ZERO: &str = "0000-00-00 00:00:00";

impl Target {
    fn is_postgres(&self) -> bool {
        matches!(self, Self::Server(server, ..) if server.kind == ServerKind::Postgres)
    }

    /// Cells of a row as text, as the target prints them.
    async fn cells(&self, columns: &[&str], id: u32) -> Vec<Option<String>> {
        let mut cells = Vec::new();
        for column in columns {
            let query = match self {
                Self::Server(server, ..) if server.kind == ServerKind::Postgres => {
                    format!("SELECT {column}::text FROM {{t}} WHERE id = {id}")
                }
                Self::Server(..) => format!("SELECT CAST({column} AS CHAR) FROM {{t}} WHERE id = {id}"),
                Self::Sqlite(_) => format!("SELECT {column} FROM {{t}} WHERE id = {id}"),
            };
            cells.push(self.value(&query, "t").await);
        }
        cells
    }

    async fn has(&self, id: u32) -> bool {
        self.value(&format!("SELECT COUNT(*) FROM {{t}} WHERE id = {id}"), "t").await.as_deref() == Some("1")
    }
}

fn texts(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| (*cell != "NULL").then(|| (*cell).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn my_01_my_02_zero_dates_arrive_or_follow_the_policy() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let directory = tempfile::tempdir().unwrap();
        let probe = from.create_database("zero").await;
        for target in Target::all(&probe, directory.path()).await {
            let mut conn = from.mysql().await;
            run(
                &mut conn,
                &[
                    &format!("USE {probe}"),
                    "SET sql_mode = '', time_zone = '+00:00'",
                    "DROP TABLE IF EXISTS t",
                    "CREATE TABLE t (id INT PRIMARY KEY, a DATETIME NULL, b DATETIME NULL, c TIMESTAMP NULL, d DATE NULL)",
                    &format!("INSERT INTO t VALUES (1, '{ZERO}', '2025-00-15 10:20:30', '{ZERO}', '0000-00-00')"),
                    "INSERT INTO t VALUES (2, '2025-06-00 00:00:00', '2024-02-29 23:59:59', '2025-06-01 00:00:00', '2025-06-00')",
                ],
            )
            .await;
            let policy = if target.is_postgres() { "  invalid-date.policy: \"null\"\n" } else { "" };
            let job = tempfile::tempdir().unwrap();
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &probe, "", policy, ""));
            canalis.until(async || target.has(2).await).await;
            run(
                &mut conn,
                &[
                    "INSERT INTO t SELECT id + 10, a, b, c, d FROM t",
                    "UPDATE t SET a = '2024-01-01 00:00:00' WHERE id = 1",
                ],
            )
            .await;
            let columns = ["a", "b", "c", "d"];
            canalis
                .until(async || {
                    target.has(12).await
                        && target.cells(&["a"], 1).await[0].as_ref().is_some_and(|a| a.starts_with("2024"))
                })
                .await;
            let (one, two) = match &target {
                // `null` for dates that no calendar has.
                t if t.is_postgres() => (
                    ["NULL", "NULL", "NULL", "NULL"],
                    ["NULL", "2024-02-29 23:59:59", "2025-06-01 00:00:00+00", "NULL"],
                ),
                Target::Sqlite(_) => (
                    [ZERO, "2025-00-15 10:20:30", "0000-00-00 00:00:00Z", "0000-00-00"],
                    ["2025-06-00 00:00:00", "2024-02-29 23:59:59", "2025-06-01 00:00:00Z", "2025-06-00"],
                ),
                _ => (
                    [ZERO, "2025-00-15 10:20:30", ZERO, "0000-00-00"],
                    ["2025-06-00 00:00:00", "2024-02-29 23:59:59", "2025-06-01 00:00:00", "2025-06-00"],
                ),
            };
            for id in [2, 12] {
                assert_eq!(target.cells(&columns, id).await, texts(&two), "row {id}: {}", canalis.log());
            }
            assert_eq!(target.cells(&columns, 11).await, texts(&one));
            assert_eq!(target.cells(&columns, 1).await[1..], texts(&one)[1..]);
            assert!(canalis.stop().success(), "{}", canalis.log());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_01_a_zero_date_in_a_not_null_column_is_a_dead_letter_and_the_stream_goes_on() {
    let Some(to) = canalis_testkit::postgres() else { return };
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("zerodlq").await;
        let mut conn = from.mysql().await;
        run(
            &mut conn,
            &[
                &format!("USE {database}"),
                "SET sql_mode = ''",
                "CREATE TABLE t (id INT PRIMARY KEY, a DATETIME NULL, b DATETIME NOT NULL, c TIMESTAMP NOT NULL DEFAULT 0)",
                &format!("INSERT INTO t VALUES (1, '{ZERO}', '{ZERO}', '{ZERO}')"),
                &format!("INSERT INTO t VALUES (2, '{ZERO}', '2024-01-01 00:00:00', '2024-01-01 00:00:00')"),
            ],
        )
        .await;
        let target = Target::Server(to, to.create_database("zerodlq").await, database.clone());
        let policy = "  invalid-date.policy: \"null\"\n";
        let job = tempfile::tempdir().unwrap();
        let queue = "pipeline:\n  dead-letter.policy: queue\n";
        let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, "", policy, queue));
        canalis.until(async || target.has(2).await).await;
        run(
            &mut conn,
            &[
                "UPDATE t SET a = NOW() WHERE id = 1",
                &format!("INSERT INTO t VALUES (3, '{ZERO}', '{ZERO}', '{ZERO}')"),
                "INSERT INTO t VALUES (4, NULL, '2024-01-01 00:00:00', '2024-01-01 00:00:00')",
            ],
        )
        .await;
        canalis.until(async || target.has(4).await).await;
        assert!(canalis.stop().success(), "{}", canalis.log());
        let count = target.value("SELECT COUNT(*) FROM {t}", "t").await;
        assert_eq!(count.as_deref(), Some("2"));
        let letters = std::fs::read_to_string(job.path().join("state/dead-letters.jsonl")).unwrap();
        let letters: Vec<Value> = letters.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut ids: Vec<u64> =
            letters.iter().map(|letter| letter["payload"]["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        // By snapshot, its update by stream, and an insert by stream.
        assert_eq!(ids, [1, 1, 3], "{letters:?}");
        assert!(letters.iter().all(|l| l["reason"].as_str().unwrap().contains("`b`")), "{letters:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_03_zones_of_server_and_worker_do_not_matter() {
    let servers = [
        canalis_testkit::start_mariadb(&["--default-time-zone=+08:00"]),
        canalis_testkit::start_mysql(&["--default-time-zone=+08:00"]),
    ];
    for from in servers.iter().flatten() {
        let database = from.create_database("zone").await;
        let mut conn = from.mysql().await;
        run(
            &mut conn,
            &[
                &format!("USE {database}"),
                "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP(3) NULL, dt DATETIME(3))",
                "INSERT INTO t VALUES (1, '2024-03-10 09:00:00.123', '2024-03-10 09:00:00.123')",
            ],
        )
        .await;
        let mut reached = 0;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            run(&mut conn, &["DELETE FROM t WHERE id = 2"]).await;
            let job = tempfile::tempdir().unwrap();
            let pipeline = target.pipeline(from, &database, "", "", "");
            let zone = [("TZ", "America/New_York")];
            let mut canalis = Canalis::start_as(job.path(), &pipeline, &[], &zone);
            canalis.until(async || target.has(1).await).await;
            run(
                &mut conn,
                &["INSERT INTO t VALUES (2, '2024-03-10 09:00:00.123', '2024-03-10 09:00:00.123')"],
            )
            .await;
            canalis.until(async || target.has(2).await).await;
            assert!(canalis.stop().success(), "{}", canalis.log());
            for id in [1, 2] {
                let (instant, wall) = match &target {
                    // Seconds since the epoch.
                    Target::Server(server, ..) if server.kind == ServerKind::Postgres => {
                        ("EXTRACT(EPOCH FROM ts)::numeric(20,3)", "1710032400.123")
                    }
                    Target::Server(..) => ("UNIX_TIMESTAMP(ts)", "1710032400.123"),
                    Target::Sqlite(_) => ("ts", "2024-03-10 01:00:00.123Z"),
                };
                let cells = target.cells(&[instant, "dt"], id).await;
                assert_eq!(cells, texts(&[wall, "2024-03-10 09:00:00.123"]), "row {id}");
                reached += 1;
            }
        }
        assert!(reached > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_06_tinyint1_is_a_number_and_by_option_a_truth_value_on_both_paths() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        for truth in [false, true] {
            let database = from.create_database("truth").await;
            let mut conn = from.mysql().await;
            run(
                &mut conn,
                &[
                    &format!("USE {database}"),
                    "CREATE TABLE t (id INT PRIMARY KEY, f TINYINT(1))",
                    "INSERT INTO t VALUES (1,0),(2,1),(3,2),(4,-1),(5,127),(6,NULL)",
                ],
            )
            .await;
            let directory = tempfile::tempdir().unwrap();
            for target in Target::all(&database, directory.path()).await {
                run(&mut conn, &["DELETE FROM t WHERE id > 10"]).await;
                let option = format!("  treat-tinyint1-as-boolean.enabled: {truth}\n");
                let job = tempfile::tempdir().unwrap();
                let mut canalis =
                    Canalis::start(job.path(), &target.pipeline(from, &database, &option, "", ""));
                canalis
                    .until(async || {
                        target.value("SELECT COUNT(*) FROM {t}", "t").await.as_deref() == Some("6")
                    })
                    .await;
                run(&mut conn, &["INSERT INTO t SELECT id + 10, f FROM t"]).await;
                canalis
                    .until(async || {
                        target.value("SELECT COUNT(*) FROM {t}", "t").await.as_deref() == Some("12")
                    })
                    .await;
                assert!(canalis.stop().success(), "{}", canalis.log());
                let numbers = ["0", "1", "2", "-1", "127"];
                for (id, number) in (1_u32..).zip(numbers) {
                    let wanted = match (truth, target.is_postgres(), number != "0") {
                        (false, ..) => number,
                        (true, true, yes) => ["false", "true"][usize::from(yes)],
                        (true, false, yes) => ["0", "1"][usize::from(yes)],
                    };
                    for id in [id, id + 10] {
                        assert_eq!(target.cells(&["f"], id).await, texts(&[wanted]), "{number} as row {id}");
                    }
                }
                assert_eq!(target.cells(&["f"], 16).await, texts(&["NULL"]));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_08_zerofill_in_a_ddl_is_a_number_without_sign() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let directory = tempfile::tempdir().unwrap();
        let database = from.create_database("zerofill").await;
        for target in Target::all(&database, directory.path()).await {
            let mut conn = from.mysql().await;
            let make = "CREATE TABLE t (id INT PRIMARY KEY)";
            run(
                &mut conn,
                &[&format!("USE {database}"), "DROP TABLE IF EXISTS t", make, "INSERT INTO t VALUES (9)"],
            )
            .await;
            let job = tempfile::tempdir().unwrap();
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, "", "", ""));
            canalis.until(async || target.has(9).await).await;
            run(&mut conn, &["INSERT INTO t VALUES (8)"]).await;
            canalis.until(async || target.has(8).await).await;
            run(
                &mut conn,
                &[
                    "ALTER TABLE t ADD COLUMN z INT(6) ZEROFILL",
                    "INSERT INTO t VALUES (1, 42), (2, 4294967295)",
                ],
            )
            .await;
            canalis.until(async || target.has(2).await && target.has(1).await).await;
            run(&mut conn, &["INSERT INTO t VALUES (3, 0)"]).await;
            canalis.until(async || target.has(3).await).await;
            assert!(canalis.stop().success(), "{}", canalis.log());
            let number =
                if target.is_postgres() || matches!(target, Target::Sqlite(_)) { "z" } else { "z + 0" };
            for (id, wanted) in [(1, "42"), (2, "4294967295"), (3, "0")] {
                assert_eq!(target.cells(&[number], id).await, texts(&[wanted]));
            }
            if target.is_postgres() {
                assert_eq!(target.cells(&["pg_typeof(z)"], 1).await, texts(&["bigint"]));
            }
        }
    }
}

/// A job that was stopped when it had row 0 of `t`; then `statements` were run.
async fn stopped_before(
    from: &Server,
    target: &Target,
    database: &str,
    statements: &[&str],
) -> tempfile::TempDir {
    let mut conn = from.mysql().await;
    run(
        &mut conn,
        &[
            &format!("USE {database}"),
            "DROP TABLE IF EXISTS t",
            "CREATE TABLE t (id INT PRIMARY KEY, s ENUM('new','paid','sent'))",
        ],
    )
    .await;
    let job = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(job.path(), &target.pipeline(from, database, "", "", ""));
    canalis.until(async || target.value("SELECT COUNT(*) FROM {t}", "t").await.as_deref() == Some("0")).await;
    run(&mut conn, &["INSERT INTO t VALUES (10, 'new')"]).await;
    canalis.until(async || target.has(10).await).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    run(&mut conn, statements).await;
    job
}

/// Old rows are decoded with the labels of their time. A re-ordered ENUM is a change that is refused for now, so the job
/// stops there and says so; it never writes a wrong label.
#[tokio::test(flavor = "multi_thread")]
async fn my_15_a_reordered_enum_keeps_the_labels_of_old_rows() {
    let alter = "ALTER TABLE t MODIFY s ENUM('draft','new','paid','sent')";
    let statements = ["INSERT INTO t VALUES (1, 'paid')", alter, "INSERT INTO t VALUES (2, 'paid')"];
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("labels").await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let job = stopped_before(from, &target, &database, &statements).await;
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, "", "", ""));
            assert_eq!(canalis.wait().code(), Some(1), "{}", canalis.log());
            let log = canalis.log();
            assert!(log.contains("CNL-2008") && log.contains(alter), "{log}");
            // Rows before the statement may wait for the next start; those that are there have their own label.
            let label = target.cells(&["s"], 1).await.remove(0);
            assert!(label.is_none() || label.as_deref() == Some("paid"), "{label:?}: {log}");
            assert!(!target.has(2).await, "{log}");
        }
    }
}

/// The same with a column that was added in between, which is carried out.
#[tokio::test(flavor = "multi_thread")]
async fn my_15_rows_of_before_an_added_column_are_decoded_without_it() {
    let statements = [
        "INSERT INTO t VALUES (1, 'paid')",
        "ALTER TABLE t ADD COLUMN n VARCHAR(20) AFTER id",
        "INSERT INTO t VALUES (2, 'n', 'sent')",
        "UPDATE t SET n = 'later' WHERE id = 1",
        "INSERT INTO t VALUES (3, NULL, 'new')",
    ];
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("before").await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let job = stopped_before(from, &target, &database, &statements).await;
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, "", "", ""));
            for (id, row) in (1..).zip([["later", "paid"], ["n", "sent"], ["NULL", "new"]]) {
                canalis.until(async || target.cells(&["n", "s"], id).await == texts(&row)).await;
            }
            assert!(canalis.stop().success(), "{}", canalis.log());
        }
    }
}

/// A job that begins before the CREATE takes the structure from there, whatever the table has become since.
#[tokio::test(flavor = "multi_thread")]
async fn my_15_a_start_before_the_create_decodes_with_the_structures_of_their_time() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("created").await;
        let mut conn = from.mysql().await;
        let start = here(from, &mut conn).await;
        run(
            &mut conn,
            &[
                &format!("USE {database}"),
                "CREATE TABLE t (id INT PRIMARY KEY, s ENUM('new','paid','sent'))",
                "INSERT INTO t VALUES (1, 'paid')",
                "ALTER TABLE t ADD COLUMN n VARCHAR(20)",
                "INSERT INTO t VALUES (2, 'sent', 'n')",
            ],
        )
        .await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let job = tempfile::tempdir().unwrap();
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, &start, "", ""));
            for (id, row) in (1..).zip([["NULL", "paid"], ["n", "sent"]]) {
                canalis.until(async || target.cells(&["n", "s"], id).await == texts(&row)).await;
            }
            assert!(canalis.stop().success(), "{}", canalis.log());
        }
    }
}

/// Options of a source that begins at the present end of the log.
async fn here(from: &Server, conn: &mut Conn) -> String {
    let status = if from.kind == ServerKind::MySql { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
    let row: Row = conn.query_first(status).await.unwrap().unwrap();
    let (file, offset): (String, u64) = (row.get(0).unwrap(), row.get(1).unwrap());
    format!(
        "  scan.startup.mode: specific-offset\n  scan.startup.specific-offset.file: {file}\n  \
         scan.startup.specific-offset.pos: {offset}\n"
    )
}

/// A job that begins between the CREATE and the ALTER has no structure of that time: it may refuse, and may not guess.
#[tokio::test(flavor = "multi_thread")]
async fn my_15_labels_of_a_time_before_the_first_start_are_never_guessed() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("guess").await;
        let mut conn = from.mysql().await;
        let table = "CREATE TABLE t (id INT PRIMARY KEY, s ENUM('new','paid','sent'))";
        run(&mut conn, &[&format!("USE {database}"), table]).await;
        let start = here(from, &mut conn).await;
        run(
            &mut conn,
            &[
                "INSERT INTO t VALUES (1, 'paid')",
                "ALTER TABLE t MODIFY s ENUM('draft','new','paid','sent')",
                "INSERT INTO t VALUES (2, 'paid')",
            ],
        )
        .await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let job = tempfile::tempdir().unwrap();
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, &start, "", ""));
            assert_eq!(canalis.wait().code(), Some(1), "{}", canalis.log());
            let log = canalis.log();
            assert!(log.contains("\"code\": \"CNL-2"), "{log}");
            let label = target.cells(&["s"], 1).await.remove(0);
            assert!(label.is_none() || label.as_deref() == Some("paid"), "{label:?}: {log}");
        }
    }
}
