//! Owns the parts of values: coded bytes, unscaled integers, numbers that stand for times, texts with long fractions.

use arrow_buffer::i256;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use canalis_batch::ValueError;

use super::{BinaryMode, types::Unit};
use crate::{
    json::{
        scan::{Scanner, Text, Value},
        string::unescape,
    },
    text::{expand_exponent, refuse, whole_number},
};

/// Room that is used again for every value.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub text: Vec<u8>,
    pub bytes: Vec<u8>,
}

/// What a scanned text means.
pub(super) fn plain<'t>(text: Text<'t>, room: &'t mut Vec<u8>) -> Result<&'t [u8], ValueError> {
    if !text.escaped {
        return Ok(text.raw);
    }
    unescape(text.raw, room).map_err(refuse)?;
    Ok(room)
}

/// Replaces the content of `out` by the bytes that a text stands for.
pub(super) fn decode_bytes(text: &[u8], mode: BinaryMode, out: &mut Vec<u8>) -> Result<(), ValueError> {
    out.clear();
    match mode {
        BinaryMode::Bytes | BinaryMode::Base64 => {
            STANDARD.decode_vec(text, out).map_err(|_| refuse("bytes are not Base64 with padding"))
        }
        BinaryMode::Base64UrlSafe => URL_SAFE
            .decode_vec(text, out)
            .map_err(|_| refuse("bytes are not Base64 for addresses with padding")),
        BinaryMode::Hex => {
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
            if !text.len().is_multiple_of(2) {
                return Err(refuse("hexadecimal digits do not come in pairs"));
            }
            for pair in text.chunks_exact(2) {
                let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                    return Err(refuse("bytes are not hexadecimal digits"));
                };
                out.push(high << 4 | low);
            }
            Ok(())
        }
    }
}

/// A big-endian integer in two's complement of any length.
pub(super) fn unscaled(bytes: &[u8]) -> Result<i256, ValueError> {
    let Some(first) = bytes.first() else { return Err(refuse("a decimal has no bytes")) };
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    if bytes.len() <= 16 {
        let mut whole = [fill; 16];
        whole[16 - bytes.len()..].copy_from_slice(bytes);
        return Ok(i256::from_i128(i128::from_be_bytes(whole)));
    }
    let extra = bytes.len().saturating_sub(32);
    let (head, tail) = bytes.split_at(extra);
    let keeps_sign = extra == 0 || (tail[0] ^ fill) & 0x80 == 0;
    if !keeps_sign || head.iter().any(|b| *b != fill) {
        return Err(refuse("decimal is longer than 76 digits"));
    }
    let mut whole = [fill; 32];
    whole[32 - tail.len()..].copy_from_slice(tail);
    Ok(i256::from_be_bytes(whole))
}

/// Whether a text is a number as JSON writes it.
pub(super) fn is_number(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text);
    matches!(scanner.value(), Ok(Value::Number(raw)) if raw.len() == text.len())
}

/// A whole number out of a JSON number, which may be written as `1.0` or `1e3`, or out of a text of digits.
pub(super) fn whole<'t>(number: &'t [u8], room: &'t mut Vec<u8>) -> Result<&'t [u8], ValueError> {
    if !number.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        return Ok(number);
    }
    if !is_number(number) {
        return Err(refuse("text is not a number"));
    }
    let number = expand_exponent(number)?;
    let point = memchr::memchr(b'.', &number).unwrap_or(number.len());
    if number[point..].iter().any(|b| !matches!(b, b'.' | b'0')) {
        return Err(refuse("number is not whole"));
    }
    room.clear();
    room.extend_from_slice(&number[..point]);
    Ok(room)
}

/// Microseconds of a number of units.
pub(super) fn micros(number: &[u8], unit: Unit, room: &mut Vec<u8>) -> Result<i64, ValueError> {
    let value = whole_number(whole(number, room)?)?;
    match unit {
        Unit::Micros => Ok(value),
        Unit::Millis => value.checked_mul(1000).ok_or_else(|| refuse("time is out of the column's range")),
        Unit::Nanos if value % 1000 == 0 => Ok(value / 1000),
        Unit::Nanos => Err(refuse("time is finer than a microsecond")),
    }
}

/// A time without the digits of its fraction beyond six, which must be zeros.
pub(super) fn six_digits<'t>(text: &'t [u8], room: &'t mut Vec<u8>) -> Result<&'t [u8], ValueError> {
    let Some(point) = memchr::memchr(b'.', text) else { return Ok(text) };
    let fraction = &text[point + 1..];
    let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits <= 6 {
        return Ok(text);
    }
    if fraction[6..digits].iter().any(|b| *b != b'0') {
        return Err(refuse("time is finer than a microsecond"));
    }
    room.clear();
    room.extend_from_slice(&text[..point + 7]);
    room.extend_from_slice(&fraction[digits..]);
    Ok(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are those of §8.5's vectors and of the definition of two's complement.
    #[test]
    fn fm_06_unscaled_integers_have_any_length() {
        for (bytes, expect) in [
            (&[0x10, 0x09][..], Some(4105)),
            (&[0x00], Some(0)),
            (&[0x7f], Some(127)),
            (&[0x00, 0x80], Some(128)),
            (&[0x80], Some(-128)),
            (&[0xff, 0x7f], Some(-129)),
            (&[0xff; 40], Some(-1)),
            (
                &[
                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    0, 0, 1,
                ],
                Some(1),
            ),
            (&[], None),
        ] {
            assert_eq!(unscaled(bytes).ok(), expect.map(i256::from_i128), "{bytes:?}");
        }
        let mut long = vec![0x01];
        long.extend([0; 32]);
        assert!(unscaled(&long).is_err());
        let mut lost_sign = vec![0x00];
        lost_sign.extend([0xff; 32]);
        assert!(unscaled(&lost_sign).is_err());
    }

    #[test]
    fn fractions_are_cut_only_where_nothing_is_lost() {
        let mut room = Vec::new();
        for (text, expect) in [
            ("10:20:30Z", Some("10:20:30Z")),
            ("10:20:30.5Z", Some("10:20:30.5Z")),
            ("10:20:30.123456000Z", Some("10:20:30.123456Z")),
            ("10:20:30.1234560+01:00", Some("10:20:30.123456+01:00")),
            ("10:20:30.123456001Z", None),
        ] {
            assert_eq!(six_digits(text.as_bytes(), &mut room).ok(), expect.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_fraction_of_zeros() {
        let mut room = Vec::new();
        for (text, expect) in [
            ("12", Some("12")),
            ("1.0", Some("1")),
            ("1e3", Some("1000")),
            ("1.5", None),
            ("e5", None),
            (".e1", None),
        ] {
            assert_eq!(whole(text.as_bytes(), &mut room).ok(), expect.map(str::as_bytes), "{text}");
        }
    }
}
