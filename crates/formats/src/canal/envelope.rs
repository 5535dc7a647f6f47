//! Owns taking a message apart: one pass over its bytes, nothing copied.

use std::borrow::Cow;

use crate::json::{
    scan::{Scanner, Text, Value},
    string::unescape,
};

/// A member of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub name: Text<'a>,
    pub value: Value<'a>,
}

/// The rows of `data` or `old`, all members in one list.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    members: Vec<Member<'a>>,
    /// For every row, the end of its members.
    ends: Vec<usize>,
    present: bool,
}

impl<'a> Rows<'a> {
    /// Forgets the rows and keeps the room.
    pub(super) fn recycle<'b>(mut self) -> Rows<'b> {
        self.ends.clear();
        // Collects into the same allocation, for another lifetime.
        let members = self.members.into_iter().map_while(|_| None).collect();
        Rows { members, ends: self.ends, present: false }
    }

    /// Whether there is an array at all.
    pub(super) fn is_present(&self) -> bool {
        self.present
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn row(&self, index: usize) -> &[Member<'a>] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start..self.ends[index]]
    }

    fn clear(&mut self) {
        self.members.clear();
        self.ends.clear();
        self.present = false;
    }

    /// Reads `null` or an array of objects.
    fn read(&mut self, scanner: &mut Scanner<'a>, field: &str) -> Result<(), String> {
        let syntax = |why: &str| format!("message is not JSON: {why}");
        self.clear();
        if !scanner.take(b'[') {
            return match scanner.value().map_err(syntax)? {
                Value::Null => Ok(()),
                _ => Err(format!("`{field}` is not an array of rows")),
            };
        }
        self.present = true;
        if scanner.take(b']') {
            return Ok(());
        }
        loop {
            if !scanner.take(b'{') {
                return Err(format!("`{field}` is not an array of rows"));
            }
            if !scanner.take(b'}') {
                loop {
                    let name = scanner.name().map_err(syntax)?;
                    let value = scanner.value().map_err(syntax)?;
                    self.members.push(Member { name, value });
                    if scanner.take(b'}') {
                        break;
                    }
                    if !scanner.take(b',') {
                        return Err(syntax("expected a comma or a closing brace"));
                    }
                }
            }
            self.ends.push(self.members.len());
            if scanner.take(b']') {
                return Ok(());
            }
            if !scanner.take(b',') {
                return Err(syntax("expected a comma or a closing bracket"));
            }
        }
    }
}

/// A message without its rows. Fields that are null are `None`.
#[derive(Debug, Default)]
pub(super) struct Envelope<'a> {
    pub database: Option<Text<'a>>,
    pub table: Option<Text<'a>>,
    /// The field `type`.
    pub kind: Option<Text<'a>>,
    pub sql: Option<Text<'a>>,
    pub is_ddl: bool,
    /// The field `es`, milliseconds.
    pub event_time: Option<i64>,
    /// Objects and an array, as they stand in the message.
    pub mysql_type: Option<&'a [u8]>,
    pub sql_type: Option<&'a [u8]>,
    pub pk_names: Option<&'a [u8]>,
}

/// What the message before had in the two fields that hardly ever change, so that they need not be scanned again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expected<'e> {
    pub mysql_type: &'e [u8],
    pub sql_type: &'e [u8],
}

