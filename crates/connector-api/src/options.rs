//! Owns [`Options`]: validated option values of one connector instance, with typed access.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use canalis_types::{Code, Error, Result, units};

use crate::{ConnectorSpec, OptionSpec, OptionType, Role};

/// Option values by key. Built by [`Options::validate`], which guarantees that every getter of a declared
/// option with the declared type succeeds.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<String, String>,
    secrets: Vec<Cow<'static, str>>,
}

/// Secrets are masked.
impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.masked()).finish()
    }
}

impl Options {
    /// Checks raw values against the declaration, fills in defaults and canonicalises aliases.
    ///
    /// Returns all problems as `(key, message)`; a missing option is reported under its own key.
    pub fn validate(
        spec: &ConnectorSpec,
        role: Role,
        raw: &BTreeMap<String, String>,
    ) -> std::result::Result<Self, Vec<(String, String)>> {
        let mut values = BTreeMap::new();
        let mut problems = Vec::new();
        for (key, value) in raw {
            if let Some(option) = spec.option(key, role) {
                if let Some(why) = option.not_yet {
                    problems.push((key.clone(), format!("`{key}` is not supported yet: {why}")));
                } else if let Err(message) = check_value(option, value) {
                    problems.push((key.clone(), message));
                } else {
                    values.insert(option.key.to_owned(), value.clone());
                }
            } else if let Some((prefix, refusal)) =
                spec.prefixes.iter().find(|(p, _)| key.len() > p.len() && key.starts_with(p))
            {
                match refusal {
                    Some(why) => problems.push((
                        key.clone(),
                        format!("options under `{prefix}` are not supported yet: {why}"),
                    )),
                    None => {
                        values.insert(key.clone(), value.clone());
                    }
                }
            } else {
                let known: Vec<&str> =
                    spec.options.iter().filter(|o| o.role.allows(role)).map(|o| o.key).collect();
                let hint = nearest(key, known.iter().copied())
                    .map(|k| format!("; did you mean `{k}`?"))
                    .unwrap_or_default();
                problems.push((key.clone(), format!("`{}` has no option `{key}`{hint}", spec.name)));
            }
        }
        for option in spec.options.iter().filter(|o| o.role.allows(role)) {
            if !values.contains_key(option.key) {
                match option.default {
                    Some(default) => {
                        values.insert(option.key.to_owned(), default.to_owned());
                    }
                    None if option.required && !problems.iter().any(|(k, _)| k == option.key) => problems
                        .push((
                            option.key.to_owned(),
                            format!("`{}` needs the option `{}`", spec.name, option.key),
                        )),
                    None => {}
                }
            }
        }
        if problems.is_empty() {
            let secrets = spec.options.iter().filter(|o| o.secret).map(|o| Cow::Borrowed(o.key)).collect();
            Ok(Self { values, secrets })
        } else {
            Err(problems)
        }
    }

    /// The text of an option; `None` when it is neither given nor defaulted.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// The text of a required or defaulted option.
    pub fn required(&self, key: &str) -> Result<&str> {
        self.text(key).ok_or_else(|| Error::new(Code::PipelineInvalid, format!("option `{key}` is missing")))
    }

    /// A whole number.
    pub fn integer(&self, key: &str) -> Result<i64> {
        self.parse(key, |t| t.trim().parse().map_err(|_| "not a whole number".to_owned()))
    }

    /// A number of things.
    pub fn count(&self, key: &str) -> Result<usize> {
        self.parse(key, |t| t.trim().parse().map_err(|_| "not a count".to_owned()))
    }

    /// True or false.
    pub fn boolean(&self, key: &str) -> Result<bool> {
        self.parse(key, |t| t.trim().to_lowercase().parse().map_err(|_| "neither true nor false".to_owned()))
    }

    /// A duration.
    pub fn duration(&self, key: &str) -> Result<Duration> {
        self.parse(key, units::parse_duration)
    }

    /// A byte size.
    pub fn bytes(&self, key: &str) -> Result<u64> {
        self.parse(key, units::parse_bytes)
    }

    /// A word of an enumeration, in lower case.
    pub fn word(&self, key: &str) -> Result<String> {
        self.required(key).map(str::to_lowercase)
    }

