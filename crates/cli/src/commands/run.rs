//! `canalis run FILE`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result};
use canalis_runtime::{JobControl, JobSpec, JobState};
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    commands::savepoint::POLL,
    display::{Live, Output},
    http,
    pipeline::load,
    registry::registry,
    state_dir,
};

/// Arguments of `canalis run`.
#[derive(Args)]
pub struct RunArguments {
    /// Pipeline file, YAML or JSON.
    file: PathBuf,
    /// Where checkpoints and dead letters live (default: `.canalis/<name>` beside the file).
    #[arg(long)]
    state_dir: Option<PathBuf>,
    /// Serve /metrics, /health and /progress on this address, for example 127.0.0.1:9090.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<std::net::SocketAddr>,
    /// Start from this savepoint or checkpoint file.
    #[arg(long, value_name = "FILE")]
    from_savepoint: Option<PathBuf>,
}

/// Runs a pipeline to its end. Ctrl-C (or SIGTERM) drains, takes a last checkpoint and exits 0; a second one stops at once.
pub async fn run(arguments: RunArguments, output: &Output) -> Result<ExitCode> {
    // First, so that a stop that comes early is a stop and not the end of the process.
    let signals = Signals::watch()?;
    let loaded = load(&arguments.file, &registry())?;
    let directory = arguments.state_dir.unwrap_or_else(|| state_dir::default_for(&arguments.file));
    let known = match &arguments.from_savepoint {
        Some(path) => Some(canalis_runtime::read_checkpoint(path)?.job),
        None => None,
    };
    let spec = JobSpec {
        job: state_dir::job_id(&directory, known)?,
        plan: loaded.plan,
        source: loaded.source,
        sink: loaded.sink,
        state_dir: directory.clone(),
        from_savepoint: arguments.from_savepoint,
    };
    let (control, job) = canalis_runtime::run(spec);
    if let Some(address) = arguments.metrics {
        http::serve(address, control.clone()).await?;
    }
    let live = Live::new(output, control.progress().clone());
    let side = tokio::spawn(side_jobs(control, signals, directory, live.clone()));
    let result = job.await;
    side.abort();
    live.end();
    let report = result?;
    let (read, written, filtered, dead) = report.ledger.totals();
    output.value(
        &json!({
            "state": report.state,
            "epoch": report.epoch,
            "restarts": report.restarts,
            "read": read, "written": written, "filtered": filtered, "dead-lettered": dead,
            "ledger": report.ledger,
        }),
        || live.summary(&report),
    )?;
    let clean = matches!(report.state, JobState::Finished | JobState::Canceled);
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> Result<Self> {
        let watch = |kind| signal(kind).context("signals cannot be watched");
        Ok(Self { interrupt: watch(SignalKind::interrupt())?, terminate: watch(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Everything that goes on beside the job: signals, savepoint requests, display.
async fn side_jobs(control: JobControl, mut signals: Signals, directory: PathBuf, live: Live) {
    let mut mailbox = tokio::time::interval(POLL);
    let mut draw = tokio::time::interval(live.period().unwrap_or(Duration::from_secs(3600)));
    let mut stops = 0;
    loop {
        let stop = tokio::select! {
            () = signals.next() => true,
            _ = mailbox.tick() => {
                answer_savepoint(&control, &directory).await;
                false
            }
            _ = draw.tick() => {
                live.draw();
                false
            }
        };
        if stop {
            stops += 1;
            if stops == 1 {
                live.say("stopping: draining to a last checkpoint (again to stop at once)");
                control.stop().await;
            } else {
                control.abort().await;
            }
        }
    }
}

async fn answer_savepoint(control: &JobControl, directory: &Path) {
    let request = state_dir::savepoint_request(directory);
    let Ok(token) = fs::read_to_string(&request) else { return };
    let token: String = token.trim().chars().filter(char::is_ascii_hexdigit).collect();
    if let Err(error) = fs::remove_file(&request) {
        tracing::warn!(%error, "the savepoint request cannot be removed");
        return;
    }
    let (control, directory) = (control.clone(), directory.to_owned());
    // The savepoint waits for the next barrier; the mailbox must not.
    tokio::spawn(async move {
        let text = match control.savepoint().await {
            Ok(path) => json!({ "savepoint": path.display().to_string() }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        let answer = state_dir::savepoint_answer(&directory, &token);
        let aside = answer.with_extension("part");
        let written = fs::write(&aside, text.to_string()).and_then(|()| fs::rename(&aside, &answer));
        if let Err(error) = written {
            tracing::warn!(%error, "the savepoint answer cannot be written");
        }
    });
}
