//! Tables are made, checked, completed and changed.

use std::sync::Arc;

use canalis_connector_api::Severity;
use canalis_types::{
    Code, Column, ColumnDefault, ColumnPlace, Index, LogicalType, NativeType, RowKind, SchemaChange,
    SchemaChangeKind, TableId, TableSchema,
};

use super::support::{Target, batch, point, position, row, servers, split, split_point};

fn native(name: &str, ty: LogicalType, sql: &str, auto_increment: bool) -> Column {
    let mut column = Column::new(name, ty, false);
    column.native = Some(NativeType {
        dialect: "mysql".into(),
        sql: sql.into(),
        charset: None,
        collation: None,
        auto_increment,
        generated: None,
    });
    column
}

fn sbtest(id: TableId) -> Arc<TableSchema> {
    let mut c = native("c", LogicalType::Char { length: 120 }, "char(120)", false);
    if let Some(native) = &mut c.native {
        native.charset = Some("utf8mb4".into());
        native.collation = Some("utf8mb4_general_ci".into());
    }
    c.default = Some(ColumnDefault::Literal(String::new()));
    let columns = vec![
        native("id", LogicalType::Int32, "int(11)", true),
        native("k", LogicalType::Int32, "int(11)", false),
        c,
    ];
    let mut schema = TableSchema::new(id, columns, vec!["id".into()]);
    schema.comment = Some("it's a table".into());
    schema.indexes = vec![
        Index {
            name: "k_1".into(),
            unique: false,
            definition: "KEY `k_1` (`k`)".into(),
            columns: vec!["k".into()],
        },
        Index {
            name: "u".into(),
            unique: true,
            definition: "UNIQUE KEY `u` (`c`,`k`)".into(),
            columns: vec!["c".into(), "k".into()],
        },
    ];
    Arc::new(schema)
}

const INDEXES: &str = "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{db}' \
                       AND TABLE_NAME = 't' GROUP BY INDEX_NAME ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME";

