//! The integration tests of the test kit, in one binary.
// The lint's exception for tests does not reach the helpers of integration tests.
#![allow(clippy::unwrap_used)]

#[path = "it/digest.rs"]
mod digest;
#[path = "it/servers.rs"]
mod servers;
