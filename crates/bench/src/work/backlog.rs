//! A backlog of 1 M row changes, MariaDB → MariaDB, into a table of 5 M rows.

use anyhow::Result;
use mysql_async::prelude::Queryable;

use super::{ServerCpu, Settings, equal, figures, sink_block, source_block};
use crate::{data, report::Figures, servers, tool::Tool};

const CHANGES: u64 = 1_000_000;

/// Fills both sides by an initial run, stops it, makes the backlog, and measures the run that catches up.
pub async fn measure(settings: &Settings) -> Result<Figures> {
    let rows = settings.rows * 5;
    let (source, target) = (servers::mariadb()?, servers::mariadb()?);
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE sb").await?;
    data::fill(&mut conn, "sb", rows, data::Numbering::Auto).await?;
    let directory = tempfile::tempdir()?;
    let pipeline = format!(
        "{}{}pipeline:\n  parallelism: 4\n",
        source_block(&source, "sb.sbtest1", "initial"),
        sink_block(&target, "mysql", "")
    );
    let marker = |id: u64| format!("INSERT INTO sb.sbtest1 VALUES ({id}, 0, '', '')");
    conn.query_drop(marker(rows + 1)).await?;
    let seen = |id: u64| {
        let target = &target;
        async move {
            let Ok(mut conn) = target.try_mysql().await else { return Ok(false) };
            // The table is made by the tool; until then the query fails.
            let found: Option<u8> =
                conn.query_first(format!("SELECT 1 FROM sb.sbtest1 WHERE id = {id}")).await.unwrap_or(None);
            Ok(found.is_some())
        }
    };
    let filling = Tool::start(&settings.canalis, directory.path(), &pipeline)?;
    // The stream has begun when a row that is newer than the snapshot arrives.
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let streaming = filling.progress().await.is_some_and(|p| p["tables"][0][1]["phase"] == "stream");
        if streaming {
            break;
        }
    }
    conn.query_drop(marker(rows + 2)).await?;
    filling.run_until(|| seen(rows + 2)).await?;
    data::change(&mut conn, "sb", rows, CHANGES).await?;
    conn.query_drop(marker(rows + 3)).await?;
    let cpu = ServerCpu::start(Some(source.pid()), Some(target.pid()));
    let catching_up = Tool::start(&settings.canalis, directory.path(), &pipeline)?;
    let cost = catching_up.run_until(|| seen(rows + 3)).await?;
    let spent = cpu.spent();
    let same = equal((&source, "sb", "sbtest1"), (&target, "sb", "sbtest1"));
    Ok(figures("backlog", CHANGES, cost, spent, Some(same)))
}
