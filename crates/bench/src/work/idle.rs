//! A job that has nothing to do: time until it runs, memory while it waits.

use std::time::Duration;

use anyhow::Result;
use mysql_async::prelude::Queryable;

use super::{ServerCpu, Settings, figures, sink_block, source_block};
use crate::{report::Figures, servers, tool::Tool};

/// Starts a job on an empty table, waits for the stream, lets it idle.
pub async fn measure(settings: &Settings) -> Result<Figures> {
    let (source, target) = (servers::mariadb()?, servers::mariadb()?);
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE idle").await?;
    conn.query_drop("CREATE TABLE idle.t (id BIGINT PRIMARY KEY, v VARCHAR(100))").await?;
    let directory = tempfile::tempdir()?;
    let pipeline =
        format!("{}{}", source_block(&source, "idle.t", "initial"), sink_block(&target, "mysql", ""));
    let cpu = ServerCpu::start(Some(source.pid()), Some(target.pid()));
    let tool = Tool::start(&settings.canalis, directory.path(), &pipeline)?;
    let started = loop {
        let view = tool.progress().await;
        if view.is_some_and(|p| p["state"] == "RUNNING") {
            break tool.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    tokio::time::sleep(Duration::from_secs(20)).await;
    let resident = tool.resident_mib();
    let cost = tool.stop().await?;
    let mut figures = figures("idle", 0, cost, cpu.spent(), None);
    figures.note = format!("running after {started:?}, {resident:.1} MiB resident");
    Ok(figures)
}
