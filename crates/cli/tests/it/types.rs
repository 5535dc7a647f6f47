//! Values: a table with every column type of MySQL and of MariaDB, extremes included, arrives equal by snapshot and
//! by stream in MySQL and MariaDB, and as documented in PostgreSQL and SQLite.

use std::time::Duration;

use canalis_testkit::{Server, ServerKind, table_digest, table_digest_of, wait_until};
use mysql_async::{Conn, prelude::Queryable};

use super::process::{Canalis, sink, source};

/// Columns that both families have: name, type, values (one per row; rows 1–4: largest, smallest, NULL, odd).
const COLUMNS: &[(&str, &str, [&str; 4])] = &[
    ("c_tiny", "TINYINT", ["127", "-128", "NULL", "0"]),
    ("c_tiny_u", "TINYINT UNSIGNED", ["255", "0", "NULL", "128"]),
    ("c_bool", "TINYINT(1)", ["1", "0", "NULL", "-1"]),
    ("c_small", "SMALLINT", ["32767", "-32768", "NULL", "0"]),
    ("c_small_u", "SMALLINT UNSIGNED", ["65535", "0", "NULL", "32768"]),
    ("c_medium", "MEDIUMINT", ["8388607", "-8388608", "NULL", "0"]),
    ("c_medium_u", "MEDIUMINT UNSIGNED", ["16777215", "0", "NULL", "8388608"]),
    ("c_int", "INT", ["2147483647", "-2147483648", "NULL", "0"]),
    ("c_int_u", "INT UNSIGNED", ["4294967295", "0", "NULL", "2147483648"]),
    ("c_zerofill", "INT(6) ZEROFILL", ["4294967295", "0", "NULL", "42"]),
    ("c_big", "BIGINT", ["9223372036854775807", "-9223372036854775808", "NULL", "0"]),
    ("c_big_u", "BIGINT UNSIGNED", ["18446744073709551615", "0", "NULL", "9223372036854775808"]),
    (
        "c_dec65",
        "DECIMAL(65,30)",
        [
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "NULL",
            "0.000000000000000000000000000001",
        ],
    ),
    ("c_dec_u", "DECIMAL(10,2) UNSIGNED", ["99999999.99", "0", "NULL", "0.10"]),
    ("c_dec0", "DECIMAL(38,0)", ["99999999999999999999999999999999999999", "-1", "NULL", "0"]),
    ("c_float", "FLOAT", ["3.4028234e38", "-1.17549435e-38", "NULL", "0.1"]),
    ("c_float_md", "FLOAT(10,2)", ["12345678.12", "-0.01", "NULL", "16777217"]),
    ("c_double", "DOUBLE", ["1.7976931348623157e308", "-2.2250738585072014e-308", "NULL", "0.1"]),
    ("c_double_md", "DOUBLE(12,3)", ["123456789.123", "-0.001", "NULL", "0.5"]),
    ("c_bit1", "BIT(1)", ["b'1'", "b'0'", "NULL", "b'1'"]),
    ("c_bit8", "BIT(8)", ["b'10101010'", "0", "NULL", "255"]),
    ("c_bit64", "BIT(64)", ["9223372036854775809", "0", "NULL", "1"]),
    ("c_date", "DATE", ["'9999-12-31'", "'0001-01-01'", "NULL", "'1969-12-31'"]),
    (
        "c_datetime",
        "DATETIME",
        ["'9999-12-31 23:59:59'", "'1000-01-01 00:00:00'", "NULL", "'1970-01-01 00:00:00'"],
    ),
    (
        "c_datetime6",
        "DATETIME(6)",
        [
            "'9999-12-31 23:59:59.999999'",
            "'1000-01-01 00:00:00.000001'",
            "NULL",
            "'1969-12-31 23:59:59.999999'",
        ],
    ),
    (
        "c_ts",
        "TIMESTAMP NULL",
        ["'2038-01-19 03:14:07'", "'1970-01-01 00:00:01'", "NULL", "'2024-03-10 01:00:00'"],
    ),
    (
        "c_ts3",
        "TIMESTAMP(3) NULL",
        ["'2038-01-19 03:14:07.999'", "'1970-01-01 00:00:01.001'", "NULL", "'2024-03-10 01:00:00.123'"],
    ),
    ("c_time", "TIME", ["'838:59:59'", "'-838:59:59'", "NULL", "'00:00:00'"]),
    ("c_time6", "TIME(6)", ["'838:59:59.000000'", "'-838:59:59.000000'", "NULL", "'-00:00:00.000001'"]),
    ("c_year", "YEAR", ["2155", "1901", "NULL", "0"]),
    ("c_char", "CHAR(10) CHARACTER SET utf8mb4", ["'😀😀😀😀😀😀😀😀😀😀'", "''", "NULL", "'a b'"]),
    (
        "c_varchar",
        "VARCHAR(200) CHARACTER SET utf8mb4",
        ["REPEAT('𠮷', 200)", "''", "NULL", "'tab\\t nl\\n q\\' bs\\\\ \\\\N'"],
    ),
    ("c_latin", "VARCHAR(50) CHARACTER SET latin1", ["'äöü€ß'", "''", "NULL", "'\\\\'"]),
    ("c_gbk", "VARCHAR(50) CHARACTER SET gbk", ["'中文字符'", "''", "NULL", "'a'"]),
    ("c_sjis", "VARCHAR(50) CHARACTER SET sjis", ["'日本語'", "''", "NULL", "'a'"]),
    ("c_cp850", "VARCHAR(50) CHARACTER SET cp850", ["'éàü'", "''", "NULL", "'a'"]),
    ("c_utf16", "VARCHAR(50) CHARACTER SET utf16", ["'ü😀'", "''", "NULL", "'a'"]),
    ("c_binary", "BINARY(8)", ["X'FFFEFDFC00000000'", "X'00'", "NULL", "'abc'"]),
    ("c_varbinary", "VARBINARY(50)", ["X'00FF5C0A0D09'", "''", "NULL", "'abc'"]),
    ("c_tinytext", "TINYTEXT", ["REPEAT('x', 255)", "''", "NULL", "'t'"]),
    ("c_text", "TEXT CHARACTER SET utf8mb4", ["REPEAT('ü', 30000)", "''", "NULL", "'t'"]),
    ("c_mediumtext", "MEDIUMTEXT", ["REPEAT('m', 70000)", "''", "NULL", "'t'"]),
    ("c_longtext", "LONGTEXT", ["REPEAT('l', 70000)", "''", "NULL", "'t'"]),
    ("c_tinyblob", "TINYBLOB", ["X'00010203'", "''", "NULL", "X'FF'"]),
    ("c_blob", "BLOB", ["REPEAT(X'00FF', 30000)", "''", "NULL", "X'0A'"]),
    ("c_mediumblob", "MEDIUMBLOB", ["REPEAT(X'5C27', 40000)", "''", "NULL", "X'09'"]),
    ("c_longblob", "LONGBLOB", ["REPEAT(X'5C4E', 40000)", "''", "NULL", "X'1A'"]),
    ("c_enum", "ENUM('a(b)','c,d','it''s','last')", ["'a(b)'", "'it''s'", "NULL", "'c,d'"]),
    ("c_set", "SET('x','y(z)','w')", ["'x,w'", "''", "NULL", "'x,y(z),w'"]),
    (
        "c_geometry",
        "GEOMETRY",
        [
            "ST_GeomFromText('LINESTRING(-3.5 2, 8 9.25, 0 0)')",
            "ST_GeomFromText('POINT(1 2)')",
            "NULL",
            "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
        ],
    ),
    (
        "c_point",
        "POINT",
        [
            "ST_GeomFromText('POINT(31.2 121.5)')",
            "ST_GeomFromText('POINT(0 0)')",
            "NULL",
            "ST_GeomFromText('POINT(-1 -1)')",
        ],
    ),
    (
        "c_json",
        "JSON",
        [
            r#"'{"n":12345678901234567890,"d":1.10,"u":"é😀\\"\\\\","e":{},"z":null,"b":true}'"#,
            "'[]'",
            "NULL",
            "'null'",
        ],
    ),
];

