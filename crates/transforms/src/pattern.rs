//! Owns date patterns in Java's letters (`yyyy-MM-dd HH:mm:ss.SSS`): parsed once, then used to write and to read.

use canalis_types::temporal::{DateFields, DateTimeFields, civil_from_days, days_from_civil, days_in_month};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// `y` or `u`.
    Year(usize),
    Month(usize),
    MonthName {
        short: bool,
    },
    Day(usize),
    DayOfYear(usize),
    DayName {
        short: bool,
    },
    /// `H`.
    Hour(usize),
    /// `h`.
    HalfDayHour(usize),
    HalfDay,
    Minute(usize),
    Second(usize),
    Fraction(usize),
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The letter that is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == '\'' {
                parts.push(Part::Literal(quoted(&mut chars, text)?));
                continue;
            }
            if !c.is_ascii_alphabetic() {
                parts.push(Part::Literal(c.to_string()));
                continue;
            }
            let mut count = 1;
            while chars.next_if_eq(&c).is_some() {
                count += 1;
            }
            parts.push(match (c, count) {
                ('y' | 'u', 1..=4) => Part::Year(count),
                ('M' | 'L', 1 | 2) => Part::Month(count),
                ('M' | 'L', 3) => Part::MonthName { short: true },
                ('M' | 'L', 4) => Part::MonthName { short: false },
                ('d', 1 | 2) => Part::Day(count),
                ('D', 1..=3) => Part::DayOfYear(count),
                ('E', 1..=3) => Part::DayName { short: true },
                ('E', 4) => Part::DayName { short: false },
                ('H', 1 | 2) => Part::Hour(count),
                ('h', 1 | 2) => Part::HalfDayHour(count),
                ('a', 1) => Part::HalfDay,
                ('m', 1 | 2) => Part::Minute(count),
                ('s', 1 | 2) => Part::Second(count),
                ('S', 1..=9) => Part::Fraction(count),
                _ => {
                    let run: String = std::iter::repeat_n(c, count).collect();
                    return Err(format!(
                        "`{run}` in the date pattern '{text}' is not known; known are y M d D E H h a m s S and text in \
                         single quotes"
                    ));
                }
            });
        }
        Ok(Self { parts })
    }

    /// Fraction digits that the pattern shows, at most 6.
    pub fn fraction_digits(&self) -> u8 {
        let digits = self.parts.iter().map(|p| if let Part::Fraction(n) = p { *n } else { 0 }).max();
        u8::try_from(digits.unwrap_or(0).min(6)).unwrap_or(6)
    }

    /// Writes a date-time, given in microseconds.
    pub fn write(&self, micros: i64, out: &mut String) {
        let t = DateTimeFields::decode(micros);
        let number = |out: &mut String, value: i64, width: usize| {
            out.push_str(&format!("{value:0width$}"));
        };
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Year(2) => number(out, i64::from(t.date.year.rem_euclid(100)), 2),
                Part::Year(width) => number(out, i64::from(t.date.year), *width),
                Part::Month(width) => number(out, i64::from(t.date.month), *width),
                Part::MonthName { short } => name(out, MONTHS[usize::from(t.date.month.max(1)) - 1], *short),
                Part::Day(width) => number(out, i64::from(t.date.day), *width),
                Part::DayOfYear(width) => number(out, day_of_year(t.date), *width),
                Part::DayName { short } => name(out, DAYS[day_of_week(t.date.encode())], *short),
                Part::Hour(width) => number(out, i64::from(t.hour), *width),
                Part::HalfDayHour(width) => number(out, i64::from((t.hour + 11) % 12 + 1), *width),
                Part::HalfDay => out.push_str(if t.hour < 12 { "AM" } else { "PM" }),
                Part::Minute(width) => number(out, i64::from(t.minute), *width),
                Part::Second(width) => number(out, i64::from(t.second), *width),
                Part::Fraction(width) => {
                    let nine = format!("{:09}", u64::from(t.micro) * 1000);
                    out.push_str(&nine[..*width]);
                }
            }
        }
    }

    /// Reads a date-time in microseconds; `None` when the text is not of the pattern or no calendar has the date.
    /// Fields that the pattern lacks are those of 1970-01-01 00:00:00.
    pub fn read(&self, text: &str) -> Option<i64> {
        let (mut date, mut day_of_year) = (DateFields { year: 1970, month: 1, day: 1 }, None);
        let (mut hour, mut half_hour, mut afternoon) = (0, None, None);
        let (mut minute, mut second, mut micro) = (0, 0, 0);
        let mut rest = text;
        for (index, part) in self.parts.iter().enumerate() {
            // A field directly before another number takes exactly its width, any other takes what it finds.
            let adjacent = self.parts.get(index + 1).is_some_and(is_number);
            let mut take = |width: usize, longest: usize| digits(&mut rest, width, longest, adjacent);
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Year(2) => date.year = 2000 + i32::try_from(take(2, 2)?).ok()?,
                Part::Year(width) => date.year = i32::try_from(take(*width, 4)?).ok()?,
                Part::Month(width) => date.month = u8::try_from(take(*width, 2)?).ok()?,
                Part::MonthName { short } => {
                    date.month = u8::try_from(word(&mut rest, &MONTHS, *short)? + 1).ok()?
                }
                Part::Day(width) => date.day = u8::try_from(take(*width, 2)?).ok()?,
                Part::DayOfYear(width) => day_of_year = Some(i64::from(take(*width, 3)?)),
                Part::DayName { short } => {
                    word(&mut rest, &DAYS, *short)?;
                }
                Part::Hour(width) => hour = take(*width, 2)?,
                Part::HalfDayHour(width) => half_hour = Some(take(*width, 2)?),
                Part::HalfDay => afternoon = Some(word(&mut rest, &["AM", "PM"], false)? == 1),
                Part::Minute(width) => minute = take(*width, 2)?,
                Part::Second(width) => second = take(*width, 2)?,
                Part::Fraction(width) => {
                    let found = rest.bytes().take(*width).take_while(u8::is_ascii_digit).count();
                    if found != *width {
                        return None;
                    }
                    let (fraction, after) = rest.split_at(found);
                    rest = after;
                    // Digits beyond microseconds must be zeros: nothing is cut off in silence.
                    if fraction.bytes().skip(6).any(|b| b != b'0') {
                        return None;
                    }
                    micro = format!("{fraction:0<6}")[..6].parse().ok()?;
                }
            }
        }
        if let Some(half) = half_hour {
            if !(1..=12).contains(&half) {
                return None;
            }
            hour = half % 12 + if afternoon == Some(true) { 12 } else { 0 };
        }
        if let Some(day) = day_of_year {
            let last = if days_in_month(date.year, 2) == 29 { 366 } else { 365 };
            if !(1..=last).contains(&day) {
                return None;
            }
            date = civil_from_days(days_from_civil(date.year, 1, 1) + i32::try_from(day).ok()? - 1);
        }
        let fits =
            rest.is_empty() && date.is_valid() && date.year != 0 && hour < 24 && minute < 60 && second < 60;
        let small = |n: u32| u8::try_from(n).unwrap_or(0);
        fits.then(|| {
            DateTimeFields { date, hour: small(hour), minute: small(minute), second: small(second), micro }
                .encode()
        })
    }
}

