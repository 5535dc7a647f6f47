//! Owns the tests of the sink without crashes.

use std::{fs, sync::Arc};

use canalis_connector_api::{CommitPoint, Severity};
use canalis_types::{Code, Column, LogicalType, RowKind, TableSchema};
use serde_json::Value;

use crate::support::{
    Letters, append_split, inserts, names, numbers, numbers_schema, read_all, sink, sink_context, source,
    visible_lines, writer,
};

#[tokio::test]
async fn files_are_visible_only_when_complete() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("out");
    let sink = sink(&root, &[("sink.rolling.max-rows", "100")]);
    let schema = numbers_schema("shop.orders");
    assert_eq!(sink.plan_table(&schema).await.unwrap().statements.len(), 1);
    assert!(!root.exists());
    assert_eq!(sink.check(&[]).await[0].severity, Severity::Ok);
    sink.open(&sink_context()).await.unwrap();
    sink.prepare_table(&schema, true).await.unwrap();
    assert!(sink.plan_table(&schema).await.unwrap().statements.is_empty());
    let letters = Arc::new(Letters::default());
    let mut writer = writer(&*sink, "job", 0, &letters).await;
    writer.begin_split(&append_split()).await.unwrap();
    writer.write(inserts(&schema, 0..250)).await.unwrap();
    let report = writer.commit(&CommitPoint::default()).await.unwrap();
    assert_eq!(report.written, [(schema.id.clone(), 250)]);
    assert_eq!(names(&root).0.len(), 0);
    let prepared = writer.prepare(1).await.unwrap();
    assert_eq!(names(&root).0.len(), 0);
    sink.publish(std::slice::from_ref(&prepared)).await.unwrap();
    sink.publish(&[prepared]).await.unwrap();
    let (visible, hidden) = names(&root);
    assert_eq!((visible.len(), hidden.len()), (2, 1));
    assert!(visible.iter().all(|n| n.starts_with("shop.orders/") && n.ends_with(".jsonl")));
    writer.write(inserts(&schema, 250..260)).await.unwrap();
    let prepared = writer.finish(2).await.unwrap();
    // Published files are not mentioned again.
    assert_eq!(prepared["finished"].as_array().unwrap().len(), 1);
    drop(writer);
    sink.publish(&[prepared]).await.unwrap();
    assert_eq!(names(&root).1.len(), 0);
    let lines = visible_lines(&root);
    assert_eq!(lines.len(), 260);
    assert_eq!(lines[0], r#"{"id":0,"t":"text, 0"}"#);
    assert_eq!(lines[259], r#"{"id":259,"t":"text, 259"}"#);
}

#[tokio::test]
async fn what_the_sink_writes_the_source_reads() {
    for (format, pairs) in [
        ("json", &[("format", "json")][..]),
        ("csv", &[("format", "csv"), ("csv.delimiter", ";"), ("csv.null-literal", "\\N")]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let sink = sink(dir.path(), &[pairs, &[("sink.rolling.max-bytes", "1kb")]].concat());
        let schema = numbers_schema("d.t");
        sink.open(&sink_context()).await.unwrap();
        let letters = Arc::new(Letters::default());
        let mut states = Vec::new();
        for index in 0..2 {
            let mut writer = writer(&*sink, "job", index, &letters).await;
            writer.begin_split(&append_split()).await.unwrap();
            let from = i64::try_from(index).unwrap() * 500;
            writer.write(inserts(&schema, from..from + 500)).await.unwrap();
            states.push(writer.finish(1).await.unwrap());
        }
        sink.publish(&states).await.unwrap();
        let pattern = format!("{}/d.t/*", dir.path().display());
        let columns = ("schema", "id BIGINT NOT NULL, t STRING");
        let source = source(&pattern, &[pairs, &[columns, ("table", "d.t")]].concat());
        let mut rows = read_all(&*source).await.rows;
        rows.sort_by_key(|row| row[0].as_ref().unwrap().parse::<i64>().unwrap());
        let expect: Vec<_> =
            (0..1000).map(|id| vec![Some(id.to_string()), Some(format!("text, {id}"))]).collect();
        assert!(rows == expect, "{format}");
    }
}

#[tokio::test]
async fn changes_say_what_they_stand_for() {
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
    let changes = [(Insert, 1), (UpdateBefore, 1), (UpdateAfter, 2), (Delete, 2), (Insert, 3)];
    let schema = numbers_schema("t");
    for (pairs, expect, refused) in [
        (&[][..], &["+I 1", "-U 1", "+U 2", "-D 2", "+I 3"][..], 0),
        (&[("row-kind.update-before", "false")], &["+I 1", "+U 2", "-D 2", "+I 3"], 0),
        (&[("row-kind", "never")], &["null 1", "null 3"], 2),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let sink = sink(dir.path(), pairs);
        let letters = Arc::new(Letters::default());
        let mut writer = writer(&*sink, "job", 0, &letters).await;
        writer.write(numbers(&schema, &changes)).await.unwrap();
        let report = writer.commit(&CommitPoint::default()).await.unwrap();
        assert_eq!(report.written, [(schema.id.clone(), 4 - refused)]);
        let rejected = std::mem::take(&mut *letters.0.lock().unwrap());
        assert_eq!(rejected.len() as u64, refused);
        assert_eq!(report.dead_lettered.iter().map(|(_, n)| n).sum::<u64>(), refused);
        if let Some(update) = rejected.first() {
            assert_eq!((update.kind, update.key.to_string().as_str()), (UpdateAfter, r#"{"id":"2"}"#));
        }
        let state = writer.finish(1).await.unwrap();
        sink.publish(&[state]).await.unwrap();
        let lines: Vec<String> = visible_lines(dir.path())
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|v| format!("{} {}", v["__op__"].as_str().unwrap_or("null"), v["id"]))
            .collect();
        assert_eq!(lines, expect, "{pairs:?}");
    }
}

#[tokio::test]
async fn refused_rows_alone_make_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let sink = sink(dir.path(), &[("row-kind", "never")]);
    let letters = Arc::new(Letters::default());
    let mut writer = writer(&*sink, "job", 0, &letters).await;
    writer.write(numbers(&numbers_schema("t"), &[(RowKind::Delete, 1)])).await.unwrap();
    assert_eq!(writer.prepare(1).await.unwrap()["open"].as_array().unwrap().len(), 0);
    let state = writer.finish(2).await.unwrap();
    sink.publish(&[state]).await.unwrap();
    assert_eq!(names(dir.path()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_file_has_one_structure() {
    let dir = tempfile::tempdir().unwrap();
    let sink = sink(dir.path(), &[("format", "csv")]);
    let before = numbers_schema("t");
    let mut after = TableSchema::clone(&before);
    after.columns.push(Column::new("more", LogicalType::Int32, true));
    let after = Arc::new(after);
    let letters = Arc::new(Letters::default());
    let mut writer = writer(&*sink, "job", 0, &letters).await;
    writer.begin_split(&append_split()).await.unwrap();
    writer.write(inserts(&before, 0..1)).await.unwrap();
    let mut builder = canalis_batch::BatchBuilder::new(after, 1);
    for column in builder.columns() {
        column.append_i64(1).unwrap();
    }
    builder.end_row(RowKind::Insert, 0);
    writer.write(builder.finish().unwrap()).await.unwrap();
    let state = writer.finish(1).await.unwrap();
    sink.publish(&[state]).await.unwrap();
    assert_eq!(visible_lines(dir.path()), ["id,t", "0,\"text, 0\"", "id,t,more", "1,1,1"]);
}

#[tokio::test]
async fn the_row_kind_needs_a_name_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let schema = numbers_schema("d.t");
    let clashing = sink(dir.path(), &[("row-kind", "always"), ("row-kind.column", "t")]);
    assert_eq!(clashing.prepare_table(&schema, true).await.err().unwrap().code(), Code::TargetIncompatible);
    assert_eq!(clashing.check(std::slice::from_ref(&schema)).await[1].severity, Severity::Error);
    let auto = sink(dir.path(), &[("row-kind.column", "t")]);
    let letters = Arc::new(Letters::default());
    let mut writer = writer(&*auto, "job", 0, &letters).await;
    assert_eq!(writer.write(inserts(&schema, 0..1)).await.err().unwrap().code(), Code::TargetIncompatible);
    writer.begin_split(&append_split()).await.unwrap();
    writer.write(inserts(&schema, 0..1)).await.unwrap();
}

#[tokio::test]
async fn many_tables_share_few_handles() {
    let dir = tempfile::tempdir().unwrap();
    let sink = sink(dir.path(), &[]);
    let letters = Arc::new(Letters::default());
    let mut writer = writer(&*sink, "job", 0, &letters).await;
    writer.begin_split(&append_split()).await.unwrap();
    let schemas: Vec<_> = (0..300).map(|n| numbers_schema(&format!("d.t{n}"))).collect();
    for round in 0..3 {
        for schema in &schemas {
            writer.write(inserts(schema, round..round + 1)).await.unwrap();
        }
    }
    let inside = |target: std::path::PathBuf| target.starts_with(dir.path());
    let handles = fs::read_dir("/proc/self/fd").unwrap();
    let held =
        handles.filter_map(|h| fs::read_link(h.unwrap().path()).ok()).filter(|t| inside(t.clone())).count();
    assert!((100..140).contains(&held), "{held}");
    let state = writer.finish(1).await.unwrap();
    sink.publish(&[state]).await.unwrap();
    assert_eq!((names(dir.path()).0.len(), visible_lines(dir.path()).len()), (300, 900));
}