    /// Keys and values under a free prefix, prefix removed.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values.iter().filter_map(move |(k, v)| k.strip_prefix(prefix).map(|k| (k, v.as_str())))
    }

    /// Treats the value of this key as a secret, whatever the declaration says: it came from a secret reference.
    pub fn mark_secret(&mut self, key: impl Into<String>) {
        self.secrets.push(Cow::Owned(key.into()));
    }

    /// All values with secrets masked, for display.
    pub fn masked(&self) -> BTreeMap<&str, &str> {
        let mask = |k: &str, v| if self.secrets.iter().any(|s| s == k) { "******" } else { v };
        self.values.iter().map(|(k, v)| (k.as_str(), mask(k, v.as_str()))).collect()
    }

    fn parse<T>(&self, key: &str, parse: impl Fn(&str) -> std::result::Result<T, String>) -> Result<T> {
        let text = self.required(key)?;
        parse(text).map_err(|why| Error::new(Code::PipelineInvalid, format!("option `{key}`: {why}")))
    }
}

fn check_value(option: &OptionSpec, value: &str) -> std::result::Result<(), String> {
    let key = option.key;
    let text = value.trim();
    match option.ty {
        OptionType::Text => Ok(()),
        OptionType::Integer { min, max } => match text.parse::<i64>() {
            Ok(n) if (min..=max).contains(&n) => Ok(()),
            Ok(_) if max == i64::MAX => Err(format!("`{key}` must be at least {min}")),
            Ok(_) => Err(format!("`{key}` must be between {min} and {max}")),
            Err(_) => Err(format!("`{key}` must be a whole number")),
        },
        OptionType::Float { min, max } => match text.parse::<f64>() {
            Ok(n) if (min..=max).contains(&n) => Ok(()),
            _ => Err(format!("`{key}` must be a number between {min} and {max}")),
        },
        OptionType::Boolean => text
            .to_lowercase()
            .parse::<bool>()
            .map(drop)
            .map_err(|_| format!("`{key}` must be `true` or `false`")),
        OptionType::Duration => units::parse_duration(text).map(drop).map_err(|e| format!("`{key}`: {e}")),
        OptionType::TablePatterns => {
            crate::TableSelector::parse(text).map(drop).map_err(|e| format!("`{key}`: {e}"))
        }
        OptionType::Bytes => units::parse_bytes(text).map(drop).map_err(|e| format!("`{key}`: {e}")),
        OptionType::Enum(words) => {
            if words.iter().any(|w| w.eq_ignore_ascii_case(text)) {
                Ok(())
            } else {
                Err(format!("`{key}` must be one of {}", words.join(", ")))
            }
        }
    }
}

/// The candidate that a misspelt word most likely stands for, without regard to case: the shortest one that begins with
/// it, else the closest by edit distance if it is close enough to be a typo.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes time with the product of the lengths, and a "word" may be a whole misplaced text.
    const LONGEST: usize = 80;
    let length = word.chars().count();
    if length > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let limit = (length / 3).max(2).min(length.saturating_sub(1));
    let mut longer: Option<&str> = None;
    let mut closest: Option<(usize, &str)> = None;
    for candidate in candidates {
        let lower = candidate.to_lowercase();
        if length > 2 && lower.starts_with(&word) && longer.is_none_or(|l| candidate.len() < l.len()) {
            longer = Some(candidate);
        }
        let away = distance(&word, &lower);
        if away <= limit && closest.is_none_or(|(least, _)| away < least) {
            closest = Some((away, candidate));
        }
    }
    longer.or(closest.map(|(_, candidate)| candidate))
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = if ca == *cb { diagonal } else { diagonal + 1 };
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_and_beginnings() {
        for (word, expect) in [
            ("host", Some("hostname")),
            ("HostName", Some("hostname")),
            ("tabels", Some("tables")),
            ("server_id", Some("server-id")),
            ("x", None),
            ("something", None),
        ] {
            let known = ["port", "hostname", "tables.exclude", "tables", "server-id"];
            assert_eq!(nearest(word, known.into_iter()), expect, "{word}");
        }
    }
}
