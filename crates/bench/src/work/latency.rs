//! A steady 2,000 changes/s: time from the commit at the source to the row being visible at the target.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mysql_async::prelude::Queryable;

use super::{ServerCpu, Settings, equal, figures, sink_block, source_block};
use crate::{report::Figures, servers, tool::Tool};

const SECONDS: u64 = 20;
const TRANSACTIONS_PER_SECOND: u64 = 200;
const ROWS_PER_TRANSACTION: u64 = 10;

/// Writes at the source, polls the target, and reports percentiles.
pub async fn measure(settings: &Settings) -> Result<Figures> {
    let (source, target) = (servers::mariadb()?, servers::mariadb()?);
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE lat").await?;
    conn.query_drop("CREATE TABLE lat.t (id BIGINT PRIMARY KEY, tx BIGINT NOT NULL, v VARCHAR(100))").await?;
    let directory = tempfile::tempdir()?;
    // Default settings: nothing under `pipeline`.
    let pipeline =
        format!("{}{}", source_block(&source, "lat.t", "initial"), sink_block(&target, "mysql", ""));
    let cpu = ServerCpu::start(Some(source.pid()), Some(target.pid()));
    let tool = Tool::start(&settings.canalis, directory.path(), &pipeline)?;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if tool.progress().await.is_some_and(|p| p["tables"][0][1]["phase"] == "stream") {
            break;
        }
    }
    let transactions = SECONDS * TRANSACTIONS_PER_SECOND;
    let seen: Arc<Mutex<HashMap<u64, Instant>>> = Arc::default();
    let mut poll = target.mysql().await;
    let poller = tokio::spawn({
        let seen = seen.clone();
        async move {
            let mut last = 0;
            while last < transactions * ROWS_PER_TRANSACTION {
                // The last row of each transaction stands for all of it.
                let rows: Vec<(u64, u64)> = poll
                    .query(format!("SELECT id, tx FROM lat.t WHERE id > {last} ORDER BY id LIMIT 1000"))
                    .await?;
                let now = Instant::now();
                for (id, tx) in rows {
                    // Writers commit apart: a gap ends what is known to be complete.
                    if id != last + 1 {
                        break;
                    }
                    last = id;
                    if id % ROWS_PER_TRANSACTION == 0 {
                        seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(tx, now);
                    }
                }
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
            Ok::<_, anyhow::Error>(())
        }
    });
    let mut committed = Vec::new();
    let mut tick = tokio::time::interval(Duration::from_secs(1) / u32::try_from(TRANSACTIONS_PER_SECOND)?);
    for tx in 0..transactions {
        tick.tick().await;
        let rows: Vec<String> = (1..=ROWS_PER_TRANSACTION)
            .map(|r| format!("({}, {tx}, REPEAT('x', 80))", tx * ROWS_PER_TRANSACTION + r))
            .collect();
        conn.query_drop(format!("INSERT INTO lat.t VALUES {}", rows.join(","))).await?;
        committed.push(Instant::now());
    }
    tokio::time::timeout(Duration::from_secs(30), poller).await.context("rows did not arrive")???;
    let spent = cpu.spent();
    let same = equal((&source, "lat", "t"), (&target, "lat", "t"));
    let cost = tool.stop().await?;
    let seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut delays: Vec<Duration> = committed
        .iter()
        .zip(0u64..)
        .filter_map(|(at, tx)| seen.get(&tx).map(|s| s.saturating_duration_since(*at)))
        .collect();
    delays.sort();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100];
    let mut figures = figures("latency", transactions * ROWS_PER_TRANSACTION, cost, spent, Some(same));
    figures.note = format!("p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));
    Ok(figures)
}
