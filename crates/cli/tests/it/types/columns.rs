//! Owns the table with every column type, and the values of its rows.

use canalis_testkit::ServerKind;
use mysql_async::{Conn, prelude::Queryable};

/// A column: name, type, values (one per row; rows 1–4: largest, smallest, NULL, odd).
pub type ColumnOf = (&'static str, &'static str, [&'static str; 4]);

/// All columns that a server of this kind can have.
pub fn all_columns(kind: ServerKind) -> Vec<ColumnOf> {
    COLUMNS.iter().chain(own_columns(kind)).copied().collect()
}

/// Makes the table, and sets the session so that every value is taken as it is.
pub async fn create(conn: &mut Conn, database: &str, columns: &[ColumnOf]) {
    let list: Vec<String> = columns.iter().map(|(name, ty, _)| format!("{name} {ty}")).collect();
    conn.query_drop("SET time_zone = '+00:00', sql_mode = ''").await.unwrap();
    conn.query_drop(format!(
        "CREATE TABLE {database}.everything (id INT PRIMARY KEY, {}) DEFAULT CHARSET=utf8mb4",
        list.join(", ")
    ))
    .await
    .unwrap();
}

/// Inserts the four rows, with ids from `base`.
pub async fn insert(conn: &mut Conn, database: &str, columns: &[ColumnOf], base: usize) {
    for row in 0..4 {
        let values: Vec<&str> = columns.iter().map(|(_, _, values)| values[row]).collect();
        // An invisible column has to be named.
        let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
        let statement = format!(
            "INSERT INTO {database}.everything (id, {}) VALUES ({}, {})",
            names.join(", "),
            base + row,
            values.join(", ")
        );
        conn.query_drop(statement).await.unwrap();
    }
}

/// Columns that both families have.
pub const COLUMNS: &[ColumnOf] = &[
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
    ("c_real", "REAL", ["-0e0", "4.9406564584124654e-324", "NULL", "0.30000000000000004"]),
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
    (
        "c_ts6",
        "TIMESTAMP(6) NULL",
        ["'2038-01-19 03:14:07.999999'", "'1970-01-01 00:00:01'", "NULL", "'2000-02-29 00:00:00.000001'"],
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
        "c_line",
        "LINESTRING",
        [
            "ST_GeomFromText('LINESTRING(-3.5 2, 8 9.25)')",
            "ST_GeomFromText('LINESTRING(0 0, 1e300 -1e300)')",
            "NULL",
            "ST_GeomFromText('LINESTRING(0 0, 0 0)')",
        ],
    ),
    (
        "c_polygon",
        "POLYGON",
        [
            "ST_GeomFromText('POLYGON((0 0,9 0,9 9,0 0),(1 1,2 1,2 2,1 1))')",
            "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
            "NULL",
            "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
        ],
    ),
    (
        "c_points",
        "MULTIPOINT",
        [
            "ST_GeomFromText('MULTIPOINT(0 0, 20 20, 60.5 60)')",
            "ST_GeomFromText('MULTIPOINT(1 1)')",
            "NULL",
            "ST_GeomFromText('MULTIPOINT(-1 -1)')",
        ],
    ),
    (
        "c_lines",
        "MULTILINESTRING",
        [
            "ST_GeomFromText('MULTILINESTRING((0 0, 1 1), (15.5 15, 30 15))')",
            "ST_GeomFromText('MULTILINESTRING((0 0, 1 1))')",
            "NULL",
            "ST_GeomFromText('MULTILINESTRING((0 0, 1 1))')",
        ],
    ),
    (
        "c_polygons",
        "MULTIPOLYGON",
        [
            "ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,7 5,7 7,5 5)))')",
            "ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))')",
            "NULL",
            "ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))')",
        ],
    ),
    (
        "c_collection",
        "GEOMETRYCOLLECTION",
        [
            "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(10 10), LINESTRING(15 15, 20 20))')",
            "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(0 0))')",
            "NULL",
            "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')",
        ],
    ),
    ("c_invisible", "INT INVISIBLE", ["2147483647", "-2147483648", "NULL", "7"]),
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
fn own_columns(kind: ServerKind) -> &'static [ColumnOf] {
    match kind {
        ServerKind::MariaDb => &[
            ("c_inet6", "INET6", ["'ffff:ffff::1'", "'::'", "NULL", "'::ffff:192.0.2.1'"]),
            (
                "c_compressed",
                "VARCHAR(2000) COMPRESSED CHARACTER SET utf8mb4",
                ["REPEAT('é', 2000)", "''", "NULL", "'short'"],
            ),
            ("c_text_compressed", "TEXT COMPRESSED", ["REPEAT('long ', 5000)", "''", "NULL", "'t'"]),
            ("c_blob_compressed", "BLOB COMPRESSED", ["REPEAT(X'00FF', 5000)", "''", "NULL", "X'00'"]),
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
