//! Tests against real servers.

#[path = "it/source.rs"]
mod source;
