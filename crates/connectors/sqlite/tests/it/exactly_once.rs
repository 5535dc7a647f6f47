//! Positions and rows are durable together.

use canalis_connector_api::{CommitPoint, SplitMode};
use canalis_types::{Code, LogicalType, RowKind};

use crate::lab::{Lab, Start, at, pair_batch, pairs, position, split, splits, start, table};

use RowKind::*;

#[tokio::test]
async fn positions_and_splits_are_known_after_reopening() {
    let lab = Lab::new();
    let (keyed, keyless) = (pairs("t"), table("nk", &[("a", LogicalType::Int32, true)], &[]));
    let sink = lab.open(&[&keyed, &keyless]).await;
    let mut writer = lab.writer(&sink).await;
    for (schema, id) in [(&keyed, "keyed"), (&keyless, "keyless")] {
        writer.begin_split(&split(id, schema, SplitMode::Snapshot)).await.unwrap();
    }
    writer.commit(&splits(&["keyed", "keyless"])).await.unwrap();
    writer.commit(&at(5)).await.unwrap();
    writer.begin_split(&split("file", &keyed, SplitMode::Append)).await.unwrap();
    let under_way =
        CommitPoint { split_position: Some(("file".into(), position(3))), ..CommitPoint::default() };
    writer.commit(&under_way).await.unwrap();
    drop(writer);
    let recovery = start(&lab.sink(), Start::Again).await;
    assert_eq!(recovery.positions, [Some(position(5))]);
    assert_eq!(recovery.positions[0].as_ref().unwrap().detail, position(5).detail);
    assert_eq!(recovery.done_splits.iter().collect::<Vec<_>>(), ["keyless"]);
    assert_eq!(recovery.split_positions.get("file"), Some(&position(3)));
    start(&lab.sink(), Start::Fresh).await;
    let again = start(&lab.sink(), Start::Again).await;
    assert!(again.positions.is_empty() && again.done_splits.is_empty() && again.split_positions.is_empty());
}

#[tokio::test]
async fn rs_10_what_was_not_committed_is_gone_with_its_position() {
    let lab = Lab::new();
    let schema = table("nk", &[("a", LogicalType::Int32, true), ("b", LogicalType::Text, true)], &[]);
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "x")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    // A writer that dies inside an open transaction.
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot)).await.unwrap();
    writer.write(pair_batch(&schema, &[(Insert, "2", "y")])).await.unwrap();
    drop(writer);
    let recovery = start(&sink, Start::Again).await;
    assert_eq!(recovery.positions, [Some(position(1))]);
    assert_eq!(lab.lines("SELECT a, b FROM nk"), ["1|x"]);
}

#[tokio::test]
async fn an_earlier_owner_can_no_longer_commit() {
    let lab = Lab::new();
    let schema = pairs("t");
    let sink = lab.open(&[&schema]).await;
    let mut old = lab.writer(&sink).await;
    old.write(pair_batch(&schema, &[(Insert, "1", "old")])).await.unwrap();
    let newer = lab.sink();
    start(&newer, Start::Again).await;
    let error = old.commit(&at(1)).await.unwrap_err();
    assert_eq!(error.code(), Code::SinkFailed);
    drop(old);
    let mut writer = lab.writer(&newer).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "new")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    assert_eq!(lab.lines("SELECT v FROM t"), ["new"]);
}

#[tokio::test]
async fn readers_see_whole_transactions() {
    let lab = Lab::new();
    let schema = pairs("t");
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot)).await.unwrap();
    writer.write(pair_batch(&schema, &[(Insert, "1", "a")])).await.unwrap();
    assert_eq!(lab.lines("SELECT count(*) FROM t"), ["0"]);
    writer.commit(&splits(&["s"])).await.unwrap();
    assert_eq!(lab.lines("SELECT count(*) FROM t"), ["1"]);
}