/// Columns of one family only.
fn own_columns(kind: ServerKind) -> &'static [(&'static str, &'static str, [&'static str; 4])] {
    match kind {
        ServerKind::MariaDb => &[
            ("c_inet6", "INET6", ["'ffff:ffff::1'", "'::'", "NULL", "'::ffff:192.0.2.1'"]),
            ("c_inet4", "INET4", ["'255.255.255.255'", "'0.0.0.0'", "NULL", "'192.0.2.1'"]),
            (
                "c_uuid",
                "UUID",
                [
                    "'ffffffff-ffff-ffff-ffff-fffffffffffe'",
                    "'00000000-0000-0000-0000-000000000001'",
                    "NULL",
                    "'123e4567-e89b-12d3-a456-426655440000'",
                ],
            ),
            ("c_virtual", "INT AS (c_tiny + 1) VIRTUAL", ["DEFAULT", "DEFAULT", "DEFAULT", "DEFAULT"]),
            ("c_stored", "INT AS (c_tiny + 2) STORED", ["DEFAULT", "DEFAULT", "DEFAULT", "DEFAULT"]),
        ],
        _ => &[
            (
                "c_vector",
                "VECTOR(3)",
                [
                    "STRING_TO_VECTOR('[1,2,3]')",
                    "STRING_TO_VECTOR('[0,0,0]')",
                    "NULL",
                    "STRING_TO_VECTOR('[-1,0.5,1e10]')",
                ],
            ),
            (
                "c_srid",
                "POINT SRID 4326",
                [
                    "ST_GeomFromText('POINT(31.2 121.5)', 4326)",
                    "ST_GeomFromText('POINT(0 0)', 4326)",
                    "NULL",
                    "ST_GeomFromText('POINT(1 1)', 4326)",
                ],
            ),
            (
                "c_virtual",
                "INT GENERATED ALWAYS AS (c_tiny + 1) VIRTUAL",
                ["DEFAULT", "DEFAULT", "DEFAULT", "DEFAULT"],
            ),
            (
                "c_stored",
                "INT GENERATED ALWAYS AS (c_tiny + 2) STORED",
                ["DEFAULT", "DEFAULT", "DEFAULT", "DEFAULT"],
            ),
        ],
    }
}

