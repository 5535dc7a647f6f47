//! Tables without a key are multisets and stay exact.

use canalis_batch::BatchBuilder;
use canalis_connector_api::SplitMode;
use canalis_types::{LogicalType, RowKind};

use crate::lab::{Lab, at, batch, counts, pair_batch, split, splits, table};

use RowKind::*;

fn nk() -> std::sync::Arc<canalis_types::TableSchema> {
    table("nk", &[("a", LogicalType::Int32, true), ("b", LogicalType::Text, true)], &[])
}

#[tokio::test]
async fn ky_01_delete_removes_one_of_two_twins() {
    let Some(lab) = Lab::new().await else { return };
    let schema = nk();
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    let rows = [(Insert, "1", "x"), (Insert, "1", "x"), (Insert, "2", "NULL")];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    writer.commit(&splits(&["s"])).await.unwrap();
    writer.write(pair_batch(&schema, &[(Delete, "1", "x")])).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 0));
    assert_eq!(lab.lines("SELECT a, b FROM app.nk ORDER BY a").await, ["1|x", "2|NULL"]);
    writer
        .write(pair_batch(&schema, &[(UpdateBefore, "2", "NULL"), (UpdateAfter, "NULL", "y")]))
        .await
        .unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT a, b FROM app.nk ORDER BY a").await, ["1|x", "NULL|y"]);
}

/// Deletes `copies` of each of `kinds` images from a table with twice as many.
async fn halve(kinds: i64, copies: usize) {
    let Some(lab) = Lab::new().await else { return };
    let schema = nk();
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    lab.run(&format!(
        "INSERT INTO app.nk SELECT NULLIF(i % {kinds}, 0), 'image ' || i % {kinds} \
         FROM generate_series(1, {kinds} * 2 * {copies}) i"
    ))
    .await;
    let mut builder = BatchBuilder::new(schema.clone(), 1);
    for kind in 0..kinds {
        for _ in 0..copies {
            if kind == 0 {
                builder.column(0).append_null();
            } else {
                builder.column(0).append_i64(kind).unwrap();
            }
            builder.column(1).append_text(format!("image {kind}").as_bytes()).unwrap();
            builder.end_row(Delete, 0);
        }
    }
    writer.write(builder.finish().unwrap()).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let counts = lab.lines("SELECT count(*) FROM app.nk GROUP BY a, b").await;
    assert_eq!(counts, vec![copies.to_string(); usize::try_from(kinds).unwrap()]);
}

#[tokio::test]
async fn few_some_and_many_deletes_take_exactly_as_many_copies() {
    halve(2, 3).await;
    halve(60, 2).await;
    halve(900, 2).await;
}

#[tokio::test]
async fn images_of_every_type_are_found() {
    let Some(lab) = Lab::new().await else { return };
    let columns = [
        ("json", LogicalType::Json, true),
        ("float", LogicalType::Float32, true),
        ("double", LogicalType::Float64, true),
        ("decimal", LogicalType::Decimal { precision: 20, scale: 4 }, true),
        ("bytes", LogicalType::Bytes, true),
        ("bits", LogicalType::Bit { length: 9 }, true),
        ("time", LogicalType::Time { precision: 6 }, true),
        ("stamp", LogicalType::TimestampTz { precision: 6 }, true),
        ("text", LogicalType::Char { length: 5 }, true),
    ];
    let schema = table("nk", &columns, &[]);
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let full = |float: &'static [u8], json: &'static [u8]| -> Vec<Option<&'static [u8]>> {
        vec![
            Some(json),
            Some(float),
            Some(b"0.30000000000000004"),
            Some(b"-1.5000"),
            Some(b"\x00\\'"),
            Some(b"257"),
            Some(b"-100:00:00.000001"),
            Some(b"1969-12-31 23:59:59.999999"),
            Some(b"it's\\"),
        ]
    };
    let plus = full(b"0.0", b"{\"a\": 1}");
    let minus = full(b"-0.0", b"{\"a\":1}");
    let nulls: Vec<Option<&[u8]>> = vec![None; columns.len()];
    let rows: Vec<(RowKind, &[Option<&[u8]>])> =
        vec![(Insert, &plus), (Insert, &minus), (Insert, &nulls), (Insert, &plus)];
    writer.write(batch(&schema, &rows)).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    writer.write(batch(&schema, &[(Delete, &minus), (Delete, &nulls)])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT \"json\", \"float\" FROM app.nk").await, ["{\"a\": 1}|0", "{\"a\": 1}|0"]);
    // Through the set-based statement too.
    let many: Vec<(RowKind, &[Option<&[u8]>])> = vec![(Insert, &minus); 40];
    writer.write(batch(&schema, &many)).await.unwrap();
    writer.commit(&at(3)).await.unwrap();
    let many: Vec<(RowKind, &[Option<&[u8]>])> = vec![(Delete, &minus); 39];
    writer.write(batch(&schema, &many)).await.unwrap();
    writer.commit(&at(4)).await.unwrap();
    assert_eq!(lab.lines("SELECT count(*) FROM app.nk").await, ["3"]);
}

