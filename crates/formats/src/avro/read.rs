//! Owns [`Reader`]: primitive values of Avro's binary encoding out of foreign bytes, and passing over values.

use super::schema::{Kind, Schema};

/// Records inside of records, and what else a value may hold.
pub(super) const DEPTH: usize = 64;
/// Items of no bytes, such as nulls, that all arrays of a message may hold together.
const EMPTY_ITEMS: usize = 256;

pub(super) const CUT_SHORT: &str = "the message ends inside of a value";

/// Bytes of a message, and how far they are read.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Items that may still come. Each takes a byte, but for those that are nothing: a small message must not stand for
    /// endless work.
    items: usize,
}

/// Why bytes are no value of their schema.
pub(super) type Outcome<T> = Result<T, &'static str>;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, items: bytes.len() + EMPTY_ITEMS }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, length: usize) -> Outcome<&'a [u8]> {
        let bytes = self.bytes[self.at..].get(..length).ok_or(CUT_SHORT)?;
        self.at += length;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let bytes = self.bytes[self.at..].first_chunk::<N>().ok_or(CUT_SHORT)?;
        self.at += N;
        Ok(*bytes)
    }

    pub(super) fn long(&mut self) -> Outcome<i64> {
        let rest = &self.bytes[self.at..];
        let (mut value, mut shift) = (0_u64, 0);
        for (index, byte) in rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                self.at += index + 1;
                return Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
            }
            shift += 7;
        }
        Err(if rest.len() < 10 { CUT_SHORT } else { "a number has more than 64 bits" })
    }

    pub(super) fn int(&mut self) -> Outcome<i32> {
        i32::try_from(self.long()?).map_err(|_| "a number has more than 32 bits")
    }

    pub(super) fn boolean(&mut self) -> Outcome<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err("a boolean is neither 0 nor 1"),
        }
    }

    pub(super) fn float(&mut self) -> Outcome<f32> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(super) fn double(&mut self) -> Outcome<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub(super) fn bytes(&mut self) -> Outcome<&'a [u8]> {
        let length = usize::try_from(self.long()?).map_err(|_| "a length is negative")?;
        self.take(length)
    }

    /// The index of a branch or symbol.
    pub(super) fn index(&mut self, count: usize) -> Outcome<usize> {
        usize::try_from(self.long()?)
            .ok()
            .filter(|i| *i < count)
            .ok_or("an index is beyond what the schema lists")
    }

    /// The items of the next block of an array or map with the bytes they take where that is told; 0 at the end.
    pub(super) fn block(&mut self) -> Outcome<(usize, Option<usize>)> {
        let count = self.long()?;
        let size = if count < 0 {
            Some(usize::try_from(self.long()?).map_err(|_| "a length is negative")?)
        } else {
            None
        };
        let count = usize::try_from(count.unsigned_abs()).map_err(|_| CUT_SHORT)?;
        self.items = self.items.checked_sub(count).ok_or(CUT_SHORT)?;
        Ok((count, size))
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self, schema: &Schema, node: usize, depth: usize) -> Outcome<()> {
        if depth == 0 {
            return Err("values are nested too deeply");
        }
        match &schema.node(node).kind {
            Kind::Null => {}
            Kind::Boolean => {
                self.take(1)?;
            }
            Kind::Int | Kind::Long | Kind::Enum(_) => {
                self.long()?;
            }
            Kind::Float => {
                self.take(4)?;
            }
            Kind::Double => {
                self.take(8)?;
            }
            Kind::Bytes | Kind::String => {
                self.bytes()?;
            }
            Kind::Fixed(size) => {
                self.take(*size)?;
            }
            Kind::Union(branches) => {
                let branch = branches[self.index(branches.len())?];
                self.skip(schema, branch, depth - 1)?;
            }
            Kind::Record(fields) => {
                for field in fields {
                    self.skip(schema, field.node, depth - 1)?;
                }
            }
            Kind::Array(items) | Kind::Map(items) => {
                let is_map = matches!(schema.node(node).kind, Kind::Map(_));
                loop {
                    let (count, size) = self.block()?;
                    match (count, size) {
                        (0, _) => break,
                        (_, Some(size)) => {
                            self.take(size)?;
                        }
                        (count, None) => {
                            for _ in 0..count {
                                if is_map {
                                    self.bytes()?;
                                }
                                self.skip(schema, *items, depth - 1)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        // "Binary Encoding", int and long.
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0x01], -1),
            (&[0x02], 1),
            (&[0x03], -2),
            (&[0x04], 2),
            (&[0x7f], -64),
            (&[0x80, 0x01], 64),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], i64::MIN),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!((reader.long(), reader.left()), (Ok(value), 0));
        }
        assert_eq!(Reader::new(&[0x80]).long(), Err(CUT_SHORT));
        assert!(Reader::new(&[0xff; 12]).long().is_err());
        assert!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02]).long().is_err());
        assert!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x10]).int().is_err());
    }

    #[test]
    fn lengths_beyond_the_message_are_refused() {
        assert_eq!(Reader::new(&[0x06, b'f', b'o']).bytes(), Err(CUT_SHORT));
        assert!(Reader::new(&[0x05, b'f', b'o']).bytes().is_err());
        let nulls = Schema::parse(r#"{"type":"array","items":"null"}"#).unwrap();
        // 2^40 nulls in six bytes.
        let mut reader = Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x00]);
        assert_eq!(reader.skip(&nulls, nulls.root, DEPTH), Err(CUT_SHORT));
    }
}
