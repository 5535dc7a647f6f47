//! Rows of which the source did not send all columns.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_types::{LogicalType, RowKind, TableSchema};

use crate::lab::{Lab, at, counts, table};

use RowKind::*;

/// `id`, a short text and a text, keyed or not.
fn triples(key: &[&str]) -> Arc<TableSchema> {
    let columns = [
        ("id", LogicalType::Int32, false),
        ("a", LogicalType::Varchar { length: 20 }, true),
        ("b", LogicalType::Text, true),
    ];
    table("t", &columns, key)
}

/// Cells apart by blanks; `?` is one that was left out, `-` is NULL.
fn rows(schema: &Arc<TableSchema>, rows: &[(RowKind, &str)]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, cells) in rows {
        for (index, cell) in cells.split(' ').enumerate() {
            match cell {
                "?" => builder.append_unchanged(index),
                "-" => builder.column(index).append_null(),
                text => builder.column(index).append_text(text.as_bytes()).unwrap(),
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

const ALL: &str = "SELECT id, a, b FROM app.t ORDER BY id, a, b";

/// Tables with an index over the key, without one, and with a second unique index.
const KEYED: [&str; 3] = [
    "CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, a varchar(20), b text)",
    "CREATE SCHEMA app; CREATE TABLE app.t (id int, a varchar(20), b text)",
    "CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, a varchar(20), b text UNIQUE)",
];

#[tokio::test]
async fn cells_that_were_left_out_keep_their_values() {
    for ddl in KEYED {
        let Some(lab) = Lab::new().await else { return };
        let schema = triples(&["id"]);
        lab.run(ddl).await;
        lab.run("INSERT INTO app.t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2'), (3, 'a3', 'b3'), (4, 'a4', 'b4'), (5, 'a5', 'b5')")
            .await;
        let sink = lab.open(&[], &[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        let changes = [
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "1 x ?"),
            // Its last image has all columns, in parts.
            (UpdateBefore, "2 ? ?"),
            (UpdateAfter, "2 y ?"),
            (UpdateBefore, "2 ? ?"),
            (UpdateAfter, "2 ? -"),
            (Delete, "3 ? ?"),
            // An insert of a key that exists, and a row of nothing but its key.
            (Insert, "4 ? z"),
            (UpdateBefore, "5 ? ?"),
            (UpdateAfter, "5 ? ?"),
            // A row that is whole, then changed in part and moved.
            (Insert, "6 p q"),
            (UpdateBefore, "6 ? ?"),
            (UpdateAfter, "7 r ?"),
        ];
        writer.write(rows(&schema, &changes)).await.unwrap();
        assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (8, 0), "{ddl}");
        assert_eq!(lab.lines(ALL).await, ["1|x|b1", "2|y|NULL", "4|a4|z", "5|a5|b5", "7|r|q"], "{ddl}");
    }
}

#[tokio::test]
async fn rows_known_in_part_move_with_their_keys() {
    for ddl in KEYED {
        let Some(lab) = Lab::new().await else { return };
        let schema = triples(&["id"]);
        lab.run(ddl).await;
        lab.run("INSERT INTO app.t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2')").await;
        let sink = lab.open(&[], &[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        // The two change places.
        let changes = [
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "9 ? ?"),
            (UpdateBefore, "2 ? ?"),
            (UpdateAfter, "1 x ?"),
            (UpdateBefore, "9 ? ?"),
            (UpdateAfter, "2 y ?"),
        ];
        writer.write(rows(&schema, &changes)).await.unwrap();
        assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (3, 0), "{ddl}");
        assert_eq!(lab.lines(ALL).await, ["1|x|b2", "2|y|b1"], "{ddl}");
    }
}

#[tokio::test]
async fn a_row_known_in_part_is_refused_when_the_target_does_not_have_it() {
    for ddl in KEYED {
        let Some(lab) = Lab::new().await else { return };
        let schema = triples(&["id"]);
        lab.run(ddl).await;
        lab.run("INSERT INTO app.t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2')").await;
        let sink = lab.open(&[], &[&schema]).await;
        let mut writer = lab.writer(&sink).await;
        let changes = [
            (UpdateBefore, "8 ? ?"),
            (UpdateAfter, "8 x ?"),
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "1 y ?"),
            (UpdateBefore, "7 ? ?"),
            (UpdateAfter, "6 x ?"),
            // The delete counts, what comes after it has nothing to keep.
            (Delete, "2 ? ?"),
            (Insert, "2 x ?"),
            (Insert, "3 p q"),
        ];
        writer.write(rows(&schema, &changes)).await.unwrap();
        assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (3, 3), "{ddl}");
        assert_eq!(lab.lines(ALL).await, ["1|y|b1", "3|p|q"], "{ddl}");
        let letters = lab.letters.take();
        let mut keys: Vec<i64> = letters.iter().map(|l| l.payload["id"].as_i64().unwrap()).collect();
        keys.sort_unstable();
        assert_eq!(keys, [2, 6, 8], "{ddl}");
        for letter in letters {
            assert!(letter.reason.contains("no row of the target has its key"), "{}", letter.reason);
        }
    }
}

#[tokio::test]
async fn a_value_that_is_too_long_is_refused_and_not_cut() {
    let Some(lab) = Lab::new().await else { return };
    let columns = [
        ("id", LogicalType::Int32, false),
        ("a", LogicalType::Varchar { length: 20 }, true),
        ("b", LogicalType::Text, true),
    ];
    let schema = table("t", &columns, &["id"]);
    lab.run("CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, a varchar(20), b text CHECK (b <> 'bad'))").await;
    lab.run("INSERT INTO app.t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2'), (3, 'a3', 'b3')").await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(rows(&schema, &[(Insert, "3 a3 b3")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    // The writer has seen the wider column.
    lab.run("ALTER TABLE app.t ALTER a TYPE varchar(3)").await;
    let changes = [
        (UpdateBefore, "1 ? ?"),
        (UpdateAfter, "1 long ?"),
        (UpdateBefore, "2 ? ?"),
        (UpdateAfter, "2 ? bad"),
        (UpdateBefore, "3 ? ?"),
        (UpdateAfter, "3 x ?"),
    ];
    writer.write(rows(&schema, &changes)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(2)).await.unwrap()), (1, 2));
    assert_eq!(lab.lines(ALL).await, ["1|a1|b1", "2|a2|b2", "3|x|b3"]);
    let reasons: Vec<String> = lab.letters.take().into_iter().map(|l| l.reason).collect();
    assert!(reasons.iter().any(|r| r.contains("22001")), "{reasons:?}");
    assert!(reasons.iter().any(|r| r.contains("23514")), "{reasons:?}");
}

#[tokio::test]
async fn many_rows_known_in_part_are_set_together() {
    let Some(lab) = Lab::new().await else { return };
    let schema = triples(&["id"]);
    lab.run(KEYED[0]).await;
    lab.run("INSERT INTO app.t SELECT i, 'a', 'b' || i FROM generate_series(1, 3000) i").await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let texts: Vec<String> = (1..=3000).map(|id| format!("{id} x ?")).collect();
    let changes: Vec<(RowKind, &str)> = texts.iter().map(|text| (Insert, text.as_str())).collect();
    writer.write(rows(&schema, &changes)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (3000, 0));
    assert_eq!(lab.lines("SELECT count(*) FROM app.t WHERE a = 'x' AND b = 'b' || id").await, ["3000"]);
}

#[tokio::test]
async fn without_a_key_images_before_have_to_be_whole() {
    let Some(lab) = Lab::new().await else { return };
    let schema = triples(&[]);
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    lab.run("INSERT INTO app.t VALUES (1, 'a1', 'b1'), (2, 'a2', NULL), (3, 'a3', 'b3'), (4, 'a4', 'b4')")
        .await;
    let changes = [
        // What the image before tells is what the cell is.
        (UpdateBefore, "2 a2 -"),
        (UpdateAfter, "2 x ?"),
        (UpdateBefore, "1 a1 ?"),
        (UpdateAfter, "1 x b1"),
        (Delete, "3 a3 ?"),
        (Insert, "5 a5 ?"),
        (Delete, "4 a4 b4"),
    ];
    writer.write(rows(&schema, &changes)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (2, 3));
    assert_eq!(lab.lines(ALL).await, ["1|a1|b1", "2|x|NULL", "3|a3|b3"]);
    for letter in lab.letters.take() {
        assert!(letter.reason.contains("did not send all columns"), "{}", letter.reason);
    }
}
