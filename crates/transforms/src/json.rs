//! Owns JSON as text: a strict scanner that cuts values out without building anything, and simple paths. Numbers stay the
//! digits that they are.

use std::{borrow::Cow, collections::HashSet};

/// Nesting that is followed.
const DEEPEST: usize = 128;

/// The one value of a document, without the blanks around it; `None` when the text is not JSON (RFC 8259), or names a
/// key of an object twice and `unique` forbids that.
pub(crate) fn document(text: &str, unique: bool) -> Option<&str> {
    let mut scanner = Scanner { text, at: 0, depth: 0, unique };
    let value = scanner.value()?;
    scanner.blanks();
    (scanner.at == text.len()).then_some(value)
}

/// The items of an array, in order; `None` when the value is none.
pub(crate) fn items(value: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let mut scanner = Scanner { text: value, at: 0, depth: 0, unique: false };
    if scanner.peek() != Some(b'[') {
        return None;
    }
    scanner.array(&mut |item| items.push(item))?;
    Some(items)
}

/// The members of an object, names still quoted, in order; `None` when the value is none.
pub(crate) fn members(value: &str) -> Option<Vec<(&str, &str)>> {
    let mut members = Vec::new();
    let mut scanner = Scanner { text: value, at: 0, depth: 0, unique: false };
    if scanner.peek() != Some(b'{') {
        return None;
    }
    scanner.object(&mut |name, member| members.push((name, member)))?;
    Some(members)
}

/// The text that a quoted string stands for; `None` when it is no string, or half a surrogate pair.
pub(crate) fn string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(inner.into());
    }
    serde_json::from_str::<String>(value).ok().map(Cow::Owned)
}

/// A scalar as plain text; `None` for null, arrays and objects.
pub(crate) fn scalar(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes().first()? {
        b'"' => string(value),
        b'[' | b'{' | b'n' => None,
        _ => Some(value.into()),
    }
}

/// A path of names and numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    /// From 0.
    Item(usize),
}

impl Path {
    /// Parses `$.a.b[0]['c']`, also behind the words `lax` and `strict`.
    ///
    /// # Errors
    /// What is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a path of the form $.name[0]['name']");
        let trimmed = text.trim();
        let plain = ["lax ", "strict "].iter().find_map(|w| trimmed.strip_prefix(w)).unwrap_or(trimmed);
        let mut rest = plain.trim_start().strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(name) = rest.strip_prefix('.') {
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                (Step::Member(name.to_owned()), after)
            } else {
                let inside = rest.strip_prefix('[').ok_or_else(wrong)?;
                if let Some(quoted) = inside.strip_prefix('\'') {
                    let (name, after) = quoted.split_once("']").ok_or_else(wrong)?;
                    (Step::Member(name.to_owned()), after)
                } else {
                    let (number, after) = inside.split_once(']').ok_or_else(wrong)?;
                    (Step::Item(number.trim().parse().map_err(|_| wrong())?), after)
                }
            };
            if matches!(&step, Step::Member(name) if name.is_empty() || name.contains('*')) {
                return Err(wrong());
            }
            steps.push(step);
            rest = after;
        }
        Ok(Self { steps })
    }

    /// What stands at the end of the path in a valid value. Of two members with one name the later counts.
    pub fn find<'a>(&self, value: &'a str) -> Option<&'a str> {
        let mut found = value;
        for step in &self.steps {
            found = match step {
                Step::Member(name) => member(found, name)?,
                Step::Item(index) => *items(found)?.get(*index)?,
            };
        }
        Some(found)
    }
}

/// The member of a name; the later one of two.
pub(crate) fn member<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let members = members(value)?;
    members
        .into_iter()
        .rev()
        .find(|(key, _)| string(key).is_some_and(|k| k == name))
        .map(|(_, member)| member)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    unique: bool,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<&'a str> {
        self.blanks();
        let start = self.at;
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(&mut |_, _| ())?,
            b'[' => self.array(&mut |_| ())?,
            b'"' => self.quoted()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => self.number()?,
        }
        self.depth -= 1;
        Some(&self.text[start..self.at])
    }

    fn object(&mut self, visit: &mut dyn FnMut(&'a str, &'a str)) -> Option<()> {
        let mut names: HashSet<Cow<'a, str>> = HashSet::new();
        self.take(b'{')?;
        self.blanks();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            self.blanks();
            let start = self.at;
            self.quoted()?;
            let name = &self.text[start..self.at];
            if self.unique && !names.insert(string(name)?) {
                return None;
            }
            self.blanks();
            self.take(b':')?;
            let value = self.value()?;
            visit(name, value);
            self.blanks();
            if self.take(b'}').is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn array(&mut self, visit: &mut dyn FnMut(&'a str)) -> Option<()> {
        self.take(b'[')?;
        self.blanks();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            let value = self.value()?;
            visit(value);
            self.blanks();
            if self.take(b']').is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn quoted(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            match self.peek()? {
                b'"' => break,
                0..=0x1f => return None,
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            let digits = self.text.as_bytes().get(self.at + 1..self.at + 5)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                            self.at += 5;
                        }
                        _ => return None,
                    }
                }
                _ => self.at += 1,
            }
        }
        self.take(b'"')
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then(|| self.at - start)
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        let starts_with_zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && starts_with_zero {
            return None;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_read() {
        for (text, valid) in [
            (r#" {"a": [1, -0.5e+3, true, null, "x\u00e9\n"], "b": {}} "#, true),
            ("12345678901234567890123456789.000000001", true),
            ("01", false),
            ("1.", false),
            ("-", false),
            ("[1,]", false),
            ("{\"a\":1,}", false),
            ("{a:1}", false),
            ("'a'", false),
            ("\"a\nb\"", false),
            (r#""\x""#, false),
            ("[1] 2", false),
            ("nul", false),
            ("", false),
        ] {
            assert_eq!(document(text, true).is_some(), valid, "{text}");
        }
        assert!(document(r#"{"a":1,"a":2}"#, false).is_some());
        assert!(document(r#"{"a":1,"\u0061":2}"#, true).is_none());
        assert!(document(&"[".repeat(100_000), true).is_none());
    }

    #[test]
    fn paths_find_what_they_name() {
        let value = r#"{"a": {"b c": [10, {"d": "x\"y"}]}, "n": 1.0, "n": 2.50}"#;
        for (path, expect) in [
            ("$.a['b c'][0]", Some("10")),
            ("lax $.a['b c'][1].d", Some(r#""x\"y""#)),
            ("$.n", Some("2.50")),
            ("$.a.b", None),
            ("$.n[0]", None),
        ] {
            assert_eq!(Path::parse(path).unwrap().find(value), expect, "{path}");
        }
        for path in ["a", "$.", "$[x]", "$.*", "$[0", "$a"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
        assert_eq!(scalar(r#""x\"y""#).as_deref(), Some("x\"y"));
        assert_eq!(scalar("[1]"), None);
    }
}
