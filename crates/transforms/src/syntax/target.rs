//! Owns the type names of CAST.

use canalis_types::LogicalType;
use sqlparser::ast::{BinaryLength, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};

/// The logical type that a type name stands for.
///
/// # Errors
/// What is wrong with the name, with the names that are known.
pub(super) fn target(ty: &DataType) -> Result<LogicalType, String> {
    Ok(match ty {
        DataType::Boolean | DataType::Bool => LogicalType::Boolean,
        DataType::TinyInt(None) => LogicalType::Int8,
        DataType::SmallInt(None) => LogicalType::Int16,
        DataType::Int(None) | DataType::Integer(None) => LogicalType::Int32,
        DataType::BigInt(None) => LogicalType::Int64,
        DataType::Float(ExactNumberInfo::None) | DataType::Real => LogicalType::Float32,
        DataType::Double(ExactNumberInfo::None) | DataType::DoublePrecision => LogicalType::Float64,
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => decimal(info)?,
        DataType::Char(length) | DataType::Character(length) => match characters(length)? {
            Some(length) => LogicalType::Char { length },
            None => LogicalType::Text,
        },
        DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length) => {
            match characters(length)? {
                Some(length) => LogicalType::Varchar { length },
                None => LogicalType::Text,
            }
        }
        DataType::String(None) | DataType::Text => LogicalType::Text,
        DataType::Date => LogicalType::Date,
        DataType::Time(precision, TimezoneInfo::None) => {
            LogicalType::Time { precision: fraction(*precision, 0)? }
        }
        DataType::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        | DataType::Datetime(precision)
        | DataType::TimestampNtz(precision) => LogicalType::Timestamp { precision: fraction(*precision, 6)? },
        DataType::Binary(Some(length)) => LogicalType::Binary { length: whole(*length)? },
        DataType::Varbinary(Some(BinaryLength::IntegerLength { length })) => {
            LogicalType::Varbinary { length: whole(*length)? }
        }
        DataType::Binary(None) | DataType::Varbinary(None) | DataType::Bytes(None) => LogicalType::Bytes,
        DataType::Custom(name, arguments) if name.to_string().eq_ignore_ascii_case("TIMESTAMP_LTZ") => {
            let precision = match arguments.as_slice() {
                [] => None,
                [one] => Some(one.parse().map_err(|_| format!("`{one}` is not a precision"))?),
                _ => return Err("TIMESTAMP_LTZ takes one precision".into()),
            };
            LogicalType::TimestampTz { precision: fraction(precision, 6)? }
        }
        other => {
            return Err(format!(
                "`{other}` is not a type to cast to; known are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, \
                 DECIMAL(p, s), CHAR(n), VARCHAR(n), STRING, DATE, TIME(p), TIMESTAMP(p), TIMESTAMP_LTZ(p), BINARY(n), \
                 VARBINARY(n) and BYTES"
            ));
        }
    })
}

fn decimal(info: &ExactNumberInfo) -> Result<LogicalType, String> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
    };
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..=76), Ok(scale)) if scale <= precision => {
            Ok(LogicalType::Decimal { precision, scale })
        }
        _ => Err(format!("DECIMAL({precision}, {scale}): precision is 1 to 76, scale 0 to the precision")),
    }
}

fn characters(length: &Option<CharacterLength>) -> Result<Option<u32>, String> {
    match length {
        None => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => whole(*length).map(Some),
        Some(CharacterLength::Max) => Err("MAX is not a length; write STRING".into()),
    }
}

fn whole(length: u64) -> Result<u32, String> {
    match u32::try_from(length) {
        Ok(length) if length > 0 => Ok(length),
        _ => Err(format!("{length} is not a usable length")),
    }
}

fn fraction(precision: Option<u64>, otherwise: u8) -> Result<u8, String> {
    match precision {
        None => Ok(otherwise),
        Some(p @ 0..=6) => Ok(u8::try_from(p).unwrap_or(6)),
        Some(p) => Err(format!("{p} fraction digits are not possible; at most 6 are kept")),
    }
}
