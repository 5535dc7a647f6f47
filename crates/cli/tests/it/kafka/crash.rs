//! Crashes on the way through a broker: database to topics, topics to another database, both killed at random moments under
//! load, and the broker too; afterwards both databases are equal by their own digests, and every key's changes stand once
//! and in order in the topics.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use canalis_testkit::{OwnedServer, Server, ServerKind, start_kafka, table_digest_of};
use mysql_async::prelude::Queryable;
use rand::Rng;
use serde_json::Value;

use super::{
    client::{Stored, committed, exists, fresh},
    paths::broker,
};
use crate::it::{
    crash::marks,
    load::{self, Load, TABLES},
    process::{Canalis, sink, source},
};

const ROWS: u64 = 10_000;
/// Kills of each of the two jobs.
const KILLS: u32 = 20;
/// Kills of the broker.
const BROKER_KILLS: u32 = 3;
/// As in the crash tests without a broker.
const MARKS: [i64; 2] = [-1_000, -2_000];

/// A job and when it is killed next.
struct Killed {
    directory: tempfile::TempDir,
    pipeline: String,
    running: Canalis,
    until: Instant,
    kills: u32,
}

impl Killed {
    fn start(pipeline: String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let running = Canalis::start(directory.path(), &pipeline);
        Self { directory, pipeline, running, until: Instant::now() + life(), kills: 0 }
    }

    fn restart(&mut self) {
        self.running = Canalis::start(self.directory.path(), &self.pipeline);
        self.until = Instant::now() + life();
    }

    fn kill(&mut self) {
        assert!(self.running.kill9(), "it ended by itself: {}", self.running.log());
        self.kills += 1;
        self.restart();
    }

    fn kill_when_due(&mut self) {
        if self.kills < KILLS && Instant::now() >= self.until {
            self.kill();
        }
    }
}

fn life() -> Duration {
    Duration::from_millis(rand::rng().random_range(100..2_500))
}

