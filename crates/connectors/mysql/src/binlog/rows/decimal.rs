//! Owns packed decimals: groups of nine digits in four bytes, big-endian, the sign in the first bit.

use arrow_buffer::i256;

use crate::binlog::cursor::{Cursor, DecodeError, Decoded};

/// Bytes that 0–9 digits take.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
/// Powers of ten up to a full group.
const POWERS: [u32; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// More than the longest decimal takes (65 digits).
const MAX_BYTES: usize = 40;

/// How decimals of one precision and scale are packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecimalLayout {
    /// Digits of each group, from the front.
    groups: Vec<u8>,
    bytes: usize,
}

impl DecimalLayout {
    /// The layout for `precision` digits in all, `scale` of them after the point.
    ///
    /// # Errors
    /// When no server has such a type.
    pub fn new(precision: u8, scale: u8) -> Decoded<Self> {
        if precision == 0 || precision > 65 || scale > precision {
            return Err(DecodeError::malformed(format!("decimal({precision},{scale}) is not possible")));
        }
        let whole = precision - scale;
        let mut groups = Vec::new();
        groups.extend((!whole.is_multiple_of(9)).then_some(whole % 9));
        groups.extend(std::iter::repeat_n(9, usize::from(whole / 9)));
        groups.extend(std::iter::repeat_n(9, usize::from(scale / 9)));
        groups.extend((!scale.is_multiple_of(9)).then_some(scale % 9));
        let bytes = groups.iter().map(|digits| GROUP_BYTES[usize::from(*digits)]).sum();
        Ok(Self { groups, bytes })
    }

    /// Reads the unscaled value of a decimal of at most 38 digits.
    pub fn read_i128(&self, cursor: &mut Cursor<'_>) -> Decoded<i128> {
        let (packed, negative) = self.unmasked(cursor)?;
        let mut rest = Cursor::new(&packed[..self.bytes]);
        let mut value = 0i128;
        for digits in &self.groups {
            let (group, power) = group(&mut rest, *digits)?;
            value = value * i128::from(power) + i128::from(group);
        }
        Ok(if negative { -value } else { value })
    }

    /// Reads the unscaled value of a decimal of any length.
    pub fn read_i256(&self, cursor: &mut Cursor<'_>) -> Decoded<i256> {
        let (packed, negative) = self.unmasked(cursor)?;
        let mut rest = Cursor::new(&packed[..self.bytes]);
        let mut value = i256::ZERO;
        for digits in &self.groups {
            let (group, power) = group(&mut rest, *digits)?;
            value =
                value.wrapping_mul(i256::from_i128(power.into())).wrapping_add(i256::from_i128(group.into()));
        }
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// The packed bytes as of the absolute value, and whether the value is negative.
    fn unmasked(&self, cursor: &mut Cursor<'_>) -> Decoded<([u8; MAX_BYTES], bool)> {
        let bytes = cursor.take(self.bytes)?;
        let mut packed = [0; MAX_BYTES];
        packed[..self.bytes].copy_from_slice(bytes);
        packed[0] ^= 0x80;
        let negative = packed[0] & 0x80 != 0;
        if negative {
            for byte in &mut packed[..self.bytes] {
                *byte = !*byte;
            }
        }
        Ok((packed, negative))
    }
}

fn group(rest: &mut Cursor<'_>, digits: u8) -> Decoded<(u32, u32)> {
    let power = POWERS[usize::from(digits)];
    let value = match GROUP_BYTES[usize::from(digits)] {
        4 => u32::from_be_bytes(rest.array()?),
        bytes => u32::try_from(rest.uint_be(bytes)?).unwrap_or(u32::MAX),
    };
    if value >= power {
        return Err(DecodeError::malformed("decimal has a group of too many digits"));
    }
    Ok((value, power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(precision: u8, scale: u8, bytes: &[u8]) -> i128 {
        let layout = DecimalLayout::new(precision, scale).unwrap();
        let narrow = layout.read_i128(&mut Cursor::new(bytes)).unwrap();
        assert_eq!(layout.read_i256(&mut Cursor::new(bytes)).unwrap(), i256::from_i128(narrow));
        narrow
    }

    #[test]
    fn decimals_of_the_manual_and_their_negatives() {
        // 1234567890.1234 as DECIMAL(14,4).
        let bytes = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(both(14, 4, &bytes), 12_345_678_901_234);
        assert_eq!(both(14, 4, &bytes.map(|b| !b)), -12_345_678_901_234);
        assert_eq!(both(4, 2, &[0x80, 0]), 0);
        assert_eq!(both(2, 2, &[0x80 | 99]), 99);
    }

    #[test]
    fn my_22_sixty_five_digits() {
        let layout = DecimalLayout::new(65, 30).unwrap();
        assert_eq!(layout.bytes, 4 + 3 * 4 + 3 * 4 + 2);
        assert!(layout.read_i256(&mut Cursor::new(&[0x80; 30])).is_err());
        assert!(DecimalLayout::new(66, 0).is_err());
        assert!(DecimalLayout::new(3, 4).is_err());
    }
}
