//! Owns the PostgreSQL connector: a sink. Snapshots travel by COPY, changes are merged by key, positions are committed
//! together with the rows.
//!
//! Must not know: other connectors, the runtime.

mod catalog;
mod check;
mod client;
mod connector;
mod ddl;
mod encode;
mod error;
mod options;
mod progress;
mod quote;
mod sink;
mod target;
mod tls;
mod types;
mod writer;

pub use connector::{PostgresConnector, register};
pub use options::SPEC;
