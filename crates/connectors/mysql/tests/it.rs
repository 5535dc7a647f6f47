//! Tests against real servers.

#[path = "it/source.rs"]
mod source;

#[path = "it/binlog.rs"]
mod binlog;

#[path = "it/sink.rs"]
mod sink;

#[path = "it/tls.rs"]
mod tls;