#[tokio::test]
async fn a_refused_row_is_no_trouble_when_it_is_deleted() {
    let Some(lab) = Lab::new().await else { return };
    let schema = nk();
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer
        .write(pair_batch(&schema, &[(Insert, "1", "a\0"), (Insert, "1", "a\0"), (Insert, "2", "b")]))
        .await
        .unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 2));
    assert_eq!(lab.letters.take().len(), 2);
    writer.write(pair_batch(&schema, &[(UpdateBefore, "1", "a\0"), (UpdateAfter, "1", "a")])).await.unwrap();
    writer.write(pair_batch(&schema, &[(Delete, "1", "a\0")])).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (2, 0));
    assert!(lab.letters.take().is_empty());
    assert_eq!(lab.lines("SELECT a, b FROM app.nk ORDER BY a").await, ["1|a", "2|b"]);
}

#[tokio::test]
async fn an_image_that_no_row_has_is_a_letter() {
    for copies in [1usize, 20, 1200] {
        let Some(lab) = Lab::new().await else { return };
        let schema = nk();
        let sink = lab.open(&[], &[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        lab.run(&format!("INSERT INTO app.nk SELECT 1, 'x' FROM generate_series(1, {copies})")).await;
        let mut rows = vec![(Delete, "1", "x"); copies];
        rows.push((Delete, "1", "X"));
        rows.push((Insert, "2", "y"));
        writer.write(pair_batch(&schema, &rows)).await.unwrap();
        let total = u64::try_from(copies).unwrap() + 1;
        assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (total, 1));
        let letters = lab.letters.take();
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].payload["b"], "X");
        assert!(letters[0].reason.contains("no row of the target"), "{}", letters[0].reason);
        assert_eq!(lab.lines("SELECT a, b FROM app.nk").await, ["2|y"]);
    }
}

#[tokio::test]
async fn a_refused_update_leaves_the_earlier_row() {
    let Some(lab) = Lab::new().await else { return };
    let schema = nk();
    lab.run("CREATE SCHEMA app; CREATE TABLE app.nk (a int, b text CHECK (b <> 'bad'))").await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(Insert, "1", "x"), (Insert, "2", "y")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let rows = [
        (UpdateBefore, "1", "x"),
        (UpdateAfter, "1", "a\0b"),
        (UpdateBefore, "2", "y"),
        (UpdateAfter, "2", "bad"),
        // Neither image can be had: one change, one letter.
        (UpdateBefore, "3", "gone"),
        (UpdateAfter, "3", "bad"),
    ];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (0, 3));
    assert_eq!(lab.lines("SELECT a, b FROM app.nk ORDER BY a").await, ["1|x", "2|y"]);
}
