//! Owns text formats of rows: CSV and JSON lines, each with a decoder from bytes straight into columns and an
//! encoder from columns straight into bytes, and the textual column list of files without a structure of their own.
//! Every value is exact in both directions or refused. Foreign bytes never panic and are read with caps.
//!
//! Must not know: connectors, the runtime, IO.

pub mod avro;
pub mod canal;
mod cells;
mod charset;
mod column_list;
pub mod csv;
pub mod debezium;
mod decode;
mod encode;
pub mod inlong;
pub mod json;
pub mod maxwell;
pub mod message;
pub mod rows;
mod text;

pub use charset::{Charset, CharsetDecoder, read_header_in};
pub use column_list::parse_columns;
pub use decode::{BatchLimits, DecodeFailure, DecodedRows, InputEnd, Place, RecordDecoder};
pub use encode::{ChangeColumn, RowEncoder};
pub use text::ValueDecoder;
