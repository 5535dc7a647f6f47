//! Owns splitting: where a record ends and where its fields are. Looks at bytes only, copies nothing.

use memchr::memchr2;

use super::CsvDialect;

/// Fields of one record that are taken.
const MOST_FIELDS: usize = 16_384;

/// A field of a record, as a range of the input without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub start: usize,
    pub end: usize,
    pub quoted: bool,
    /// Whether bytes of the range must be taken out to get the value.
    pub escaped: bool,
}

/// What is at the front of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// A record; its fields are in the list.
    Complete {
        /// Its bytes, line break included.
        length: usize,
        /// Its bytes, line break not included.
        content: usize,
    },
    /// Something that is no record, up to the next line break.
    Malformed {
        /// Its bytes, line break included.
        length: usize,
        /// Why.
        reason: &'static str,
    },
    /// The beginning of a record.
    Incomplete {
        /// Bytes whose meaning does not depend on what follows: all or all but the last.
        clear: usize,
        /// Whether the record is inside quotes behind them.
        in_quotes: bool,
    },
}

/// Splits records of one dialect.
#[derive(Debug)]
pub(super) struct Splitter {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    /// Last byte of a record.
    end: u8,
    /// Whether a byte ends the fast part of a field without quotes.
    stops: Box<[bool; 256]>,
}

impl Splitter {
    pub(super) fn new(dialect: &CsvDialect) -> Self {
        let mut stops = Box::new([false; 256]);
        for byte in
            [Some(dialect.delimiter), Some(dialect.line_end.byte()), dialect.escape].into_iter().flatten()
        {
            stops[usize::from(byte)] = true;
        }
        Self {
            delimiter: dialect.delimiter,
            quote: dialect.quote,
            escape: dialect.escape,
            end: dialect.line_end.byte(),
            stops,
        }
    }

    /// Finds the record at the front of `input`; `last` says that no more input follows.
    pub(super) fn split(&self, input: &[u8], last: bool, fields: &mut Vec<Field>) -> Record {
        fields.clear();
        let mut at = 0;
        loop {
            if fields.len() == MOST_FIELDS {
                return self.skip_line(input, at, last, "record has too many fields");
            }
            let field = if input.get(at) == Some(&self.quote) {
                match self.quoted(input, at + 1, last) {
                    Ok(field) => field,
                    Err(record) => return record,
                }
            } else {
                match self.unquoted(input, at, last) {
                    Ok(field) => field,
                    Err(record) => return record,
                }
            };
            fields.push(field);
            at = field.end + usize::from(field.quoted);
            match input.get(at) {
                Some(byte) if *byte == self.delimiter => at += 1,
                Some(byte) if *byte == self.end => return Record::Complete { length: at + 1, content: at },
                Some(b'\r') if self.end == b'\n' => match input.get(at + 1) {
                    Some(byte) if *byte == self.end => {
                        return Record::Complete { length: at + 2, content: at };
                    }
                    None if last => return Record::Complete { length: at + 1, content: at },
                    None => return Record::Incomplete { clear: at, in_quotes: false },
                    Some(_) => return self.skip_line(input, at, last, AFTER_QUOTE),
                },
                None if last => return Record::Complete { length: at, content: at },
                None => return Record::Incomplete { clear: at, in_quotes: false },
                Some(_) => return self.skip_line(input, at, last, AFTER_QUOTE),
            }
        }
    }

    /// The field that begins at `start` without a quote.
    fn unquoted(&self, input: &[u8], start: usize, last: bool) -> Result<Field, Record> {
        let mut at = start;
        let mut escaped = false;
        let mut end = loop {
            while at < input.len() && !self.stops[usize::from(input[at])] {
                at += 1;
            }
            match input.get(at) {
                None if last => break at,
                None => return Err(Record::Incomplete { clear: at, in_quotes: false }),
                Some(byte) if Some(*byte) == self.escape => match input.get(at + 1) {
                    None if last => at += 1,
                    None => return Err(Record::Incomplete { clear: at, in_quotes: false }),
                    Some(next) if self.is_escapable(*next) => {
                        escaped = true;
                        at += 2;
                    }
                    Some(_) => at += 1,
                },
                Some(_) => break at,
            }
        };
        let ends_line = self.end == b'\n' && input.get(end).is_none_or(|b| *b == b'\n');
        if ends_line
            && end > start
            && input[end - 1] == b'\r'
            && !(escaped && self.is_escaped(input, start, end - 1))
        {
            end -= 1;
        }
        Ok(Field { start, end, quoted: false, escaped })
    }

