//! Values arrive as they are: by LOAD DATA, by INSERT, by upsert, and are found again by all their columns.

use std::sync::Arc;

use canalis_testkit::{Server, ServerKind, table_digest_of};
use canalis_types::{LogicalType, RowKind};
use mysql_async::prelude::Queryable;

use super::support::{Target, point, read, servers, split, split_point, structure};

/// Copies of each row: enough for LOAD DATA.
const COPIES: usize = 300;

/// Copies a table with these columns and rows on each way that rows can take, and compares by SQL.
async fn check(server: &'static Server, columns: &str, rows: &[&str]) {
    let target = Target::new(server, &[]).await;
    let source = server.create_database("source").await;
    let mut conn = server.mysql().await;
    conn.query_drop(
        "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
    )
    .await
    .unwrap();
    conn.query_drop(format!("CREATE TABLE `{source}`.t (id INT NOT NULL PRIMARY KEY, {columns})"))
        .await
        .unwrap();
    for (index, row) in rows.iter().enumerate() {
        conn.query_drop(format!("INSERT INTO `{source}`.t VALUES ({index}, {row})")).await.unwrap();
    }
    let mut schema = structure(server, &source, "t").await;
    let names: Vec<String> = schema.columns[1..].iter().map(|c| format!("`{}`", c.name)).collect();
    let plain: Vec<&str> = schema
        .columns
        .iter()
        .filter(|c| c.native.as_ref().is_none_or(|n| n.generated.is_none()))
        .map(|c| c.name.as_str())
        .collect();
    let list = plain[1..].iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(",");
    for copy in 1..=COPIES {
        conn.query_drop(format!(
            "INSERT INTO `{source}`.t (id, {list}) SELECT id + {}, {list} FROM `{source}`.t WHERE id < 1000",
            copy * 1000
        ))
        .await
        .unwrap();
    }
    drop(names);
    let all: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
    let expect = table_digest_of(server, &source, "t", &all);
    assert_eq!(expect.rows, (rows.len() * (COPIES + 1)) as u64);

    for (way, keyed) in [("load", true), ("load_again", true), ("upsert", true), ("keyless", false)] {
        schema.id = target.id(way);
        if !keyed {
            schema.primary_key.clear();
        }
        let schema = Arc::new(schema.clone());
        target.sink.prepare_table(&schema, way != "upsert").await.unwrap();
        let batch = read(server, &schema, &format!("`{source}`.t")).await;
        let mut writer = target.writer(0, 1).await;
        if way == "upsert" {
            writer.write(batch.clone()).await.unwrap();
            writer.write(batch.clone()).await.unwrap();
            writer.commit(&point(1)).await.unwrap();
        } else {
            writer.begin_split(&split(way, &schema, false)).await.unwrap();
            writer.write(batch.clone()).await.unwrap();
            writer.commit(&split_point(way)).await.unwrap();
        }
        if way == "load_again" {
            writer.begin_split(&split("again", &schema, true)).await.unwrap();
            writer.write(batch.clone()).await.unwrap();
            writer.commit(&split_point("again")).await.unwrap();
        }
        assert_eq!(target.letters.reasons(), Vec::<String>::new(), "{way} on {:?}", server.kind);
        assert_eq!(
            table_digest_of(server, &target.database, way, &all),
            expect,
            "{way} on {:?}",
            server.kind
        );
        if !keyed {
            let few = read(server, &schema, &format!("`{source}`.t WHERE id < 1000")).await;
            let kinds = vec![RowKind::Delete; few.num_rows()];
            let deletes = canalis_batch::ChangeBatch::new(schema.clone(), few.rows().clone(), kinds).unwrap();
            writer.write(deletes).await.unwrap();
            writer.commit(&point(2)).await.unwrap();
            assert_eq!(target.letters.reasons(), Vec::<String>::new(), "delete on {:?}", server.kind);
            let left = target.query(&format!("SELECT COUNT(*), MIN(id) FROM `{{db}}`.{way}")).await;
            assert_eq!(left, [format!("{}|1000", rows.len() * COPIES)]);
        }
    }
}

