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

const ALL: &str = "SELECT id, a, b FROM t ORDER BY id, a, b";

/// Tables with an index over the key, without one, and with a second unique index.
const KEYED: [&str; 3] = [
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT)",
    "CREATE TABLE t (id INTEGER, a TEXT, b TEXT)",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT UNIQUE)",
];

#[tokio::test]
async fn cells_that_were_left_out_keep_their_values() {
    for ddl in KEYED {
        let lab = Lab::new();
        let schema = triples(&["id"]);
        lab.run(ddl);
        lab.run("INSERT INTO t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2'), (3, 'a3', 'b3'), (4, 'a4', 'b4'), (5, 'a5', 'b5')");
        let sink = lab.open(&[&schema]).await;
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
        assert_eq!(lab.lines(ALL), ["1|x|b1", "2|y|NULL", "4|a4|z", "5|a5|b5", "7|r|q"], "{ddl}");
    }
}

#[tokio::test]
async fn rows_known_in_part_move_with_their_keys() {
    for ddl in KEYED {
        let lab = Lab::new();
        let schema = triples(&["id"]);
        lab.run(ddl);
        lab.run("INSERT INTO t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2')");
        let sink = lab.open(&[&schema]).await;
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
        assert_eq!(lab.lines(ALL), ["1|x|b2", "2|y|b1"], "{ddl}");
    }
}

#[tokio::test]
async fn a_row_known_in_part_is_refused_when_the_target_does_not_have_it() {
    for ddl in KEYED {
        let lab = Lab::new();
        let schema = triples(&["id"]);
        lab.run(ddl);
        lab.run("INSERT INTO t VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2')");
        let sink = lab.open(&[&schema]).await;
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
        assert_eq!(lab.lines(ALL), ["1|y|b1", "3|p|q"], "{ddl}");
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
async fn a_value_that_the_target_refuses_costs_its_row_only() {
    let lab = Lab::new();
    let schema = triples(&["id"]);
    lab.run("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT CHECK (length(a) <= 3), b TEXT)");
    lab.run("INSERT INTO t VALUES (1, 'a1', 'b1'), (3, 'a3', 'b3')");
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let changes =
        [(UpdateBefore, "1 ? ?"), (UpdateAfter, "1 long ?"), (UpdateBefore, "3 ? ?"), (UpdateAfter, "3 x ?")];
    writer.write(rows(&schema, &changes)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (1, 1));
    assert_eq!(lab.lines(ALL), ["1|a1|b1", "3|x|b3"]);
    assert!(lab.letters.take()[0].reason.contains("CHECK"));
}

#[tokio::test]
async fn many_rows_known_in_part_are_set_together() {
    let lab = Lab::new();
    let schema = triples(&["id"]);
    lab.run(KEYED[0]);
    lab.run("WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 3000) INSERT INTO t SELECT i, 'a', 'b' || i FROM g");
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    let texts: Vec<String> = (1..=3000).map(|id| format!("{id} x ?")).collect();
    let changes: Vec<(RowKind, &str)> = texts.iter().map(|text| (Insert, text.as_str())).collect();
    writer.write(rows(&schema, &changes)).await.unwrap();
    assert_eq!(counts(&writer.commit(&at(1)).await.unwrap()), (3000, 0));
    assert_eq!(lab.lines("SELECT count(*) FROM t WHERE a = 'x' AND b = 'b' || id"), ["3000"]);
}

#[tokio::test]
async fn without_a_key_images_before_have_to_be_whole() {
    let lab = Lab::new();
    let schema = triples(&[]);
    let sink = lab.open(&[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    lab.run("INSERT INTO t VALUES (1, 'a1', 'b1'), (2, 'a2', NULL), (3, 'a3', 'b3'), (4, 'a4', 'b4')");
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
    assert_eq!(lab.lines(ALL), ["1|a1|b1", "2|x|NULL", "3|a3|b3"]);
    for letter in lab.letters.take() {
        assert!(letter.reason.contains("did not send all columns"), "{}", letter.reason);
    }
}
