//! Owns the works and their dispatch.

mod backlog;
mod blackhole;
mod csv;
mod formats;
mod idle;
mod kafka;
mod latency;
mod snapshot;

use std::path::PathBuf;

use anyhow::{Result, bail};
use canalis_testkit::Server;

use crate::{machine, report::Figures, tool::Cost};

/// Settings of all works.
pub struct Settings {
    /// Binary to measure.
    pub canalis: PathBuf,
    /// Rows of the snapshot works.
    pub rows: u64,
}

/// Names of the works, in the order of `docs/benchmarks.md`.
pub fn names() -> Vec<&'static str> {
    vec![
        "snapshot",
        "snapshot-plain",
        "backlog",
        "snapshot-postgres",
        "blackhole",
        "csv",
        "latency",
        "idle",
        "format-json",
        "format-csv",
        "format-canal-json",
        "format-debezium-json",
        "format-maxwell-json",
        "kafka-produce-canal-json",
        "kafka-produce-debezium-json",
        "kafka-blackhole-canal-json",
        "kafka-blackhole-debezium-json",
        "kafka-backlog",
    ]
}

/// Measures one work once.
pub async fn measure(name: &str, settings: &Settings) -> Result<Figures> {
    if let Some(format) = name.strip_prefix("format-") {
        return formats::measure(settings, format);
    }
    if let Some(format) = name.strip_prefix("kafka-produce-") {
        return kafka::produce(settings, format).await;
    }
    if let Some(format) = name.strip_prefix("kafka-blackhole-") {
        return kafka::blackhole(settings, format).await;
    }
    match name {
        "snapshot" => snapshot::mariadb(settings, crate::data::Numbering::Auto).await,
        "snapshot-plain" => snapshot::mariadb(settings, crate::data::Numbering::Plain).await,
        "snapshot-postgres" => snapshot::postgres(settings).await,
        "backlog" => backlog::measure(settings).await,
        "blackhole" => blackhole::measure(settings).await,
        "csv" => csv::measure(settings).await,
        "kafka-backlog" => kafka::backlog(settings).await,
        "latency" => latency::measure(settings).await,
        "idle" => idle::measure(settings).await,
        other => bail!("there is no work `{other}`"),
    }
}

/// CPU-seconds of source and target from here on.
struct ServerCpu {
    pids: [Option<u32>; 2],
    before: [f64; 2],
}

impl ServerCpu {
    fn start(source: Option<u32>, target: Option<u32>) -> Self {
        let pids = [source, target];
        Self { pids, before: pids.map(|p| p.map_or(0.0, machine::cpu_seconds)) }
    }

    fn spent(&self) -> [f64; 2] {
        let now = self.pids.map(|p| p.map_or(0.0, machine::cpu_seconds));
        [now[0] - self.before[0], now[1] - self.before[1]]
    }
}

fn figures(name: &str, rows: u64, cost: Cost, servers: [f64; 2], equal: Option<bool>) -> Figures {
    let wall = cost.wall.as_secs_f64();
    Figures {
        name: name.to_owned(),
        rows,
        wall_seconds: wall,
        rows_per_second: f64::from(u32::try_from(rows).unwrap_or(u32::MAX)) / wall,
        tool_cpu_seconds: cost.cpu_seconds,
        source_cpu_seconds: servers[0],
        target_cpu_seconds: servers[1],
        peak_mib: cost.peak_mib,
        equal,
        note: String::new(),
    }
}

/// A `source` block for tables of a MariaDB server.
fn source_block(server: &Server, tables: &str, mode: &str) -> String {
    format!(
        "source:\n  type: mysql\n  hostname: 127.0.0.1\n  port: {}\n  username: {}\n  password: \"{}\"\n  tables: {tables}\n  \
         server-id: 7001-7099\n  scan.startup.mode: {mode}\n",
        server.port, server.username, server.password
    )
}

/// A `sink` block for a database server.
fn sink_block(server: &Server, kind: &str, more: &str) -> String {
    format!(
        "sink:\n  type: {kind}\n  hostname: 127.0.0.1\n  port: {}\n  username: {}\n  password: \"{}\"\n{more}",
        server.port, server.username, server.password
    )
}

/// Whether two tables are equal by their databases' own digests.
fn equal(source: (&Server, &str, &str), target: (&Server, &str, &str)) -> bool {
    canalis_testkit::table_digest(source.0, source.1, source.2)
        == canalis_testkit::table_digest(target.0, target.1, target.2)
}
