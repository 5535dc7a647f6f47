//! Owns turning text of any server character set into UTF-8, equal to what `SELECT` over utf8mb4 gives, or refusing
//! it. Nothing is ever replaced by a question mark.
//!
//! UTF-8 and its subsets pass through after a check, and the multi-byte sets whose tables are the common ones are
//! decoded here. For all others the server is asked once for its own table.

mod multi_byte;
mod table;

use std::{collections::BTreeMap, fmt, sync::Arc};

use canalis_types::{Code, Error, Result};
use mysql_async::{Conn, Row, Value, prelude::Queryable};

use multi_byte::MultiByte;
use table::{Request, Table};

/// Text that is not valid in its character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecodable;

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text holds bytes that its character set does not have")
    }
}

impl std::error::Error for Undecodable {}

/// A character set that can be decoded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Charset(Form);

#[derive(Debug, Clone)]
enum Form {
    Utf8,
    Utf16 { big_endian: bool },
    Utf32,
    MultiByte(&'static MultiByte),
    Asked(Arc<Table>),
}

impl Charset {
    /// UTF-8.
    pub const UTF8: Self = Self(Form::Utf8);

    /// A set that needs no table from the server; `None` for the others.
    pub fn known(name: &str) -> Option<Self> {
        Some(Self(match name {
            "utf8mb4" | "utf8mb3" | "utf8" | "ascii" => Form::Utf8,
            "ucs2" | "utf16" => Form::Utf16 { big_endian: true },
            "utf16le" => Form::Utf16 { big_endian: false },
            "utf32" => Form::Utf32,
            _ => Form::MultiByte(multi_byte::find(name)?),
        }))
    }

    /// Whether valid text is already UTF-8.
    pub fn is_utf8(&self) -> bool {
        matches!(self.0, Form::Utf8)
    }

    /// The text itself when it is UTF-8 as it stands: always in UTF-8, and in most sets as long as it is ASCII.
    #[inline]
    pub fn borrow<'t>(&self, bytes: &'t [u8]) -> Option<&'t str> {
        let same = match &self.0 {
            Form::Utf8 => true,
            Form::MultiByte(_) => bytes.is_ascii(),
            Form::Asked(table) => table.has_ascii() && bytes.is_ascii(),
            Form::Utf16 { .. } | Form::Utf32 => false,
        };
        if same { std::str::from_utf8(bytes).ok() } else { None }
    }

    /// Appends text as UTF-8.
    ///
    /// # Errors
    /// When the bytes are not text of this set; `out` may then hold a part of it.
    pub fn append(&self, bytes: &[u8], out: &mut String) -> Result<(), Undecodable> {
        match &self.0 {
            Form::Utf8 => out.push_str(std::str::from_utf8(bytes).map_err(|_| Undecodable)?),
            Form::Utf16 { big_endian } => utf16(bytes, *big_endian, out)?,
            Form::Utf32 => {
                for unit in bytes.chunks(4) {
                    let unit: [u8; 4] = unit.try_into().map_err(|_| Undecodable)?;
                    out.push(char::from_u32(u32::from_be_bytes(unit)).ok_or(Undecodable)?);
                }
            }
            Form::MultiByte(set) => set.append(bytes, out)?,
            Form::Asked(table) => table.append(bytes, out)?,
        }
        Ok(())
    }

    /// The set of this name, asking the server for its table if need be.
    ///
    /// # Errors
    /// When the server does not know the set or the query fails.
    pub async fn load(conn: &mut Conn, name: &str) -> Result<Self> {
        if let Some(known) = Self::known(name) {
            return Ok(known);
        }
        let mut request = Request::new(name)?;
        while let Some(query) = request.query() {
            let row: Option<Row> = conn.query_first(query).await.map_err(|e| unknown(name).with_source(e))?;
            let texts = row.map(Row::unwrap).unwrap_or_default().into_iter().map(|value| match value {
                Value::Bytes(bytes) => String::from_utf8(bytes).ok(),
                _ => None,
            });
            request.answer(texts.collect())?;
        }
        Ok(Self(Form::Asked(Arc::new(request.finish()?))))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(Code::SourceEventUnknown, format!("character set {name:?} is not known"))
}

fn utf16(bytes: &[u8], big_endian: bool, out: &mut String) -> Result<(), Undecodable> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Undecodable);
    }
    let units = units
        .iter()
        .map(|unit| if big_endian { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) });
    for character in char::decode_utf16(units) {
        out.push(character.map_err(|_| Undecodable)?);
    }
    Ok(())
}

