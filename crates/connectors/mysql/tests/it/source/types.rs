//! A table with every column type, extreme values included: its structure, and equality of snapshot and stream.

use canalis_testkit::{Server, ServerKind};
use canalis_types::{ColumnDefault, LogicalType};

use super::{Run, cells, execute, servers, source};

const COLUMNS: &[&str] = &[
    "c01 TINYINT",
    "c02 TINYINT UNSIGNED",
    "c03 SMALLINT",
    "c04 SMALLINT UNSIGNED",
    "c05 MEDIUMINT",
    "c06 MEDIUMINT UNSIGNED",
    "c07 INT",
    "c08 INT(6) ZEROFILL",
    "c09 BIGINT",
    "c10 BIGINT UNSIGNED",
    "c11 DECIMAL(65,30)",
    "c12 DECIMAL(5)",
    "c13 FLOAT",
    "c14 DOUBLE",
    "c15 BIT(1)",
    "c16 BIT(17)",
    "c17 DATE",
    "c18 TIME(3)",
    "c19 DATETIME",
    "c20 DATETIME(6)",
    "c21 TIMESTAMP(2) NULL",
    "c22 YEAR",
    "c23 CHAR(3)",
    "c24 VARCHAR(300)",
    "c25 TINYTEXT",
    "c26 TEXT",
    "c27 MEDIUMTEXT",
    "c28 LONGTEXT",
    "c29 BINARY(4)",
    "c30 VARBINARY(300)",
    "c31 TINYBLOB",
    "c32 BLOB",
    "c33 MEDIUMBLOB",
    "c34 LONGBLOB",
    "c35 ENUM('a','b')",
    "c36 SET('a','b','c')",
    "c37 JSON",
    "c38 GEOMETRY",
    "c39 INT GENERATED ALWAYS AS (c07 - 1) STORED",
    "c40 VARCHAR(20) GENERATED ALWAYS AS (CONCAT(c07, '''x')) VIRTUAL",
];

const ROWS: &[&str] = &[
    "127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, \
     18446744073709551615, 99999999999999999999999999999999999.999999999999999999999999999999, 99999, 3.4028234e38, \
     1.7976931348623157e308, 1, b'11111111111111111', '9999-12-31', '838:59:59', '9999-12-31 23:59:59', \
     '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.99', 2155, 'zzz', REPEAT('é', 300), 'tiny', 'text', 'medium', \
     REPEAT('long', 20000), X'FF00FF00', REPEAT(X'00FF', 150), X'00', X'', X'0102', REPEAT(X'FE', 70000), 'b', \
     'a,b,c', '{\"k\": [1, 2.50, \"é\"]}', ST_GeomFromText('POLYGON((0 0, 0 1, 1 1, 0 0))', 4326)",
    "-128, 0, -32768, 0, -8388608, 0, -2147483647, 0, -9223372036854775808, 0, \
     -99999999999999999999999999999999999.999999999999999999999999999999, -99999, -1.17549435e-38, \
     -2.2250738585072014e-308, 0, 0, '0000-00-00', '-838:59:59', '0000-00-00 00:00:00', '1000-01-01 00:00:00.000001', \
     '1970-01-01 00:00:01', 1901, '', '', '', '', '', '', X'00000000', X'', X'', X'', X'', X'', 'a', '', '[]', \
     ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))')",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
];

/// Columns that only one family has, with values for the rows.
fn own_columns(server: &Server) -> (&'static str, [&'static str; 3]) {
    match server.kind {
        ServerKind::MariaDb => (
            "d1 UUID, d2 INET6, d3 VARCHAR(50) COMPRESSED, d4 INET4",
            [
                "'ffeeddcc-bbaa-9988-7766-554433221100', '2001:db8::ff00:42:8329', REPEAT('ab', 25), '255.1.2.3'",
                "'00112233-4455-6677-8899-aabbccddeeff', '::', '', '0.0.0.0'",
                "NULL, NULL, NULL, NULL",
            ],
        ),
        _ => (
            "d1 VECTOR(3), d2 VARCHAR(10) INVISIBLE",
            ["STRING_TO_VECTOR('[1,2.5,-3]'), 'x'", "NULL, ''", "NULL, NULL"],
        ),
    }
}

