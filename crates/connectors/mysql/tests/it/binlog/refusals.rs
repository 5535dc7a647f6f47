//! What the reader must not guess: partial images, statements instead of rows, JSON differences, two-phase XA.

use canalis_mysql::binlog::StartPosition;
use canalis_testkit::{Server, mariadb, mysql};
use canalis_types::{Code, Error};
use mysql_async::prelude::Queryable;

use super::support::{Tracker, end_of_log, reader, take_while};

/// The error that statements in the log lead to.
async fn refusal(server: &Server, statements: &[&str]) -> Error {
    let database = server.create_database("binlog_refusal").await;
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    conn.query_drop("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b INT, c INT)").await.unwrap();
    conn.query_drop("INSERT INTO t VALUES (1, 'x', 2, 3)").await.unwrap();
    let tracker = Tracker::new(&database);
    let mut start = end_of_log(server, &mut conn).await;
    for statement in statements {
        if *statement == "START" {
            start = end_of_log(server, &mut conn).await;
            continue;
        }
        conn.query_drop(*statement).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    tracker.learn(&mut conn, "t").await;
    let mut reader = reader(server, StartPosition::File(start.clone()), &tracker);
    let error = take_while(&mut reader, |_| true).await.unwrap_err();
    assert!(error.message().contains(&start.file), "the position is named: {error}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn my_18_partial_images_are_refused() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        for image in ["MINIMAL", "NOBLOB"] {
            let set = format!("SET SESSION binlog_row_image = {image}");
            let column = if image == "NOBLOB" { "ALTER TABLE t MODIFY a BLOB" } else { "DO 1" };
            let error = refusal(server, &[column, "START", &set, "UPDATE t SET c = 4 WHERE id = 1"]).await;
            assert_eq!(error.code(), Code::SourceMisconfigured, "{error}");
            assert!(
                error.message().contains(".t ") && error.message().contains("binlog_row_image=FULL"),
                "{error}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_change_rows_are_refused() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        for statement in ["UPDATE t SET c = 4", "INSERT INTO t SELECT 2, 'y', 1, 1", "DELETE FROM t LIMIT 1"]
        {
            let error = refusal(server, &["SET SESSION binlog_format = STATEMENT", statement]).await;
            assert_eq!(error.code(), Code::SourceMisconfigured, "{error}");
            assert!(error.message().contains("binlog_format=ROW"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn my_16_differences_of_json_documents_are_refused() {
    let Some(server) = mysql() else { return };
    let error = refusal(
        server,
        &[
            "ALTER TABLE t ADD j JSON",
            r#"UPDATE t SET j = '{"b": true, "long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'"#,
            "START",
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            "UPDATE t SET j = JSON_SET(j, '$.b', false)",
        ],
    )
    .await;
    assert_eq!(error.code(), Code::SourceMisconfigured, "{error}");
    assert!(error.message().contains("binlog_row_value_options"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xa_transactions_in_two_phases_are_refused() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let name = format!("two-{}", server.port);
        let statements = [
            format!("XA START '{name}'"),
            "UPDATE t SET c = 4".to_owned(),
            format!("XA END '{name}'"),
            format!("XA PREPARE '{name}'"),
            format!("XA COMMIT '{name}'"),
        ];
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let error = refusal(server, &statements).await;
        assert_eq!(error.code(), Code::SourceEventUnknown, "{error}");
        assert!(error.message().contains("XA"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_structure_that_does_not_fit_the_log_is_refused() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        // The tracker knows only the structure after the change, but the log begins before it.
        let error = refusal(server, &["UPDATE t SET c = 4", "ALTER TABLE t MODIFY b BIGINT"]).await;
        assert_eq!(error.code(), Code::SourceEventUnknown, "{error}");
        assert!(error.message().contains("out of step"), "{error}");
    }
}
