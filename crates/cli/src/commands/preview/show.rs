//! Owns the two forms of a record on its way: text with four labelled parts, and JSON.

use std::fmt::Write;

use canalis_batch::{ChangeBatch, cell_to_json};
use canalis_connector_api::{DeadLetter, Decoded, RawRecord};
use serde_json::{Map, Value, json};

use super::Journey;

/// Width of the labels.
const LABEL: usize = 13;
/// Characters of one value that are shown in text form.
const LONGEST: usize = 2000;
/// What stands for a cell that the source has not sent.
const UNCHANGED: &str = "(unchanged)";

/// The JSON form.
pub fn json(journey: &Journey) -> Value {
    let record = &journey.record;
    let mut out = Map::new();
    out.insert("place".into(), record.place.clone().into());
    if let Some(raw) = &record.raw {
        let bytes = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(bytes_json);
        let mut parts = Map::new();
        if let Some(key) = bytes(&raw.key) {
            parts.insert("key".into(), key);
        }
        parts.insert("value".into(), bytes(&raw.value).unwrap_or_default());
        if let Some(millis) = raw.timestamp_ms {
            parts.insert("timestamp-ms".into(), millis.into());
        }
        out.insert("raw".into(), Value::Object(parts));
    }
    if !record.structure.is_empty() {
        out.insert("structure".into(), json!(record.structure));
    }
    match &record.decoded {
        Decoded::Rows(batches) => out.insert("decoded".into(), rows_json(batches)),
        Decoded::Undecodable(letter) => out.insert("undecodable".into(), json!(letter)),
    };
    out.insert("transformed".into(), rows_json(&journey.transformed));
    out.insert("filtered".into(), journey.filtered.into());
    out.insert("sink".into(), json!(journey.statements));
    out.insert("refused".into(), json!(journey.refused));
    if let Some(error) = &journey.stop {
        out.insert("stop".into(), json!({ "code": error.code().to_string(), "error": error.to_string() }));
    }
    Value::Object(out)
}

/// Text as it is; other bytes as hexadecimal digits.
fn bytes_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": hex(bytes) }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing into a string does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn rows_json(batches: &[ChangeBatch]) -> Value {
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| {
            let mut cells = Map::new();
            let mut unchanged = Vec::new();
            for (index, column) in batch.schema().columns.iter().enumerate() {
                if batch.is_unchanged(index, row) {
                    unchanged.push(column.name.clone());
                } else {
                    let cell = cell_to_json(batch.rows().column(index), &column.ty, row);
                    cells.insert(column.name.clone(), cell);
                }
            }
            let mut out = json!({
                "table": batch.schema().id.to_string(),
                "kind": batch.kinds()[row].symbol(),
                "row": cells,
            });
            if !unchanged.is_empty() {
                out["unchanged"] = json!(unchanged);
            }
            out
        })
    });
    rows.collect()
}

/// The text form, lines of it.
pub fn text(journey: &Journey, number: usize, of: usize) -> String {
    let record = &journey.record;
    let mut out = format!("{number} of {of}: {}\n", record.place);
    part(&mut out, "source", &source_lines(record.raw.as_ref()));
    let mut decoded: Vec<String> =
        record.structure.iter().map(|change| format!("structure: {change}")).collect();
    match &record.decoded {
        Decoded::Rows(batches) => {
            decoded.extend(row_lines(batches));
            if decoded.is_empty() {
                decoded.push("no rows: the record carries none".to_owned());
            }
        }
        Decoded::Undecodable(letter) => decoded.push(refusal_line("does not decode", letter)),
    }
    part(&mut out, "decoded", &decoded);
    let mut transformed = row_lines(&journey.transformed);
    if journey.filtered > 0 {
        transformed.push(format!("filtered out: {}", journey.filtered));
    }
    part(&mut out, "transformed", &or_nothing(transformed));
    let mut sink: Vec<String> = journey
        .statements
        .iter()
        .flat_map(|statement| statement.lines().map(shortened).collect::<Vec<_>>())
        .collect();
    sink.extend(journey.refused.iter().map(|letter| refusal_line("refused", letter)));
    if let Some(error) = &journey.stop {
        sink.push(format!("the job would stop: {error}"));
    }
    part(&mut out, "sink", &or_nothing(sink));
    out
}

fn or_nothing(mut lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines
}

fn part(out: &mut String, label: &str, lines: &[String]) {
    for (index, line) in lines.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        out.push_str(format!("  {label:<LABEL$}{line}").trim_end());
        out.push('\n');
    }
}

fn refusal_line(what: &str, letter: &DeadLetter) -> String {
    format!("{what}: {} ({}, table {})", letter.reason, letter.code, letter.table)
}

fn source_lines(raw: Option<&RawRecord>) -> Vec<String> {
    let Some(raw) = raw else { return vec!["(rows of its own making)".to_owned()] };
    let mut lines = Vec::new();
    if let Some(key) = &raw.key {
        lines.push(format!("key, {} bytes: {}", key.len(), bytes_text(key)));
    }
    match &raw.value {
        Some(value) => lines.push(format!("{} bytes: {}", value.len(), bytes_text(value))),
        None => lines.push("no payload (tombstone)".to_owned()),
    }
    lines
}

/// Text with what cannot be seen escaped; other bytes as hexadecimal digits.
fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => shortened(text),
        Err(_) => shortened(&format!("0x{}", hex(bytes))),
    }
}

/// A line of bounded length whose control characters are visible and move no cursor.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// For each row its kind and table, then a line a column, values aligned.
fn row_lines(batches: &[ChangeBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let width = schema.columns.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
        for row in 0..batch.num_rows() {
            lines.push(format!("{} {}", batch.kinds()[row].symbol(), schema.id));
            for (index, column) in schema.columns.iter().enumerate() {
                let value = if batch.is_unchanged(index, row) {
                    UNCHANGED.to_owned()
                } else {
                    match canalis_batch::cell_to_text(batch.rows().column(index), &column.ty, row) {
                        Some(text) => shortened(&text),
                        None => "NULL".to_owned(),
                    }
                };
                lines.push(format!("  {:<width$}  {value}  ({})", column.name, column.ty));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_long_values_cut() {
        assert_eq!(shortened("a\u{1b}[2J\tb"), "a\\u{1b}[2J\\tb");
        let long = shortened(&"é".repeat(LONGEST + 1));
        assert_eq!(long.chars().count(), LONGEST + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn bytes_that_are_no_text_are_hexadecimal() {
        assert_eq!(bytes_text(&[0xff, 0x0a]), "0xff0a");
        assert_eq!(bytes_json(b"\xff\x0a"), json!({ "hex": "ff0a" }));
        assert_eq!(bytes_text("naïve".as_bytes()), "naïve");
    }
}
