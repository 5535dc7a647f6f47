//! Conformance of connectors: every claim that a [`ConnectorSpec`](canalis_connector_api::ConnectorSpec) or a sink's
//! capabilities make is proved on the real system, by driving sinks and writers directly, and asking the system itself
//! what it holds then.
//!
//! A new connector of the binary is found here by itself: without a place in [`lab`] the tests fail.

mod changes;
mod lab;
mod ledger;
mod model;
mod names;
mod recovery;
mod refusals;
mod snapshot;
mod spec;
mod tables;

pub use lab::registry;
