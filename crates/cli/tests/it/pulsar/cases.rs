//! The cases of brokers, by their ids, as far as Pulsar has what they are about.

use canalis_testkit::{Server, mariadb, pulsar, start_pulsar};
use mysql_async::prelude::Queryable;

use super::client::{backlog, broker, create, fresh, grow, ledgers, put, skip_all, unload};
use crate::it::process::{Canalis, newest_checkpoint, sink};

/// Rows of one declared table out of a topic into MariaDB.
pub struct Job {
    pub database: String,
    pub pipeline: String,
    pub directory: tempfile::TempDir,
}

impl Job {
    pub async fn new(pulsar: &Server, maria: &Server, topic: &str, source: &str, rest: &str) -> Self {
        let database = maria.create_database("pulsar").await;
        let pipeline = broker(
            "source",
            pulsar,
            &format!(
                "  topic: {topic}\n  value.format: json\n  table: {database}.t\n  schema: id INT, v STRING\n  \
                 primary-keys: id\n  subscription: job\n{source}"
            ),
        ) + &sink(maria, &database)
            + "pipeline:\n  execution.checkpointing.interval: 200 ms\n"
            + rest;
        Self { database, pipeline, directory: tempfile::tempdir().unwrap() }
    }

    pub fn start(&self) -> Canalis {
        Canalis::start(self.directory.path(), &self.pipeline)
    }

    /// `id=v` of all rows in order of their ids; empty until the table is there.
    pub async fn rows(&self, maria: &Server) -> String {
        let query = format!(
            "SELECT GROUP_CONCAT(CONCAT(id, '=', v) ORDER BY id SEPARATOR ' ') FROM {}.t",
            self.database
        );
        let mut conn = maria.mysql().await;
        conn.query_drop("SET group_concat_max_len = 10000000").await.unwrap();
        conn.query_first::<Option<String>, _>(query).await.ok().flatten().flatten().unwrap_or_default()
    }
}

