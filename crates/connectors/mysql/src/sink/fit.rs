//! Owns the decision whether an existing column can hold the values of a source column. What the server
//! refuses row by row is allowed with a note; what it would round or cut in silence is guarded or not allowed.

use canalis_types::{Column, LogicalType};

use super::existing::ExistingColumn;

/// Limits that the sink checks itself, because the server would round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Guard {
    /// Fraction digits that a decimal may have.
    pub scale: Option<u8>,
    /// Fraction digits that seconds may have.
    pub fraction: Option<u8>,
}

/// Whether a column fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// Every value or, with a note, most values.
    Holds {
        /// What the user should know.
        note: Option<String>,
        /// What is to be checked in each row.
        guard: Guard,
    },
    /// Not in a way that keeps values.
    Cannot,
}

const EXACT: Fit = Fit::Holds { note: None, guard: Guard { scale: None, fraction: None } };

fn noted(note: String) -> Fit {
    Fit::Holds { note: Some(note), guard: Guard::default() }
}

/// Kinds of column types of MySQL and MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Integer { bits: u32 },
    Decimal,
    Float,
    Double,
    Bit,
    Year,
    Date,
    Time,
    DateTime,
    Text,
    Bytes { padded: bool },
    Label,
    Json,
    Geometry,
    Vector,
    Word,
    Other,
}

fn family(data_type: &str) -> Family {
    match data_type {
        "tinyint" => Family::Integer { bits: 8 },
        "smallint" => Family::Integer { bits: 16 },
        "mediumint" => Family::Integer { bits: 24 },
        "int" | "integer" => Family::Integer { bits: 32 },
        "bigint" => Family::Integer { bits: 64 },
        "decimal" | "numeric" => Family::Decimal,
        "float" => Family::Float,
        "double" | "real" => Family::Double,
        "bit" => Family::Bit,
        "year" => Family::Year,
        "date" => Family::Date,
        "time" => Family::Time,
        "datetime" | "timestamp" => Family::DateTime,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Family::Text,
        "binary" => Family::Bytes { padded: true },
        "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Family::Bytes { padded: false },
        "enum" | "set" => Family::Label,
        "json" => Family::Json,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => Family::Geometry,
        "vector" => Family::Vector,
        "uuid" | "inet4" | "inet6" => Family::Word,
        _ => Family::Other,
    }
}