/// Sets that were asked for, by name, with the way to ask for more.
pub struct Charsets {
    loaded: BTreeMap<String, Charset>,
}

impl Charsets {
    /// None asked for yet.
    pub fn new() -> Self {
        Self { loaded: BTreeMap::new() }
    }

    /// The set of this name; `ask` runs a query and gives the fields of its one row. It is called for a set that
    /// needs a table, some dozens of times, and never again for that set.
    ///
    /// # Errors
    /// Those of `ask`, or that the set is not known.
    pub fn get(
        &mut self,
        name: &str,
        ask: &mut dyn FnMut(&str) -> Result<Vec<Option<String>>>,
    ) -> Result<Charset> {
        if let Some(found) = Charset::known(name).or_else(|| self.loaded.get(name).cloned()) {
            return Ok(found);
        }
        let mut request = Request::new(name)?;
        while let Some(query) = request.query() {
            request.answer(ask(&query)?)?;
        }
        let loaded = Charset(Form::Asked(Arc::new(request.finish()?)));
        self.loaded.insert(name.to_owned(), loaded.clone());
        Ok(loaded)
    }
}

impl Default for Charsets {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(set: &Charset, bytes: &[u8]) -> Result<String, Undecodable> {
        let mut out = String::new();
        set.append(bytes, &mut out).map(|()| out)
    }

    #[test]
    fn known_sets_decode() {
        for (name, bytes, expected) in [
            ("utf8mb4", "é😀".as_bytes(), "é😀"),
            ("gbk", b"a\xc4\xe3\xba\xc3", "a你好"),
            ("gb18030", b"\x94\x39\xda\x33", "💩"),
            ("sjis", b"\x82\xa0\xb1", "あｱ"),
            ("sjis", b"\x81\x60", "\u{301c}"),
            ("cp932", b"\x81\x60", "\u{ff5e}"),
            ("euckr", b"\xb0\xa1", "가"),
            ("ucs2", b"\x4f\x60", "你"),
            ("utf16le", b"\x3d\xd8\x00\xde", "😀"),
            ("utf32", b"\x00\x01\xf6\x00", "😀"),
        ] {
            assert_eq!(text(&Charset::known(name).unwrap(), bytes).as_deref(), Ok(expected), "{name}");
        }
        assert!(Charset::known("latin1").is_none());
    }

    #[test]
    fn what_a_set_does_not_have_is_refused() {
        for (name, bytes) in [
            ("utf8mb4", &b"\xff"[..]),
            ("gbk", b"\xc4"),
            ("utf16", b"\xd8\x00\x00\x41"),
            ("utf16", b"\x00"),
            ("utf32", b"\x00\x11\x00\x00"),
            ("euckr", b"\xff\xff"),
        ] {
            assert_eq!(text(&Charset::known(name).unwrap(), bytes), Err(Undecodable), "{name}");
        }
    }

    #[test]
    fn tables_of_the_server_are_asked_for_once() {
        let mut asked = 0;
        let mut ask = |query: &str| {
            asked += 1;
            // A server whose set has all bytes as in Latin 1, but nothing at 0x80.
            let codes = query.split("X'").skip(1).map(|part| u32::from_str_radix(&part[..2], 16).unwrap());
            Ok(codes
                .map(|code| match code {
                    0x80 => Some("?".to_owned()),
                    0x81 => None,
                    code => Some(char::from_u32(code).unwrap().to_string()),
                })
                .collect())
        };
        let mut sets = Charsets::new();
        let set = sets.get("latin9", &mut ask).unwrap();
        assert_eq!(text(&set, b"a?\xff").as_deref(), Ok("a?ÿ"));
        assert_eq!(text(&set, b"\x80"), Err(Undecodable));
        assert_eq!(text(&set, b"\x81"), Err(Undecodable));
        sets.get("latin9", &mut ask).unwrap();
        assert_eq!(asked, 1);
        assert!(sets.get("x'y", &mut |_| Ok(Vec::new())).is_err());
        assert!(sets.get("short", &mut |_| Ok(vec![None; 3])).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            for name in ["gbk", "gb2312", "gb18030", "sjis", "cp932", "euckr", "utf16", "utf32"] {
                let _ = text(&Charset::known(name).unwrap(), &bytes);
            }
        }
    }
}
