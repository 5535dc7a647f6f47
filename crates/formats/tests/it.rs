//! Owns the integration tests of the formats.

// Helpers outside of test functions may unwrap too.
#![allow(clippy::unwrap_used)]

#[path = "it/avro_cases.rs"]
mod avro_cases;
#[path = "it/avro_round_trip.rs"]
mod avro_round_trip;
#[path = "it/avro_support.rs"]
mod avro_support;
#[path = "it/canal_cases.rs"]
mod canal_cases;
#[path = "it/canal_round_trip.rs"]
mod canal_round_trip;
#[path = "it/canal_support.rs"]
mod canal_support;
#[path = "it/canal_vectors.rs"]
mod canal_vectors;
#[path = "it/canal_writer.rs"]
mod canal_writer;
#[path = "it/charset_cases.rs"]
mod charset_cases;
#[path = "it/csv_cases.rs"]
mod csv_cases;
#[path = "it/debezium_changes.rs"]
mod debezium_changes;
#[path = "it/debezium_documents.rs"]
mod debezium_documents;
#[path = "it/debezium_postgres.rs"]
mod debezium_postgres;
#[path = "it/debezium_round_trip.rs"]
mod debezium_round_trip;
#[path = "it/debezium_support.rs"]
mod debezium_support;
#[path = "it/debezium_vectors.rs"]
mod debezium_vectors;
#[path = "it/every_type.rs"]
mod every_type;
#[path = "it/flink_golden.rs"]
mod flink_golden;
#[path = "it/foreign_bytes.rs"]
mod foreign_bytes;
#[path = "it/inlong_cases.rs"]
mod inlong_cases;
#[path = "it/json_cases.rs"]
mod json_cases;
#[path = "it/maxwell_cases.rs"]
mod maxwell_cases;
#[path = "it/maxwell_vectors.rs"]
mod maxwell_vectors;
#[path = "it/message_support.rs"]
mod message_support;
#[path = "it/round_trip.rs"]
mod round_trip;
#[path = "it/rows_cases.rs"]
mod rows_cases;
#[path = "it/support.rs"]
mod support;
