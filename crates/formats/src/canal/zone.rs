//! Owns the zone in which TIMESTAMP texts are local times.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

/// A time zone: a name of the IANA database or a fixed distance from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Named(Tz),
    /// Seconds east of UTC.
    Fixed(i32),
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(Kind::Fixed(0));

    /// Parses an IANA name (`Asia/Shanghai`), `UTC`, `Z`, or a distance from UTC (`+08:00`, `GMT+08:00`).
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not a time zone; write an IANA name, UTC or +hh:mm");
        if matches!(text, "UTC" | "Z" | "GMT") {
            return Ok(Self::UTC);
        }
        let offset = text.strip_prefix("GMT").unwrap_or(text);
        let (sign, rest) = match offset.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return text.parse::<Tz>().map(|zone| Self(Kind::Named(zone))).map_err(|_| refuse()),
        };
        let (hours, minutes) = rest.split_once(':').ok_or_else(refuse)?;
        let two = |part: &str| {
            (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<i32>().ok())?
        };
        match (two(hours), two(minutes)) {
            (Some(h @ 0..=18), Some(m @ 0..=59)) => Ok(Self(Kind::Fixed(sign * (h * 3600 + m * 60)))),
            _ => Err(refuse()),
        }
    }

    pub(super) fn is_utc(self) -> bool {
        self == Self::UTC
    }

    /// Microseconds of the local date-time of an instant; `None` far outside the calendar.
    pub(super) fn local(self, instant: i64) -> Option<i64> {
        let seconds = match self.0 {
            Kind::Fixed(seconds) => seconds,
            Kind::Named(zone) => {
                let utc = DateTime::from_timestamp_micros(instant)?.naive_utc();
                zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()
            }
        };
        instant.checked_add(i64::from(seconds) * 1_000_000)
    }

    /// The instant of a local date-time, the first of two.
    ///
    /// # Errors
    /// For a time that clocks skip, and far outside the calendar.
    pub(super) fn instant(self, local: i64) -> Result<i64, &'static str> {
        const FAR: &str = "date-time is out of range";
        let seconds = match self.0 {
            Kind::Fixed(seconds) => seconds,
            Kind::Named(zone) => {
                let naive = DateTime::from_timestamp_micros(local).ok_or(FAR)?.naive_utc();
                first_offset(zone, &naive).ok_or("time does not exist in the time zone: clocks skip it")?
            }
        };
        local.checked_sub(i64::from(seconds) * 1_000_000).ok_or(FAR)
    }
}

fn first_offset(zone: Tz, naive: &NaiveDateTime) -> Option<i32> {
    match zone.offset_from_local_datetime(naive) {
        LocalResult::Single(offset) => Some(offset.fix().local_minus_utc()),
        // The earlier instant is the one with the larger distance from UTC.
        LocalResult::Ambiguous(one, other) => {
            Some(one.fix().local_minus_utc().max(other.fix().local_minus_utc()))
        }
        LocalResult::None => None,
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
    fn gaps_are_refused_and_overlaps_are_the_first_time() {
        let zone = Zone::parse("Europe/Paris").unwrap();
        for (local, utc) in [
            ("2024-01-15 12:00:00", Some("2024-01-15 11:00:00")),
            ("2024-07-15 12:00:00", Some("2024-07-15 10:00:00")),
            ("2024-03-31 02:30:00", None),
            ("2024-10-27 02:30:00", Some("2024-10-27 00:30:00")),
        ] {
            assert_eq!(zone.instant(micros(local)).ok(), utc.map(micros), "{local}");
        }
        assert_eq!(zone.local(micros("2024-07-15 10:00:00")), Some(micros("2024-07-15 12:00:00")));
        assert_eq!(zone.instant(i64::MAX).ok(), None);
    }

    #[test]
    fn zones_are_names_or_distances() {
        let at_eight = Zone::parse("+08:00").unwrap();
        assert_eq!(at_eight.local(0), Some(28_800_000_000));
        assert_eq!(Zone::parse("GMT+08:00"), Ok(at_eight));
        assert!(Zone::parse("UTC").unwrap().is_utc());
        for text in ["", "+8", "UTC+8", "+99:00", "+0a:00", "Mars/Base", "é"] {
            assert!(Zone::parse(text).is_err(), "{text}");
        }
    }
}
