//! Tables are made, joined, checked and changed.

use std::sync::Arc;

use canalis_connector_api::Severity;
use canalis_types::{
    Code, Column, ColumnDefault, ColumnPlace, LogicalType, RowKind, SchemaChange, SchemaChangeKind, TableId,
    TableSchema,
};

use crate::lab::{Lab, at, batch, pair_batch, pairs, position, table};

#[tokio::test]
async fn sk_03_reserved_words_and_odd_names() {
    let Some(lab) = Lab::new().await else { return };
    let names = ["group", "key", "a b", "列", "x\"y", "a`b"];
    let columns: Vec<(&str, LogicalType, bool)> =
        names.iter().map(|n| (*n, LogicalType::Varchar { length: 10 }, *n != "group")).collect();
    let schema = table("order", &columns, &["group", "x\"y"]);
    let sink = lab.open(&[], &[]).await;
    let plan = sink.plan_table(&schema).await.unwrap();
    assert!(plan.statements.iter().any(|s| s.contains("\"x\"\"y\"")));
    sink.prepare_table(&schema, false).await.unwrap();
    assert!(sink.plan_table(&schema).await.unwrap().statements.is_empty());
    let mut writer = lab.writer(&sink).await;
    let row: Vec<Option<&[u8]>> = vec![Some(b"g"), Some(b"k"), None, Some(b"l"), Some(b"q"), Some(b"t")];
    writer.write(batch(&schema, &[(RowKind::Insert, &row)])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    writer
        .write(batch(&schema, &[(RowKind::UpdateBefore, &row), (RowKind::UpdateAfter, &row)]))
        .await
        .unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT * FROM app.\"order\"").await, ["g|k|NULL|l|q|t"]);
    writer.write(batch(&schema, &[(RowKind::Delete, &row)])).await.unwrap();
    writer.commit(&at(3)).await.unwrap();
    assert!(lab.lines("SELECT * FROM app.\"order\"").await.is_empty());
    assert!(sink.check(std::slice::from_ref(&schema)).await.iter().all(|f| f.severity != Severity::Error));
}

#[tokio::test]
async fn sk_09_long_names_are_refused_before_data_moves() {
    let Some(lab) = Lab::new().await else { return };
    let sink = lab.open(&[], &[]).await;
    for last in ["aaaaa", "bbbbb"] {
        let schema = pairs(&format!("{}{last}", "t".repeat(65)));
        let error = sink.prepare_table(&schema, false).await.unwrap_err();
        assert_eq!(error.code(), Code::TargetIncompatible);
        let findings = sink.check(std::slice::from_ref(&schema)).await;
        assert!(
            findings.iter().any(|f| f.severity == Severity::Error && f.message.contains("70 bytes")),
            "{findings:?}"
        );
    }
    let schema = table(
        "t",
        &[("id", LogicalType::Int32, false), (&"列".repeat(22), LogicalType::Text, true)],
        &["id"],
    );
    assert!(sink.prepare_table(&schema, false).await.is_err());
    // 63 bytes are held.
    sink.prepare_table(&pairs(&"列".repeat(21)), false).await.unwrap();
}

#[tokio::test]
async fn created_tables_carry_types_keys_and_comments() {
    let Some(lab) = Lab::new().await else { return };
    let mut schema = TableSchema::clone(&table(
        "t",
        &[("id", LogicalType::UInt32, false), ("name", LogicalType::Varchar { length: 5 }, false)],
        &["id"],
    ));
    schema.comment = Some("it's a table".into());
    schema.columns[1].comment = Some("naïve".into());
    schema.columns[1].default = Some(ColumnDefault::Literal("x".into()));
    let sink = lab.open(&[("schema", "lake")], &[]).await;
    let plan = sink.prepare_table(&Arc::new(schema), false).await.unwrap();
    assert!(plan.notes.iter().any(|n| n.contains("default")), "{:?}", plan.notes);
    let columns = lab
        .lines(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull, col_description(attrelid, attnum), \
             obj_description(attrelid) FROM pg_attribute WHERE attrelid = 'lake.t'::regclass AND attnum > 0",
        )
        .await;
    assert_eq!(columns, ["id|bigint|t|NULL|it's a table", "name|character varying(5)|t|naïve|it's a table"]);
}

#[tokio::test]
async fn two_tables_must_not_meet_under_one_schema() {
    let Some(lab) = Lab::new().await else { return };
    let sink = lab.open(&[("schema", "lake")], &[]).await;
    let one = pairs("t");
    let mut other = TableSchema::clone(&one);
    other.id = TableId::new("other", "t");
    sink.prepare_table(&one, false).await.unwrap();
    let error = sink.prepare_table(&Arc::new(other), false).await.unwrap_err();
    assert!(error.message().contains("app.t") && error.message().contains("other.t"), "{error}");
}

