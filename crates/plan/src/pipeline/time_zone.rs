//! Owns `local-time-zone`: names of the time zone database, `UTC`, and fixed offsets written `GMT+08:00`.

use canalis_connector_api::nearest;

/// A zone as expressions take it: `None` for UTC by default, a name of the time zone database, or `GMT+05:30`.
///
/// # Errors
/// The message, and what to write instead.
pub(super) fn parse(text: &str) -> Result<Option<String>, (String, String)> {
    let text = text.trim();
    if text == "systemDefault" {
        return Ok(None);
    }
    if text.parse::<chrono_tz::Tz>().is_ok() {
        return Ok(Some(text.to_owned()));
    }
    if let Some(zone) = text.strip_prefix("GMT").and_then(fixed_offset) {
        return Ok(Some(zone));
    }
    let offset = text.strip_prefix("UTC").unwrap_or(text);
    let hint = match fixed_offset(offset) {
        Some(zone) => format!("a fixed offset is written `{zone}`"),
        None => match nearest(text, chrono_tz::TZ_VARIANTS.iter().map(|z| z.name())) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "for example `Europe/Paris`, `UTC` or `GMT+08:00`".to_owned(),
        },
    };
    Err((format!("`{text}` is not a time zone"), hint))
}

/// `+8`, `+08`, `+0800`, `+08:00`, up to 18 hours.
fn offset_parts(text: &str) -> Option<(char, u8, u8)> {
    let sign = text.chars().next().filter(|c| matches!(c, '+' | '-'))?;
    let digits = &text[1..];
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 && minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.is_ascii() && digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    let all_digits = |t: &str| (1..=2).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(hours) || !all_digits(minutes) {
        return None;
    }
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60 && (hours < 18 || (hours == 18 && minutes == 0))).then_some((sign, hours, minutes))
}

fn fixed_offset(text: &str) -> Option<String> {
    offset_parts(text).map(|(sign, hours, minutes)| format!("GMT{sign}{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_follow_the_grammar() {
        for (text, expect) in [
            ("systemDefault", None),
            ("Europe/Paris", Some("Europe/Paris")),
            ("UTC", Some("UTC")),
            ("GMT+08:00", Some("GMT+08:00")),
            ("GMT-3", Some("GMT-03:00")),
            ("GMT+0530", Some("GMT+05:30")),
            ("GMT-00:00", Some("GMT-00:00")),
            ("GMT0", Some("GMT0")),
        ] {
            assert_eq!(parse(text).unwrap().as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn other_zones_are_refused_with_the_right_form() {
        for (text, hint) in [
            ("UTC+8", "a fixed offset is written `GMT+08:00`"),
            ("+08:00", "a fixed offset is written `GMT+08:00`"),
            ("europe/paris", "did you mean `Europe/Paris`?"),
            ("Europe/Pariss", "did you mean `Europe/Paris`?"),
            ("GMT+19:00", "for example `Europe/Paris`, `UTC` or `GMT+08:00`"),
            ("GMT+8:00", "for example `Europe/Paris`, `UTC` or `GMT+08:00`"),
            ("+é", "for example `Europe/Paris`, `UTC` or `GMT+08:00`"),
        ] {
            assert_eq!(parse(text).unwrap_err().1, hint, "{text}");
        }
    }
}
