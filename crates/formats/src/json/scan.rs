//! Owns a strict scanner of JSON (RFC 8259) that cuts values out of bytes without building anything.

use super::string::ESCAPES;

/// Levels of objects and arrays inside each other.
const MOST_LEVELS: u32 = 128;

/// Why bytes are not JSON.
pub(crate) type ScanError = &'static str;

/// A value as it stands in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Boolean(bool),
    Number(&'a [u8]),
    Text(Text<'a>),
    /// An object or array, brackets included.
    Container(&'a [u8]),
}

impl Value<'_> {
    /// Bytes in the input, about.
    pub(crate) fn len(self) -> usize {
        match self {
            Value::Null | Value::Boolean(_) => 4,
            Value::Number(raw) | Value::Container(raw) => raw.len(),
            Value::Text(text) => text.raw.len(),
        }
    }
}

/// A string as it stands in the input, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    pub raw: &'a [u8],
    pub escaped: bool,
}

/// Cuts values out of bytes. Names, values and strings are inlined wherever they are asked for: handed back through memory,
/// each would cost as much again as its scan.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes taken.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte` after blanks if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes exactly these bytes if they are next. They must end at the end of a value.
    pub(crate) fn take_all(&mut self, bytes: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(bytes);
        self.at += if found { bytes.len() } else { 0 };
        found
    }

    /// Takes `known`, an object or array that was scanned before, if its very bytes are next: a comparison instead of a scan.
    /// Brackets tell where a value ends, so what begins with a whole one is that one.
    pub(crate) fn take_same(&mut self, known: &[u8]) -> Option<&'a [u8]> {
        self.skip_blanks();
        let rest = &self.bytes[self.at..];
        if known.is_empty() || !rest.starts_with(known) {
            return None;
        }
        self.at += known.len();
        Some(&rest[..known.len()])
    }

    /// The end of the input after blanks.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        self.skip_blanks();
        if self.at == self.bytes.len() { Ok(()) } else { Err("something follows the value") }
    }

    /// A member's name and its colon.
    #[inline(always)]
    pub(crate) fn name(&mut self) -> Result<Text<'a>, ScanError> {
        self.skip_blanks();
        if self.peek() != Some(b'"') {
            return Err("expected a member name in quotes");
        }
        let name = self.string()?;
        if self.take(b':') { Ok(name) } else { Err("expected a colon after a member name") }
    }

    /// Any value.
    #[inline(always)]
    pub(crate) fn value(&mut self) -> Result<Value<'a>, ScanError> {
        self.skip_blanks();
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'{' | b'[') => self.container().map(Value::Container),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.word(b"true", Value::Boolean(true)),
            Some(b'f') => self.word(b"false", Value::Boolean(false)),
            Some(b'n') => self.word(b"null", Value::Null),
            Some(_) => Err("expected a value"),
            None => Err("the value is missing"),
        }
    }

    fn word(&mut self, word: &[u8], value: Value<'a>) -> Result<Value<'a>, ScanError> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err("expected a value");
        }
        self.at += word.len();
        Ok(value)
    }

    /// A string; the scanner is on its opening quote.
    #[inline(always)]
    fn string(&mut self) -> Result<Text<'a>, ScanError> {
        let start = self.at + 1;
        let mut escaped = false;
        self.at = start;
        loop {
            let rest = &self.bytes[self.at..];
            let plain = plain_length(rest).ok_or("a string has no end")?;
            self.at += plain;
            match self.bytes[self.at] {
                b'"' => {
                    let raw = &self.bytes[start..self.at];
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                b'\\' => {
                    escaped = true;
                    self.at += match self.bytes.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u')
                            if self
                                .bytes
                                .get(self.at + 2..self.at + 6)
                                .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) =>
                        {
                            6
                        }
                        _ => return Err("a string has an invalid escape"),
                    };
                }
                _ => return Err("a string has a bare control character"),
            }
        }
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err("a number lacks digits") }
    }

    fn number(&mut self) -> Result<&'a [u8], ScanError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|b| b.is_ascii_digit()) {
                return Err("a number begins with a needless zero");
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    /// An object or array, without recursion; the scanner is on its opening bracket.
    fn container(&mut self) -> Result<&'a [u8], ScanError> {
        let start = self.at;
        // One bit per level, set for objects.
        let mut objects: u128 = 0;
        let mut levels = 0;
        'value: loop {
            self.skip_blanks();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if levels == MOST_LEVELS {
                        return Err("more than 128 levels of objects and arrays");
                    }
                    self.at += 1;
                    levels += 1;
                    objects = objects << 1 | u128::from(open == b'{');
                    if !self.take(closing(objects)) {
                        if open == b'{' {
                            self.name()?;
                        }
                        continue 'value;
                    }
                    levels -= 1;
                    objects >>= 1;
                }
                _ => {
                    self.value()?;
                }
            }
            // A value has ended; so do the levels that close after it.
            while levels > 0 {
                if self.take(b',') {
                    if objects & 1 == 1 {
                        self.name()?;
                    }
                    continue 'value;
                }
                if !self.take(closing(objects)) {
                    return Err("expected a comma or a closing bracket");
                }
                levels -= 1;
                objects >>= 1;
            }
            return Ok(&self.bytes[start..self.at]);
        }
    }
}

