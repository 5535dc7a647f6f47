//! Whole paths: a topic into a database, a database into a topic.

use canalis_testkit::{mariadb, pulsar};
use mysql_async::prelude::Queryable;

use super::client::{backlog, broker, create, exists, fresh, put, stored};
use crate::it::process::{Canalis, sink, source};

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_topic_becomes_a_table_and_its_backlog_goes_down() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let topic = fresh("rows");
    let database = maria.create_database("pulsar").await;
    create(pulsar, &topic, 3);
    for part in 0..3 {
        let rows: Vec<String> = (0..10)
            .map(|n| format!(r#"{{"id":{},"name":"näme {n}","amount":"{n}.50"}}"#, n * 3 + part))
            .collect();
        let messages: Vec<_> = rows.iter().map(|row| (None, Some(row.as_str()))).collect();
        put(pulsar, &format!("{topic}-partition-{part}"), part == 1, &messages).await;
    }
    let pipeline = broker(
        "source",
        pulsar,
        &format!(
            "  topic: {topic}\n  value.format: json\n  table: {database}.rows\n  primary-keys: id\n  subscription: job\n  \
             schema: id INT NOT NULL, name VARCHAR(20), amount DECIMAL(10,2)\n"
        ),
    ) + &sink(maria, &database)
        + "pipeline:\n  execution.checkpointing.interval: 200 ms\n";
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let sums = async |expected: &str| {
        let query = format!("SELECT CONCAT_WS(' ', COUNT(*), SUM(amount)) FROM {database}.rows");
        let found = maria.mysql().await.query_first::<String, _>(query).await;
        found.is_ok_and(|found| found.as_deref() == Some(expected))
    };
    // 3 · (0.50 + 1.50 + … + 9.50)
    canalis.until(async || sums("30 150.00").await).await;
    let changed = r#"{"id":0,"name":"changed","amount":"100.25"}"#;
    put(pulsar, &format!("{topic}-partition-0"), false, &[(None, Some(changed))]).await;
    canalis.until(async || sums("30 249.75").await).await;
    // Of each partition only the last entry stays.
    let left = async || {
        let of = |part| backlog(pulsar, &format!("{topic}-partition-{part}"), "job");
        (of(0), of(2)) == (Some(1), Some(1))
    };
    canalis.until(left).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_becomes_a_topic() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let database = maria.create_database("pulsar").await;
    let mut conn = maria.mysql().await;
    for statement in [
        format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(20))"),
        format!("INSERT INTO {database}.t VALUES (1, 'a'), (2, 'b')"),
        format!("USE {database}"),
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let topic = fresh("changes");
    let pipeline = source(maria, &format!("{database}.t"), "")
        + &broker("sink", pulsar, &format!("  topic: {topic}\n  value.format: json\n"));
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let parts = [topic.clone()];
    let count = async |n: usize| exists(pulsar, &topic) && stored(pulsar, &parts).await.len() == n;
    canalis.until(async || count(2).await).await;
    for statement in
        ["UPDATE t SET v = 'x' WHERE id = 1", "DELETE FROM t WHERE id = 2", "UPDATE t SET id = 3"]
    {
        conn.query_drop(statement).await.unwrap();
    }
    canalis.until(async || count(6).await).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    let mut seen: Vec<_> =
        stored(pulsar, &parts).await.into_iter().map(|(_, key, value)| (key.unwrap(), value)).collect();
    seen[..2].sort();
    let row = |id: i32, v: &str| (format!("{{\"id\":{id}}}"), format!("{{\"id\":{id},\"v\":\"{v}\"}}"));
    let gone = |id: i32| (format!("{{\"id\":{id}}}"), String::new());
    assert_eq!(seen, [row(1, "a"), row(2, "b"), row(1, "x"), gone(2), gone(1), row(3, "x")]);
}
