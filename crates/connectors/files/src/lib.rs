//! Owns the connector `files`: CSV and JSON-lines files as a bounded source, and as a sink whose files are visible only
//! when they are complete.
//!
//! Must not know: other connectors, the runtime.

mod blocking;
mod error;
mod listing;
mod naming;
mod options;
mod sink;
mod source;

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Sink, Source};
use canalis_types::{Code, Error, Result};

use options::{SinkOptions, SourceOptions};

/// Adds the connector to a registry.
pub fn register(registry: &mut Registry) {
    registry.add(Files);
}

struct Files;

impl Connector for Files {
    fn spec(&self) -> &'static ConnectorSpec {
        &options::SPEC
    }

    fn validate(&self, role: Role, options: &Options) -> Vec<(String, String)> {
        let problems = match role {
            Role::Sink => SinkOptions::read(options).err(),
            Role::Source | Role::Both => SourceOptions::read(options).err(),
        };
        problems.unwrap_or_default()
    }

    fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        let options = SourceOptions::read(options).map_err(|p| invalid(&p))?;
        Ok(Box::new(source::FilesSource::new(options)))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        let options = SinkOptions::read(options).map_err(|p| invalid(&p))?;
        Ok(Arc::new(sink::FilesSink::new(options)))
    }
}

fn invalid(problems: &[options::Problem]) -> Error {
    let text: Vec<String> = problems.iter().map(|(key, why)| format!("`{key}`: {why}")).collect();
    Error::new(Code::PipelineInvalid, text.join("; "))
}
