//! `canalis savepoint FILE`: asks a running job through its state directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rand::Rng;
use serde_json::{Value, json};

use crate::{display::Output, state_dir};

/// How often a mailbox is looked into.
pub const POLL: Duration = Duration::from_millis(200);

/// Writes a request and waits for the answer.
pub async fn savepoint(file: &Path, directory: Option<PathBuf>, output: &Output) -> Result<ExitCode> {
    let directory = directory.unwrap_or_else(|| state_dir::default_for(file));
    let lock = directory.join("lock");
    let locked =
        fs::File::open(&lock).with_context(|| format!("no job has run in {}", directory.display()))?;
    if locked.try_lock_shared().is_ok() {
        bail!("no job is running in {}", directory.display());
    }
    let token = format!("{:016x}", rand::rng().random::<u64>());
    let answer = state_dir::savepoint_answer(&directory, &token);
    fs::write(state_dir::savepoint_request(&directory), &token)?;
    loop {
        tokio::time::sleep(POLL).await;
        match fs::read_to_string(&answer) {
            Ok(text) => {
                fs::remove_file(&answer)?;
                let value: Value = serde_json::from_str(&text)?;
                if let Some(error) = value["error"].as_str() {
                    bail!("{error}");
                }
                let path = value["savepoint"].as_str().unwrap_or_default().to_owned();
                output.value(&json!({ "savepoint": path }), || println!("savepoint {path}"))?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(_) if locked.try_lock_shared().is_ok() => bail!("the job has ended meanwhile"),
            Err(_) => {}
        }
    }
}
