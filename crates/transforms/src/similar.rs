//! Owns the patterns of `SIMILAR TO`: the SQL standard's mixture of LIKE and regular expressions.

use regex::Regex;

/// Compiles a pattern: `%` and `_` as in LIKE; `| * + ? {n,m} ( ) [ ]` as in regular expressions; everything else is
/// itself.
///
/// # Errors
/// What is wrong with the pattern.
pub(crate) fn compile(pattern: &str, escape: Option<char>) -> Result<Regex, String> {
    let mut out = String::from("(?s)^(?:");
    let mut chars = pattern.chars().peekable();
    let mut in_set = false;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            let next = chars.next().ok_or("the SIMILAR TO pattern ends in its escape character")?;
            out.push_str(&regex::escape(&next.to_string()));
            continue;
        }
        match c {
            '[' if in_set && chars.peek() == Some(&':') => {
                // A class such as [:ALPHA:]; regular expressions write it in small letters.
                out.push('[');
                for c in chars.by_ref() {
                    out.extend(c.to_lowercase());
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' if !in_set => {
                in_set = true;
                out.push(c);
            }
            ']' if in_set => {
                in_set = false;
                out.push(c);
            }
            '^' | '-' if in_set => out.push(c),
            '%' if !in_set => out.push_str(".*"),
            '_' if !in_set => out.push('.'),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' if !in_set => out.push(c),
            _ => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push_str(")$");
    Regex::new(&out).map_err(|_| format!("'{pattern}' is not a pattern of SIMILAR TO"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_the_standard() {
        for (text, pattern, escape, expect) in [
            ("abc", "abc", None, true),
            ("abc", "a", None, false),
            ("abc", "%(b|d)%", None, true),
            ("abc", "(b|c)%", None, false),
            ("aab", "a*b", None, true),
            ("abab", "(ab){2}", None, true),
            ("a.c", "a.c", None, true),
            ("abc", "a.c", None, false),
            ("abc", "a_c", None, true),
            ("a%c", "a!%c", Some('!'), true),
            ("abc", "a!%c", Some('!'), false),
            ("5", "[0-9]", None, true),
            ("x", "[^0-9]", None, true),
            ("x1", "[[:ALPHA:]][[:DIGIT:]]", None, true),
            ("a\nb", "a%b", None, true),
            ("^$", "^$", None, true),
        ] {
            assert_eq!(compile(pattern, escape).unwrap().is_match(text), expect, "{text} {pattern}");
        }
        assert!(compile("(a", None).is_err());
        assert!(compile("a!", Some('!')).is_err());
    }
}
