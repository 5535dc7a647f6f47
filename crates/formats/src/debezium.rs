//! Owns debezium-json: the change envelope of Debezium, both ways, with the schema inside the messages or without.
//!
//! Reading. With `{"schema":…,"payload":…}` the structure of a table comes from the schema, its key from the message key.
//! Without a schema a table must be declared, because base64 text and bare numbers do not tell what they stand for. A
//! tombstone that follows the delete of its key is passed over, so both are one delete; a tombstone alone is a delete by key.
//! The placeholder of a value that the database did not log becomes an *unchanged* cell. Cells of a before-image that the source
//! did not send are marked unchanged as well: sinks of tables with a key need only the key of it.
//!
//! Writing. Strict: bytes are those that Debezium writes, but for what a batch does not carry (place in the binlog, thread,
//! statement). Three defaults differ, because Debezium's lose data: `BIGINT UNSIGNED` is `precise`, zero dates are
//! refused, and so are values finer or larger than the chosen form of time. A change of the key is a delete, its
//! tombstone, and a create; the headers `__debezium.newkey` and `__debezium.oldkey` are left out until messages carry
//! headers. YEAR 0 is written as 0; 1900, which Debezium makes of it in the binlog, is read as 0. Writing decimals as doubles
//! rounds them, as the name says.

mod cell;
mod column;
mod connect_schema;
mod decoder;
mod derive;
mod encoder;
mod envelope;
mod image;
mod key;
mod modes;
mod point;
mod refuse;
mod scalar;
mod schemas;
mod source_block;
mod structure;
mod tables;
mod topics;
mod types;
mod wrapper;
mod write_cell;
mod write_schema;

pub use decoder::{DebeziumDecoder, DebeziumDecoderOptions};
pub(crate) use derive::labels_of;
pub use encoder::{Clock, DebeziumEncoder, DebeziumEncoderOptions};
pub use modes::{BigintUnsignedMode, BinaryMode, Connector, DecimalMode, TimeMode, ZeroDates};
pub(crate) use topics::{Tables, Topics};

/// What stands for a value that the database did not log.
pub const UNAVAILABLE: &str = "__debezium_unavailable_value";
