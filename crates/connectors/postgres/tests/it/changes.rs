//! Windows of changes of keyed tables.

use canalis_batch::BatchBuilder;
use canalis_types::{LogicalType, RowKind};

use crate::lab::{Lab, at, batch, counts, pair_batch, pairs, table};

use RowKind::*;

#[tokio::test]
async fn tx_05_many_changes_of_one_row() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let changes = [
        (Insert, "1", "a"),
        (UpdateBefore, "1", "a"),
        (UpdateAfter, "1", "b"),
        (Delete, "1", "b"),
        (Insert, "1", "c"),
        (UpdateBefore, "1", "c"),
        (UpdateAfter, "1", "d"),
    ];
    writer.write(pair_batch(&schema, &changes)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (5, 0));
    assert_eq!(lab.lines("SELECT id, v FROM app.t").await, ["1|d"]);
    let mut ending = changes.to_vec();
    ending.push((Delete, "1", "d"));
    writer.write(pair_batch(&schema, &ending)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (6, 0));
    assert!(lab.lines("SELECT id, v FROM app.t").await.is_empty());
}

#[tokio::test]
async fn ky_02_key_update_moves_the_row() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "6", "x"), (Insert, "8", "y")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let moves = [
        (UpdateBefore, "6", "x"),
        (UpdateAfter, "7", "x"),
        (UpdateBefore, "8", "y"),
        (UpdateAfter, "6", "y"),
    ];
    writer.write(pair_batch(&schema, &moves)).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT id, v FROM app.t ORDER BY id").await, ["6|y", "7|x"]);
}

#[tokio::test]
async fn ky_07_keys_that_differ_in_case_accent_or_blanks_stay_apart() {
    let Some(lab) = Lab::new().await else { return };
    let ty = LogicalType::Varchar { length: 10 };
    let schema = table("t", &[("k", ty, false), ("v", LogicalType::Int32, true)], &["k"]);
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let rows = [
        (Insert, "abc", "1"),
        (Insert, "ABC", "2"),
        (Insert, "abc ", "3"),
        (Insert, "é", "4"),
        (Insert, "e", "5"),
    ];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (5, 0));
    writer.write(pair_batch(&schema, &[(Delete, "ABC", "2"), (Delete, "e", "5")])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT k, v FROM app.t ORDER BY v").await, ["abc|1", "abc |3", "é|4"]);
}

#[tokio::test]
async fn ky_07_a_target_that_merges_keys_is_refused_before_data_moves() {
    let Some(lab) = Lab::new().await else { return };
    let ty = LogicalType::Varchar { length: 10 };
    let schema = table("t", &[("k", ty, false)], &["k"]);
    lab.run(
        "CREATE SCHEMA app; \
         CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false); \
         CREATE TABLE app.t (k varchar(10) COLLATE loose PRIMARY KEY)",
    )
    .await;
    let sink = lab.open(&[], &[]).await;
    let error = sink.prepare_table(&schema, false).await.unwrap_err();
    assert!(error.message().contains("column `k`"), "{error}");
}

