//! Behaviour that a user sees: commands, savepoints, changes of structure, dead letters, servers that go away, big rows and
//! big transactions.

use std::path::Path;

use canalis_testkit::{Server, table_digest};
use mysql_async::{Conn, prelude::Queryable};
use serde_json::Value;

use super::process::{Canalis, newest_checkpoint, sink, source};

/// A pipeline from `database` to `<database>_copy` on the same or another server.
pub fn copy(from: &Server, to: &Server, database: &str, more_source: &str, more: &str) -> String {
    format!(
        "{}{}route:\n  - source-table: {database}.\\.*\n    sink-table: {database}_copy.<>\n    replace-symbol: <>\n{more}",
        source(from, &format!("{database}.\\.*"), more_source),
        sink(to, "")
    )
}

/// First value of a query, or `None` while it fails or finds nothing.
pub async fn value(conn: &mut Conn, query: &str) -> Option<String> {
    conn.query_first::<Option<String>, _>(query).await.ok().flatten().flatten()
}

pub async fn run(conn: &mut Conn, statements: &[&str]) {
    for statement in statements {
        conn.query_drop(*statement).await.unwrap();
    }
}

#[test]
fn all_problems_of_a_file_are_reported_together() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.yaml");
    let text = "source:\n  type: mysql\n  host: db\n  username: u\n  password: p\n  tables: app.*\nsink:\n  \
                type: printt\nparallelism: 2\n";
    std::fs::write(&file, text).unwrap();
    let (success, _, errors) = Canalis::command(&["run", file.to_str().unwrap()]);
    assert!(!success);
    for part in [":3:3: ", "hostname", ":6:3: ", "app_db.\\.*", "printt", ":9:1: "] {
        assert!(errors.contains(part), "{part} is missing in:\n{errors}");
    }
    let (success, output, _) = Canalis::command(&["--json", "check", file.to_str().unwrap()]);
    assert!(!success);
    let problems: Value = serde_json::from_str(&output).unwrap();
    assert!(problems["problems"].as_array().unwrap().len() >= 4, "{output}");
}

