//! The cases of brokers, by their ids.

use std::path::Path;

use canalis_testkit::{Server, mariadb, rocketmq, start_rocketmq};
use mysql_async::prelude::Queryable;

use super::{
    client::{New, create, fresh, group_offset, put, put_transaction, range, remove_oldest},
    paths::broker,
};
use crate::it::process::{Canalis, newest_checkpoint, sink};

/// Rows of one declared table out of a topic into MariaDB.
pub struct Path2Table {
    pub database: String,
    pub pipeline: String,
    directory: tempfile::TempDir,
}

impl Path2Table {
    pub async fn new(rocket: &Server, maria: &Server, topic: &str, source: &str, rest: &str) -> Self {
        let database = maria.create_database("rocketmq").await;
        let pipeline = broker(
            "source",
            rocket,
            &format!(
                "  topic: {topic}\n  value.format: json\n  table: {database}.t\n  schema: id INT, v STRING\n  \
                 primary-keys: id\n{source}"
            ),
        ) + &sink(maria, &database)
            + "pipeline:\n  execution.checkpointing.interval: 200 ms\n"
            + rest;
        Self { database, pipeline, directory: tempfile::tempdir().unwrap() }
    }

    pub fn start(&self) -> Canalis {
        Canalis::start(self.directory.path(), &self.pipeline)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// `id=v` of all rows in order of their ids; empty until the table is there.
    pub async fn rows(&self, maria: &Server) -> String {
        let query = format!(
            "SELECT GROUP_CONCAT(CONCAT(id, '=', v) ORDER BY id SEPARATOR ' ') FROM {}.t",
            self.database
        );
        let found = maria.mysql().await.query_first::<Option<String>, _>(query).await;
        found.ok().flatten().flatten().unwrap_or_default()
    }
}

pub fn row(id: u32, v: &str) -> String {
    format!(r#"{{"id":{id},"v":"{v}"}}"#)
}

fn put_values(rocket: &Server, topic: &str, queue: u32, values: &[String]) {
    let messages: Vec<New<'_>> = values.iter().map(|value| (None, None, value.as_str())).collect();
    put(rocket, topic, queue, &messages);
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_01_tombstones_delete_by_key() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("kf01");
    create(rocket, &topic, 1);
    let job = Path2Table::new(rocket, maria, &topic, "", "").await;
    let key = r#"{"id":1}"#;
    put(
        rocket,
        &topic,
        0,
        &[
            (Some(key), None, &row(1, "a")),
            (Some(r#"{"id":2}"#), None, &row(2, "b")),
            (Some(key), None, ""),
            // Once more, and one of a row that never was.
            (Some(key), None, ""),
            (Some(r#"{"id":9}"#), None, ""),
            (Some(r#"{"id":3}"#), None, &row(3, "c")),
        ],
    );
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "2=b 3=c").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_03_the_last_value_of_each_key_wins() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("kf03");
    create(rocket, &topic, 8);
    let job = Path2Table::new(rocket, maria, &topic, "", "  parallelism: 4\n").await;
    for key in 0..10_u32 {
        let values: Vec<String> = (0..100).map(|n| row(key, &format!("v{n}"))).collect();
        put_values(rocket, &topic, key % 8, &values);
    }
    let mut canalis = job.start();
    let expected: Vec<String> = (0..10).map(|key| format!("{key}=v99")).collect();
    canalis.until(async || job.rows(maria).await == expected.join(" ")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_04_a_message_that_does_not_decode_stops_the_job_exactly_there_or_is_kept() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("kf04");
    create(rocket, &topic, 1);
    let bad = [r#"{"id":1,"v":"a"}"#, r#"{"id":"#, r#"{"id":"abc"}"#, r#"{"id":3,"v":"c"}"#];
    put(rocket, &topic, 0, &bad.map(|v| (None, None, v)));
    let mut job = Path2Table::new(rocket, maria, &topic, "", "").await;
    // The policy `fail`: what came before is there, the message is named, nothing after it is.
    let mut canalis = job.start();
    assert!(!canalis.wait().success());
    assert!(canalis.log().contains(&format!("{topic}@broker-a-0@1")), "{}", canalis.log());
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
        assert_eq!(letter["payload"]["lane"], format!("{topic}@broker-a-0"));
        assert_eq!(letter["position"]["detail"], format!("{topic}@broker-a-0@{offset}"));
        assert!(!letter["reason"].as_str().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_05_messages_that_are_gone_are_told_and_never_jumped_over_in_silence() {
    let Some(maria) = mariadb() else { return };
    let Some(mut rocket) = start_rocketmq(&["mappedFileSizeCommitLog=65536"]) else { return };
    let topic = fresh("kf05");
    create(&rocket, &topic, 1);
    let values = |range: std::ops::Range<u32>| range.map(|id| row(id, "x")).collect::<Vec<_>>();
    put_values(&rocket, &topic, 0, &values(0..10));
    let job = Path2Table::new(&rocket, maria, &topic, "", "").await;
    let mut canalis = job.start();
    let ids = |range: Vec<u32>| range.iter().map(|id| format!("{id}=x")).collect::<Vec<_>>().join(" ");
    canalis.until(async || job.rows(maria).await == ids((0..10).collect())).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    for from in (10..1010).step_by(100) {
        put_values(&rocket, &topic, 0, &values(from..from + 100));
    }
    // What the broker does every night with files that are old enough.
    rocket.stop();
    remove_oldest(&rocket);
    rocket.restart();
    let (low, high) = range(&rocket, &topic, 0);
    assert_eq!(high, 1010);
    let low = u32::try_from(low).unwrap();
    assert!(low > 10, "the broker still has message {low}");
    let gap = format!("10 to {} are gone ({} messages)", low - 1, low - 10);
    let mut canalis = job.start();
    assert!(!canalis.wait().success());
    let log = canalis.log();
    assert!(log.contains("CNL-2004") && log.contains(&gap), "{gap}: {log}");
    // Told to go on at the oldest there is.
    let mut job = job;
    let named = "  primary-keys: id\n";
    job.pipeline = job.pipeline.replace(named, &format!("{named}  scan.position-lost: earliest\n"));
    let mut canalis = job.start();
    let count = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {}.t WHERE id > 9", job.database);
    let there = async || {
        let found: Option<(u32, Option<u32>, Option<u32>)> =
            maria.mysql().await.query_first(&count).await.unwrap();
        found == Some((1010 - low, Some(low), Some(1009)))
    };
    canalis.until(there).await;
    assert!(canalis.log().contains(&gap), "{}", canalis.log());
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_06_queues_that_appear_are_read_from_their_beginning() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("kf06");
    create(rocket, &topic, 2);
    let options = "  scan.startup.mode: latest-offset\n  scan.queue-discovery.interval: 500 ms\n";
    put_values(rocket, &topic, 0, &[row(100, "before")]);
    let job = Path2Table::new(rocket, maria, &topic, options, "").await;
    let mut canalis = job.start();
    canalis.until(async || newest_checkpoint(job.path()) > 0).await;
    create(rocket, &topic, 4);
    for queue in 0..4 {
        put_values(rocket, &topic, queue, &[row(queue, "new")]);
    }
    canalis.until(async || job.rows(maria).await == "0=new 1=new 2=new 3=new").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_07_messages_of_transactions_given_up_are_not_read() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("kf07");
    create(rocket, &topic, 1);
    put_transaction(rocket, &topic, &row(1, "no"), false);
    put_transaction(rocket, &topic, &row(2, "yes"), true);
    put_transaction(rocket, &topic, &row(3, "no"), false);
    let job = Path2Table::new(rocket, maria, &topic, "  scan.bounded.mode: latest-offset\n", "").await;
    let mut canalis = job.start();
    assert!(canalis.wait().success(), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, "2=yes");
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_08_after_a_crash_of_the_broker_every_queue_is_read_on() {
    let Some(maria) = mariadb() else { return };
    let Some(mut rocket) = start_rocketmq(&[]) else { return };
    let topic = fresh("kf08");
    create(&rocket, &topic, 4);
    let group = fresh("group");
    let job = Path2Table::new(&rocket, maria, &topic, &format!("  consumer-group: {group}\n"), "").await;
    let fill = |rocket: &Server, from: u32| {
        for queue in 0..4 {
            put_values(rocket, &topic, queue, &[row(from + queue, "x")]);
        }
    };
    fill(&rocket, 0);
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await.split(' ').count() == 4).await;
    rocket.kill9();
    rocket.restart();
    fill(&rocket, 4);
    canalis.until(async || job.rows(maria).await.split(' ').count() == 8).await;
    // The lag that tools see goes to nothing.
    let at_end = async || (0..4).all(|queue| group_offset(&rocket, &group, &topic, queue) == Some(2));
    canalis.until(at_end).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_messages_with_the_tags_are_read_and_the_others_are_no_lag() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("tags");
    create(rocket, &topic, 1);
    // The hashes of `Aa` and `BB`, by which brokers choose, are the same.
    let tags = [Some("Aa"), Some("BB"), Some("c"), None, Some("other")];
    let values: Vec<String> = (0..5).map(|id| row(id, "x")).collect();
    let messages: Vec<New<'_>> = values.iter().zip(tags).map(|(v, tag)| (None, tag, v.as_str())).collect();
    put(rocket, &topic, 0, &messages);
    let group = fresh("group");
    let options = format!("  tags: Aa || c\n  consumer-group: {group}\n");
    let job = Path2Table::new(rocket, maria, &topic, &options, "").await;
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "0=x 2=x").await;
    canalis.until(async || group_offset(rocket, &group, &topic, 0) == Some(5)).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    // A bounded read ends, though the last places hold nothing that is wanted.
    let bounded = "  tags: c\n  scan.bounded.mode: latest-offset\n";
    let job = Path2Table::new(rocket, maria, &topic, bounded, "").await;
    let mut canalis = job.start();
    assert!(canalis.wait().success(), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, "2=x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_on_where_its_checkpoint_is() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("again");
    create(rocket, &topic, 2);
    for queue in 0..2 {
        put_values(rocket, &topic, queue, &[row(queue, "old")]);
    }
    let job = Path2Table::new(rocket, maria, &topic, "", "").await;
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "0=old 1=old").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    // A row that came again would be there again.
    maria.mysql().await.query_drop(format!("DELETE FROM {}.t", job.database)).await.unwrap();
    for queue in 0..2 {
        put_values(rocket, &topic, queue, &[row(2 + queue, "new")]);
    }
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "2=new 3=new").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_begins_where_it_is_told_to() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("start");
    create(rocket, &topic, 1);
    put_values(rocket, &topic, 0, &[row(1, "x"), row(2, "x"), row(3, "x")]);
    for (start, expect) in [
        ("  scan.startup.mode: specific-offsets\n  scan.startup.specific-offsets: broker-a-0:1\n", "2=x 3=x"),
        ("  scan.startup.mode: timestamp\n  scan.startup.timestamp-millis: 0\n", "1=x 2=x 3=x"),
        ("  scan.startup.mode: timestamp\n  scan.startup.timestamp-millis: 9999999999999\n", ""),
        ("  scan.startup.mode: latest-offset\n", ""),
        ("  scan.startup.mode: group-offsets\n  consumer-group: nobody\n", "1=x 2=x 3=x"),
    ] {
        let options = format!("{start}  scan.bounded.mode: latest-offset\n");
        let job = Path2Table::new(rocket, maria, &topic, &options, "").await;
        let mut canalis = job.start();
        assert!(canalis.wait().success(), "{}", canalis.log());
        assert_eq!(job.rows(maria).await, expect, "{start}");
    }
}
