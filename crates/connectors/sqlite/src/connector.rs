//! Owns the entry in the registry.

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Sink, Source};
use canalis_types::{Code, Error, Result};

use crate::{
    options::{SPEC, SqliteOptions},
    sink::SqliteSink,
};

/// The connector `sqlite`.
pub struct SqliteConnector;

/// Adds the connector.
pub fn register(registry: &mut Registry) {
    registry.add(SqliteConnector);
}

impl Connector for SqliteConnector {
    fn spec(&self) -> &'static ConnectorSpec {
        &SPEC
    }

    fn source(&self, _options: &Options) -> Result<Box<dyn Source>> {
        Err(Error::new(Code::NotSupportedYet, "`sqlite` as a source is not supported yet"))
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(SqliteSink::new(SqliteOptions::parse(options)?)))
    }
}
