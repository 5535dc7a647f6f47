//! Values of every type, with the extreme ones: what the stream delivers is what `SELECT` shows.

use canalis_mysql::binlog::StartPosition;
use canalis_testkit::{Server, mariadb, mysql};
use canalis_types::RowKind;
use mysql_async::prelude::Queryable;

use super::support::{Tracker, end_of_log, reader, same, selected, take_until};

/// Type of a column and values as SQL writes them.
type Case = (&'static str, &'static [&'static str]);

const NUMBERS: &[Case] = &[
    ("TINYINT", &["-128", "127", "0", "NULL"]),
    ("TINYINT UNSIGNED", &["0", "255"]),
    ("TINYINT(1)", &["0", "1", "2", "-1", "127"]),
    ("SMALLINT", &["-32768", "32767"]),
    ("SMALLINT UNSIGNED", &["65535"]),
    ("MEDIUMINT", &["-8388608", "8388607", "-1"]),
    ("MEDIUMINT UNSIGNED", &["16777215"]),
    ("INT", &["-2147483648", "2147483647"]),
    ("INT UNSIGNED", &["4294967295"]),
    ("INT(6) ZEROFILL", &["42", "4294967295"]),
    ("BIGINT", &["-9223372036854775808", "9223372036854775807"]),
    ("BIGINT UNSIGNED", &["18446744073709551615", "9223372036854775808", "0"]),
    ("FLOAT", &["0.1", "3.4028235e38", "-1.1754944e-38", "16777217", "0"]),
    ("FLOAT(10,2)", &["12345678.12", "99999999.99", "0.1"]),
    ("DOUBLE", &["0.1", "1.7976931348623157e308", "-2.2250738585072014e-308", "5e-324", "0"]),
    ("DOUBLE UNSIGNED ZEROFILL", &["0.1", "12345678.12"]),
    ("DECIMAL(10,2) UNSIGNED", &["12345678.12", "99999999.99", "0.10", "0"]),
    (
        "DECIMAL(65,30)",
        &[
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "0.000000000000000000000000000001",
            "-1",
        ],
    ),
    ("DECIMAL(38,10)", &["-9999999999999999999999999999.9999999999", "1"]),
    ("DECIMAL(39,0)", &["999999999999999999999999999999999999999", "-1"]),
    ("DECIMAL(1,0)", &["9", "-9"]),
    ("DECIMAL(5,5)", &["0.99999", "-0.00001"]),
    ("BIT(1)", &["b'1'", "b'0'", "NULL"]),
    ("BIT(8)", &["b'10101010'", "0"]),
    ("BIT(9)", &["b'100000001'"]),
    ("BIT(64)", &["b'1000000000000000000000000000000000000000000000000000000000000001'", "0"]),
    ("YEAR", &["0", "1901", "2155", "'70'"]),
];

const TIMES: &[Case] = &[
    (
        "DATE",
        &[
            "'0000-00-00'",
            "'2025-00-15'",
            "'2025-06-00'",
            "'0001-01-01'",
            "'9999-12-31'",
            "'1969-12-31'",
            "NULL",
        ],
    ),
    (
        "DATETIME",
        &["'0000-00-00 00:00:00'", "'2025-00-15 10:20:30'", "'2025-06-00 00:00:00'", "'1000-01-01 00:00:00'"],
    ),
    ("DATETIME(1)", &["'2024-01-01 00:00:00.9'"]),
    ("DATETIME(3)", &["'2024-03-10 09:00:00.123'", "'2025-00-15 10:20:30.5'"]),
    (
        "DATETIME(6)",
        &["'1969-12-31 23:59:59.999999'", "'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"],
    ),
    ("TIMESTAMP NULL", &["'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "NULL"]),
    ("TIMESTAMP(2) NULL", &["'0000-00-00 00:00:00'", "'2024-01-01 00:00:00.25'"]),
    ("TIMESTAMP(6) NULL", &["'2024-01-01 00:00:00.000001'", "'2038-01-19 03:14:07.499999'"]),
    ("TIME", &["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    ("TIME(1)", &["'-00:00:00.1'", "'12:00:00.9'"]),
    ("TIME(2)", &["'-00:00:00.01'", "'-01:00:00.99'"]),
    ("TIME(4)", &["'-00:00:00.0001'", "'100:00:00.9999'"]),
    ("TIME(6)", &["'-838:59:59.000000'", "'838:59:59.000000'", "'-00:00:00.000001'", "'-00:00:01.000001'"]),
];

const TEXTS: &[Case] = &[
    ("CHAR(10)", &["'abc'", "'abc   '", "''", "'😀😀😀😀😀😀😀😀😀😀'", "NULL"]),
    ("CHAR(255) CHARACTER SET utf8mb4", &["REPEAT('😀', 255)", "'x'"]),
    ("VARCHAR(10)", &["'𠮷野家'", "'a  '", "''"]),
    ("VARCHAR(300)", &["REPEAT('é', 300)"]),
    ("TINYTEXT", &["'é'", "''"]),
    ("TEXT", &["REPEAT('ab', 1000)"]),
    ("MEDIUMTEXT", &["REPEAT('é', 100000)"]),
    ("LONGTEXT", &["'😀'"]),
    ("BINARY(4)", &["X'00'", "X'61620000'", "X'FFFFFFFF'", "X'00000001'", "''"]),
    ("BINARY(16)", &["X'7F'", "X'00000000000000000000000000000000'"]),
    ("VARBINARY(300)", &["X'000100'", "''", "REPEAT(X'FF', 300)"]),
    ("TINYBLOB", &["X'00'", "''"]),
    ("BLOB", &["X'C328'", "REPEAT(X'00', 70)"]),
    ("MEDIUMBLOB", &["REPEAT(X'01', 70000)"]),
    ("LONGBLOB", &["X'FF'"]),
    ("ENUM('a(b)','c,d','it''s','')", &["'a(b)'", "'c,d'", "'it''s'", "''", "'invalid'", "NULL"]),
    ("SET('x','y(z)','w')", &["'x,w'", "'w,x'", "''", "'y(z)'", "7", "NULL"]),
    ("ENUM('é','😀') CHARACTER SET utf8mb4", &["'é'", "'😀'"]),
    ("POINT", &["ST_GeomFromText('POINT(1.5 -2)')", "NULL"]),
    (
        "GEOMETRY",
        &[
            "ST_GeomFromText('LINESTRING(-3.5 2, 8 9.25, 0 0)')",
            "ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))', 0)",
        ],
    ),
];

const CHARSETS: &[Case] = &[
    ("VARCHAR(20) CHARACTER SET ascii", &["'abc'"]),
    ("VARCHAR(20) CHARACTER SET latin1", &["'é€ÿ'", "X'818D8F909D'"]),
    ("TEXT CHARACTER SET latin2", &["'łśż'"]),
    ("CHAR(20) CHARACTER SET latin1", &["'é'"]),
    ("VARCHAR(20) CHARACTER SET cp1251", &["'Привет'"]),
    ("VARCHAR(20) CHARACTER SET koi8r", &["'Привет'"]),
    ("VARCHAR(20) CHARACTER SET greek", &["'αβγ'"]),
    ("VARCHAR(20) CHARACTER SET hebrew", &["'שלום'"]),
    ("VARCHAR(20) CHARACTER SET tis620", &["'ไทย'"]),
    ("VARCHAR(20) CHARACTER SET gbk", &["'你好，a'"]),
    ("VARCHAR(20) CHARACTER SET gb2312", &["'你好'"]),
    ("VARCHAR(20) CHARACTER SET big5", &["'你好'"]),
    ("VARCHAR(20) CHARACTER SET sjis", &["'あいｱ漢'", "X'81608161817C'"]),
    ("VARCHAR(20) CHARACTER SET cp932", &["'あいｱ漢'", "X'81608161817C'"]),
    ("VARCHAR(20) CHARACTER SET ujis", &["'あいｱ漢'", "X'A1C1A1C28FB0A1'"]),
    ("VARCHAR(20) CHARACTER SET eucjpms", &["'あいｱ漢'", "X'A1C1A1C2'"]),
    ("VARCHAR(20) CHARACTER SET euckr", &["'한국'"]),
    ("VARCHAR(20) CHARACTER SET ucs2", &["'你好'"]),
    ("CHAR(20) CHARACTER SET utf16", &["'你😀 '"]),
    ("VARCHAR(20) CHARACTER SET utf16le", &["'你😀'"]),
    ("VARCHAR(20) CHARACTER SET utf32", &["'你😀'"]),
    ("VARCHAR(20) CHARACTER SET utf8mb3", &["'你é'"]),
];

const MARIADB: &[Case] = &[
    ("DECIMAL(65,38)", &["0.00000000000000000000000000000000000001"]),
    (
        "UUID",
        &[
            "'a1b2c3d4-e5f6-11ee-8899-aabbccddeeff'",
            "'a1b2c3d4-e5f6-71ee-8899-aabbccddeeff'",
            "'a1b2c3d4-e5f6-41ee-8899-aabbccddee00'",
            "'00000000-0000-0000-0000-000000000000'",
            "NULL",
        ],
    ),
    (
        "INET6",
        &[
            "'::'",
            "'::1'",
            "'::ffff:1.2.3.4'",
            "'::1.2.3.4'",
            "'fe80::1:0:0:1'",
            "'2001:db8:0:1:1:1:1:1'",
            "'::ffff:0:0'",
            "'1::'",
        ],
    ),
    ("INET4", &["'0.0.0.0'", "'255.255.255.255'", "'1.2.3.0'"]),
    ("JSON", &[r#"'{"n":12345678901234567890,"d":1.10}'"#]),
    ("TEXT COMPRESSED", &["REPEAT('é', 500)", "'short'", "''", "NULL"]),
    ("VARCHAR(500) COMPRESSED", &["REPEAT('x', 400)", "'short'"]),
    ("VARCHAR(100) COMPRESSED", &["REPEAT('x', 100)", "''"]),
    ("BLOB COMPRESSED", &["REPEAT(X'00', 500)"]),
];

const MYSQL: &[Case] = &[
    ("VECTOR(3)", &["STRING_TO_VECTOR('[1, -2.5, 3e10]')", "NULL"]),
    ("VARCHAR(20) CHARACTER SET gb18030", &["'你好é😀'"]),
    ("POINT SRID 4326", &["ST_GeomFromText('POINT(31.2 121.5)', 4326)"]),
    (
        "JSON",
        &[
            r#"'{"n":12345678901234567890,"d":1.10,"u":"é😀\\"\\\\","e":{},"z":null,"b":true}'"#,
            "NULL",
            "'null'",
            "'[]'",
            "'\"\"'",
            "'-9223372036854775808'",
            "'1e-7'",
            "'[[[1]], {\"a\": [true, false]}]'",
            r#"'{"a":"\\u0000\\u001f\\b\\f\\n\\r\\t/","":1}'"#,
            "JSON_OBJECT('d', CAST(1.10 AS DECIMAL(5,2)), 'big', CAST(-12345678901234567890123.456 AS DECIMAL(40,3)), 'z', CAST(0 AS DECIMAL(5,2)))",
            "JSON_OBJECT('t', CAST('-838:59:59.5' AS TIME(1)), 'dt', CAST('2024-01-02 03:04:05.6' AS DATETIME(1)), 'da', CAST('2024-01-02' AS DATE), 'ts', TIMESTAMP('2024-01-02 03:04:05'))",
            "JSON_OBJECT('b', CAST(REPEAT('a', 100) AS BINARY), 'bit', b'1010', 'empty', X'')",
            "JSON_ARRAY(1e20, 1e15, 1e14, 0.1e0, 1e-15, 1e-16, 1.5e300, -0.0e0, 5e-324, 123456789012345.6e0, 1234567890123456.7e0)",
            "JSON_ARRAY(32767, 32768, -32769, 65535, 65536, 2147483648, 4294967296, 18446744073709551615)",
            "JSON_OBJECT('long', REPEAT('x', 70000), 'more', JSON_ARRAY(REPEAT('y', 200), 100000))",
            "JSON_ARRAY(ST_GeomFromText('POINT(1 2)'))",
        ],
    ),
];

async fn check(server: &Server, cases: &[&[Case]]) {
    let database = server.create_database("binlog_values").await;
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    conn.query_drop("SET sql_mode = '', time_zone = '+00:00', NAMES utf8mb4").await.ok();
    conn.query_drop("SET NAMES utf8mb4").await.unwrap();
    conn.query_drop("SET sql_mode = '', time_zone = '+00:00'").await.unwrap();
    let tracker = Tracker::new(&database);
    let cases: Vec<&Case> = cases.iter().copied().flatten().collect();
    let start = end_of_log(server, &mut conn).await;
    let mut schemas = Vec::new();
    for (number, (ty, values)) in cases.iter().enumerate() {
        let table = format!("t{number}");
        let sql = format!("CREATE TABLE {table} (id INT PRIMARY KEY, v {ty}) CHARACTER SET utf8mb4");
        conn.query_drop(sql).await.unwrap();
        for (id, value) in values.iter().enumerate() {
            let sql = format!("INSERT INTO {table} VALUES ({id}, {value})");
            conn.query_drop(&sql).await.unwrap_or_else(|e| panic!("{ty}: {sql}: {e}"));
        }
        // Both images of an update, and a deletion.
        conn.query_drop(format!("UPDATE {table} SET id = id + 1000")).await.unwrap();
        conn.query_drop(format!("DELETE FROM {table} WHERE id = 1000")).await.unwrap();
        conn.query_drop(format!("INSERT INTO {table} VALUES (1000, {})", values[0])).await.unwrap();
    }
    let end = end_of_log(server, &mut conn).await;
    for number in 0..cases.len() {
        schemas.push(tracker.learn(&mut conn, &format!("t{number}")).await);
    }
    // The statements are not of interest here: the structure is learned already.
    let started = start;
    let mut reader = reader(server, StartPosition::File(started), &tracker);
    let taken = take_until(&mut reader, &end).await.unwrap();
    let mut wrong = Vec::new();
    for ((ty, values), schema) in cases.iter().zip(&schemas) {
        let table = schema.id.table.as_str();
        let expected = selected(&mut conn, schema).await;
        assert_eq!(expected.len(), values.len(), "{ty}");
        let inserted = taken.of(table, RowKind::Insert);
        let before = taken.of(table, RowKind::UpdateBefore);
        let after = taken.of(table, RowKind::UpdateAfter);
        let deleted = taken.of(table, RowKind::Delete);
        assert_eq!(
            (inserted.len(), before.len(), after.len(), deleted.len()),
            (values.len() + 1, values.len(), values.len(), 1),
            "{ty}"
        );
        for (index, row) in expected.iter().enumerate() {
            for (found, id) in
                [(&inserted[index], index), (&before[index], index), (&after[index], index + 1000)]
            {
                assert_eq!(found[0], Some(id.to_string()), "{ty}");
                if !same(&schema.columns[1].ty, &found[1], &row[1]) {
                    wrong.push(format!("{ty} {}: stream {:?}, select {:?}", values[index], found[1], row[1]));
                }
            }
        }
        if !same(&schema.columns[1].ty, &deleted[0][1], &expected[0][1]) {
            wrong.push(format!("{ty}: deleted {:?}", deleted[0][1]));
        }
    }
    reader.close().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// MY-01, MY-02, MY-04, MY-06 … MY-11, MY-13, MY-14, MY-16, MY-17, MY-20, MY-22.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn my_01_to_22_values_of_mariadb_arrive_as_selected() {
    let Some(server) = mariadb() else { return };
    check(server, &[NUMBERS, TIMES, TEXTS, CHARSETS, MARIADB]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn my_01_to_22_values_of_mysql_arrive_as_selected() {
    let Some(server) = mysql() else { return };
    check(server, &[NUMBERS, TIMES, TEXTS, CHARSETS, MYSQL]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_temporal_formats_of_mariadb_arrive_as_selected() {
    let Some(server) = canalis_testkit::start_mariadb(&["--mysql56-temporal-format=OFF"]) else { return };
    check(&server, &[TIMES]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_events_of_mariadb_arrive_as_selected() {
    let args = ["--log-bin-compress=ON", "--log-bin-compress-min-len=10"];
    let Some(server) = canalis_testkit::start_mariadb(&args) else { return };
    check(&server, &[NUMBERS, TEXTS, MARIADB]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_transactions_of_mysql_arrive_as_selected() {
    let Some(server) = canalis_testkit::start_mysql(&["--binlog-transaction-compression=ON"]) else { return };
    check(&server, &[NUMBERS, TEXTS, MYSQL]).await;
}

/// MY-03: the zone of server and session does not move a timestamp, and a local time has none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn my_03_timestamps_are_instants() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let database = server.create_database("binlog_zone").await;
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE `{database}`")).await.unwrap();
        conn.query_drop("SET time_zone = '+08:00'").await.unwrap();
        conn.query_drop("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP(3) NULL, dt DATETIME(3))")
            .await
            .unwrap();
        let start = end_of_log(server, &mut conn).await;
        conn.query_drop("INSERT INTO t VALUES (1, '2024-03-10 09:00:00.123', '2024-03-10 09:00:00.123')")
            .await
            .unwrap();
        let end = end_of_log(server, &mut conn).await;
        let tracker = Tracker::new(&database);
        tracker.learn(&mut conn, "t").await;
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        let taken = take_until(&mut reader, &end).await.unwrap();
        let cells = &taken.of("t", RowKind::Insert)[0];
        assert_eq!(cells[1].as_deref(), Some("2024-03-10 01:00:00.123"));
        assert_eq!(cells[2].as_deref(), Some("2024-03-10 09:00:00.123"));
    }
}

/// MY-21: a value of 20 MiB, longer than one packet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn my_21_a_row_longer_than_a_packet() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let database = server.create_database("binlog_large").await;
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE `{database}`")).await.unwrap();
        conn.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)").await.unwrap();
        let start = end_of_log(server, &mut conn).await;
        conn.query_drop("INSERT INTO t VALUES (1, REPEAT('0123456789abcdef', 1310720)), (2, 'x')")
            .await
            .unwrap();
        conn.query_drop("UPDATE t SET v = CONCAT(v, 'end') WHERE id = 1").await.unwrap();
        let end = end_of_log(server, &mut conn).await;
        let tracker = Tracker::new(&database);
        tracker.learn(&mut conn, "t").await;
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        let taken = take_until(&mut reader, &end).await.unwrap();
        let long = taken.of("t", RowKind::UpdateAfter)[0][1].clone().unwrap();
        // Bytes are rendered in hexadecimal.
        assert_eq!(long.len(), 2 * (20 * 1024 * 1024 + 3));
        let piece = "30313233343536373839616263646566";
        assert!(long.as_bytes()[..2 * 20 * 1024 * 1024].chunks(32).all(|chunk| chunk == piece.as_bytes()));
        assert_eq!(taken.of("t", RowKind::Insert)[1][1].as_deref(), Some("78"));
    }
}

/// Computed, invisible and hidden columns stand in the log as the catalog lists them, or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn computed_and_invisible_columns_arrive_as_selected() {
    for server in [mariadb(), mysql()].into_iter().flatten() {
        let database = server.create_database("binlog_computed").await;
        let mut conn = server.mysql().await;
        conn.query_drop(format!("USE `{database}`")).await.unwrap();
        let mut tables = vec![
            "CREATE TABLE t0 (id INT PRIMARY KEY, v INT AS (id + 1) VIRTUAL, a INT, s INT AS (a * 2) STORED, \
             i INT INVISIBLE, z INT)",
        ];
        if server.kind == canalis_testkit::ServerKind::MySql {
            conn.query_drop("SET sql_generate_invisible_primary_key = ON").await.unwrap();
            tables.push("CREATE TABLE t1 (a INT, z INT, INDEX ((a + 1)), INDEX ((z * 2)))");
        }
        let start = end_of_log(server, &mut conn).await;
        for (number, table) in tables.iter().enumerate() {
            conn.query_drop(*table).await.unwrap();
            conn.query_drop(format!(
                "INSERT INTO t{number} (a, z{}) VALUES (5, 6{})",
                if number == 0 { ", id, i" } else { "" },
                if number == 0 { ", 1, 9" } else { "" }
            ))
            .await
            .unwrap();
            conn.query_drop(format!("UPDATE t{number} SET a = 7")).await.unwrap();
        }
        let end = end_of_log(server, &mut conn).await;
        let tracker = Tracker::new(&database);
        let mut schemas = Vec::new();
        for number in 0..tables.len() {
            schemas.push(tracker.learn(&mut conn, &format!("t{number}")).await);
        }
        let mut reader = reader(server, StartPosition::File(start), &tracker);
        let taken = take_until(&mut reader, &end).await.unwrap();
        for schema in schemas {
            let expected = selected(&mut conn, &schema).await;
            assert_eq!(taken.of(&schema.id.table, RowKind::UpdateAfter), expected, "{:?}", server.kind);
        }
    }
}
