//! Owns taking a message apart: one pass over its bytes, nothing copied.

use std::borrow::Cow;

use crate::json::{
    scan::{Scanner, Text, Value},
    string::unescape,
};

/// The members of `data` or `old`.
pub(super) type Members<'a> = Vec<(Text<'a>, Value<'a>)>;

/// Forgets the members and keeps the room.
pub(super) fn recycle<'b>(mut members: Members<'_>) -> Members<'b> {
    members.clear();
    // Collects nothing into the same allocation, for another lifetime.
    members.into_iter().map(|_| (Text { raw: &[], escaped: false }, Value::Null)).collect()
}

/// A message without its rows.
#[derive(Debug, Default)]
pub(super) struct Envelope<'a> {
    pub database: Option<Text<'a>>,
    pub table: Option<Text<'a>>,
    /// The field `type`.
    pub kind: Option<Text<'a>>,
    pub sql: Option<Text<'a>>,
    /// The field `ts`: seconds in row events, milliseconds in others.
    pub time: Option<i64>,
    pub has_data: bool,
    pub encrypted: bool,
    /// The field `def`.
    pub definition: Option<&'a [u8]>,
}

fn syntax(why: &str) -> String {
    format!("message is not JSON: {why}")
}

impl<'a> Envelope<'a> {
    /// Takes `bytes` apart; unknown fields are passed over, of a field that stands twice the last counts.
    ///
    /// # Errors
    /// When the bytes are no JSON object or a known field is of another kind.
    pub(super) fn read(
        bytes: &'a [u8],
        data: &mut Members<'a>,
        old: &mut Members<'a>,
    ) -> Result<Self, String> {
        let mut scanner = Scanner::new(bytes);
        let mut envelope = Self::default();
        if !scanner.take(b'{') {
            return Err("message is not a JSON object".to_owned());
        }
        if !scanner.take(b'}') {
            loop {
                let name = scanner.name().map_err(syntax)?;
                envelope.field(&plain(name)?, &mut scanner, data, old)?;
                if scanner.take(b'}') {
                    break;
                }
                if !scanner.take(b',') {
                    return Err(syntax("expected a comma or a closing brace"));
                }
            }
        }
        scanner.end().map_err(syntax)?;
        Ok(envelope)
    }

    fn field(
        &mut self,
        name: &[u8],
        scanner: &mut Scanner<'a>,
        data: &mut Members<'a>,
        old: &mut Members<'a>,
    ) -> Result<(), String> {
        match name {
            b"data" => self.has_data = members(scanner, data, "data")?,
            // In a change of structure it is the definition before.
            b"old" => _ = members(scanner, old, "old")?,
            b"database" => self.database = text(scanner, "database")?,
            b"table" => self.table = text(scanner, "table")?,
            b"type" => self.kind = text(scanner, "type")?,
            b"sql" => self.sql = text(scanner, "sql")?,
            b"encrypted" => self.encrypted = scanner.value().map_err(syntax)? != Value::Null,
            b"ts" => {
                if let Value::Number(digits) = scanner.value().map_err(syntax)? {
                    self.time = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
                }
            }
            b"def" => match scanner.value().map_err(syntax)? {
                Value::Container(raw) => self.definition = Some(raw),
                Value::Null => {}
                _ => return Err("`def` is not an object".to_owned()),
            },
            _ => {
                scanner.value().map_err(syntax)?;
            }
        }
        Ok(())
    }
}

/// Reads `null` (then false) or an object.
fn members<'a>(scanner: &mut Scanner<'a>, out: &mut Members<'a>, field: &str) -> Result<bool, String> {
    out.clear();
    if !scanner.take(b'{') {
        return match scanner.value().map_err(syntax)? {
            Value::Null => Ok(false),
            _ => Err(format!("`{field}` is not an object")),
        };
    }
    if scanner.take(b'}') {
        return Ok(true);
    }
    loop {
        let name = scanner.name().map_err(syntax)?;
        out.push((name, scanner.value().map_err(syntax)?));
        if scanner.take(b'}') {
            return Ok(true);
        }
        if !scanner.take(b',') {
            return Err(syntax("expected a comma or a closing brace"));
        }
    }
}

fn text<'a>(scanner: &mut Scanner<'a>, field: &str) -> Result<Option<Text<'a>>, String> {
    match scanner.value().map_err(syntax)? {
        Value::Text(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        _ => Err(format!("`{field}` is not a string")),
    }
}

/// What a scanned string means.
pub(super) fn plain(text: Text<'_>) -> Result<Cow<'_, [u8]>, String> {
    if !text.escaped {
        return Ok(Cow::Borrowed(text.raw));
    }
    let mut out = Vec::new();
    unescape(text.raw, &mut out).map_err(syntax)?;
    Ok(Cow::Owned(out))
}

/// [`plain`] for texts that must be UTF-8.
pub(super) fn plain_str(text: Text<'_>) -> Result<Cow<'_, str>, String> {
    let wrong = |_| syntax("a string is not UTF-8");
    match plain(text)? {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(wrong),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|e| wrong(e.utf8_error())),
    }
}
