//! Servers start with the promised settings, survive a crash with their data, and leave nothing behind.

use std::time::Duration;

use canalis_testkit::{
    OwnedServer, Server, ServerKind, mariadb, mysql, postgres, start_mariadb, start_postgres, wait_until,
};
use mysql_async::prelude::Queryable;

async fn setting(server: &Server, expression: &str) -> String {
    let mut conn = server.mysql().await;
    let value: Option<String> = conn.query_first(format!("SELECT CAST({expression} AS CHAR)")).await.unwrap();
    conn.disconnect().await.unwrap();
    value.unwrap()
}

async fn check_change_log(server: &Server) {
    for (expression, expected) in [
        ("@@log_bin + 0", "1"),
        ("@@binlog_format", "ROW"),
        ("@@binlog_row_image", "FULL"),
        ("@@binlog_row_metadata", "FULL"),
        ("@@local_infile + 0", "1"),
        ("@@max_allowed_packet", "268435456"),
        ("@@character_set_server", "utf8mb4"),
    ] {
        assert_eq!(setting(server, expression).await, expected, "{expression} of {server}");
    }
}

#[tokio::test]
async fn mariadb_has_the_promised_settings() {
    let Some(server) = mariadb() else { return };
    check_change_log(server).await;
    let database = server.create_database("kit").await;
    assert!(
        setting(server, "@@gtid_binlog_pos").await.contains(&format!("-{}-", server.server_id)),
        "{database}"
    );
}

#[tokio::test]
async fn mysql_has_the_promised_settings() {
    let Some(server) = mysql() else { return };
    check_change_log(server).await;
    assert_eq!(setting(server, "@@gtid_mode").await, "ON");
    assert_eq!(setting(server, "SUBSTRING_INDEX(@@version, '.', 1)").await, "9");
    server.create_database("kit").await;
}

#[tokio::test]
async fn postgres_has_the_promised_settings() {
    let Some(server) = postgres() else { return };
    let database = server.create_database("kit").await;
    let client = server.postgres(&database).await;
    let row = client.query_one("SHOW wal_level", &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "logical");
}

#[tokio::test]
async fn a_killed_mariadb_comes_back_with_its_data() {
    let Some(mut server) = start_mariadb(&["--binlog-row-image=MINIMAL"]) else { return };
    assert_eq!(setting(&server, "@@binlog_row_image").await, "MINIMAL");
    let database = server.create_database("kit").await;
    server.kill9();
    assert!(server.try_mysql().await.is_err());
    server.restart();
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
}

#[tokio::test]
async fn a_killed_postgres_comes_back_with_its_data() {
    let Some(mut server) = start_postgres(&["-c", "work_mem=1MB"]) else { return };
    let database = server.create_database("kit").await;
    server.kill9();
    server.restart();
    server.postgres(&database).await;
}

#[tokio::test]
async fn a_dropped_server_leaves_no_process_and_no_data() {
    for kind in [ServerKind::MariaDb, ServerKind::MySql, ServerKind::Postgres] {
        let server = match OwnedServer::start(kind, &[]) {
            Ok(server) => server,
            Err(reason) => {
                assert!(!canalis_testkit::services_required(), "{reason}");
                eprintln!("SKIPPED: {kind}: {reason}");
                continue;
            }
        };
        let process = format!("/proc/{}", server.pid());
        let directory = server.log.parent().unwrap().to_owned();
        assert!(directory.exists());
        drop(server);
        assert!(!std::path::Path::new(&process).exists(), "{kind}");
        assert!(!directory.exists(), "{}", directory.display());
    }
}

#[tokio::test]
async fn waiting_asks_until_the_condition_is_true() {
    let mut asked = 0;
    wait_until(Duration::from_secs(5), || {
        asked += 1;
        let enough = asked == 3;
        async move { enough }
    })
    .await;
    assert_eq!(asked, 3);
}