pub fn row(id: u32, v: &str) -> String {
    format!(r#"{{"id":{id},"v":"{v}"}}"#)
}

pub async fn put_rows(pulsar: &Server, part: &str, batched: bool, ids: std::ops::Range<u32>, v: &str) {
    let rows: Vec<String> = ids.map(|id| row(id, v)).collect();
    let messages: Vec<_> = rows.iter().map(|row| (None, Some(row.as_str()))).collect();
    put(pulsar, part, batched, &messages).await;
}

fn listed(ids: impl Iterator<Item = u32>, v: &str) -> String {
    ids.map(|id| format!("{id}={v}")).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_01_tombstones_delete_by_key() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    for batched in [false, true] {
        let topic = fresh("kf01");
        create(pulsar, &topic, 0);
        let job = Job::new(pulsar, maria, &topic, "", "").await;
        let key = r#"{"id":1}"#;
        let messages = [
            (Some(key), Some(row(1, "a"))),
            (Some(r#"{"id":2}"#), Some(row(2, "b"))),
            (Some(key), None),
            // Once more, and one of a row that never was.
            (Some(key), None),
            (Some(r#"{"id":9}"#), None),
            (Some(r#"{"id":3}"#), Some(row(3, "c"))),
        ];
        let messages: Vec<_> = messages.iter().map(|(key, value)| (*key, value.as_deref())).collect();
        put(pulsar, &topic, batched, &messages).await;
        let mut canalis = job.start();
        canalis.until(async || job.rows(maria).await == "2=b 3=c").await;
        assert!(canalis.stop().success(), "{}", canalis.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_04_a_message_that_does_not_decode_stops_the_job_exactly_there_or_is_kept() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let topic = fresh("kf04");
    create(pulsar, &topic, 1);
    let part = format!("{topic}-partition-0");
    let bad = [r#"{"id":1,"v":"a"}"#, r#"{"id":"#, r#"{"id":"abc"}"#, r#"{"id":3,"v":"c"}"#];
    // Four messages of one entry.
    put(pulsar, &part, true, &bad.map(|v| (None, Some(v)))).await;
    let mut job = Job::new(pulsar, maria, &topic, "", "").await;
    // The policy `fail`: what came before is there, the message is named, nothing after it is.
    let mut canalis = job.start();
    assert!(!canalis.wait().success());
    let ledger = ledgers(pulsar, &part)[0];
    let at = |index: u32| format!("{part}@{ledger}:0:{index}");
    assert!(canalis.log().contains(&at(2)), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, "1=a");
    // The policy `queue` goes on there.
    job.pipeline.push_str("  dead-letter.policy: queue\n");
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == "1=a 3=c").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    let letters = std::fs::read_to_string(job.directory.path().join("state/dead-letters.jsonl")).unwrap();
    let letters: Vec<serde_json::Value> = letters.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(letters.len(), 2, "{letters:?}");
    for (letter, (index, raw)) in letters.iter().zip([(2, bad[1]), (3, bad[2])]) {
        assert_eq!(letter["payload"]["topic"], topic.as_str());
        assert_eq!(letter["payload"]["lane"], part.as_str());
        assert_eq!(letter["payload"]["value"], raw);
        assert_eq!(letter["position"]["detail"], at(index));
        assert!(!letter["reason"].as_str().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_05_messages_that_are_gone_are_told_and_never_jumped_over_in_silence() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let topic = fresh("kf05");
    create(pulsar, &topic, 0);
    put_rows(pulsar, &topic, false, 0..10, "x").await;
    let job = Job::new(pulsar, maria, &topic, "", "").await;
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == listed(0..10, "x")).await;
    canalis.until(async || backlog(pulsar, &topic, "job") == Some(1)).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    // While it is away, nothing is lost: a topic that has ended its ledgers in the meantime is read on.
    put_rows(pulsar, &topic, false, 10..200, "x").await;
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == listed(0..200, "x")).await;
    canalis.until(async || backlog(pulsar, &topic, "job") == Some(1)).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    // What expires unread is gone.
    put_rows(pulsar, &topic, false, 200..420, "x").await;
    skip_all(pulsar, &topic, "job");
    let before = ledgers(pulsar, &topic)[0];
    // Ledgers are removed when new ones have begun.
    let mut next = 420;
    while ledgers(pulsar, &topic)[0] == before {
        assert!(next < 10_000, "the broker removes nothing");
        put_rows(pulsar, &topic, false, next..next + 60, "x").await;
        next += 60;
        skip_all(pulsar, &topic, "job");
    }
    let mut canalis = job.start();
    assert!(!canalis.wait().success());
    let log = canalis.log();
    assert!(log.contains("CNL-2004") && log.contains(&topic), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_06_partitions_that_appear_are_read_from_their_beginning() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let topic = fresh("kf06");
    create(pulsar, &topic, 2);
    let part = |n: u32| format!("{topic}-partition-{n}");
    let options = "  scan.startup.mode: latest\n  scan.topic-partition-discovery.interval: 500 ms\n";
    put(pulsar, &part(0), false, &[(None, Some(&row(100, "before")))]).await;
    let job = Job::new(pulsar, maria, &topic, options, "").await;
    let mut canalis = job.start();
    canalis.until(async || newest_checkpoint(job.directory.path()) > 0).await;
    grow(pulsar, &topic, 4);
    for n in 0..4 {
        put(pulsar, &part(n), false, &[(None, Some(&row(n, "new")))]).await;
    }
    canalis.until(async || job.rows(maria).await == "0=new 1=new 2=new 3=new").await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn kf_08_readers_that_died_with_the_broker_are_built_again() {
    let Some(maria) = mariadb() else { return };
    let Some(mut pulsar) = start_pulsar(&[]) else { return };
    let topic = fresh("kf08");
    create(&pulsar, &topic, 4);
    let job = Job::new(&pulsar, maria, &topic, "", "").await;
    for n in 0..4 {
        put_rows(&pulsar, &format!("{topic}-partition-{n}"), true, n * 10..n * 10 + 10, "x").await;
    }
    let mut canalis = job.start();
    canalis.until(async || job.rows(maria).await == listed(0..40, "x")).await;
    pulsar.kill9();
    pulsar.restart();
    for n in 4..8 {
        put_rows(&pulsar, &format!("{topic}-partition-{}", n - 4), true, n * 10..n * 10 + 10, "x").await;
    }
    canalis.until(async || job.rows(maria).await == listed(0..80, "x")).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_moves_is_read_on_without_a_row_twice() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let topic = fresh("unload");
    create(pulsar, &topic, 0);
    // A table without a key holds what comes twice twice.
    let mut job = Job::new(pulsar, maria, &topic, "", "").await;
    job.pipeline = job.pipeline.replace("  primary-keys: id\n", "");
    let mut canalis = job.start();
    for round in 0..4 {
        put_rows(pulsar, &topic, round % 2 == 0, round * 20..round * 20 + 20, "x").await;
        canalis.until(async || job.rows(maria).await == listed(0..round * 20 + 20, "x")).await;
        unload(pulsar, &topic);
    }
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, listed(0..80, "x"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_start_up_mode_begins_where_it_says_and_a_bounded_read_ends() {
    let (Some(pulsar), Some(maria)) = (pulsar(), mariadb()) else { return };
    let topic = fresh("modes");
    create(pulsar, &topic, 0);
    put_rows(pulsar, &topic, true, 0..10, "x").await;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() + 1;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    put_rows(pulsar, &topic, false, 10..20, "x").await;
    let bounded = "  scan.bounded.mode: latest\n";
    for (mode, expected) in [
        ("earliest".to_owned(), listed(0..20, "x")),
        ("latest".to_owned(), String::new()),
        (format!("timestamp\n  scan.startup.timestamp-millis: {since}"), listed(10..20, "x")),
    ] {
        let options = format!("{bounded}  scan.startup.mode: {mode}\n");
        let mut job = Job::new(pulsar, maria, &topic, &options, "").await;
        job.pipeline = job.pipeline.replace("  subscription: job\n", "");
        let mut canalis = job.start();
        assert!(canalis.wait().success(), "{mode}: {}", canalis.log());
        assert_eq!(job.rows(maria).await, expected, "{mode}");
    }
    // Where a subscription stands: a first job leaves its last entry, and one more begins with that.
    let job = Job::new(pulsar, maria, &topic, "", "").await;
    let mut canalis = job.start();
    canalis.until(async || backlog(pulsar, &topic, "job") == Some(1)).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    put_rows(pulsar, &topic, false, 20..25, "x").await;
    let job =
        Job::new(pulsar, maria, &topic, &format!("{bounded}  scan.startup.mode: subscription\n"), "").await;
    let mut canalis = job.start();
    assert!(canalis.wait().success(), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, listed(19..25, "x"));
}
