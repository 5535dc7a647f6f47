//! Tables: made as planned, fitting from then on, and changed once however often they are told to change.

use std::sync::Arc;

use canalis_connector_api::Severity;
use canalis_types::{
    Code, Column, ColumnDefault, ColumnPlace, LogicalType, SchemaChange, SchemaChangeKind, TableSchema,
};

use super::{
    lab::{Lab, Start, all, databases},
    model::{batch, insert, keyed, keyless, point, position},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_made_as_planned_and_fits_the_second_time() {
    for lab in all().await {
        let name = lab.name;
        for (schema, snapshot) in [
            (keyed(&lab, "streamed"), false),
            (keyed(&lab, "copied"), true),
            (keyless(&lab, "streamed_keyless"), false),
            (keyless(&lab, "copied_keyless"), true),
        ] {
            let id = &schema.id;
            let sink = lab.sink();
            let findings = sink.check(std::slice::from_ref(&schema)).await;
            assert!(findings.iter().all(|f| f.severity != Severity::Error), "{name}: {findings:?}");
            lab.open(&*sink, 1, Start::Fresh).await;

            let planned = sink.plan_table(&schema).await.unwrap();
            assert_eq!(planned, sink.plan_table(&schema).await.unwrap(), "{name}: a plan changes nothing");
            let made = sink.prepare_table(&schema, snapshot).await.unwrap();
            assert_eq!((&planned.table, &made.table), (id, id), "{name}");
            assert_eq!(planned.statements.is_empty(), made.statements.is_empty(), "{name}: {id}");
            if !snapshot {
                assert_eq!(planned.statements, made.statements, "{name}: {id}");
            }

            for sink in [sink, lab.sink()] {
                assert_eq!(sink.plan_table(&schema).await.unwrap().statements, [""; 0], "{name}: {id}");
            }
            let again = lab.sink();
            lab.open(&*again, 1, Start::Again).await;
            for _ in 0..2 {
                let fits = again.prepare_table(&schema, snapshot).await.unwrap();
                assert_eq!(fits.statements, [""; 0], "{name}: {id}");
            }
            let findings = again.check(std::slice::from_ref(&schema)).await;
            assert!(findings.iter().all(|f| f.severity != Severity::Error), "{name}: {findings:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_lacks_a_column_is_refused_by_name_before_rows_move() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyed(&lab, "t");
        lab.run("t", "CREATE TABLE {t} (id INT PRIMARY KEY)").await;
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        for error in [
            sink.plan_table(&schema).await.unwrap_err(),
            sink.prepare_table(&schema, false).await.unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::TargetIncompatible, "{name}: {error}");
            assert!(error.message().contains("`v`"), "{name}: {error}");
        }
        let findings = sink.check(std::slice::from_ref(&schema)).await;
        assert!(findings.iter().any(|f| f.severity == Severity::Error), "{name}: {findings:?}");
    }
}

/// A column with a default, and one that may be NULL, added behind `id` and at the end.
fn two_more_columns(before: &Arc<TableSchema>) -> SchemaChange {
    let mut number = Column::new("n", LogicalType::Int32, false);
    number.default = Some(ColumnDefault::Literal("42".into()));
    let text = Column::new("w", LogicalType::Varchar { length: 10 }, true);
    let mut after = TableSchema::clone(before);
    after.columns.insert(1, number.clone());
    after.columns.push(text.clone());
    after.version += 1;
    SchemaChange {
        kind: SchemaChangeKind::AddColumns(vec![
            (number, ColumnPlace::After("id".into())),
            (text, ColumnPlace::Last),
        ]),
        before: Some(before.clone()),
        after: Arc::new(after),
        statement: "ALTER TABLE t ADD n INT NOT NULL DEFAULT 42 AFTER id, ADD w VARCHAR(10)".into(),
        position: position(2),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn added_columns_are_carried_out_once() {
    for lab in databases().await {
        let name = lab.name;
        let before = keyed(&lab, "t");
        let sink = lab.sink();
        assert!(sink.capabilities().add_column);
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&before, false).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.write(batch(&before, &insert(&["1", "a"]))).await.unwrap();
        writer.commit(&point(1)).await.unwrap();

        let change = two_more_columns(&before);
        for _ in 0..2 {
            sink.apply_schema_change(&change).await.unwrap();
        }
        writer.schema_changed(&change.after).await.unwrap();
        writer.write(batch(&change.after, &insert(&["2", "7", "b", "x"]))).await.unwrap();
        writer.commit(&point(3)).await.unwrap();
        assert_eq!(in_source_order(&lab).await, ["1|42|a|NULL", "2|7|b|x"], "{name}");

        // After a crash the change is told again, to a sink that has not seen it.
        drop(writer);
        let again = lab.sink();
        lab.open(&*again, 1, Start::Again).await;
        again.prepare_table(&before, false).await.unwrap();
        again.apply_schema_change(&change).await.unwrap();
        let fits = again.prepare_table(&change.after, false).await.unwrap();
        assert_eq!(fits.statements, [""; 0], "{name}");
        let mut writer = lab.writer(&*again, 0, 1).await;
        writer.write(batch(&change.after, &insert(&["3", "8", "c", "NULL"]))).await.unwrap();
        writer.commit(&point(4)).await.unwrap();
        assert_eq!(in_source_order(&lab).await, ["1|42|a|NULL", "2|7|b|x", "3|8|c|NULL"], "{name}");
    }
}

/// Rows with the columns in the order of the source; where the new column stands at the target is its own affair.
async fn in_source_order(lab: &Lab) -> Vec<String> {
    lab.run("ordered", "DROP VIEW IF EXISTS {t}").await;
    let of = lab.sql_name("t");
    lab.run("ordered", &format!("CREATE VIEW {{t}} AS SELECT id, n, v, w FROM {of}")).await;
    lab.rows("ordered").await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_changes_are_refused_with_their_statement() {
    for lab in databases().await {
        let name = lab.name;
        let before = keyed(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        sink.prepare_table(&before, false).await.unwrap();
        let change = SchemaChange {
            kind: SchemaChangeKind::Other("drop.column".into()),
            statement: "ALTER TABLE t DROP COLUMN v".into(),
            ..two_more_columns(&before)
        };
        let error = sink.apply_schema_change(&change).await.unwrap_err();
        assert_eq!(error.code(), Code::SchemaChangeRefused, "{name}: {error}");
        assert!(error.message().contains("DROP COLUMN v"), "{name}: {error}");
    }
}

/// No capability promises this. It is done wholly, or refused as what it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_appears_in_the_stream_is_made_once_or_refused() {
    for lab in databases().await {
        let name = lab.name;
        let schema = keyed(&lab, "t");
        let sink = lab.sink();
        lab.open(&*sink, 1, Start::Fresh).await;
        let change = SchemaChange {
            kind: SchemaChangeKind::CreateTable,
            before: None,
            after: schema.clone(),
            statement: "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))".into(),
            position: position(1),
        };
        if let Err(error) = sink.apply_schema_change(&change).await {
            assert_eq!(error.code(), Code::SchemaChangeRefused, "{name}: {error}");
            assert!(error.message().contains(&change.statement), "{name}: {error}");
            continue;
        }
        sink.apply_schema_change(&change).await.unwrap();
        let mut writer = lab.writer(&*sink, 0, 1).await;
        writer.write(batch(&schema, &insert(&["1", "a"]))).await.unwrap();
        writer.commit(&point(2)).await.unwrap();
        assert_eq!(lab.rows("t").await, ["1|a"], "{name}");
    }
}
