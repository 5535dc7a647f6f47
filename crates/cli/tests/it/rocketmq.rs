//! RocketMQ as source and sink, on a real broker.

mod cases;
mod client;
mod crash;
mod paths;
