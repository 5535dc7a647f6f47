//! Owns cutting `{"schema":…,"payload":…}` apart, with a schema that was seen before passed over by comparing its bytes.

use crate::json::scan::{ScanError, Scanner, Text, Value};

/// A message, its scanner in front of the payload.
pub(super) struct Wrapped<'a> {
    pub scanner: Scanner<'a>,
    /// The schema with its brackets; `None` when there is none or it is null.
    pub schema: Option<&'a [u8]>,
    /// A brace follows the payload.
    pub braced: bool,
}

impl<'a> Wrapped<'a> {
    /// `known` is the schema that is most likely there.
    pub(super) fn open(text: &'a [u8], known: &[u8]) -> Result<Self, ScanError> {
        let mut scanner = Scanner::new(text);
        if scanner.take(b'{') && !scanner.take(b'}') {
            match scanner.name()?.raw {
                b"schema" => {
                    let start = scanner.position();
                    let schema = if !known.is_empty() && scanner.take_all(known) {
                        Some(&text[start..start + known.len()])
                    } else {
                        container(scanner.value()?)
                    };
                    if scanner.take(b',') && scanner.name()?.raw == b"payload" {
                        return Ok(Self { scanner, schema, braced: true });
                    }
                }
                b"payload" => {
                    let Value::Container(payload) = scanner.value()? else { return Ok(Self::bare(text)) };
                    if scanner.take(b',') && scanner.name()?.raw == b"schema" {
                        let schema = container(scanner.value()?);
                        if scanner.take(b'}') {
                            scanner.end()?;
                            return Ok(Self { scanner: Scanner::new(payload), schema, braced: false });
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(Self::bare(text))
    }

    fn bare(text: &'a [u8]) -> Self {
        Self { scanner: Scanner::new(text), schema: None, braced: false }
    }

    /// The end of the message; the scanner is behind the payload.
    pub(super) fn close(&mut self) -> Result<(), ScanError> {
        if self.braced && !self.scanner.take(b'}') {
            return Err("expected a closing brace after the payload");
        }
        self.scanner.end()
    }
}

fn container(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Container(raw) => Some(raw),
        _ => None,
    }
}

/// Hands the members of an object to `each`, which takes their values; the scanner is behind the opening brace.
pub(super) fn members<'a>(
    scanner: &mut Scanner<'a>,
    mut each: impl FnMut(Text<'a>, &mut Scanner<'a>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    if scanner.take(b'}') {
        return Ok(());
    }
    loop {
        let name = scanner.name()?;
        each(name, scanner)?;
        if scanner.take(b'}') {
            return Ok(());
        }
        if !scanner.take(b',') {
            return Err("expected a comma or a closing brace");
        }
    }
}
