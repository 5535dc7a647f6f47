//! Owns rows in Avro's binary encoding, both ways: plain rows and Debezium's envelope, behind the header of schema registries (a zero
//! byte, then the schema's id in 4 bytes, big-endian) or bare.
//!
//! Reading. The structure of a table follows from the schema that a message was written with. A schema with more fields adds
//! columns; a field that a schema lacks is read as the default another schema gave it, else as NULL. Columns of a declared
//! table are matched by name, other fields are left out, as Avro resolves schemas. Records, arrays, maps and unions of several
//! types become JSON texts. Values are exact or refused.
//!
//! Writing. The schema follows from the table. What Avro has no type for carries Debezium's semantic name (`connect.name`), so
//! that ENUM, SET, JSON, BIT, YEAR and geometries come back as they were. A name that Avro does not allow has `_uXXXX` for
//! each other character, and the field's attribute `canalis.column` holds the name itself.

mod bind;
mod cell;
mod column;
mod decoder;
mod default;
mod document;
mod encoder;
mod envelope;
mod names;
mod out;
mod read;
mod schema;
mod source;
mod tables;
mod write;

pub use decoder::{AvroDecoder, AvroDecoderOptions};
pub use encoder::{AvroEncoder, AvroEncoderOptions, TopicOf};
pub use schema::check_schema;
pub use source::{SchemaSource, SubjectNames};

/// What messages hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AvroKind {
    /// The row; a message without a payload deletes the row of its key.
    Rows,
    /// Debezium's envelope.
    Debezium,
}