async fn check_everywhere(columns: &str, rows: &[&str]) {
    for server in servers() {
        check(server, columns, rows).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_01_my_02_my_09_zero_and_partly_zero_dates_are_kept() {
    check_everywhere(
        "a DATETIME NULL, b DATETIME(6) NOT NULL, c TIMESTAMP NOT NULL DEFAULT 0, d DATE NULL, e TIMESTAMP(6) NULL",
        &[
            "'0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00', '0000-00-00 00:00:00'",
            "'2025-00-15 10:20:30', '2025-06-00 00:00:00.000001', '2025-06-01 00:00:00', '2025-00-00', NULL",
            "NULL, '1969-12-31 23:59:59.999999', '1970-01-01 00:00:01', '0001-01-01', '2038-01-19 03:14:07.999999'",
            "'2025-02-31 00:00:00', '9999-12-31 23:59:59.999999', '2000-01-01 00:00:00', '9999-12-31', NULL",
            "'1000-01-01 00:00:00', '0000-01-01 01:00:00', '2000-01-01 00:00:00', '0000-00-01', NULL",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn my_04_my_07_my_10_my_13_my_20_my_22_numbers_bits_and_times_are_exact() {
    check_everywhere(
        "u BIGINT UNSIGNED, i BIGINT, t TINYINT(1), z INT(6) ZEROFILL, m MEDIUMINT, b1 BIT(1), b8 BIT(8), b64 BIT(64), \
         f FLOAT, fm FLOAT(10,2), d DOUBLE, du DOUBLE UNSIGNED, n DECIMAL(65,30), nu DECIMAL(10,2) UNSIGNED, \
         y YEAR, ti TIME(6), t0 TIME",
        &[
            "18446744073709551615, -9223372036854775808, -1, 42, -8388608, b'1', b'10101010', \
             b'1000000000000000000000000000000000000000000000000000000000000001', 0.1, 12345678.12, 1.7976931348623157e308, \
             0.1, 99999999999999999999999999999999999.999999999999999999999999999999, 99999999.99, 0000, \
             '-838:59:59.000000', '838:59:59'",
            "9223372036854775808, 9223372036854775807, 127, 4294967295, 8388607, b'0', 0, 0, 3.4028234e38, -0.01, \
             2.2250738585072014e-308, 0, -99999999999999999999999999999999999.999999999999999999999999999999, 0, 1901, \
             '-00:00:00.000001', '-00:00:01'",
            "0, 0, 2, 0, 0, NULL, NULL, NULL, 16777216, NULL, -1.5e-300, NULL, 0.000000000000000000000000000001, 0.01, 2155, \
             '838:59:59.000000', '00:00:00'",
            "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
            "1, 1, 0, 1, 1, 1, 1, 1, 1.17549e-38, 1.5, 0.1, 1e22, -0.5, 1.1, '70', '23:59:59.999999', '12:00:00'",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn my_11_texts_and_bytes_of_every_kind_are_kept() {
    check_everywhere(
        "c CHAR(10), v VARCHAR(20) CHARACTER SET utf8mb4, l VARCHAR(20) CHARACTER SET latin1, g VARCHAR(20) CHARACTER SET gbk, \
         ci VARCHAR(20) COLLATE utf8mb4_general_ci, t TEXT, lt LONGTEXT, b BINARY(4), vb VARBINARY(300), bl BLOB, lb LONGBLOB",
        &[
            "'abc', '😀😀😀😀😀😀😀😀😀😀', 'Grüße', '中文', 'Abc', 'a\\tb\\nc\\\\d\\'e\\\"f\\r\\0g', '', \
             _binary'\\0\\0\\0\\0', _binary'\\0\\'\\\\\\t\\n', X'FF00FE', X''",
            "'', '', '', '', '', '', 'x', X'80FF0001', X'', X'C328', X'00'",
            "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
            "'\\\\N', '\\\\N', 'NULL', '%', 'aBC', 'trailing  ', '\\\\', X'09090909', X'5C4E', X'5C', X'27'",
            "'𠮷野家', ' lead', '\\Z', '_', 'ABC ', '\\n', REPEAT('長い', 5000), X'41424344', REPEAT('z', 300), 'plain', REPEAT(X'E4', 70000)",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn my_14_enum_and_set_labels_and_the_error_value_are_kept() {
    check_everywhere(
        "e ENUM('a(b)','c,d','it''s','') CHARACTER SET utf8mb4, x ENUM('new','paid','0'), s SET('x','y(z)','w')",
        &[
            "'a(b)', 'new', 'x,w'",
            "'c,d', 'paid', ''",
            "'it''s', 'no such label', 'w,x'",
            "'', 'bad', 'y(z)'",
            "NULL, NULL, NULL",
            "'c,d', '0', 'x,y(z),w'",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn my_16_documents_are_kept() {
    check_everywhere(
        "j JSON",
        &[
            r#"'{"n":12345678901234567890,"d":1.10,"u":"é😀\\"\\\\","e":{},"z":null,"b":true}'"#,
            "'null'",
            "NULL",
            "'[]'",
            r#"'"text"'"#,
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn my_17_geometries_keep_their_reference_system() {
    for server in servers() {
        let srid = if server.kind == ServerKind::MySql { "SRID 4326" } else { "" };
        check(
            server,
            &format!("p POINT NOT NULL {srid}, g GEOMETRY, ls LINESTRING"),
            &[
                "ST_GeomFromText('POINT(31.2 121.5)', 4326), ST_GeomFromText('LINESTRING(-3.5 2, 8 9.25, 0 0)'), NULL",
                "ST_GeomFromText('POINT(-90 0)', 4326), NULL, ST_GeomFromText('LINESTRING(0 0, 1 1)')",
                "ST_GeomFromText('POINT(0 0)', 4326), ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))'), NULL",
            ],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uuids_and_addresses_of_mariadb_are_kept() {
    if let Some(server) = canalis_testkit::mariadb() {
        let row = "'123e4567-e89b-12d3-a456-426655440000', '10.0.0.1', '::ffff:1.2.3.4'";
        check(server, "u UUID, i4 INET4, i6 INET6", &[row, "NULL, NULL, NULL"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_mysql_are_kept() {
    let Some(server) = canalis_testkit::mysql() else { return };
    let target = Target::new(server, &[]).await;
    target.run("CREATE TABLE `{db}`.s (id INT PRIMARY KEY, v VECTOR(2))").await;
    target.run("INSERT INTO `{db}`.s VALUES (1, TO_VECTOR('[1,-2.5]')), (2, NULL)").await;
    let mut schema = structure(server, &target.database, "s").await;
    schema.id = target.id("t");
    schema.primary_key.clear();
    let schema = Arc::new(schema);
    target.sink.prepare_table(&schema, false).await.unwrap();
    let rows = read(server, &schema, &format!("`{}`.s", target.database)).await;
    let mut writer = target.writer(0, 1).await;
    writer.write(rows.clone()).await.unwrap();
    writer.commit(&point(1)).await.unwrap();
    let stored = target.query("SELECT id, HEX(v) FROM `{db}`.t ORDER BY id").await;
    assert_eq!(stored, target.query("SELECT id, HEX(v) FROM `{db}`.s ORDER BY id").await);
    let kinds = vec![RowKind::Delete; 2];
    writer.write(canalis_batch::ChangeBatch::new(schema, rows.rows().clone(), kinds).unwrap()).await.unwrap();
    writer.commit(&point(2)).await.unwrap();
    assert_eq!(target.query("SELECT COUNT(*) FROM `{db}`.t").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn computed_columns_are_computed_by_the_target() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        target.run("CREATE TABLE `{db}`.s (id INT PRIMARY KEY, a INT, twice INT GENERATED ALWAYS AS (a * 2) STORED, v INT AS (a + 1) VIRTUAL)").await;
        target.run("INSERT INTO `{db}`.s (id, a) VALUES (1, 21), (2, NULL)").await;
        let mut schema = structure(server, &target.database, "s").await;
        schema.id = target.id("t");
        let schema = Arc::new(schema);
        target.sink.prepare_table(&schema, false).await.unwrap();
        let rows = read(server, &schema, &format!("`{}`.s", target.database)).await;
        let mut writer = target.writer(0, 1).await;
        writer.write(rows).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        assert_eq!(
            target.query("SELECT * FROM `{db}`.t ORDER BY id").await,
            ["1|21|42|22", "2|NULL|NULL|NULL"]
        );
        let create = target.query("SHOW CREATE TABLE `{db}`.t").await.concat();
        assert!(create.contains("STORED") && create.contains("VIRTUAL"), "{create}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn my_21_a_row_of_20_mib_arrives() {
    for server in servers() {
        let target = Target::new(server, &[]).await;
        let schema = target.table("t", &[("id", LogicalType::Int32), ("b", LogicalType::Bytes)], &["id"]);
        let blob: Vec<u8> = (0..20u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let rows = [
            (RowKind::Insert, vec![Some(&b"1"[..]), Some(&blob[..])]),
            (RowKind::Insert, vec![Some(&b"2"[..]), Some(&b"small"[..])]),
        ];
        target.sink.prepare_table(&schema, true).await.unwrap();
        let mut writer = target.writer(0, 1).await;
        writer.begin_split(&split("s", &schema, false)).await.unwrap();
        writer.write(super::support::batch(&schema, &rows)).await.unwrap();
        writer.commit(&split_point("s")).await.unwrap();
        let hash = "SELECT id, SHA2(b, 256) = SHA2(@x, 256), LENGTH(b) FROM `{db}`.t ORDER BY id";
        let expect: String = ring::digest::digest(&ring::digest::SHA256, &blob)
            .as_ref()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let hash = hash.replace("SHA2(b, 256) = SHA2(@x, 256)", &format!("SHA2(b, 256) = '{expect}'"));
        assert_eq!(target.query(&hash).await, ["1|1|20971520", "2|0|5"]);
        // By the stream, once more.
        writer.write(super::support::batch(&schema, &rows)).await.unwrap();
        writer.commit(&point(1)).await.unwrap();
        assert_eq!(target.query(&hash).await, ["1|1|20971520", "2|0|5"]);
        assert_eq!(target.letters.reasons(), Vec::<String>::new());
    }
}
