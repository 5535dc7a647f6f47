//! Windows of changes, keyed and keyless, and rows that are refused.

use std::sync::Arc;

use canalis_batch::BatchBuilder;
use canalis_connector_api::SplitMode;
use canalis_types::{LogicalType, RowKind, TableSchema};

use crate::lab::{Lab, at, batch, counts, pair_batch, pairs, split, splits, table};

use RowKind::*;

#[tokio::test]
async fn tx_05_many_changes_of_one_row() {
    let lab = Lab::new();
    let schema = pairs("t");
    let sink = lab.open(&[&schema]).await;
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
    assert_eq!(lab.lines("SELECT id, v FROM t"), ["1|d"]);
    let mut ending = changes.to_vec();
    ending.push((Delete, "1", "d"));
    writer.write(pair_batch(&schema, &ending)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (6, 0));
    assert!(lab.lines("SELECT id, v FROM t").is_empty());
}

#[tokio::test]
async fn ky_02_key_update_moves_the_row() {
    let lab = Lab::new();
    let schema = pairs("t");
    let sink = lab.open(&[&schema]).await;
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
    assert_eq!(lab.lines("SELECT id, v FROM t ORDER BY id"), ["6|y", "7|x"]);
}

#[tokio::test]
async fn ky_07_keys_that_differ_in_case_accent_or_blanks_stay_apart() {
    let lab = Lab::new();
    let ty = LogicalType::Varchar { length: 10 };
    let schema = table("t", &[("k", ty.clone(), false), ("v", LogicalType::Int32, true)], &["k"]);
    let sink = lab.open(&[&schema]).await;
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
    assert_eq!(lab.lines("SELECT k, v FROM t ORDER BY v"), ["abc|1", "abc |3", "é|4"]);
    lab.run("CREATE TABLE loose (k TEXT COLLATE NOCASE PRIMARY KEY)");
    let loose = table("loose", &[("k", ty, false)], &["k"]);
    assert!(sink.prepare_table(&loose, false).await.is_err());
}

#[tokio::test]
async fn rows_that_sqlite_refuses_cost_themselves_only() {
    let lab = Lab::new();
    let schema = table("t", &[("id", LogicalType::Int32, false), ("v", LogicalType::UInt64, true)], &["id"]);
    lab.run("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL CHECK (v <> 13)) STRICT");
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    for snapshot in [true, false] {
        let from = if snapshot { 0 } else { 1000 };
        if snapshot {
            writer.begin_split(&split("s", &schema, SplitMode::Snapshot)).await.unwrap();
        }
        let mut builder = BatchBuilder::new(schema.clone(), 1000);
        for i in 0..1000i64 {
            builder.column(0).append_i64(from + i).unwrap();
            match i {
                5 => builder.column(1).append_null(),
                6 => builder.column(1).append_u64(u64::MAX).unwrap(),
                7 => builder.column(1).append_i64(13).unwrap(),
                _ => builder.column(1).append_i64(i + 100).unwrap(),
            }
            builder.end_row(Insert, 0);
        }
        writer.write(builder.finish().unwrap()).await.unwrap();
        let point = if snapshot { splits(&["s"]) } else { at(1) };
        assert_eq!(counts(&writer.commit(&point).await.unwrap()), (997, 3));
        let letters = lab.letters.take();
        assert_eq!(letters.len(), 3);
        assert!(letters[0].reason.contains("t.v"), "{}", letters[0].reason);
        assert!(letters[1].reason.contains("column `v`"), "{}", letters[1].reason);
        assert!(letters[2].reason.contains("CHECK"), "{}", letters[2].reason);
    }
    assert_eq!(lab.lines("SELECT count(*) FROM t"), ["1994"]);
}

#[tokio::test]
async fn unique_values_that_change_places_inside_a_window() {
    for ddl in [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)",
        "CREATE TABLE t (id INTEGER, v TEXT UNIQUE)",
    ] {
        let lab = Lab::new();
        let schema = pairs("t");
        lab.run(ddl);
        let sink = lab.open(&[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        let rows = [(Insert, "1", "a"), (Insert, "2", "b"), (Insert, "3", "c")];
        writer.write(pair_batch(&schema, &rows)).await.unwrap();
        writer.commit(&at(1)).await.unwrap();
        lab.run("INSERT INTO t VALUES (50, 'taken')");
        let swap = [
            (UpdateBefore, "1", "a"),
            (UpdateAfter, "1", "b"),
            (UpdateBefore, "2", "b"),
            (UpdateAfter, "2", "a"),
            (UpdateBefore, "3", "c"),
            (UpdateAfter, "3", "taken"),
        ];
        writer.write(pair_batch(&schema, &swap)).await.unwrap();
        assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (2, 1), "{ddl}");
        assert_eq!(lab.lines("SELECT id, v FROM t ORDER BY id"), ["1|b", "2|a", "3|c", "50|taken"], "{ddl}");
    }
}

