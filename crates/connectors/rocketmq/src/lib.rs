//! Owns the connector `rocketmq`: Apache RocketMQ as a source whose lanes are queues, and as a sink that writes batches of keyed
//! messages queue by queue. It speaks the remoting protocol of brokers and name servers itself, a dozen requests of it, with
//! calls that block, because the client that could be had (`rocketmq-client-rust` 1.0) brings three hundred more packages, a
//! second provider of cryptography among them.
//!
//! Must not know: other connectors, the runtime.

mod client;
mod failure;
mod options;
pub mod protocol;
mod sink;
mod source;

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Sink, Source};
use canalis_messages::{MessageSink, MessageSource, Problem, invalid};
use canalis_types::Result;

use options::{SinkOptions, SourceOptions};

/// Adds the connector to a registry.
pub fn register(registry: &mut Registry) {
    registry.add(RocketMq);
}

struct RocketMq;

impl Connector for RocketMq {
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
        Ok(Box::new(MessageSource::new(source::RocketMqSource::new(options), settings)))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        let options = SinkOptions::read(options).map_err(|p| invalid(&p))?;
        let settings = options.settings.clone();
        Ok(Arc::new(MessageSink::new(sink::RocketMqSink::new(options), settings)))
    }
}