async fn create(conn: &mut Conn, database: &str, columns: &[(&str, &str, [&str; 4])]) {
    let list: Vec<String> = columns.iter().map(|(name, ty, _)| format!("{name} {ty}")).collect();
    conn.query_drop("SET time_zone = '+00:00', sql_mode = ''").await.unwrap();
    conn.query_drop(format!(
        "CREATE TABLE {database}.everything (id INT PRIMARY KEY, {}) DEFAULT CHARSET=utf8mb4",
        list.join(", ")
    ))
    .await
    .unwrap();
}

async fn insert(conn: &mut Conn, database: &str, columns: &[(&str, &str, [&str; 4])], base: usize) {
    for row in 0..4 {
        let values: Vec<&str> = columns.iter().map(|(_, _, values)| values[row]).collect();
        let statement =
            format!("INSERT INTO {database}.everything VALUES ({}, {})", base + row, values.join(", "));
        conn.query_drop(statement).await.unwrap();
    }
}

/// Snapshot rows 1–4, then rows 101–104 by stream, then an update of every row.
async fn copy(from: &Server, to: &Server, columns: &[(&str, &str, [&str; 4])]) {
    let database = from.create_database("types").await;
    let mut conn = from.mysql().await;
    create(&mut conn, &database, columns).await;
    insert(&mut conn, &database, columns, 1).await;
    let target = if std::ptr::eq(from, to) { format!("{database}_copy") } else { database.clone() };
    let pipeline = format!(
        "{}{}route:\n  - source-table: {database}.\\.*\n    sink-table: {target}.<>\n    replace-symbol: <>\n",
        source(from, &format!("{database}.everything"), ""),
        sink(to, &target),
    );
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let rows = async |count: u64| {
        let mut conn = to.mysql().await;
        // Until the tool has made the table, the query fails.
        let query = format!("SELECT COUNT(*) FROM {target}.everything");
        conn.query_first::<u64, _>(query).await.is_ok_and(|n| n == Some(count))
    };
    let arrive = async |count: u64, canalis: &mut Canalis| {
        tokio::select! {
            () = wait_until(Duration::from_secs(60), async || rows(count).await) => {}
            () = async { while !canalis.has_ended() { tokio::time::sleep(Duration::from_millis(50)).await } } =>
                panic!("it ended by itself: {}", canalis.log()),
        }
    };
    arrive(4, &mut canalis).await;
    insert(&mut conn, &database, columns, 101).await;
    arrive(8, &mut canalis).await;
    same(from, &database, to, &target, columns);
    conn.query_drop(format!("UPDATE {database}.everything SET id = id + 1000")).await.unwrap();
    conn.query_drop(format!("INSERT INTO {database}.everything (id) VALUES (9999)")).await.unwrap();
    arrive(9, &mut canalis).await;
    same(from, &database, to, &target, columns);
    assert!(canalis.stop().success(), "{}", canalis.log());
}

/// Fails with the names of the columns that differ.
fn same(from: &Server, database: &str, to: &Server, target: &str, columns: &[(&str, &str, [&str; 4])]) {
    if table_digest(from, database, "everything") == table_digest(to, target, "everything") {
        return;
    }
    let mut differing = Vec::new();
    for (name, ..) in columns {
        let wanted = ["id", name];
        let here = table_digest_of(from, database, "everything", &wanted);
        if here != table_digest_of(to, target, "everything", &wanted) {
            differing.push(*name);
        }
    }
    panic!("{database} on {from} and {target} on {to} differ in {differing:?}");
}

fn all_columns(kind: ServerKind) -> Vec<(&'static str, &'static str, [&'static str; 4])> {
    COLUMNS.iter().chain(own_columns(kind)).copied().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_mariadb_to_mariadb() {
    let Some(server) = canalis_testkit::mariadb() else { return };
    copy(server, server, &all_columns(ServerKind::MariaDb)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_mysql_to_mysql() {
    let Some(server) = canalis_testkit::mysql() else { return };
    copy(server, server, &all_columns(ServerKind::MySql)).await;
}

/// Without JSON: MariaDB keeps it as text with other blanks.
#[tokio::test(flavor = "multi_thread")]
async fn every_common_type_mariadb_to_mysql() {
    let (Some(from), Some(to)) = (canalis_testkit::mariadb(), canalis_testkit::mysql()) else { return };
    let columns: Vec<_> = COLUMNS.iter().filter(|(_, ty, _)| *ty != "JSON").copied().collect();
    copy(from, to, &columns).await;
}
