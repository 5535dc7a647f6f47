//! Changes of tables with a key.

use arrow_array::BooleanArray;
use canalis_types::{LogicalType, RowKind};

use mysql_async::prelude::Queryable;

use super::support::{Target, batch, point, row, servers, split, split_point};

const ID_V: &[(&str, LogicalType)] =
    &[("id", LogicalType::Int32), ("v", LogicalType::Varchar { length: 20 })];

#[tokio::test(flavor = "multi_thread")]
async fn tx_05_many_changes_of_one_row_end_in_the_last() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", ID_V, &["id"]);
        let changes = [
            row(Insert, &["1", "a"]),
            row(UpdateBefore, &["1", "a"]),
            row(UpdateAfter, &["1", "b"]),
            row(Delete, &["1", "b"]),
            row(Insert, &["1", "c"]),
            row(UpdateBefore, &["1", "c"]),
            row(UpdateAfter, &["1", "d"]),
        ];
        target.apply(&schema, &changes).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.t").await, ["1|d"]);
        let mut ending = changes.to_vec();
        ending.push(row(Delete, &["1", "d"]));
        target.apply(&schema, &ending).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.t").await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_02_a_changed_key_moves_the_row() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", ID_V, &["id"]);
        target.apply(&schema, &[row(Insert, &["6", "x"]), row(Insert, &["8", "y"])]).await;
        target.apply(&schema, &[row(UpdateBefore, &["6", "x"]), row(UpdateAfter, &["7", "x"])]).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.t ORDER BY id").await, ["7|x", "8|y"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_06_binary_and_composite_keys_are_found() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let columns = &[
            ("b", LogicalType::Binary { length: 4 }),
            ("f", LogicalType::Float32),
            ("d", LogicalType::Decimal { precision: 20, scale: 3 }),
            ("v", LogicalType::Int32),
        ];
        let schema = target.table("t", columns, &["b", "f", "d"]);
        let keys: [&[u8]; 4] =
            [&[0, 0, 0, 0], &[0x7f, 0xff, 0, 0], &[0x80, 0, 0, 0x27], &[0xff, 0x5c, 0xff, 0xff]];
        let rows = |kind| {
            keys.iter()
                .map(move |key| {
                    (
                        kind,
                        vec![
                            Some(*key),
                            Some(&b"0.1"[..]),
                            Some(&b"12345678901234567.891"[..]),
                            Some(&b"1"[..]),
                        ],
                    )
                })
                .collect::<Vec<_>>()
        };
        target.apply(&schema, &rows(Insert)).await;
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.t").await, ["4"]);
        target.apply(&schema, &rows(Insert)[..2]).await;
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.t").await, ["4"]);
        target.apply(&schema, &rows(Delete)[1..]).await;
        assert_eq!(target.query("SELECT HEX(b) FROM `{db}`.t").await, ["00000000"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ky_07_different_keys_stay_different_or_are_refused() {
    use RowKind::Insert;
    let keys = ["abc", "ABC", "abc ", "é", "e"];
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let columns = &[("k", LogicalType::Text), ("v", LogicalType::Int32)];
        let schema = target.table("made", columns, &["k"]);
        let rows: Vec<_> = keys.iter().map(|key| row(Insert, &[key, "1"])).collect();
        target.apply(&schema, &rows).await;
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.made").await, ["5"]);

        target
            .run("CREATE TABLE `{db}`.existing (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)")
            .await;
        let schema = target.table("existing", columns, &["k"]);
        let plan = target.sink.plan_table(&schema).await.unwrap();
        assert!(plan.notes.iter().any(|note| note.contains("utf8mb4_general_ci")), "{:?}", plan.notes);
        target.apply(&schema, &rows).await;
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.existing").await, ["2"]);
        let reasons = target.letters.reasons();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert!(reasons.iter().all(|r| r.contains("is equal to the stored key")), "{reasons:?}");
        // The very same key is overwritten, another one is not.
        target.apply(&schema, &[row(Insert, &["ABC", "2"]), row(Insert, &["abc", "2"])]).await;
        assert_eq!(target.letters.reasons().len(), 4);
        assert_eq!(target.query("SELECT COUNT(*), MAX(v) FROM `{db}`.existing").await, ["2|2"]);

        // The same by a snapshot large enough to be loaded.
        target
            .run("CREATE TABLE `{db}`.loaded (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)")
            .await;
        let schema = target.table("loaded", columns, &["k"]);
        target.sink.prepare_table(&schema, true).await.unwrap();
        let numbers: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        let mut all = rows.clone();
        all.extend(numbers.iter().map(|n| row(Insert, &[n, "1"])));
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        writer.write(batch(&schema, &all)).await.unwrap();
        let report = writer.commit(&split_point("s")).await.unwrap();
        assert_eq!(report.written[0].1, 1002);
        assert_eq!(report.dead_lettered[0].1, 3);
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.loaded").await, ["1002"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_values_handed_over_end_with_their_last_owner() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        target.run("CREATE TABLE `{db}`.t (id INT PRIMARY KEY, u INT, UNIQUE KEY u (u))").await;
        let mut schema =
            (*target.table("t", &[("id", LogicalType::Int32), ("u", LogicalType::Int32)], &["id"])).clone();
        schema.indexes.push(canalis_types::Index {
            name: "u".into(),
            unique: true,
            definition: "UNIQUE KEY `u` (`u`)".into(),
            columns: vec!["u".into()],
        });
        let schema = std::sync::Arc::new(schema);
        let rows = [row(Insert, &["1", "10"]), row(Insert, &["2", "20"]), row(Insert, &["3", "30"])];
        target.apply(&schema, &rows).await;
        // 1 and 2 swap by way of NULL, 3 goes and 4 takes its value.
        let changes = [
            row(UpdateBefore, &["1", "10"]),
            row(UpdateAfter, &["1", "NULL"]),
            row(UpdateBefore, &["2", "20"]),
            row(UpdateAfter, &["2", "10"]),
            row(UpdateBefore, &["1", "NULL"]),
            row(UpdateAfter, &["1", "20"]),
            row(Delete, &["3", "30"]),
            row(Insert, &["4", "30"]),
        ];
        target.apply(&schema, &changes).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.t ORDER BY id").await, ["1|20", "2|10", "4|30"]);

        // The target alone has the index: what breaks it is refused, nothing else is touched.
        target.run("CREATE TABLE `{db}`.o (id INT PRIMARY KEY, u INT, UNIQUE KEY u (u))").await;
        let schema = target.table("o", &[("id", LogicalType::Int32), ("u", LogicalType::Int32)], &["id"]);
        let rows = [row(Insert, &["1", "10"]), row(Insert, &["2", "10"]), row(Insert, &["3", "30"])];
        target.apply(&schema, &rows).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.o ORDER BY id").await, ["1|10", "3|30"]);
        assert_eq!(target.letters.keys(), [r#"{"id":2}"#]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_that_the_source_left_out_keep_their_values() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let columns = &[("id", LogicalType::Int32), ("big", LogicalType::Text), ("n", LogicalType::Int32)];
        let schema = target.table("t", columns, &["id"]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        let changes = [
            row(Insert, &["1", "large", "1"]),
            row(Insert, &["2", "other", "1"]),
            row(UpdateBefore, &["1", "NULL", "1"]),
            row(UpdateAfter, &["1", "NULL", "2"]),
            row(UpdateBefore, &["2", "NULL", "1"]),
            row(UpdateAfter, &["3", "NULL", "5"]),
            row(Insert, &["4", "new", "1"]),
        ];
        let left_out = BooleanArray::from(vec![false, false, false, true, false, true, false]);
        let rows = batch(&schema, &changes).with_unchanged(vec![None, Some(left_out), None]);
        let mut writer = target.writer(0, 1).await;
        writer.write(rows).await.unwrap();
        let report = writer.commit(&point(1)).await.unwrap();
        assert_eq!(report.written[0].1, 5);
        assert_eq!(
            target.query("SELECT * FROM `{db}`.t ORDER BY id").await,
            ["1|large|2", "3|other|5", "4|new|1"]
        );
        assert_eq!(target.letters.keys(), [""; 0]);
        // An update that changes nothing is one; an update of a row that is not there cannot be carried out.
        let changes = [
            row(UpdateBefore, &["3", "NULL", "5"]),
            row(UpdateAfter, &["3", "NULL", "5"]),
            row(UpdateBefore, &["9", "NULL", "1"]),
            row(UpdateAfter, &["9", "NULL", "2"]),
        ];
        let left_out = BooleanArray::from(vec![false, true, false, true]);
        let rows = batch(&schema, &changes).with_unchanged(vec![None, Some(left_out), None]);
        writer.write(rows).await.unwrap();
        writer.commit(&point(2)).await.unwrap();
        assert_eq!(
            target.query("SELECT * FROM `{db}`.t ORDER BY id").await,
            ["1|large|2", "3|other|5", "4|new|1"]
        );
        assert_eq!(target.letters.keys(), [r#"{"id":9}"#]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_the_target_alone_keep_their_values() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        target.run("CREATE TABLE `{db}`.t (ID INT PRIMARY KEY, v VARCHAR(20), mine INT DEFAULT 7)").await;
        let schema = target.table("t", ID_V, &["id"]);
        target.apply(&schema, &[row(Insert, &["1", "a"])]).await;
        target.run("UPDATE `{db}`.t SET mine = 8").await;
        target.apply(&schema, &[row(UpdateBefore, &["1", "a"]), row(UpdateAfter, &["1", "b"])]).await;
        assert_eq!(target.query("SELECT * FROM `{db}`.t").await, ["1|b|8"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_windows_are_loaded_and_merged() {
    use RowKind::*;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", ID_V, &["id"]);
        let ids: Vec<String> = (0..12_000).map(|n| n.to_string()).collect();
        let inserts: Vec<_> = ids.iter().map(|id| row(Insert, &[id, "a"])).collect();
        target.apply(&schema, &inserts).await;
        let mut changes = Vec::new();
        for id in &ids {
            if id.ends_with('3') {
                changes.push(row(Delete, &[id, "a"]));
            } else {
                changes.push(row(UpdateBefore, &[id, "a"]));
                changes.push(row(UpdateAfter, &[id, "b"]));
            }
        }
        target.apply(&schema, &changes).await;
        assert_eq!(
            target.query("SELECT COUNT(*), COUNT(DISTINCT v), MIN(v), SUM(id % 10 = 3) FROM `{db}`.t").await,
            ["10800|1|b|0"]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_02_writers_that_lock_each_other_try_again() {
    use RowKind::Insert;
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", ID_V, &["id"]);
        let other = target.table("u", ID_V, &["id"]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        target.sink.prepare_table(&other, false).await.unwrap();
        let ids: Vec<String> = (0..400).map(|n| n.to_string()).collect();
        let mut tasks = Vec::new();
        for index in 0..4usize {
            let mut writer = target.writer(index, 4).await;
            let rows: Vec<_> = ids.iter().map(|id| row(Insert, &[id, ["a", "b", "c", "d"][index]])).collect();
            let batches = [batch(&schema, &rows), batch(&other, &rows)];
            tasks.push(tokio::spawn(async move {
                for round in 1..=20 {
                    for rows in &batches {
                        writer.write(rows.clone()).await.unwrap();
                    }
                    writer.commit(&point(round)).await.unwrap();
                }
            }));
        }
        // Somebody else takes the same rows the other way round until the writers are done.
        let deadlocks_before = deadlocks(&target).await;
        let mut rival = server.mysql().await;
        let mut rounds = 0;
        while rounds < 10 || (rounds < 500 && deadlocks(&target).await == deadlocks_before) {
            rounds += 1;
            let update = |table: &str| {
                format!("UPDATE `{}`.{table} SET v = 'rival' ORDER BY id DESC", target.database)
            };
            for statement in ["BEGIN".to_owned(), update("u"), update("t")] {
                if rival.query_drop(statement).await.is_err() {
                    break;
                }
            }
            rival.query_drop("ROLLBACK").await.unwrap();
            if tasks.iter().all(tokio::task::JoinHandle::is_finished) {
                break;
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.t").await, ["400"]);
        assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.u").await, ["400"]);
        if server.kind == canalis_testkit::ServerKind::MariaDb {
            assert!(
                deadlocks(&target).await > deadlocks_before,
                "the test met no deadlock in {rounds} rounds"
            );
        }
    }
}

/// Deadlocks that the server has counted; MySQL does not tell.
async fn deadlocks(target: &Target) -> u64 {
    let status = target.query("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").await;
    status.first().and_then(|row| row.rsplit('|').next()?.parse().ok()).unwrap_or(0)
}
