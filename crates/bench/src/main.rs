//! Measures the works of `docs/benchmarks.md`, each with one command, and prints rows/s, CPU-seconds of the tool and
//! of the servers, the tool's peak memory, and whether source and target are equal.

mod data;
mod machine;
mod report;
mod servers;
mod tool;
mod work;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

/// Benchmarks of Canalis. Without a name, all of them run one after the other.
#[derive(Parser)]
struct Arguments {
    /// Works to measure, for example `snapshot backlog`.
    names: Vec<String>,
    /// Binary to measure.
    #[arg(long, default_value = "canalis")]
    canalis: PathBuf,
    /// Rows of the snapshot works, in thousands.
    #[arg(long, default_value_t = 1000)]
    kilorows: u64,
    /// Runs of each work; the median by rows/s is reported.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Writes the figures as JSON lines to this file, too.
    #[arg(long)]
    output: Option<PathBuf>,
}

fn main() -> Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("the TLS provider was already set");
    }
    let arguments = Arguments::parse();
    let known = work::names();
    if let Some(unknown) = arguments.names.iter().find(|n| !known.contains(&n.as_str())) {
        bail!("there is no work `{unknown}`; known are {}", known.join(", "));
    }
    let settings = work::Settings { canalis: arguments.canalis, rows: arguments.kilorows * 1000 };
    let runtime = tokio::runtime::Runtime::new()?;
    let mut figures = Vec::new();
    for name in known {
        if !arguments.names.is_empty() && !arguments.names.iter().any(|n| n == name) {
            continue;
        }
        let mut runs = Vec::new();
        for run in 1..=arguments.runs {
            eprintln!("{name}: run {run} of {}", arguments.runs);
            runs.push(runtime.block_on(work::measure(name, &settings))?);
        }
        runs.sort_by(|a, b| a.rows_per_second.total_cmp(&b.rows_per_second));
        let median = runs.swap_remove(runs.len() / 2);
        eprintln!("{}", report::line(&median));
        figures.push(median);
    }
    println!("{}", report::table(&figures));
    if let Some(path) = arguments.output {
        std::fs::write(path, report::json_lines(&figures)?)?;
    }
    if let Some(unequal) = figures.iter().find(|f| f.equal == Some(false)) {
        bail!("source and target differ after `{}`", unequal.name);
    }
    Ok(())
}
