//! `canalis check FILE`.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use canalis_connector_api::{Finding, Severity};

use crate::{
    display::Output,
    pipeline::{load, outputs},
    registry::registry,
};

/// Checks a file and the live systems behind it. Fails when any finding is an error.
pub async fn check(file: &Path, output: &Output) -> Result<ExitCode> {
    let loaded = load(file, &registry())?;
    let mut findings = vec![Finding::ok("definition", format!("{} is valid", file.display()))];
    findings.extend(loaded.source.check().await);
    match outputs(&loaded).await {
        Ok(tables) => {
            let at_sink: Vec<_> = tables.into_iter().flat_map(|(_, o)| o).collect();
            findings.extend(loaded.sink.check(&at_sink).await);
        }
        Err(error) => {
            // A source that cannot be reached has said so already.
            if !findings.iter().any(|f| f.severity == Severity::Error) {
                findings.push(Finding::error("tables", error.to_string(), "see the error page of the code"));
            }
            findings.extend(loaded.sink.check(&[]).await);
        }
    }
    let failed = findings.iter().any(|f| f.severity == Severity::Error);
    output.value(&serde_json::to_value(&findings)?, || {
        for finding in &findings {
            let mark = match finding.severity {
                Severity::Ok => "ok     ",
                Severity::Warning => "warning",
                Severity::Error => "ERROR  ",
            };
            println!("{mark} {}: {}", finding.subject, finding.message);
            if let Some(remedy) = &finding.remedy {
                println!("        → {remedy}");
            }
        }
    })?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
