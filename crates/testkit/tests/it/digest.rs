//! Digests are equal for equal tables, also across kinds of servers, and differ when one cell differs.

use canalis_testkit::{Server, mariadb, mysql, postgres, table_digest, table_digest_of};
use mysql_async::prelude::Queryable;

const MYSQL_TABLE: &str = "CREATE TABLE t (
    id BIGINT PRIMARY KEY, n DECIMAL(12,3), f FLOAT, d DOUBLE, s VARCHAR(50), b VARBINARY(20),
    at DATETIME(6), seen TIMESTAMP(3) NULL, on_day DATE, flag TINYINT(1), k TIME(2), `Odd``Name` INT)";
const POSTGRES_TABLE: &str = "CREATE TABLE t (
    id bigint PRIMARY KEY, n numeric(12,3), f real, d double precision, s varchar(50), b bytea,
    at timestamp(6), seen timestamptz(3), on_day date, flag boolean, k interval(2), \"Odd`Name\" int)";
const ROWS: [&str; 3] = [
    "(1, 1.5, 0.1, 1e20, 'é#~''x', NULL, '2024-02-29 23:59:59.123456', '2024-01-01 00:00:00', '1999-12-31', '1', '12:30:01.5', 7)",
    "(2, -0.001, 3.4e38, 1.7976931348623157e308, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '0', '30:00:00', -1)",
];

async fn fill_mysql(server: &Server, rows: &[&str]) -> String {
    let database = server.create_database("digest").await;
    let mut conn = server.mysql().await;
    conn.query_drop(format!("USE `{database}`")).await.unwrap();
    conn.query_drop("SET time_zone = '+00:00'").await.unwrap();
    conn.query_drop(MYSQL_TABLE).await.unwrap();
    for row in rows {
        conn.query_drop(format!("INSERT INTO t VALUES {row}")).await.unwrap();
    }
    conn.query_drop("UPDATE t SET b = x'00ff' WHERE id = 1").await.unwrap();
    conn.disconnect().await.unwrap();
    database
}

async fn fill_postgres(server: &Server) -> String {
    let database = server.create_database("digest").await;
    let client = server.postgres(&database).await;
    client.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    client.batch_execute(POSTGRES_TABLE).await.unwrap();
    for row in ROWS {
        client.batch_execute(&format!("INSERT INTO t VALUES {row}")).await.unwrap();
    }
    client.batch_execute(r"UPDATE t SET b = '\x00ff' WHERE id = 1").await.unwrap();
    database
}

#[tokio::test]
async fn equal_tables_have_equal_digests_on_every_server() {
    let Some(maria) = mariadb() else { return };
    let expected = table_digest(maria, &fill_mysql(maria, &ROWS).await, "t");
    assert_eq!(expected.rows, 3);
    let mut reversed = ROWS;
    reversed.reverse();
    assert_eq!(table_digest(maria, &fill_mysql(maria, &reversed).await, "t"), expected);
    if let Some(server) = mysql() {
        assert_eq!(table_digest(server, &fill_mysql(server, &ROWS).await, "t"), expected);
    }
    if let Some(server) = postgres() {
        assert_eq!(table_digest(server, &fill_postgres(server).await, "t"), expected);
    }
}

#[tokio::test]
async fn one_different_cell_changes_the_digest() {
    let Some(server) = mariadb() else { return };
    let database = fill_mysql(server, &ROWS).await;
    let before = table_digest(server, &database, "t");
    let before_of_key = table_digest_of(server, &database, "t", &["id", "n"]);
    let mut conn = server.mysql().await;
    conn.query_drop(format!("UPDATE `{database}`.t SET s = NULL WHERE id = 2")).await.unwrap();
    let after = table_digest(server, &database, "t");
    assert_eq!(before.rows, after.rows);
    assert_ne!(before.content, after.content);
    assert_eq!(table_digest_of(server, &database, "t", &["id", "n"]), before_of_key);
}

#[tokio::test]
#[should_panic(expected = "does not exist")]
async fn a_missing_table_has_no_digest() {
    let Some(server) = mariadb() else { panic!("skipped: does not exist") };
    let database = server.create_database("digest").await;
    table_digest(server, &database, "nothing");
}
