//! Refused rows: the bad ones are handed over one by one with the reason, all others land.

use std::sync::Arc;

use canalis_connector_api::{DeadLetter, DeadLetterQueue, WriterContext};
use canalis_types::{Code, LogicalType, RowKind};

use super::{
    lab::{JOB, Letters, Start, databases},
    model::{Changes, Row, batch, begin, counts, delete, ends, insert, point, schema, update},
};

const COLUMNS: [(&str, LogicalType); 2] = [("id", LogicalType::Int32), ("n", LogicalType::Int32)];

/// A table that takes no 666, made by somebody else; with a key and without.
fn tables() -> [(&'static str, &'static str, &'static [&'static str]); 2] {
    [
        ("by_key", "CREATE TABLE {t} (id INT NOT NULL PRIMARY KEY, n INT, CHECK (n <> 666))", &["id"]),
        ("without_key", "CREATE TABLE {t} (id INT NOT NULL, n INT, CHECK (n <> 666))", &[]),
    ]
}

/// A thousand rows, some of them bad.
fn thousand(bad: &[usize]) -> Changes {
    (0..1000)
        .flat_map(|id| {
            let n = if bad.contains(&id) { 666 } else { id % 600 };
            insert(&[&id.to_string(), &n.to_string()])
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_of_a_thousand_is_handed_over_and_the_others_land() {
    for lab in databases().await {
        for bad in [&[617][..], &[0, 1, 499, 999]] {
            for (kind, create, key) in tables() {
                for streamed in [false, true] {
                    let table = format!("{kind}_{}_{streamed}", bad.len());
                    let name = format!("{}: {table}", lab.name);
                    lab.run(&table, create).await;
                    let schema = schema(&lab, &table, &COLUMNS, key);
                    let sink = lab.sink();
                    lab.open(&*sink, 1, Start::Fresh).await;
                    sink.prepare_table(&schema, !streamed).await.unwrap();
                    let mut writer = lab.writer(&*sink, 0, 1).await;
                    let rows = thousand(bad);
                    let report = if streamed {
                        writer.write(batch(&schema, &rows)).await.unwrap();
                        writer.commit(&point(1)).await.unwrap()
                    } else {
                        writer.begin_split(&begin(&table, &schema)).await.unwrap();
                        writer.write(batch(&schema, &rows)).await.unwrap();
                        writer.commit(&ends(&[&table])).await.unwrap()
                    };
                    let refused = u64::try_from(bad.len()).unwrap();
                    assert_eq!(counts(&report), (1000 - refused, refused), "{name}");

                    let landed: Vec<Row> = rows
                        .iter()
                        .map(|(_, row)| row.clone())
                        .filter(|row| row[1].as_deref() != Some("666"))
                        .collect();
                    assert_eq!(lab.rows(&table).await, super::model::lines(landed), "{name}");

                    let mut letters = lab.letters.take();
                    letters.sort_by_key(|letter| letter.payload["id"].as_i64());
                    assert_eq!(letters.len(), bad.len(), "{name}: {letters:?}");
                    for (letter, id) in letters.iter().zip(bad) {
                        assert_eq!(letter.table, schema.id, "{name}");
                        assert_eq!((letter.kind, letter.code), (RowKind::Insert, Code::RowRefused), "{name}");
                        assert_eq!(letter.payload, serde_json::json!({"id": id, "n": 666}), "{name}");
                        let expect = if key.is_empty() {
                            serde_json::Value::Null
                        } else {
                            serde_json::json!({"id": id})
                        };
                        assert_eq!(letter.key, expect, "{name}");
                        assert!(!letter.reason.is_empty(), "{name}");
                    }
                }
            }
        }
    }
}

/// Alone, and in a window so large that rows travel in another way.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_change_among_good_ones_is_handed_over_alone() {
    for lab in databases().await {
        for (kind, create, key) in tables() {
            for others in [0, 3000] {
                let table = format!("{kind}_{others}");
                let name = format!("{}: {table}", lab.name);
                lab.run(&table, create).await;
                let schema = schema(&lab, &table, &COLUMNS, key);
                let sink = lab.sink();
                lab.open(&*sink, 1, Start::Fresh).await;
                sink.prepare_table(&schema, false).await.unwrap();
                let mut writer = lab.writer(&*sink, 0, 1).await;
                let ids: Vec<String> = (10..10 + others).map(|id| id.to_string()).collect();
                let mut rows: Changes = (1..=4).flat_map(|id| insert(&[&id.to_string(), "1"])).collect();
                rows.extend(ids.iter().flat_map(|id| insert(&[id, "1"])));
                writer.write(batch(&schema, &rows)).await.unwrap();
                writer.commit(&point(1)).await.unwrap();
                let mut changes = [
                    update(&["1", "1"], &["1", "2"]),
                    update(&["2", "1"], &["2", "666"]),
                    delete(&["3", "1"]),
                    insert(&["5", "666"]),
                    insert(&["6", "1"]),
                ]
                .concat();
                changes.extend(ids.iter().flat_map(|id| update(&[id, "1"], &[id, "2"])));
                writer.write(batch(&schema, &changes)).await.unwrap();
                let report = writer.commit(&point(2)).await.unwrap();
                assert_eq!(counts(&report), (3 + u64::try_from(others).unwrap(), 2), "{name}");
                let mut expect = ["1|2", "2|1", "4|1", "6|1"].map(str::to_owned).to_vec();
                expect.extend(ids.iter().map(|id| format!("{id}|2")));
                expect.sort();
                assert_eq!(lab.rows(&table).await, expect, "{name}");
                let kind = |letter: &DeadLetter| (letter.payload["id"].as_i64().unwrap(), letter.kind);
                let mut kinds: Vec<(i64, RowKind)> = lab.letters.take().iter().map(kind).collect();
                kinds.sort_by_key(|(id, _)| *id);
                assert_eq!(kinds, [(2, RowKind::UpdateAfter), (5, RowKind::Insert)], "{name}");
            }
        }
    }
}

/// With a key the last change counts. Without one a sink may take each change by itself: then the changes that follow a
/// refused one find no row, and are handed over too.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_bad_for_a_moment_ends_as_the_last_change_says() {
    for lab in databases().await {
        for (table, create, key) in tables() {
            let name = format!("{}: {table}", lab.name);
            lab.run(table, create).await;
            let schema = schema(&lab, table, &COLUMNS, key);
            let sink = lab.sink();
            lab.open(&*sink, 1, Start::Fresh).await;
            sink.prepare_table(&schema, false).await.unwrap();
            let mut writer = lab.writer(&*sink, 0, 1).await;
            let changes = [
                insert(&["1", "1"]),
                update(&["1", "1"], &["1", "666"]),
                update(&["1", "666"], &["1", "2"]),
                insert(&["2", "666"]),
                update(&["2", "666"], &["2", "3"]),
                insert(&["3", "666"]),
                delete(&["3", "666"]),
            ]
            .concat();
            writer.write(batch(&schema, &changes)).await.unwrap();
            let report = writer.commit(&point(1)).await.unwrap();
            let (written, refused) = counts(&report);
            assert_eq!(written + refused, 7, "{name}");
            let letters = lab.letters.take();
            assert_eq!(letters.len(), usize::try_from(refused).unwrap(), "{name}");
            let rows = lab.rows(table).await;
            if !key.is_empty() || refused == 0 {
                assert_eq!(rows, ["1|2", "2|3"], "{name}");
                continue;
            }
            assert!(!rows.iter().any(|row| row.contains("666")), "{name}: {rows:?}");
            for last in [serde_json::json!({"id": 1, "n": 2}), serde_json::json!({"id": 2, "n": 3})] {
                assert!(letters.iter().any(|letter| letter.payload == last), "{name}: {letters:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_row_may_be_refused_the_writer_ends_with_the_reason_and_nothing_lands() {
    for lab in databases().await {
        for (table, create, key) in tables() {
            let name = format!("{}: {table}", lab.name);
            lab.run(table, create).await;
            let schema = schema(&lab, table, &COLUMNS, key);
            let sink = lab.sink();
            lab.open(&*sink, 1, Start::Fresh).await;
            sink.prepare_table(&schema, false).await.unwrap();
            let dead_letters: Arc<dyn DeadLetterQueue> = Arc::new(Letters::failing());
            let ctx = WriterContext { job: JOB.into(), index: 0, writers: 1, dead_letters };
            let mut writer = sink.open_writer(ctx).await.unwrap();
            let error = match writer.write(batch(&schema, &thousand(&[500]))).await {
                Err(error) => error,
                Ok(()) => writer.commit(&point(1)).await.unwrap_err(),
            };
            assert_eq!(error.code(), Code::RowRefused, "{name}: {error}");
            assert!(!error.message().is_empty(), "{name}");
            drop(writer);
            let recovery = lab.open(&*lab.sink(), 1, Start::Again).await;
            assert_eq!(recovery.positions.into_iter().flatten().count(), 0, "{name}");
            assert_eq!(lab.rows(table).await, [""; 0], "{name}");
        }
    }
}
