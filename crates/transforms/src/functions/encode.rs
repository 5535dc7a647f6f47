//! Owns other forms of texts and bytes: hexadecimal, Base64, character sets, compression.

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_types::LogicalType;
use encoding_rs::Encoding;
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

use super::{
    Function,
    hash::as_bytes,
    row::{LONGEST, binary_rows, text_rows},
};
use crate::{
    call::refuse,
    compile::{
        Context, Typed,
        coerce::{as_integer, as_text},
        types::Family,
    },
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("HEX", 1, 1, to_hex),
    Function::new("UNHEX", 1, 1, unhex),
    Function::new("TO_BASE64", 1, 1, to_base64),
    Function::new("FROM_BASE64", 1, 1, from_base64),
    Function::new("FROM_BASE64_BINARY", 1, 1, from_base64_binary),
    Function::new("ENCODE", 2, 2, encode),
    Function::new("DECODE", 2, 2, decode),
    Function::new("COMPRESS", 1, 1, compress),
    Function::new("UNCOMPRESS", 1, 1, uncompress),
];

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    write_hex(bytes, &mut out);
    out
}

/// Writes lower-case hexadecimal.
pub(super) fn write_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

/// The bytes of hexadecimal digits in any case.
pub(crate) fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let mut out = Vec::with_capacity(digits.len() / 2);
    let pairs = digits.as_bytes().chunks(2);
    for pair in pairs {
        let [high, low] = pair else { return None };
        out.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(out)
}

/// Of a whole number its digits in base 16, of anything else its bytes; in capitals.
fn to_hex(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = arguments.swap_remove(0);
    if value.family() == Family::Integer {
        let value = as_integer(value, "the argument", context.zone)?;
        return text_rows("HEX", &[value], LogicalType::Text, |row| {
            Ok(Some(format!("{:X}", row.integer(0)).into()))
        });
    }
    let value = as_bytes(value, context)?;
    text_rows("HEX", &[value], LogicalType::Text, |row| Ok(Some(hex(row.bytes(0)).to_uppercase().into())))
}

fn unhex(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_text(arguments.swap_remove(0), context.zone)?;
    binary_rows("UNHEX", &[value], |row| {
        bytes_of_hex(row.text(0)).map(Some).ok_or_else(|| refuse("text is not hexadecimal"))
    })
}

fn to_base64(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_bytes(arguments.swap_remove(0), context)?;
    text_rows("TO_BASE64", &[value], LogicalType::Text, |row| Ok(Some(STANDARD.encode(row.bytes(0)).into())))
}

/// The text of UTF-8 bytes in Base64.
fn from_base64(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_text(arguments.swap_remove(0), context.zone)?;
    text_rows("FROM_BASE64", &[value], LogicalType::Text, |row| {
        let bytes = STANDARD.decode(row.text(0)).map_err(|_| refuse("text is not Base64"))?;
        let text = String::from_utf8(bytes).map_err(|_| refuse("decoded bytes are not UTF-8 text"))?;
        Ok(Some(text.into()))
    })
}

fn from_base64_binary(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_text(arguments.swap_remove(0), context.zone)?;
    binary_rows("FROM_BASE64_BINARY", &[value], |row| {
        STANDARD.decode(row.text(0)).map(Some).map_err(|_| refuse("text is not Base64"))
    })
}

/// A character set by one of its names on the web; the writing of UTF-16 is not among them.
fn charset(argument: &Typed) -> Result<&'static Encoding, String> {
    let name = argument.literal_text().ok_or("the character set must be a text constant")?;
    Encoding::for_label(name.as_bytes()).ok_or_else(|| format!("character set `{name}` is not known"))
}

/// The bytes of a text in a character set; a character that it lacks refuses the row.
fn encode(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let charset = charset(&arguments[1])?;
    if charset.output_encoding() != charset {
        return Err(format!("{} can be read but not written", charset.name()));
    }
    let value = as_text(arguments.swap_remove(0), context.zone)?;
    binary_rows("ENCODE", &[value], move |row| match charset.encode(row.text(0)) {
        (_, _, true) => Err(refuse(format!("a character is not in {}", charset.name()))),
        (bytes, _, false) => Ok(Some(bytes.into_owned())),
    })
}

/// The text of bytes in a character set; bytes that are none refuse the row.
fn decode(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let charset = charset(&arguments[1])?;
    let value = as_bytes(arguments.swap_remove(0), context)?;
    text_rows("DECODE", &[value], LogicalType::Text, move |row| {
        let text = charset.decode_without_bom_handling_and_without_replacement(row.bytes(0));
        text.map(Some).ok_or_else(|| refuse(format!("bytes are not text in {}", charset.name())))
    })
}

/// MySQL's form: the length in four bytes, little-endian, then zlib; empty stays empty.
fn compress(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_bytes(arguments.swap_remove(0), context)?;
    binary_rows("COMPRESS", &[value], |row| {
        let bytes = row.bytes(0);
        if bytes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let length = u32::try_from(bytes.len()).map_err(|_| refuse("the value is too long"))?;
        let mut out = length.to_le_bytes().to_vec();
        let mut encoder = ZlibEncoder::new(&mut out, Compression::default());
        let done = encoder.write_all(bytes).and_then(|()| encoder.finish().map(|_| ()));
        done.map_err(|_| refuse("the value cannot be compressed"))?;
        Ok(Some(out))
    })
}

fn uncompress(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_bytes(arguments.swap_remove(0), context)?;
    binary_rows("UNCOMPRESS", &[value], |row| {
        let wrong = || refuse("bytes are not a compressed value");
        let bytes = row.bytes(0);
        if bytes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| wrong())?;
        if length > LONGEST {
            return Err(refuse("the resulting value is too long"));
        }
        let mut out = Vec::new();
        let most = u64::try_from(length).unwrap_or(u64::MAX).saturating_add(1);
        ZlibDecoder::new(rest).take(most).read_to_end(&mut out).map_err(|_| wrong())?;
        if out.len() == length { Ok(Some(out)) } else { Err(wrong()) }
    })
}
