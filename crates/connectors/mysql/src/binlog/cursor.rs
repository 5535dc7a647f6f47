//! Owns [`Cursor`], bounds-checked reading of foreign bytes, and [`DecodeError`], what reading may find wrong.

use std::{borrow::Cow, fmt};

use canalis_types::{Code, Error};

/// Why bytes of the log cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    code: Code,
    what: Cow<'static, str>,
}

impl DecodeError {
    /// Bytes that break the format.
    pub fn malformed(what: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Code::SourceUndecodable, what: what.into() }
    }

    /// An error with a code of its own.
    pub fn new(code: Code, what: impl Into<Cow<'static, str>>) -> Self {
        Self { code, what: what.into() }
    }

    /// Names what was being decoded.
    #[must_use]
    pub fn within(self, what: impl fmt::Display) -> Self {
        Self { code: self.code, what: format!("{what}: {}", self.what).into() }
    }

    /// The code that the error will have for the user.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The user-visible error; `place` says where in the log.
    pub fn into_error(self, place: impl fmt::Display) -> Error {
        Error::new(self.code, format!("{} at {place}", self.what))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for DecodeError {}

/// Result of decoding.
pub type Decoded<T> = Result<T, DecodeError>;

#[cold]
fn short() -> DecodeError {
    DecodeError::malformed("event ends too early")
}

/// Reads from the front of a slice and never beyond it.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

macro_rules! little_endian {
    ($($name:ident: $ty:ty = $len:literal;)*) => {
        $(
            #[doc = concat!("A little-endian `", stringify!($ty), "`.")]
            #[inline]
            pub fn $name(&mut self) -> Decoded<$ty> {
                self.array::<$len>().map(<$ty>::from_le_bytes)
            }
        )*
    };
}

impl<'a> Cursor<'a> {
    /// Begins at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else { return Err(short()) };
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else { return Err(short()) };
        self.rest = rest;
        Ok(*head)
    }

    /// Passes over `len` bytes.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Decoded<()> {
        self.take(len).map(|_| ())
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Decoded<u8> {
        self.array::<1>().map(|[b]| b)
    }

    little_endian! {
        u16: u16 = 2;
        u32: u32 = 4;
        u64: u64 = 8;
        i16: i16 = 2;
        i32: i32 = 4;
        i64: i64 = 8;
        f32: f32 = 4;
        f64: f64 = 8;
    }

    /// A little-endian number of 3 bytes.
    #[inline]
    pub fn u24(&mut self) -> Decoded<u32> {
        self.array::<3>().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// A little-endian number of `len` ≤ 8 bytes.
    #[inline]
    pub fn uint(&mut self, len: usize) -> Decoded<u64> {
        let mut wide = [0; 8];
        let bytes = self.take(len)?;
        let Some(to) = wide.get_mut(..len) else { return Err(short()) };
        to.copy_from_slice(bytes);
        Ok(u64::from_le_bytes(wide))
    }

    /// A big-endian number of `len` ≤ 8 bytes.
    #[inline]
    pub fn uint_be(&mut self, len: usize) -> Decoded<u64> {
        let mut wide = [0; 8];
        let bytes = self.take(len)?;
        let Some(to) = 8usize.checked_sub(len).and_then(|from| wide.get_mut(from..)) else {
            return Err(short());
        };
        to.copy_from_slice(bytes);
        Ok(u64::from_be_bytes(wide))
    }

    /// A length-encoded number.
    pub fn lenenc(&mut self) -> Decoded<u64> {
        match self.u8()? {
            0xfc => self.u16().map(u64::from),
            0xfd => self.u24().map(u64::from),
            0xfe => self.u64(),
            small @ 0..=0xfa => Ok(u64::from(small)),
            _ => Err(DecodeError::malformed("length is not a number")),
        }
    }

    /// A length-encoded number that counts something in memory.
    pub fn lenenc_len(&mut self) -> Decoded<usize> {
        usize::try_from(self.lenenc()?).map_err(|_| short())
    }

    /// Bytes with a length-encoded length before them.
    pub fn lenenc_bytes(&mut self) -> Decoded<&'a [u8]> {
        let len = self.lenenc_len()?;
        self.take(len)
    }

    /// Bytes with a little-endian length of `prefix` bytes before them.
    #[inline]
    pub fn prefixed(&mut self, prefix: u8) -> Decoded<&'a [u8]> {
        let len = match prefix {
            1 => usize::from(self.u8()?),
            2 => usize::from(self.u16()?),
            _ => usize::try_from(self.uint(usize::from(prefix))?).map_err(|_| short())?,
        };
        self.take(len)
    }

    /// Bytes up to a zero byte, which is passed over too.
    pub fn until_zero(&mut self) -> Decoded<&'a [u8]> {
        let at = memchr::memchr(0, self.rest).ok_or_else(short)?;
        let text = self.take(at)?;
        self.skip(1)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_byte_order() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 1, 2, 3, 0xfc, 7, 0]);
        assert_eq!(cursor.u8().unwrap(), 1);
        assert_eq!(cursor.u16().unwrap(), 2);
        assert_eq!(cursor.u24().unwrap(), 3);
        assert_eq!(cursor.uint_be(3).unwrap(), 0x01_02_03);
        assert_eq!(cursor.lenenc().unwrap(), 7);
        assert!(cursor.is_empty());
        assert!(cursor.u8().is_err());
    }

    #[test]
    fn lengths_beyond_the_end_are_errors() {
        assert!(Cursor::new(&[5, 1, 2]).prefixed(1).is_err());
        assert!(Cursor::new(&[0xff; 9]).lenenc_bytes().is_err());
        assert!(Cursor::new(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).lenenc_bytes().is_err());
        assert!(Cursor::new(&[1; 12]).uint(9).is_err());
        assert!(Cursor::new(&[1; 12]).uint_be(9).is_err());
        assert!(Cursor::new(b"abc").until_zero().is_err());
    }
}
