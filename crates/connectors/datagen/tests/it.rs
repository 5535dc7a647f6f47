//! Owns the integration tests of the connector `datagen`.

// Helpers outside of test functions may unwrap too.
#![allow(clippy::unwrap_used)]

#[path = "it/stream.rs"]
mod stream;