    /// Whether the byte at `at` is behind an escape that counts.
    fn is_escaped(&self, input: &[u8], start: usize, at: usize) -> bool {
        let escapes = input[start..at].iter().rev().take_while(|b| Some(**b) == self.escape).count();
        escapes % 2 == 1
    }

    /// The field whose opening quote is before `start`.
    fn quoted(&self, input: &[u8], start: usize, last: bool) -> Result<Field, Record> {
        let mut at = start;
        let mut escaped = false;
        loop {
            let Some(found) = memchr2(self.quote, self.escape.unwrap_or(self.quote), &input[at..]) else {
                return Err(unclosed(input, input.len(), last));
            };
            at += found;
            let next = input.get(at + 1).copied();
            if input[at] != self.quote {
                match next {
                    None => return Err(unclosed(input, at, last)),
                    Some(next) if self.is_escapable(next) => {
                        escaped = true;
                        at += 2;
                    }
                    Some(_) => at += 1,
                }
            } else if next == Some(self.quote) {
                escaped = true;
                at += 2;
            } else if next.is_none() && !last {
                // The quote may close the field or be the first of two.
                return Err(Record::Incomplete { clear: at, in_quotes: true });
            } else {
                return Ok(Field { start, end: at, quoted: true, escaped });
            }
        }
    }

    /// A malformed record: it goes up to the next line end.
    fn skip_line(&self, input: &[u8], from: usize, last: bool, reason: &'static str) -> Record {
        match memchr::memchr(self.end, &input[from..]) {
            Some(found) => Record::Malformed { length: from + found + 1, reason },
            None if last => Record::Malformed { length: input.len(), reason },
            None => Record::Incomplete { clear: input.len(), in_quotes: false },
        }
    }

    fn is_escapable(&self, byte: u8) -> bool {
        byte == self.quote
            || byte == self.delimiter
            || Some(byte) == self.escape
            || byte == self.end
            || matches!(byte, b'\n' | b'\r')
    }

    /// Replaces the content of `out` by the value of an escaped field.
    pub(super) fn unescape(&self, raw: &[u8], quoted: bool, out: &mut Vec<u8>) {
        out.clear();
        let mut rest = raw.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            let doubled = quoted && byte == self.quote && rest.peek() == Some(&self.quote);
            let escaping =
                Some(byte) == self.escape && rest.peek().is_some_and(|next| self.is_escapable(*next));
            if doubled || escaping {
                out.extend(rest.next());
            } else {
                out.push(byte);
            }
        }
    }

    /// Goes on over an oversized record: bytes up to and with its line break if it is in the input, and whether it was.
    /// `in_quotes` is where the record stands and is brought up to date.
    pub(super) fn pass_over(&self, input: &[u8], last: bool, in_quotes: &mut bool) -> (usize, bool) {
        let mut at = 0;
        while at < input.len() {
            let byte = input[at];
            if Some(byte) == self.escape {
                if at + 1 == input.len() && !last {
                    return (at, false);
                }
                at += 2;
                continue;
            }
            if byte == self.quote {
                *in_quotes = !*in_quotes;
            } else if byte == self.end && !*in_quotes {
                return (at + 1, true);
            }
            at += 1;
        }
        (input.len(), last)
    }
}

const AFTER_QUOTE: &str = "a closing quote is followed by something that is neither delimiter nor line break";

