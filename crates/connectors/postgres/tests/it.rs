//! Tests against a real PostgreSQL.

// Helpers outside of test functions may unwrap like these.
#![allow(clippy::unwrap_used)]

#[path = "it/changes.rs"]
mod changes;
#[path = "it/contention.rs"]
mod contention;
#[path = "it/exactly_once.rs"]
mod exactly_once;
#[path = "it/keyless.rs"]
mod keyless;
#[path = "it/lab.rs"]
mod lab;
#[path = "it/left_out.rs"]
mod left_out;
#[path = "it/refusals.rs"]
mod refusals;
#[path = "it/snapshot.rs"]
mod snapshot;
#[path = "it/tables.rs"]
mod tables;
#[path = "it/tls.rs"]
mod tls;
#[path = "it/values.rs"]
mod values;
