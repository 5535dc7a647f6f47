//! Owns dates, times of day and instants from text, years of more than four digits and offsets included.

use canalis_batch::ValueError;
use canalis_types::temporal;

use super::refuse;

/// Years beyond this are refused: date-times of them do not fit 64 bits of microseconds.
const MOST_YEAR: i32 = 200_000;

/// Days since the epoch.
pub(super) fn date(text: &[u8]) -> Result<i32, ValueError> {
    temporal::parse_date(text).or_else(|| long_date(text)).ok_or_else(|| refuse("text is not a date"))
}

/// `[-]Y…Y-MM-DD` with a minus or 5–6 year digits, on the calendar.
fn long_date(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let year_digits = digits.iter().position(|b| *b == b'-')?;
    if !(4..=6).contains(&year_digits) || (!negative && year_digits == 4) || digits.len() != year_digits + 6 {
        return None;
    }
    let number = |part: &[u8]| -> Option<i32> {
        part.iter().try_fold(0_i32, |n, b| b.is_ascii_digit().then(|| n * 10 + i32::from(b - b'0')))
    };
    if digits[year_digits + 3] != b'-' {
        return None;
    }
    let year = number(&digits[..year_digits])?;
    let year = if negative { -year } else { year };
    let month = u8::try_from(number(&digits[year_digits + 1..year_digits + 3])?).ok()?;
    let day = u8::try_from(number(&digits[year_digits + 4..])?).ok()?;
    let fields = temporal::DateFields { year, month, day };
    (year != 0 && year.abs() <= MOST_YEAR && fields.is_valid())
        .then(|| temporal::days_from_civil(year, month, day))
}

/// Microseconds of a duration, a multiple of `unit`.
pub(super) fn duration(text: &[u8], unit: i64) -> Result<i64, ValueError> {
    let micros = temporal::parse_duration(text).ok_or_else(|| refuse("text is not a time"))?;
    check_fraction(micros, unit)?;
    Ok(micros)
}

/// Microseconds of a local date-time, a multiple of `unit`.
pub(crate) fn datetime(text: &[u8], unit: i64) -> Result<i64, ValueError> {
    let micros = temporal::parse_datetime(text)
        .or_else(|| long_datetime(text))
        .ok_or_else(|| refuse("text is not a date-time"))?;
    if unit > 1 && temporal::is_partial_datetime(micros) {
        check_fraction(i64::from(temporal::DateTimeFields::decode(micros).micro), unit)?;
    } else {
        check_fraction(micros, unit)?;
    }
    Ok(micros)
}

fn long_datetime(text: &[u8]) -> Option<i64> {
    const STAND_IN: &[u8] = b"1970-01-01";
    let blank = text.iter().position(|b| matches!(b, b' ' | b'T'))?;
    let days = long_date(&text[..blank])?;
    let rest = text.get(blank..)?;
    if rest.len() > 16 {
        return None;
    }
    let of_day = temporal::parse_datetime(&[STAND_IN, rest].concat())?;
    Some(i64::from(days) * temporal::MICROS_PER_DAY + of_day)
}

/// Microseconds of an instant, a multiple of `unit`: a date-time with `Z`, an offset (`+08`, `+0800`, `+08:00`)
/// or nothing, which means UTC.
pub(crate) fn instant(text: &[u8], unit: i64) -> Result<i64, ValueError> {
    let (local, offset) = split_offset(text).ok_or_else(|| refuse("text has no valid offset from UTC"))?;
    let micros = datetime(local, unit)?;
    if offset == 0 {
        return Ok(micros);
    }
    if temporal::is_partial_datetime(micros) {
        return Err(refuse("a date that is on no calendar cannot have an offset"));
    }
    Ok(micros - offset)
}

fn split_offset(text: &[u8]) -> Option<(&[u8], i64)> {
    if let [local @ .., b'Z' | b'z'] = text {
        return Some((local, 0));
    }
    // A sign after the colon of the time of day belongs to an offset, one before it to the date.
    let Some(colon) = text.iter().position(|b| *b == b':') else { return Some((text, 0)) };
    let Some(sign) = text[colon..].iter().position(|b| matches!(b, b'+' | b'-')) else {
        return Some((text, 0));
    };
    let (local, offset) = text.split_at(colon + sign);
    let digits = match &offset[1..] {
        [a, b] => [*a, *b, b'0', b'0'],
        [a, b, c, d] | [a, b, b':', c, d] => [*a, *b, *c, *d],
        _ => return None,
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let two = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    let (hours, minutes) = (two(digits[0], digits[1]), two(digits[2], digits[3]));
    if hours > 18 || minutes > 59 {
        return None;
    }
    let micros = (hours * 60 + minutes) * 60_000_000;
    Some((local, if offset[0] == b'-' { -micros } else { micros }))
}

fn check_fraction(micros: i64, unit: i64) -> Result<(), ValueError> {
    if unit > 1 && micros % unit != 0 {
        return Err(refuse("time has more fraction digits than the column"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_take_offsets() {
        let utc = temporal::parse_datetime(b"2026-01-01 00:00:00").unwrap();
        for (text, expect) in [
            ("2026-01-01 00:00:00", Some(utc)),
            ("2026-01-01T00:00:00Z", Some(utc)),
            ("2026-01-01T08:00:00+08:00", Some(utc)),
            ("2025-12-31 20:30:00-0330", Some(utc)),
            ("2026-01-01 01:00:00.000+01", Some(utc)),
            ("2026-01-01 01:00:00+1", None),
            ("2026-01-01 01:00:00+99:00", None),
            ("2026-01-01 01:00:00 Europe/Berlin", None),
            ("2026-01-01", None),
        ] {
            assert_eq!(instant(text.as_bytes(), 1).ok(), expect, "{text}");
        }
        assert!(instant(b"0000-00-00 00:00:00Z", 1).is_ok());
        assert!(instant(b"0000-00-00 00:00:00+01:00", 1).is_err());
    }

    #[test]
    fn far_years_round_trip() {
        for text in ["-0044-03-15 12:00:00.5", "12345-12-31T23:59:59", "-20000-02-28 00:00:00"] {
            let micros = datetime(text.as_bytes(), 1).unwrap();
            let mut out = Vec::new();
            temporal::write_datetime(&mut out, micros, 6);
            assert_eq!(datetime(&out, 1), Ok(micros), "{text}");
        }
        for text in ["2026-1-01", "02026-01", "12345-02-30", "999999-01-01", "-0000-01-01"] {
            assert!(date(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn fractions_are_not_rounded() {
        assert!(datetime(b"2026-01-01 00:00:00.120", 10_000).is_ok());
        assert!(datetime(b"2026-01-01 00:00:00.123", 10_000).is_err());
        assert!(datetime(b"2026-00-00 00:00:00.123", 10_000).is_err());
        assert!(duration(b"-00:00:00.5", 1_000_000).is_err());
    }
}
