//! Bounded splits: COPY, retried splits, and keys that are built afterwards.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_connector_api::{CommitPoint, SplitMode};
use canalis_types::{RowKind, TableSchema};

use crate::lab::{Lab, Start, at, counts, pair_batch, pairs, position, split, splits, start};

fn range(schema: &Arc<TableSchema>, from: i64, to: i64, text: &str) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), 1000);
    for id in from..to {
        builder.column(0).append_i64(id).unwrap();
        builder.column(1).append_text(format!("{text} {id}").as_bytes()).unwrap();
        builder.end_row(RowKind::Insert, 0);
    }
    builder.finish().unwrap()
}

const KEYS: &str = "SELECT count(*) FROM pg_constraint WHERE conrelid = 'app.t'::regclass AND contype = 'p'";

#[tokio::test]
async fn the_key_is_built_when_the_snapshot_is_complete() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[]).await;
    let plan = sink.prepare_table(&schema, true).await.unwrap();
    assert!(plan.statements.iter().any(|s| s.starts_with("CREATE TABLE")), "{:?}", plan.statements);
    assert_eq!(lab.lines(KEYS).await, ["0"]);
    let mut writers = [lab.writer_of(&sink, 0, 2).await, lab.writer_of(&sink, 1, 2).await];
    for (index, writer) in writers.iter_mut().enumerate() {
        let from = i64::try_from(index).unwrap() * 50_000;
        for part in 0..2 {
            let low = from + part * 25_000;
            let id = format!("s{low}");
            writer.begin_split(&split(&id, &schema, SplitMode::Snapshot, false)).await.unwrap();
            writer.write(range(&schema, low, low + 25_000, "row")).await.unwrap();
        }
        let ids = [format!("s{from}"), format!("s{}", from + 25_000)];
        let report = writer.commit(&splits(&[&ids[0], &ids[1]])).await.unwrap();
        assert_eq!(counts(&report), (50_000, 0));
    }
    for _ in 0..2 {
        sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
        assert_eq!(lab.lines(KEYS).await, ["1"]);
    }
    // The stream goes on over the same writers, by key.
    writers[0].write(pair_batch(&schema, &[(RowKind::Insert, "5", "changed")])).await.unwrap();
    writers[0].commit(&at(1)).await.unwrap();
    let sums = lab.lines("SELECT count(*), count(DISTINCT id), sum(id), min(v) FROM app.t").await;
    assert_eq!(sums, ["100000|100000|4999950000|changed"]);
}

#[tokio::test]
async fn a_restart_inside_the_snapshot_builds_the_key_first_and_repeats_no_row() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[]).await;
    sink.prepare_table(&schema, true).await.unwrap();
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    writer.write(range(&schema, 0, 3000, "first")).await.unwrap();
    // Half of the split is committed, then the process dies.
    writer.commit(&CommitPoint::default()).await.unwrap();
    writer.write(range(&schema, 3000, 5000, "lost")).await.unwrap();
    drop(writer);
    let sink = lab.sink(&[]);
    start(&sink, 1, Start::Again).await;
    sink.prepare_table(&schema, true).await.unwrap();
    assert_eq!(lab.lines(KEYS).await, ["1"]);
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, true)).await.unwrap();
    writer.write(range(&schema, 0, 5000, "second")).await.unwrap();
    assert_eq!(counts(&writer.commit(&splits(&["s"])).await.unwrap()), (5000, 0));
    sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
    let sums = lab.lines("SELECT count(*), count(DISTINCT id), min(split_part(v, ' ', 1)) FROM app.t").await;
    assert_eq!(sums, ["5000|5000|second"]);
    assert!(lab.letters.take().is_empty());
}

#[tokio::test]
async fn a_retried_split_of_the_same_run_overwrites() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[]).await;
    sink.prepare_table(&schema, true).await.unwrap();
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("a", &schema, SplitMode::Snapshot, false)).await.unwrap();
    writer.write(range(&schema, 0, 2000, "first")).await.unwrap();
    writer.begin_split(&split("b", &schema, SplitMode::Snapshot, true)).await.unwrap();
    writer.write(range(&schema, 1000, 3000, "second")).await.unwrap();
    assert_eq!(counts(&writer.commit(&splits(&["a", "b"])).await.unwrap()), (4000, 0));
    sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
    let sums = lab.lines("SELECT split_part(v, ' ', 1), count(*) FROM app.t GROUP BY 1 ORDER BY 1").await;
    assert_eq!(sums, ["first|1000", "second|2000"]);
}