/// Judges one pair of columns.
pub(super) fn fit(source: &Column, target: &ExistingColumn) -> Fit {
    let family = family(&target.data_type);
    let overflow = || {
        noted(format!(
            "column `{}`: {} → {} can overflow; rows that do not fit are refused",
            source.name, source.ty, target.column_type
        ))
    };
    let same_native = source.native.as_ref().is_some_and(|native| {
        native.dialect == "mysql" && native.sql.eq_ignore_ascii_case(&target.column_type)
    });
    use LogicalType::*;
    match (&source.ty, family) {
        // TINYINT(1), MEDIUMINT and the like arrive as wider logical types.
        (ty, Family::Integer { bits }) if let Some((low, high)) = whole_range(ty) => {
            let (min, max) = integer_range(bits, target.unsigned());
            if low >= min && high <= max || same_native { EXACT } else { overflow() }
        }
        (ty, Family::Decimal) if let Some((low, high)) = whole_range(ty) => {
            let digits = target.precision.unwrap_or(0).saturating_sub(target.scale.unwrap_or(0));
            let max = 10i128.checked_pow(u32::try_from(digits).unwrap_or(0)).unwrap_or(i128::MAX);
            if low > -max && high < max && (low >= 0 || !target.unsigned()) { EXACT } else { overflow() }
        }
        (ty, Family::Float | Family::Double) if let Some((low, high)) = whole_range(ty) => {
            let exact = if family == Family::Float { 1i128 << 24 } else { 1i128 << 53 };
            if low >= -exact && high <= exact { EXACT } else { Fit::Cannot }
        }
        (Year, Family::Year) => EXACT,
        (Boolean | Bit { .. } | UInt8 | UInt16 | UInt32 | UInt64, Family::Bit) => match &source.ty {
            Bit { length } if u64::from(*length) <= target.precision.unwrap_or(0) => EXACT,
            Boolean => EXACT,
            _ => overflow(),
        },
        (Decimal { precision, scale }, Family::Decimal) => {
            let target_scale = u8::try_from(target.scale.unwrap_or(0)).unwrap_or(u8::MAX);
            let whole = u64::from(precision - scale);
            let fits = whole + u64::from(target_scale) <= target.precision.unwrap_or(0);
            let note = (!fits || *scale > target_scale || target.unsigned() && !same_native).then(|| {
                format!(
                    "column `{}`: {} → {}: rows with more digits are refused",
                    source.name, source.ty, target.column_type
                )
            });
            Fit::Holds {
                note,
                guard: Guard { scale: (*scale > target_scale).then_some(target_scale), fraction: None },
            }
        }
        (Decimal { scale: 0, .. }, Family::Integer { .. }) => overflow(),
        // With declared digits the server rounds; then only the very same declaration keeps values.
        (Float32, Family::Float | Family::Double) | (Float64, Family::Double)
            if same_native || target.scale.is_none() =>
        {
            EXACT
        }
        (Date, Family::Date) => EXACT,
        (Date, Family::DateTime) => EXACT,
        (Time { precision }, Family::Time)
        | (Timestamp { precision } | TimestampTz { precision }, Family::DateTime) => {
            let fraction = u8::try_from(target.fraction.unwrap_or(0)).unwrap_or(0);
            let mut notes = Vec::new();
            if *precision > fraction {
                notes.push(format!("rows with more than {fraction} fraction digits are refused"));
            }
            match (&source.ty, target.data_type.as_str()) {
                (Timestamp { .. }, "timestamp") => {
                    notes.push("local times are taken as UTC; rows outside 1970–2038 are refused".to_owned())
                }
                (TimestampTz { .. }, "datetime") => notes.push("instants are stored in UTC".to_owned()),
                _ => {}
            }
            Fit::Holds {
                note: (!notes.is_empty()).then(|| {
                    format!(
                        "column `{}`: {} → {}: {}",
                        source.name,
                        source.ty,
                        target.column_type,
                        notes.join("; ")
                    )
                }),
                guard: Guard { scale: None, fraction: (*precision > fraction).then_some(fraction) },
            }
        }
        (ty, Family::Text) if !ty.is_binary() => text_fit(source, target),
        (Enum { .. } | Set { .. }, Family::Label) if same_native => EXACT,
        (ty, Family::Label) if ty.is_text() => noted(format!(
            "column `{}`: texts that are not among the labels of {} are refused",
            source.name, target.column_type
        )),
        (Json, Family::Json) => EXACT,
        (ty, Family::Json) if ty.is_text() => {
            noted(format!("column `{}`: texts that are not JSON are refused", source.name))
        }
        (ty, Family::Word) if ty.is_text() => EXACT,
        (ty, Family::Bytes { padded: false }) if ty.is_text() || ty.is_binary() => {
            let length = match ty {
                Binary { length } | Varbinary { length } => Some(u64::from(*length)),
                _ => None,
            };
            if same_native || length.zip(target.length).is_some_and(|(s, t)| s <= t) || is_long(target) {
                EXACT
            } else {
                noted(format!(
                    "column `{}`: {} → {}: longer values are refused",
                    source.name, source.ty, target.column_type
                ))
            }
        }
        (Binary { length }, Family::Bytes { padded: true }) if Some(u64::from(*length)) == target.length => {
            EXACT
        }
        (Geometry, Family::Geometry) => EXACT,
        (ty, Family::Vector | Family::Word) if ty.is_binary() => EXACT,
        _ => Fit::Cannot,
    }
}

fn is_long(target: &ExistingColumn) -> bool {
    target.length.is_some_and(|length| length >= u64::from(u32::MAX) / 4)
}

/// Texts, and any other value in its text form, in a text column.
fn text_fit(source: &Column, target: &ExistingColumn) -> Fit {
    let native = source.native.as_ref().filter(|native| native.dialect == "mysql");
    let mut notes = Vec::new();
    let length = match &source.ty {
        LogicalType::Char { length } | LogicalType::Varchar { length } => Some(u64::from(*length)),
        LogicalType::Uuid => Some(36),
        ty if ty.is_text() => None,
        _ => Some(80),
    };
    let same_type = native.is_some_and(|native| native.sql.eq_ignore_ascii_case(&target.column_type));
    let long_enough = same_type || is_long(target) || length.zip(target.length).is_some_and(|(s, t)| s <= t);
    if !long_enough {
        notes.push("longer texts are refused".to_owned());
    }
    if target.data_type == "char" && !matches!(source.ty, LogicalType::Char { .. } | LogicalType::Uuid) {
        notes.push("trailing blanks are not kept".to_owned());
    }
    let charset = target.charset.as_deref().unwrap_or("utf8mb4");
    let same_charset = native
        .and_then(|native| native.charset.as_deref())
        .is_some_and(|source| source.eq_ignore_ascii_case(charset));
    if source.ty.is_text() && charset != "utf8mb4" && !same_charset {
        notes.push(format!("texts with characters outside {charset} are refused"));
    }
    if notes.is_empty() {
        return EXACT;
    }
    noted(format!("column `{}`: {} → {}: {}", source.name, source.ty, target.column_type, notes.join("; ")))
}

