//! Owns hexadecimal and Base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_types::LogicalType;

use super::{
    Function,
    hash::as_bytes,
    row::{binary_rows, text_rows},
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
];

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    out
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
