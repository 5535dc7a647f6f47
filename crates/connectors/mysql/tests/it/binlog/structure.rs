//! Changes of structure in the log of real servers.

use canalis_mysql::binlog::{StartPosition, ddl::Ddl};
use canalis_testkit::{ServerKind, mariadb, mysql};
use canalis_types::RowKind;
use mysql_async::prelude::Queryable;

use super::support::{Tracker, end_of_log, reader, take_until, take_while};

/// DD-01, DD-04, DD-13, MY-08, MY-15: rows decode with the structure that was valid when they were written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dd_01_rows_decode_with_the_structure_of_their_time() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let database = server.create_database("binlog_ddl").await;
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE `{database}`")).await.unwrap();
        let start = end_of_log(server, &mut conn).await;
        let user = format!("u{}", server.port);
        let retain = if server.kind == ServerKind::MySql { " RETAIN CURRENT PASSWORD" } else { "" };
        let statements = [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) CHARACTER SET latin1, b INT)".to_owned(),
            "INSERT INTO t VALUES (1, 'é', 2)".to_owned(),
            format!("CREATE USER {user} IDENTIFIED BY 'Xx1!xxxx'"),
            format!("ALTER USER {user} IDENTIFIED BY 'Yy1!yyyy'{retain}"),
            format!("DROP USER {user}"),
            "FLUSH TABLES".to_owned(),
            "CREATE TRIGGER trg BEFORE INSERT ON t FOR EACH ROW SET NEW.b = NEW.b".to_owned(),
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM t".to_owned(),
            "OPTIMIZE TABLE t".to_owned(),
            "ALTER TABLE t ADD c INT NOT NULL DEFAULT 7 AFTER a, ADD INDEX i (b)".to_owned(),
            "ALTER TABLE t ADD z INT(6) ZEROFILL".to_owned(),
            "INSERT INTO t VALUES (2, 'x', 9, 3, 42), (3, 'y', 9, 3, 4294967295)".to_owned(),
            "CREATE TABLE en (id INT PRIMARY KEY, s ENUM('new','paid','sent'))".to_owned(),
            "INSERT INTO en VALUES (1, 'paid')".to_owned(),
            "CREATE TABLE kind SELECT 5 AS id".to_owned(),
            "UPDATE t SET c = 8 WHERE id = 1".to_owned(),
        ];
        for statement in &statements {
            conn.query_drop(statement).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
        }
        let end = end_of_log(server, &mut conn).await;
        let tracker = Tracker::new(&database);
        // Its structure is not told by the statement alone.
        tracker.learn(&mut conn, "kind").await;
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        let taken = take_until(&mut reader, &end).await.unwrap();
        let texts = |rows: Vec<Vec<Option<String>>>| -> Vec<String> {
            rows.into_iter()
                .map(|row| row.into_iter().map(Option::unwrap).collect::<Vec<_>>().join("|"))
                .collect()
        };
        assert_eq!(texts(taken.of("t", RowKind::Insert)), ["1|é|2", "2|x|9|3|42", "3|y|9|3|4294967295"]);
        assert_eq!(taken.of("t", RowKind::UpdateAfter)[0][2].as_deref(), Some("8"));
        assert_eq!(texts(taken.of("en", RowKind::Insert)), ["1|paid"]);
        assert_eq!(texts(taken.of("kind", RowKind::Insert)), ["5"]);
        let changes = taken.changes.iter().filter(|change| change.after.id.table != "kind");
        let tags: Vec<&str> = changes.map(|change| change.tag()).collect();
        assert_eq!(tags, ["create.table", "add.column", "add.column", "create.table"]);
        // The change stands at the first position that has the new structure: a watermark there follows.
        let positions: Vec<_> = taken.changes.iter().map(|change| change.position.clone()).collect();
        assert!(positions.is_sorted());
        let seen = tracker.seen();
        // Databases of other tests are dropped meanwhile.
        let tags = seen.statements.iter().map(|(ddl, _)| ddl.tag()).filter(|tag| *tag != "drop.database");
        let seen: Vec<&'static str> = tags.collect();
        assert_eq!(seen, ["create.table", "add.column", "add.column", "create.table", "create.table"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_before_a_refused_change_are_delivered_with_a_watermark() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let database = server.create_database("binlog_ddl").await;
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE `{database}`")).await.unwrap();
        conn.query_drop("CREATE TABLE t (id INT PRIMARY KEY, a INT)").await.unwrap();
        let tracker = Tracker::new(&database);
        tracker.learn(&mut conn, "t").await;
        let start = end_of_log(server, &mut conn).await;
        conn.query_drop("INSERT INTO t VALUES (1, 1)").await.unwrap();
        let before = end_of_log(server, &mut conn).await;
        conn.query_drop("ALTER TABLE t DROP COLUMN a").await.unwrap();
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        let taken = take_until(&mut reader, &before).await.unwrap();
        assert_eq!(taken.rows.len(), 1);
        let error = take_while(&mut reader, |_| true).await.unwrap_err();
        assert!(error.message().contains("ALTER TABLE t DROP COLUMN a"), "{error}");
        assert!(error.message().contains(&before.file), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dd_05_dd_07_renames_truncations_and_drops_are_told() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let database = server.create_database("binlog_ddl").await;
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE `{database}`")).await.unwrap();
        let start = end_of_log(server, &mut conn).await;
        for statement in [
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "CREATE TABLE _t_gho LIKE t",
            "RENAME TABLE t TO _t_del, _t_gho TO t",
            "TRUNCATE t",
            "DROP TABLE _t_del",
        ] {
            conn.query_drop(statement).await.unwrap();
        }
        conn.query_drop(format!("DROP DATABASE `{database}`")).await.unwrap();
        let end = end_of_log(server, &mut conn).await;
        let tracker = Tracker::new(&database);
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        take_until(&mut reader, &end).await.unwrap();
        let seen = tracker.seen();
        let ours = seen.statements.iter().filter(|(ddl, _)| match ddl {
            Ddl::DropDatabase { database: dropped } => *dropped == database,
            _ => true,
        });
        let tags: Vec<&'static str> = ours.map(|(ddl, _)| ddl.tag()).collect();
        let expected = [
            "create.table",
            "create.table",
            "rename.table",
            "rename.table",
            "truncate.table",
            "drop.table",
            "drop.database",
        ];
        assert_eq!(tags, expected);
    }
}

/// MariaDB may log the beginning of an ALTER TABLE, then what happens meanwhile, then the ALTER TABLE again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alteration_in_two_phases_takes_effect_once() {
    let Some(server) = mariadb() else { return };
    let database = server.create_database("binlog_ddl").await;
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    conn.query_drop("CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    let tracker = Tracker::new(&database);
    tracker.learn(&mut conn, "t").await;
    let start = end_of_log(server, &mut conn).await;
    conn.query_drop("SET SESSION binlog_alter_two_phase = ON").await.unwrap();
    conn.query_drop("ALTER TABLE t ADD a INT").await.unwrap();
    conn.query_drop("INSERT INTO t VALUES (1, 2)").await.unwrap();
    // Fails after its beginning was logged.
    conn.query_drop("INSERT INTO t VALUES (2, 2)").await.unwrap();
    conn.query_drop("ALTER TABLE t ADD b INT, ADD UNIQUE (a)").await.unwrap_err();
    conn.query_drop("INSERT INTO t VALUES (3, 4)").await.unwrap();
    let end = end_of_log(server, &mut conn).await;
    let mut reader = reader(server, StartPosition::File(start), &tracker);
    let taken = take_until(&mut reader, &end).await.unwrap();
    assert_eq!(taken.changes.len(), 1);
    assert_eq!(taken.of("t", RowKind::Insert).len(), 3);
}
