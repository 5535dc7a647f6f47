//! Owns what may differ between CSV files.

/// What ends a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    /// A line feed; a carriage return before it belongs to it.
    #[default]
    LineFeed,
    /// This byte.
    Byte(u8),
}

impl LineEnd {
    /// The last byte of a record.
    pub fn byte(self) -> u8 {
        match self {
            Self::LineFeed => b'\n',
            Self::Byte(byte) => byte,
        }
    }
}

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvDialect {
    /// Byte between fields.
    pub delimiter: u8,
    /// Byte around fields.
    pub quote: u8,
    /// Byte that takes the meaning from a quote, delimiter, line break or itself behind it.
    pub escape: Option<u8>,
    /// What ends a record.
    pub line_end: LineEnd,
    /// Whether the first record holds the column names.
    pub header: bool,
    /// What stands for NULL, without quotes.
    pub null_literal: Vec<u8>,
    /// Bytes of the longest record that is taken.
    pub max_record_bytes: usize,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: b'"',
            escape: None,
            line_end: LineEnd::LineFeed,
            header: true,
            null_literal: Vec::new(),
            max_record_bytes: 64 << 20,
        }
    }
}

impl CsvDialect {
    /// Checks that the parts can be told apart.
    ///
    /// # Errors
    /// A message that says which cannot.
    pub fn validate(&self) -> Result<(), String> {
        let special = [Some(self.delimiter), Some(self.quote), self.escape];
        for byte in special.into_iter().flatten() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'\n' | b'\r' | b'\0' | 0x80..) {
                let shown = byte.escape_ascii();
                return Err(format!("`{shown}` cannot be a CSV delimiter, quote or escape"));
            }
        }
        let end = self.line_end.byte();
        if end.is_ascii_alphanumeric() || end >= 0x80 || special.contains(&Some(end)) {
            let shown = end.escape_ascii();
            return Err(format!("`{shown}` cannot end a CSV record"));
        }
        if self.delimiter == self.quote || self.escape == Some(self.delimiter) {
            return Err("the CSV delimiter must differ from quote and escape".into());
        }
        if self.escape == Some(self.quote) {
            return Err("leave the CSV escape empty when quotes are doubled".into());
        }
        let parts =
            |byte: &u8| matches!(*byte, b'\n' | b'\r') || [end, self.delimiter, self.quote].contains(byte);
        if self.null_literal.iter().any(parts) {
            return Err("the CSV null literal cannot hold a delimiter, quote or line break".into());
        }
        if let Some(escape) = self.escape
            && (self.null_literal.last() == Some(&escape)
                || self.null_literal.windows(2).any(|pair| pair == [escape, escape]))
        {
            return Err("the CSV null literal cannot hold an escape that counts".into());
        }
        Ok(())
    }
}

/// The one byte that a text stands for: itself, `\t`, `\\` or `\x01`.
///
/// # Errors
/// A message when it is none.
pub fn parse_byte(text: &str) -> Result<u8, String> {
    let hex = text.strip_prefix("\\x").filter(|digits| digits.len() == 2);
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        b"\\\\" => Ok(b'\\'),
        _ => hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(|| {
            format!("`{text}` is not one ASCII character; write for example `;`, `\\t` or `\\x01`")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spelled_in_four_ways() {
        for (text, expect) in [
            (";", Some(b';')),
            ("\\t", Some(b'\t')),
            ("\\", Some(b'\\')),
            ("\\\\", Some(b'\\')),
            ("\\x01", Some(1)),
            ("\\xz1", None),
            (";;", None),
            ("", None),
            ("ä", None),
        ] {
            assert_eq!(parse_byte(text).ok(), expect, "{text}");
        }
    }

    #[test]
    fn parts_must_differ() {
        let fine = CsvDialect::default();
        assert!(fine.validate().is_ok());
        for wrong in [
            CsvDialect { delimiter: b'"', ..fine.clone() },
            CsvDialect { delimiter: b'\n', ..fine.clone() },
            CsvDialect { delimiter: b'1', ..fine.clone() },
            CsvDialect { line_end: LineEnd::Byte(b','), ..fine.clone() },
            CsvDialect { line_end: LineEnd::Byte(b'a'), ..fine.clone() },
            CsvDialect { line_end: LineEnd::Byte(b';'), null_literal: b";".to_vec(), ..fine.clone() },
            CsvDialect { escape: Some(b','), ..fine.clone() },
            CsvDialect { escape: Some(b'"'), ..fine.clone() },
            CsvDialect { null_literal: b"a,b".to_vec(), ..fine.clone() },
        ] {
            assert!(wrong.validate().is_err(), "{wrong:?}");
        }
        assert!(CsvDialect { escape: Some(b'\\'), null_literal: b"\\N".to_vec(), ..fine }.validate().is_ok());
    }
}
