//! A row that cannot be held costs itself only.

use canalis_batch::BatchBuilder;
use canalis_connector_api::SplitMode;
use canalis_types::{LogicalType, RowKind};

use crate::lab::{Lab, at, counts, pair_batch, pairs, split, splits, table};

/// 1000 rows, one with a NUL character.
async fn thousand(given: &[(&str, &str)]) -> Option<(Lab, (u64, u64), (u64, u64))> {
    let lab = Lab::new().await?;
    let schema = pairs("t");
    let sink = lab.open(given, &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let rows = |from: u32| {
        let mut builder = BatchBuilder::new(schema.clone(), 1000);
        for i in 0..1000 {
            let text = if i == 500 { "ab\0cd".to_owned() } else { format!("row {i}") };
            builder.column(0).append_i64(i64::from(from + i)).unwrap();
            builder.column(1).append_text(text.as_bytes()).unwrap();
            builder.end_row(RowKind::Insert, 0);
        }
        builder.finish().unwrap()
    };
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    writer.write(rows(0)).await.unwrap();
    let snapshot = counts(&writer.commit(&splits(&["s"])).await.unwrap());
    writer.write(rows(1000)).await.unwrap();
    let stream = counts(&writer.commit(&at(1)).await.unwrap());
    Some((lab, snapshot, stream))
}

#[tokio::test]
async fn sk_08_one_nul_character_among_a_thousand_rows() {
    let Some((lab, snapshot, stream)) = thousand(&[]).await else { return };
    assert_eq!((snapshot, stream), ((999, 1), (999, 1)));
    let letters = lab.letters.take();
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[0].payload["v"], "ab\0cd");
    assert_eq!(letters[0].key["id"], 500);
    assert_eq!(lab.lines("SELECT count(*) FROM app.t").await, ["1998"]);
    for (policy, text) in [("strip", "abcd"), ("replace", "ab\u{fffd}cd")] {
        let Some((lab, snapshot, stream)) = thousand(&[("nul-character.policy", policy)]).await else {
            return;
        };
        assert_eq!((snapshot, stream), ((1000, 0), (1000, 0)));
        assert_eq!(lab.lines("SELECT v FROM app.t WHERE id IN (500, 1500)").await, [text, text]);
    }
}

#[tokio::test]
async fn rows_that_only_the_server_refuses_are_found() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    lab.run("CREATE SCHEMA app; CREATE TABLE app.t (id smallint PRIMARY KEY, v text CHECK (v <> 'bad'))")
        .await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let rows = |from: i64| {
        let mut builder = BatchBuilder::new(schema.clone(), 3000);
        for i in 0..3000 {
            let bad = matches!(i, 0 | 7 | 1500 | 1501 | 2999);
            // Three by the CHECK, one by the range of the key.
            let id = if i == 7 { 70_000 + from } else { from + i };
            builder.column(0).append_i64(id).unwrap();
            builder.column(1).append_text(if bad { b"bad" } else { b"good" }).unwrap();
            builder.end_row(RowKind::Insert, 0);
        }
        builder.finish().unwrap()
    };
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    writer.write(rows(0)).await.unwrap();
    assert_eq!(counts(&writer.commit(&splits(&["s"])).await.unwrap()), (2995, 5));
    let by_snapshot: Vec<String> = lab.letters.take().into_iter().map(|l| l.key["id"].to_string()).collect();
    assert_eq!(by_snapshot, ["0", "70000", "1500", "1501", "2999"]);
    writer.write(rows(10_000)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (2995, 5));
    let letters = lab.letters.take();
    assert!(letters.iter().any(|l| l.reason.contains("t_v_check")), "{letters:?}");
    assert_eq!(lab.lines("SELECT count(*), min(id), max(id) FROM app.t").await, ["5990|1|12998"]);
}

