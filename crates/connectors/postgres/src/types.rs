//! Owns the type-mapping table: the PostgreSQL type that a created column gets, and whether and in which form values
//! go into a column that exists. `docs/types-postgres.md` is its readable form.

use canalis_types::LogicalType;

use crate::options::{NulPolicy, PostgresOptions};

/// Longest `varchar(n)` that PostgreSQL declares.
const MAX_VARCHAR: u32 = 10_485_760;

/// A column type as the catalog has it; domains are resolved to their base type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActualType {
    /// `pg_type.typname`.
    pub name: String,
    /// `pg_type.typtype`: `b` base, `e` enum, …
    pub kind: char,
    /// `atttypmod`; −1 without one.
    pub modifier: i32,
    /// Whether equality of texts is equality of bytes.
    pub deterministic: bool,
    /// As PostgreSQL prints it, for casts and messages.
    pub sql: String,
}

impl ActualType {
    /// The catalog's view of a type that [`declare`] gives.
    pub fn of_declared(declared: &str) -> Self {
        let sql = declared.trim_end_matches(" COLLATE \"C\"");
        let (word, arguments) = sql.split_once('(').unwrap_or((sql, ""));
        let numbers: Vec<i32> =
            arguments.trim_end_matches(')').split(',').filter_map(|digits| digits.parse().ok()).collect();
        let name = match word {
            "boolean" => "bool",
            "smallint" => "int2",
            "integer" => "int4",
            "bigint" => "int8",
            "real" => "float4",
            "double precision" => "float8",
            same => same,
        };
        let modifier = match (name, numbers.as_slice()) {
            ("numeric", [precision, scale]) => (precision << 16 | scale & 0x7ff) + 4,
            ("varchar", [length]) => length + 4,
            (_, [number]) => *number,
            _ => -1,
        };
        Self { name: name.to_owned(), kind: 'b', modifier, deterministic: true, sql: sql.to_owned() }
    }
}

/// How the values of a column are written for its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// `true` or `false`.
    Boolean,
    /// Digits.
    Integer,
    /// Shortest digits that read back as the same number.
    Float,
    /// Exact decimal with this many fraction digits.
    Decimal(u8),
    /// Calendar date.
    Date,
    /// Signed duration with this many fraction digits.
    Interval(u8),
    /// Time of a day; anything else is refused.
    TimeOfDay(u8),
    /// Local date-time with this many fraction digits.
    Timestamp(u8),
    /// Instant with this many fraction digits, in UTC.
    Instant(u8),
    /// That many bits.
    Bits(u8),
    /// Text.
    Text(TextRules),
    /// JSON into `jsonb`, which refuses `\u0000`.
    JsonBinary(NulPolicy),
    /// Bytes.
    Bytes,
    /// MySQL's geometry as EWKB.
    Geometry,
}

/// Limits of a text column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRules {
    /// Most characters.
    pub max_characters: Option<usize>,
    /// What becomes of NUL characters.
    pub nul: NulPolicy,
}

/// The type that a created column gets. Text in a key compares by bytes, so that keys which differ stay different.
pub fn declare(ty: &LogicalType, in_key: bool, options: &PostgresOptions) -> String {
    use LogicalType::*;
    let text = |sql: String| if in_key { format!("{sql} COLLATE \"C\"") } else { sql };
    match ty {
        Boolean => "boolean".into(),
        Int8 | Int16 | UInt8 | Year => "smallint".into(),
        Int32 | UInt16 => "integer".into(),
        Int64 | UInt32 => "bigint".into(),
        UInt64 => "numeric(20,0)".into(),
        Float32 => "real".into(),
        Float64 => "double precision".into(),
        Decimal { precision, scale } => format!("numeric({precision},{scale})"),
        Date => "date".into(),
        Time { .. } if options.time_as_text => text("text".into()),
        Time { precision } => format!("interval({precision})"),
        Timestamp { precision } => format!("timestamp({precision})"),
        TimestampTz { precision } => format!("timestamptz({precision})"),
        // MySQL's CHAR has no trailing blanks; PostgreSQL's would add them.
        Char { length } | Varchar { length } if (1..=MAX_VARCHAR).contains(length) => {
            text(format!("varchar({length})"))
        }
        Char { .. } | Varchar { .. } | Text | Enum { .. } | Set { .. } => text("text".into()),
        Binary { .. } | Varbinary { .. } | Bytes | Geometry => "bytea".into(),
        Bit { length } => format!("bit({length})"),
        Json if options.json_binary => "jsonb".into(),
        Json => "json".into(),
        Uuid => "uuid".into(),
    }
}

