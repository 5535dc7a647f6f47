//! Owns the type-mapping table: the type that a created column gets, and whether values go into an existing column
//! exactly. `docs/types-sqlite.md` is its readable form.

use canalis_types::LogicalType;

/// Storage class that values of a column have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// INTEGER.
    Integer,
    /// INTEGER, and TEXT for what is above 2^63 − 1.
    WideInteger,
    /// REAL.
    Real,
    /// TEXT: texts themselves, and the canonical text of everything that SQLite has no type for.
    Text,
    /// BLOB.
    Blob,
}

/// How SQLite treats values that are put into a column (its manual calls it affinity).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// Prefers INTEGER.
    Integer,
    /// Prefers numbers.
    Numeric,
    /// Prefers REAL.
    Real,
    /// Prefers TEXT.
    Text,
    /// Keeps values as they are.
    Any,
    /// Takes BLOB only (a STRICT table).
    Blob,
}

/// The storage class of values of a type.
pub fn storage(ty: &LogicalType) -> Storage {
    use LogicalType::*;
    match ty {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | Year => Storage::Integer,
        Bit { length } if *length < 64 => Storage::Integer,
        UInt64 | Bit { .. } => Storage::WideInteger,
        Float32 | Float64 => Storage::Real,
        Decimal { .. }
        | Date
        | Time { .. }
        | Timestamp { .. }
        | TimestampTz { .. }
        | Char { .. }
        | Varchar { .. }
        | Text
        | Json
        | Enum { .. }
        | Set { .. }
        | Uuid => Storage::Text,
        Binary { .. } | Varbinary { .. } | Bytes | Geometry => Storage::Blob,
    }
}

/// The type that a created column gets; created tables are STRICT.
pub fn declare(ty: &LogicalType) -> &'static str {
    match storage(ty) {
        Storage::Integer => "INTEGER",
        Storage::WideInteger => "ANY",
        Storage::Real => "REAL",
        Storage::Text => "TEXT",
        Storage::Blob => "BLOB",
    }
}

/// What the user should know about a created column.
pub fn declare_note(ty: &LogicalType) -> Option<&'static str> {
    match ty {
        LogicalType::Decimal { .. } => Some("decimals are kept as exact text"),
        LogicalType::Geometry => Some("geometry is kept in MySQL's form: SRID, then WKB"),
        _ if storage(ty) == Storage::WideInteger => Some("numbers above 2^63 - 1 are kept as text"),
        _ => None,
    }
}

/// Whether a table is STRICT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Wrong types are errors.
    Strict,
    /// Wrong types are converted or kept.
    Flexible,
}

/// Affinity of a declared type, by the rules of SQLite's manual ("Determination Of Column Affinity").
pub fn affinity(declared: &str, strictness: Strictness) -> Affinity {
    let declared = declared.to_uppercase();
    if strictness == Strictness::Strict {
        return match declared.as_str() {
            "INT" | "INTEGER" => Affinity::Integer,
            "REAL" => Affinity::Real,
            "TEXT" => Affinity::Text,
            "BLOB" => Affinity::Blob,
            _ => Affinity::Any,
        };
    }
    let has = |part: &str| declared.contains(part);
    if has("INT") {
        Affinity::Integer
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Affinity::Text
    } else if has("BLOB") || declared.is_empty() {
        Affinity::Any
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        Affinity::Real
    } else {
        Affinity::Numeric
    }
}

/// How values of `ty` are stored in a column of this affinity, with a note when rows may be refused.
///
/// # Errors
/// Why the column would change values.
pub fn fit(
    ty: &LogicalType,
    affinity: Affinity,
    strictness: Strictness,
) -> Result<(Storage, Option<&'static str>), String> {
    use Affinity as A;
    let storage = storage(ty);
    let strict = strictness == Strictness::Strict;
    let fits = match (storage, affinity) {
        (_, A::Any) => true,
        (Storage::Integer, A::Integer) => true,
        (Storage::Integer, A::Numeric) => true,
        // Doubles hold 53 bits.
        (Storage::Integer, A::Real) => !matches!(ty, LogicalType::Int64 | LogicalType::Bit { .. }),
        // The number becomes its digits.
        (Storage::Integer | Storage::WideInteger, A::Text) => !strict,
        (Storage::WideInteger, A::Integer | A::Numeric) => {
            // Text above the range would be made a double.
            return Ok((Storage::Integer, Some("numbers above 2^63 - 1 will be refused")));
        }
        (Storage::Real, A::Real) => true,
        (Storage::Real, A::Numeric | A::Integer) => !strict,
        (Storage::Text, A::Text) => true,
        (Storage::Blob, A::Blob) => true,
        (Storage::Blob, _) => !strict,
        _ => false,
    };
    if fits {
        Ok((storage, None))
    } else {
        Err(format!("{ty} would not stay exact in a column with {affinity:?} affinity"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_have_sqlites_affinity() {
        for (declared, expect) in [
            ("INTEGER", Affinity::Integer),
            ("bigint unsigned", Affinity::Integer),
            ("varchar(10)", Affinity::Text),
            ("", Affinity::Any),
            ("BLOB", Affinity::Any),
            ("double precision", Affinity::Real),
            ("decimal(10,2)", Affinity::Numeric),
            ("date", Affinity::Numeric),
        ] {
            assert_eq!(affinity(declared, Strictness::Flexible), expect, "{declared}");
        }
        assert_eq!(affinity("BLOB", Strictness::Strict), Affinity::Blob);
        assert_eq!(affinity("any", Strictness::Strict), Affinity::Any);
    }

    #[test]
    fn columns_that_would_change_values_are_refused() {
        use LogicalType::*;
        let flexible = |ty: LogicalType, declared| {
            fit(&ty, affinity(declared, Strictness::Flexible), Strictness::Flexible)
        };
        // '1.10' would become 1.1, '007' would become 7.
        assert!(flexible(Decimal { precision: 10, scale: 2 }, "decimal(10,2)").is_err());
        assert!(flexible(Text, "integer").is_err());
        assert!(flexible(Date, "date").is_err());
        assert!(flexible(Int64, "real").is_err());
        assert!(flexible(Int32, "real").is_ok());
        assert_eq!(flexible(UInt64, "integer").unwrap().0, Storage::Integer);
        assert!(flexible(UInt64, "integer").unwrap().1.is_some());
        assert_eq!(flexible(UInt64, "").unwrap(), (Storage::WideInteger, None));
        assert!(flexible(Bytes, "text").is_ok());
        assert!(fit(&Bytes, Affinity::Text, Strictness::Strict).is_err());
    }
}