/// Bytes before the first that may not stand bare in a string; `None` when there is no such byte.
#[inline]
fn plain_length(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const TOP_BITS: u64 = ONES << 7;
    // The top bit of a byte below `limit`. A borrow makes a wrong mark only above a right one, and the lowest counts.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOP_BITS;
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let escape = below(word ^ (ONES * u64::from(b'\\')), 1);
        let marks = below(word, 0x20) | quote | escape;
        if marks != 0 {
            return Some(at + (marks.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = bytes[at..].iter().position(|b| ESCAPES[usize::from(*b)] != 0)?;
    Some(at + rest)
}

fn closing(objects: u128) -> u8 {
    if objects & 1 == 1 { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::{super::is_valid, *};

    #[test]
    fn accepts_json_and_nothing_else() {
        for (text, expect) in [
            ("{}", true),
            (" [ ] ", true),
            ("[1,-2.5e+3,\"a\\u00e4\\n\",true,false,null,{\"a\":{\"b\":[]}}]", true),
            ("0", true),
            ("-0", true),
            ("01", false),
            ("1.", false),
            (".5", false),
            ("+1", false),
            ("1e", false),
            ("--1", false),
            ("nul", false),
            ("[1,]", false),
            ("[1 2]", false),
            ("[1}", false),
            ("{\"a\"}", false),
            ("{\"a\":}", false),
            ("{\"a\":1,}", false),
            ("{a:1}", false),
            ("\"a", false),
            ("\"\\x\"", false),
            ("\"\\u12g4\"", false),
            ("\"\u{1}\"", false),
            ("[1] x", false),
            ("", false),
            ("[", false),
            ("NaN", false),
        ] {
            assert_eq!(is_valid(text.as_bytes()), expect, "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(text).is_ok(), expect, "{text}");
        }
    }

    #[test]
    fn a_string_ends_where_its_first_special_byte_is() {
        for special in (0..=255_u8).filter(|b| ESCAPES[usize::from(*b)] != 0) {
            for length in 0..40 {
                // Bytes that are near to special ones come before and after.
                let near = [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff];
                let mut bytes: Vec<u8> = (0..length).map(|at| near[at % near.len()]).collect();
                assert_eq!(plain_length(&bytes), None);
                bytes.extend([special, 0x21, b'"', b'\\', 0, 0x23, 0x5d, 0x20, 0x20, 0x20]);
                assert_eq!(plain_length(&bytes), Some(length), "{special} after {length}");
            }
        }
    }

    #[test]
    fn levels_are_limited() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(is_valid(nested(128).as_bytes()));
        assert!(!is_valid(nested(129).as_bytes()));
        assert!(!is_valid("[".repeat(1_000_000).as_bytes()));
        assert!(is_valid((r#"{"a":"#.repeat(128) + "1" + &"}".repeat(128)).as_bytes()));
    }
}
