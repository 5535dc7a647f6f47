//! Tables are made, joined, checked and changed.

use std::sync::Arc;

use canalis_connector_api::{Severity, SinkContext};
use canalis_types::{
    Code, Column, ColumnDefault, ColumnPlace, LogicalType, RowKind, SchemaChange, SchemaChangeKind, TableId,
    TableSchema,
};

use crate::lab::{JOB, Lab, Start, at, batch, pair_batch, pairs, position, start, table};

#[tokio::test]
async fn sk_03_reserved_words_and_odd_names() {
    let lab = Lab::new();
    let names = ["group", "key", "a b", "列", "x\"y", "a`b"];
    let columns: Vec<(&str, LogicalType, bool)> =
        names.iter().map(|n| (*n, LogicalType::Varchar { length: 10 }, *n != "group")).collect();
    let schema = table("order", &columns, &["group", "x\"y"]);
    let sink = lab.open(&[]).await;
    assert_eq!(sink.plan_table(&schema).await.unwrap().statements.len(), 1);
    sink.prepare_table(&schema, false).await.unwrap();
    assert!(sink.plan_table(&schema).await.unwrap().statements.is_empty());
    let mut writer = lab.writer(&sink).await;
    let row: Vec<Option<&[u8]>> = vec![Some(b"g"), Some(b"k"), None, Some(b"l"), Some(b"q"), Some(b"t")];
    writer.write(batch(&schema, &[(RowKind::Insert, &row)])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    assert_eq!(lab.lines("SELECT * FROM \"order\""), ["g|k|NULL|l|q|t"]);
    writer.write(batch(&schema, &[(RowKind::Delete, &row)])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert!(lab.lines("SELECT * FROM \"order\"").is_empty());
}

#[tokio::test]
async fn two_tables_must_not_meet_in_one() {
    let lab = Lab::new();
    let sink = lab.open(&[&pairs("t")]).await;
    for (schema_part, name) in [("other", "t"), ("app", "T")] {
        let mut other = TableSchema::clone(&pairs(name));
        other.id = TableId::new(schema_part, name);
        let error = sink.prepare_table(&Arc::new(other), false).await.unwrap_err();
        assert!(error.message().contains("app.t"), "{error}");
    }
    // The same table again is no collision.
    sink.prepare_table(&pairs("t"), false).await.unwrap();
}

#[tokio::test]
async fn existing_tables_that_do_not_fit_are_refused_with_every_reason() {
    let lab = Lab::new();
    let columns = [
        ("id", LogicalType::Int32, false),
        ("missing", LogicalType::Text, true),
        ("amount", LogicalType::Decimal { precision: 10, scale: 3 }, true),
    ];
    let schema = table("t", &columns, &["id"]);
    lab.run("CREATE TABLE t (id INTEGER PRIMARY KEY, amount decimal(10,3), more INTEGER NOT NULL)");
    let sink = lab.open(&[]).await;
    let error = sink.prepare_table(&schema, false).await.unwrap_err();
    assert_eq!(error.code(), Code::TargetIncompatible);
    for name in ["missing", "amount", "more"] {
        assert!(error.message().contains(&format!("`{name}`")), "{name}: {error}");
    }
    let findings = sink.check(std::slice::from_ref(&schema)).await;
    assert!(findings.iter().any(|f| f.severity == Severity::Error), "{findings:?}");
}

#[tokio::test]
async fn added_columns_are_carried_out_once() {
    let lab = Lab::new();
    let before = pairs("t");
    let sink = lab.open(&[&before]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&before, &[(RowKind::Insert, "1", "a")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let mut after = TableSchema::clone(&before);
    let mut number = Column::new("n", LogicalType::UInt32, false);
    number.default = Some(ColumnDefault::Literal("42".into()));
    after.columns.insert(1, number.clone());
    let after = Arc::new(after);
    let change = SchemaChange {
        kind: SchemaChangeKind::AddColumns(vec![(number, ColumnPlace::After("id".into()))]),
        before: Some(before),
        after: after.clone(),
        statement: "ALTER TABLE t ADD COLUMN n INT UNSIGNED NOT NULL DEFAULT 42 AFTER id".into(),
        position: position(2),
    };
    for _ in 0..2 {
        sink.apply_schema_change(&change).await.unwrap();
    }
    writer.schema_changed(&after).await.unwrap();
    let row: Vec<Option<&[u8]>> = vec![Some(b"2"), Some(b"4294967295"), Some(b"b")];
    writer.write(batch(&after, &[(RowKind::Insert, &row)])).await.unwrap();
    writer.commit(&at(3)).await.unwrap();
    assert_eq!(lab.lines("SELECT id, v, n FROM t ORDER BY id"), ["1|a|42", "2|b|4294967295"]);
    let other = SchemaChange { kind: SchemaChangeKind::Other("drop.column".into()), ..change };
    assert_eq!(sink.apply_schema_change(&other).await.unwrap_err().code(), Code::SchemaChangeRefused);
}

#[tokio::test]
async fn check_and_plan_leave_no_file_behind() {
    let lab = Lab::new();
    let sink = lab.sink();
    let findings = sink.check(&[pairs("t"), pairs("sqlite_t")]).await;
    assert_eq!(findings.iter().filter(|f| f.severity == Severity::Error).count(), 1, "{findings:?}");
    assert_eq!(sink.plan_table(&pairs("t")).await.unwrap().statements.len(), 1);
    assert!(!lab.path().exists());
    std::fs::write(lab.path(), "this is not a database, but it is long enough to be looked at by SQLite")
        .unwrap();
    let findings = sink.check(&[pairs("t")]).await;
    assert_eq!(findings[0].severity, Severity::Error);
}

#[tokio::test]
async fn missing_directories_are_created_when_rows_are_to_come() {
    let lab = Lab::new();
    let path = lab.path().with_file_name("a").join("b").join("target.db");
    let sink = lab.sink_at(&path);
    let findings = sink.check(&[pairs("t")]).await;
    assert!(findings.iter().all(|f| f.severity == Severity::Ok), "{findings:?}");
    sink.plan_table(&pairs("t")).await.unwrap();
    assert!(!lab.path().with_file_name("a").exists());
    start(&sink, Start::Fresh).await;
    sink.prepare_table(&pairs("t"), true).await.unwrap();
    assert!(path.is_file());
}

#[tokio::test]
async fn a_way_that_no_directory_can_be_made_on_is_an_error() {
    let lab = Lab::new();
    std::fs::write(lab.path(), "a file").unwrap();
    let sink = lab.sink_at(&lab.path().join("b").join("target.db"));
    let findings = sink.check(&[]).await;
    assert_eq!(findings[0].severity, Severity::Error, "{findings:?}");
    let ctx = SinkContext { job: JOB.into(), writers: 1, fresh: true, tables: Vec::new() };
    assert_eq!(sink.open(&ctx).await.unwrap_err().code(), Code::LocalIo);
}