#[tokio::test]
async fn every_type_is_equal_by_snapshot_and_by_stream() {
    for server in servers() {
        let database = server.create_database("src_types").await;
        let (own, own_rows) = own_columns(server);
        let create =
            format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, {}, {own})", COLUMNS.join(", "));
        execute(server, &database, &["SET SESSION sql_mode = ''", &create]).await;
        let names = |definitions: &str| -> Vec<String> {
            definitions
                .split(", ")
                .filter(|d| d.starts_with(['c', 'd']) && d.contains(' ') && !d.contains("GENERATED"))
                .map(|d| d.split(' ').next().unwrap().to_owned())
                .collect()
        };
        let listed: Vec<String> =
            COLUMNS.iter().flat_map(|c| names(&c.replace(", ", ","))).chain(names(own)).collect();
        let inserts: Vec<String> = ROWS
            .iter()
            .zip(own_rows)
            .map(|(row, more)| format!("INSERT INTO t ({}) VALUES ({row}, {more})", listed.join(", ")))
            .collect();
        let mut statements = vec!["SET SESSION sql_mode = ''", "SET time_zone = '+00:00'"];
        statements.extend(inserts.iter().map(String::as_str));
        execute(server, &database, &statements).await;

        let source = source(server, &database, &[]);
        let mut run = Run::begin(&*source).await;
        let schema = run.enumerator.tables().remove(0);
        let snapshot = cells(run.snapshot().await, 1);
        execute(server, &database, &statements).await;
        let stream = cells(run.stream(ROWS.len() as u64).await, 1);
        for (left, right) in snapshot.iter().zip(&stream) {
            for (index, (a, b)) in left.iter().zip(right).enumerate() {
                assert_eq!(a, b, "column {} on {server}", schema.columns[index + 1].name);
            }
        }
        assert_eq!(snapshot.len(), stream.len());
    }
}

#[tokio::test]
async fn structures_are_read_with_keys_indexes_defaults_and_generation() {
    for server in servers() {
        let database = server.create_database("src_schema").await;
        execute(
            server,
            &database,
            &[
                "CREATE TABLE parent (b INT, a INT, PRIMARY KEY (a, b)) COMMENT 'it''s'",
                "CREATE TABLE t (
                    id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
                    v VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci NOT NULL DEFAULT 'it''s' COMMENT 'c',
                    n INT DEFAULT 5,
                    at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),
                    z INT DEFAULT NULL,
                    g INT AS (n + 1) STORED,
                    UNIQUE KEY u (v, n), KEY k (n DESC))",
            ],
        )
        .await;
        let source = source(server, &database, &[]);
        let tables = source.tables().await.unwrap();
        let find = |name: &str| tables.iter().find(|t| t.id.table == name).unwrap();
        assert_eq!(find("parent").primary_key, ["a", "b"]);
        assert_eq!(find("parent").comment.as_deref(), Some("it's"));
        let t = find("t");
        let column = |name: &str| t.column(name).unwrap();
        assert_eq!(column("id").ty, LogicalType::UInt64);
        assert!(column("id").native.as_ref().unwrap().auto_increment);
        assert_eq!(column("v").default, Some(ColumnDefault::Literal("it's".into())));
        assert_eq!(column("v").comment.as_deref(), Some("c"));
        let native = column("v").native.clone().unwrap();
        assert_eq!(
            (native.charset.as_deref(), native.collation.as_deref()),
            (Some("latin1"), Some("latin1_german1_ci"))
        );
        assert_eq!(column("n").default, Some(ColumnDefault::Literal("5".into())));
        assert!(
            matches!(&column("at").default, Some(ColumnDefault::Expression(e)) if e.to_lowercase().contains("current_timestamp"))
        );
        assert_eq!(column("z").default, None);
        let generated = column("g").native.clone().unwrap().generated.unwrap();
        assert!(generated.contains("`n` + 1") && generated.ends_with("STORED"), "{generated}");
        let indexes: Vec<(&str, bool)> = t.indexes.iter().map(|i| (i.name.as_str(), i.unique)).collect();
        assert_eq!(indexes, [("u", true), ("k", false)]);
        assert_eq!(t.indexes[0].columns, ["v", "n"]);
    }
}