/// What the user should know about a created column.
pub fn declare_note(ty: &LogicalType, options: &PostgresOptions) -> Option<&'static str> {
    match ty {
        LogicalType::Json if options.json_binary => {
            Some("jsonb keeps the JSON value, not its text: key order, duplicates and blanks are lost")
        }
        LogicalType::Geometry => Some("geometry is kept as EWKB in bytea"),
        LogicalType::Enum { .. } | LogicalType::Set { .. } => Some("labels are kept as text"),
        _ => None,
    }
}

/// The form in which values of `ty` go into a column of type `actual`, with a note when rows may be refused that the
/// source allows.
///
/// # Errors
/// Why the column cannot take every value exactly.
pub fn fit(
    ty: &LogicalType,
    actual: &ActualType,
    in_key: bool,
    options: &PostgresOptions,
) -> Result<(Form, Option<&'static str>), String> {
    use LogicalType::*;
    const RANGE: &str = "values out of the target's range will be refused";
    let refuse = || Err(format!("{ty} does not go into {} exactly", actual.sql));
    let digits = |precision: &u8, modifier: i32| {
        let target = if modifier < 0 { 6 } else { modifier & 0xffff };
        i32::from(*precision) <= target || target > 6
    };
    if actual.kind == 'e' {
        return match ty {
            Enum { .. } | Char { .. } | Varchar { .. } | Text => {
                Ok((text(None, options), Some("labels that the target's enum lacks will be refused")))
            }
            _ => refuse(),
        };
    }
    let form = match actual.name.as_str() {
        "int2" | "int4" | "int8" => match ty {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Year | Bit { .. } => {
                (Form::Integer, narrows(ty, &actual.name).then_some(RANGE))
            }
            _ => return refuse(),
        },
        "numeric" => match ty {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Year | Bit { .. } => {
                let fits = actual.modifier < 0 || numeric(actual.modifier).1 >= 0;
                if !fits {
                    return refuse();
                }
                (Form::Integer, None)
            }
            Decimal { precision, scale } => {
                let note = if actual.modifier < 0 {
                    None
                } else {
                    let (p, s) = numeric(actual.modifier);
                    if s < i32::from(*scale) {
                        return refuse();
                    }
                    (p - s < i32::from(*precision) - i32::from(*scale)).then_some(RANGE)
                };
                (Form::Decimal(*scale), note)
            }
            Float32 | Float64 if actual.modifier < 0 => (Form::Float, None),
            _ => return refuse(),
        },
        "float4" => match ty {
            Float32 => (Form::Float, None),
            Int8 | Int16 | UInt8 | UInt16 | Year => (Form::Integer, None),
            _ => return refuse(),
        },
        "float8" => match ty {
            Float32 | Float64 => (Form::Float, None),
            Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Year => (Form::Integer, None),
            _ => return refuse(),
        },
        "bool" => match ty {
            Boolean => (Form::Boolean, None),
            Int8 | Bit { length: 1 } => (Form::Integer, Some("values other than 0 and 1 will be refused")),
            _ => return refuse(),
        },
        "date" if *ty == Date => (Form::Date, None),
        "timestamp" => match ty {
            Timestamp { precision } if digits(precision, actual.modifier) => {
                (Form::Timestamp(*precision), None)
            }
            Date => (Form::Date, None),
            _ => return refuse(),
        },
        "timestamptz" => match ty {
            TimestampTz { precision } if digits(precision, actual.modifier) => {
                (Form::Instant(*precision), None)
            }
            _ => return refuse(),
        },
        "interval" => match ty {
            Time { precision } if digits(precision, actual.modifier) => (Form::Interval(*precision), None),
            _ => return refuse(),
        },
        "time" => match ty {
            Time { precision } if digits(precision, actual.modifier) => {
                (Form::TimeOfDay(*precision), Some("durations below 0 or from 24 hours on will be refused"))
            }
            _ => return refuse(),
        },
        "bit" => match ty {
            Bit { length } if i32::from(*length) == actual.modifier => (Form::Bits(*length), None),
            _ => return refuse(),
        },
        "varbit" => match ty {
            Bit { length } if actual.modifier < 0 || i32::from(*length) <= actual.modifier => {
                (Form::Bits(*length), None)
            }
            _ => return refuse(),
        },
        "bytea" => match ty {
            Geometry => (Form::Geometry, None),
            _ if ty.is_binary() => (Form::Bytes, None),
            _ => return refuse(),
        },
        "json" => match ty {
            Json => (text(None, options), None),
            Text | Varchar { .. } => (text(None, options), Some("texts that are not JSON will be refused")),
            _ => return refuse(),
        },
        "jsonb" => match ty {
            Json => (Form::JsonBinary(options.nul), Some("jsonb keeps the JSON value, not its text")),
            _ => return refuse(),
        },
        "uuid" => match ty {
            Uuid => (text(None, options), None),
            Char { length: 36 } | Varchar { length: 36 } => {
                (text(None, options), Some("texts that are not a UUID will be refused; letters become small"))
            }
            _ => return refuse(),
        },
        "text" | "varchar" | "bpchar" => {
            let limit = (actual.name != "text" && actual.modifier >= 4).then(|| actual.modifier - 4);
            let limit = limit.and_then(|n| usize::try_from(n).ok());
            if in_key && (!actual.deterministic || (actual.name == "bpchar" && !matches!(ty, Char { .. }))) {
                return Err(format!(
                    "different keys of the source can be equal in {} under the target's comparison; use a text type \
                     COLLATE \"C\"",
                    actual.sql
                ));
            }
            let note = match (declared_length(ty), limit) {
                _ if actual.name == "bpchar" && !matches!(ty, Char { .. }) => {
                    Some("the target fills texts up with blanks, and refuses longer ones")
                }
                (_, None) => None,
                (Some(length), Some(limit)) if length <= limit => None,
                _ => Some("texts longer than the target column will be refused"),
            };
            match canonical(ty, options) {
                Some(Form::Text(rules)) => {
                    (Form::Text(TextRules { max_characters: limit, nul: rules.nul }), note)
                }
                Some(form) => (form, note),
                None => return refuse(),
            }
        }
        _ => return refuse(),
    };
    Ok(form)
}