/// Smallest and largest value of a whole-number type.
fn whole_range(ty: &LogicalType) -> Option<(i128, i128)> {
    use LogicalType::*;
    Some(match ty {
        Boolean => (0, 1),
        Int8 => integer_range(8, false),
        Int16 => integer_range(16, false),
        Int32 => integer_range(32, false),
        Int64 => integer_range(64, false),
        UInt8 => integer_range(8, true),
        UInt16 => integer_range(16, true),
        UInt32 => integer_range(32, true),
        UInt64 => integer_range(64, true),
        Year => (0, 2155),
        Bit { length } => integer_range(u32::from(*length), true),
        _ => return None,
    })
}

fn integer_range(bits: u32, unsigned: bool) -> (i128, i128) {
    if unsigned { (0, (1i128 << bits) - 1) } else { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(column_type: &str) -> ExistingColumn {
        let data_type = column_type.split(['(', ' ']).next().unwrap().to_owned();
        let numbers: Vec<u64> =
            column_type.split(['(', ',', ')']).filter_map(|part| part.trim().parse().ok()).collect();
        let first = numbers.first().copied();
        let is_time = matches!(data_type.as_str(), "time" | "datetime" | "timestamp");
        ExistingColumn {
            name: "c".into(),
            length: first,
            precision: first,
            scale: numbers.get(1).copied().or((data_type == "decimal").then_some(0)),
            fraction: is_time.then(|| first.unwrap_or(0)),
            charset: Some("utf8mb4".into()),
            data_type,
            column_type: column_type.into(),
            ..ExistingColumn::default()
        }
    }

    #[test]
    fn sk_01_what_can_overflow_is_said_and_what_would_be_rounded_is_not_allowed() {
        use LogicalType::*;
        // "=" exact, "~" with a note, "x" not allowed.
        for (ty, column, expect) in [
            (Int32, "int(11)", "="),
            (Int32, "tinyint(4)", "~"),
            (Int32, "int(10) unsigned", "~"),
            (UInt32, "bigint(20)", "="),
            (Int64, "double", "x"),
            (Int16, "float", "="),
            (UInt64, "decimal(20,0)", "="),
            (UInt64, "decimal(19,0)", "~"),
            (Decimal { precision: 12, scale: 4 }, "decimal(10,2)", "~"),
            (Decimal { precision: 12, scale: 4 }, "decimal(20,4)", "="),
            (Decimal { precision: 12, scale: 4 }, "double", "x"),
            (Float64, "float", "x"),
            (Float32, "double", "="),
            (Float32, "float(10,2)", "x"),
            (Timestamp { precision: 6 }, "datetime(6)", "="),
            (Timestamp { precision: 6 }, "datetime", "~"),
            (Timestamp { precision: 0 }, "date", "x"),
            (Varchar { length: 10 }, "varchar(5)", "~"),
            (Varchar { length: 5 }, "varchar(5)", "="),
            (Text, "int(11)", "x"),
            (Bytes, "varchar(10)", "x"),
            (Varbinary { length: 4 }, "binary(4)", "x"),
            (Binary { length: 4 }, "binary(4)", "="),
            (Bit { length: 8 }, "bit(8)", "="),
            (Bit { length: 9 }, "bit(8)", "~"),
            (Int32, "varchar(100)", "="),
        ] {
            let got = match fit(&Column::new("c", ty.clone(), true), &target(column)) {
                Fit::Holds { note: None, .. } => "=",
                Fit::Holds { note: Some(_), .. } => "~",
                Fit::Cannot => "x",
            };
            assert_eq!(got, expect, "{ty} into {column}");
        }
    }
}
