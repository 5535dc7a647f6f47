//! Owns the mapping between MySQL and MariaDB type texts (`int(6) unsigned zerofill`, `enum('a','b')`) and
//! [`LogicalType`], both ways. The table for readers is `docs/types-mysql.md`.

use crate::{Code, Error, LogicalType, Result};

/// What `TINYINT(1)` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TinyInt1 {
    /// A small number, as the server sees it.
    #[default]
    Integer,
    /// True for every value but 0.
    Boolean,
}

/// A type text taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeText {
    /// Name in lower case, single spaces, without synonyms: `int`, `double`, `varchar`.
    pub name: String,
    /// What stands in the parentheses: numbers as digits, labels unquoted.
    pub arguments: Vec<String>,
    /// Whether the numbers have no sign. ZEROFILL implies it.
    pub unsigned: bool,
    /// Whether the values are compressed in the row image (MariaDB's COMPRESSED).
    pub compressed: bool,
}

impl TypeText {
    /// Takes apart the type at the start of `text`. Words that belong to the column and not to its type
    /// (NOT NULL, COLLATE …) are left alone.
    ///
    /// # Errors
    /// CNL-2005 when there is no type or its parentheses do not close.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = || Error::new(Code::SourceEventUnknown, format!("column type `{text}` cannot be read"));
        let compressed = text.to_ascii_uppercase().contains("COMPRESSED");
        let mut rest = text.trim();
        let mut words: Vec<String> = Vec::new();
        let mut arguments = Vec::new();
        let mut seen_arguments = false;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("/*") {
                rest = after.split_once("*/").ok_or_else(refuse)?.1.trim_start();
            } else if rest.starts_with('(') && !seen_arguments {
                let (parsed, after) = parse_arguments(&rest[1..]).ok_or_else(refuse)?;
                arguments = parsed;
                seen_arguments = true;
                rest = after.trim_start();
            } else {
                let end =
                    rest.find(|c: char| c.is_whitespace() || c == '(' || c == '/').unwrap_or(rest.len());
                if end == 0 {
                    break;
                }
                words.push(rest[..end].to_ascii_lowercase());
                rest = rest[end..].trim_start();
            }
        }
        let first = words.first().cloned().ok_or_else(refuse)?;
        let has = |word: &str| words.iter().skip(1).any(|w| w == word);
        let varying = has("varying") || has("varchar") || has("varcharacter");
        let second = words.get(1).map(String::as_str).unwrap_or_default();
        let name = canonical(&first, if varying { "varying" } else { second }, &arguments);
        let unsigned = has("unsigned") || has("zerofill") || first == "serial";
        if first == "bool" || first == "boolean" {
            arguments = vec!["1".to_owned()];
        }
        Ok(Self { name, arguments, unsigned, compressed })
    }

    /// The logical type.
    ///
    /// # Errors
    /// CNL-1003 for a type that has no exact mapping.
    pub fn logical(&self, tinyint1: TinyInt1) -> Result<LogicalType> {
        use LogicalType::*;
        let signed_or = |signed, unsigned| if self.unsigned { unsigned } else { signed };
        Ok(match self.name.as_str() {
            "tinyint"
                if tinyint1 == TinyInt1::Boolean && !self.unsigned && self.number::<u32>(0, 0)? == 1 =>
            {
                Boolean
            }
            "tinyint" => signed_or(Int8, UInt8),
            "smallint" => signed_or(Int16, UInt16),
            "mediumint" | "int" => signed_or(Int32, UInt32),
            "bigint" => signed_or(Int64, UInt64),
            "float" => Float32,
            "double" => Float64,
            "decimal" => self.decimal()?,
            "bit" => Bit { length: self.at_most(0, 1, 64)?.max(1) },
            "year" if self.number::<u32>(0, 4)? == 2 => {
                return Err(Error::new(
                    Code::NotSupportedYet,
                    "YEAR(2) is not supported, because its text does not tell 2000 from 0000; \
                     alter the column to YEAR",
                ));
            }
            "year" => Year,
            "date" => Date,
            "time" => Time { precision: self.at_most(0, 0, 6)? },
            "datetime" => Timestamp { precision: self.at_most(0, 0, 6)? },
            "timestamp" => TimestampTz { precision: self.at_most(0, 0, 6)? },
            "char" => Char { length: self.number(0, 1)? },
            "varchar" => Varchar { length: self.number(0, 1)? },
            "tinytext" | "text" | "mediumtext" | "longtext" | "xmltype" => Text,
            "binary" => Binary { length: self.at_most(0, 1, 255)?.into() },
            "varbinary" => Varbinary { length: self.number(0, 1)? },
            "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => Bytes,
            "enum" => Enum { labels: self.arguments.clone() },
            "set" => Set { labels: self.arguments.clone() },
            "json" => Json,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => Geometry,
            "uuid" => Uuid,
            "inet4" => Varchar { length: 15 },
            "inet6" => Varchar { length: 39 },
            other => {
                return Err(Error::new(
                    Code::NotSupportedYet,
                    format!("columns of type `{other}` are not supported yet; leave the table out"),
                ));
            }
        })
    }

    fn number<T: TryFrom<u32>>(&self, index: usize, default: u32) -> Result<T> {
        let value = match self.arguments.get(index) {
            Some(text) => text.trim().parse::<u32>().ok(),
            None => Some(default),
        };
        value.and_then(|v| T::try_from(v).ok()).ok_or_else(|| self.bad_length())
    }

    fn at_most(&self, index: usize, default: u32, most: u8) -> Result<u8> {
        let value: u8 = self.number(index, default)?;
        if value <= most { Ok(value) } else { Err(self.bad_length()) }
    }

    /// Digits up to those of the widest decimal there is here. No precision, and 0, are 10.
    fn decimal(&self) -> Result<LogicalType> {
        let precision = match self.at_most(0, 10, 76)? {
            0 => 10,
            precision => precision,
        };
        Ok(LogicalType::Decimal { precision, scale: self.at_most(1, 0, precision)? })
    }

    fn bad_length(&self) -> Error {
        Error::new(
            Code::SourceEventUnknown,
            format!("column type `{}` has a bad length `{}`", self.name, self.arguments.join(",")),
        )
    }
}

