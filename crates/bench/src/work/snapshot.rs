//! Snapshot of `sbtest1`, MariaDB → MariaDB and MariaDB → PostgreSQL.

use anyhow::Result;
use mysql_async::prelude::Queryable;

use super::{ServerCpu, Settings, equal, figures, sink_block, source_block};
use crate::{data, report::Figures, servers, tool::Tool};

/// MariaDB → MariaDB.
pub async fn mariadb(settings: &Settings, numbering: data::Numbering) -> Result<Figures> {
    let (source, target) = (servers::mariadb()?, servers::mariadb()?);
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE sb").await?;
    data::fill(&mut conn, "sb", settings.rows, numbering).await?;
    let directory = tempfile::tempdir()?;
    let pipeline = format!(
        "{}{}pipeline:\n  parallelism: 2\n",
        source_block(&source, "sb.sbtest1", "snapshot"),
        sink_block(&target, "mysql", "")
    );
    let cpu = ServerCpu::start(Some(source.pid()), Some(target.pid()));
    let cost = Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    let spent = cpu.spent();
    let same = equal((&source, "sb", "sbtest1"), (&target, "sb", "sbtest1"));
    let name = if numbering == data::Numbering::Auto { "snapshot" } else { "snapshot-plain" };
    Ok(figures(name, settings.rows, cost, spent, Some(same)))
}

/// MariaDB → PostgreSQL.
pub async fn postgres(settings: &Settings) -> Result<Figures> {
    let (source, target) = (servers::mariadb()?, servers::postgres()?);
    let mut conn = source.mysql().await;
    conn.query_drop("CREATE DATABASE sb").await?;
    data::fill(&mut conn, "sb", settings.rows, data::Numbering::Auto).await?;
    let database = target.create_database("bench").await;
    let directory = tempfile::tempdir()?;
    let pipeline = format!(
        "{}{}pipeline:\n  parallelism: 2\n",
        source_block(&source, "sb.sbtest1", "snapshot"),
        sink_block(&target, "postgres", &format!("  database: {database}\n"))
    );
    let cpu = ServerCpu::start(Some(source.pid()), Some(target.pid()));
    let cost = Tool::start(&settings.canalis, directory.path(), &pipeline)?.wait().await?;
    let spent = cpu.spent();
    let same = equal((&source, "sb", "sbtest1"), (&target, &database, "sb.sbtest1"));
    Ok(figures("snapshot-postgres", settings.rows, cost, spent, Some(same)))
}
