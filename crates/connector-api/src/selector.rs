//! Owns the two pattern dialects of pipeline files: [`TableSelector`] (`tables`, `tables.exclude`,
//! `transform.source-table`) and [`RoutePattern`] (`route.source-table`).

use canalis_types::TableId;
use regex::{Regex, RegexBuilder};

/// A list of table patterns: pieces are split at unescaped dots, each piece is a regular expression that matches the
/// whole component, without regard to case. An escaped dot (`\.`) stands for the regex dot.
#[derive(Debug, Clone)]
pub struct TableSelector {
    text: String,
    patterns: Vec<Vec<Regex>>,
}

impl TableSelector {
    /// Parses a pattern list.
    ///
    /// # Errors
    /// A message that names the pattern and what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the table pattern is empty".into());
        }
        let mut patterns = Vec::new();
        for part in split_unescaped(text, ',')? {
            let mut pieces = Vec::new();
            for piece in split_unescaped(&part, '.')? {
                if piece.contains(',') {
                    return Err(format!(
                        "pattern `{part}`: a comma cannot stand inside a piece; write alternatives as `(a|b)`"
                    ));
                }
                pieces.push(compile(&piece, true).map_err(|why| {
                    format!(
                        "pattern `{part}`: `{piece}` is not a regular expression ({why}); \
                         a dot separates database and table, write `\\.` for the regex dot, as in `app_db.\\.*`"
                    )
                })?);
            }
            if pieces.is_empty() || pieces.len() > 3 {
                return Err(format!(
                    "pattern `{part}` has {} pieces; write `table`, `schema.table` or `namespace.schema.table`",
                    pieces.len()
                ));
            }
            patterns.push(pieces);
        }
        if patterns.is_empty() {
            return Err("the table pattern is empty".into());
        }
        Ok(Self { text: text.to_owned(), patterns })
    }

    /// The pattern list as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether any pattern selects the table. Missing pieces never match; extra leading pieces are ignored.
    pub fn matches(&self, id: &TableId) -> bool {
        self.patterns.iter().any(|pieces| {
            let mut last = pieces.iter().rev();
            let mut test = |part: &str| last.next().is_some_and(|r| r.is_match(part));
            test(&id.table)
                && id.schema.as_deref().is_none_or(&mut test)
                && id.namespace.as_deref().is_none_or(&mut test)
        })
    }

    /// Number of pieces of each pattern.
    pub fn piece_counts(&self) -> impl Iterator<Item = usize> {
        self.patterns.iter().map(Vec::len)
    }
}

/// Splits at a separator that no backslash protects, trims, drops empty parts, and unescapes the separator only.
fn split_unescaped(text: &str, separator: char) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let part = parts.last_mut().expect("never empty");
        if c == '\\' {
            match chars.next() {
                Some(next) if next == separator => part.push(next),
                Some(next) => part.extend(['\\', next]),
                None => return Err(format!("pattern `{text}` ends in a lone backslash")),
            }
        } else if c == separator {
            parts.push(String::new());
        } else {
            part.push(c);
        }
    }
    Ok(parts.iter().map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect())
}

fn compile(pattern: &str, ignore_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(&format!("^(?:{pattern})$"))
        .case_insensitive(ignore_case)
        .build()
        .map_err(|e| e.to_string().lines().last().unwrap_or_default().trim().to_owned())
}

/// A route pattern: one regular expression over the whole id `schema.table`, case-sensitive, in which plain dots are
/// literal and `\.` is the regex dot; commas join alternatives.
#[derive(Debug, Clone)]
pub struct RoutePattern {
    text: String,
    regex: Regex,
}

impl RoutePattern {
    /// Parses a route pattern.
    ///
    /// # Errors
    /// A message that names the pattern and what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let joined: Vec<&str> = text.split(',').map(str::trim).filter(|p| !p.is_empty()).collect();
        if joined.is_empty() {
            return Err("the route pattern is empty".into());
        }
        let mut pattern = String::new();
        let joined = joined.join("|");
        let mut chars = joined.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek() == Some(&'.') => {
                    chars.next();
                    pattern.push('.');
                }
                '\\' => {
                    pattern.push('\\');
                    pattern.extend(chars.next());
                }
                '.' => pattern.push_str("\\."),
                other => pattern.push(other),
            }
        }
        let regex = compile(&pattern, false).map_err(|why| {
            format!(
                "route pattern `{text}` is not a regular expression ({why}); write `\\.` for the regex dot"
            )
        })?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern holds `.*` after a plain dot, which matches literal dots only and so most likely nothing.
    pub fn looks_mistaken(&self) -> bool {
        self.text.match_indices(".*").any(|(at, _)| !self.text[..at].ends_with('\\'))
    }

    /// The regular expression over whole ids.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Whether the pattern matches the whole id.
    pub fn matches(&self, id: &TableId) -> bool {
        self.regex.is_match(&id.to_string())
    }

    /// Number of capture groups.
    pub fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_follow_their_dialect() {
        for (pattern, id, expect) in [
            (r"app_db.\.*", "app_db.orders", true),
            (r"app_db.\.*", "APP_DB.Orders", true),
            (r"app_db.\.*", "app_db2.orders", false),
            (r"shop.\.*", "shop_test.orders", false),
            (r"shop.\.*", "shop.orders_bak", true),
            (r"\.*.\.*", "a.b", true),
            (r"db.(a|b)", "db.b", true),
            (r"db.a, db.c", "db.c", true),
            (r"x.app_db.t", "app_db.t", true),
            (r"t", "app_db.t", false),
            (r"log.event\$\d+", "log.event$12", true),
            (r"d.a[\.]b", "d.a.b", true),
        ] {
            let (schema, table) = id.split_once('.').unwrap();
            assert_eq!(
                TableSelector::parse(pattern).unwrap().matches(&TableId::new(schema, table)),
                expect,
                "{pattern} on {id}"
            );
        }
    }

    #[test]
    fn bad_selectors_say_what_to_write() {
        for pattern in ["app_db.*", "", "a.b.c.d", r"a.b\", r"t_\d{1\,3}"] {
            assert!(TableSelector::parse(pattern).is_err(), "{pattern}");
        }
        assert!(TableSelector::parse("app_db.*").unwrap_err().contains(r"app_db.\.*"));
    }

    #[test]
    fn routes_swap_the_meaning_of_dots() {
        let all = RoutePattern::parse(r"mydb.\.*").unwrap();
        assert!(all.matches(&TableId::new("mydb", "t1")));
        assert!(!all.matches(&TableId::new("MYDB", "t1")));
        let mistaken = RoutePattern::parse("mydb.*").unwrap();
        assert!(!mistaken.matches(&TableId::new("mydb", "t1")));
        assert!(mistaken.looks_mistaken() && !all.looks_mistaken());
        let grouped = RoutePattern::parse(r"(db_\.*).(t_\.*)").unwrap();
        assert_eq!(grouped.groups(), 2);
        assert!(grouped.matches(&TableId::new("db_1", "t_x")));
        assert!(RoutePattern::parse("a.b, c.d").unwrap().matches(&TableId::new("c", "d")));
    }
}
