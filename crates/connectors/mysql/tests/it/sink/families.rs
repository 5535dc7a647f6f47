//! Tables between MySQL and MariaDB: structures are translated, values are not.

use std::sync::Arc;

use canalis_testkit::{Server, table_digest_of};
use mysql_async::prelude::Queryable;

use super::support::{Target, read, split, split_point, structure};

/// Copies a table of one family to the other: its structure is translated, its values are not.
async fn check_across(
    from: &'static Server,
    to: &'static Server,
    definition: &str,
    rows: &[&str],
    notes: &[&str],
) {
    let source = from.create_database("source").await;
    let mut conn = from.mysql().await;
    conn.query_drop("SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")
        .await
        .unwrap();
    conn.query_drop(format!("CREATE TABLE `{source}`.t ({definition})")).await.unwrap();
    for row in rows {
        conn.query_drop(format!("INSERT INTO `{source}`.t VALUES ({row})")).await.unwrap();
    }
    let target = Target::new(to, &[]).await;
    let mut schema = structure(from, &source, "t").await;
    schema.id = target.id("t");
    let schema = Arc::new(schema);
    let plan = target.sink.prepare_table(&schema, true).await.unwrap();
    for note in notes {
        assert!(plan.notes.iter().any(|n| n.contains(note)), "no note says {note}: {:?}", plan.notes);
    }
    let mut writer = target.writer(0, 1).await;
    writer.begin_split(&split("s", &schema, false)).await.unwrap();
    writer.write(read(from, &schema, &format!("`{source}`.t")).await).await.unwrap();
    writer.commit(&split_point("s")).await.unwrap();
    target.sink.snapshot_complete(std::slice::from_ref(&schema)).await.unwrap();
    assert_eq!(target.letters.reasons(), Vec::<String>::new());
    let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        table_digest_of(to, &target.database, "t", &names),
        table_digest_of(from, &source, "t", &names),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_go_from_mysql_to_mariadb() {
    let (Some(mysql), Some(mariadb)) = (canalis_testkit::mysql(), canalis_testkit::mariadb()) else { return };
    check_across(
        mysql,
        mariadb,
        "k VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v VARCHAR(20) COLLATE utf8mb4_0900_as_cs, \
         b VARCHAR(20) COLLATE utf8mb4_0900_bin, l VARCHAR(20) CHARACTER SET latin1, gb VARCHAR(20) CHARACTER SET gb18030, \
         j JSON, g GEOMETRY, vec VECTOR(2), ts TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6), d DATE DEFAULT (CURDATE()), \
         u VARCHAR(36) DEFAULT (UUID()), n INT UNSIGNED NOT NULL DEFAULT 5, bits BIT(4) DEFAULT b'101', \
         tx TEXT DEFAULT ('long'), e ENUM('a','b') DEFAULT 'b', UNIQUE KEY uv (v), KEY fx ((LOWER(b))), KEY dx (n DESC)",
        &[
            "'Abc', 'x', 'b ', 'Grüße', '中', '{\"a\": [1, 2.50]}', ST_GeomFromText('POINT(1 2)'), NULL, \
             '2024-01-01 00:00:00.000001', '0000-00-00', 'u', 1, b'1', 't', 'a'",
            "'e', 'X', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, NULL, NULL, NULL",
        ],
        &["utf8mb4_0900_ai_ci", "vector(2)"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_go_from_mariadb_to_mysql() {
    let (Some(mysql), Some(mariadb)) = (canalis_testkit::mysql(), canalis_testkit::mariadb()) else { return };
    check_across(
        mariadb,
        mysql,
        "k VARCHAR(20) COLLATE utf8mb4_uca1400_ai_ci, id INT NOT NULL AUTO_INCREMENT, v VARCHAR(20) COLLATE utf8mb4_nopad_bin, \
         s VARCHAR(20) CHARACTER SET utf8mb3, j JSON, u UUID, i4 INET4, i6 INET6, ts TIMESTAMP(3) NOT NULL DEFAULT current_timestamp(3), \
         d DATE DEFAULT curdate(), w VARCHAR(36) DEFAULT uuid(), c INT AS (CHAR_LENGTH(k) * 2) STORED, tx TEXT DEFAULT 'long', \
         cm VARCHAR(100) COMPRESSED, PRIMARY KEY (k), UNIQUE KEY id (id), KEY ts (ts)",
        &[
            "'Abc', 1, 'x ', 'é', '{\"a\":  [1,2.50]}', '123e4567-e89b-12d3-a456-426655440000', '10.0.0.1', '::1', \
             '2024-01-01 00:00:00.001', '2025-06-00', 'w', DEFAULT, 't', REPEAT('z', 90)",
            "'e', 7, NULL, NULL, NULL, NULL, NULL, NULL, '2024-01-01 00:00:00', NULL, NULL, DEFAULT, NULL, NULL",
        ],
        &["utf8mb4_uca1400_ai_ci", "uuid becomes", "inet6 becomes"],
    )
    .await;
}