#[test]
fn every_connector_describes_itself() {
    let (success, output, _) = Canalis::command(&["connectors", "--json"]);
    assert!(success);
    let listed: Value = serde_json::from_str(&output).unwrap();
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "blackhole",
            "datagen",
            "files",
            "kafka",
            "mysql",
            "postgres",
            "print",
            "pulsar",
            "rocketmq",
            "sqlite"
        ]
    );
    for name in names {
        let (success, output, _) = Canalis::command(&["connectors", name, "--json"]);
        assert!(success && serde_json::from_str::<Value>(&output).unwrap()["options"].is_array());
    }
    let (success, _, errors) = Canalis::command(&["connectors", "mysqll"]);
    assert!(!success && errors.contains("`mysql`"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_and_plan_look_at_the_live_systems_and_change_nothing() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("plan").await;
    let mut conn = server.mysql().await;
    run(
        &mut conn,
        &[&format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(9) COMMENT 'it''s')")],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p.yaml");
    std::fs::write(&file, copy(server, server, &database, "", "")).unwrap();
    let (success, output, errors) = Canalis::command(&["--json", "check", file.to_str().unwrap()]);
    assert!(success, "{output}{errors}");
    let findings: Value = serde_json::from_str(&output).unwrap();
    assert!(findings.as_array().unwrap().len() > 3, "{output}");
    let (success, output, errors) = Canalis::command(&["--json", "plan", file.to_str().unwrap()]);
    assert!(success, "{errors}");
    let plan: Value = serde_json::from_str(&output).unwrap();
    let statements = plan["tables"][0]["statements"].to_string();
    assert!(statements.contains("CREATE TABLE"), "{output}");
    assert!(!output.contains(&server.password), "the password is shown: {output}");
    let made = value(&mut conn, &format!("SHOW DATABASES LIKE '{database}_copy'")).await;
    assert_eq!(made, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_is_a_place_to_start_from() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("savepoint").await;
    let mut conn = server.mysql().await;
    run(
        &mut conn,
        &[
            &format!("CREATE TABLE {database}.t (id INT PRIMARY KEY)"),
            &format!("CREATE TABLE {database}.k (a INT)"),
            &format!("INSERT INTO {database}.t VALUES (1)"),
            &format!("INSERT INTO {database}.k VALUES (1), (1)"),
        ],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let pipeline = copy(server, server, &database, "", "");
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let target = server.mysql().await;
    let target = tokio::sync::Mutex::new(target);
    let count = async |table: &str| {
        value(&mut *target.lock().await, &format!("SELECT COUNT(*) FROM {database}_copy.{table}")).await
    };
    canalis.until(async || count("k").await.as_deref() == Some("2")).await;
    let file = directory.path().join("pipeline.yaml");
    let state = directory.path().join("state");
    let (success, output, errors) = Canalis::command(&[
        "--json",
        "savepoint",
        file.to_str().unwrap(),
        "--state-dir",
        state.to_str().unwrap(),
    ]);
    assert!(success, "{errors}");
    let savepoint: Value = serde_json::from_str(&output).unwrap();
    let savepoint = savepoint["savepoint"].as_str().unwrap().to_owned();
    run(
        &mut conn,
        &[&format!("INSERT INTO {database}.t VALUES (2)"), &format!("INSERT INTO {database}.k VALUES (2)")],
    )
    .await;
    canalis.until(async || count("k").await.as_deref() == Some("3")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    // In a new place, from the savepoint: what the sink has beyond it is not written again.
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved");
    std::fs::copy(&savepoint, &moved).unwrap();
    let mut canalis =
        Canalis::start_with(elsewhere.path(), &pipeline, &["--from-savepoint", moved.to_str().unwrap()]);
    run(
        &mut conn,
        &[&format!("INSERT INTO {database}.t VALUES (3)"), &format!("INSERT INTO {database}.k VALUES (3)")],
    )
    .await;
    canalis
        .until(async || count("k").await.as_deref() == Some("4") && count("t").await.as_deref() == Some("3"))
        .await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    for table in ["t", "k"] {
        assert_eq!(
            table_digest(server, &database, table),
            table_digest(server, &format!("{database}_copy"), table)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dd_01_an_added_column_arrives_by_name() {
    for server in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = server.create_database("addcolumn").await;
        let mut conn = server.mysql().await;
        run(
            &mut conn,
            &[
                &format!("USE {database}"),
                "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), B VARCHAR(9))",
                "INSERT INTO t VALUES (1, 'p', 'q')",
            ],
        )
        .await;
        let directory = tempfile::tempdir().unwrap();
        let pipeline =
            copy(server, server, &database, "", "pipeline:\n  execution.checkpointing.interval: 200 ms\n");
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        let target = tokio::sync::Mutex::new(server.mysql().await);
        let rows = async || {
            value(&mut *target.lock().await, &format!("SELECT COUNT(*) FROM {database}_copy.t")).await
        };
        canalis.until(async || rows().await.as_deref() == Some("1")).await;
        // The change must come by the stream, so the stream comes first.
        run(&mut conn, &["INSERT INTO t VALUES (2, 'x', 'y')"]).await;
        canalis.until(async || rows().await.as_deref() == Some("2")).await;
        // The crash below must not fall back into the snapshot, which refuses a table that has changed meanwhile.
        let epoch = newest_checkpoint(directory.path());
        canalis.until(async || newest_checkpoint(directory.path()) > epoch + 1).await;
        run(
            &mut conn,
            &[
                "ALTER TABLE t ADD c INT NOT NULL DEFAULT 7 AFTER a, ADD COLUMN `odd name` DECIMAL(9,3) UNSIGNED FIRST",
                "INSERT INTO t VALUES (1.25, 3, 'x', 9, 'y')",
                "ALTER TABLE t ADD z INT(6) ZEROFILL",
                "UPDATE t SET z = 4294967295 WHERE id = 3",
            ],
        )
        .await;
        canalis.until(async || rows().await.as_deref() == Some("3")).await;
        // DD-08: the same changes again after a crash do no harm.
        canalis.kill9();
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        run(&mut conn, &["INSERT INTO t (id, a) VALUES (4, 'end')"]).await;
        canalis.until(async || rows().await.as_deref() == Some("4")).await;
        assert!(canalis.stop().success(), "{}", canalis.log());
        assert_eq!(
            table_digest(server, &database, "t"),
            table_digest(server, &format!("{database}_copy"), "t"),
            "{}",
            canalis.log()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_schema_change_stops_with_statement_and_position() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    for (behavior, statement) in
        [("exception", "ALTER TABLE t ADD c INT"), ("evolve", "ALTER TABLE t DROP COLUMN a")]
    {
        let database = server.create_database("ddl").await;
        let mut conn = server.mysql().await;
        run(&mut conn, &[&format!("USE {database}"), "CREATE TABLE t (id INT PRIMARY KEY, a INT)"]).await;
        let directory = tempfile::tempdir().unwrap();
        let more = format!("pipeline:\n  schema.change.behavior: {behavior}\n");
        let mut canalis = Canalis::start(directory.path(), &copy(server, server, &database, "", &more));
        run(&mut conn, &["INSERT INTO t VALUES (1, 1)"]).await;
        let target = tokio::sync::Mutex::new(server.mysql().await);
        let rows = async || {
            value(&mut *target.lock().await, &format!("SELECT COUNT(*) FROM {database}_copy.t")).await
        };
        canalis.until(async || rows().await.as_deref() == Some("1")).await;
        run(&mut conn, &[statement]).await;
        assert!(!canalis.wait().success());
        let log = canalis.log();
        assert!(log.contains("CNL-2008") && log.contains(statement) && log.contains("binlog."), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_01_rows_that_do_not_fit_go_to_the_dead_letter_queue() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("dlq").await;
    let mut conn = server.mysql().await;
    run(
        &mut conn,
        &[
            &format!("USE {database}"),
            "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(20))",
            "INSERT INTO t VALUES (1, 127, 'ok'), (2, 128, 'big'), (3, -129, 'small'), (4, 300, 'bigger')",
            &format!("CREATE DATABASE {database}_copy"),
            &format!("CREATE TABLE {database}_copy.t (id INT PRIMARY KEY, v TINYINT, s VARCHAR(6))"),
        ],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let pipeline =
        copy(server, server, &database, "", "pipeline:\n  dead-letter.policy: queue\n  parallelism: 2\n");
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let target = tokio::sync::Mutex::new(server.mysql().await);
    let ids = async || {
        value(
            &mut *target.lock().await,
            &format!("SELECT GROUP_CONCAT(CONCAT(id, ':', v) ORDER BY id) FROM {database}_copy.t"),
        )
        .await
    };
    canalis.until(async || ids().await.as_deref() == Some("1:127")).await;
    run(
        &mut conn,
        &["INSERT INTO t VALUES (11, -128, 'ok'), (12, 300, 'big'), (13, 1, 'too long'), (14, 5, 'last')"],
    )
    .await;
    canalis.until(async || ids().await.as_deref() == Some("1:127,11:-128,14:5")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    let letters = std::fs::read_to_string(directory.path().join("state/dead-letters.jsonl")).unwrap();
    let letters: Vec<Value> = letters.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut refused: Vec<String> = letters.iter().map(|l| l["payload"]["id"].to_string()).collect();
    refused.sort();
    assert_eq!(refused, ["12", "13", "2", "3", "4"]);
    assert!(letters.iter().all(|l| l["code"] == "CNL-3003" && l["reason"].is_string()), "{letters:?}");
    // The same with the default policy: the job stops and says which row.
    run(&mut conn, &[&format!("DROP TABLE {database}_copy.t")]).await;
    run(
        &mut conn,
        &[&format!("CREATE TABLE {database}_copy.t (id INT PRIMARY KEY, v TINYINT, s VARCHAR(6))")],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &copy(server, server, &database, "", ""));
    assert!(!canalis.wait().success());
    assert!(canalis.log().contains("CNL-3003"), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_05_a_sink_that_goes_away_is_waited_for() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let Some(mut target) = canalis_testkit::start_mariadb(&[]) else { return };
    let database = server.create_database("outage").await;
    let mut conn = server.mysql().await;
    run(
        &mut conn,
        &[&format!("USE {database}"), "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0)"],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let more = "pipeline:\n  restart-strategy.type: fixed-delay\n  restart-strategy.fixed-delay.attempts: 1000\n  \
                restart-strategy.fixed-delay.delay: 200 ms\n";
    let mut canalis = Canalis::start(directory.path(), &copy(server, &target, &database, "", more));
    let rows = |server: &Server| {
        let query = format!("SELECT COUNT(*) FROM {database}_copy.t");
        let opening = server.port;
        let (username, password) = (server.username.clone(), server.password.clone());
        async move {
            let opts = mysql_async::OptsBuilder::default()
                .ip_or_hostname("127.0.0.1")
                .tcp_port(opening)
                .user(Some(username))
                .pass(Some(password));
            match Conn::new(opts).await {
                Ok(mut conn) => value(&mut conn, &query).await,
                Err(_) => None,
            }
        }
    };
    canalis.until(async || rows(&target).await.as_deref() == Some("1")).await;
    target.kill9();
    for id in 1..=200 {
        run(&mut conn, &[&format!("INSERT INTO t VALUES ({id})")]).await;
    }
    target.restart();
    canalis.until(async || rows(&target).await.as_deref() == Some("201")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(table_digest(server, &database, "t"), table_digest(&target, &format!("{database}_copy"), "t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn my_21_rows_of_20_mib_arrive_on_both_paths() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("bigrow").await;
    let mut conn = server.mysql().await;
    let big = "REPEAT(CONCAT(UUID(), X'00FF5C27'), 524288)";
    run(
        &mut conn,
        &[
            &format!("USE {database}"),
            "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB)",
            &format!("INSERT INTO t VALUES (1, {big})"),
        ],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &copy(server, server, &database, "", ""));
    let target = tokio::sync::Mutex::new(server.mysql().await);
    let rows =
        async || value(&mut *target.lock().await, &format!("SELECT COUNT(*) FROM {database}_copy.t")).await;
    canalis.until(async || rows().await.as_deref() == Some("1")).await;
    run(
        &mut conn,
        &[&format!("INSERT INTO t VALUES (2, {big})"), &format!("UPDATE t SET b = {big} WHERE id = 1")],
    )
    .await;
    run(&mut conn, &["INSERT INTO t VALUES (3, 'end')"]).await;
    canalis.until(async || rows().await.as_deref() == Some("3")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(table_digest(server, &database, "t"), table_digest(server, &format!("{database}_copy"), "t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tx_03_memory_does_not_grow_with_the_transaction() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("bigtx").await;
    let mut conn = server.mysql().await;
    run(
        &mut conn,
        &[
            &format!("USE {database}"),
            "CREATE TABLE t (id INT PRIMARY KEY, v CHAR(200) CHARACTER SET latin1)",
            "INSERT INTO t SELECT seq, REPEAT('x', 200) FROM seq_1_to_300000",
        ],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &copy(server, server, &database, "", ""));
    let target = tokio::sync::Mutex::new(server.mysql().await);
    let rows = async |condition: &str| {
        value(&mut *target.lock().await, &format!("SELECT COUNT(*) FROM {database}_copy.t WHERE {condition}"))
            .await
    };
    canalis.until(async || rows("TRUE").await.as_deref() == Some("300000")).await;
    // About 125 MB of row images in one transaction.
    run(&mut conn, &["UPDATE t SET v = REPEAT('y', 200)", "INSERT INTO t VALUES (0, 'end')"]).await;
    canalis.until(async || rows("v = 'end'").await.as_deref() == Some("1")).await;
    let peak = canalis.peak_mib();
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(table_digest(server, &database, "t"), table_digest(server, &format!("{database}_copy"), "t"));
    assert!(peak < 300, "{peak} MiB");
}

#[test]
fn the_quick_start_ends_by_itself_and_its_sums_are_right() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("orders.db");
    let pipeline = format!(
        "source:\n  type: datagen\n  table: shop.orders\n  number-of-rows: 20000\n  rows-per-second: 0\n  update-ratio: 0.5\n  delete-ratio: 0.1\n\
         transform:\n  - source-table: shop.orders\n    projection: \\*, quantity * unit_price AS total\n    \
         filter: status <> 'NEW'\nroute:\n  - source-table: shop.orders\n    sink-table: orders\n\
         sink:\n  type: sqlite\n  path: {}\n",
        output.display()
    );
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    assert!(canalis.wait().success(), "{}", canalis.log());
    let log = canalis.log();
    let report: Value = serde_json::from_str(&log[log.rfind("{\n  \"state\"").unwrap()..]).unwrap();
    assert_eq!(report["state"], "FINISHED");
    assert_eq!(report["read"], 20_000);
    assert_eq!(report["written"].as_u64().unwrap() + report["filtered"].as_u64().unwrap(), 20_000);
    let rows = count(&output, "SELECT COUNT(*) FROM orders");
    assert!(rows > 0);
    assert_eq!(count(&output, "SELECT COUNT(*) FROM orders WHERE status = 'NEW' OR total IS NULL"), 0);
}

fn count(path: &Path, query: &str) -> i64 {
    rusqlite::Connection::open(path).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}