/// Days since Sunday, 0–6.
pub(crate) fn day_of_week(days: i32) -> usize {
    // 1970-01-01 was a Thursday.
    usize::try_from((i64::from(days) + 4).rem_euclid(7)).unwrap_or(0)
}

/// Day of the year, from 1.
pub(crate) fn day_of_year(date: DateFields) -> i64 {
    i64::from(date.encode()) - i64::from(days_from_civil(date.year, 1, 1)) + 1
}

fn is_number(part: &Part) -> bool {
    !matches!(part, Part::Literal(_) | Part::MonthName { .. } | Part::DayName { .. } | Part::HalfDay)
}

fn name(out: &mut String, name: &str, short: bool) {
    out.push_str(if short { &name[..3] } else { name });
}

/// Index of the word that the text begins with, in any case.
fn word(rest: &mut &str, words: &[&str], short: bool) -> Option<usize> {
    for (index, word) in words.iter().enumerate() {
        let word = if short { &word[..3] } else { word };
        if let Some((head, tail)) = rest.split_at_checked(word.len())
            && head.eq_ignore_ascii_case(word)
        {
            *rest = tail;
            return Some(index);
        }
    }
    None
}

fn digits(rest: &mut &str, width: usize, longest: usize, adjacent: bool) -> Option<u32> {
    let limit = if adjacent { width } else { longest.max(width) };
    let found = rest.bytes().take(limit).take_while(u8::is_ascii_digit).count();
    if found == 0 || found < width {
        return None;
    }
    let (number, after) = rest.split_at(found);
    *rest = after;
    number.parse().ok()
}

fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, text: &str) -> Result<String, String> {
    if chars.next_if_eq(&'\'').is_some() {
        return Ok("'".into());
    }
    let mut literal = String::new();
    while let Some(c) = chars.next() {
        if c != '\'' {
            literal.push(c);
        } else if chars.next_if_eq(&'\'').is_some() {
            literal.push('\'');
        } else {
            return Ok(literal);
        }
    }
    Err(format!("the date pattern '{text}' has a quote that is not closed"))
}

#[cfg(test)]
mod tests {
    use canalis_types::temporal::parse_datetime;

    use super::*;

    #[test]
    fn patterns_write_and_read_the_same_text() {
        let micros = parse_datetime(b"2024-02-29 15:04:05.678900").unwrap();
        for (pattern, text, reads) in [
            ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-02-29 15:04:05.678900", true),
            ("yyyyMMddHHmmssSSSSSS", "20240229150405678900", true),
            ("yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "2024-02-29T15:04:05.678900", true),
            ("d/M/yy h:mm a", "29/2/24 3:04 PM", false),
            ("EEE, dd MMM yyyy", "Thu, 29 Feb 2024", false),
            ("EEEE d MMMM", "Thursday 29 February", false),
            ("yyyy 'day' D", "2024 day 60", false),
            ("yyyy年MM月", "2024年02月", false),
            ("HH 'o''clock'", "15 o'clock", false),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            let mut out = String::new();
            parsed.write(micros, &mut out);
            assert_eq!(out, text, "{pattern}");
            if reads {
                assert_eq!(parsed.read(text), Some(micros), "{pattern}");
            }
        }
    }

    #[test]
    fn texts_off_the_pattern_are_not_read() {
        for (pattern, text) in [
            ("yyyy-MM-dd", "2024-02-30"),
            ("yyyy-MM-dd", "2024-2-01"),
            ("yyyy-MM-dd", "2024-02-01x"),
            ("HH:mm", "24:00"),
            ("ss.SSS", "01.5"),
            ("yyyy D", "2023 366"),
            ("hh a", "13 PM"),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().read(text), None, "{pattern} {text}");
        }
        assert!(Pattern::parse("yyyy-mm-ddZ").is_err());
    }
}