#[tokio::test]
async fn composite_keys_of_many_types() {
    let Some(lab) = Lab::new().await else { return };
    let columns = [
        ("a", LogicalType::UInt64, false),
        ("b", LogicalType::Varchar { length: 8 }, false),
        ("c", LogicalType::Varbinary { length: 8 }, false),
        ("d", LogicalType::Timestamp { precision: 3 }, false),
        ("e", LogicalType::Bit { length: 4 }, false),
        ("v", LogicalType::Int32, true),
    ];
    let schema = table("t", &columns, &["c", "a", "b", "d", "e"]);
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let first: &[Option<&[u8]>] = &[
        Some(b"18446744073709551615"),
        Some(b"it's"),
        Some(b"\x00\xff"),
        Some(b"2024-01-02 03:04:05.678"),
        Some(b"10"),
        Some(b"1"),
    ];
    let second: &[Option<&[u8]>] =
        &[Some(b"0"), Some(b""), Some(b""), Some(b"1969-12-31 23:59:59.999"), Some(b"0"), Some(b"2")];
    let inserts = batch(&schema, &[(Insert, first), (Insert, second)]);
    writer.write(inserts).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    assert_eq!(lab.lines("SELECT v FROM app.t ORDER BY v").await, ["1", "2"]);
    writer.write(batch(&schema, &[(Delete, first)])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT v FROM app.t ORDER BY v").await, ["2"]);
}

/// Applies a large mixed window and compares with what it must leave.
async fn large(ddl: &str) {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    lab.run("CREATE SCHEMA app").await;
    lab.run(ddl).await;
    lab.run("INSERT INTO app.t SELECT i, 'old ' || i FROM generate_series(1, 5000) i").await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let mut builder = BatchBuilder::new(schema.clone(), 10_000);
    let mut add = |kind, id: i64, v: String| {
        builder.column(0).append_i64(id).unwrap();
        builder.column(1).append_text(v.as_bytes()).unwrap();
        builder.end_row(kind, 0);
    };
    for id in 1..=5000i64 {
        match id % 3 {
            0 => add(Delete, id, format!("old {id}")),
            1 => {
                add(UpdateBefore, id, format!("old {id}"));
                add(UpdateAfter, id, format!("new {id}"));
            }
            _ => add(Insert, id + 10_000, format!("more {id}")),
        }
    }
    writer.write(builder.finish().unwrap()).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (5000, 0));
    let sums = lab
        .lines("SELECT split_part(v, ' ', 1), count(*), sum(id), count(DISTINCT id) FROM app.t GROUP BY 1 ORDER BY 1")
        .await;
    let sum = |rest: i64, shift: i64| (1..=5000i64).filter(|i| i % 3 == rest).map(|i| i + shift).sum::<i64>();
    assert_eq!(
        sums,
        [
            format!("more|1667|{}|1667", sum(2, 10_000)),
            format!("new|1667|{}|1667", sum(1, 0)),
            format!("old|1667|{}|1667", sum(2, 0)),
        ]
    );
    // The same again, in small windows, changes nothing.
    writer.write(pair_batch(&schema, &[(Insert, "1", "new 1"), (Delete, "3", "x")])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT count(*) FROM app.t").await, ["5001"]);
    assert!(lab.letters.take().is_empty());
}

#[tokio::test]
async fn large_windows_are_merged_by_key() {
    large("CREATE TABLE app.t (id int PRIMARY KEY, v text)").await;
}

#[tokio::test]
async fn large_windows_are_merged_without_an_index_over_the_key() {
    large("CREATE TABLE app.t (id int, v text)").await;
}

#[tokio::test]
async fn large_windows_are_merged_beside_another_unique_index() {
    large("CREATE TABLE app.t (id int PRIMARY KEY, v text UNIQUE)").await;
}

#[tokio::test]
async fn unique_values_that_change_places_inside_a_window() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    lab.run("CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, v text UNIQUE)").await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let rows = [(Insert, "1", "a"), (Insert, "2", "b"), (Insert, "3", "c")];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let swap = [
        (UpdateBefore, "1", "a"),
        (UpdateAfter, "1", "tmp"),
        (UpdateBefore, "2", "b"),
        (UpdateAfter, "2", "a"),
        (UpdateBefore, "1", "tmp"),
        (UpdateAfter, "1", "b"),
        (Delete, "3", "c"),
        (Insert, "4", "c"),
    ];
    writer.write(pair_batch(&schema, &swap)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (5, 0));
    assert_eq!(lab.lines("SELECT id, v FROM app.t ORDER BY id").await, ["1|b", "2|a", "4|c"]);
    assert!(lab.letters.take().is_empty());
}

#[tokio::test]
async fn a_table_that_is_all_key() {
    let Some(lab) = Lab::new().await else { return };
    let columns = [("a", LogicalType::Int32, false), ("b", LogicalType::Int32, false)];
    let schema = table("t", &columns, &["a", "b"]);
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "1"), (Insert, "1", "2")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    writer.write(pair_batch(&schema, &[(Insert, "1", "2"), (Delete, "1", "1")])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT a, b FROM app.t").await, ["1|2"]);
}

#[tokio::test]
async fn several_tables_share_a_transaction() {
    let Some(lab) = Lab::new().await else { return };
    let (one, two) = (pairs("one"), pairs("two"));
    let sink = lab.open(&[], &[&one, &two]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&one, &[(Insert, "1", "x")])).await.unwrap();
    writer.write(pair_batch(&two, &[(Insert, "1", "y")])).await.unwrap();
    let report = writer.commit(&at(1)).await.unwrap();
    assert_eq!(report.written.len(), 2);
    let xids = lab.lines("SELECT (SELECT xmin FROM app.one) = (SELECT xmin FROM app.two)").await;
    assert_eq!(xids, ["t"]);
}