fn nk() -> Arc<TableSchema> {
    table("nk", &[("a", LogicalType::Int32, true), ("b", LogicalType::Text, true)], &[])
}

#[tokio::test]
async fn ky_01_delete_removes_one_of_two_twins() {
    let lab = Lab::new();
    let schema = nk();
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot)).await.unwrap();
    let rows = [(Insert, "1", "x"), (Insert, "1", "x"), (Insert, "2", "NULL")];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    writer.commit(&splits(&["s"])).await.unwrap();
    writer.write(pair_batch(&schema, &[(Delete, "1", "x")])).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 0));
    assert_eq!(lab.lines("SELECT a, b FROM nk ORDER BY a"), ["1|x", "2|NULL"]);
    writer
        .write(pair_batch(&schema, &[(UpdateBefore, "2", "NULL"), (UpdateAfter, "NULL", "y")]))
        .await
        .unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT a, b FROM nk ORDER BY a"), ["NULL|y", "1|x"]);
}

#[tokio::test]
async fn few_and_many_deletes_take_exactly_as_many_copies() {
    for (ddl, kinds) in [("", 2), ("", 100), ("CREATE TABLE nk (a varchar(5), b TEXT)", 100)] {
        let lab = Lab::new();
        lab.run(ddl);
        let schema = nk();
        let sink = lab.open(&[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        let fill = |kind: RowKind, copies: usize| {
            let mut builder = BatchBuilder::new(schema.clone(), 1);
            for _ in 0..copies {
                for i in 0..kinds {
                    match i {
                        0 => builder.column(0).append_null(),
                        _ => builder.column(0).append_i64(i).unwrap(),
                    }
                    builder.column(1).append_text(format!("image {i}").as_bytes()).unwrap();
                    builder.end_row(kind, 0);
                }
            }
            builder.finish().unwrap()
        };
        writer.write(fill(Insert, 5)).await.unwrap();
        writer.commit(&at(1)).await.unwrap();
        writer.write(fill(Delete, 3)).await.unwrap();
        writer.commit(&at(2)).await.unwrap();
        let copies = lab.lines("SELECT DISTINCT n FROM (SELECT count(*) AS n FROM nk GROUP BY a, b)");
        assert_eq!(copies, ["2"], "{ddl} {kinds}");
    }
}

#[tokio::test]
async fn composite_keys_of_many_types() {
    let lab = Lab::new();
    let columns = [
        ("a", LogicalType::UInt64, false),
        ("b", LogicalType::Varbinary { length: 8 }, false),
        ("c", LogicalType::Timestamp { precision: 3 }, false),
        ("v", LogicalType::Int32, true),
    ];
    let schema = table("t", &columns, &["c", "a", "b"]);
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let first: &[Option<&[u8]>] =
        &[Some(b"18446744073709551615"), Some(b"\x00\xff"), Some(b"0000-00-00 00:00:00.000"), Some(b"1")];
    let second: &[Option<&[u8]>] = &[Some(b"5"), Some(b""), Some(b"2024-01-01 00:00:00.000"), Some(b"2")];
    writer.write(batch(&schema, &[(Insert, first), (Insert, second)])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    writer.write(batch(&schema, &[(Delete, first), (Insert, second)])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT v FROM t"), ["2"]);
}

#[tokio::test]
async fn an_image_that_no_row_has_is_a_letter() {
    for copies in [1usize, 20] {
        let lab = Lab::new();
        let schema = nk();
        let sink = lab.open(&[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        writer.write(pair_batch(&schema, &vec![(Insert, "1", "x"); copies])).await.unwrap();
        writer.commit(&at(1)).await.unwrap();
        let mut rows = vec![(Delete, "1", "x"); copies];
        rows.push((Delete, "1", "X"));
        writer.write(pair_batch(&schema, &rows)).await.unwrap();
        assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (u64::try_from(copies).unwrap(), 1));
        assert_eq!(lab.letters.take()[0].payload["b"], "X");
        assert!(lab.lines("SELECT a, b FROM nk").is_empty());
    }
}

#[tokio::test]
async fn a_refused_update_without_a_key_leaves_the_earlier_row() {
    let lab = Lab::new();
    let schema = nk();
    lab.run("CREATE TABLE nk (a INTEGER, b TEXT CHECK (b <> 'bad')) STRICT");
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "x")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let rows = [
        (UpdateBefore, "1", "x"),
        (UpdateAfter, "1", "bad"),
        // Neither image can be had: one change, one letter.
        (UpdateBefore, "3", "gone"),
        (UpdateAfter, "3", "bad"),
    ];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (0, 2));
    assert_eq!(lab.lines("SELECT a, b FROM nk"), ["1|x"]);
}
