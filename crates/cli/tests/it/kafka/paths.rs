//! Whole paths: a topic into a database, a database into a topic.

use canalis_testkit::{kafka, mariadb};
use mysql_async::prelude::Queryable;

use super::client::{committed, create, exists, fresh, put};
use crate::it::process::{Canalis, sink, source};

/// A `source` or `sink` block for a broker.
pub fn broker(role: &str, server: &canalis_testkit::Server, more: &str) -> String {
    format!("{role}:\n  type: kafka\n  properties.bootstrap.servers: 127.0.0.1:{}\n{more}", server.port)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_of_json_rows_becomes_a_table() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("rows");
    let database = maria.create_database("kafka").await;
    create(kafka, &topic, 3, &[]).await;
    for id in 0..30 {
        let value = format!(r#"{{"id":{id},"name":"näme {id}","amount":"{id}.50"}}"#);
        put(kafka, &topic, id % 3, &[(None, Some(&value))]);
    }
    let pipeline = broker(
        "source",
        kafka,
        &format!(
            "  topic: {topic}\n  value.format: json\n  table: {database}.rows\n  primary-keys: id\n  \
             schema: id INT NOT NULL, name VARCHAR(20), amount DECIMAL(10,2)\n"
        ),
    ) + &sink(maria, &database);
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let sums = async |expected: &str| {
        let query = format!("SELECT CONCAT_WS(' ', COUNT(*), SUM(amount)) FROM {database}.rows");
        maria
            .mysql()
            .await
            .query_first(query)
            .await
            .is_ok_and(|found: Option<String>| found.as_deref() == Some(expected))
    };
    canalis.until(async || sums("30 450.00").await).await;
    // What comes later arrives too, a change of a row among it.
    put(kafka, &topic, 0, &[(None, Some(r#"{"id":0,"name":"changed","amount":"100.25"}"#))]);
    canalis.until(async || sums("30 549.75").await).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_becomes_a_topic() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let database = maria.create_database("kafka").await;
    let mut conn = maria.mysql().await;
    for statement in [
        format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(20))"),
        format!("INSERT INTO {database}.t VALUES (1, 'a'), (2, 'b')"),
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let topic = fresh("changes");
    let pipeline = source(maria, &format!("{database}.t"), "")
        + &broker("sink", kafka, &format!("  topic: {topic}\n  value.format: json\n"));
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    let messages = || -> Vec<(String, Option<String>)> {
        committed(kafka, &topic).into_iter().map(|m| (m.key.unwrap(), m.value)).collect()
    };
    canalis.until(async || exists(kafka, &topic) && messages().len() == 2).await;
    for statement in
        ["UPDATE t SET v = 'x' WHERE id = 1", "DELETE FROM t WHERE id = 2", "UPDATE t SET id = 3"]
    {
        conn.query_drop(format!("USE {database}")).await.unwrap();
        conn.query_drop(statement).await.unwrap();
    }
    canalis.until(async || messages().len() == 6).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    let mut seen = messages();
    seen.sort();
    let row = |id: i32, v: &str| (format!("{{\"id\":{id}}}"), Some(format!("{{\"id\":{id},\"v\":\"{v}\"}}")));
    let gone = |id: i32| (format!("{{\"id\":{id}}}"), None);
    let mut expected = vec![row(1, "a"), row(2, "b"), row(1, "x"), gone(2), gone(1), row(3, "x")];
    expected.sort();
    assert_eq!(seen, expected);
}