fn text(max_characters: Option<usize>, options: &PostgresOptions) -> Form {
    Form::Text(TextRules { max_characters, nul: options.nul })
}

/// The form of a value inside a text column; none for bytes.
fn canonical(ty: &LogicalType, options: &PostgresOptions) -> Option<Form> {
    use LogicalType::*;
    Some(match ty {
        Boolean => Form::Boolean,
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Year | Bit { .. } => Form::Integer,
        Float32 | Float64 => Form::Float,
        Decimal { scale, .. } => Form::Decimal(*scale),
        Date => Form::Date,
        Time { precision } => Form::Interval(*precision),
        Timestamp { precision } => Form::Timestamp(*precision),
        TimestampTz { precision } => Form::Instant(*precision),
        _ if ty.is_text() => text(None, options),
        _ => return None,
    })
}

fn declared_length(ty: &LogicalType) -> Option<usize> {
    match ty {
        LogicalType::Char { length } | LogicalType::Varchar { length } => usize::try_from(*length).ok(),
        LogicalType::Uuid => Some(36),
        _ => None,
    }
}

/// Precision and scale in a modifier of `numeric`; the scale is a signed field of 11 bits.
fn numeric(modifier: i32) -> (i32, i32) {
    let packed = modifier - 4;
    (packed >> 16 & 0xffff, ((packed & 0x7ff) ^ 0x400) - 0x400)
}

