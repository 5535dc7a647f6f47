//! Owns loading of pipeline files: read, parse with secrets, make source and sink.

use std::{fmt, path::Path, sync::Arc};

use anyhow::{Context, Result};
use canalis_connector_api::{Registry, Sink, Source};
use canalis_plan::{Problem, SecretSource, ValidatedPlan};
use canalis_types::{Code, Error};

/// A pipeline file with its connectors, nothing connected yet.
pub struct Loaded {
    /// The validated definition.
    pub plan: ValidatedPlan,
    /// The source.
    pub source: Box<dyn Source>,
    /// The sink.
    pub sink: Arc<dyn Sink>,
}

/// All problems of a pipeline file.
#[derive(Debug)]
pub struct Problems {
    /// The file.
    pub file: String,
    /// The problems in order of the file.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{problem}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

struct RealSecrets;

impl SecretSource for RealSecrets {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// Reads and validates a pipeline file and makes its connectors. Warnings go to standard error.
pub fn load(file: &Path, registry: &Registry) -> Result<Loaded> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let shown = file.display().to_string();
    let plan = canalis_plan::parse(&text, registry, &RealSecrets)
        .map_err(|problems| Problems { file: shown.clone(), problems })?;
    for warning in &plan.warnings {
        eprintln!("warning: {shown}:{warning}");
    }
    let connector = |name: &str| {
        registry.get(name).ok_or_else(|| Error::new(Code::Internal, format!("connector {name} has gone")))
    };
    let source = connector(&plan.source.connector)?.source(&plan.source.options)?;
    let sink = connector(&plan.sink.connector)?.sink(&plan.sink.options)?;
    Ok(Loaded { plan, source, sink })
}

/// The transforms and routes of a pipeline.
pub fn transforms(loaded: &Loaded) -> canalis_types::Result<canalis_transforms::Transforms> {
    canalis_transforms::Transforms::new(
        loaded.plan.transforms.clone(),
        loaded.plan.routes.clone(),
        loaded.plan.transform_options.clone(),
    )
}

/// What the tables of a source look like at the sink.
pub async fn outputs(
    loaded: &Loaded,
) -> canalis_types::Result<Vec<(Arc<canalis_types::TableSchema>, Vec<Arc<canalis_types::TableSchema>>)>> {
    let transforms = transforms(loaded)?;
    let planned = transforms.plan_all(&loaded.source.tables().await?)?;
    Ok(planned.iter().map(|t| (t.source().clone(), t.outputs().to_vec())).collect())
}
