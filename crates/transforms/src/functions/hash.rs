//! Owns digests. Text is hashed as UTF-8; other values as their canonical text; results are lower-case hexadecimal.

use std::sync::Arc;

use arrow_array::{ArrayRef, builder::StringBuilder};
use canalis_types::LogicalType;
use datafusion_common::ScalarValue;
use md5::Md5;
use rand::RngCore;
use ring::digest::SHA1_FOR_LEGACY_USE_ONLY;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::{
    Function,
    encode::{hex, write_hex},
    row::{integer_rows, written_rows},
};
use crate::{
    call::{Kernel, Volatility},
    compile::{Context, Typed, coerce::as_text, typed::call, types::Family},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("MD5", 1, 1, |c, a| digest::<Md5>("MD5", 32, c, a)),
    Function::new("SHA1", 1, 1, sha1),
    Function::new("SHA", 1, 1, sha1),
    Function::new("SHA224", 1, 1, |c, a| digest::<Sha224>("SHA224", 56, c, a)),
    Function::new("SHA256", 1, 1, |c, a| digest::<Sha256>("SHA256", 64, c, a)),
    Function::new("SHA384", 1, 1, |c, a| digest::<Sha384>("SHA384", 96, c, a)),
    Function::new("SHA512", 1, 1, |c, a| digest::<Sha512>("SHA512", 128, c, a)),
    Function::new("SHA2", 2, 2, sha2),
    Function::new("CRC32", 1, 1, crc32),
    Function::new("UUID", 0, 0, uuid),
];

/// Binary values as they are, everything else as text.
pub(super) fn as_bytes(value: Typed, context: &Context) -> Result<Typed, String> {
    if value.family() == Family::Binary { Ok(value) } else { as_text(value, context.zone) }
}

fn digest<D: Digest + 'static>(
    name: &str,
    length: u32,
    context: &Context,
    mut arguments: Vec<Typed>,
) -> Result<Typed, String> {
    let value = as_bytes(arguments.swap_remove(0), context)?;
    written_rows(name, &[value], LogicalType::Varchar { length }, |row, out| {
        write_hex(&D::digest(row.bytes(0)), out);
    })
}

fn sha1(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_bytes(arguments.swap_remove(0), context)?;
    written_rows("SHA1", &[value], LogicalType::Varchar { length: 40 }, |row, out| {
        write_hex(ring::digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, row.bytes(0)).as_ref(), out);
    })
}

/// The digest of a constant number of bits.
fn sha2(context: &Context, arguments: Vec<Typed>) -> Result<Typed, String> {
    let bits = match arguments[1].value {
        Some(ScalarValue::Int32(Some(bits))) => bits,
        _ => return Err("the number of bits must be a constant".into()),
    };
    match bits {
        224 => digest::<Sha224>("SHA224", 56, context, arguments),
        0 | 256 => digest::<Sha256>("SHA256", 64, context, arguments),
        384 => digest::<Sha384>("SHA384", 96, context, arguments),
        512 => digest::<Sha512>("SHA512", 128, context, arguments),
        _ => Err(format!("{bits} bits are not known; write 224, 256, 384 or 512")),
    }
}

fn crc32(context: &Context, mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let value = as_bytes(arguments.swap_remove(0), context)?;
    integer_rows("CRC32", &[value], |row| Ok(Some(i64::from(crc32fast::hash(row.bytes(0))))))
}

/// A random UUID (version 4) for each row.
fn uuid(_: &Context, _: Vec<Typed>) -> Result<Typed, String> {
    let kernel: Kernel = Arc::new(|_, rows| {
        let mut out = StringBuilder::with_capacity(rows, rows * 36);
        let mut random = rand::rng();
        for _ in 0..rows {
            let mut bytes = [0; 16];
            random.fill_bytes(&mut bytes);
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            let digits = hex(&bytes);
            out.append_value(format!(
                "{}-{}-{}-{}-{}",
                &digits[..8],
                &digits[8..12],
                &digits[12..16],
                &digits[16..20],
                &digits[20..]
            ));
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    });
    call("UUID", &[], LogicalType::Uuid, Volatility::PerRow, kernel)
}
