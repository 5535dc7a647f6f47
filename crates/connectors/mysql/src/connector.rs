//! Owns the connector's entry in the registry.

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Sink, Source};
use canalis_types::Result;

use crate::{options, sink, source::MySqlSource, tls};

/// Adds `type: mysql`.
pub fn register(registry: &mut Registry) {
    registry.add(MySqlConnector);
}

struct MySqlConnector;

impl Connector for MySqlConnector {
    fn spec(&self) -> &'static ConnectorSpec {
        &options::SPEC
    }

    fn validate(&self, role: Role, options: &Options) -> Vec<(String, String)> {
        match role {
            Role::Source => options::validate_source(options),
            Role::Sink | Role::Both => tls::problems(options),
        }
    }

    fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        Ok(Box::new(MySqlSource::new(options)?))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        sink::sink(options)
    }
}
