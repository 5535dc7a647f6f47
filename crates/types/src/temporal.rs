//! Owns how dates and date-times are held in integers, MySQL's impossible calendar values included.
//!
//! A date is days since 1970-01-01 in an `i32`; a date-time is microseconds since 1970-01-01T00:00:00 in
//! an `i64`. MySQL also stores `0000-00-00`, `2025-06-00` and `2025-00-15`. These are kept exactly, as packed
//! fields in a range at the bottom of the integer that no calendar value of any supported system reaches, so
//! that a sink which can hold them writes them unchanged and every other sink sees and refuses them.

/// Fields of a date as written, valid on a calendar or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateFields {
    /// 0–9999 for MySQL; calendar values of other systems may be outside.
    pub year: i32,
    /// 0–12.
    pub month: u8,
    /// 0–31.
    pub day: u8,
}

/// Fields of a date-time as written, valid on a calendar or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateTimeFields {
    /// The date.
    pub date: DateFields,
    /// 0–23.
    pub hour: u8,
    /// 0–59.
    pub minute: u8,
    /// 0–59.
    pub second: u8,
    /// 0–999,999.
    pub micro: u32,
}

/// Days below this hold packed fields of an impossible date.
const PARTIAL_DATE_LIMIT: i32 = i32::MIN + (1 << 24);
/// Microseconds below this hold packed fields of an impossible date-time.
const PARTIAL_DATETIME_LIMIT: i64 = i64::MIN + (1 << 61);
/// Microseconds of a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Days since 1970-01-01 of a proleptic Gregorian date. The date must be valid.
pub fn days_from_civil(year: i32, month: u8, day: u8) -> i32 {
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let mp = (i64::from(month) + 9) % 12;
    let doy = (153 * mp + 2) / 5 + i64::from(day) - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    narrow(era * 146_097 + doe - 719_468)
}

/// Date of a number of days since 1970-01-01.
pub fn civil_from_days(days: i32) -> DateFields {
    let z = i64::from(days) + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    DateFields { year: narrow(year), month: small(month), day: small(doy - (153 * mp + 2) / 5 + 1) }
}

fn narrow(value: i64) -> i32 {
    i32::try_from(value).expect("years of supported systems keep days inside 32 bits")
}

fn small(value: i64) -> u8 {
    u8::try_from(value).expect("months and days are small")
}

/// Days of a month; 0 for month 0.
pub fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 0,
    }
}

impl DateFields {
    /// Whether the date is on the calendar.
    pub fn is_valid(self) -> bool {
        (1..=12).contains(&self.month) && self.day >= 1 && self.day <= days_in_month(self.year, self.month)
    }

    /// The integer form; an impossible date is packed into the reserved range.
    pub fn encode(self) -> i32 {
        if self.is_valid() && self.year != 0 {
            days_from_civil(self.year, self.month, self.day)
        } else {
            // MySQL: year 0–9999, month 0–12, day 0–31 fit 14 + 4 + 5 bits.
            i32::MIN + ((self.year << 9) | (i32::from(self.month) << 5) | i32::from(self.day))
        }
    }

    /// The fields of an integer form.
    pub fn decode(days: i32) -> Self {
        if !is_partial_date(days) {
            return civil_from_days(days);
        }
        let packed = days.wrapping_sub(i32::MIN);
        DateFields {
            year: packed >> 9,
            month: small(i64::from((packed >> 5) & 0xf)),
            day: small(i64::from(packed & 0x1f)),
        }
    }
}

impl DateTimeFields {
    /// The integer form; an impossible date is packed into the reserved range with its time of day.
    pub fn encode(self) -> i64 {
        let day = i64::from(self.hour) * 3_600_000_000
            + i64::from(self.minute) * 60_000_000
            + i64::from(self.second) * 1_000_000
            + i64::from(self.micro);
        let date = self.date.encode();
        if is_partial_date(date) {
            // Packed date (24 bits) above the microseconds of the day (37 bits).
            i64::MIN + (i64::from(date.wrapping_sub(i32::MIN)) << 37) + day
        } else {
            i64::from(date) * MICROS_PER_DAY + day
        }
    }

