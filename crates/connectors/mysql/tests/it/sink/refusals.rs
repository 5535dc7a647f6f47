//! Rows that the target cannot hold are refused one by one, with the column named; the others land.

use canalis_types::{LogicalType, RowKind};

use super::support::{Target, batch, point, row, servers, sink_on, split, split_point};

/// Writes rows as a snapshot and as a stream into a table made by `create`; gives the ids that landed and the reasons.
async fn check(
    create: &str,
    columns: &[(&str, LogicalType)],
    rows: &[&[&str]],
    landed: &[&str],
    named: &str,
) {
    for server in servers() {
        for load in ["auto", "off"] {
            let target = Target::new(server, &[("sink.load-data", load)]).await;
            for way in ["snapshot", "stream"] {
                target.run(&create.replace("{t}", way)).await;
                let schema = target.table(way, columns, &["id"]);
                target.sink.prepare_table(&schema, true).await.unwrap();
                let mut changes: Vec<_> = rows.iter().map(|values| row(RowKind::Insert, values)).collect();
                // Enough good rows for LOAD DATA.
                let ids: Vec<String> = (1000..8000).map(|n| n.to_string()).collect();
                let good: Vec<&str> = rows[0][1..].to_vec();
                for id in &ids {
                    let mut values = vec![id.as_str()];
                    values.extend(&good);
                    changes.push(row(RowKind::Insert, &values));
                }
                let before = target.letters.reasons().len();
                let mut writer = target.writer(0, 1).await;
                let report = if way == "snapshot" {
                    writer.begin_split(&split("s", &schema, false)).await.unwrap();
                    writer.write(batch(&schema, &changes)).await.unwrap();
                    writer.commit(&split_point("s")).await.unwrap()
                } else {
                    writer.write(batch(&schema, &changes)).await.unwrap();
                    writer.commit(&point(1)).await.unwrap()
                };
                let bad = (rows.len() - landed.len()) as u64;
                let context = format!("{way} with load-data {load} on {:?}", server.kind);
                let reasons = target.letters.reasons()[before..].to_vec();
                assert_eq!(report.dead_lettered.first().map_or(0, |d| d.1), bad, "{context}: {reasons:?}");
                assert_eq!(report.written[0].1, 7000 + landed.len() as u64, "{context}");
                assert!(reasons.iter().all(|reason| reason.contains(named)), "{context}: {reasons:?}");
                let got =
                    target.query(&format!("SELECT id FROM `{{db}}`.{way} WHERE id < 1000 ORDER BY id")).await;
                assert_eq!(got, landed, "{context}");
                let count = target.query(&format!("SELECT COUNT(*) FROM `{{db}}`.{way}")).await;
                assert_eq!(count, [(7000 + landed.len()).to_string()], "{context}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_01_numbers_that_overflow_are_refused() {
    check(
        "CREATE TABLE `{db}`.{t} (id INT PRIMARY KEY, v TINYINT)",
        &[("id", LogicalType::Int32), ("v", LogicalType::Int32)],
        &[&["1", "127"], &["2", "128"], &["3", "-129"], &["4", "300"], &["5", "NULL"]],
        &["1", "5"],
        "'v'",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_07_texts_that_are_too_long_are_refused() {
    check(
        "CREATE TABLE `{db}`.{t} (id INT PRIMARY KEY, v VARCHAR(5))",
        &[("id", LogicalType::Int32), ("v", LogicalType::Text)],
        // Trailing blanks would go in silence.
        &[&["1", "abcde"], &["2", "abcdef"], &["3", "😀😀😀😀😀"], &["4", "abcde  "]],
        &["1", "3"],
        "'v'",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_outside_the_column_are_refused() {
    check(
        "CREATE TABLE `{db}`.{t} (id INT PRIMARY KEY, v VARCHAR(5) CHARACTER SET latin1)",
        &[("id", LogicalType::Int32), ("v", LogicalType::Text)],
        &[&["1", "Grüße"], &["2", "列"], &["3", "a😀"]],
        &["1"],
        "v",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn digits_that_would_be_rounded_are_refused() {
    check(
        "CREATE TABLE `{db}`.{t} (id INT PRIMARY KEY, v DECIMAL(6,2), t DATETIME(3))",
        &[
            ("id", LogicalType::Int32),
            ("v", LogicalType::Decimal { precision: 12, scale: 4 }),
            ("t", LogicalType::Timestamp { precision: 6 }),
        ],
        &[
            &["1", "1234.5600", "2024-01-01 00:00:00.123000"],
            &["2", "1.2345", "NULL"],
            &["3", "12345.6", "NULL"],
            &["4", "NULL", "2024-01-01 00:00:00.123400"],
            &["5", "-0.0100", "NULL"],
        ],
        &["1", "5"],
        "",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sk_10_foreign_dates_nulls_and_checks_are_refused() {
    check(
        "CREATE TABLE `{db}`.{t} (id INT PRIMARY KEY, d DATE, n INT NOT NULL, CHECK (n < 100))",
        &[("id", LogicalType::Int32), ("d", LogicalType::Date), ("n", LogicalType::Int32)],
        &[
            &["1", "2024-02-29", "1"],
            &["2", "2024-01-01", "NULL"],
            &["3", "2024-01-01", "100"],
            &["4", "NULL", "5"],
        ],
        &["1", "4"],
        "",
    )
    .await;
    // Years that four digits do not hold cannot come from text; they come from other databases.
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", &[("id", LogicalType::Int32), ("d", LogicalType::Date)], &["id"]);
        target.sink.prepare_table(&schema, false).await.unwrap();
        let mut builder = canalis_batch::BatchBuilder::new(schema.clone(), 3);
        for (id, days) in [(1, 0), (2, 6_585_000), (3, -735_000)] {
            builder.column(0).append_i64(id).unwrap();
            let canalis_batch::ColumnBuilder::Date(dates) = builder.column(1) else { panic!() };
            dates.append_value(days);
            builder.end_row(RowKind::Insert, 0);
        }
        let mut writer = target.writer(0, 1).await;
        writer.write(builder.finish().unwrap()).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        assert_eq!(target.query("SELECT * FROM `{db}`.t").await, ["1|1970-01-01"]);
        assert_eq!(target.letters.reasons(), vec!["column `d` cannot hold a year outside 0–9999"; 2]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_21_a_row_larger_than_a_packet_is_refused_with_its_size() {
    for server in [
        canalis_testkit::start_mariadb(&["--max-allowed-packet=2M"]),
        canalis_testkit::start_mysql(&["--max-allowed-packet=2M"]),
    ]
    .into_iter()
    .flatten()
    {
        let database = server.create_database("sink").await;
        let sink = sink_on(&server, &database, &[]);
        let letters = std::sync::Arc::new(super::support::Letters::default());
        let context = canalis_connector_api::SinkContext {
            job: "job".into(),
            writers: 1,
            fresh: true,
            tables: Vec::new(),
        };
        sink.open(&context).await.unwrap();
        for keyed in [true, false] {
            let name = if keyed { "keyed" } else { "keyless" };
            let columns = vec![
                canalis_types::Column::new("id", LogicalType::Int32, false),
                canalis_types::Column::new("b", LogicalType::Bytes, true),
            ];
            let key = if keyed { vec!["id".to_owned()] } else { Vec::new() };
            let schema = std::sync::Arc::new(canalis_types::TableSchema::new(
                canalis_types::TableId::new(&database, name),
                columns,
                key,
            ));
            sink.prepare_table(&schema, true).await.unwrap();
            let large = vec![7u8; 3 << 20];
            let medium = vec![0u8; 900 << 10];
            let rows = [
                (RowKind::Insert, vec![Some(&b"1"[..]), Some(&large[..])]),
                (RowKind::Insert, vec![Some(&b"2"[..]), Some(&medium[..])]),
                (RowKind::Insert, vec![Some(&b"3"[..]), None]),
            ];
            let mut writer = sink
                .open_writer(canalis_connector_api::WriterContext {
                    job: "job".into(),
                    index: 0,
                    writers: 1,
                    dead_letters: letters.clone(),
                })
                .await
                .unwrap();
            writer.begin_split(&split(name, &schema, false)).await.unwrap();
            writer.write(batch(&schema, &rows)).await.unwrap();
            writer.commit(&split_point(name)).await.unwrap();
            writer.write(batch(&schema, &rows)).await.unwrap();
            writer.commit(&point(1)).await.unwrap();
            let got = super::support::query(
                &server,
                &format!("SELECT DISTINCT id FROM `{database}`.{name} ORDER BY id"),
            )
            .await;
            assert_eq!(got, ["2", "3"]);
        }
        let reasons = letters.reasons();
        assert_eq!(reasons.len(), 4);
        assert!(reasons.iter().all(|r| r.contains("max_allowed_packet is 2097152")), "{reasons:?}");
    }
}
