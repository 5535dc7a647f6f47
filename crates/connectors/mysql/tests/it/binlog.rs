//! The binlog reader against real servers.

#[path = "binlog/charsets.rs"]
mod charsets;
#[path = "binlog/follow.rs"]
mod follow;
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
