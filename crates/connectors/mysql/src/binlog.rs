//! Owns reading the binlog of MySQL and MariaDB: events from bytes ([`event`], [`rows`]), statements that change
//! tables ([`ddl`]), GTIDs ([`gtid`]), and [`Reader`], which follows a server's log and delivers batches, schema
//! changes and watermarks.
//!
//! Every function over bytes is total: any input gives a value or an error, never a panic. An event type that is
//! neither decoded nor known to be harmless is an error with its type and position.

pub mod compressed;
pub mod cursor;
pub mod ddl;
pub mod event;
pub mod gtid;
mod position;
mod reader;
pub mod rows;
pub mod table_map;

pub use position::{BinlogPosition, FIRST_OFFSET, file_number};
pub use reader::{Reader, ReaderConfig, SchemaTracker, StartPosition};
