//! Owns the declaration of columns: the identical type for a source of the same family, else the nearest type
//! that holds every value.

use canalis_types::{Column, ColumnDefault, LogicalType, NativeType};

use super::{collation::translate, session::ServerFacts, text::quote as quote_into};
use crate::quote;

/// Largest key of InnoDB, in bytes.
const KEY_BYTES: u32 = 3072;
/// A VARCHAR or VARBINARY above this many bytes is declared as LONGTEXT or LONGBLOB: a row has room for 65,535.
const INLINE_BYTES: u32 = 16_000;

/// What is asked of a column beyond its type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demands {
    /// Texts that differ at the source must differ here: part of the key or of a unique index.
    pub distinct: bool,
    /// Whether it is part of the primary key.
    pub is_key: bool,
    /// Columns of variable length in the primary key.
    pub key_texts: u32,
    /// Bytes of the primary key's other columns.
    pub key_bytes: u32,
    /// Whether it may number itself.
    pub auto_increment: bool,
    /// How much of the source's defaults is tried.
    pub fidelity: Fidelity,
}

/// How much of the source's declaration is tried; each step gives up what a server may not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fidelity {
    /// Everything.
    Full,
    /// No defaults that are expressions.
    Constants,
    /// No defaults, no computed columns.
    Bare,
}

/// Declares a column: `` `name` TYPE … ``. Notes say what is different from the source.
pub(super) fn declare(
    column: &Column,
    demands: Demands,
    facts: &ServerFacts,
    notes: &mut Vec<String>,
) -> String {
    let native = column.native.as_ref().filter(|native| native.dialect == "mysql");
    let ty = match native {
        Some(native) => native_type(column, native, demands, facts, notes),
        None => mapped_type(column, demands, facts, notes),
    };
    let mut sql = format!("{} {ty}", quote::ident(&column.name));
    let generated = native.and_then(|native| native.generated.as_deref());
    if let Some(expression) = generated
        && demands.fidelity == Fidelity::Full
    {
        sql.push_str(&format!(" GENERATED ALWAYS AS {expression}"));
    } else {
        sql.push_str(if column.nullable && !demands.is_key { " NULL" } else { " NOT NULL" });
        if native.is_some_and(|native| native.auto_increment) && demands.auto_increment {
            sql.push_str(" AUTO_INCREMENT");
        } else {
            sql.push_str(&default(column, native, demands.fidelity, facts, notes));
        }
    }
    if let Some(comment) = &column.comment {
        let kept: String = comment.chars().take(1024).collect();
        sql.push_str(&format!(" COMMENT {}", literal(&kept)));
    }
    sql
}

