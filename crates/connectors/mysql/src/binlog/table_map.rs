//! Owns TABLE_MAP events: which table a number stands for, and the types of its columns in row events.

use canalis_types::TableId;

use super::cursor::{Cursor, DecodeError, Decoded};

/// Type numbers of columns, as the protocol has them.
#[allow(missing_docs)] // The names are the protocol's own.
pub mod column_type {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const BLOB_COMPRESSED: u8 = 140;
    pub const VARCHAR_COMPRESSED: u8 = 141;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Type of a column in row events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireType {
    /// Type number; ENUM, SET and STRING are told apart already.
    pub number: u8,
    /// What the type needs beside: byte length, pack length, fraction digits, precision and scale, ….
    pub meta: u16,
}

/// A table map.
#[derive(Debug, Clone)]
pub struct TableMap<'a> {
    /// Number that row events use.
    pub table_id: u64,
    /// Database.
    pub database: &'a str,
    /// Table.
    pub table: &'a str,
    /// Types in column order.
    pub types: Vec<WireType>,
    /// Column names, when the server logs them (`binlog_row_metadata=FULL`).
    pub names: Option<Vec<&'a str>>,
    /// Labels of the ENUM columns in their order, in the columns' character sets, when the server logs them.
    pub enum_labels: Option<Vec<Labels<'a>>>,
    /// The same of the SET columns.
    pub set_labels: Option<Vec<Labels<'a>>>,
}

/// Labels of one column.
pub type Labels<'a> = Vec<&'a [u8]>;

/// Only the number and the names, which is all that passing over a table needs.
pub fn table_id(body: &[u8], id_len: usize) -> Decoded<u64> {
    Cursor::new(body).uint(id_len)
}

/// Only the name, of an event whose types may not be known.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_name(body: &[u8], id_len: usize) -> Decoded<TableId> {
    let mut cursor = Cursor::new(body);
    cursor.skip(id_len + 2)?;
    Ok(TableId::new(name(&mut cursor)?, name(&mut cursor)?))
}

/// Parses the body of an event; `id_len` is the size of table numbers (6, or 4 in very old logs).
///
/// # Errors
/// When the bytes break the format or name a type that is not known.
pub fn parse(body: &[u8], id_len: usize) -> Decoded<TableMap<'_>> {
    let mut cursor = Cursor::new(body);
    let table_id = cursor.uint(id_len)?;
    cursor.skip(2)?;
    let database = name(&mut cursor)?;
    let table = name(&mut cursor)?;
    let count = cursor.lenenc_len()?;
    let numbers = cursor.take(count)?;
    let mut meta = Cursor::new(cursor.lenenc_bytes()?);
    let mut types = Vec::with_capacity(count);
    for number in numbers {
        types.push(wire_type(*number, &mut meta)?);
    }
    cursor.skip(count.div_ceil(8))?;
    let mut map =
        TableMap { table_id, database, table, types, names: None, enum_labels: None, set_labels: None };
    optional(&mut cursor, &mut map)?;
    Ok(map)
}

/// A name of one length byte, its bytes and a zero byte.
fn name<'a>(cursor: &mut Cursor<'a>) -> Decoded<&'a str> {
    let bytes = cursor.prefixed(1)?;
    cursor.skip(1)?;
    text(bytes)
}

fn text(bytes: &[u8]) -> Decoded<&str> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::malformed("name in a table map is not UTF-8"))
}

fn wire_type(number: u8, meta: &mut Cursor<'_>) -> Decoded<WireType> {
    use column_type::*;
    Ok(match number {
        TINY | SHORT | LONG | LONGLONG | INT24 | TIMESTAMP | DATE | TIME | DATETIME | YEAR | NEWDATE => {
            WireType { number, meta: 0 }
        }
        FLOAT | DOUBLE | TIMESTAMP2 | DATETIME2 | TIME2 | JSON | VECTOR | GEOMETRY | BLOB | TINY_BLOB
        | MEDIUM_BLOB | LONG_BLOB | BLOB_COMPRESSED => WireType { number, meta: u16::from(meta.u8()?) },
        VARCHAR | VAR_STRING | VARCHAR_COMPRESSED => WireType { number, meta: meta.u16()? },
        BIT => {
            let [bits, bytes] = meta.array()?;
            WireType { number, meta: u16::from(bytes) * 8 + u16::from(bits) }
        }
        NEWDECIMAL => WireType { number, meta: u16::from_be_bytes(meta.array()?) },
        STRING | ENUM | SET => {
            let [real, low] = meta.array()?;
            // CHAR longer than 255 bytes: two bits of the length are kept inverted in the type byte.
            let high = u16::from((real & 0x30) ^ 0x30) << 4;
            match real | 0x30 {
                real @ (ENUM | SET) => WireType { number: real, meta: u16::from(low) },
                STRING => WireType { number: STRING, meta: high | u16::from(low) },
                other => return Err(unknown(other)),
            }
        }
        other => return Err(unknown(other)),
    })
}