    /// The fields of an integer form.
    pub fn decode(micros: i64) -> Self {
        let (date, day) = if is_partial_datetime(micros) {
            let packed = micros.wrapping_sub(i64::MIN);
            let date = i32::MIN + i32::try_from(packed >> 37).expect("24 bits");
            (DateFields::decode(date), packed & ((1 << 37) - 1))
        } else {
            (civil_from_days(narrow(micros.div_euclid(MICROS_PER_DAY))), micros.rem_euclid(MICROS_PER_DAY))
        };
        DateTimeFields {
            date,
            hour: small(day / 3_600_000_000),
            minute: small(day / 60_000_000 % 60),
            second: small(day / 1_000_000 % 60),
            micro: u32::try_from(day % 1_000_000).expect("below a million"),
        }
    }
}

/// Whether an encoded date is one that no calendar has (`0000-00-00`, `2025-06-00`, year 0).
pub fn is_partial_date(days: i32) -> bool {
    days < PARTIAL_DATE_LIMIT
}

/// Whether an encoded date-time is one that no calendar has.
pub fn is_partial_datetime(micros: i64) -> bool {
    micros < PARTIAL_DATETIME_LIMIT
}

/// Writes two digits.
fn two(out: &mut Vec<u8>, value: u8) {
    out.extend_from_slice(&[b'0' + value / 10, b'0' + value % 10]);
}

/// Appends `YYYY-MM-DD` (at least four year digits, a minus before negative years).
pub fn write_date(out: &mut Vec<u8>, days: i32) {
    write_date_fields(out, DateFields::decode(days));
}

fn write_date_fields(out: &mut Vec<u8>, date: DateFields) {
    if (0..=9999).contains(&date.year) {
        let year = date.year.unsigned_abs();
        two(out, small(i64::from(year / 100)));
        two(out, small(i64::from(year % 100)));
    } else {
        out.extend_from_slice(format!("{:05}", date.year).as_bytes());
    }
    out.push(b'-');
    two(out, date.month);
    out.push(b'-');
    two(out, date.day);
}

/// Appends `YYYY-MM-DD HH:MM:SS` and, for a precision above 0, a point and that many fraction digits.
pub fn write_datetime(out: &mut Vec<u8>, micros: i64, precision: u8) {
    let t = DateTimeFields::decode(micros);
    write_date_fields(out, t.date);
    out.push(b' ');
    two(out, t.hour);
    out.push(b':');
    two(out, t.minute);
    out.push(b':');
    two(out, t.second);
    write_fraction(out, t.micro, precision);
}

/// Appends a signed duration as `[-]HH:MM:SS[.ffffff]`; hours may have more than two digits.
pub fn write_duration(out: &mut Vec<u8>, micros: i64, precision: u8) {
    if micros < 0 {
        out.push(b'-');
    }
    let all = micros.unsigned_abs();
    let hours = all / 3_600_000_000;
    if hours < 100 {
        two(out, small(i64::try_from(hours).expect("below 100")));
    } else {
        out.extend_from_slice(hours.to_string().as_bytes());
    }
    out.push(b':');
    two(out, small(i64::try_from(all / 60_000_000 % 60).expect("below 60")));
    out.push(b':');
    two(out, small(i64::try_from(all / 1_000_000 % 60).expect("below 60")));
    write_fraction(out, u32::try_from(all % 1_000_000).expect("below a million"), precision);
}

fn write_fraction(out: &mut Vec<u8>, micro: u32, precision: u8) {
    if precision == 0 {
        return;
    }
    out.push(b'.');
    let mut divisor = 100_000;
    for _ in 0..precision.min(6) {
        out.push(b'0' + small(i64::from(micro / divisor % 10)));
        divisor /= 10;
    }
}

/// Parses `[YYYY-]YYYY-MM-DD`; `None` when the text is not of that form or a field is out of MySQL's range.
pub fn parse_date(text: &[u8]) -> Option<i32> {
    date_fields(text).map(DateFields::encode)
}

fn date_fields(text: &[u8]) -> Option<DateFields> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = number(&text[..4])?;
    let month = number(&text[5..7])?;
    let day = number(&text[8..])?;
    (month <= 12 && day <= 31).then(|| DateFields {
        year: i32::try_from(year).expect("four digits"),
        month: small(i64::from(month)),
        day: small(i64::from(day)),
    })
}

