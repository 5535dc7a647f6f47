//! Owns the modes of Debezium that decide what values look like.

/// Form of decimals (`decimal.handling.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecimalMode {
    /// Base64 of the unscaled integer, two's complement, big-endian.
    #[default]
    Precise,
    /// `"123.45"`.
    String,
    /// A floating-point number: rounds.
    Double,
}

/// Form of `BIGINT UNSIGNED` (`bigint.unsigned.handling.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BigintUnsignedMode {
    /// A number of 64 bits with sign: values from 2^63 on are negative. Debezium's default.
    Long,
    /// As a decimal without fraction, base64.
    #[default]
    Precise,
}

/// Form of bytes (`binary.handling.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BinaryMode {
    /// Bytes, which JSON carries as base64.
    #[default]
    Bytes,
    /// A string of base64.
    Base64,
    /// A string of base64 in the alphabet for addresses.
    Base64UrlSafe,
    /// A string of hexadecimal digits.
    Hex,
}

/// Form of dates and times (`time.precision.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeMode {
    /// Milliseconds up to precision 3, else microseconds. Debezium's default for PostgreSQL and others.
    Adaptive,
    /// The same for date-times; times of day are always microseconds. Debezium's default for MySQL.
    #[default]
    AdaptiveMicros,
    /// Milliseconds, with the logical types of Kafka Connect.
    Connect,
    /// Strings as in ISO 8601.
    IsoString,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// What becomes of dates that no calendar has (`0000-00-00`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZeroDates {
    /// The row is refused.
    #[default]
    Refuse,
    /// NULL where the column allows it, else the epoch, as Debezium does. The value is lost.
    NullOrEpoch,
}

/// The connector that messages say they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Connector {
    /// `mysql`.
    #[default]
    Mysql,
    /// `mariadb`.
    Mariadb,
}

impl Connector {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
        }
    }
}
