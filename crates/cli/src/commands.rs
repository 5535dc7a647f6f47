//! Owns the commands of the binary, a module each.

pub mod check;
pub mod connectors;
pub mod plan;
pub mod preview;
pub mod run;
pub mod savepoint;
pub mod version;
