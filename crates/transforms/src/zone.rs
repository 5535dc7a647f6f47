//! Owns the session time zone: instants to local date-times and back, in microseconds.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

/// The zone in which local date-times of expressions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// A zone of the IANA database.
    Named(Tz),
    /// A fixed distance from UTC in seconds.
    Fixed(i64),
}

impl Zone {
    /// Parses an IANA name, `UTC` or `GMT+hh:mm`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not a time zone; write an IANA name, UTC or GMT+hh:mm");
        if let Ok(zone) = text.parse::<Tz>() {
            return Ok(Zone::Named(zone));
        }
        let rest = text.strip_prefix("GMT").ok_or_else(refuse)?;
        let (sign, rest) = match rest.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Err(refuse()),
        };
        let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
        match (hours.parse::<u8>(), minutes.parse::<u8>()) {
            (Ok(h @ 0..=18), Ok(m @ 0..=59)) => {
                Ok(Zone::Fixed(sign * (i64::from(h) * 3600 + i64::from(m) * 60)))
            }
            _ => Err(refuse()),
        }
    }

    /// UTC.
    pub fn utc() -> Self {
        Zone::Fixed(0)
    }

    /// The local date-time of an instant; `None` far outside the calendar.
    pub fn local(self, instant: i64) -> Option<i64> {
        let offset = match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Named(zone) => {
                let utc = DateTime::from_timestamp_micros(instant)?.naive_utc();
                i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
            }
        };
        instant.checked_add(offset * 1_000_000)
    }

    /// The instant of a local date-time; `None` far outside the calendar. A time that exists twice is the earlier one;
    /// a time that clocks skip moves on by the length of the gap.
    pub fn instant(self, local: i64) -> Option<i64> {
        let offset = match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Named(zone) => {
                let naive = DateTime::from_timestamp_micros(local)?.naive_utc();
                i64::from(offset_of_local(zone, &naive)?)
            }
        };
        local.checked_sub(offset * 1_000_000)
    }
}

fn offset_of_local(zone: Tz, naive: &NaiveDateTime) -> Option<i32> {
    match zone.offset_from_local_datetime(naive) {
        LocalResult::Single(offset) => Some(offset.fix().local_minus_utc()),
        LocalResult::Ambiguous(first, second) => {
            // The earlier instant has the larger distance from UTC.
            Some(first.fix().local_minus_utc().max(second.fix().local_minus_utc()))
        }
        LocalResult::None => {
            // The offset before the gap; gaps are shorter than a day.
            let before = naive.checked_sub_signed(chrono::TimeDelta::days(1))?;
            match zone.offset_from_local_datetime(&before) {
                LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => {
                    Some(offset.fix().local_minus_utc())
                }
                LocalResult::None => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use canalis_types::temporal::parse_datetime;

    use super::*;

    fn micros(text: &str) -> i64 {
        parse_datetime(text.as_bytes()).unwrap()
    }

    #[test]
    fn local_times_follow_the_zone_in_gaps_and_overlaps() {
        let zone = Zone::parse("Europe/Paris").unwrap();
        for (local, utc) in [
            ("2024-01-15 12:00:00", "2024-01-15 11:00:00"),
            ("2024-07-15 12:00:00", "2024-07-15 10:00:00"),
            // Skipped: moves on by an hour.
            ("2024-03-31 02:30:00", "2024-03-31 01:30:00"),
            // Twice: the earlier.
            ("2024-10-27 02:30:00", "2024-10-27 00:30:00"),
        ] {
            assert_eq!(zone.instant(micros(local)), Some(micros(utc)), "{local}");
        }
        assert_eq!(zone.local(micros("2024-07-15 10:00:00")), Some(micros("2024-07-15 12:00:00")));
    }

    #[test]
    fn zones_are_iana_names_or_fixed() {
        assert_eq!(Zone::parse("GMT+08:00"), Ok(Zone::Fixed(28_800)));
        assert_eq!(Zone::parse("GMT-03:30"), Ok(Zone::Fixed(-12_600)));
        assert!(Zone::parse("UTC").is_ok());
        for text in ["+08:00", "UTC+8", "Mars/Base", "GMT+99:00"] {
            assert!(Zone::parse(text).is_err(), "{text}");
        }
    }
}
