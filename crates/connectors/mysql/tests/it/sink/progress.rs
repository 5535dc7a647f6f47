//! Positions and rows are committed together.

use std::sync::Arc;

use canalis_connector_api::{CommitPoint, SinkContext, WriterContext};
use canalis_types::{Column, LogicalType, RowKind, TableId, TableSchema};

use super::support::{Letters, Target, batch, point, position, query, row, servers, sink_on, split};

const COLUMNS: &[(&str, LogicalType)] = &[("id", LogicalType::Int32), ("v", LogicalType::Int32)];

#[tokio::test(flavor = "multi_thread")]
async fn rs_10_what_is_committed_is_known_after_a_restart() {
    use RowKind::Insert;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", COLUMNS, &[]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        let recovery = target.open("job", 2, true).await;
        assert_eq!(recovery.positions, [None, None]);
        let mut first = target.writer(0, 2).await;
        let mut second = target.writer(1, 2).await;
        for (writer, n) in [(&mut first, 3), (&mut second, 5)] {
            writer.write(batch(&schema, &[row(Insert, &["1", "1"])])).await.unwrap();
            writer.commit(&point(n)).await.unwrap();
        }
        // A position without rows costs nothing and may be forgotten.
        second.commit(&point(9)).await.unwrap();
        // Rows that were not committed are gone with the writer.
        first.write(batch(&schema, &[row(Insert, &["2", "2"])])).await.unwrap();
        drop(first);

        let recovery = target.open("job", 2, false).await;
        assert_eq!(recovery.positions, [Some(position(3)), Some(position(5))]);
        assert_eq!(&*recovery.positions[0].as_ref().unwrap().detail, r#"{"n":3}"#);
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.t").await, ["2"]);
        // With another number of writers only the first one's position holds.
        let recovery = target.open("job", 3, false).await;
        assert_eq!(recovery.positions, [Some(position(3)), None, None]);
        // Other jobs have their own records, and a fresh start forgets.
        assert_eq!(target.open("another", 1, false).await.positions, [None]);
        assert_eq!(target.open("job", 2, true).await.positions, [None, None]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn append_splits_are_known_by_position() {
    use RowKind::Insert;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", COLUMNS, &[]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("file", &schema, false)).await.unwrap();
        writer.write(batch(&schema, &[row(Insert, &["1", "1"])])).await.unwrap();
        let point = CommitPoint {
            split_position: Some(("file".into(), position(7))),
            epoch: 1,
            ..CommitPoint::default()
        };
        writer.commit(&point).await.unwrap();
        let recovery = target.open("job", 1, false).await;
        assert_eq!(recovery.split_positions.get("file"), Some(&position(7)));
        assert!(recovery.done_splits.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_transient_and_loses_no_more_than_the_open_transaction() {
    use RowKind::Insert;
    // A server of its own, so that no other session can be hit.
    let Some(mut server) = canalis_testkit::start_mariadb(&[]) else { return };
    let database = server.create_database("sink").await;
    let sink = sink_on(&server, &database, &[("connect.timeout", "2s")]);
    let context = SinkContext { job: "job".into(), writers: 1, fresh: true, tables: Vec::new() };
    sink.open(&context).await.unwrap();
    let columns = vec![Column::new("id", LogicalType::Int32, false)];
    let schema = Arc::new(TableSchema::new(TableId::new(&database, "t"), columns, vec!["id".into()]));
    sink.prepare_table(&schema, false).await.unwrap();
    let open = || {
        let letters = Arc::new(Letters::default());
        sink.open_writer(WriterContext { job: "job".into(), index: 0, writers: 1, dead_letters: letters })
    };
    let mut writer = open().await.unwrap();
    writer.write(batch(&schema, &[row(Insert, &["1"])])).await.unwrap();
    writer.commit(&point(1)).await.unwrap();
    writer.write(batch(&schema, &[row(Insert, &["2"])])).await.unwrap();
    server.kill9();
    let error = writer.commit(&point(2)).await.unwrap_err();
    assert!(error.kind().is_retryable(), "{error}");
    assert!(open().await.err().is_some_and(|error| error.kind().is_retryable()));
    server.restart();
    let recovery = sink.open(&SinkContext { fresh: false, ..context }).await.unwrap();
    assert_eq!(recovery.positions, [Some(position(1))]);
    assert_eq!(query(&server, &format!("SELECT id FROM `{database}`.t")).await, ["1"]);
    let mut writer = open().await.unwrap();
    writer.write(batch(&schema, &[row(Insert, &["2"])])).await.unwrap();
    writer.commit(&point(2)).await.unwrap();
    assert_eq!(query(&server, &format!("SELECT COUNT(*) FROM `{database}`.t")).await, ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_of_an_earlier_run_cannot_commit_any_more() {
    use RowKind::Insert;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", COLUMNS, &[]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        // Another process runs the same job and is cut off.
        let stranger = sink_on(server, &target.database, &[]);
        let context = SinkContext { job: "job".into(), writers: 1, fresh: false, tables: Vec::new() };
        stranger.open(&context).await.unwrap();
        let letters = Arc::new(Letters::default());
        let writer = WriterContext { job: "job".into(), index: 0, writers: 1, dead_letters: letters };
        let mut zombie = stranger.open_writer(writer).await.unwrap();
        zombie.write(batch(&schema, &[row(Insert, &["1", "1"])])).await.unwrap();
        zombie.commit(&point(1)).await.unwrap();
        zombie.write(batch(&schema, &[row(Insert, &["2", "2"])])).await.unwrap();

        assert_eq!(target.open("job", 1, false).await.positions, [Some(position(1))]);
        let error = zombie.commit(&point(2)).await.unwrap_err();
        assert!(error.message().contains("taken over") && !error.kind().is_retryable(), "{error}");
        let mut writer = target.writer(0, 1).await;
        writer.write(batch(&schema, &[row(Insert, &["2", "2"])])).await.unwrap();
        writer.commit(&point(2)).await.unwrap();
        assert_eq!(target.query("SELECT id FROM `{db}`.t ORDER BY id").await, ["1", "2"]);
    }
}
