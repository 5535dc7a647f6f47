//! Owns geometries between MySQL's form (SRID, then WKB) and well-known text of two dimensions as JTS writes it: `POINT (1 2)`.

/// Geometries inside each other.
const MOST_LEVELS: u8 = 16;

/// Names by WKB type.
const NAMES: [&str; 7] =
    ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"];

/// The SRID of a geometry.
pub(super) fn srid(geometry: &[u8]) -> Option<u32> {
    geometry.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Appends the text of a geometry, without its SRID.
///
/// # Errors
/// When the bytes are no geometry of the seven simple types in two dimensions.
pub(super) fn write(geometry: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let mut reader = Wkb { rest: geometry.get(4..).ok_or(NO_GEOMETRY)?, big_endian: false };
    reader.geometry(out, MOST_LEVELS, Tag::Named)?;
    if reader.rest.is_empty() { Ok(()) } else { Err(NO_GEOMETRY) }
}

const NO_GEOMETRY: &str = "bytes are not a geometry of two dimensions that well-known text has a name for";
const NO_TEXT: &str = "text is not a geometry of two dimensions in well-known text";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Named,
    /// Inside MULTI…: the name is not repeated, and the type is this.
    Member(u32),
}

struct Wkb<'a> {
    rest: &'a [u8],
    big_endian: bool,
}

impl Wkb<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(NO_GEOMETRY)?;
        self.rest = rest;
        Ok(*head)
    }

    fn number(&mut self) -> Result<u32, &'static str> {
        let bytes = self.take()?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn coordinate(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let bytes = self.take()?;
        let value = if self.big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) };
        if !value.is_finite() {
            return Err(NO_GEOMETRY);
        }
        // The shortest digits that read back as the same number, never with an exponent.
        out.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn position(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        self.coordinate(out)?;
        out.push(b' ');
        self.coordinate(out)
    }

    fn geometry(&mut self, out: &mut Vec<u8>, levels: u8, tag: Tag) -> Result<(), &'static str> {
        let [order] = self.take()?;
        self.big_endian = match order {
            0 => true,
            1 => false,
            _ => return Err(NO_GEOMETRY),
        };
        let big_endian = self.big_endian;
        let ty = self.number()?;
        let name =
            ty.checked_sub(1).and_then(|at| NAMES.get(usize::try_from(at).ok()?)).ok_or(NO_GEOMETRY)?;
        match tag {
            Tag::Member(expected) if ty != expected => return Err(NO_GEOMETRY),
            Tag::Member(_) => {}
            Tag::Named => {
                out.extend_from_slice(name.as_bytes());
                out.push(b' ');
            }
        }
        let levels = levels.checked_sub(1).ok_or("a geometry has too many levels")?;
        match ty {
            1 => {
                out.push(b'(');
                self.position(out)?;
                out.push(b')');
                Ok(())
            }
            2 => self.list(out, |wkb, out| wkb.position(out)),
            3 => self.list(out, |wkb, out| wkb.list(out, |wkb, out| wkb.position(out))),
            4..=6 => self.list(out, |wkb, out| {
                wkb.geometry(out, levels, Tag::Member(ty - 3))?;
                wkb.big_endian = big_endian;
                Ok(())
            }),
            _ => self.list(out, |wkb, out| {
                wkb.geometry(out, levels, Tag::Named)?;
                wkb.big_endian = big_endian;
                Ok(())
            }),
        }
    }

    fn list(
        &mut self,
        out: &mut Vec<u8>,
        mut item: impl FnMut(&mut Self, &mut Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let count = self.number()?;
        if count == 0 {
            out.extend_from_slice(b"EMPTY");
            return Ok(());
        }
        for at in 0..count {
            out.extend_from_slice(if at == 0 { b"(".as_slice() } else { b", " });
            item(self, out)?;
        }
        out.push(b')');
        Ok(())
    }
}

/// Replaces the content of `out` by the geometry of a text, with SRID 0.
///
/// # Errors
/// When the text is not such a geometry.
pub(super) fn parse(text: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    out.clear();
    out.extend_from_slice(&[0; 4]);
    let mut reader = Wkt { rest: text };
    reader.named(out, MOST_LEVELS)?;
    reader.skip_blanks();
    if reader.rest.is_empty() { Ok(()) } else { Err(NO_TEXT) }
}

struct Wkt<'a> {
    rest: &'a [u8],
}

