//! Owns the entry in the registry.

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Sink, Source};
use canalis_types::{Code, Error, Result};

use crate::{
    options::{PostgresOptions, SPEC},
    sink::PostgresSink,
    tls,
};

/// The connector `postgres`.
pub struct PostgresConnector;

/// Adds the connector.
pub fn register(registry: &mut Registry) {
    registry.add(PostgresConnector);
}

impl Connector for PostgresConnector {
    fn spec(&self) -> &'static ConnectorSpec {
        &SPEC
    }

    fn validate(&self, _role: Role, options: &Options) -> Vec<(String, String)> {
        tls::problems(options)
    }

    fn source(&self, _options: &Options) -> Result<Box<dyn Source>> {
        Err(Error::new(Code::NotSupportedYet, "`postgres` as a source is not supported yet"))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(PostgresSink::new(PostgresOptions::parse(options)?)))
    }
}
