//! Owns [`LogicalType`], the types that values have between source and sink.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Type of a column, independent of any system. Physical (Arrow) forms are in `canalis_batch::arrow_type`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum LogicalType {
    /// True or false.
    Boolean,
    /// Signed integer of 8 bits.
    Int8,
    /// Signed integer of 16 bits.
    Int16,
    /// Signed integer of 32 bits.
    Int32,
    /// Signed integer of 64 bits.
    Int64,
    /// Unsigned integer of 8 bits.
    UInt8,
    /// Unsigned integer of 16 bits.
    UInt16,
    /// Unsigned integer of 32 bits.
    UInt32,
    /// Unsigned integer of 64 bits.
    UInt64,
    /// IEEE 754 single.
    Float32,
    /// IEEE 754 double.
    Float64,
    /// Exact decimal: precision 1–76, scale 0–precision.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Calendar date. Partly-zero dates of MySQL are kept, see [`crate::temporal`].
    Date,
    /// Signed duration, as MySQL's TIME, in microseconds.
    Time {
        /// Fraction digits, 0–6.
        precision: u8,
    },
    /// Local date and time without zone, in microseconds. Partly-zero values of MySQL are kept.
    Timestamp {
        /// Fraction digits, 0–6.
        precision: u8,
    },
    /// Instant, microseconds since the epoch in UTC. MySQL's all-zero TIMESTAMP is kept.
    TimestampTz {
        /// Fraction digits, 0–6.
        precision: u8,
    },
    /// Calendar year as a small number: 0, 1901–2155.
    Year,
    /// Text of exactly or at most `length` characters (trailing blanks are not significant).
    Char {
        /// Characters.
        length: u32,
    },
    /// Text of at most `length` characters.
    Varchar {
        /// Characters.
        length: u32,
    },
    /// Text without a declared limit.
    Text,
    /// Exactly `length` bytes.
    Binary {
        /// Bytes.
        length: u32,
    },
    /// At most `length` bytes.
    Varbinary {
        /// Bytes.
        length: u32,
    },
    /// Bytes without a declared limit.
    Bytes,
    /// Bit field of 1–64 bits, held as an unsigned number.
    Bit {
        /// Bits.
        length: u8,
    },
    /// JSON as text.
    Json,
    /// One of the labels, as text; the empty text stands for MySQL's error value.
    Enum {
        /// Labels in definition order.
        labels: Vec<String>,
    },
    /// A subset of the labels, as text joined by commas in definition order.
    Set {
        /// Labels in definition order.
        labels: Vec<String>,
    },
    /// Geometry in MySQL's form: SRID as 4 bytes little-endian, then WKB.
    Geometry,
    /// UUID as text of 36 characters.
    Uuid,
}

impl LogicalType {
    /// Whether values are held as text.
    pub fn is_text(&self) -> bool {
        use LogicalType::*;
        matches!(self, Char { .. } | Varchar { .. } | Text | Json | Enum { .. } | Set { .. } | Uuid)
    }

    /// Whether values are held as bytes.
    pub fn is_binary(&self) -> bool {
        use LogicalType::*;
        matches!(self, Binary { .. } | Varbinary { .. } | Bytes | Geometry)
    }
}

/// SQL-like spelling, for messages, plans and documents.
impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LogicalType::*;
        match self {
            Boolean => f.write_str("BOOLEAN"),
            Int8 => f.write_str("TINYINT"),
            Int16 => f.write_str("SMALLINT"),
            Int32 => f.write_str("INT"),
            Int64 => f.write_str("BIGINT"),
            UInt8 => f.write_str("TINYINT UNSIGNED"),
            UInt16 => f.write_str("SMALLINT UNSIGNED"),
            UInt32 => f.write_str("INT UNSIGNED"),
            UInt64 => f.write_str("BIGINT UNSIGNED"),
            Float32 => f.write_str("FLOAT"),
            Float64 => f.write_str("DOUBLE"),
            Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            Date => f.write_str("DATE"),
            Time { precision } => write!(f, "TIME({precision})"),
            Timestamp { precision } => write!(f, "TIMESTAMP({precision})"),
            TimestampTz { precision } => write!(f, "TIMESTAMP_LTZ({precision})"),
            Year => f.write_str("YEAR"),
            Char { length } => write!(f, "CHAR({length})"),
            Varchar { length } => write!(f, "VARCHAR({length})"),
            Text => f.write_str("STRING"),
            Binary { length } => write!(f, "BINARY({length})"),
            Varbinary { length } => write!(f, "VARBINARY({length})"),
            Bytes => f.write_str("BYTES"),
            Bit { length } => write!(f, "BIT({length})"),
            Json => f.write_str("JSON"),
            Enum { .. } => f.write_str("ENUM"),
            Set { .. } => f.write_str("SET"),
            Geometry => f.write_str("GEOMETRY"),
            Uuid => f.write_str("UUID"),
        }
    }
}
