//! Owns [`Form`]: how values of a column look in JSON, and which form a declared type has under given modes.

use canalis_types::LogicalType;

use super::{BigintUnsignedMode, BinaryMode, DebeziumDecoderOptions, DecimalMode, TimeMode};

/// Unit of a number that stands for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// How decimals are spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Base64 of the unscaled integer.
    Unscaled,
    /// Digits.
    Text,
}

/// How values look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Boolean,
    /// A number without fraction. In a column of unsigned 64 bits negative numbers are those that wrapped.
    Whole,
    Float,
    Decimal(Spelling),
    /// A struct of scale and unscaled value.
    VariableDecimal,
    Year,
    /// Days since the epoch, or ISO 8601.
    Days,
    /// A number of units since midnight, or ISO 8601.
    Time(Unit),
    /// A number of units since the epoch, or ISO 8601.
    Timestamp(Unit),
    /// ISO 8601 with an offset.
    Instant,
    /// Base64, little-endian; a boolean for one bit.
    Bits,
    Text,
    /// A string that holds JSON, or JSON itself.
    Document,
    Bytes(BinaryMode),
    /// A struct with WKB and SRID.
    Geometry,
}

impl Form {
    /// The form that values of a declared type have.
    pub(super) fn of(ty: &LogicalType, options: &DebeziumDecoderOptions) -> Self {
        use LogicalType as L;
        match ty {
            L::Boolean => Self::Boolean,
            L::UInt64 if options.bigint_unsigned == BigintUnsignedMode::Precise => {
                Self::Decimal(Spelling::Unscaled)
            }
            L::Int8 | L::Int16 | L::Int32 | L::Int64 => Self::Whole,
            L::UInt8 | L::UInt16 | L::UInt32 | L::UInt64 => Self::Whole,
            L::Float32 | L::Float64 => Self::Float,
            L::Decimal { .. } if options.decimal_mode == DecimalMode::Precise => {
                Self::Decimal(Spelling::Unscaled)
            }
            L::Decimal { .. } => Self::Decimal(Spelling::Text),
            L::Date => Self::Days,
            L::Time { precision } => Self::Time(time_unit(options.time_mode, *precision)),
            L::Timestamp { precision } => Self::Timestamp(timestamp_unit(options.time_mode, *precision)),
            L::TimestampTz { .. } => Self::Instant,
            L::Year => Self::Year,
            L::Bit { .. } => Self::Bits,
            L::Json => Self::Document,
            L::Char { .. } | L::Varchar { .. } | L::Text => Self::Text,
            L::Enum { .. } | L::Set { .. } | L::Uuid => Self::Text,
            L::Binary { .. } | L::Varbinary { .. } | L::Bytes => Self::Bytes(options.binary_mode),
            L::Geometry => Self::Geometry,
        }
    }

    /// Whether values are base64 or hexadecimal.
    pub(super) fn is_coded(self) -> bool {
        matches!(
            self,
            Self::Bytes(_) | Self::Decimal(Spelling::Unscaled) | Self::VariableDecimal | Self::Bits
        )
    }
}

/// Unit of times of day. Texts carry theirs in them.
pub(super) fn time_unit(mode: TimeMode, precision: u8) -> Unit {
    match mode {
        TimeMode::Adaptive if precision <= 3 => Unit::Millis,
        TimeMode::Connect => Unit::Millis,
        TimeMode::Nanos => Unit::Nanos,
        TimeMode::Adaptive | TimeMode::AdaptiveMicros | TimeMode::Micros | TimeMode::IsoString => {
            Unit::Micros
        }
    }
}

/// Unit of local date-times.
pub(super) fn timestamp_unit(mode: TimeMode, precision: u8) -> Unit {
    match mode {
        TimeMode::Adaptive | TimeMode::AdaptiveMicros if precision <= 3 => Unit::Millis,
        TimeMode::Connect => Unit::Millis,
        TimeMode::Nanos => Unit::Nanos,
        TimeMode::Adaptive | TimeMode::AdaptiveMicros | TimeMode::Micros | TimeMode::IsoString => {
            Unit::Micros
        }
    }
}
