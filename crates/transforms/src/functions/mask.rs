//! Owns masks: values that must not be read at the sink.

use canalis_types::LogicalType;
use sha2::{Digest, Sha256};

use super::{
    Function,
    encode::write_hex,
    row::{count, written_rows},
};
use crate::compile::{
    Context, Typed,
    coerce::{as_integer, as_text},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("MASK", 1, 4, mask),
    Function::new("MASK_HASH", 2, 2, mask_hash),
    Function::new("MASK_NULL", 1, 1, mask_null),
];

/// NULL of the argument's type, so that the column stays what it is.
fn mask_null(_: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    match arguments.into_iter().next() {
        Some(value) if !value.untyped => Typed::null(value.ty),
        _ => Err("a column or another value with a type is needed".into()),
    }
}

/// Replaces every character except some at the left and at the right by a mask character. A text that is too short to
/// hide anything is hidden whole.
fn mask(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let zone = context.zone;
    let mark = match arguments.len() {
        4 => arguments.pop().and_then(|m| m.literal_text().map(str::to_owned)),
        _ => Some("*".to_owned()),
    };
    let mark = mark.ok_or("the mask character must be a text constant")?;
    let mut chars = mark.chars();
    let (Some(mark), None) = (chars.next(), chars.next()) else {
        return Err("the mask character must be exactly one character".into());
    };
    let mut typed = Vec::new();
    for (index, argument) in arguments.into_iter().enumerate() {
        typed.push(match index {
            0 => as_text(argument, zone)?,
            _ => as_integer(argument, "the number of characters to keep", zone)?,
        });
    }
    written_rows("MASK", &typed, LogicalType::Text, move |row, out| {
        let text = row.text(0);
        let keep = |index: usize| if row.len() > index { count(row.integer(index)) } else { 0 };
        let (left, right, length) = (keep(1), keep(2), text.chars().count());
        let hidden = if left.saturating_add(right) < length { left..length - right } else { 0..length };
        out.extend(text.chars().enumerate().map(|(at, c)| if hidden.contains(&at) { mark } else { c }));
    })
}

/// HMAC-SHA-256 of the value's text under a constant key, as hexadecimal: equal values stay equal, so joins still work,
/// and without the key nobody can try out values.
fn mask_hash(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let key = arguments.pop().and_then(|k| k.literal_text().map(str::to_owned));
    let key = key.filter(|k| !k.is_empty()).ok_or("the key must be a text constant that is not empty")?;
    let hmac = Hmac::new(key.as_bytes());
    let value = as_text(arguments.swap_remove(0), context.zone)?;
    written_rows("MASK_HASH", &[value], LogicalType::Varchar { length: 64 }, move |row, out| {
        write_hex(&hmac.sign(row.bytes(0)), out);
    })
}

/// HMAC-SHA-256 by RFC 2104 with both key blocks hashed beforehand.
#[derive(Clone)]
struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    fn new(key: &[u8]) -> Self {
        let mut block = [0_u8; 64];
        if key.len() > block.len() {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let keyed = |pad: u8| Sha256::new().chain_update(block.map(|b| b ^ pad));
        Self { inner: keyed(0x36), outer: keyed(0x5c) }
    }

    fn sign(&self, message: &[u8]) -> [u8; 32] {
        let inner = self.inner.clone().chain_update(message).finalize();
        self.outer.clone().chain_update(inner).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_gives_the_vectors_of_rfc_4231() {
        for (key, message, expect) in [
            (
                &b"Jefe"[..],
                &b"what do ya want for nothing?"[..],
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            let mut signed = String::new();
            write_hex(&Hmac::new(key).sign(message), &mut signed);
            assert_eq!(signed, expect);
        }
    }
}
