//! Owns dates and times in row events: the packed forms of MySQL 5.6 and later, and the old forms that MariaDB
//! writes with `mysql56_temporal_format=OFF`. All give the integers of [`canalis_types::temporal`].

use canalis_types::temporal::{DateFields, DateTimeFields};

use crate::binlog::cursor::{Cursor, DecodeError, Decoded};

const MICROS: i64 = 1_000_000;

#[cold]
fn impossible() -> DecodeError {
    DecodeError::malformed("date or time has a field out of range")
}

/// Fields that servers can store, as the integer form.
fn date(year: u64, month: u64, day: u64) -> Decoded<DateFields> {
    match (i32::try_from(year), u8::try_from(month), u8::try_from(day)) {
        (Ok(year @ 0..=9999), Ok(month @ 0..=12), Ok(day @ 0..=31)) => Ok(DateFields { year, month, day }),
        _ => Err(impossible()),
    }
}

fn datetime(date: DateFields, hour: u64, minute: u64, second: u64, micro: u64) -> Decoded<i64> {
    match (u8::try_from(hour), u8::try_from(minute), u8::try_from(second), u32::try_from(micro)) {
        (Ok(hour @ 0..24), Ok(minute @ 0..60), Ok(second @ 0..60), Ok(micro @ 0..1_000_000)) => {
            Ok(DateTimeFields { date, hour, minute, second, micro }.encode())
        }
        _ => Err(impossible()),
    }
}

/// The all-zero date-time.
fn zero_datetime() -> i64 {
    let date = DateFields { year: 0, month: 0, day: 0 };
    DateTimeFields { date, hour: 0, minute: 0, second: 0, micro: 0 }.encode()
}

/// DATE: 3 bytes with day, month, year from the low bits.
pub fn read_date(cursor: &mut Cursor<'_>) -> Decoded<i32> {
    let packed = u64::from(cursor.u24()?);
    Ok(date(packed >> 9, packed >> 5 & 0xf, packed & 0x1f)?.encode())
}

