//! Owns the registry of connectors, filled once by the binary.

use std::{collections::BTreeMap, sync::Arc};

use canalis_types::{Code, Error, Result};

use crate::{ConnectorSpec, Options, Role, Sink, Source, options::nearest};

/// A source or sink type.
pub trait Connector: Send + Sync {
    /// Its declaration.
    fn spec(&self) -> &'static ConnectorSpec;

    /// Problems that involve more than one option, as `(key, message)`. No IO.
    fn validate(&self, role: Role, options: &Options) -> Vec<(String, String)> {
        let _ = (role, options);
        Vec::new()
    }

    /// Makes a source. No IO.
    ///
    /// # Errors
    /// Definition errors; also when the connector is no source.
    fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        let _ = options;
        Err(self.not_a("source"))
    }

    /// Makes a sink. No IO.
    ///
    /// # Errors
    /// Definition errors; also when the connector is no sink.
    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        let _ = options;
        Err(self.not_a("sink"))
    }

    /// The error for a role that the connector does not have.
    fn not_a(&self, role: &str) -> Error {
        Error::new(Code::PipelineInvalid, format!("`{}` is not a {role}", self.spec().name))
    }
}

/// All connectors of a binary, by name.
#[derive(Default, Clone)]
pub struct Registry {
    connectors: BTreeMap<&'static str, Arc<dyn Connector>>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a connector; a second one of the same name replaces the first.
    pub fn add(&mut self, connector: impl Connector + 'static) {
        self.connectors.insert(connector.spec().name, Arc::new(connector));
    }

    /// The connector of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Connector>> {
        self.connectors.get(name)
    }

    /// All connectors, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Connector>> {
        self.connectors.values()
    }

    /// The known name closest to a misspelt one.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        nearest(name, self.connectors.keys().copied())
    }
}
