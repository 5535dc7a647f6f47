//! Owns QUERY events: a statement with the settings that it was written under.

use std::borrow::Cow;

use mysql_common::collations::{Collation, CollationId};

use crate::{
    binlog::{
        cursor::{Cursor, DecodeError, Decoded},
        ddl::{Quoting, StatementContext},
    },
    charset::Charset,
};

/// A statement of the log.
#[derive(Debug, Clone)]
pub struct QueryEvent<'a> {
    /// Default database of the session.
    pub database: Cow<'a, str>,
    /// How the session reads quotes.
    pub quoting: Quoting,
    /// Collation id of the session's statements, if the event tells.
    pub collation: Option<u16>,
    /// The statement, or in a compressed event its compressed form.
    pub statement: &'a [u8],
}

impl QueryEvent<'_> {
    /// What parsing the statement needs beside its text.
    pub fn context(&self) -> StatementContext {
        StatementContext { default_database: self.database.to_string(), quoting: self.quoting }
    }
}

/// A statement as UTF-8. Statements are logged in the character set of their session.
///
/// # Errors
/// When the bytes are not text of the session's character set.
pub fn statement_text(statement: &[u8], collation: Option<u16>) -> Decoded<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(statement) {
        return Ok(Cow::Borrowed(text));
    }
    let name = collation.map(|id| Collation::resolve(CollationId::from(id)).charset().to_owned());
    let name = name.unwrap_or_default();
    let mut text = String::new();
    match name.as_str() {
        // The session sets of most old clients; the tables are those of the server.
        "latin1" => text.extend(statement.iter().map(|byte| latin1(*byte))),
        other => {
            Charset::known(other).and_then(|charset| charset.append(statement, &mut text).ok()).ok_or_else(
                || DecodeError::malformed(format!("statement is not text of character set {other:?}")),
            )?
        }
    }
    Ok(Cow::Owned(text))
}

/// latin1 of the server is cp1252 with the control characters in its holes.
fn latin1(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

/// Parses the body of a QUERY event.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_query(body: &[u8]) -> Decoded<QueryEvent<'_>> {
    parse(body, 0)
}

/// Parses the body of an EXECUTE_LOAD_QUERY: a QUERY with the number of a file and where its name stands.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_execute_load(body: &[u8]) -> Decoded<QueryEvent<'_>> {
    parse(body, 4 + 4 + 4 + 1)
}

fn parse(body: &[u8], more: usize) -> Decoded<QueryEvent<'_>> {
    let mut cursor = Cursor::new(body);
    cursor.skip(4 + 4)?;
    let database_len = usize::from(cursor.u8()?);
    cursor.skip(2)?;
    let variables_len = usize::from(cursor.u16()?);
    cursor.skip(more)?;
    let variables = cursor.take(variables_len)?;
    let database = String::from_utf8_lossy(cursor.take(database_len)?);
    cursor.skip(1)?;
    let (quoting, collation) = status_variables(variables);
    Ok(QueryEvent { database, quoting, collation, statement: cursor.rest() })
}

/// SQL mode and collation among the status variables. They stand before any that a later server may add, so an
/// unknown one ends the search.
fn status_variables(bytes: &[u8]) -> (Quoting, Option<u16>) {
    const ANSI_QUOTES: u64 = 0x4;
    const NO_BACKSLASH_ESCAPES: u64 = 0x10_0000;
    let mut cursor = Cursor::new(bytes);
    let (mut quoting, mut collation) = (Quoting::default(), None);
    while let Ok(code) = cursor.u8() {
        let passed = match code {
            0 => cursor.skip(4),
            1 => cursor.u64().map(|mode| {
                quoting = Quoting {
                    ansi_quotes: mode & ANSI_QUOTES != 0,
                    no_backslash_escapes: mode & NO_BACKSLASH_ESCAPES != 0,
                };
            }),
            2 => cursor.prefixed(1).and_then(|_| cursor.skip(1)),
            3 => cursor.skip(4),
            4 => cursor.u16().and_then(|client| {
                collation = Some(client);
                cursor.skip(4)
            }),
            5 | 6 => cursor.prefixed(1).map(|_| ()),
            7 | 8 => cursor.skip(2),
            9 => cursor.skip(8),
            _ => break,
        };
        if passed.is_err() {
            break;
        }
    }
    (quoting, collation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_carry_their_session() {
        let mut body = vec![0; 8];
        body.push(1);
        body.extend_from_slice(&[0, 0, 0, 0]);
        let variables = [
            &[0u8, 0, 0, 0, 0, 1, 4, 0, 0x10, 0, 0, 0, 0, 0][..],
            &[6, 3, b's', b't', b'd', 4, 8, 0, 8, 0, 8, 0],
        ]
        .concat();
        body[11] = u8::try_from(variables.len()).unwrap();
        body.extend_from_slice(&variables);
        body.extend_from_slice(b"d\0DROP TABLE \xe9");
        let event = parse_query(&body).unwrap();
        assert_eq!(event.database, "d");
        assert_eq!(event.quoting, Quoting { ansi_quotes: true, no_backslash_escapes: true });
        assert_eq!(event.collation, Some(8));
        assert_eq!(statement_text(event.statement, event.collation).unwrap(), "DROP TABLE é");
        assert!(statement_text(b"\xff\xff", Some(45)).is_err());
    }
}