/// The type text of a column that no MySQL or MariaDB server has declared, spelt as the servers print types. It holds every
/// value of `ty`; a limit that the servers do not have becomes the unlimited type.
pub fn type_text(ty: &LogicalType) -> String {
    use LogicalType::*;
    let fraction = |name: &str, precision: u8| match precision {
        0 => name.to_owned(),
        _ => format!("{name}({})", precision.min(6)),
    };
    match ty {
        Boolean => "tinyint(1)".to_owned(),
        Int8 => "tinyint".to_owned(),
        Int16 => "smallint".to_owned(),
        Int32 => "int".to_owned(),
        Int64 => "bigint".to_owned(),
        UInt8 => "tinyint unsigned".to_owned(),
        UInt16 => "smallint unsigned".to_owned(),
        UInt32 => "int unsigned".to_owned(),
        UInt64 => "bigint unsigned".to_owned(),
        Float32 => "float".to_owned(),
        Float64 => "double".to_owned(),
        Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        Date => "date".to_owned(),
        Time { precision } => fraction("time", *precision),
        Timestamp { precision } => fraction("datetime", *precision),
        TimestampTz { precision } => fraction("timestamp", *precision),
        Year => "year".to_owned(),
        Char { length } if *length <= MOST_CHAR => format!("char({length})"),
        Char { length } | Varchar { length } if *length <= MOST_VARCHAR => format!("varchar({length})"),
        Char { .. } | Varchar { .. } | Text => "longtext".to_owned(),
        Binary { length } if *length <= MOST_CHAR => format!("binary({length})"),
        Binary { length } | Varbinary { length } if *length <= MOST_VARBINARY => {
            format!("varbinary({length})")
        }
        Binary { .. } | Varbinary { .. } | Bytes => "longblob".to_owned(),
        Bit { length } => format!("bit({length})"),
        Json => "json".to_owned(),
        Enum { labels } => label_list("enum", labels),
        Set { labels } => label_list("set", labels),
        Geometry => "geometry".to_owned(),
        Uuid => "char(36)".to_owned(),
    }
}

/// Longest CHAR in characters and BINARY in bytes.
const MOST_CHAR: u32 = 255;
/// Longest VARCHAR of utf8mb4, in characters.
const MOST_VARCHAR: u32 = 16_383;
/// Longest VARBINARY, in bytes.
const MOST_VARBINARY: u32 = 65_535;