fn unknown(number: u8) -> DecodeError {
    DecodeError::new(canalis_types::Code::SourceEventUnknown, format!("column type {number} is not known"))
}

/// What is used of the optional part, which is a list of type, length, value.
fn optional<'a>(cursor: &mut Cursor<'a>, map: &mut TableMap<'a>) -> Decoded<()> {
    const SET_LABELS: u8 = 5;
    const ENUM_LABELS: u8 = 6;
    const COLUMN_NAME: u8 = 4;
    while !cursor.is_empty() {
        let field = cursor.u8()?;
        let mut inside = Cursor::new(cursor.lenenc_bytes()?);
        match field {
            COLUMN_NAME => map.names = Some(column_names(&mut inside, map.types.len())?),
            SET_LABELS => map.set_labels = Some(labels(&mut inside)?),
            ENUM_LABELS => map.enum_labels = Some(labels(&mut inside)?),
            _ => {}
        }
    }
    Ok(())
}

fn column_names<'a>(inside: &mut Cursor<'a>, count: usize) -> Decoded<Vec<&'a str>> {
    let mut names = Vec::with_capacity(count.min(inside.rest().len()));
    while !inside.is_empty() {
        names.push(text(inside.lenenc_bytes()?)?);
    }
    if names.len() == count {
        Ok(names)
    } else {
        Err(DecodeError::malformed("table map has another number of names than of columns"))
    }
}

fn labels<'a>(inside: &mut Cursor<'a>) -> Decoded<Vec<Labels<'a>>> {
    let mut columns = Vec::new();
    while !inside.is_empty() {
        let count = inside.lenenc_len()?;
        let mut labels = Vec::with_capacity(count.min(inside.rest().len()));
        for _ in 0..count {
            labels.push(inside.lenenc_bytes()?);
        }
        columns.push(labels);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn types_carry_their_metadata() {
        let mut body = vec![7, 0, 0, 0, 0, 0, 1, 0, 1, b'd', 0, 1, b't', 0];
        // INT, CHAR(255) utf8mb4 = 1020 bytes, ENUM of one byte, DECIMAL(10,2), BIT(9), VARCHAR(300), DATETIME(3).
        body.extend_from_slice(&[7, 3, 254, 254, 246, 16, 15, 18]);
        body.extend_from_slice(&[11, 0xce, 0xfc, 247, 1, 10, 2, 1, 1, 0x2c, 1, 3]);
        body.push(0);
        // Signedness, names, labels of the ENUM.
        body.extend_from_slice(&[
            1, 1, 0, 4, 14, 1, b'a', 1, b'b', 1, b'c', 1, b'd', 1, b'e', 1, b'f', 1, b'g',
        ]);
        body.extend_from_slice(&[6, 6, 2, 1, b'x', 2, b'y', b'z']);
        let map = parse(&body, 6).unwrap();
        assert_eq!((map.table_id, map.database, map.table), (7, "d", "t"));
        let metas: Vec<(u8, u16)> = map.types.iter().map(|t| (t.number, t.meta)).collect();
        assert_eq!(metas, [(3, 0), (254, 1020), (247, 1), (246, 0x0a02), (16, 9), (15, 300), (18, 3)]);
        assert_eq!(map.names.unwrap(), ["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(map.enum_labels.unwrap(), [[&b"x"[..], b"yz"]]);
        assert_eq!(map.set_labels, None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&body, 6);
            let _ = parse_name(&body, 6);
        }
    }
}
