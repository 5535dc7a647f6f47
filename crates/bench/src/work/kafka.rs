//! Kafka: a table into topics, topics into nothing and into a table, beside a client that only takes the bytes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use canalis_testkit::{OwnedServer, Server};
use mysql_async::{Row, prelude::Queryable};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
};

use super::{ServerCpu, Settings, equal, figures, sink_block, source_block};
use crate::{data, machine, report::Figures, servers, tool::Tool};

const TOPIC: &str = "sb.sbtest1";
const PARTITIONS: i32 = 2;

fn sink(server: &Server, format: &str) -> String {
    format!(
        "sink:\n  type: kafka\n  properties.bootstrap.servers: 127.0.0.1:{}\n  topic: {TOPIC}\n  value.format: {format}\n  \
         sink.topic.partitions: {PARTITIONS}\npipeline:\n  parallelism: 2\n",
        server.port
    )
}

fn source(server: &Server, format: &str, more: &str) -> String {
    format!(
        "source:\n  type: kafka\n  properties.bootstrap.servers: 127.0.0.1:{}\n  topic: {TOPIC}\n  value.format: {format}\n  \
         scan.bounded.mode: latest-offset\n{more}",
        server.port
    )
}

/// The structure of `sbtest1` for formats that do not tell it.
fn declared(format: &str) -> &'static str {
    if format == "canal-json" {
        return "";
    }
    "  schema: \"sb.sbtest1 (id INT NOT NULL, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, PRIMARY KEY (id))\"\n"
}

/// A MariaDB with the table and a broker.
async fn filled(settings: &Settings) -> Result<(OwnedServer, OwnedServer)> {
    let (source, kafka) = (servers::mariadb()?, servers::kafka()?);
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE sb").await?;
    data::fill(&mut conn, "sb", settings.rows, data::Numbering::Plain).await?;
    Ok((source, kafka))
}

/// Messages, bytes and seconds of a client that only takes them, with one thread, and its CPU-seconds.
fn consume_only(server: &Server) -> Result<(u64, u64, Duration, f64)> {
    let before = machine::cpu_seconds(std::process::id());
    let began = Instant::now();
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", format!("127.0.0.1:{}", server.port))
        .set("group.id", "limit")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()?;
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(TOPIC, partition, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    let (mut open, mut messages, mut bytes) = (PARTITIONS, 0, 0);
    while open > 0 {
        match consumer.poll(Duration::from_secs(20)).context("the broker is silent")? {
            Ok(message) => {
                messages += 1;
                bytes += message.payload().map_or(0, <[u8]>::len) as u64;
            }
            Err(KafkaError::PartitionEOF(_)) => open -= 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((messages, bytes, began.elapsed(), machine::cpu_seconds(std::process::id()) - before))
}

/// Snapshot MariaDB → Kafka.
pub async fn produce(settings: &Settings, format: &str) -> Result<Figures> {
    let (from, kafka) = filled(settings).await?;
    let directory = tempfile::tempdir()?;
    let pipeline = source_block(&from, "sb.sbtest1", "snapshot") + &sink(&kafka, format);
    let cpu = ServerCpu::start(Some(from.pid()), Some(kafka.pid()));
    let cost = Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    let spent = cpu.spent();
    let (messages, bytes, ..) = consume_only(&kafka)?;
    let mut figures = figures(
        &format!("kafka-produce-{format}"),
        settings.rows,
        cost,
        spent,
        Some(messages == settings.rows),
    );
    figures.note = format!("{} MB", bytes / 1_000_000);
    Ok(figures)
}

/// Kafka → nothing.
pub async fn blackhole(settings: &Settings, format: &str) -> Result<Figures> {
    let (from, kafka) = filled(settings).await?;
    let directory = tempfile::tempdir()?;
    let pipeline = source_block(&from, "sb.sbtest1", "snapshot") + &sink(&kafka, format);
    Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    drop(from);
    let directory = tempfile::tempdir()?;
    let pipeline = source(&kafka, format, declared(format)) + "sink:\n  type: blackhole\n";
    let cpu = ServerCpu::start(Some(kafka.pid()), None);
    let cost = Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    let spent = cpu.spent();
    let (messages, bytes, wall, client) = consume_only(&kafka)?;
    let mut figures = figures(
        &format!("kafka-blackhole-{format}"),
        settings.rows,
        cost,
        spent,
        Some(messages == settings.rows),
    );
    figures.note = format!(
        "{} MB; a client that only takes them: {:.2} s, {client:.2} CPU-s",
        bytes / 1_000_000,
        wall.as_secs_f64()
    );
    Ok(figures)
}

/// The backlog of 1 M row changes, as canal-json out of Kafka into MariaDB.
pub async fn backlog(settings: &Settings) -> Result<Figures> {
    const CHANGES: u64 = 1_000_000;
    let rows = settings.rows * 5;
    let (from, target, kafka) = (servers::mariadb()?, servers::mariadb()?, servers::kafka()?);
    let mut conn = from.mysql().await;
    conn.query_drop("CREATE DATABASE sb").await?;
    data::fill(&mut conn, "sb", rows, data::Numbering::Auto).await?;
    let run = async |pipeline: String| {
        let directory = tempfile::tempdir()?;
        Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await
    };
    run(source_block(&from, "sb.sbtest1", "snapshot") + &sink_block(&target, "mysql", "")).await?;
    let at: Row = conn.query_first("SHOW MASTER STATUS").await?.context("the source writes no binlog")?;
    let (file, position): (String, u64) = (at.get(0).context("no file")?, at.get(1).context("no position")?);
    data::change(&mut conn, "sb", rows, CHANGES).await?;
    // The last change is told by a row of its own.
    conn.query_drop(format!("INSERT INTO sb.sbtest1 VALUES ({}, 0, '', '')", rows + 3)).await?;
    let directory = tempfile::tempdir()?;
    let pipeline = format!(
        "{}  scan.startup.specific-offset.file: {file}\n  scan.startup.specific-offset.pos: {position}\n{}",
        source_block(&from, "sb.sbtest1", "specific-offset"),
        sink(&kafka, "canal-json")
    );
    let filling = Tool::start(&settings.canalis, directory.path(), &pipeline)?;
    let mut read = 0;
    // All of it is there when a checkpoint stands and nothing more is read.
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now =
            filling.progress().await.and_then(|view| view["tables"][0][1]["read"].as_u64()).unwrap_or(0);
        if now > 0 && now == read {
            break;
        }
        read = now;
    }
    filling.stop().await?;
    let directory = tempfile::tempdir()?;
    let pipeline = source(&kafka, "canal-json", "")
        + &sink_block(&target, "mysql", "  database: sb\n")
        + "pipeline:\n  parallelism: 4\n";
    let cpu = ServerCpu::start(Some(kafka.pid()), Some(target.pid()));
    let cost = Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    let spent = cpu.spent();
    let same = equal((&from, "sb", "sbtest1"), (&target, "sb", "sbtest1"));
    Ok(figures("kafka-backlog", CHANGES, cost, spent, Some(same)))
}