/// Parses `YYYY-MM-DD HH:MM:SS[.f{1,6}]` (a `T` may stand between); `None` for any other text.
pub fn parse_datetime(text: &[u8]) -> Option<i64> {
    let date = date_fields(text.get(..10)?)?;
    if !matches!(text.get(10)?, b' ' | b'T') {
        return None;
    }
    let time = text.get(11..19)?;
    if time[2] != b':' || time[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&time[..2])?, number(&time[3..5])?, number(&time[6..])?);
    let micro = fraction(&text[19..])?;
    (hour < 24 && minute < 60 && second < 60).then(|| {
        DateTimeFields {
            date,
            hour: small(i64::from(hour)),
            minute: small(i64::from(minute)),
            second: small(i64::from(second)),
            micro,
        }
        .encode()
    })
}

/// Parses `[-]H…H:MM:SS[.f{1,6}]` to microseconds; `None` for any other text.
pub fn parse_duration(text: &[u8]) -> Option<i64> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let colon = text.iter().position(|&b| b == b':')?;
    let hours = number(&text[..colon])?;
    let rest = text.get(colon + 1..)?;
    if rest.len() < 5 || rest[2] != b':' {
        return None;
    }
    let (minute, second) = (number(&rest[..2])?, number(&rest[3..5])?);
    let micro = fraction(&rest[5..])?;
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = i64::from(hours) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let micros = seconds * 1_000_000 + i64::from(micro);
    Some(if negative { -micros } else { micros })
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    digits.iter().try_fold(0u32, |n, b| b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0')))
}

fn fraction(text: &[u8]) -> Option<u32> {
    let Some(digits) = text.strip_prefix(b".") else { return text.is_empty().then_some(0) };
    if digits.len() > 6 {
        return None;
    }
    let scale = 10u32.pow(6 - u32::try_from(digits.len()).expect("at most 6"));
    number(digits).map(|n| n * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datetime_text(micros: i64) -> String {
        let mut out = Vec::new();
        write_datetime(&mut out, micros, 6);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn my_02_impossible_datetimes_keep_their_fields() {
        for text in [
            "0000-00-00 00:00:00.000000",
            "2025-00-15 10:20:30.000001",
            "2025-06-00 23:59:59.999999",
            "9999-12-00 00:00:00.000000",
            "0000-01-01 01:00:00.000000",
        ] {
            let micros = parse_datetime(text.as_bytes()).unwrap();
            assert!(is_partial_datetime(micros), "{text}");
            assert_eq!(datetime_text(micros), text);
        }
    }

    #[test]
    fn my_09_calendar_datetimes_are_exact_on_both_sides_of_the_epoch() {
        for (text, micros) in [
            ("1970-01-01 00:00:00.000000", 0),
            ("1969-12-31 23:59:59.999999", -1),
            ("1000-01-01 00:00:00.000001", -30_610_224_000_000_000 + 1),
            ("9999-12-31 23:59:59.999999", 253_402_300_799_999_999),
        ] {
            assert_eq!(parse_datetime(text.as_bytes()), Some(micros), "{text}");
            assert_eq!(datetime_text(micros), text);
            assert!(!is_partial_datetime(micros));
        }
    }

    #[test]
    fn my_13_durations_keep_sign_and_hours() {
        for (text, micros) in [
            ("-838:59:59.000000", -3_020_399_000_000),
            ("838:59:59.000000", 3_020_399_000_000),
            ("-00:00:00.000001", -1),
            ("00:00:01.500000", 1_500_000),
        ] {
            assert_eq!(parse_duration(text.as_bytes()), Some(micros), "{text}");
            let mut out = Vec::new();
            write_duration(&mut out, micros, 6);
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn dates_round_trip_over_the_whole_range() {
        for days in (-719_162..=2_932_896).step_by(13) {
            let mut out = Vec::new();
            write_date(&mut out, days);
            assert_eq!(parse_date(&out), Some(days));
        }
        assert_eq!(parse_date(b"2023-02-29").map(is_partial_date), Some(true));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "2024-1-01", "2024-13-01", "2024-01-32", "20240101", "abcd-ef-gh"] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text}");
        }
        for text in
            ["2024-01-01", "2024-01-01 24:00:00", "2024-01-01 00:00:00.", "2024-01-01 00:00:00.1234567"]
        {
            assert_eq!(parse_datetime(text.as_bytes()), None, "{text}");
        }
    }
}
