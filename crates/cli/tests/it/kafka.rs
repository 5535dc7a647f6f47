//! Kafka as source and sink, on a real broker.

mod cases;
pub mod client;
mod crash;
pub mod paths;