async fn survives(from: Option<&'static Server>, to: Option<&'static Server>, format: &str) {
    let (Some(from), Some(to)) = (from, to) else { return };
    let Some(mut kafka) = start_kafka(&[]) else { return };
    let database = from.create_database("kafkacrash").await;
    let mut conn = from.mysql().await;
    load::create(&mut conn, &database, ROWS).await;
    let target = match to.kind {
        ServerKind::Postgres => to.create_database("kafkacrash").await,
        _ => format!("{database}_copy"),
    };
    let prefix = fresh("crash");
    let pipeline = "pipeline:\n  parallelism: 2\n  execution.checkpointing.interval: 300 ms\n";
    let into = source(from, &format!("{database}.\\.*"), "  scan.incremental.snapshot.chunk.size: 2000\n")
        + &broker(
            "sink",
            &kafka,
            &format!(
                "  topic: \"{prefix}.{{table}}\"\n  value.format: {format}\n  sink.topic.partitions: 3\n{}",
                writing(format)
            ),
        )
        + pipeline;
    let mut out = broker(
        "source",
        &kafka,
        &format!(
            "  topic-pattern: {prefix}\\..*\n  value.format: {format}\n  scan.topic-partition-discovery.interval: 500 ms\n"
        ),
    ) + &sink(to, &target);
    if to.kind != ServerKind::Postgres {
        // No table is known when the job starts.
        to.mysql().await.query_drop(format!("CREATE DATABASE {target}")).await.unwrap();
        out += &format!(
            "  database: {target}\nroute:\n  - source-table: {database}.\\.*\n    sink-table: {target}.<>\n    replace-symbol: <>\n"
        );
    }
    out += pipeline;
    let load = Load::start(from, &database, ROWS, 7).await;
    let mut first = Killed::start(into);
    let strict_from = snapshot(&mut first, &kafka, from, &database, &prefix).await;
    let mut second = Killed::start(out);
    kill_all(&mut kafka, &mut first, &mut second).await;
    let rate = load.end().await;
    for mark in MARKS {
        load::mark(&mut conn, &database, mark).await;
        let logs = format!("{} and {}", first.directory.path().display(), second.directory.path().display());
        let deadline = Instant::now() + Duration::from_secs(120);
        while !marks(to, &target, &database, mark).await {
            assert!(!first.running.has_ended(), "it ended by itself: {}", first.running.log());
            assert!(!second.running.has_ended(), "it ended by itself: {}", second.running.log());
            if Instant::now() > deadline {
                panic!("{logs}: not there: {}\n---\n{}", first.running.log(), second.running.log());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert!(first.running.stop().success(), "{}", first.running.log());
    assert!(second.running.stop().success(), "{}", second.running.log());
    for table in TABLES {
        let there_table = match to.kind {
            ServerKind::Postgres => format!("{database}.{table}"),
            _ => table.to_owned(),
        };
        let here = table_digest_of(from, &database, table, &[]);
        let there = table_digest_of(to, &target, &there_table, &[]);
        assert_eq!(here, there, "table {table}: {}\n---\n{}", first.running.log(), second.running.log());
    }
    for (table, key) in [("keyed", &["id"][..]), ("composite", &["a", "b"]), ("uniq", &["id"])] {
        let messages = committed(&kafka, &format!("{prefix}.{table}"));
        let left = follow(&messages, key, format, &strict_from[table]);
        let rows = table_digest_of(from, &database, table, &[]).rows;
        assert_eq!(left, rows, "rows that the messages of {table} lead to");
    }
    eprintln!(
        "{from} to {to} by {format}: {KILLS} kills of each job, {BROKER_KILLS} of the broker, {rate} row changes per second"
    );
}

/// Options of the format as it is written.
fn writing(format: &str) -> &'static str {
    if format == "debezium-json" { "  debezium-json.include-schema.enabled: true\n" } else { "" }
}

/// Kills the first job inside its snapshot, lets it catch up, and stops it. Returns where the topics of tables with a key end then.
///
/// A snapshot that goes on after a crash sees a newer view, and changes between the two views are written once more, with the
/// same outcome for each key. From the returned offsets on every change stands exactly once.
async fn snapshot(
    first: &mut Killed,
    kafka: &Server,
    from: &Server,
    database: &str,
    prefix: &str,
) -> HashMap<&'static str, HashMap<i32, i64>> {
    for _ in 0..6 {
        tokio::time::sleep(life() / 2).await;
        first.kill();
    }
    let topics = ["keyed", "composite", "uniq"];
    let has_mark = |mark: i64| {
        topics.iter().all(|table| {
            let topic = format!("{prefix}.{table}");
            let mark = mark.to_string();
            exists(kafka, &topic)
                && committed(kafka, &topic).iter().any(|m| m.value.iter().any(|v| v.contains(&mark)))
        })
    };
    let mut conn = from.mysql().await;
    // The second can only come by the stream, behind everything that the views differ in.
    for mark in [-5_000, -6_000] {
        load::mark(&mut conn, database, mark).await;
        first.running.until(async || has_mark(mark)).await;
    }
    assert!(first.running.stop().success(), "{}", first.running.log());
    let ends = topics.map(|table| {
        let mut ends = HashMap::new();
        for message in committed(kafka, &format!("{prefix}.{table}")) {
            ends.insert(message.partition, message.offset);
        }
        (table, ends)
    });
    first.restart();
    first.kills = 0;
    HashMap::from(ends)
}

async fn kill_all(kafka: &mut OwnedServer, first: &mut Killed, second: &mut Killed) {
    let mut broker_kills = 0;
    while first.kills < KILLS || second.kills < KILLS || broker_kills < BROKER_KILLS {
        tokio::time::sleep(Duration::from_millis(20)).await;
        first.kill_when_due();
        second.kill_when_due();
        if broker_kills < BROKER_KILLS && first.kills > (broker_kills + 1) * KILLS / (BROKER_KILLS + 1) {
            kafka.kill9();
            tokio::time::sleep(life()).await;
            kafka.restart();
            broker_kills += 1;
        }
    }
}

/// Follows the changes of every key: behind the given offsets each begins where the one before it ended. Returns the rows that
/// are left.
fn follow(messages: &[Stored], key: &[&str], format: &str, strict_from: &HashMap<i32, i64>) -> u64 {
    let mut rows: HashMap<String, Value> = HashMap::new();
    let mut lanes: HashMap<String, i32> = HashMap::new();
    for message in messages {
        let Some(value) = &message.value else { continue };
        let value: Value = serde_json::from_str(value).unwrap();
        let strict = strict_from.get(&message.partition).is_none_or(|end| message.offset > *end);
        for (before, after) in changes(&value, format) {
            for (row, is_after) in [(&before, false), (&after, true)] {
                let Some(row) = row else { continue };
                let name = key.iter().map(|k| row[*k].to_string()).collect::<Vec<_>>().join("|");
                let lane = *lanes.entry(name.clone()).or_insert(message.partition);
                assert_eq!(lane, message.partition, "key {name} is in two partitions");
                if is_after {
                    let same_key = before.as_ref().is_some_and(|b| key.iter().all(|k| b[*k] == row[*k]));
                    let known = rows.insert(name.clone(), row.clone());
                    assert!(
                        !strict || known.is_none() || same_key,
                        "key {name} twice at offset {}",
                        message.offset
                    );
                } else {
                    let gone = after.as_ref().is_none_or(|a| key.iter().any(|k| a[*k] != row[*k]));
                    let known = if gone { rows.remove(&name) } else { rows.get(&name).cloned() };
                    assert!(
                        !strict || known.as_ref() == Some(row),
                        "key {name} at offset {}: {:#?}",
                        message.offset,
                        messages.iter().filter(|m| mentions(m, row, key)).collect::<Vec<_>>()
                    );
                }
            }
        }
    }
    rows.len() as u64
}

/// Whether a message has the row's key in it, for the message of a failure.
fn mentions(message: &Stored, row: &Value, key: &[&str]) -> bool {
    message.value.as_ref().is_some_and(|v| key.iter().all(|k| v.contains(&format!("\"{k}\":{}", row[*k]))))
}

/// The row before and after of each change of a message.
fn changes(value: &Value, format: &str) -> Vec<(Option<Value>, Option<Value>)> {
    let there = |row: &Value| (!row.is_null()).then(|| row.clone());
    if format == "debezium-json" {
        let payload = &value["payload"];
        return vec![(there(&payload["before"]), there(&payload["after"]))];
    }
    let data = value["data"].as_array().unwrap();
    let mut found = Vec::new();
    for (index, row) in data.iter().enumerate() {
        found.push(match value["type"].as_str().unwrap() {
            "INSERT" => (None, there(row)),
            "DELETE" => (there(row), None),
            "UPDATE" => {
                let mut before = row.as_object().unwrap().clone();
                for (name, old) in value["old"][index].as_object().unwrap() {
                    before.insert(name.clone(), old.clone());
                }
                (Some(Value::Object(before)), there(row))
            }
            other => panic!("type {other}"),
        });
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_mariadb_by_canal_json_to_mysql() {
    survives(canalis_testkit::mariadb(), canalis_testkit::mysql(), "canal-json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_mysql_by_debezium_json_to_postgres() {
    survives(canalis_testkit::mysql(), canalis_testkit::postgres(), "debezium-json").await;
}
