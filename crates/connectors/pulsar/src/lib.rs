//! Owns the connector `pulsar`: Apache Pulsar as a source whose lanes are topics and their partitions, and as a sink.
//!
//! Must not know: other connectors, the runtime.

mod client;
mod failure;
mod names;
mod options;
mod place;
mod sink;
mod source;

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Sink, Source};
use canalis_messages::{MessageSink, MessageSource, Problem, invalid};
use canalis_types::Result;

use options::{SinkOptions, SourceOptions};

/// Adds the connector to a registry.
pub fn register(registry: &mut Registry) {
    registry.add(Pulsar);
}

struct Pulsar;

impl Connector for Pulsar {
    fn spec(&self) -> &'static ConnectorSpec {
        &options::SPEC
    }

    fn validate(&self, role: Role, options: &Options) -> Vec<Problem> {
        let problems = match role {
            Role::Sink => SinkOptions::read(options).err(),
            Role::Source | Role::Both => SourceOptions::read(options).err(),
        };
        problems.unwrap_or_default()
    }

    fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        let options = SourceOptions::read(options).map_err(|p| invalid(&p))?;
        let settings = options.settings.clone();
        Ok(Box::new(MessageSource::new(source::PulsarSource::new(options), settings)))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        let options = SinkOptions::read(options).map_err(|p| invalid(&p))?;
        let settings = options.settings.clone();
        Ok(Arc::new(MessageSink::new(sink::PulsarSink::new(options), settings)))
    }
}