impl Wkt<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn word(&mut self) -> &[u8] {
        self.skip_blanks();
        let end = self.rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn named(&mut self, out: &mut Vec<u8>, levels: u8) -> Result<(), &'static str> {
        let word = self.word();
        let ty = NAMES.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(word)).ok_or(NO_TEXT)?;
        self.body(out, u32::try_from(ty).map_err(|_| NO_TEXT)? + 1, levels)
    }

    fn body(&mut self, out: &mut Vec<u8>, ty: u32, levels: u8) -> Result<(), &'static str> {
        let levels = levels.checked_sub(1).ok_or("a geometry has too many levels")?;
        out.push(1);
        out.extend_from_slice(&ty.to_le_bytes());
        match ty {
            1 => {
                if !self.take(b'(') {
                    return Err(NO_TEXT);
                }
                self.position(out)?;
                if self.take(b')') { Ok(()) } else { Err(NO_TEXT) }
            }
            2 => self.list(out, |wkt, out| wkt.position(out)),
            3 => self.list(out, |wkt, out| wkt.list(out, |wkt, out| wkt.position(out))),
            4..=6 => self.list(out, |wkt, out| wkt.body(out, ty - 3, levels)),
            _ => self.list(out, |wkt, out| wkt.named(out, levels)),
        }
    }

    fn list(
        &mut self,
        out: &mut Vec<u8>,
        mut item: impl FnMut(&mut Self, &mut Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let place = out.len();
        out.extend_from_slice(&[0; 4]);
        if !self.take(b'(') {
            return if self.word().eq_ignore_ascii_case(b"EMPTY") { Ok(()) } else { Err(NO_TEXT) };
        }
        let mut count: u32 = 0;
        loop {
            item(self, out)?;
            count += 1;
            if self.take(b')') {
                out[place..place + 4].copy_from_slice(&count.to_le_bytes());
                return Ok(());
            }
            if !self.take(b',') {
                return Err(NO_TEXT);
            }
        }
    }

    fn position(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        for _ in 0..2 {
            self.skip_blanks();
            let in_number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
            let end = self.rest.iter().position(|b| !in_number(b)).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            self.rest = rest;
            let value = std::str::from_utf8(number).ok().and_then(|n| n.parse::<f64>().ok());
            let value = value.filter(|v| v.is_finite()).ok_or(NO_TEXT)?;
            out.extend_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometries_round_trip() {
        for text in [
            "POINT (1 2)",
            "POINT (-0.1 123456789.25)",
            "LINESTRING (0 0, 1 1, 2 0.5)",
            "LINESTRING EMPTY",
            "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
            "MULTIPOINT ((1 1), (2 2))",
            "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))",
            "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((9 9, 8 9, 8 8, 9 9)))",
            "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 1 1), GEOMETRYCOLLECTION EMPTY)",
        ] {
            let (mut geometry, mut back) = (Vec::new(), Vec::new());
            parse(text.as_bytes(), &mut geometry).unwrap();
            write(&geometry, &mut back).unwrap();
            assert_eq!(String::from_utf8(back).unwrap(), text);
        }
    }

    /// The bytes are those of `ST_AsBinary` for `POINT(1 2)` in either byte order.
    #[test]
    fn both_byte_orders_are_read() {
        let little = b"\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40";
        let big = b"\x0a\0\0\0\0\0\0\0\x01\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0";
        for (bytes, expect) in [(&little[..], 0), (&big[..], 10)] {
            let mut out = Vec::new();
            write(bytes, &mut out).unwrap();
            assert_eq!((out.as_slice(), srid(bytes)), (b"POINT (1 2)".as_slice(), Some(expect)));
        }
        let mut out = Vec::new();
        parse(b"point( 1  2 )", &mut out).unwrap();
        assert_eq!(out, little);
    }

    #[test]
    fn other_bytes_and_texts_are_refused() {
        let point = b"\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40";
        for bytes in
            [&point[..point.len() - 1], &[point, &b"x"[..]].concat(), b"", b"\0\0\0\0\x01\xe9\x03\0\0"]
        {
            assert!(write(bytes, &mut Vec::new()).is_err(), "{bytes:?}");
        }
        let deep = "GEOMETRYCOLLECTION (".repeat(40) + "POINT (1 1)" + &")".repeat(40);
        for text in
            ["", "POINT", "POINT (1)", "POINT (1 2) x", "POINT EMPTY", "CIRCLE (1 2)", "POINT (1 nan)", &deep]
        {
            assert!(parse(text.as_bytes(), &mut Vec::new()).is_err(), "{text}");
        }
    }
}
