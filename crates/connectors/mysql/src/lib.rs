//! Owns the MySQL and MariaDB connector: a source (snapshot, then binlog) and a sink.
//!
//! Must not know: other connectors, the runtime.

pub mod binlog;
pub mod catalog;
pub mod charset;
mod client;
mod connector;
mod options;
pub mod quote;
mod sink;
mod source;
mod tls;
pub mod wire;

pub use client::{Endpoint, Flavor, ServerInfo, Side, server_info};
pub use connector::register;
pub use tls::{TlsMode, TlsOptions};
