//! Keys that are hard to cut and to compare (MY-05, KY-05, KY-06, KY-07, KY-08), through the whole tool.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use canalis_testkit::ServerKind;
use mysql_async::prelude::Queryable;

use super::{
    behaviour::run,
    process::{Canalis, DEBUG},
    targets::{Target, at_source},
};

/// Splits of the snapshot that a log says were dealt.
pub fn chunks(log: &str) -> usize {
    log.lines().filter(|line| line.contains("a split is dealt")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_05_keys_that_ignore_case_are_each_copied_once_while_they_change() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("ci").await;
        let mut conn = from.mysql().await;
        run(
            &mut conn,
            &[
                &format!("USE {database}"),
                "CREATE TABLE t (k VARCHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)",
                "INSERT INTO t VALUES ('10',1),('2b',2),('K7',3),('k8',4),('Mango',5),('melon',6),('ZEBRA',7),\
                 ('zinc',8),('Äpfel',9),('apfel2',10)",
            ],
        )
        .await;
        for group in 0..10 {
            let rows: Vec<String> = (0..20)
                .map(|n| format!("('{}{group}{n}', 0)", ["x", "X", "é", "E", "_"][(group + n) % 5]))
                .collect();
            run(&mut conn, &[&format!("INSERT IGNORE INTO t VALUES {}", rows.join(","))]).await;
        }
        let total: u64 = conn.query_first("SELECT COUNT(*) FROM t").await.unwrap().unwrap();
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let stop = Arc::new(AtomicBool::new(false));
            let load = tokio::spawn({
                let (stop, mut conn, database) = (stop.clone(), from.mysql().await, database.clone());
                async move {
                    run(&mut conn, &[&format!("USE {database}")]).await;
                    while !stop.load(Ordering::Relaxed) {
                        run(
                            &mut conn,
                            &[
                                "UPDATE t SET v = v + 1 WHERE k IN ('zinc', 'ÄPFEL', 'k7')",
                                // The same key to the source, another one to everybody else.
                                "UPDATE t SET k = IF(BINARY k = 'Mango', 'mANGO', 'Mango') WHERE k = 'mango'",
                                "DELETE FROM t WHERE k = 'melon'",
                                "INSERT INTO t VALUES ('melon', 60)",
                                "UPDATE t SET v = v + 1 WHERE k LIKE 'x%'",
                            ],
                        )
                        .await;
                    }
                }
            });
            let job = tempfile::tempdir().unwrap();
            let pipeline = target.pipeline(
                from,
                &database,
                "  scan.incremental.snapshot.chunk.size: 2\n",
                "",
                "pipeline:\n  parallelism: 3\n",
            );
            let mut canalis = Canalis::start_as(job.path(), &pipeline, &[], DEBUG);
            canalis
                .until(async || target.value("SELECT COUNT(*) FROM {t}", "t").await.is_some_and(|n| n != "0"))
                .await;
            stop.store(true, Ordering::Relaxed);
            load.await.unwrap();
            run(&mut conn, &["UPDATE t SET v = v + 1"]).await;
            let wanted = at_source(from, &database, "k", "v", "t").await;
            canalis.until(async || target.listed("k", "v", "t").await.as_deref() == Some(&wanted)).await;
            assert!(canalis.stop().success(), "{}", canalis.log());
            // No chunk is larger than twice the size, so there are at least so many.
            let dealt = chunks(&canalis.log());
            assert!(dealt as u64 >= total / 4, "{dealt} chunks of {total} rows");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_07_keys_that_differ_in_case_accent_or_blanks_are_five_rows() {
    let sources =
        [(canalis_testkit::mariadb(), "utf8mb4_nopad_bin"), (canalis_testkit::mysql(), "utf8mb4_0900_bin")];
    for (from, collation) in sources {
        let Some(from) = from else { continue };
        let database = from.create_database("twins").await;
        let mut conn = from.mysql().await;
        let table = format!(
            "CREATE TABLE t (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE {collation} PRIMARY KEY, v INT)"
        );
        run(&mut conn, &[&format!("USE {database}"), &table]).await;
        run(&mut conn, &["INSERT INTO t VALUES ('abc',1),('ABC',2),('abc ',3),('é',4),('e',5)"]).await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let job = tempfile::tempdir().unwrap();
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, "", "", ""));
            canalis
                .until(async || target.value("SELECT COUNT(*) FROM {t}", "t").await.as_deref() == Some("5"))
                .await;
            // By the stream: each row is found by its own key.
            run(
                &mut conn,
                &[
                    "UPDATE t SET v = v + 10",
                    "DELETE FROM t WHERE k = 'ABC'",
                    "INSERT INTO t VALUES ('ABC', 6)",
                ],
            )
            .await;
            let wanted = at_source(from, &database, "k", "v", "t").await;
            assert_eq!(wanted.split(' ').count(), 5, "{wanted}");
            canalis.until(async || target.listed("k", "v", "t").await.as_deref() == Some(&wanted)).await;
            assert!(canalis.stop().success(), "{}", canalis.log());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_07_a_target_that_takes_two_keys_for_one_ends_the_job_with_both_values() {
    let (Some(from), Some(to)) = (canalis_testkit::mysql(), canalis_testkit::mariadb()) else { return };
    let database = from.create_database("merge").await;
    let mut conn = from.mysql().await;
    run(
        &mut conn,
        &[
            &format!("USE {database}"),
            "CREATE TABLE t (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES ('abc',1),('ABC',2),('abc ',3),('é',4),('e',5)",
        ],
    )
    .await;
    let mut there = to.mysql().await;
    run(
        &mut there,
        &[
            &format!("CREATE DATABASE {database}_copy"),
            &format!(
                "CREATE TABLE {database}_copy.t (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)"
            ),
        ],
    )
    .await;
    let target = Target::Server(to, String::new(), format!("{database}_copy"));
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &target.pipeline(from, &database, "", "", ""));
    assert_eq!(canalis.wait().code(), Some(1), "{}", canalis.log());
    let log = canalis.log();
    assert!(
        log.contains("\"code\": \"CNL-3003\"") && log.contains("(abc)") && log.contains("(ABC)"),
        "{log}"
    );
    // Not even the first of them is there: the transaction of both was not committed.
    assert_eq!(target.value("SELECT COUNT(*) FROM {t}", "t").await.as_deref(), Some("0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_08_a_sparse_key_gives_few_chunks_and_ends() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("sparse").await;
        let mut conn = from.mysql().await;
        let ids: Vec<String> = (1..=1000).map(|id| format!("({id})")).collect();
        run(
            &mut conn,
            &[
                &format!("USE {database}"),
                "CREATE TABLE t (id BIGINT PRIMARY KEY)",
                &format!("INSERT INTO t VALUES {}, (9000000000000000000)", ids.join(",")),
            ],
        )
        .await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            let job = tempfile::tempdir().unwrap();
            let options = "  scan.startup.mode: snapshot\n  scan.incremental.snapshot.chunk.size: 100\n";
            let pipeline = target.pipeline(from, &database, options, "", "");
            let mut canalis = Canalis::start_as(job.path(), &pipeline, &[], DEBUG);
            assert!(canalis.wait().success(), "{}", canalis.log());
            let sums = target.value("SELECT COUNT(*) FROM {t}", "t").await;
            assert_eq!(sums.as_deref(), Some("1001"));
            let largest = target.value("SELECT MAX(id) FROM {t}", "t").await;
            assert_eq!(largest.as_deref(), Some("9000000000000000000"));
            let dealt = chunks(&canalis.log());
            assert!((1..=30).contains(&dealt), "{dealt} chunks");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_05_unsigned_keys_across_the_sign_border_are_keys_at_every_target() {
    for from in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = from.create_database("ukey").await;
        let mut conn = from.mysql().await;
        run(
            &mut conn,
            &[&format!("USE {database}"), "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v INT)"],
        )
        .await;
        let directory = tempfile::tempdir().unwrap();
        for target in Target::all(&database, directory.path()).await {
            run(
                &mut conn,
                &[
                    "DELETE FROM t",
                    "INSERT INTO t VALUES (1,0), (9223372036854775807,0), (9223372036854775808,0), (18446744073709551614,0)",
                ],
            )
            .await;
            let job = tempfile::tempdir().unwrap();
            let size = "  scan.incremental.snapshot.chunk.size: 2\n";
            let mut canalis = Canalis::start(job.path(), &target.pipeline(from, &database, size, "", ""));
            canalis
                .until(async || target.value("SELECT COUNT(*) FROM {t}", "t").await.as_deref() == Some("4"))
                .await;
            run(
                &mut conn,
                &[
                    "UPDATE t SET v = v + 1",
                    "UPDATE t SET id = 18446744073709551615 WHERE id = 18446744073709551614",
                    "DELETE FROM t WHERE id = 9223372036854775808",
                    "INSERT INTO t VALUES (0, 5)",
                ],
            )
            .await;
            let rows = "0:5 18446744073709551615:1 1:1 9223372036854775807:1";
            let query = match &target {
                Target::Sqlite(_) => {
                    "SELECT group_concat(p, ' ') FROM (SELECT id || ':' || v AS p FROM {t} ORDER BY p)"
                }
                Target::Server(server, ..) if server.kind == ServerKind::Postgres => {
                    "SELECT string_agg(id::text || ':' || v, ' ' ORDER BY (id::text || ':' || v) COLLATE \"C\") FROM {t}"
                }
                Target::Server(..) => {
                    "SELECT GROUP_CONCAT(CONCAT(id, ':', v) ORDER BY BINARY CONCAT(id, ':', v) SEPARATOR ' ') FROM {t}"
                }
            };
            canalis.until(async || target.value(query, "t").await.as_deref() == Some(rows)).await;
            assert!(canalis.stop().success(), "{}", canalis.log());
        }
    }
}
