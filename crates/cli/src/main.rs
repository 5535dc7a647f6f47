//! The binary `canalis`: the one place where everything is wired.

mod commands;
mod display;
mod http;
mod pipeline;
mod registry;
mod state_dir;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Real-time data integration: one YAML file moves a live database.
#[derive(Parser)]
#[command(name = "canalis", version, about)]
struct Arguments {
    /// Print machine-readable JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a pipeline file until its source ends or Ctrl-C.
    Run(commands::run::RunArguments),
    /// Check a pipeline file and the live systems that it names.
    Check {
        /// Pipeline file, YAML or JSON.
        file: PathBuf,
    },
    /// Show what a pipeline file would read and create; nothing is changed.
    Plan {
        /// Pipeline file, YAML or JSON.
        file: PathBuf,
    },
    /// Show records on their way: source bytes, decoded row, transformed row, sink statement; nothing is written.
    Preview(commands::preview::PreviewArguments),
    /// List connectors, or the options of one.
    Connectors {
        /// Name of a connector.
        name: Option<String>,
    },
    /// Ask a running job for a savepoint and wait for it.
    Savepoint {
        /// Pipeline file of the running job.
        file: PathBuf,
        /// State directory of the running job, if it is not the default.
        #[arg(long)]
        state_dir: Option<PathBuf>,
    },
    /// Print the version.
    Version,
}

fn main() -> ExitCode {
    // Huge pages would nearly double the resident memory: batches are a few hundred KiB and come and go. A kernel that
    // cannot do without them does no harm.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // Two TLS providers in one binary must never be left to chance.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("the TLS provider was already set");
        return ExitCode::FAILURE;
    }
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("CANALIS_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let output = display::Output::new(arguments.json);
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Run(run) => commands::run::run(run, &output).await,
            Command::Check { file } => commands::check::check(&file, &output).await,
            Command::Plan { file } => commands::plan::plan(&file, &output).await,
            Command::Preview(preview) => commands::preview::preview(preview, &output).await,
            Command::Connectors { name } => commands::connectors::connectors(name.as_deref(), &output),
            Command::Savepoint { file, state_dir } => {
                commands::savepoint::savepoint(&file, state_dir, &output).await
            }
            Command::Version => commands::version::version(&output),
        }
    });
    // Blocking reads of a source may still be under way; nobody waits for them.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            ExitCode::FAILURE
        }
    }
}
