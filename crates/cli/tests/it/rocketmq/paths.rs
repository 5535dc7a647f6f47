//! Whole paths: a topic into a database, a database into a topic.

use canalis_testkit::{mariadb, rocketmq};
use mysql_async::prelude::Queryable;

use super::client::{create, fresh, put, queues, stored};
use crate::it::process::{Canalis, sink, source};

/// A `source` or `sink` block for a broker.
pub fn broker(role: &str, server: &canalis_testkit::Server, more: &str) -> String {
    format!("{role}:\n  type: rocketmq\n  name-server: 127.0.0.1:{}\n{more}", server.port)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_of_json_rows_becomes_a_table() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("rows");
    let database = maria.create_database("rocketmq").await;
    create(rocket, &topic, 3);
    for id in 0..30 {
        let value = format!(r#"{{"id":{id},"name":"näme {id}","amount":"{id}.50"}}"#);
        put(rocket, &topic, id % 3, &[(None, None, &value)]);
    }
    let pipeline = broker(
        "source",
        rocket,
        &format!(
            "  topic-pattern: \"{topic}.*\"\n  value.format: json\n  table: {database}.rows\n  primary-keys: id\n  \
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
    put(rocket, &topic, 0, &[(None, None, r#"{"id":0,"name":"changed","amount":"100.25"}"#)]);
    canalis.until(async || sums("30 549.75").await).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_becomes_a_topic() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let database = maria.create_database("rocketmq").await;
    let mut conn = maria.mysql().await;
    for statement in [
        format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, v MEDIUMTEXT)"),
        format!("INSERT INTO {database}.t VALUES (1, 'a'), (2, 'b')"),
        // Brokers take 4 MiB.
        format!("INSERT INTO {database}.t VALUES (7, REPEAT('x', 5000000))"),
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    let topic = fresh("changes");
    let options = format!("  topic: {topic}\n  value.format: json\n  sink.tag: cdc\n");
    let pipeline = source(maria, &format!("{database}.t"), "")
        + &broker("sink", rocket, &options)
        + "pipeline:\n  dead-letter.policy: queue\n";
    let directory = tempfile::tempdir().unwrap();
    let mut canalis = Canalis::start(directory.path(), &pipeline);
    canalis.until(async || stored(rocket, &topic).len() == 2).await;
    conn.query_drop(format!("USE {database}")).await.unwrap();
    for statement in [
        "UPDATE t SET v = 'x' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "DELETE FROM t WHERE id = 7",
        "UPDATE t SET id = 3",
    ] {
        conn.query_drop(statement).await.unwrap();
    }
    canalis.until(async || stored(rocket, &topic).len() == 7).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(queues(rocket, &topic), Some(4));
    let found = stored(rocket, &topic);
    assert!(found.iter().all(|m| m.tag.as_deref() == Some("cdc")), "{found:?}");
    // All changes of a key stand in one queue, in their order.
    let of = |id: u32| {
        let key = format!("{{\"id\":{id}}}");
        let of_key: Vec<_> = found.iter().filter(|m| m.key.as_deref() == Some(&key)).collect();
        assert!(of_key.iter().all(|m| m.queue == of_key[0].queue), "{of_key:?}");
        of_key.iter().map(|m| m.value.clone()).collect::<Vec<_>>()
    };
    let row = |id: u32, v: &str| Some(format!("{{\"id\":{id},\"v\":\"{v}\"}}"));
    assert_eq!(of(1), [row(1, "a"), row(1, "x"), None]);
    assert_eq!(of(2), [row(2, "b"), None]);
    assert_eq!(of(3), [row(3, "x")]);
    assert_eq!(of(7), [None]);
    let letters = std::fs::read_to_string(directory.path().join("state/dead-letters.jsonl")).unwrap();
    assert!(letters.lines().count() == 1 && letters.contains("larger than the 4194304"), "{letters:.300}");
}
