//! Start-up modes, discovery and the check of the live system.

use canalis_connector_api::{Severity, Source};
use canalis_types::Code;
use mysql_async::prelude::Queryable;

use super::{Run, cells, execute, servers, source};

fn ids(rows: Vec<super::TextRow>) -> Vec<String> {
    cells(rows, 0).into_iter().filter_map(|mut row| row.remove(0)).collect()
}

#[tokio::test]
async fn snapshot_mode_ends_by_itself() {
    for server in servers() {
        let database = server.create_database("src_bounded").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"])
            .await;
        let source = source(server, &database, &[("scan.startup.mode", "snapshot")]);
        assert_eq!(source.boundedness(), canalis_connector_api::Boundedness::Bounded);
        let mut run = Run::begin(&*source).await;
        assert_eq!(ids(run.snapshot().await), ["1", "2"]);
        assert!(run.chunk().await.is_none());
    }
}

#[tokio::test]
async fn streams_begin_where_the_mode_says() {
    for server in servers() {
        let database = server.create_database("src_modes").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"])
            .await;
        let mut conn = server.mysql().await;
        let mysql = server.kind == canalis_testkit::ServerKind::MySql;
        let status = if mysql { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
        let place: mysql_async::Row = conn.query_first(status).await.unwrap().unwrap();
        let (file, pos): (String, u64) = (place.get(0).unwrap(), place.get(1).unwrap());
        let executed =
            if mysql { "SELECT @@global.gtid_executed" } else { "SELECT @@global.gtid_binlog_pos" };
        let gtid: String = conn.query_first(executed).await.unwrap().unwrap();
        execute(server, &database, &["INSERT INTO t VALUES (2)"]).await;
        let pos = pos.to_string();
        let gtid = gtid.replace('\n', "");
        for options in [
            vec![
                ("scan.startup.mode", "specific-offset"),
                ("scan.startup.specific-offset.file", file.as_str()),
                ("scan.startup.specific-offset.pos", pos.as_str()),
            ],
            vec![
                ("scan.startup.mode", "specific-offset"),
                ("scan.startup.specific-offset.gtid-set", gtid.as_str()),
            ],
        ] {
            let source = source(server, &database, &options);
            let mut run = Run::begin(&*source).await;
            assert!(run.chunk().await.is_none());
            assert_eq!(ids(run.stream(1).await), ["2"], "{options:?} on {server}");
        }
        let early = source(server, &database, &[("scan.startup.mode", "earliest-offset")]);
        let mut run = Run::begin(&*early).await;
        assert!(run.chunk().await.is_none());
        assert_eq!(ids(run.stream(2).await), ["1", "2"]);
        let future = source(
            server,
            &database,
            &[("scan.startup.mode", "timestamp"), ("scan.startup.timestamp-millis", "1000000000000")],
        );
        let mut run = Run::begin(&*future).await;
        assert!(run.chunk().await.is_none());
        assert_eq!(ids(run.stream(2).await), ["1", "2"]);
    }
}

#[tokio::test]
async fn a_time_begins_with_the_first_transaction_at_or_after_it() {
    for server in servers() {
        let database = server.create_database("src_time").await;
        let mut conn = server.mysql().await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"])
            .await;
        let now: u64 = conn.query_first("SELECT UNIX_TIMESTAMP()").await.unwrap().unwrap();
        conn.query_drop(format!("DO SLEEP(GREATEST(0, {} - UNIX_TIMESTAMP(NOW(6))))", now + 2))
            .await
            .unwrap();
        conn.query_drop("FLUSH BINARY LOGS").await.unwrap();
        execute(
            server,
            &database,
            &["INSERT INTO t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (3)"],
        )
        .await;
        let time = ((now + 1) * 1000).to_string();
        let source = source(
            server,
            &database,
            &[("scan.startup.mode", "timestamp"), ("scan.startup.timestamp-millis", &time)],
        );
        let mut run = Run::begin(&*source).await;
        assert!(run.chunk().await.is_none());
        assert_eq!(ids(run.stream(2).await), ["2", "3"], "on {server}");
    }
}

#[tokio::test]
async fn positions_that_the_server_does_not_have_are_lost() {
    for server in servers() {
        let database = server.create_database("src_lost").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
        let source = source(
            server,
            &database,
            &[
                ("scan.startup.mode", "specific-offset"),
                ("scan.startup.specific-offset.file", "binlog.999999"),
                ("scan.startup.specific-offset.pos", "4"),
            ],
        );
        let error = Run::open(&*source, None).await.err().expect("no such file");
        assert_eq!(error.code(), Code::PositionLost, "{error}");
        assert!(error.message().contains("oldest"), "{error}");
    }
}

#[tokio::test]
async fn patterns_that_match_nothing_are_named() {
    for server in servers() {
        let database = server.create_database("src_none").await;
        execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
        let pattern = format!(r"{database}.absent");
        let absent = source(server, &database, &[("tables", &pattern)]);
        let error = absent.tables().await.expect_err("nothing matches");
        assert_eq!(error.code(), Code::TableNotFound);
        assert!(error.message().contains(&pattern), "{error}");
        let taken = source(server, &database, &[("tables.exclude", r"\.*.\.*")]);
        assert_eq!(taken.tables().await.err().map(|e| e.code()), Some(Code::TableNotFound));
        let system = source(server, &database, &[("tables", r"mysql.\.*")]);
        assert_eq!(system.tables().await.err().map(|e| e.code()), Some(Code::TableNotFound));
    }
}

#[tokio::test]
async fn tables_that_cannot_be_captured_are_refused_and_not_passed_over() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("src_versioned").await;
    execute(server, &database, &["CREATE TABLE t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING"]).await;
    let source = source(server, &database, &[]);
    assert_eq!(source.tables().await.expect_err("it is versioned").code(), Code::NotSupportedYet);
    assert!(source.check().await.iter().any(|f| f.severity == Severity::Error && f.subject.ends_with(".t")));
}