#[tokio::test]
async fn rows_of_an_earlier_job_are_overwritten_without_letters() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    for (job, text) in ["first", "second"].into_iter().enumerate() {
        let sink = lab.open(&[], &[]).await;
        sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = lab.writer(&sink).await;
        let from = if job == 0 { 0 } else { 500 };
        writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
        writer.write(range(&schema, from, 1000, text)).await.unwrap();
        writer.write(range(&schema, 1000, 1500, text)).await.unwrap();
        writer.commit(&splits(&["s"])).await.unwrap();
        sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
    }
    let sums = lab.lines("SELECT split_part(v, ' ', 1), count(*) FROM app.t GROUP BY 1 ORDER BY 1").await;
    assert_eq!(sums, ["first|500", "second|1000"]);
    assert!(lab.letters.take().is_empty());
}

#[tokio::test]
async fn merged_tables_with_equal_keys_keep_one_row_per_key() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[]).await;
    // Two shards are routed into one table; both splits count as new.
    sink.prepare_table(&schema, true).await.unwrap();
    sink.prepare_table(&schema, true).await.unwrap();
    let mut writer = lab.writer(&sink).await;
    for shard in ["one", "two"] {
        writer.begin_split(&split(shard, &schema, SplitMode::Snapshot, false)).await.unwrap();
        writer.write(range(&schema, 0, 100, shard)).await.unwrap();
        writer.commit(&splits(&[shard])).await.unwrap();
    }
    sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
    assert_eq!(lab.lines(KEYS).await, ["1"]);
    let sums = lab.lines("SELECT split_part(v, ' ', 1), count(*) FROM app.t GROUP BY 1").await;
    assert_eq!(sums, ["two|100"]);
}

#[tokio::test]
async fn appended_rows_get_their_key_first_and_positions_are_kept() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[]).await;
    sink.prepare_table(&schema, true).await.unwrap();
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("file", &schema, SplitMode::Append, false)).await.unwrap();
    writer.write(range(&schema, 0, 100, "first")).await.unwrap();
    writer.write(range(&schema, 50, 150, "second")).await.unwrap();
    let point = CommitPoint { split_position: Some(("file".into(), position(9))), ..CommitPoint::default() };
    assert_eq!(counts(&writer.commit(&point).await.unwrap()), (200, 0));
    assert_eq!(lab.lines(KEYS).await, ["1"]);
    let sums = lab.lines("SELECT split_part(v, ' ', 1), count(*) FROM app.t GROUP BY 1 ORDER BY 1").await;
    assert_eq!(sums, ["first|50", "second|100"]);
    writer.commit(&splits(&["file"])).await.unwrap();
    drop(writer);
    let recovery = start(&sink, 1, Start::Again).await;
    assert!(recovery.done_splits.contains("file") && recovery.split_positions.is_empty());
}

#[tokio::test]
async fn splits_of_several_tables_share_a_transaction() {
    let Some(lab) = Lab::new().await else { return };
    let (one, two) = (pairs("one"), pairs("two"));
    let sink = lab.open(&[], &[&one, &two]).await;
    let mut writer = lab.writer(&sink).await;
    for (id, schema) in [("a", &one), ("b", &two), ("c", &one)] {
        writer.begin_split(&split(id, schema, SplitMode::Snapshot, false)).await.unwrap();
        let from = if id == "c" { 100 } else { 0 };
        writer.write(range(schema, from, from + 100, id)).await.unwrap();
    }
    assert_eq!(lab.lines("SELECT count(*) FROM app.one").await, ["0"]);
    let report = writer.commit(&splits(&["a", "b", "c"])).await.unwrap();
    assert_eq!(counts(&report), (300, 0));
    assert_eq!(
        lab.lines("SELECT (SELECT count(*) FROM app.one), (SELECT count(*) FROM app.two)").await,
        ["200|100"]
    );
}

#[tokio::test]
async fn long_splits_pass_through_several_copies() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    let text = "x".repeat(1000);
    for part in 0..20 {
        writer.write(range(&schema, part * 1000, (part + 1) * 1000, &text)).await.unwrap();
    }
    assert_eq!(counts(&writer.commit(&splits(&["s"])).await.unwrap()), (20_000, 0));
    assert_eq!(lab.lines("SELECT count(*), count(DISTINCT id) FROM app.t").await, ["20000|20000"]);
}
