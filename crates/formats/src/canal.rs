//! Owns canal-json, the flat messages of Canal (`canal.mq.flatMessage`): a reader that takes what Canal, TiCDC, Flink and
//! other tools write, and a writer whose bytes are those of Canal.
//!
//! A message is one change of rows of one table, or one DDL statement. Every value is a string or null, so its type is
//! that of `mysqlType`; structure follows from `mysqlType` and `pkNames` for tables that are not declared. DDL messages are
//! never rows: TRUNCATE, ERASE (DROP TABLE) and RENAME are told as changes of their own, all others are passed over,
//! because the next row of the table tells its structure exactly (ALTER and CREATE among them).
//!
//! A column that is missing in `old` has not changed; one that is missing in `data` of an update is unknown and marked
//! unchanged. TIMESTAMP texts are local times of a configured zone: a time that clocks skip there is refused, of a time that
//! they show twice the reader takes the first, and the writer refuses the second.

mod column;
mod decoder;
mod encoder;
mod envelope;
mod java_sql;
mod plan;
mod statement;
mod structure;
mod template;
mod write;
mod zone;

pub use decoder::{CanalDecoder, CanalDecoderOptions};
pub use encoder::{CanalEncoder, CanalEncoderOptions, EnumMode, KeyChanges};
pub use zone::Zone;