impl<'a> Envelope<'a> {
    /// Takes `bytes` apart; unknown fields are passed over, of a field that stands twice the last counts.
    ///
    /// # Errors
    /// When the bytes are no JSON object or a known field is of another kind.
    pub(super) fn read(
        bytes: &'a [u8],
        data: &mut Rows<'a>,
        old: &mut Rows<'a>,
        expected: Expected<'_>,
    ) -> Result<Self, String> {
        let syntax = |why: &str| format!("message is not JSON: {why}");
        let mut scanner = Scanner::new(bytes);
        let mut envelope = Self::default();
        if !scanner.take(b'{') {
            return Err("message is not a JSON object".to_owned());
        }
        if !scanner.take(b'}') {
            loop {
                let name = scanner.name().map_err(syntax)?;
                if name.escaped {
                    envelope.field(&plain(name)?, &mut scanner, data, old, expected)?;
                } else {
                    envelope.field(name.raw, &mut scanner, data, old, expected)?;
                }
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
        data: &mut Rows<'a>,
        old: &mut Rows<'a>,
        expected: Expected<'_>,
    ) -> Result<(), String> {
        match name {
            b"data" => return data.read(scanner, "data"),
            b"old" => return old.read(scanner, "old"),
            b"mysqlType" => {
                if let Some(raw) = scanner.take_same(expected.mysql_type) {
                    self.mysql_type = Some(raw);
                    return Ok(());
                }
            }
            b"sqlType" => {
                if let Some(raw) = scanner.take_same(expected.sql_type) {
                    self.sql_type = Some(raw);
                    return Ok(());
                }
            }
            _ => {}
        }
        let value = scanner.value().map_err(|why| format!("message is not JSON: {why}"))?;
        match name {
            b"database" => self.database = text(name, value)?,
            b"table" => self.table = text(name, value)?,
            b"type" => self.kind = text(name, value)?,
            b"sql" => self.sql = text(name, value)?,
            b"isDdl" => {
                self.is_ddl = match value {
                    Value::Boolean(value) => value,
                    Value::Null => false,
                    _ => return Err("`isDdl` is neither true nor false".to_owned()),
                }
            }
            b"es" => self.event_time = milliseconds(value)?,
            b"mysqlType" => self.mysql_type = container(name, value, b'{')?,
            b"sqlType" => self.sql_type = container(name, value, b'{')?,
            b"pkNames" => self.pk_names = container(name, value, b'[')?,
            _ => {}
        }
        Ok(())
    }
}

/// What a string means.
///
/// # Errors
/// For half of a surrogate pair.
pub(super) fn plain(text: Text<'_>) -> Result<Cow<'_, [u8]>, String> {
    if !text.escaped {
        return Ok(Cow::Borrowed(text.raw));
    }
    let mut out = Vec::new();
    unescape(text.raw, &mut out).map_err(str::to_owned)?;
    Ok(Cow::Owned(out))
}

fn wrong(name: &[u8], what: &str) -> String {
    format!("`{}` is not {what}", String::from_utf8_lossy(name))
}

fn text<'a>(name: &[u8], value: Value<'a>) -> Result<Option<Text<'a>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(text)),
        _ => Err(wrong(name, "a string")),
    }
}

fn container<'a>(name: &[u8], value: Value<'a>, open: u8) -> Result<Option<&'a [u8]>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Container(raw) if raw[0] == open => Ok(Some(raw)),
        _ if open == b'[' => Err(wrong(name, "an array")),
        _ => Err(wrong(name, "an object")),
    }
}

fn milliseconds(value: Value<'_>) -> Result<Option<i64>, String> {
    let digits = match value {
        Value::Null => return Ok(None),
        Value::Number(raw) | Value::Text(Text { raw, escaped: false }) => raw,
        _ => return Err("`es` is not a number".to_owned()),
    };
    let parsed = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or_else(|| "`es` is not a whole number of milliseconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_room_from_message_to_message() {
        let (mut data, mut old) = (Rows::default(), Rows::default());
        let bytes = br#"{"data":[{"a":"1","b":"2"},{"a":"3"}]}"#;
        Envelope::read(bytes, &mut data, &mut old, Expected::default()).unwrap();
        assert_eq!((data.len(), data.row(0).len(), data.row(1).len()), (2, 2, 1));
        let room = data.members.as_ptr().addr();
        let data = data.recycle();
        assert_eq!((data.len(), data.members.as_ptr().addr()), (0, room));
    }

    #[test]
    fn fields_known_from_the_message_before_are_compared_only() {
        let bytes = br#"{"mysqlType": {"a":"int"},"sqlType":{"a":4}}"#;
        let (mut data, mut old) = (Rows::default(), Rows::default());
        let known: &[u8] = br#"{"a":"int"}"#;
        for (mysql_type, sql_type) in [(known, b"".as_slice()), (b"{}", br#"{"a":4}"#)] {
            let expected = Expected { mysql_type, sql_type };
            let envelope = Envelope::read(bytes, &mut data, &mut old, expected).unwrap();
            assert_eq!(
                (envelope.mysql_type, envelope.sql_type),
                (Some(known), Some(br#"{"a":4}"#.as_slice()))
            );
        }
    }
}