/// A readable text literal.
pub(super) fn literal(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote_into(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn default(
    column: &Column,
    native: Option<&NativeType>,
    fidelity: Fidelity,
    facts: &ServerFacts,
    notes: &mut Vec<String>,
) -> String {
    match &column.default {
        None => String::new(),
        Some(_) if fidelity == Fidelity::Bare => {
            notes.push(format!("column `{}`: the default is left out", column.name));
            String::new()
        }
        Some(ColumnDefault::Literal(text)) => {
            let ty = native.map_or("", |native| native.sql.as_str()).to_lowercase();
            let is_long = ["text", "blob", "json", "geometry", "point", "polygon", "linestring"]
                .iter()
                .any(|word| ty.split(['(', ' ']).next().is_some_and(|name| name.ends_with(word)));
            if matches!(column.ty, LogicalType::Bit { .. }) && text.bytes().all(|b| b.is_ascii_digit()) {
                format!(" DEFAULT {text}")
            } else if !facts.is_mariadb() && is_long {
                format!(" DEFAULT ({})", literal(text))
            } else {
                format!(" DEFAULT {}", literal(text))
            }
        }
        Some(ColumnDefault::Expression(text)) if native.is_some() && fidelity == Fidelity::Full => {
            let plain = text.starts_with('(')
                || text.to_lowercase().starts_with("current_timestamp")
                || text.starts_with("b'")
                || text.starts_with("x'")
                || text.starts_with("0x");
            if plain { format!(" DEFAULT {text}") } else { format!(" DEFAULT ({text})") }
        }
        Some(ColumnDefault::Expression(text)) => {
            notes.push(format!("column `{}`: the default `{text}` is left out", column.name));
            String::new()
        }
    }
}

/// The source's own type, translated where the two families differ.
fn native_type(
    column: &Column,
    native: &NativeType,
    demands: Demands,
    facts: &ServerFacts,
    notes: &mut Vec<String>,
) -> String {
    let name = native.sql.split(['(', ' ']).next().unwrap_or_default().to_lowercase();
    let version = facts.info.version;
    let mut replace = |by: String| {
        notes.push(format!("column `{}`: {} becomes {by}", column.name, native.sql));
        by
    };
    let exact = format!(" CHARACTER SET utf8mb4 COLLATE {}", facts.exact_collation());
    match name.as_str() {
        "uuid" | "inet4" | "inet6" | "xmltype" if !facts.is_mariadb() => {
            let ty = match name.as_str() {
                "uuid" => "CHAR(36)",
                "inet4" => "VARCHAR(15)",
                "inet6" => "VARCHAR(39)",
                _ => "LONGTEXT",
            };
            return replace(format!("{ty}{exact}"));
        }
        "vector" => {
            let known = if facts.is_mariadb() { version >= (11, 7, 0) } else { version.0 >= 9 };
            if !known {
                return replace("LONGBLOB".to_owned());
            }
            return native.sql.clone();
        }
        "json" => return "JSON".to_owned(),
        "geomcollection" => return "GEOMETRYCOLLECTION".to_owned(),
        "tinytext" | "text" | "mediumtext" | "longtext" if demands.is_key => {
            return replace(format!("VARCHAR({}){exact}", key_room(demands) / 4));
        }
        "tinyblob" | "blob" | "mediumblob" | "longblob" if demands.is_key => {
            return replace(format!("VARBINARY({})", key_room(demands)));
        }
        _ => {}
    }
    let Some(charset) = native.charset.as_deref().filter(|_| name != "uuid" && !name.starts_with("inet"))
    else {
        return native.sql.clone();
    };
    let rules = translate(charset, native.collation.as_deref(), facts);
    if rules.same {
        return format!("{}{}", native.sql, rules.sql());
    }
    let source = native.collation.as_deref().unwrap_or(charset);
    let sql = if demands.distinct { exact } else { rules.sql() };
    notes.push(format!("column `{}`: the collation {source} becomes{sql}", column.name));
    format!("{}{sql}", native.sql)
}

/// Bytes that a column of variable length may have in the key.
fn key_room(demands: Demands) -> u32 {
    KEY_BYTES.saturating_sub(demands.key_bytes) / demands.key_texts.max(1)
}

/// The type for a logical type alone.
fn mapped_type(column: &Column, demands: Demands, facts: &ServerFacts, notes: &mut Vec<String>) -> String {
    use LogicalType::*;
    let is_key = demands.is_key;
    let rules = if demands.distinct {
        format!(" CHARACTER SET utf8mb4 COLLATE {}", facts.exact_collation())
    } else {
        " CHARACTER SET utf8mb4".to_owned()
    };
    let fraction = |name: &str, precision: u8| {
        if precision == 0 { name.to_owned() } else { format!("{name}({})", precision.min(6)) }
    };
    let characters = |length: u32, notes: &mut Vec<String>| {
        if is_key {
            let room = key_room(demands) / 4;
            if length > room {
                notes.push(format!(
                    "column `{}`: keys longer than {room} characters are refused",
                    column.name
                ));
            }
            format!("VARCHAR({}){rules}", length.clamp(1, room))
        } else if length.saturating_mul(4) > INLINE_BYTES {
            format!("LONGTEXT{rules}")
        } else {
            format!("VARCHAR({}){rules}", length.max(1))
        }
    };
    let bytes = |length: u32, notes: &mut Vec<String>| {
        if is_key {
            let room = key_room(demands);
            if length > room {
                notes.push(format!("column `{}`: keys longer than {room} bytes are refused", column.name));
            }
            format!("VARBINARY({})", length.clamp(1, room))
        } else if length > INLINE_BYTES {
            "LONGBLOB".to_owned()
        } else {
            format!("VARBINARY({})", length.max(1))
        }
    };
    match &column.ty {
        Boolean => "TINYINT(1)".into(),
        Int8 => "TINYINT".into(),
        Int16 => "SMALLINT".into(),
        Int32 => "INT".into(),
        Int64 => "BIGINT".into(),
        UInt8 => "TINYINT UNSIGNED".into(),
        UInt16 => "SMALLINT UNSIGNED".into(),
        UInt32 => "INT UNSIGNED".into(),
        UInt64 => "BIGINT UNSIGNED".into(),
        Float32 => "FLOAT".into(),
        Float64 => "DOUBLE".into(),
        Decimal { precision, scale } => {
            let scale = (*scale).min(30);
            if *precision > 65 {
                notes.push(format!("column `{}`: decimals of more than 65 digits are refused", column.name));
            }
            format!("DECIMAL({}, {scale})", (*precision).min(65))
        }
        Date => "DATE".into(),
        Time { precision } => fraction("TIME", *precision),
        Timestamp { precision } => fraction("DATETIME", *precision),
        TimestampTz { precision } => {
            notes.push(format!("column `{}`: instants are stored as DATETIME in UTC", column.name));
            fraction("DATETIME", *precision)
        }
        Year => "YEAR".into(),
        Char { length } if *length <= 255 && !is_key => format!("CHAR({length}){rules}"),
        Char { length } | Varchar { length } => characters(*length, notes),
        Text => characters(u32::MAX, notes),
        Binary { length } if *length <= 255 => format!("BINARY({length})"),
        Binary { length } | Varbinary { length } => bytes(*length, notes),
        Bytes => bytes(u32::MAX, notes),
        Bit { length } => format!("BIT({length})"),
        Json if is_key => characters(u32::MAX, notes),
        Json => "JSON".into(),
        Enum { labels } | Set { labels } => {
            let word = if matches!(column.ty, Enum { .. }) { "ENUM" } else { "SET" };
            let list: Vec<String> = labels.iter().map(|label| literal(label)).collect();
            // Labels may differ only by case.
            format!("{word}({}) CHARACTER SET utf8mb4 COLLATE {}", list.join(","), facts.exact_collation())
        }
        Geometry => "GEOMETRY".into(),
        Uuid => format!("CHAR(36){rules}"),
    }
}

/// Whether the length of values varies, so that the room in a key must be shared out.
pub(super) fn is_variable(ty: &LogicalType) -> bool {
    use LogicalType::*;
    matches!(ty, Char { .. } | Varchar { .. } | Text | Json | Binary { .. } | Varbinary { .. } | Bytes | Uuid)
}
