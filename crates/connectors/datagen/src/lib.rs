//! Owns the connector `datagen`: an endless or bounded change stream of one table of orders, with inserts, updates and
//! deletes. The stream depends on nothing but the seed, the ratios and the number of the change, so it can be resumed
//! anywhere, and what a table holds after any number of changes can be computed beforehand ([`live_orders`]).
//!
//! Must not know: other connectors, the runtime.

mod enumerator;
mod generator;
mod options;
mod order;
mod reader;
mod schedule;
mod source;

use canalis_connector_api::{Connector, ConnectorSpec, Options, Registry, Role, Source};
use canalis_types::{Code, Error, Result};

pub use order::{order_schema, order_texts};
pub use schedule::{Mix, live_orders};

use options::DatagenOptions;

/// Adds the connector to a registry.
pub fn register(registry: &mut Registry) {
    registry.add(Datagen);
}

struct Datagen;

impl Connector for Datagen {
    fn spec(&self) -> &'static ConnectorSpec {
        &options::SPEC
    }

    fn validate(&self, _role: Role, options: &Options) -> Vec<(String, String)> {
        DatagenOptions::read(options).err().into_iter().collect()
    }

    fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        let options = DatagenOptions::read(options)
            .map_err(|(key, why)| Error::new(Code::PipelineInvalid, format!("`{key}`: {why}")))?;
        Ok(Box::new(source::DatagenSource::new(options)))
    }
}
