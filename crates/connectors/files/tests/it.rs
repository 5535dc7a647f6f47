//! Owns the integration tests of the connector `files`.

// Helpers outside of test functions may unwrap too.
#![allow(clippy::unwrap_used)]

#[path = "it/crash.rs"]
mod crash;
#[path = "it/sink.rs"]
mod sink;
#[path = "it/source.rs"]
mod source;
#[path = "it/support.rs"]
mod support;