#[tokio::test]
async fn sk_07_text_too_long_for_an_existing_column() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    lab.run("CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, v varchar(5))").await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.begin_split(&split("s", &schema, SplitMode::Snapshot, false)).await.unwrap();
    use RowKind::Insert;
    writer.write(pair_batch(&schema, &[(Insert, "1", "abcdef"), (Insert, "2", "😀😀😀😀😀")])).await.unwrap();
    assert_eq!(counts(&writer.commit(&splits(&["s"])).await.unwrap()), (1, 1));
    writer.write(pair_batch(&schema, &[(Insert, "3", "abcde "), (Insert, "4", "abcde")])).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 1));
    assert_eq!(lab.lines("SELECT id, v FROM app.t ORDER BY id").await, ["2|😀😀😀😀😀", "4|abcde"]);
    let reasons: Vec<String> = lab.letters.take().into_iter().map(|l| l.reason).collect();
    assert!(reasons.iter().all(|r| r.contains("column `v`") && r.contains("6 characters")), "{reasons:?}");
}

#[tokio::test]
async fn sk_01_numbers_out_of_the_targets_range() {
    let Some(lab) = Lab::new().await else { return };
    let schema = table("t", &[("id", LogicalType::Int32, false), ("n", LogicalType::Int32, true)], &["id"]);
    lab.run("CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, n smallint)").await;
    let sink = lab.open(&[], &[]).await;
    let plan = sink.prepare_table(&schema, false).await.unwrap();
    assert!(plan.notes.iter().any(|n| n.contains("column `n`") && n.contains("range")), "{:?}", plan.notes);
    let mut writer = lab.writer(&sink).await;
    use RowKind::Insert;
    let rows =
        [(Insert, "1", "32767"), (Insert, "2", "32768"), (Insert, "3", "-32769"), (Insert, "4", "-32768")];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (2, 2));
    assert_eq!(lab.lines("SELECT id, n FROM app.t ORDER BY id").await, ["1|32767", "4|-32768"]);
}

#[tokio::test]
async fn a_refused_update_leaves_the_earlier_row() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    lab.run("CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, v text UNIQUE, extra int DEFAULT 7)")
        .await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    use RowKind::*;
    writer.write(pair_batch(&schema, &[(Insert, "1", "a"), (Insert, "2", "b")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    lab.run("UPDATE app.t SET extra = 8; INSERT INTO app.t VALUES (50, 'taken')").await;
    let rows = [
        (UpdateBefore, "1", "a"),
        (UpdateAfter, "1", "taken"),
        (UpdateBefore, "2", "b"),
        (UpdateAfter, "2", "c"),
    ];
    writer.write(pair_batch(&schema, &rows)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (1, 1));
    assert_eq!(
        lab.lines("SELECT id, v, extra FROM app.t ORDER BY id").await,
        ["1|a|8", "2|c|8", "50|taken|7"]
    );
}

#[tokio::test]
async fn a_queue_that_refuses_stops_the_commit() {
    struct Failing;
    #[async_trait::async_trait]
    impl canalis_connector_api::DeadLetterQueue for Failing {
        async fn reject(&self, letters: Vec<canalis_connector_api::DeadLetter>) -> canalis_types::Result<()> {
            Err(canalis_types::Error::new(canalis_types::Code::RowRefused, letters[0].reason.clone()))
        }
    }
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    let sink = lab.open(&[], &[&schema]).await;
    let ctx = canalis_connector_api::WriterContext {
        job: "job".into(),
        index: 0,
        writers: 1,
        dead_letters: std::sync::Arc::new(Failing),
    };
    let mut writer = sink.open_writer(ctx).await.unwrap();
    writer
        .write(pair_batch(&schema, &[(RowKind::Insert, "1", "ok"), (RowKind::Insert, "2", "a\0b")]))
        .await
        .unwrap();
    let error = writer.commit(&at(1)).await.unwrap_err();
    assert_eq!(error.code(), canalis_types::Code::RowRefused);
    drop(writer);
    assert_eq!(lab.lines("SELECT count(*) FROM app.t").await, ["0"]);
}
