//! Owns `sqlType`: the numbers of `java.sql.Types` that Canal gives to MySQL types.

use canalis_types::mysql_type::TypeText;

/// Text: what Canal gives to VARCHAR, YEAR and JSON, and the writer to labels.
pub(super) const VARCHAR: i32 = 12;
/// Bytes.
pub(super) const BLOB: i32 = 2004;

/// Numbers of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SqlType {
    /// For most values.
    pub usual: i32,
    /// For values of an unsigned column whose top bit is set.
    pub top_bit: i32,
}

/// The numbers of a type.
pub(super) fn sql_type(ty: &TypeText) -> SqlType {
    let usual = match ty.name.as_str() {
        "tinyint" => -6,
        "smallint" => 5,
        "mediumint" | "int" => 4,
        "bigint" => -5,
        "float" => 7,
        "double" => 8,
        "decimal" => 3,
        "bit" | "set" => -7,
        "enum" => 4,
        "date" => 91,
        "time" => 92,
        "datetime" | "timestamp" => 93,
        "char" | "uuid" => 1,
        "tinytext" | "text" | "mediumtext" | "longtext" | "xmltype" => 2005,
        _ if is_binary(ty) => BLOB,
        _ => VARCHAR,
    };
    let top_bit = match ty.name.as_str() {
        "tinyint" if ty.unsigned => 5,
        "smallint" if ty.unsigned => 4,
        "int" if ty.unsigned => -5,
        "bigint" if ty.unsigned => 3,
        _ => usual,
    };
    SqlType { usual, top_bit }
}

/// Whether values are bytes, written as one character each.
pub(super) fn is_binary(ty: &TypeText) -> bool {
    matches!(
        ty.name.as_str(),
        "binary"
            | "varbinary"
            | "tinyblob"
            | "blob"
            | "mediumblob"
            | "longblob"
            | "vector"
            | "geometry"
            | "point"
            | "linestring"
            | "polygon"
            | "multipoint"
            | "multilinestring"
            | "multipolygon"
            | "geometrycollection"
            | "geomcollection"
    )
}
