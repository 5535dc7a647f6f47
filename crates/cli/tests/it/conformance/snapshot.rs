//! Snapshot splits: rows land, a split read again doubles nothing where there is a key, and keys and indexes are there when
//! the snapshot is complete.

use std::sync::Arc;

use canalis_connector_api::SplitMode;
use canalis_types::TableSchema;

use super::{
    lab::{Start, databases},
    model::{
        Changes, batch, begin, begin_again, counts, ends, insert, keyed, keyless, lines, point, row, update,
    },
};

/// Rows `from..to` with the text `v`.
fn rows(from: usize, to: usize, v: &str) -> Changes {
    (from..to).flat_map(|id| insert(&[&id.to_string(), v])).collect()
}

fn expected(parts: &[(usize, usize, &str)]) -> Vec<String> {
    let cells = parts.iter().flat_map(|(from, to, v)| (*from..*to).map(|id| row(&[&id.to_string(), v])));
    lines(cells.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn splits_of_several_tables_share_a_commit_and_are_known_afterwards() {
    for lab in databases().await {
        let name = lab.name;
        let schemas = [keyed(&lab, "t"), keyless(&lab, "u")];
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        for schema in &schemas {
            sink.prepare_table(schema, true).await.unwrap();
        }
        let mut writer = lab.writer(&*sink, 0, 1).await;
        for (split, schema, part) in [
            ("t:1", &schemas[0], (0, 100)),
            ("t:2", &schemas[0], (100, 2500)),
            ("u:1", &schemas[1], (0, 300)),
            ("t:3", &schemas[0], (2500, 2500)),
        ] {
            writer.begin_split(&begin(split, schema)).await.unwrap();
            for from in (part.0..part.1).step_by(700) {
                let to = part.1.min(from + 700);
                writer.write(batch(schema, &rows(from, to, "s"))).await.unwrap();
            }
        }
        let report = writer.commit(&ends(&["t:1", "t:2", "u:1", "t:3"])).await.unwrap();
        let mut written = report.written.clone();
        written.sort();
        assert_eq!(written, [(schemas[0].id.clone(), 2500), (schemas[1].id.clone(), 300)], "{name}");
        drop(writer);

        for _ in 0..2 {
            sink.snapshot_complete(&schemas).await.unwrap();
        }
        assert_eq!(lab.rows("t").await, expected(&[(0, 2500, "s")]), "{name}");
        assert_eq!(lab.rows("u").await, expected(&[(0, 300, "s")]), "{name}");
        let again = lab.sink();
        let recovery = lab.open(&*again, 1, Start::Again).await;
        // Of a table with a key a split may be read again, so that its record is the sink's own affair.
        assert!(recovery.done_splits.contains("u:1"), "{name}: {recovery:?}");
        assert!(
            recovery.done_splits.iter().all(|id| ["t:1", "t:2", "t:3", "u:1"].contains(&&**id)),
            "{name}"
        );
        assert_eq!(recovery.positions.into_iter().flatten().count(), 0, "{name}");
        for schema in &schemas {
            assert_eq!(again.prepare_table(schema, true).await.unwrap().statements, [""; 0], "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_read_again_doubles_nothing_where_there_is_a_key() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyed(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.begin_split(&begin("one", &schema)).await.unwrap();
        writer.write(batch(&schema, &rows(0, 1000, "old"))).await.unwrap();
        writer.commit(&ends(&["one"])).await.unwrap();
        // The next one is committed half-way, goes on, and is lost.
        writer.begin_split(&begin("two", &schema)).await.unwrap();
        writer.write(batch(&schema, &rows(1000, 1600, "old"))).await.unwrap();
        writer.commit(&ends(&[])).await.unwrap();
        writer.write(batch(&schema, &rows(1600, 1900, "old"))).await.unwrap();
        drop(writer);

        let sink = lab.sink();
        let recovery = lab.open(&*sink, 1, Start::Again).await;
        assert!(!recovery.done_splits.contains("two"), "{name}");
        sink.prepare_table(&schema, true).await.unwrap();
        assert_eq!(lab.rows("t").await, expected(&[(0, 1600, "old")]), "{name}");
        let mut writer = lab.writer(&*sink, 0, 1).await;
        // Read again a moment later: some rows are others by now, and there are more.
        writer.begin_split(&begin_again("two", &schema)).await.unwrap();
        writer.write(batch(&schema, &rows(1000, 1300, "old"))).await.unwrap();
        writer.write(batch(&schema, &rows(1300, 2000, "new"))).await.unwrap();
        let report = writer.commit(&ends(&["two"])).await.unwrap();
        assert_eq!(counts(&report), (1000, 0), "{name}");
        sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
        assert_eq!(lab.rows("t").await, expected(&[(0, 1300, "old"), (1300, 2000, "new")]), "{name}");

        // The stream goes on in the same table.
        let change = update(&["0", "old"], &["0", "streamed"]);
        writer.write(batch(&schema, &change)).await.unwrap();
        writer.write(batch(&schema, &insert(&["1", "told again"]))).await.unwrap();
        writer.commit(&point(9)).await.unwrap();
        let expect =
            expected(&[(0, 1, "streamed"), (1, 2, "told again"), (2, 1300, "old"), (1300, 2000, "new")]);
        assert_eq!(lab.rows("t").await, expect, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_writers_fill_one_table() {
    for lab in databases().await {
        let name = lab.name;
        let writers = if lab.sink().capabilities().parallel { 3 } else { 1 };
        let schemas: [Arc<TableSchema>; 2] = [keyed(&lab, "t"), keyless(&lab, "u")];
        let sink = lab.sink();
        lab.open(&*sink, writers, Start::Fresh).await;
        for schema in &schemas {
            sink.prepare_table(schema, true).await.unwrap();
        }
        let mut tasks = Vec::new();
        for index in 0..writers {
            let mut writer = lab.writer(&*sink, index, writers).await;
            let schemas = schemas.clone();
            tasks.push(tokio::spawn(async move {
                for part in 0..4 {
                    for schema in &schemas {
                        let split = format!("{}:{index}:{part}", schema.id.table);
                        let from = (index * 4 + part) * 250;
                        writer.begin_split(&begin(&split, schema)).await.unwrap();
                        writer.write(batch(schema, &rows(from, from + 250, "s"))).await.unwrap();
                        writer.commit(&ends(&[&split])).await.unwrap();
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        sink.snapshot_complete(&schemas).await.unwrap();
        for table in ["t", "u"] {
            assert_eq!(lab.rows(table).await, expected(&[(0, writers * 1000, "s")]), "{name}: {table}");
        }
        let recovery = lab.open(&*lab.sink(), writers, Start::Again).await;
        let known = recovery.done_splits.iter().filter(|id| id.starts_with("u:")).count();
        assert_eq!(known, writers * 4, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_split_goes_on_where_its_rows_are_committed() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyless(&lab, "t");
        let mut split = begin("file", &schema);
        split.split.mode = SplitMode::Append;
        let at = |n: u64| {
            let mut point = point(n);
            let place = point.position.take().map(|position| ("file".to_owned(), position));
            point.split_position = place;
            point
        };
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.begin_split(&split).await.unwrap();
        writer.write(batch(&schema, &rows(0, 10, "x"))).await.unwrap();
        writer.commit(&at(10)).await.unwrap();
        writer.write(batch(&schema, &rows(10, 20, "x"))).await.unwrap();
        writer.commit(&at(20)).await.unwrap();
        writer.write(batch(&schema, &rows(20, 25, "x"))).await.unwrap();
        drop(writer);

        let sink = lab.sink();
        let recovery = lab.open(&*sink, 1, Start::Again).await;
        assert_eq!(recovery.split_positions.get("file").map(|p| p.order), Some([1, 20, 0]), "{name}");
        sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        split.split.retried = true;
        split.split.position = recovery.split_positions.get("file").cloned();
        writer.begin_split(&split).await.unwrap();
        writer.write(batch(&schema, &rows(20, 30, "x"))).await.unwrap();
        writer.commit(&ends(&["file"])).await.unwrap();
        assert_eq!(lab.rows("t").await, expected(&[(0, 30, "x")]), "{name}");
        drop(writer);
        let recovery = lab.open(&*lab.sink(), 1, Start::Again).await;
        assert!(recovery.done_splits.contains("file"), "{name}");
    }
}
