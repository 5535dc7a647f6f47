//! Values: a table with every column type of MySQL and of MariaDB, extremes included, arrives equal by snapshot and
//! by stream in MySQL and MariaDB, and as documented in PostgreSQL and SQLite.

mod columns;
mod documented;
mod postgres;
mod sqlite;

use std::time::Duration;

use canalis_testkit::{Server, ServerKind, table_digest, table_digest_of, wait_until};
use mysql_async::prelude::Queryable;

use self::columns::{COLUMNS, ColumnOf, all_columns, create, insert};
use super::process::{Canalis, sink, source};

/// Snapshot rows 1–4, then rows 101–104 by stream, then an update of every row.
async fn copy(from: &Server, to: &Server, columns: &[ColumnOf]) {
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
fn same(from: &Server, database: &str, to: &Server, target: &str, columns: &[ColumnOf]) {
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