/// The fraction of `digits` digits in microseconds.
fn fraction(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<u64> {
    Ok(match digits {
        0 => 0,
        1 | 2 => u64::from(cursor.u8()?) * 10_000,
        3 | 4 => cursor.uint_be(2)? * 100,
        _ => cursor.uint_be(3)?,
    })
}

/// DATETIME of 5.6: 40 bits of packed fields, biased, then the fraction.
pub fn read_datetime2(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<i64> {
    let biased = cursor.uint_be(5)?;
    let packed = biased.checked_sub(0x80_0000_0000).ok_or_else(impossible)?;
    let micro = fraction(cursor, digits)?;
    unpack_datetime(packed, micro)
}

/// Packed fields: year and month (13 to the year), 5 bits day, 5 hour, 6 minute, 6 second.
pub fn unpack_datetime(packed: u64, micro: u64) -> Decoded<i64> {
    let months = packed >> 22;
    let date = date(months / 13, months % 13, packed >> 17 & 0x1f)?;
    datetime(date, packed >> 12 & 0x1f, packed >> 6 & 0x3f, packed & 0x3f, micro)
}

/// TIMESTAMP of 5.6: seconds since the epoch, then the fraction. Zero stands for `0000-00-00 00:00:00`.
pub fn read_timestamp2(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<i64> {
    let seconds = cursor.uint_be(4)?;
    let micro = fraction(cursor, digits)?;
    timestamp(seconds, micro)
}

fn timestamp(seconds: u64, micro: u64) -> Decoded<i64> {
    if seconds == 0 && micro == 0 {
        return Ok(zero_datetime());
    }
    if micro >= 1_000_000 {
        return Err(impossible());
    }
    let seconds = i64::try_from(seconds).map_err(|_| impossible())?;
    Ok(seconds * MICROS + i64::try_from(micro).map_err(|_| impossible())?)
}

/// TIME of 5.6: 24 bits of packed fields, biased, then the fraction; a negative value is the complement of the
/// whole, fraction included.
pub fn read_time2(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<i64> {
    let fraction_bytes = usize::from(digits.min(6)).div_ceil(2);
    let bits = 24 + 8 * fraction_bytes;
    let biased = i64::try_from(cursor.uint_be(3 + fraction_bytes)?).map_err(|_| impossible())?;
    let value = biased - (1i64 << (bits - 1));
    let magnitude = value.unsigned_abs();
    let scale = [1, 10_000, 100, 1][fraction_bytes];
    let micro = (magnitude & ((1 << (8 * fraction_bytes)) - 1)) * scale;
    unpack_time(magnitude >> (8 * fraction_bytes), micro, value < 0)
}

/// Packed fields: 10 bits hour, 6 minute, 6 second.
pub fn unpack_time(packed: u64, micro: u64, negative: bool) -> Decoded<i64> {
    let (hour, minute, second) = (packed >> 12, packed >> 6 & 0x3f, packed & 0x3f);
    duration(hour, minute, second, micro, negative)
}

fn duration(hour: u64, minute: u64, second: u64, micro: u64, negative: bool) -> Decoded<i64> {
    if hour > 838 || minute > 59 || second > 59 || micro > 999_999 {
        return Err(impossible());
    }
    let micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro;
    let micros = i64::try_from(micros).map_err(|_| impossible())?;
    Ok(if negative { -micros } else { micros })
}

/// What the old forms with fraction divide microseconds by.
fn divisor(digits: u8) -> u64 {
    10u64.pow(u32::from(6 - digits.min(6)))
}

/// Bytes of an old form for each number of fraction digits.
type Widths = [usize; 7];
const TIME_WIDTHS: Widths = [3, 4, 4, 5, 5, 5, 6];
const DATETIME_WIDTHS: Widths = [5, 6, 6, 7, 7, 7, 8];
const FRACTION_WIDTHS: Widths = [0, 1, 1, 2, 2, 3, 3];

/// Old TIMESTAMP: seconds, little-endian; with a fraction big-endian and the fraction behind.
pub fn read_old_timestamp(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<i64> {
    if digits == 0 {
        return timestamp(u64::from(cursor.u32()?), 0);
    }
    let seconds = cursor.uint_be(4)?;
    let micro = cursor.uint_be(FRACTION_WIDTHS[usize::from(digits.min(6))])? * divisor(digits);
    timestamp(seconds, micro)
}

/// Old DATETIME: the decimal number `YYYYMMDDhhmmss`; with a fraction mixed-radix microseconds, big-endian.
pub fn read_old_datetime(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<i64> {
    if digits == 0 {
        let number = cursor.u64()?;
        let (day, clock) = (number / 1_000_000, number % 1_000_000);
        let date = date(day / 10_000, day / 100 % 100, day % 100)?;
        return datetime(date, clock / 10_000, clock / 100 % 100, clock % 100, 0);
    }
    let shifted = cursor.uint_be(DATETIME_WIDTHS[usize::from(digits.min(6))])?;
    let micros = shifted.checked_mul(divisor(digits)).ok_or_else(impossible)?;
    let (seconds, micro) = (micros / 1_000_000, micros % 1_000_000);
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hours, minute) = (minutes / 60, minutes % 60);
    let (days, hour) = (hours / 24, hours % 24);
    let (months, day) = (days / 32, days % 32);
    datetime(date(months / 13, months % 13, day)?, hour, minute, second, micro)
}

/// Old TIME: the decimal number `hhmmss` with sign; with a fraction biased microseconds, big-endian.
pub fn read_old_time(cursor: &mut Cursor<'_>, digits: u8) -> Decoded<i64> {
    if digits == 0 {
        let raw = i64::from((cursor.u24()? << 8).cast_signed() >> 8);
        let number = raw.unsigned_abs();
        return duration(number / 10_000, number / 100 % 100, number % 100, 0, raw < 0);
    }
    // One second more than the greatest TIME.
    const BIAS: u64 = 3_020_400 * 1_000_000;
    let shifted = cursor.uint_be(TIME_WIDTHS[usize::from(digits.min(6))])?;
    let micros = shifted.checked_mul(divisor(digits)).ok_or_else(impossible)?;
    let value = i64::try_from(micros).map_err(|_| impossible())? - BIAS.cast_signed();
    if value.unsigned_abs() >= BIAS {
        return Err(impossible());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use canalis_types::temporal;

    use super::*;

    fn datetime_text(micros: i64) -> String {
        let mut out = Vec::new();
        temporal::write_datetime(&mut out, micros, 6);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn my_01_zero_timestamp_and_datetime_are_kept() {
        let zero = read_timestamp2(&mut Cursor::new(&[0; 4]), 0).unwrap();
        assert_eq!(datetime_text(zero), "0000-00-00 00:00:00.000000");
        let zero = read_datetime2(&mut Cursor::new(&[0x80, 0, 0, 0, 0]), 0).unwrap();
        assert_eq!(datetime_text(zero), "0000-00-00 00:00:00.000000");
    }

    #[test]
    fn my_13_negative_times() {
        // -00:00:00.000001 and -838:59:59.
        let tiny = read_time2(&mut Cursor::new(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff]), 6).unwrap();
        assert_eq!(tiny, -1);
        let packed: i64 = 838 << 12 | 59 << 6 | 59;
        let bytes = (0x80_0000 - packed).to_be_bytes();
        assert_eq!(read_time2(&mut Cursor::new(&bytes[5..]), 0).unwrap(), -3_020_399_000_000);
        // -00:00:00.01 in 2 digits: one hundredth below the bias.
        assert_eq!(read_time2(&mut Cursor::new(&[0x7f, 0xff, 0xff, 0xff]), 2).unwrap(), -10_000);
    }

    #[test]
    fn old_forms() {
        let number = 20_250_015_102_030u64.to_le_bytes();
        let micros = read_old_datetime(&mut Cursor::new(&number), 0).unwrap();
        assert_eq!(datetime_text(micros), "2025-00-15 10:20:30.000000");
        let raw = (-8_385_959i32).to_le_bytes();
        assert_eq!(read_old_time(&mut Cursor::new(&raw[..3]), 0).unwrap(), -3_020_399_000_000);
    }

    #[test]
    fn fields_out_of_range_are_errors() {
        assert!(read_date(&mut Cursor::new(&[0xff, 0xff, 0xff])).is_err());
        assert!(read_datetime2(&mut Cursor::new(&[0xff; 8]), 6).is_err());
        assert!(read_time2(&mut Cursor::new(&[0xff; 6]), 6).is_err());
        assert!(read_old_datetime(&mut Cursor::new(&[0xff; 8]), 6).is_err());
    }
}
