//! Following the log: start positions, engines, kinds of transactions, latency.

use std::time::{Duration, Instant};

use canalis_connector_api::SourceEvent;
use canalis_mysql::binlog::{BinlogPosition, StartPosition};
use canalis_testkit::{Server, ServerKind, mariadb, mysql};
use canalis_types::RowKind;
use mysql_async::{Conn, prelude::Queryable};

use super::support::{Tracker, end_of_log, reader, take_until, take_while};

async fn setup(server: &Server, table: &str) -> (Conn, Tracker, String) {
    let database = server.create_database("binlog_follow").await;
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    conn.query_drop(table).await.unwrap();
    let tracker = Tracker::new(&database);
    tracker.learn(&mut conn, "t").await;
    (conn, tracker, database)
}

fn ids(rows: &[Vec<Option<String>>]) -> Vec<String> {
    rows.iter().map(|row| row[0].clone().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_without_waiting_and_in_order() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let (mut conn, tracker, database) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
        let start = end_of_log(server, &mut conn).await;
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        // The first watermark says that the reader follows.
        loop {
            if let SourceEvent::Watermark(_) = reader.next().await.unwrap() {
                break;
            }
        }
        for id in 0..50 {
            let began = Instant::now();
            conn.query_drop(format!("INSERT INTO t VALUES ({id}, 1)")).await.unwrap();
            let taken = take_while(&mut reader, |taken| taken.rows.is_empty()).await.unwrap();
            assert!(began.elapsed() < Duration::from_secs(2));
            assert_eq!(ids(&taken.of("t", RowKind::Insert)), [id.to_string()]);
        }
        // Rows of other databases, and of tables that are made in between, are not seen.
        let other = server.create_database("binlog_other").await;
        conn.query_drop(format!(
            "CREATE TABLE `{other}`.t (id INT); INSERT INTO `{other}`.t VALUES (1), (2)"
        ))
        .await
        .unwrap();
        conn.query_drop(format!("UPDATE `{database}`.t SET v = 2 WHERE id = 7")).await.unwrap();
        let taken = take_while(&mut reader, |taken| taken.rows.is_empty()).await.unwrap();
        assert_eq!(taken.rows.len(), 2);
        assert_eq!(taken.rows[0].kind, RowKind::UpdateBefore);
        assert_eq!(taken.rows[1].cells[1].as_deref(), Some("2"));
        reader.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_after_gtids_delivers_what_follows_them() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let (mut conn, tracker, _) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY)").await;
        conn.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
        let sql = if server.kind == ServerKind::MySql {
            "SELECT @@global.gtid_executed"
        } else {
            "SELECT @@global.gtid_binlog_pos"
        };
        let set: String = conn.query_first(sql).await.unwrap().unwrap();
        conn.query_drop("INSERT INTO t VALUES (2)").await.unwrap();
        if server.kind == ServerKind::MySql {
            conn.query_drop("SET gtid_next = 'AUTOMATIC:blue_1'").await.unwrap();
        }
        conn.query_drop("INSERT INTO t VALUES (3)").await.unwrap();
        if server.kind == ServerKind::MySql {
            conn.query_drop("SET gtid_next = 'AUTOMATIC'").await.unwrap();
        }
        conn.query_drop("INSERT INTO t VALUES (4)").await.unwrap();
        let end = end_of_log(server, &mut conn).await;
        let mut first = reader(server, StartPosition::Gtid(set), &tracker);
        let taken = take_until(&mut first, &end).await.unwrap();
        assert_eq!(ids(&taken.of("t", RowKind::Insert)), ["2", "3", "4"]);
        // The position knows what is executed; a set with tags is understood by the server too.
        let position = BinlogPosition::parse(taken.watermarks.last().unwrap()).unwrap();
        let set = position.gtid_set.unwrap();
        if server.kind == ServerKind::MySql {
            assert!(set.contains("blue_1"), "{set}");
        }
        first.close().await;
        conn.query_drop("INSERT INTO t VALUES (5)").await.unwrap();
        let end = end_of_log(server, &mut conn).await;
        let mut second = reader(server, StartPosition::Gtid(set), &tracker);
        let taken = take_until(&mut second, &end).await.unwrap();
        assert_eq!(ids(&taken.of("t", RowKind::Insert)), ["5"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_every_kind_are_delivered_once() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let (mut conn, tracker, _) = setup(server, "CREATE TABLE t (id INT, v INT) ENGINE=InnoDB").await;
        conn.query_drop("CREATE TABLE m (id INT) ENGINE=MyISAM").await.unwrap();
        tracker.learn(&mut conn, "m").await;
        let start = end_of_log(server, &mut conn).await;
        for statement in [
            "BEGIN; INSERT INTO t VALUES (1, 0); SAVEPOINT a; INSERT INTO t VALUES (2, 0); ROLLBACK TO a; COMMIT",
            "BEGIN; INSERT INTO t VALUES (99, 0); ROLLBACK",
            "INSERT INTO m VALUES (1), (2)",
            "UPDATE t, m SET t.v = 5 WHERE t.id = m.id",
            "XA START 'x'; INSERT INTO t VALUES (3, 0); XA END 'x'; XA COMMIT 'x' ONE PHASE",
            "INSERT INTO t VALUES (4, 0)",
            "FLUSH BINARY LOGS",
            "DELETE FROM t WHERE id = 4",
        ] {
            conn.query_drop(statement).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
        }
        let end = end_of_log(server, &mut conn).await;
        let mut reader = reader(server, StartPosition::File(start.clone()), &tracker);
        let taken = take_until(&mut reader, &end).await.unwrap();
        assert_eq!(ids(&taken.of("t", RowKind::Insert)), ["1", "3", "4"]);
        assert_eq!(ids(&taken.of("m", RowKind::Insert)), ["1", "2"]);
        assert_eq!(ids(&taken.of("t", RowKind::UpdateAfter)), ["1"]);
        assert_eq!(ids(&taken.of("t", RowKind::Delete)), ["4"]);
        assert!(taken.watermarks.last().unwrap().order[0] > start.to_position().unwrap().order[0]);
        assert!(taken.watermarks.is_sorted());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_earliest_position_and_times_are_met() {
    let servers = [canalis_testkit::start_mariadb(&[]), canalis_testkit::start_mysql(&[])];
    for server in servers.into_iter().flatten() {
        let (mut conn, tracker, database) = setup(&server, "CREATE TABLE t (id INT PRIMARY KEY)").await;
        conn.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
        conn.query_drop("FLUSH BINARY LOGS").await.unwrap();
        let end = end_of_log(&server, &mut conn).await;
        // The reader learns the structure from the log.
        let fresh = Tracker::new(&database);
        let mut earliest = reader(&server, StartPosition::Earliest, &fresh);
        let taken = take_until(&mut earliest, &end).await.unwrap();
        assert_eq!(ids(&taken.of("t", RowKind::Insert)), ["1"]);
        assert_eq!(taken.changes.len(), 1);
        let mut later = super::support::config(&server, StartPosition::Earliest);
        later.not_before_ms = Some(i64::MAX / 2);
        let mut later = canalis_mysql::binlog::Reader::spawn(later, Box::new(tracker)).unwrap();
        let taken = take_until(&mut later, &end).await.unwrap();
        assert!(taken.rows.is_empty() && taken.changes.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_of_every_plugin_can_read() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let (mut conn, tracker, _) = setup(server, "CREATE TABLE t (id INT PRIMARY KEY)").await;
        let user = format!("reader_{}", server.port);
        let mut plugins = Vec::new();
        if server.kind == ServerKind::MySql {
            plugins.push("caching_sha2_password BY 'geheim ü'");
        } else {
            plugins.push("mysql_native_password USING PASSWORD('geheim ü')");
            // Part of the server's package, but not loaded by itself.
            conn.query_drop("INSTALL SONAME 'auth_ed25519'").await.unwrap();
            plugins.push("ed25519 USING PASSWORD('geheim ü')");
        }
        for plugin in plugins {
            conn.query_drop(format!("DROP USER IF EXISTS {user}")).await.unwrap();
            conn.query_drop(format!("CREATE USER {user} IDENTIFIED WITH {plugin}")).await.unwrap();
            conn.query_drop(format!("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}"))
                .await
                .unwrap();
            if server.kind == ServerKind::MariaDb {
                conn.query_drop(format!("GRANT BINLOG MONITOR ON *.* TO {user}")).await.unwrap();
            }
            // Twice: the server remembers a password that was proven once.
            for (round, password) in [(1, "geheim ü"), (2, "geheim ü"), (3, "wrong")] {
                let start = end_of_log(server, &mut conn).await;
                conn.query_drop(format!(
                    "INSERT INTO t VALUES ({round}) ON DUPLICATE KEY UPDATE id = id + 100"
                ))
                .await
                .unwrap();
                let end = end_of_log(server, &mut conn).await;
                for tls in [canalis_mysql::TlsMode::Disabled, canalis_mysql::TlsMode::Preferred] {
                    let mut config = super::support::config(server, StartPosition::File(start.clone()));
                    config.endpoint.username = user.clone();
                    config.endpoint.password = password.into();
                    config.endpoint.tls.mode = tls;
                    let mut reader =
                        canalis_mysql::binlog::Reader::spawn(config, Box::new(tracker.clone())).unwrap();
                    let taken = take_until(&mut reader, &end).await;
                    match round {
                        3 => assert_eq!(taken.unwrap_err().code(), canalis_types::Code::SourceAccessDenied),
                        _ => assert!(!taken.unwrap().rows.is_empty(), "{plugin} {tls:?}"),
                    }
                }
            }
        }
        conn.query_drop(format!("DROP USER {user}")).await.unwrap();
    }
}
