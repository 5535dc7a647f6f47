//! The cases of brokers, by their ids.

use std::path::Path;

use canalis_testkit::{Server, kafka, mariadb, start_kafka};
use mysql_async::prelude::Queryable;

use super::{
    client::{create, fresh, group_offsets, grow, put, put_transaction, trim},
    paths::broker,
};
use crate::it::process::{Canalis, sink};

/// Rows of one declared table out of a topic into MariaDB.
struct Path2Table {
    database: String,
    pipeline: String,
    directory: tempfile::TempDir,
}

impl Path2Table {
    async fn new(kafka: &Server, maria: &Server, topic: &str, source: &str, rest: &str) -> Self {
        let database = maria.create_database("kafka").await;
        let pipeline = broker(
            "source",
            kafka,
            &format!(
                "  topic: {topic}\n  table: {database}.t\n  schema: id INT, v STRING\n  primary-keys: id\n{source}"
            ),
        ) + &sink(maria, &database)
            + "pipeline:\n  execution.checkpointing.interval: 200 ms\n"
            + rest;
        Self { database, pipeline, directory: tempfile::tempdir().unwrap() }
    }

    fn start(&self) -> Canalis {
        Canalis::start(self.directory.path(), &self.pipeline)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// `id=v` of all rows in order of their ids; empty until the table is there.
    async fn rows(&self, maria: &Server) -> String {
        let query = format!(
            "SELECT GROUP_CONCAT(CONCAT(id, '=', v) ORDER BY id SEPARATOR ' ') FROM {}.t",
            self.database
        );
        maria
            .mysql()
            .await
            .query_first::<Option<String>, _>(query)
            .await
            .ok()
            .flatten()
            .flatten()
            .unwrap_or_default()
    }
}

fn row(id: u32, v: &str) -> String {
    format!(r#"{{"id":{id},"v":"{v}"}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_01_tombstones_delete_by_key() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("kf01");
    create(kafka, &topic, 1, &[]).await;
    let job = Path2Table::new(kafka, maria, &topic, "  value.format: json\n", "").await;
    let key = r#"{"id":1}"#;
    put(
        kafka,
        &topic,
        0,
        &[
            (Some(key), Some(&row(1, "a"))),
            (Some(r#"{"id":2}"#), Some(&row(2, "b"))),
            (Some(key), None),
            // Once more, and one of a row that never was.
            (Some(key), None),
            (Some(r#"{"id":9}"#), None),
            (Some(r#"{"id":3}"#), Some(&row(3, "c"))),
        ],
    );
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "2=b 3=c").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_03_the_last_value_of_each_key_wins() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("kf03");
    create(kafka, &topic, 8, &[]).await;
    let job = Path2Table::new(kafka, maria, &topic, "  value.format: json\n", "  parallelism: 4\n").await;
    for key in 0..10_u32 {
        let values: Vec<String> = (0..100).map(|n| row(key, &format!("v{n}"))).collect();
        let text = key.to_string();
        let messages: Vec<_> = values.iter().map(|v| (Some(text.as_str()), Some(v.as_str()))).collect();
        put(kafka, &topic, i32::try_from(key % 8).unwrap(), &messages);
    }
    let mut canalis = job.start();
    let expected: Vec<String> = (0..10).map(|key| format!("{key}=v99")).collect();
    canalis.until(async || job.rows(maria).await == expected.join(" ")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_04_a_message_that_does_not_decode_stops_the_job_exactly_there_or_is_kept() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("kf04");
    create(kafka, &topic, 1, &[]).await;
    let bad = [r#"{"id":1,"v":"a"}"#, r#"{"id":"#, r#"{"id":"abc"}"#, r#"{"id":3,"v":"c"}"#];
    put(kafka, &topic, 0, &bad.map(|v| (None, Some(v))));
    let mut job = Path2Table::new(kafka, maria, &topic, "  value.format: json\n", "").await;
    // The policy `fail`: what came before is there, the message is named, nothing after it is.
    let mut canalis = job.start();
    assert!(!canalis.wait().success());
    assert!(canalis.log().contains(&format!("{topic}-0@1")), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, "1=a");
    // The policy `queue` goes on there.
    job.pipeline.push_str("  dead-letter.policy: queue\n");
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "1=a 3=c").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    let letters = std::fs::read_to_string(job.path().join("state/dead-letters.jsonl")).unwrap();
    let letters: Vec<serde_json::Value> = letters.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(letters.len(), 2, "{letters:?}");
    for (letter, (offset, raw)) in letters.iter().zip([(1, bad[1]), (2, bad[2])]) {
        assert_eq!(letter["payload"]["topic"], topic.as_str());
        assert_eq!(letter["payload"]["value"], raw);
        assert_eq!(letter["position"]["detail"], format!("{topic}-0@{offset}"));
        assert!(!letter["reason"].as_str().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_05_messages_that_are_gone_are_told_and_never_jumped_over_in_silence() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("kf05");
    create(kafka, &topic, 1, &[]).await;
    let values = |range: std::ops::Range<u32>| range.map(|id| row(id, "x")).collect::<Vec<_>>();
    let send = |values: Vec<String>| {
        put(kafka, &topic, 0, &values.iter().map(|v| (None, Some(v.as_str()))).collect::<Vec<_>>());
    };
    send(values(0..10));
    let job = Path2Table::new(kafka, maria, &topic, "  value.format: json\n", "").await;
    let mut canalis = job.start();
    let ids = |range: Vec<u32>| range.iter().map(|id| format!("{id}=x")).collect::<Vec<_>>().join(" ");
    canalis.until(async || job.rows(maria).await == ids((0..10).collect())).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    send(values(10..60));
    trim(kafka, &topic, 0, 50).await;
    let mut canalis = job.start();
    assert!(!canalis.wait().success());
    let log = canalis.log();
    assert!(log.contains("CNL-2004") && log.contains("10 to 49 are gone (40 messages)"), "{log}");
    // Told to go on at the oldest there is.
    let job = Path2Table {
        pipeline: job
            .pipeline
            .replace("  primary-keys: id\n", "  primary-keys: id\n  scan.position-lost: earliest\n"),
        ..job
    };
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == ids((0..10).chain(50..60).collect())).await;
    assert!(canalis.log().contains("10 to 49 are gone"), "{}", canalis.log());
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_06_partitions_that_appear_are_read_from_their_beginning() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("kf06");
    create(kafka, &topic, 2, &[]).await;
    let options = "  value.format: json\n  scan.startup.mode: latest-offset\n  \
                   scan.topic-partition-discovery.interval: 500 ms\n";
    put(kafka, &topic, 0, &[(None, Some(&row(100, "before")))]);
    let job = Path2Table::new(kafka, maria, &topic, options, "").await;
    let mut canalis = job.start();
    canalis.until(async || super::super::process::newest_checkpoint(job.path()) > 0).await;
    grow(kafka, &topic, 4).await;
    for partition in 0..4 {
        let id = u32::try_from(partition).unwrap();
        put(kafka, &topic, partition, &[(None, Some(&row(id, "new")))]);
    }
    canalis.until(async || job.rows(maria).await == "0=new 1=new 2=new 3=new").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_07_messages_of_aborted_transactions_are_not_read() {
    let (Some(kafka), Some(maria)) = (kafka(), mariadb()) else { return };
    let topic = fresh("kf07");
    create(kafka, &topic, 1, &[]).await;
    put_transaction(kafka, &topic, &[&row(1, "no"), &row(2, "no"), &row(3, "no")], false);
    put_transaction(kafka, &topic, &[&row(4, "yes"), &row(5, "yes")], true);
    let bounded = "  value.format: json\n  scan.bounded.mode: latest-offset\n";
    let job = Path2Table::new(kafka, maria, &topic, bounded, "").await;
    // Also a bounded read ends, though the last places of the partition hold no message.
    put_transaction(kafka, &topic, &[&row(6, "no")], false);
    let mut canalis = job.start();
    assert!(canalis.wait().success(), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, "4=yes 5=yes");
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_08_after_a_failure_every_partition_is_read_again() {
    let Some(maria) = mariadb() else { return };
    let Some(mut kafka) = start_kafka(&[]) else { return };
    let topic = fresh("kf08");
    create(&kafka, &topic, 4, &[]).await;
    let group = fresh("group");
    let options = format!("  value.format: json\n  properties.group.id: {group}\n");
    let job = Path2Table::new(&kafka, maria, &topic, &options, "").await;
    let fill = |kafka: &Server, from: u32| {
        for partition in 0..4 {
            let id = from + u32::try_from(partition).unwrap();
            put(kafka, &topic, partition, &[(None, Some(&row(id, "x")))]);
        }
    };
    fill(&kafka, 0);
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await.split(' ').count() == 4).await;
    kafka.kill9();
    kafka.restart();
    fill(&kafka, 4);
    canalis.until(async || job.rows(maria).await.split(' ').count() == 8).await;
    // The lag that tools see goes to nothing.
    canalis.until(async || group_offsets(&kafka, &group, &topic, 4) == [Some(2); 4]).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}
