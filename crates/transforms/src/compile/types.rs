//! Owns the algebra of logical types: families, common types, decimal digits.

use canalis_types::LogicalType;

/// Types that are treated alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub(crate) enum Family {
    Boolean,
    Integer,
    Decimal,
    Float,
    Text,
    Binary,
    Date,
    Time,
    Timestamp,
    Instant,
}

/// The family of a type.
pub(crate) fn family(ty: &LogicalType) -> Family {
    use LogicalType::*;
    match ty {
        Boolean => Family::Boolean,
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Year | Bit { .. } => {
            Family::Integer
        }
        Float32 | Float64 => Family::Float,
        Decimal { .. } => Family::Decimal,
        Date => Family::Date,
        Time { .. } => Family::Time,
        Timestamp { .. } => Family::Timestamp,
        TimestampTz { .. } => Family::Instant,
        Char { .. } | Varchar { .. } | Text | Json | Enum { .. } | Set { .. } | Uuid => Family::Text,
        Binary { .. } | Varbinary { .. } | Bytes | Geometry => Family::Binary,
    }
}

/// Whether the type is a number.
pub(crate) fn is_number(ty: &LogicalType) -> bool {
    matches!(family(ty), Family::Integer | Family::Decimal | Family::Float)
}

/// Fraction digits of a time type.
pub(crate) fn fraction(ty: &LogicalType) -> u8 {
    match ty {
        LogicalType::Time { precision }
        | LogicalType::Timestamp { precision }
        | LogicalType::TimestampTz { precision } => *precision,
        _ => 0,
    }
}

/// Digits before and after the point that hold every value of an exact number type.
pub(crate) fn digits(ty: &LogicalType) -> Option<(u8, u8)> {
    use LogicalType::*;
    Some(match ty {
        Int8 | UInt8 => (3, 0),
        Int16 | UInt16 | Year => (5, 0),
        Int32 | UInt32 => (10, 0),
        Int64 => (19, 0),
        UInt64 | Bit { .. } => (20, 0),
        Decimal { precision, scale } => (precision - scale, *scale),
        _ => return None,
    })
}

/// A decimal type of so many digits before and after the point, at most 76 in all.
pub(crate) fn decimal(whole: u8, scale: u8) -> LogicalType {
    let precision = whole.saturating_add(scale).clamp(1, 76);
    LogicalType::Decimal { precision, scale: scale.min(precision) }
}

/// The type of integer arithmetic: INT up to 32 bits, BIGINT above, and a decimal for unsigned 64 bits.
pub(crate) fn integer_work_type(ty: &LogicalType) -> LogicalType {
    use LogicalType::*;
    match ty {
        Int8 | Int16 | Int32 | UInt8 | UInt16 | Year => Int32,
        Int64 | UInt32 => Int64,
        _ => Decimal { precision: 20, scale: 0 },
    }
}

/// The narrowest type that holds the values of both.
///
/// # Errors
/// There is none.
pub(crate) fn common(a: &LogicalType, b: &LogicalType) -> Result<LogicalType, String> {
    use Family::*;
    if a == b {
        return Ok(a.clone());
    }
    let precision = fraction(a).max(fraction(b));
    Ok(match (family(a), family(b)) {
        (Integer, Integer) => integers(a, b),
        (Integer | Decimal, Integer | Decimal) => {
            let ((w1, s1), (w2, s2)) = (digits(a).unwrap_or((20, 0)), digits(b).unwrap_or((20, 0)));
            let (whole, scale) = (w1.max(w2), s1.max(s2));
            if whole + scale > 76 {
                return Err(format!("{a} and {b} together need more than 76 digits"));
            }
            decimal(whole, scale)
        }
        (Float, Float) => LogicalType::Float64,
        (Float, Integer | Decimal) => float_with(a, b),
        (Integer | Decimal, Float) => float_with(b, a),
        (Text, Text) => match (length(a), length(b)) {
            (Some(a), Some(b)) => LogicalType::Varchar { length: a.max(b) },
            _ => LogicalType::Text,
        },
        (Binary, Binary) => LogicalType::Bytes,
        (Time, Time) => LogicalType::Time { precision },
        (Timestamp, Timestamp | Date) | (Date, Timestamp) => LogicalType::Timestamp { precision },
        (Instant, Instant | Timestamp | Date) | (Timestamp | Date, Instant) => {
            LogicalType::TimestampTz { precision }
        }
        _ => return Err(format!("{a} and {b} have no common type")),
    })
}

/// Small integers fit a FLOAT exactly; everything else meets it as DOUBLE.
fn float_with(float: &LogicalType, other: &LogicalType) -> LogicalType {
    match other {
        LogicalType::Int8 | LogicalType::Int16 | LogicalType::UInt8 | LogicalType::UInt16 => float.clone(),
        _ => LogicalType::Float64,
    }
}

fn integers(a: &LogicalType, b: &LogicalType) -> LogicalType {
    use LogicalType::*;
    /// Bits, and whether signed.
    fn shape(ty: &LogicalType) -> (u8, bool) {
        match ty {
            Int8 => (8, true),
            Int16 => (16, true),
            Int32 => (32, true),
            Int64 => (64, true),
            UInt8 => (8, false),
            UInt16 | Year => (16, false),
            UInt32 => (32, false),
            _ => (64, false),
        }
    }
    let ((bits_a, signed_a), (bits_b, signed_b)) = (shape(a), shape(b));
    if signed_a == signed_b {
        return match (bits_a.max(bits_b), signed_a) {
            (8, true) => Int8,
            (16, true) => Int16,
            (32, true) => Int32,
            (_, true) => Int64,
            (8, false) => UInt8,
            (16, false) => UInt16,
            (32, false) => UInt32,
            (_, false) => UInt64,
        };
    }
    let (signed, unsigned) = if signed_a { (bits_a, bits_b) } else { (bits_b, bits_a) };
    match signed.max(unsigned.saturating_mul(2)) {
        0..=16 => Int16,
        17..=32 => Int32,
        33..=64 => Int64,
        _ => Decimal { precision: 20, scale: 0 },
    }
}

fn length(ty: &LogicalType) -> Option<u32> {
    match ty {
        LogicalType::Char { length } | LogicalType::Varchar { length } => Some(*length),
        LogicalType::Uuid => Some(36),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use LogicalType::*;

    use super::*;

    #[test]
    fn common_types_hold_both_sides() {
        let dec = |precision, scale| Decimal { precision, scale };
        for (a, b, expect) in [
            (Int8, Int32, Some(Int32)),
            (UInt8, Int8, Some(Int16)),
            (UInt32, Int32, Some(Int64)),
            (UInt64, Int8, Some(dec(20, 0))),
            (Year, UInt16, Some(UInt16)),
            (Int64, dec(5, 3), Some(dec(22, 3))),
            (dec(10, 2), dec(8, 6), Some(dec(14, 6))),
            (dec(70, 0), dec(20, 20), None),
            (Float32, Int16, Some(Float32)),
            (Float32, Int32, Some(Float64)),
            (Char { length: 3 }, Varchar { length: 9 }, Some(Varchar { length: 9 })),
            (Text, Json, Some(Text)),
            (Date, Timestamp { precision: 3 }, Some(Timestamp { precision: 3 })),
            (Timestamp { precision: 3 }, TimestampTz { precision: 0 }, Some(TimestampTz { precision: 3 })),
            (Int32, Text, None),
            (Boolean, Int32, None),
        ] {
            assert_eq!(common(&a, &b).ok(), expect, "{a} and {b}");
            assert_eq!(common(&b, &a).ok(), expect, "{b} and {a}");
        }
    }
}
