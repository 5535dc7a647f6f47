//! Owns the sinks `print` (a line for every row) and `blackhole` (counts rows and forgets them).
//!
//! Must not know: other connectors, the runtime.

mod blackhole;
mod print;

use std::sync::Arc;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Sink};
use canalis_types::Result;

/// Adds both connectors to a registry.
pub fn register(registry: &mut Registry) {
    registry.add(Print);
    registry.add(Blackhole);
}

struct Print;

impl Connector for Print {
    fn spec(&self) -> &'static ConnectorSpec {
        &print::SPEC
    }

    fn sink(&self, options: &Options) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(print::PrintSink::new(options)?))
    }
}

struct Blackhole;

impl Connector for Blackhole {
    fn spec(&self) -> &'static ConnectorSpec {
        &blackhole::SPEC
    }

    fn sink(&self, _options: &Options) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(blackhole::BlackholeSink))
    }
}
