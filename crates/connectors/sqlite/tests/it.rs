//! Tests against real database files.

// Helpers outside of test functions may unwrap like these.
#![allow(clippy::unwrap_used)]

#[path = "it/changes.rs"]
mod changes;
#[path = "it/exactly_once.rs"]
mod exactly_once;
#[path = "it/lab.rs"]
mod lab;
#[path = "it/left_out.rs"]
mod left_out;
#[path = "it/tables.rs"]
mod tables;
#[path = "it/values.rs"]
mod values;
