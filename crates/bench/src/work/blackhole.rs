//! The binlog of 1 M row changes into nothing: what reading, decoding and dealing cost.

use anyhow::{Context, Result};
use mysql_async::{Row, prelude::Queryable};

use super::{ServerCpu, Settings, figures, source_block};
use crate::{data, report::Figures, servers, tool::Tool};

/// Reads the binlog from a position before the changes to a count after them.
pub async fn measure(settings: &Settings) -> Result<Figures> {
    let source = servers::mariadb()?;
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE sb").await?;
    data::fill(&mut conn, "sb", settings.rows, data::Numbering::Auto).await?;
    let at: Row = conn.query_first("SHOW MASTER STATUS").await?.context("the source writes no binlog")?;
    let file: String = at.get(0).context("no file")?;
    let position: u64 = at.get(1).context("no position")?;
    let before: Option<(String, u64)> = conn.query_first("SHOW GLOBAL STATUS LIKE 'Binlog_commits'").await?;
    data::change(&mut conn, "sb", settings.rows, 1_000_000).await?;
    let after: Option<(String, u64)> = conn.query_first("SHOW GLOBAL STATUS LIKE 'Binlog_commits'").await?;
    let transactions = after.zip(before).map_or(0, |(a, b)| a.1 - b.1);
    let pipeline = format!(
        "{}  scan.startup.specific-offset.file: {file}\n  scan.startup.specific-offset.pos: {position}\nsink:\n  type: blackhole\n",
        source_block(&source, "sb.sbtest1", "specific-offset"),
    );
    let directory = tempfile::tempdir()?;
    let cpu = ServerCpu::start(Some(source.pid()), None);
    let tool = Tool::start(&settings.canalis, directory.path(), &pipeline)?;
    let end: Row = conn.query_first("SHOW MASTER STATUS").await?.context("the source writes no binlog")?;
    let (end_file, end_position): (String, u64) =
        (end.get(0).context("no file")?, end.get(1).context("no position")?);
    let (cost, wall, read) = loop {
        let view = tool.progress().await;
        if let Some(view) = view {
            let read = view["tables"][0][1]["read"].as_u64().unwrap_or(0);
            let detail = view["position"]["detail"].as_str().unwrap_or("{}");
            let place: serde_json::Value = serde_json::from_str(detail)?;
            if place["file"].as_str() == Some(&end_file) && place["pos"].as_u64() >= Some(end_position) {
                let wall = tool.elapsed();
                break (tool.stop().await?, wall, read);
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    };
    let mut figures = figures("blackhole", read, crate::tool::Cost { wall, ..cost }, cpu.spent(), None);
    figures.note = format!("{transactions} transactions");
    Ok(figures)
}