#[tokio::test]
async fn existing_tables_that_do_not_fit_are_refused_with_every_reason() {
    let Some(lab) = Lab::new().await else { return };
    let columns = [
        ("id", LogicalType::Int32, false),
        ("missing", LogicalType::Text, true),
        ("amount", LogicalType::Decimal { precision: 10, scale: 3 }, true),
        ("at", LogicalType::Timestamp { precision: 6 }, true),
    ];
    let schema = table("t", &columns, &["id"]);
    lab.run(
        "CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, amount numeric(10,2), at timestamp(0), \
         more int NOT NULL)",
    )
    .await;
    let sink = lab.open(&[], &[]).await;
    let error = sink.prepare_table(&schema, false).await.unwrap_err();
    assert_eq!(error.code(), Code::TargetIncompatible);
    for name in ["missing", "amount", "at", "more"] {
        assert!(error.message().contains(&format!("`{name}`")), "{name}: {error}");
    }
    let findings = sink.check(std::slice::from_ref(&schema)).await;
    assert!(
        findings.iter().any(|f| f.severity == Severity::Error && f.subject.contains("app.t")),
        "{findings:?}"
    );
}

#[tokio::test]
async fn columns_of_the_target_alone_are_left_in_peace() {
    let Some(lab) = Lab::new().await else { return };
    let schema = pairs("t");
    lab.run(
        "CREATE SCHEMA app; CREATE TABLE app.t (extra int DEFAULT 7, id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         v text, up text GENERATED ALWAYS AS (upper(v)) STORED)",
    )
    .await;
    let sink = lab.open(&[], &[&schema]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&schema, &[(RowKind::Insert, "5", "a")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    lab.run("UPDATE app.t SET extra = 8").await;
    writer.write(pair_batch(&schema, &[(RowKind::Insert, "5", "b")])).await.unwrap();
    writer.commit(&at(2)).await.unwrap();
    assert_eq!(lab.lines("SELECT extra, id, v, up FROM app.t").await, ["8|5|b|B"]);
}

#[tokio::test]
async fn added_columns_are_carried_out_once() {
    let Some(lab) = Lab::new().await else { return };
    let before = pairs("t");
    let sink = lab.open(&[], &[&before]).await;
    let mut writer = lab.writer(&sink).await;
    writer.write(pair_batch(&before, &[(RowKind::Insert, "1", "a")])).await.unwrap();
    writer.commit(&at(1)).await.unwrap();
    let mut after = TableSchema::clone(&before);
    let mut number = Column::new("n", LogicalType::UInt32, false);
    number.default = Some(ColumnDefault::Literal("42".into()));
    let place = ColumnPlace::After("id".into());
    after.columns.insert(1, number.clone());
    after.version += 1;
    let after = Arc::new(after);
    let change = SchemaChange {
        kind: SchemaChangeKind::AddColumns(vec![(number, place)]),
        before: Some(before.clone()),
        after: after.clone(),
        statement: "ALTER TABLE t ADD COLUMN n INT(6) ZEROFILL NOT NULL DEFAULT 42 AFTER id".into(),
        position: position(2),
    };
    for _ in 0..2 {
        sink.apply_schema_change(&change).await.unwrap();
    }
    writer.schema_changed(&after).await.unwrap();
    let row: Vec<Option<&[u8]>> = vec![Some(b"2"), Some(b"4294967295"), Some(b"b")];
    writer.write(batch(&after, &[(RowKind::Insert, &row)])).await.unwrap();
    writer.commit(&at(3)).await.unwrap();
    assert_eq!(lab.lines("SELECT id, v, n FROM app.t ORDER BY id").await, ["1|a|42", "2|b|4294967295"]);

    let other = SchemaChange { kind: SchemaChangeKind::Other("drop.column".into()), ..change };
    assert_eq!(sink.apply_schema_change(&other).await.unwrap_err().code(), Code::SchemaChangeRefused);
}

#[tokio::test]
async fn check_tells_what_a_weak_role_lacks() {
    let Some(lab) = Lab::new().await else { return };
    let role = format!("weak_{}", lab.database);
    lab.run(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'p'; REVOKE ALL ON DATABASE \"{0}\" FROM PUBLIC; \
         GRANT CONNECT ON DATABASE \"{0}\" TO {role}; CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, v text)",
        lab.database
    ))
    .await;
    let sink = lab.sink(&[("username", &role), ("password", "p")]);
    let findings = sink.check(&[pairs("t"), pairs("u")]).await;
    let errors: Vec<&str> = findings.iter().filter_map(|f| f.remedy.as_deref()).collect();
    for right in ["GRANT TEMPORARY ON DATABASE", "GRANT CREATE"] {
        assert!(errors.iter().any(|e| e.starts_with(right)), "{right}: {findings:?}");
    }
    assert!(findings.iter().filter(|f| f.severity == Severity::Error).count() >= 3, "{findings:?}");
}
