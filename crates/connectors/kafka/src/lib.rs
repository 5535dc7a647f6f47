//! Owns the connector `kafka`: Apache Kafka as a source whose lanes are partitions, and as a sink that keeps positions in the
//! transactions of its messages.
//!
//! Must not know: other connectors, the runtime.

mod client;
mod failure;
mod options;
mod sink;
mod source;

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Sink, Source};
use canalis_messages::{MessageSink, MessageSource, Problem, invalid};
use canalis_types::Result;

use options::{SinkOptions, SourceOptions};

/// Adds the connector to a registry.
pub fn register(registry: &mut Registry) {
    registry.add(Kafka);
}

struct Kafka;

impl Connector for Kafka {
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
        Ok(Box::new(MessageSource::new(source::KafkaSource::new(options), settings)))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        let options = SinkOptions::read(options).map_err(|p| invalid(&p))?;
        let settings = options.settings.clone();
        Ok(Arc::new(MessageSink::new(sink::KafkaSink::new(options), settings)))
    }
}
