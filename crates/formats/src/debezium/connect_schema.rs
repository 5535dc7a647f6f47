//! Owns the schema that Kafka Connect's JSON converter writes into messages, as far as it tells what values are.

use super::wrapper::members;
use crate::json::{
    scan::{ScanError, Scanner, Text, Value},
    string::unescape,
};

/// A schema, or a field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Field {
    /// Name of the field.
    pub field: String,
    /// `int32`, `string`, `struct`, …
    pub literal: String,
    /// Semantic name, for example `io.debezium.time.Date`.
    pub semantic: String,
    pub optional: bool,
    pub parameters: Vec<(String, String)>,
    /// Fields of a struct.
    pub fields: Vec<Field>,
}

impl Field {
    /// # Errors
    /// When the text is no schema.
    pub(super) fn parse(raw: &[u8]) -> Result<Self, String> {
        parse(&mut Scanner::new(raw)).map_err(|why| format!("the schema in the message is none: {why}"))
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn child(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.field == name)
    }
}

fn parse(scanner: &mut Scanner<'_>) -> Result<Field, ScanError> {
    let mut out = Field::default();
    if !scanner.take(b'{') {
        // A bare type name inside arrays and maps of old converters.
        scanner.value()?;
        return Ok(out);
    }
    members(scanner, |name, scanner| {
        match name.raw {
            b"fields" => {
                let Value::Container(raw) = scanner.value()? else { return Ok(()) };
                out.fields = fields(raw)?;
            }
            b"parameters" => {
                if let Value::Container(raw) = scanner.value()? {
                    out.parameters = parameters(raw)?;
                }
            }
            name => {
                let value = scanner.value()?;
                match (name, value) {
                    (b"type", Value::Text(text)) => out.literal = owned(text)?,
                    (b"name", Value::Text(text)) => out.semantic = owned(text)?,
                    (b"field", Value::Text(text)) => out.field = owned(text)?,
                    (b"optional", value) => out.optional = value == Value::Boolean(true),
                    // Defaults may be of any type; a default is no value of a row.
                    _ => {}
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

fn fields(raw: &[u8]) -> Result<Vec<Field>, ScanError> {
    let mut scanner = Scanner::new(raw);
    let mut out = Vec::new();
    if !scanner.take(b'[') {
        return Err("`fields` is no array");
    }
    if scanner.take(b']') {
        return Ok(out);
    }
    loop {
        out.push(parse(&mut scanner)?);
        if !scanner.take(b',') {
            break;
        }
    }
    Ok(out)
}

fn parameters(raw: &[u8]) -> Result<Vec<(String, String)>, ScanError> {
    let mut scanner = Scanner::new(raw);
    let mut out = Vec::new();
    if !scanner.take(b'{') {
        return Err("`parameters` is no object");
    }
    members(&mut scanner, |name, scanner| {
        let value = match scanner.value()? {
            Value::Text(text) => owned(text)?,
            Value::Number(raw) => String::from_utf8_lossy(raw).into_owned(),
            _ => String::new(),
        };
        out.push((owned(name)?, value));
        Ok(())
    })?;
    Ok(out)
}

/// What a scanned text means.
pub(super) fn owned(text: Text<'_>) -> Result<String, ScanError> {
    let mut bytes = Vec::new();
    if text.escaped {
        unescape(text.raw, &mut bytes)?;
    } else {
        bytes.extend_from_slice(text.raw);
    }
    String::from_utf8(bytes).map_err(|_| "text is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fm_06_a_schema_with_defaults_of_every_type_is_read() {
        let text = r#"{"type":"struct","name":"a.b.t.Value","optional":true,"fields":[
            {"type":"int32","optional":false,"default":7,"field":"i"},
            {"type":"boolean","optional":true,"default":false,"field":"b"},
            {"type":"string","optional":true,"name":"io.debezium.time.ZonedTimestamp","version":1,"default":"1970-01-01T00:00:00Z","field":"t"},
            {"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"},"default":"AA==","field":"d"},
            {"type":"array","items":{"type":"string","optional":true},"optional":true,"default":["x"],"field":"\u0061"},
            {"type":"struct","fields":[],"default":{"x":null},"field":"s"}]}"#;
        let schema = Field::parse(text.as_bytes()).unwrap();
        let names: Vec<&str> = schema.fields.iter().map(|f| f.field.as_str()).collect();
        assert_eq!(names, ["i", "b", "t", "d", "a", "s"]);
        assert_eq!(schema.child("d").unwrap().parameter("scale"), Some("2"));
        assert!(!schema.child("i").unwrap().optional && schema.child("b").unwrap().optional);
        assert_eq!(schema.child("t").unwrap().semantic, "io.debezium.time.ZonedTimestamp");
    }

    #[test]
    fn what_is_no_schema_is_an_error() {
        for text in [r#"{"fields":{}}"#, r#"{"fields":[{]}"#, r#"{"parameters":[]}"#, r#"{"type":"\ud800"}"#]
        {
            assert!(Field::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
