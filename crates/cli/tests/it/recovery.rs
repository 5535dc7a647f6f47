//! Restart and resume (RS-05 to RS-09): inside the snapshot, with a slow target, with damaged state, with another
//! parallelism, before the first checkpoint.

mod parallelism;
mod slow_target;
mod snapshot;

use canalis_testkit::table_digest;

use super::{
    behaviour::{copy, run, value},
    process::{Canalis, checkpoints, newest_checkpoint},
};

const OFTEN: &str = "pipeline:\n  execution.checkpointing.interval: 100 ms\n";

#[tokio::test(flavor = "multi_thread")]
async fn rs_07_a_damaged_checkpoint_is_passed_over_and_nothing_is_lost() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    let database = server.create_database("damaged").await;
    let mut conn = server.mysql().await;
    run(
        &mut conn,
        &[&format!("USE {database}"), "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE k (a INT)"],
    )
    .await;
    let directory = tempfile::tempdir().unwrap();
    let pipeline = copy(server, server, &database, "", OFTEN);
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let rows = async |table: &str| {
        let query = format!("SELECT COUNT(*) FROM {database}_copy.{table}");
        value(&mut server.mysql().await, &query).await
    };
    for id in 1..=3 {
        run(&mut conn, &[&format!("INSERT INTO t VALUES ({id})"), &format!("INSERT INTO k VALUES ({id})")])
            .await;
        canalis.until(async || rows("k").await == Some(id.to_string())).await;
        let epoch = newest_checkpoint(directory.path());
        canalis.until(async || newest_checkpoint(directory.path()) > epoch + 1).await;
    }
    canalis.kill9();
    let found = checkpoints(directory.path());
    assert!(found.len() > 1, "{found:?}");
    let newest = &found.last().unwrap().1;
    let whole = std::fs::read(newest).unwrap();
    std::fs::write(newest, &whole[..whole.len() / 2]).unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    run(&mut conn, &["INSERT INTO t VALUES (4)", "INSERT INTO k VALUES (4)"]).await;
    canalis
        .until(async || rows("k").await.as_deref() == Some("4") && rows("t").await.as_deref() == Some("4"))
        .await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    let log = canalis.log();
    assert!(log.contains("a damaged checkpoint is passed over") && log.contains("CNL-4001"), "{log}");
    for table in ["t", "k"] {
        let there = table_digest(server, &format!("{database}_copy"), table);
        assert_eq!(table_digest(server, &database, table), there, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rs_09_the_position_of_the_first_start_in_latest_mode_is_kept() {
    for server in [canalis_testkit::mariadb(), canalis_testkit::mysql()].into_iter().flatten() {
        let database = server.create_database("latest").await;
        let mut conn = server.mysql().await;
        run(
            &mut conn,
            &[&format!("USE {database}"), "CREATE TABLE k (a INT)", "INSERT INTO k VALUES (1), (2)"],
        )
        .await;
        let directory = tempfile::tempdir().unwrap();
        let never = "pipeline:\n  execution.checkpointing.interval: 1 h\n";
        let pipeline = copy(server, server, &database, "  scan.startup.mode: latest-offset\n", never);
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        // What the first start writes before it reads anything.
        canalis.until(async || !checkpoints(directory.path()).is_empty()).await;
        assert!(canalis.kill9());
        run(&mut conn, &["INSERT INTO k VALUES (3)"]).await;
        let mut canalis = Canalis::start(directory.path(), &pipeline);
        let held = async || {
            let query = format!("SELECT GROUP_CONCAT(a ORDER BY a) FROM {database}_copy.k");
            value(&mut server.mysql().await, &query).await
        };
        canalis.until(async || held().await.is_some()).await;
        run(&mut conn, &["INSERT INTO k VALUES (4)"]).await;
        canalis.until(async || held().await.is_some_and(|h| h.contains('4'))).await;
        assert!(canalis.stop().success(), "{}", canalis.log());
        assert_eq!(held().await.as_deref(), Some("3,4"), "{server}: {}", canalis.log());
    }
}