/// Whether an integer type holds numbers that `target` does not.
fn narrows(ty: &LogicalType, target: &str) -> bool {
    use LogicalType::*;
    let bits = match ty {
        Int8 | UInt8 | Int16 | Year => 16,
        Int32 | UInt16 => 32,
        Bit { length } if *length < 16 => 16,
        Bit { length } if *length < 32 => 32,
        Int64 | UInt32 => 64,
        Bit { length } if *length < 64 => 64,
        _ => 65,
    };
    bits > match target {
        "int2" => 16,
        "int4" => 32,
        _ => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    fn actual(name: &str, modifier: i32) -> ActualType {
        ActualType { name: name.into(), kind: 'b', modifier, deterministic: true, sql: name.into() }
    }

    #[test]
    fn created_columns_hold_every_value() {
        use LogicalType::*;
        for (ty, sql) in [
            (UInt8, "smallint"),
            (UInt16, "integer"),
            (UInt32, "bigint"),
            (UInt64, "numeric(20,0)"),
            (Decimal { precision: 65, scale: 30 }, "numeric(65,30)"),
            (Time { precision: 6 }, "interval(6)"),
            (Varchar { length: 10 }, "varchar(10)"),
            (Varchar { length: 0 }, "text"),
            (Char { length: 3 }, "varchar(3)"),
            (Bit { length: 8 }, "bit(8)"),
            (Json, "json"),
            (Geometry, "bytea"),
        ] {
            assert_eq!(declare(&ty, false, &options(&[])), sql);
        }
        assert_eq!(declare(&Text, true, &options(&[])), "text COLLATE \"C\"");
        assert_eq!(declare(&Json, false, &options(&[("json.type", "jsonb")])), "jsonb");
        assert_eq!(declare(&Time { precision: 0 }, false, &options(&[("time.type", "text")])), "text");
    }

    #[test]
    fn existing_columns_that_would_change_values_are_refused() {
        use LogicalType::*;
        let options = options(&[]);
        let check =
            |ty: LogicalType, name: &str, modifier: i32| fit(&ty, &actual(name, modifier), false, &options);
        let typmod = |p: i32, s: i32| ((p << 16) | s) + 4;
        assert!(check(Decimal { precision: 10, scale: 3 }, "numeric", typmod(10, 2)).is_err());
        let (form, note) = check(Decimal { precision: 10, scale: 2 }, "numeric", typmod(8, 2)).unwrap();
        assert_eq!((form, note.is_some()), (Form::Decimal(2), true));
        assert!(check(Timestamp { precision: 6 }, "timestamp", 0).is_err());
        assert!(check(Timestamp { precision: 6 }, "timestamp", -1).is_ok());
        assert!(check(Timestamp { precision: 0 }, "timestamptz", -1).is_err());
        assert!(check(Float64, "float4", -1).is_err());
        assert!(check(Bit { length: 8 }, "bit", 7).is_err());
        assert!(check(Text, "bytea", -1).is_err());
        assert!(check(Bytes, "text", -1).is_err());
        assert!(check(Int32, "int2", -1).unwrap().1.is_some());
        assert!(check(UInt64, "int8", -1).unwrap().1.is_some());
        assert!(check(Int32, "int4", -1).unwrap().1.is_none());
    }

    #[test]
    fn ky_07_key_columns_that_merge_keys_are_refused() {
        let mut loose = actual("text", -1);
        loose.deterministic = false;
        let varchar = LogicalType::Varchar { length: 10 };
        assert!(fit(&varchar, &loose, true, &options(&[])).is_err());
        assert!(fit(&varchar, &loose, false, &options(&[])).is_ok());
        assert!(fit(&varchar, &actual("bpchar", 14), true, &options(&[])).is_err());
        assert!(fit(&varchar, &actual("citext", -1), true, &options(&[])).is_err());
    }
}
