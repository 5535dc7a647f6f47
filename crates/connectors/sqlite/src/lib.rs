//! Owns the SQLite connector: a sink into one database file, in which rows and positions are committed together.
//!
//! Must not know: other connectors, the runtime.

mod catalog;
mod cell;
mod check;
mod connector;
mod database;
mod ddl;
mod error;
mod options;
mod progress;
mod sink;
mod target;
mod types;
mod writer;

pub use connector::{SqliteConnector, register};
pub use options::SPEC;