/// `enum('a','it''s')`, escaped as [`TypeText::parse`] reads it.
fn label_list(name: &str, labels: &[String]) -> String {
    let mut out = format!("{name}(");
    for (at, label) in labels.iter().enumerate() {
        out.push_str(if at == 0 { "'" } else { ",'" });
        for c in label.chars() {
            match c {
                '\'' => out.push_str("''"),
                '\\' => out.push_str("\\\\"),
                '\0' => out.push_str("\\0"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                other => out.push(other),
            }
        }
        out.push('\'');
    }
    out.push(')');
    out
}

/// The name without synonyms. `FLOAT(25)` and longer is DOUBLE; `FLOAT(m,d)` stays FLOAT.
fn canonical(first: &str, second: &str, arguments: &[String]) -> String {
    let name = match (first, second) {
        ("int1" | "bool" | "boolean", _) => "tinyint",
        ("int2", _) => "smallint",
        ("int3" | "middleint", _) => "mediumint",
        ("int4" | "integer", _) => "int",
        ("int8" | "serial", _) => "bigint",
        ("float4", _) => "float",
        ("float8" | "real", _) => "double",
        ("float", _) if arguments.len() == 1 && arguments[0].parse::<u32>().is_ok_and(|p| p > 24) => "double",
        ("dec" | "numeric" | "fixed" | "number", _) => "decimal",
        ("char" | "character" | "nchar" | "national", "varying") => "varchar",
        ("nvarchar" | "varcharacter" | "varchar2", _) => "varchar",
        ("character" | "nchar" | "national", _) => "char",
        ("long", "varbinary") => "mediumblob",
        ("long", _) => "mediumtext",
        ("raw", _) => "varbinary",
        ("clob", _) => "longtext",
        _ => first,
    };
    name.to_owned()
}

/// Reads `…)`: numbers and quoted labels joined by commas. Labels are escaped as the servers print them: a doubled
/// quote, and backslash escapes.
fn parse_arguments(text: &str) -> Option<(Vec<String>, &str)> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(quoted) = rest.strip_prefix('\'') {
            let (label, after) = unquote(quoted, '\'')?;
            arguments.push(label);
            rest = after.trim_start();
        } else {
            let end = rest.find([',', ')'])?;
            let plain = rest[..end].trim();
            if !plain.is_empty() {
                arguments.push(plain.to_owned());
            }
            rest = &rest[end..];
        }
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
        } else {
            return rest.strip_prefix(')').map(|after| (arguments, after));
        }
    }
}

