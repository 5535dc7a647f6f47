//! Crashes: the job is killed at random moments while messages come; afterwards every row is there as its last message says.

use std::time::Duration;

use canalis_testkit::{mariadb, start_pulsar};
use rand::Rng;

use super::{
    cases::{Job, put_rows},
    client::{create, fresh},
};

const KILLS: u32 = 10;
const PARTS: u32 = 3;
/// Rows of each partition; every round changes all of them.
const ROWS: u32 = 500;

#[tokio::test(flavor = "multi_thread")]
async fn crash_pulsar_to_mariadb() {
    let Some(maria) = mariadb() else { return };
    let Some(mut pulsar) = start_pulsar(&[]) else { return };
    let topic = fresh("crash");
    create(&pulsar, &topic, PARTS);
    let job = Job::new(&pulsar, maria, &topic, "", "  parallelism: 2\n").await;
    for round in 0..KILLS {
        let mut canalis = job.start();
        let life = Duration::from_millis(rand::rng().random_range(50..1500));
        let put = async {
            for n in 0..PARTS {
                let ids = n * ROWS..(n + 1) * ROWS;
                put_rows(&pulsar, &format!("{topic}-partition-{n}"), n != 1, ids, &format!("r{round}")).await;
            }
        };
        tokio::join!(put, tokio::time::sleep(life));
        assert!(canalis.kill9(), "it ended by itself in round {round}: {}", canalis.log());
        if round == KILLS / 2 {
            pulsar.kill9();
            pulsar.restart();
        }
    }
    let mut canalis = job.start();
    let last = format!("r{}", KILLS - 1);
    let expected: Vec<String> = (0..PARTS * ROWS).map(|id| format!("{id}={last}")).collect();
    let expected = expected.join(" ");
    canalis.until(async || job.rows(maria).await == expected).await;
    assert!(canalis.stop().success(), "{}", canalis.log());
    assert_eq!(job.rows(maria).await, expected);
}