#[tokio::test(flavor = "multi_thread")]
async fn secondary_indexes_are_built_after_the_snapshot() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = sbtest(target.id("t"));
        let plan = target.sink.plan_table(&schema).await.unwrap();
        assert_eq!(plan.statements.len(), 2, "{plan:?}");
        target.sink.prepare_table(&schema, true).await.unwrap();
        assert_eq!(target.query(INDEXES).await, ["PRIMARY"]);
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        let rows = [row(Insert, &["0", "1", "a"]), row(Insert, &["2", "1", "b"])];
        writer.write(batch(&schema, &rows)).await.unwrap();
        writer.commit(&split_point("s")).await.unwrap();
        for _ in 0..2 {
            target.sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
            assert_eq!(target.query(INDEXES).await, ["PRIMARY", "k_1", "u"]);
        }
        // From now on unique values are known to the writer.
        let changes = [
            row(UpdateBefore, &["0", "1", "a"]),
            row(UpdateAfter, &["0", "2", "x"]),
            row(UpdateBefore, &["2", "1", "b"]),
            row(UpdateAfter, &["2", "1", "a"]),
        ];
        writer.write(batch(&schema, &changes)).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        assert_eq!(target.query("SELECT * FROM `{db}`.t ORDER BY id").await, ["0|2|x", "2|1|a"]);
        let create = target.query("SHOW CREATE TABLE `{db}`.t").await.concat();
        assert!(create.contains("AUTO_INCREMENT") && create.contains("it''s a table"), "{create}");
        // A restart before the end of the snapshot goes on with the same table, without building early.
        target.run("ALTER TABLE `{db}`.t DROP KEY k_1").await;
        target.open("job", 1, false).await;
        target.sink.prepare_table(&schema, true).await.unwrap();
        assert_eq!(target.query(INDEXES).await, ["PRIMARY", "u"]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        assert_eq!(target.query(INDEXES).await, ["PRIMARY", "k_1", "u"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_indexes_wait_for_the_stream_to_catch_up() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = sbtest(target.id("t"));
        target.sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        // The unique value moved from row 1 to row 2 between two chunks.
        let rows = [row(Insert, &["1", "1", "a"]), row(Insert, &["2", "1", "a"])];
        writer.write(batch(&schema, &rows)).await.unwrap();
        writer.commit(&split_point("s")).await.unwrap();
        target.sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
        assert_eq!(target.query(INDEXES).await, ["PRIMARY", "k_1"]);
        let changes = [row(UpdateBefore, &["1", "1", "a"]), row(UpdateAfter, &["1", "1", "z"])];
        writer.write(batch(&schema, &changes)).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        target.sink.publish(&[]).await.unwrap();
        assert_eq!(target.query(INDEXES).await, ["PRIMARY", "k_1", "u"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_the_user_are_not_altered() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        target.run("CREATE TABLE `{db}`.t (id INT PRIMARY KEY, k INT, c CHAR(120))").await;
        let schema = sbtest(target.id("t"));
        let plan = target.sink.prepare_table(&schema, false).await.unwrap();
        assert_eq!(plan.statements, Vec::<String>::new());
        target.sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
        assert_eq!(target.query(INDEXES).await, ["PRIMARY"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_there_are_overwritten_by_key() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        target.run("CREATE TABLE `{db}`.t (id INT PRIMARY KEY, v INT)").await;
        target.run("INSERT INTO `{db}`.t VALUES (1, 1), (99999, 1)").await;
        let schema = target.table("t", &[("id", LogicalType::Int32), ("v", LogicalType::Int32)], &["id"]);
        target.sink.prepare_table(&schema, true).await.unwrap();
        let ids: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        let rows: Vec<_> = ids.iter().map(|id| row(RowKind::Insert, &[id, "2"])).collect();
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        writer.write(batch(&schema, &rows)).await.unwrap();
        writer.commit(&split_point("s")).await.unwrap();
        assert_eq!(target.query("SELECT COUNT(*), SUM(v = 2) FROM `{db}`.t").await, ["10001|10000"]);
        assert_eq!(target.letters.reasons(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_01_tables_that_do_not_fit_are_refused_and_narrow_ones_noted() {
    use LogicalType::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let columns: &[(&str, LogicalType)] = &[("id", Int32), ("v", Int32)];
        for (create, expect) in [
            ("id INT PRIMARY KEY, v TINYINT", Ok("can overflow")),
            ("ID INT PRIMARY KEY, V INT, extra INT NOT NULL DEFAULT 1", Ok("")),
            ("id INT PRIMARY KEY", Err("column `v` is missing")),
            ("id INT PRIMARY KEY, v DATE", Err("cannot hold INT")),
            ("id INT, v INT", Err("neither a primary key nor a unique index")),
            ("id INT, v INT, PRIMARY KEY (id, v)", Err("neither a primary key nor a unique index")),
            ("id INT PRIMARY KEY, v INT, extra INT NOT NULL", Err("has no default")),
            ("id INT PRIMARY KEY, v INT) ENGINE=MyISAM; --", Err("has no transactions")),
        ] {
            target.run("DROP TABLE IF EXISTS `{db}`.t").await;
            target.run(&format!("CREATE TABLE `{{db}}`.t ({create})").replace("--)", "")).await;
            let schema = target.table("t", columns, &["id"]);
            match (target.sink.prepare_table(&schema, true).await, expect) {
                (Ok(plan), Ok(note)) => {
                    assert!(
                        note.is_empty() || plan.notes.iter().any(|n| n.contains(note)),
                        "{create}: {plan:?}"
                    );
                }
                (Err(error), Err(part)) => {
                    assert_eq!(error.code(), Code::TargetIncompatible, "{create}");
                    assert!(error.message().contains(part), "{create}: {error}");
                }
                (got, _) => panic!("{create}: {got:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_03_odd_names_are_written_altered_and_checked() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let names = ["group", "key", "a b", "列", "x\"y", "a`b"];
        let columns: Vec<(&str, LogicalType)> = names.iter().map(|n| (*n, LogicalType::Int32)).collect();
        let schema = target.table("order", &columns, &["group"]);
        target.apply(&schema, &[row(Insert, &["1", "2", "3", "4", "5", "6"])]).await;
        target
            .apply(
                &schema,
                &[row(Insert, &["2", "2", "3", "4", "5", "6"]), row(Delete, &["1", "2", "3", "4", "5", "6"])],
            )
            .await;
        let mut after = (*schema).clone();
        let added = Column::new("wei`rd '", LogicalType::Varchar { length: 5 }, true);
        after.columns.push(added.clone());
        let change = SchemaChange {
            kind: SchemaChangeKind::AddColumns(vec![(added, ColumnPlace::Last)]),
            before: Some(schema.clone()),
            after: Arc::new(after),
            statement: "ALTER".into(),
            position: position(1),
        };
        target.sink.apply_schema_change(&change).await.unwrap();
        target.apply(&change.after, &[row(Insert, &["3", "2", "3", "4", "5", "6", "x"])]).await;
        assert_eq!(
            target.query("SELECT * FROM `{db}`.`order` ORDER BY `group`").await,
            ["2|2|3|4|5|6|NULL", "3|2|3|4|5|6|x"]
        );
        let findings = target.sink.check(std::slice::from_ref(&change.after)).await;
        assert!(findings.iter().all(|f| f.severity == Severity::Ok), "{findings:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_09_long_names_are_refused_before_anything_is_made() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let stem = "列".repeat(65);
        let schema = target.table(&format!("{stem}1"), &[("id", LogicalType::Int32)], &["id"]);
        let error = target.sink.prepare_table(&schema, true).await.unwrap_err();
        assert_eq!(error.code(), Code::TargetIncompatible);
        let findings = target.sink.check(&[schema]).await;
        assert!(findings.iter().any(|f| f.severity == Severity::Error), "{findings:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn added_columns_stand_in_their_place_and_are_not_added_twice() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = sbtest(target.id("t"));
        target.sink.prepare_table(&schema, false).await.unwrap();
        let mut added = native("n", LogicalType::Int32, "int(11)", false);
        added.default = Some(ColumnDefault::Literal("5".into()));
        let mut after = (*schema).clone();
        after.columns.insert(1, added.clone());
        let change = SchemaChange {
            kind: SchemaChangeKind::AddColumns(vec![(added, ColumnPlace::After("id".into()))]),
            before: Some(schema.clone()),
            after: Arc::new(after),
            statement: "ALTER TABLE t ADD n INT NOT NULL DEFAULT 5 AFTER id".into(),
            position: position(1),
        };
        for _ in 0..2 {
            target.sink.apply_schema_change(&change).await.unwrap();
        }
        let columns = "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS \
                       WHERE TABLE_SCHEMA = '{db}' AND TABLE_NAME = 't'";
        assert_eq!(target.query(columns).await, ["id,n,k,c"]);
        let refused = SchemaChange { kind: SchemaChangeKind::Other("drop.table".into()), ..change };
        let error = target.sink.apply_schema_change(&refused).await.unwrap_err();
        assert_eq!(error.code(), Code::SchemaChangeRefused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_missing_rights() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let account = format!("reader_{}", server.port);
        for statement in [
            format!("CREATE USER IF NOT EXISTS '{account}'@'127.0.0.1' IDENTIFIED BY 'secret'"),
            format!("GRANT SELECT ON `{{db}}`.* TO '{account}'@'127.0.0.1'"),
        ] {
            target.run(&statement).await;
        }
        let extra = [("username", account.as_str()), ("password", "secret")];
        let sink = super::support::sink_on(server, &target.database, &extra);
        let schema = target.table("t", &[("id", LogicalType::Int32)], &["id"]);
        let findings = sink.check(std::slice::from_ref(&schema)).await;
        let rights = findings.iter().find(|f| f.severity == Severity::Error).unwrap();
        assert!(rights.remedy.as_ref().unwrap().contains("GRANT CREATE"), "{rights:?}");
        let extra = [("username", "nobody"), ("password", "wrong")];
        let findings = super::support::sink_on(server, &target.database, &extra).check(&[schema]).await;
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Error);
    }
}
