//! Positions and rows are durable together, whatever happens in between.

use std::time::Duration;

use canalis_connector_api::{CommitPoint, SplitMode};
use canalis_testkit::wait_until;
use canalis_types::RowKind;

use crate::lab::{JOB, Lab, Start, at, counts, pair_batch, pairs, position, split, splits, start, table};

use RowKind::*;

#[tokio::test]
async fn positions_and_splits_are_known_after_reopening() {
    let Some(lab) = Lab::new().await else { return };
    let (keyed, keyless) = (pairs("t"), table("nk", &[("a", canalis_types::LogicalType::Int32, true)], &[]));
    let sink = lab.open(&[], &[&keyed, &keyless]).await;
    let mut writers = [lab.writer_of(&sink, 0, 2).await, lab.writer_of(&sink, 1, 2).await];
    for (schema, id) in [(&keyed, "keyed"), (&keyless, "keyless")] {
        writers[0].begin_split(&split(id, schema, SplitMode::Snapshot, false)).await.unwrap();
    }
    writers[0].commit(&splits(&["keyed", "keyless"])).await.unwrap();
    writers[0].commit(&at(5)).await.unwrap();
    writers[1].commit(&at(7)).await.unwrap();
    writers[1].begin_split(&split("file", &keyed, SplitMode::Append, false)).await.unwrap();
    let under_way =
        CommitPoint { split_position: Some(("file".into(), position(3))), ..CommitPoint::default() };
    writers[1].commit(&under_way).await.unwrap();
    drop(writers);

    let sink = lab.sink(&[]);
    let recovery = start(&sink, 2, Start::Again).await;
    assert_eq!(recovery.positions, [Some(position(5)), Some(position(7))]);
    assert_eq!(recovery.positions[0].as_ref().unwrap().detail, position(5).detail);
    assert_eq!(recovery.done_splits.iter().collect::<Vec<_>>(), ["keyless"]);
    assert_eq!(recovery.split_positions.get("file"), Some(&position(3)));
    // With another number of writers only writer 0 is valid, which tables without a key belong to.
    assert_eq!(start(&sink, 3, Start::Again).await.positions, [Some(position(5))]);
    let fresh = start(&sink, 2, Start::Fresh).await;
    assert!(fresh.positions.is_empty() && fresh.done_splits.is_empty());
    let again = start(&sink, 2, Start::Again).await;
    assert!(again.positions.is_empty() && again.done_splits.is_empty() && again.split_positions.is_empty());
}

#[tokio::test]
async fn rs_10_what_was_not_committed_is_gone_with_its_position() {
    let Some(lab) = Lab::new().await else { return };
    let schema = table(
        "nk",
        &[("a", canalis_types::LogicalType::Int32, true), ("b", canalis_types::LogicalType::Text, true)],
        &[],
    );
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "x")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    // A writer that dies inside an open transaction, in the middle of COPY.
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    writer.write(pair_batch(&schema, &[(Insert, "2", "y")])).await.unwrap();
    drop(writer);
    let recovery = start(&sink, 1, Start::Again).await;
    assert_eq!(recovery.positions, [Some(position(1))]);
    assert!(recovery.done_splits.is_empty());
    assert_eq!(lab.lines("SELECT a, b FROM app.nk").await, ["1|x"]);
}

#[tokio::test]
async fn opening_waits_for_a_commit_that_is_still_at_the_server() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    // Somebody else holds the row, so the commit hangs at the server while its writer is killed.
    writer.write(pair_batch(&schema, &[(Insert, "1", "a")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    lab.run("BEGIN; SELECT 1 FROM app.t WHERE id = 1 FOR UPDATE").await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "b")])).await.unwrap();
    let task = tokio::spawn(async move { writer.commit(&at(2)).await });
    let other = lab.server.postgres(&lab.database).await;
    wait_until(Duration::from_secs(20), async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        other.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    task.abort();
    let again = lab.sink(&[]);
    let opening = tokio::spawn(async move { start(&again, 1, Start::Again).await });
    wait_until(Duration::from_secs(20), async || {
        let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        other.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    lab.run("COMMIT").await;
    assert_eq!(opening.await.unwrap().positions, [Some(position(2))]);
    assert_eq!(lab.lines("SELECT v FROM app.t").await, ["b"]);
}

#[tokio::test]
async fn a_broken_connection_is_transient() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "a")])).await.unwrap();
    lab.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'canalis'",
    )
    .await;
    let error = writer.commit(&at(1)).await.unwrap_err();
    assert!(error.kind().is_retryable(), "{error}");
    drop(writer);
    assert!(start(&sink, 1, Start::Again).await.positions.is_empty());
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "a")])).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 0));
}

#[tokio::test]
async fn an_unreachable_server_and_a_wrong_password_are_told_apart() {
    let Some(lab) = Lab::new().await else { return };
    let port = canalis_testkit::free_port().to_string();
    let ctx = canalis_connector_api::SinkContext { job: JOB.into(), writers: 1, fresh: true, tables: vec![] };
    let error = lab.sink(&[("port", &port)]).open(&ctx).await.unwrap_err();
    assert!(error.kind().is_retryable(), "{error}");
    let error = lab.sink(&[("password", "wrong")]).open(&ctx).await.unwrap_err();
    assert_eq!(error.code(), canalis_types::Code::SinkAccessDenied);
    assert!(!error.to_string().contains("wrong"));
}
