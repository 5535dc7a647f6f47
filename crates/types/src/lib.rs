//! Owns the words of Canalis that every layer shares: table ids, logical types, table schemas, row
//! kinds, positions, temporal encodings, and errors with their kinds and stable codes.
//!
//! Must not know: IO, async runtimes, Arrow, connectors.

pub mod error;
mod logical_type;
pub mod mysql_type;
mod position;
mod row_kind;
mod schema;
mod schema_change;
mod table_id;
pub mod temporal;
pub mod units;

pub use error::{Code, Error, ErrorKind, Fault, Result};
pub use logical_type::LogicalType;
pub use position::{Order, Position};
pub use row_kind::RowKind;
pub use schema::{Column, ColumnDefault, Index, NativeType, TableSchema};
pub use schema_change::{ColumnPlace, SchemaChange, SchemaChangeKind};
pub use table_id::TableId;
