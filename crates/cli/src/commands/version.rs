//! `canalis version`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::display::Output;

/// Prints the version.
pub fn version(output: &Output) -> Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    output.value(&json!({ "name": "canalis", "version": version }), || println!("canalis {version}"))?;
    Ok(ExitCode::SUCCESS)
}
