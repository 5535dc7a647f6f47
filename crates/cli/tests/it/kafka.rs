//! Kafka as source and sink, on a real broker.

mod avro;
mod cases;
pub mod client;
mod crash;
mod options;
pub mod paths;
