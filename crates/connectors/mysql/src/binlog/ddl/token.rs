//! Owns cutting a statement into tokens: comments dropped, version comments opened, names and texts unquoted.

use std::borrow::Cow;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bare word or number.
    Word,
    /// A quoted name.
    Name,
    /// A text literal.
    Text,
    /// One other character.
    Symbol,
}

/// One token.
#[derive(Debug, Clone)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its value, quotes and escapes removed.
    pub value: Cow<'a, str>,
    /// Where it begins in the statement.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

impl Token<'_> {
    /// Whether it is this bare word, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.value.eq_ignore_ascii_case(word)
    }

    /// Whether it is this character.
    pub fn is_symbol(&self, symbol: char) -> bool {
        self.kind == Kind::Symbol && self.value.starts_with(symbol)
    }
}

/// How the session that wrote a statement reads quotes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quoting {
    /// Double quotes stand around names (`ANSI_QUOTES`).
    pub ansi_quotes: bool,
    /// A backslash is a plain character in texts (`NO_BACKSLASH_ESCAPES`).
    pub no_backslash_escapes: bool,
}

/// Cuts a statement up. Anything is accepted: an unclosed quote or comment ends with the statement.
pub fn tokens(statement: &str, quoting: Quoting) -> Vec<Token<'_>> {
    let bytes = statement.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut version_comments = 0usize;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest {
            [b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, ..] => at += 1,
            [b'#', ..] => at = line_end(bytes, at),
            [b'-', b'-'] => at = bytes.len(),
            [b'-', b'-', after, ..] if after.is_ascii_whitespace() || after.is_ascii_control() => {
                at = line_end(bytes, at);
            }
            [b'*', b'/', ..] if version_comments > 0 => {
                version_comments -= 1;
                at += 2;
            }
            [b'/', b'*', b'!', ..] => {
                version_comments += 1;
                at = digits_end(bytes, at + 3);
            }
            [b'/', b'*', b'M', b'!', ..] => {
                version_comments += 1;
                at = digits_end(bytes, at + 4);
            }
            [b'/', b'*', ..] => {
                at = memchr::memmem::find(&rest[2..], b"*/").map_or(bytes.len(), |end| at + end + 4);
            }
            [quote @ (b'\'' | b'"' | b'`'), ..] => {
                let kind = match quote {
                    b'\'' => Kind::Text,
                    b'"' if !quoting.ansi_quotes => Kind::Text,
                    _ => Kind::Name,
                };
                let escapes = kind == Kind::Text && !quoting.no_backslash_escapes;
                let (value, end) = quoted(statement, at, escapes);
                tokens.push(Token { kind, value: Cow::Owned(value), start: at, end });
                at = end;
            }
            [byte, ..] if is_word_byte(*byte) => {
                let len = rest.iter().position(|b| !is_word_byte(*b)).unwrap_or(rest.len());
                let value = Cow::Borrowed(&statement[at..at + len]);
                tokens.push(Token { kind: Kind::Word, value, start: at, end: at + len });
                at += len;
            }
            _ => {
                let value = Cow::Borrowed(&statement[at..=at]);
                tokens.push(Token { kind: Kind::Symbol, value, start: at, end: at + 1 });
                at += 1;
            }
        }
    }
    tokens
}

/// Bytes above 127 are parts of characters that names may have, so a token never ends inside a character.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1)
}

fn digits_end(bytes: &[u8], at: usize) -> usize {
    let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    at + digits
}

/// The value of a quoted token at `at` and where it ends.
fn quoted(statement: &str, at: usize, escapes: bool) -> (String, usize) {
    let mut characters = statement[at..].char_indices();
    let Some((_, quote)) = characters.next() else { return (String::new(), at) };
    let mut value = String::new();
    while let Some((offset, character)) = characters.next() {
        if character == quote {
            if characters.as_str().starts_with(quote) {
                characters.next();
                value.push(quote);
                continue;
            }
            return (value, at + offset + quote.len_utf8());
        }
        if character != '\\' || !escapes {
            value.push(character);
            continue;
        }
        match characters.next().map(|(_, escaped)| escaped) {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('b') => value.push('\u{8}'),
            Some('0') => value.push('\0'),
            Some('Z') => value.push('\u{1a}'),
            Some(other) => value.push(other),
            None => break,
        }
    }
    (value, statement.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(statement: &str) -> Vec<String> {
        tokens(statement, Quoting::default()).into_iter().map(|t| t.value.into_owned()).collect()
    }

    #[test]
    fn comments_are_dropped_and_version_comments_opened() {
        assert_eq!(
            values("DROP /*!40005 TEMPORARY */ TABLE /* a 'b */ IF -- c\nEXISTS # d\n`x``y`.z;"),
            ["DROP", "TEMPORARY", "TABLE", "IF", "EXISTS", "x`y", ".", "z", ";"]
        );
        assert_eq!(values("a /*M!100100 b */ c--d"), ["a", "b", "c", "-", "-", "d"]);
        assert_eq!(values("/* never closed"), Vec::<String>::new());
    }

    #[test]
    fn texts_lose_their_escapes() {
        assert_eq!(values(r#"'it''s' "a\"b" 'x\ny\\' 'open"#), ["it's", "a\"b", "x\ny\\", "open"]);
        let ansi = Quoting { ansi_quotes: true, no_backslash_escapes: true };
        let found = tokens(r#""na""me" 'a\'"#, ansi);
        assert_eq!((found[0].kind, found[0].value.as_ref()), (Kind::Name, "na\"me"));
        assert_eq!((found[1].kind, found[1].value.as_ref()), (Kind::Text, "a\\"));
    }

    proptest! {
        #[test]
        fn no_statement_panics(statement in ".{0,200}", ansi_quotes: bool, no_backslash_escapes: bool) {
            tokens(&statement, Quoting { ansi_quotes, no_backslash_escapes });
        }
    }
}