fn unclosed(input: &[u8], clear: usize, last: bool) -> Record {
    if last {
        Record::Malformed { length: input.len(), reason: "a quote is not closed before the end of the file" }
    } else {
        Record::Incomplete { clear, in_quotes: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of all records, `!` before a malformed one, quoted fields in brackets.
    fn split(input: &str, dialect: &CsvDialect) -> Vec<String> {
        let splitter = Splitter::new(dialect);
        let (mut fields, mut out, mut at, mut scratch) = (Vec::new(), Vec::new(), 0, Vec::new());
        let input = input.as_bytes();
        while at < input.len() {
            match splitter.split(&input[at..], true, &mut fields) {
                Record::Complete { length, .. } => {
                    let mut text = Vec::new();
                    for field in &fields {
                        splitter.unescape(
                            &input[at + field.start..at + field.end],
                            field.quoted,
                            &mut scratch,
                        );
                        let value = String::from_utf8(scratch.clone()).unwrap();
                        text.push(if field.quoted { format!("[{value}]") } else { value });
                    }
                    out.push(text.join("|"));
                    at += length;
                }
                Record::Malformed { length, .. } => {
                    out.push(format!("!{}", String::from_utf8_lossy(&input[at..at + length]).trim_end()));
                    at += length;
                }
                Record::Incomplete { .. } => panic!("nothing follows"),
            }
        }
        out
    }

    #[test]
    fn records_and_fields_are_found() {
        let plain = CsvDialect::default();
        let escape = CsvDialect { escape: Some(b'\\'), ..plain.clone() };
        for (dialect, input, expect) in [
            (&plain, "a,b\nc,d", &["a|b", "c|d"][..]),
            (&plain, "a,b\r\n\r\n,\n", &["a|b", "", "|"]),
            (&plain, "\"a\nb\",\"q\"\"q, z\"\r\n", &["[a\nb]|[q\"q, z]"]),
            (&plain, "\"\",\n", &["[]|"]),
            (&plain, "a\"b,c\"\n", &["a\"b|c\""]),
            (&plain, "a\rb,c\r", &["a\rb|c"]),
            (&plain, "\"a\"x,b\nc,d\n", &["!\"a\"x,b", "c|d"]),
            (&plain, "\"a\" ,b\nc,d\n", &["!\"a\" ,b", "c|d"]),
            (&plain, "x\n\"a,b\nc", &["x", "!\"a,b\nc"]),
            (&plain, "\"\"\"\",\"\"\n", &["[\"]|[]"]),
            (&plain, " a , b \n", &[" a | b "]),
            (&plain, "\\N,\"a\\\"\n", &["\\N|[a\\]"]),
            (&escape, "\"a\\\"b\",c\\,d\\\ne\n", &["[a\"b]|c,d\ne"]),
            (&escape, "\\N,\"x\\y\",\\\\\n", &["\\N|[x\\y]|\\"]),
            (&escape, "\"a\"\"b\",\"c\\\\\"\n", &["[a\"b]|[c\\]"]),
        ] {
            assert_eq!(split(input, dialect), expect, "{input:?}");
        }
    }

    #[test]
    fn every_cut_of_the_input_gives_the_same_records() {
        let text = b"1,\"a\r\n,\"\"b\"\r\n\"\",\r\n2,\"x\"y\n3,\\,z\n\r\n4,5";
        for escape in [None, Some(b'\\')] {
            let splitter = Splitter::new(&CsvDialect { escape, ..CsvDialect::default() });
            let (mut whole, mut pieces) = (Vec::new(), Vec::new());
            let mut fields = Vec::new();
            let mut at = 0;
            while at < text.len() {
                let record = splitter.split(&text[at..], true, &mut fields);
                let (Record::Complete { length, .. } | Record::Malformed { length, .. }) = record else {
                    panic!()
                };
                whole.push((at, length, fields.clone()));
                for cut in at..text.len() {
                    let part = splitter.split(&text[at..cut], false, &mut fields);
                    if let Record::Complete { length, .. } | Record::Malformed { length, .. } = part {
                        pieces.push((at, length, fields.clone()));
                    }
                }
                at += length;
            }
            for piece in pieces {
                assert!(whole.contains(&piece), "{piece:?}");
            }
        }
    }
}