/// Reads the rest of a quoted text up to its closing quote; gives the value and what follows.
pub fn unquote(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
                value.push(quote);
            } else {
                return Some((value, &text[at + quote.len_utf8()..]));
            }
        } else if c == '\\' {
            match chars.next()?.1 {
                '0' => value.push('\0'),
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                'b' => value.push('\u{8}'),
                'Z' => value.push('\u{1a}'),
                other => value.push(other),
            }
        } else {
            value.push(c);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogicalType::*;

    fn check(text: &str, expect: LogicalType) {
        assert_eq!(TypeText::parse(text).unwrap().logical(TinyInt1::Integer).unwrap(), expect, "{text}");
    }

    #[test]
    fn every_type_has_its_mapping() {
        for (text, expect) in [
            ("tinyint(4)", Int8),
            ("tinyint(1)", Int8),
            ("TINYINT UNSIGNED", UInt8),
            ("smallint(5) unsigned", UInt16),
            ("smallint", Int16),
            ("mediumint(9)", Int32),
            ("mediumint(8) unsigned zerofill", UInt32),
            ("int", Int32),
            ("integer", Int32),
            ("int(10) unsigned", UInt32),
            ("bigint(20)", Int64),
            ("serial", UInt64),
            ("bool", Int8),
            ("float", Float32),
            ("float(7,4)", Float32),
            ("FLOAT(24)", Float32),
            ("FLOAT(25)", Float64),
            ("double", Float64),
            ("double precision", Float64),
            ("double(10,2)", Float64),
            ("real", Float64),
            ("decimal", Decimal { precision: 10, scale: 0 }),
            ("decimal(5)", Decimal { precision: 5, scale: 0 }),
            ("NUMERIC ( 10 , 2 ) UNSIGNED", Decimal { precision: 10, scale: 2 }),
            ("bit(64)", Bit { length: 64 }),
            ("bit", Bit { length: 1 }),
            ("year(4)", Year),
            ("date", Date),
            ("time", Time { precision: 0 }),
            ("time(6)", Time { precision: 6 }),
            ("datetime(3)", Timestamp { precision: 3 }),
            ("timestamp", TimestampTz { precision: 0 }),
            ("char(10)", Char { length: 10 }),
            ("char", Char { length: 1 }),
            ("char varying(3)", Varchar { length: 3 }),
            ("national character varying(3)", Varchar { length: 3 }),
            ("varchar(100) /*M!100301 COMPRESSED*/", Varchar { length: 100 }),
            ("longtext", Text),
            ("long varchar", Text),
            ("binary(16)", Binary { length: 16 }),
            ("varbinary(255)", Varbinary { length: 255 }),
            ("mediumblob", Bytes),
            ("vector(3)", Bytes),
            ("json", Json),
            ("point /*!80003 SRID 4326 */", Geometry),
            ("geomcollection", Geometry),
            ("uuid", Uuid),
            ("inet6", Varchar { length: 39 }),
        ] {
            check(text, expect);
        }
    }

    #[test]
    fn my_08_zerofill_implies_unsigned() {
        check("INT(6) ZEROFILL", UInt32);
        check("bigint zerofill", UInt64);
    }

    #[test]
    fn my_10_floats_and_decimals_with_lengths_are_known() {
        check("FLOAT(10,2)", Float32);
        check("DECIMAL(10,2) UNSIGNED", Decimal { precision: 10, scale: 2 });
        check("double unsigned zerofill", Float64);
    }

    #[test]
    fn my_14_special_labels_are_read() {
        let labels = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
        check("enum('a(b)','c,d','it''s','')", Enum { labels: labels(&["a(b)", "c,d", "it's", ""]) });
        check("set('x','y(z)','w')", Set { labels: labels(&["x", "y(z)", "w"]) });
        check(r"enum('back\\slash','new\nline')", Enum { labels: labels(&["back\\slash", "new\nline"]) });
    }

    #[test]
    fn my_06_boolean_mapping_is_by_option_and_signed_only() {
        let parse = |text| TypeText::parse(text).unwrap().logical(TinyInt1::Boolean).unwrap();
        assert_eq!(parse("tinyint(1)"), Boolean);
        assert_eq!(parse("boolean"), Boolean);
        assert_eq!(parse("tinyint(1) unsigned"), UInt8);
        assert_eq!(parse("tinyint(4)"), Int8);
        assert_eq!(parse("tinyint"), Int8);
    }

    #[test]
    fn types_without_a_declaration_get_one_that_reads_back() {
        let labels = || vec!["new".to_owned(), "it's".to_owned(), "a\\b\n".to_owned()];
        for (ty, text) in [
            (Int8, "tinyint"),
            (UInt64, "bigint unsigned"),
            (Decimal { precision: 10, scale: 2 }, "decimal(10,2)"),
            (Bit { length: 10 }, "bit(10)"),
            (Time { precision: 6 }, "time(6)"),
            (Timestamp { precision: 0 }, "datetime"),
            (TimestampTz { precision: 3 }, "timestamp(3)"),
            (Varchar { length: 20 }, "varchar(20)"),
            (Text, "longtext"),
            (Binary { length: 8 }, "binary(8)"),
            (Bytes, "longblob"),
            (Enum { labels: labels() }, "enum('new','it''s','a\\\\b\\n')"),
            (Set { labels: labels() }, "set('new','it''s','a\\\\b\\n')"),
            (Geometry, "geometry"),
        ] {
            assert_eq!(type_text(&ty), text);
            check(text, ty);
        }
        // What the servers have no exact type for.
        for (ty, text) in [
            (Boolean, "tinyint(1)"),
            (Uuid, "char(36)"),
            (Char { length: 300 }, "varchar(300)"),
            (Varchar { length: 20_000 }, "longtext"),
            (Binary { length: 300 }, "varbinary(300)"),
            (Varbinary { length: 70_000 }, "longblob"),
        ] {
            assert_eq!(type_text(&ty), text);
        }
    }

    #[test]
    fn unknown_types_are_refused() {
        for text in ["year(2)", "row(a int)", "hyperloglog"] {
            assert!(TypeText::parse(text).unwrap().logical(TinyInt1::Integer).is_err(), "{text}");
        }
        for text in [
            "decimal(77)",
            "decimal(5,6)",
            "decimal(255,255)",
            "bit(65)",
            "binary(256)",
            "time(7)",
            "datetime(9)",
            "char(x)",
        ] {
            assert!(TypeText::parse(text).unwrap().logical(TinyInt1::Integer).is_err(), "{text}");
        }
        check("decimal(0)", Decimal { precision: 10, scale: 0 });
        assert!(TypeText::parse("enum('a").is_err());
        assert!(TypeText::parse("").is_err());
    }
}