#[tokio::test]
async fn checks_name_what_is_wrong_with_its_remedy() {
    for server in servers() {
        let database = server.create_database("src_check").await;
        execute(
            server,
            &database,
            &["CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE nk (a INT, g INT AS (a + 1) STORED)"],
        )
        .await;
        let findings = source(server, &database, &[]).check().await;
        assert!(findings.iter().all(|f| f.severity != Severity::Error), "{findings:#?}");
        let keys = findings.iter().find(|f| f.subject.ends_with("keys")).expect("a finding on keys");
        assert_eq!(keys.severity, Severity::Warning);
        assert!(keys.message.contains("nk") && keys.remedy.is_some());

        let wrong = source(server, &database, &[("password", "wrong")]).check().await;
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].severity, Severity::Error);

        let mut conn = server.mysql().await;
        let user = format!("u{:08x}", rand::random::<u32>());
        conn.query_drop(format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'p'")).await.unwrap();
        conn.query_drop(format!("GRANT SELECT ON `{database}`.* TO '{user}'@'%'")).await.unwrap();
        let poor = source(server, &database, &[("username", &user), ("password", "p")]).check().await;
        conn.query_drop(format!("DROP USER '{user}'@'%'")).await.unwrap();
        let rights = poor.iter().find(|f| f.subject.ends_with("rights")).expect("a finding on rights");
        assert_eq!(rights.severity, Severity::Error, "{poor:#?}");
        assert!(
            rights.remedy.as_ref().is_some_and(|r| r.starts_with("GRANT REPLICATION SLAVE")),
            "{rights:?}"
        );
    }
}

#[tokio::test]
async fn settings_under_which_a_stream_would_be_wrong_are_refused() {
    let Some(server) = canalis_testkit::start_mariadb(&["--binlog-row-image=MINIMAL"]) else { return };
    let database = server.create_database("src_minimal").await;
    execute(&server, &database, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    let source: Box<dyn Source> = source(&server, &database, &[]);
    let error = Run::open(&*source, None).await.err().expect("a partial row image");
    assert_eq!(error.code(), Code::SourceMisconfigured);
    assert!(error.message().contains("binlog_row_image"), "{error}");
    let findings = source.check().await;
    assert!(findings.iter().any(|f| f.severity == Severity::Error && f.remedy.is_some()));
}
