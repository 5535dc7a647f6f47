//! The binlog reader against real servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "binlog/charsets.rs"]
mod charsets;
#[path = "binlog/follow.rs"]
mod follow;
#[path = "binlog/moved.rs"]
mod moved;
#[path = "binlog/refusals.rs"]
mod refusals;
#[path = "binlog/restart.rs"]
mod restart;
#[path = "binlog/structure.rs"]
mod structure;
#[path = "binlog/support.rs"]
mod support;
#[path = "binlog/values.rs"]
mod values;
