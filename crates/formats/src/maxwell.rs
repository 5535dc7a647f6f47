//! Owns maxwell-json, the envelope of Maxwell's daemon: one message a row, values by their types, previous values of what changed.
//!
//! Reading needs the structure of a table, because bytes, dates and texts are all strings there: declared, or out of `table-create`
//! and `table-alter` messages. These tell no precision of decimals and no length of texts, so such columns are
//! DECIMAL(65,30), STRING or BYTES.
//!
//! A column that a message lacks is NULL (Maxwell leaves NULL out when told so). The row before an update is `data` with
//! `old` over it. Maxwell itself loses the sign and the days of a TIME below 0 or above 24 h; here the exact text is
//! written and read. Year 0000 is 1900, as Maxwell writes it. ENUM's error value is written as null, its only form there.

mod column;
mod decoder;
mod definition;
mod encoder;
mod envelope;
mod java_decimal;
mod wkt;
mod write;

pub use decoder::{MaxwellDecoder, MaxwellDecoderOptions};
pub use encoder::{CommitInfo, KeyFormat, MaxwellEncoder, MaxwellEncoderOptions, Srid};
