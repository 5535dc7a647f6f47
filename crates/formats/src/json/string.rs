//! Owns JSON strings: escaping and unescaping.

/// What must not stand bare in a string: 0 for bytes that may, `u` for control characters without a short form, else the
/// letter after the backslash.
pub(crate) static ESCAPES: [u8; 256] = escapes();

const fn escapes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = b'u';
        control += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
}

/// Appends a string with its quotes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut from = 0;
    for (at, byte) in text.iter().enumerate() {
        let escape = ESCAPES[usize::from(*byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        from = at + 1;
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'"');
}

/// Replaces the content of `out` by what a scanned string with escapes means.
///
/// # Errors
/// For a surrogate without its partner.
pub(crate) fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    const LONE: &str = "a string has half of a surrogate pair";
    out.clear();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let letter = rest.get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or_default();
        match letter {
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let first = hex(rest).ok_or(LONE)?;
                rest = &rest[4..];
                let code = if (0xd800..0xdc00).contains(&first) {
                    let second = rest.strip_prefix(b"\\u").and_then(hex).ok_or(LONE)?;
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(LONE);
                    }
                    rest = &rest[6..];
                    0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                } else {
                    first
                };
                let character = char::from_u32(code).ok_or(LONE)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn hex(text: &[u8]) -> Option<u32> {
    text.get(..4)?.iter().try_fold(0, |value, byte| Some(value << 4 | char::from(*byte).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip() {
        for text in ["", "plain", "a\"b\\c/d", "\u{0}\u{1f}\u{7f}\t\r\n\u{8}\u{c}", "漢字 😀 \u{2028}"] {
            let mut written = Vec::new();
            write_string(&mut written, text.as_bytes());
            assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), text);
            let mut read = Vec::new();
            unescape(&written[1..written.len() - 1], &mut read).unwrap();
            assert_eq!(read, text.as_bytes());
        }
    }

    #[test]
    fn surrogates_come_in_pairs() {
        let mut out = Vec::new();
        unescape(br"x\ud83d\ude00y", &mut out).unwrap();
        assert_eq!(out, "x😀y".as_bytes());
        for text in [r"\ud83d", r"\ud83dx", r"\ud83d\u0041", r"\ude00"] {
            assert!(unescape(text.as_bytes(), &mut out).is_err(), "{text}");
        }
    }
}
