//! Crashes of a job that reads a topic: killed at random moments while messages come, the table is what the messages lead to.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use canalis_testkit::{mariadb, rocketmq, table_digest};
use mysql_async::prelude::Queryable;
use rand::Rng;

use super::{
    cases::{Path2Table, row},
    client::{New, create, fresh, put},
};

const KILLS: u32 = 10;
const QUEUES: u32 = 4;
const KEYS: u32 = 500;
const BATCH: u32 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn crash_a_job_that_reads_a_topic() {
    let (Some(rocket), Some(maria)) = (rocketmq(), mariadb()) else { return };
    let topic = fresh("crash");
    create(rocket, &topic, QUEUES);
    let job = Path2Table::new(rocket, maria, &topic, "", "  parallelism: 2\n").await;
    let mut canalis = job.start();
    let life = || Duration::from_millis(rand::rng().random_range(100..2_000));
    let (mut kills, mut due, mut count) = (0, Instant::now() + life(), 0_u32);
    let mut expected: BTreeMap<u32, Option<String>> = BTreeMap::new();
    while kills < KILLS {
        // Every key has its queue; every tenth message of it is a delete.
        let mut queues: Vec<Vec<(String, String)>> = vec![Vec::new(); QUEUES as usize];
        for _ in 0..BATCH {
            count += 1;
            let id = rand::rng().random_range(0..KEYS);
            let value = if count.is_multiple_of(10) { None } else { Some(format!("v{count}")) };
            let body = value.as_ref().map(|v| row(id, v)).unwrap_or_default();
            queues[(id % QUEUES) as usize].push((format!("{{\"id\":{id}}}"), body));
            expected.insert(id, value);
        }
        for (queue, messages) in (0..).zip(&queues) {
            let messages: Vec<New<'_>> =
                messages.iter().map(|(key, body)| (Some(key.as_str()), None, body.as_str())).collect();
            put(rocket, &topic, queue, &messages);
        }
        if Instant::now() >= due {
            assert!(canalis.kill9(), "it ended by itself: {}", canalis.log());
            kills += 1;
            canalis = job.start();
            due = Instant::now() + life();
        }
    }
    let mut conn = maria.mysql().await;
    let database = &job.database;
    conn.query_drop(format!("CREATE TABLE {database}.expected LIKE {database}.t")).await.unwrap();
    let rows = expected.into_iter().filter_map(|(id, value)| Some((id, value?)));
    conn.exec_batch(format!("INSERT INTO {database}.expected VALUES (?, ?)"), rows).await.unwrap();
    let (here, there) =
        (table_digest(maria, database, "expected"), async || table_digest(maria, database, "t"));
    canalis.until(async || there().await == here).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(there().await, here);
    eprintln!("{KILLS} kills within {count} messages, {} rows left", here.rows);
}
