//! Owns the text forms of durations and byte sizes, as pipeline files spell them.

use std::time::Duration;

/// Parses `<digits>[space]<unit>`; without a unit the number is milliseconds. Units: d, h, min/m, s,
/// ms, µs/micro, ns and their long forms, in any case. Two units (`1m 30s`), signs and fractions are refused.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let refuse =
        || format!("`{text}` is not a duration: write a whole number and one unit, for example `30s`");
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let nanos_per: u128 = match unit.trim().to_lowercase().as_str() {
        "d" | "day" | "days" => 86_400_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "min" | "m" | "minute" | "minutes" => 60_000_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        "µs" | "μs" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        _ => return Err(refuse()),
    };
    let nanos = u128::from(number) * nanos_per;
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| refuse())?;
    let rest = u32::try_from(nanos % 1_000_000_000).map_err(|_| refuse())?;
    Ok(Duration::new(seconds, rest))
}

/// Parses a byte size: `1024`, `64kb`, `4 MB`, `1g`; units are powers of 1024, in any case.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let refuse = || format!("`{text}` is not a size: write a whole number and one unit, for example `64MB`");
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let factor: u64 = match unit.trim().to_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(refuse()),
    };
    number.checked_mul(factor).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_follow_the_pipeline_grammar() {
        for (text, expect) in [
            ("30s", Some(Duration::from_secs(30))),
            ("30 S", Some(Duration::from_secs(30))),
            ("250", Some(Duration::from_millis(250))),
            ("1 h", Some(Duration::from_secs(3600))),
            ("7 micros", Some(Duration::from_micros(7))),
            ("1m 30s", None),
            ("PT30S", None),
            ("-1s", None),
            ("1.5s", None),
            ("", None),
        ] {
            assert_eq!(parse_duration(text).ok(), expect, "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_bytes("4 MB"), Ok(4 << 20));
        assert_eq!(parse_bytes("10"), Ok(10));
        assert!(parse_bytes("4 miles").is_err());
    }
}
