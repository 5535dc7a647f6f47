//! Lost positions (RS-01, RS-03): the job ends with the reason, and never with a success.

use std::{path::Path, time::Duration};

use canalis_testkit::{OwnedServer, Server, ServerKind, wait_until};
use mysql_async::{Conn, Row, prelude::Queryable};

use super::{
    behaviour::{copy, run, value},
    process::Canalis,
};

/// A job that has copied one row, and was stopped when the log was some files long.
struct Stopped {
    database: String,
    conn: Conn,
    directory: tempfile::TempDir,
}

async fn stopped(server: &Server) -> Stopped {
    let database = server.create_database("lost").await;
    let mut conn = server.mysql().await;
    run(&mut conn, &[&format!("USE {database}"), "CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    run(&mut conn, &["FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS"]).await;
    run(&mut conn, &["INSERT INTO t VALUES (1)"]).await;
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &copy(server, server, &database, "", ""));
    canalis.until(async || rows(server, &database).await.as_deref() == Some("1")).await;
    // By the stream too, so that there is a position of it.
    run(&mut conn, &["INSERT INTO t VALUES (2)"]).await;
    canalis.until(async || rows(server, &database).await.as_deref() == Some("2")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    Stopped { database, conn, directory }
}

async fn rows(server: &Server, database: &str) -> Option<String> {
    value(&mut server.mysql().await, &format!("SELECT COUNT(*) FROM {database}_copy.t")).await
}

/// Starts the job again: it must fail with CNL-2004 and these words, and leave the target alone.
async fn refused(server: &Server, lost: &Stopped, pipeline: &str, target: &Server, words: &[&str]) {
    let mut canalis = Canalis::start(lost.directory.path(), pipeline);
    let status = canalis.wait();
    let log = canalis.log();
    assert_eq!(status.code(), Some(1), "{server}: {log}");
    for word in words.iter().chain(&["\"code\": \"CNL-2004\""]) {
        assert!(log.contains(word), "{server}: `{word}` is missing in {log}");
    }
    // It does not help to try again, so it was not tried.
    assert!(!log.contains("is going to be restarted"), "{log}");
    assert_eq!(rows(target, &lost.database).await.as_deref(), Some("2"), "{log}");
    // What a person reads.
    let file = lost.directory.path().join("pipeline.yaml");
    let state = lost.directory.path().join("state");
    let (success, output, errors) = Canalis::command(&["run", path(&file), "--state-dir", path(&state)]);
    assert!(!success && output.is_empty(), "{output}");
    assert!(errors.contains("error: CNL-2004: "), "{errors}");
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn purged(server: Option<OwnedServer>) {
    let Some(server) = server else { return };
    let mut lost = stopped(&server).await;
    run(
        &mut lost.conn,
        &["INSERT INTO t VALUES (3)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4)", "FLUSH BINARY LOGS"],
    )
    .await;
    let files: Vec<Row> = lost.conn.query("SHOW BINARY LOGS").await.unwrap();
    let newest: String = files.last().unwrap().get(0).unwrap();
    // A file stays as long as the server believes that a replica still reads it.
    wait_until(Duration::from_secs(60), async || {
        let mut conn = server.mysql().await;
        run(&mut conn, &[&format!("PURGE BINARY LOGS TO '{newest}'")]).await;
        conn.query::<Row, _>("SHOW BINARY LOGS").await.unwrap().len() == 1
    })
    .await;
    let oldest = format!("the oldest position that the server has is {newest}:4");
    let pipeline = copy(&server, &server, &lost.database, "", "");
    refused(&server, &lost, &pipeline, &server, &["is lost", "purged", &oldest]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_01_a_purged_binlog_of_mariadb_is_position_lost() {
    purged(canalis_testkit::start_mariadb(&[])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_01_a_purged_binlog_of_mysql_is_position_lost() {
    purged(canalis_testkit::start_mysql(&[])).await;
}

/// The log begins anew, and five rows are written into it.
async fn begun_anew(server: Option<OwnedServer>) {
    let Some(server) = server else { return };
    let mut lost = stopped(&server).await;
    let reset = match server.kind {
        ServerKind::MySql => "RESET BINARY LOGS AND GTIDS",
        _ => "RESET MASTER",
    };
    run(&mut lost.conn, &[reset, "INSERT INTO t VALUES (11), (12), (13), (14), (15)"]).await;
    let pipeline = copy(&server, &server, &lost.database, "", "");
    refused(&server, &lost, &pipeline, &server, &["is lost"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_03_a_log_of_mariadb_begun_anew_is_position_lost() {
    begun_anew(canalis_testkit::start_mariadb(&[])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_03_a_log_of_mysql_begun_anew_is_position_lost() {
    begun_anew(canalis_testkit::start_mysql(&[])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_03_a_log_without_gtids_begun_anew_is_position_lost() {
    begun_anew(canalis_testkit::start_mysql(&["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_03_another_server_in_its_place_is_position_lost() {
    let (Some(server), Some(other)) = (canalis_testkit::mariadb(), canalis_testkit::start_mariadb(&[]))
    else {
        return;
    };
    let lost = stopped(server).await;
    let database = &lost.database;
    let mut conn = other.mysql().await;
    run(
        &mut conn,
        &[
            &format!("CREATE DATABASE {database}"),
            &format!("CREATE TABLE {database}.t (id INT PRIMARY KEY)"),
            &format!("INSERT INTO {database}.t VALUES (1), (2)"),
        ],
    )
    .await;
    for id in 11..=15 {
        run(&mut conn, &[&format!("INSERT INTO {database}.t VALUES ({id})")]).await;
    }
    let pipeline = copy(&other, server, database, "", "");
    refused(server, &lost, &pipeline, server, &["is lost"]).await;
}
