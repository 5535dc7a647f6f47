//! Owns the JSON-lines decoder: lines straight into columns.

use std::sync::Arc;

use canalis_batch::{ColumnBuilder, ValueError};
use canalis_types::{LogicalType, Result, TableSchema};

use super::{
    scan::{ScanError, Scanner, Text, Value},
    string::unescape,
};
use crate::{
    BatchLimits, DecodedRows, InputEnd, Place, RecordDecoder, ValueDecoder,
    decode::{Oversized, RowGatherer},
    text::{expand_exponent, refuse},
};

/// What happens to members that are no columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownMembers {
    /// The line does not decode.
    Refuse,
    /// They are left out.
    Ignore,
}

/// How a [`JsonDecoder`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDecoderOptions {
    /// Members that are no columns.
    pub unknown: UnknownMembers,
    /// Bytes of the longest line that is taken.
    pub max_record_bytes: usize,
}

impl Default for JsonDecoderOptions {
    fn default() -> Self {
        Self { unknown: UnknownMembers::Refuse, max_record_bytes: 64 << 20 }
    }
}

/// Decodes JSON lines by a table's structure. A missing member is NULL; empty lines are passed over.
#[derive(Debug)]
pub struct JsonDecoder {
    rows: RowGatherer,
    options: JsonDecoderOptions,
    columns: Vec<MemberDecoder>,
    oversized: Option<Oversized>,
    seen: Vec<bool>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct MemberDecoder {
    name: Vec<u8>,
    form: Form,
    value: ValueDecoder,
}

/// What a member may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Boolean,
    Whole,
    Decimal,
    Float,
    Document,
    Text,
}

impl JsonDecoder {
    /// A decoder of tables of this structure whose input begins at `start`.
    pub fn new(
        schema: Arc<TableSchema>,
        options: JsonDecoderOptions,
        start: Place,
        limits: BatchLimits,
    ) -> Self {
        use LogicalType as L;
        let member = |column: &canalis_types::Column| MemberDecoder {
            name: column.name.clone().into_bytes(),
            form: match column.ty {
                L::Boolean => Form::Boolean,
                L::Int8 | L::Int16 | L::Int32 | L::Int64 | L::Year | L::Bit { .. } => Form::Whole,
                L::UInt8 | L::UInt16 | L::UInt32 | L::UInt64 => Form::Whole,
                L::Decimal { .. } => Form::Decimal,
                L::Float32 | L::Float64 => Form::Float,
                L::Json => Form::Document,
                _ => Form::Text,
            },
            value: ValueDecoder::new(column),
        };
        Self {
            columns: schema.columns.iter().map(member).collect(),
            seen: vec![false; schema.columns.len()],
            rows: RowGatherer::new(schema, limits, start),
            options,
            oversized: None,
            scratch: Vec::new(),
        }
    }

    fn line(&mut self, line: &[u8]) {
        // First of all, because a line that comes in pieces is too long before it is known to be blank.
        if line.len() > self.options.max_record_bytes {
            return self.oversized_line(Oversized::new(self.rows.place, line, self.options.max_record_bytes));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.seen.fill(false);
        let members = self.members(line);
        let outcome = members.and_then(|()| self.fill_missing());
        match outcome {
            Ok(()) => self.rows.end_row(line),
            Err(reason) => {
                for (index, seen) in self.seen.iter().enumerate() {
                    if !seen {
                        self.rows.builder.column(index).append_null();
                    }
                }
                self.rows.end_bad_row(line, reason);
            }
        }
    }

    fn members(&mut self, line: &[u8]) -> Result<(), String> {
        let syntax = |why: ScanError| format!("line is not a JSON object: {why}");
        let mut scanner = Scanner::new(line);
        if !scanner.take(b'{') {
            return Err(syntax("expected an opening brace"));
        }
        let mut expected = 0;
        if !scanner.take(b'}') {
            loop {
                let name = scanner.name().map_err(syntax)?;
                let value = scanner.value().map_err(syntax)?;
                match self.find(name, expected)? {
                    Some(index) => {
                        self.member(index, value)?;
                        expected = index + 1;
                    }
                    None if self.options.unknown == UnknownMembers::Ignore => {}
                    None => {
                        let name = String::from_utf8_lossy(name.raw);
                        return Err(format!("member `{name}` is no column of {}", self.rows.schema().id));
                    }
                }
                if scanner.take(b'}') {
                    break;
                }
                if !scanner.take(b',') {
                    return Err(syntax("expected a comma or a closing brace"));
                }
            }
        }
        scanner.end().map_err(syntax)
    }

    /// The column of a member: nearly always the one after the last.
    fn find(&mut self, name: Text<'_>, expected: usize) -> Result<Option<usize>, String> {
        let name = if name.escaped {
            unescape(name.raw, &mut self.scratch).map_err(str::to_owned)?;
            self.scratch.as_slice()
        } else {
            name.raw
        };
        if self.columns.get(expected).is_some_and(|c| c.name == name) {
            return Ok(Some(expected));
        }
        Ok(self.columns.iter().position(|c| c.name == name))
    }

    fn member(&mut self, index: usize, value: Value<'_>) -> Result<(), String> {
        let column = &self.columns[index];
        let name = || String::from_utf8_lossy(&column.name);
        if self.seen[index] {
            return Err(format!("member `{}` stands twice", name()));
        }
        let builder = self.rows.builder.column(index);
        append(column, builder, value, &mut self.scratch).map_err(|e| format!("column `{}`: {e}", name()))?;
        self.seen[index] = true;
        Ok(())
    }

    fn fill_missing(&mut self) -> Result<(), String> {
        for (index, column) in self.columns.iter().enumerate() {
            if !self.seen[index] {
                let name = || String::from_utf8_lossy(&column.name);
                column
                    .value
                    .append_null(self.rows.builder.column(index))
                    .map_err(|e| format!("column `{}` is missing: {e}", name()))?;
                self.seen[index] = true;
            }
        }
        Ok(())
    }

    fn oversized_line(&mut self, line: Oversized) {
        let reason = format!("line is longer than {} bytes", self.options.max_record_bytes);
        self.rows.fail_at(line.place, &line.kept, reason);
    }
}

fn append(
    column: &MemberDecoder,
    builder: &mut ColumnBuilder,
    value: Value<'_>,
    scratch: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let decoder = &column.value;
    match (value, column.form) {
        (Value::Null, _) => decoder.append_null(builder),
        (Value::Boolean(value), Form::Boolean) => {
            decoder.append(builder, if value { b"true" } else { b"false" })
        }
        (Value::Number(number), Form::Whole) => decoder.append(builder, &whole(number)?),
        (Value::Number(number), Form::Decimal) => decoder.append(builder, &expand_exponent(number)?),
        (Value::Number(number), Form::Float) => decoder.append(builder, number),
        (Value::Container(raw), Form::Document) => decoder.append(builder, raw),
        (Value::Number(raw), Form::Document) => decoder.append(builder, raw),
        (Value::Boolean(value), Form::Document) => {
            decoder.append(builder, if value { b"true" } else { b"false" })
        }
        (Value::Text(text), _) if text.escaped => {
            unescape(text.raw, scratch).map_err(refuse)?;
            decoder.append(builder, scratch)
        }
        (Value::Text(text), _) => decoder.append(builder, text.raw),
        (Value::Boolean(_), _) => Err(refuse("a boolean does not fit the column's type")),
        (Value::Number(_), _) => Err(refuse("a number does not fit the column's type; it must be a string")),
        (Value::Container(_), _) => Err(refuse(
            "an object or array does not fit the column's type; declare the column as JSON to keep it",
        )),
    }
}

/// A whole number out of a JSON number, which may be written as `1.0` or `1e3`.
fn whole(number: &[u8]) -> Result<std::borrow::Cow<'_, [u8]>, ValueError> {
    let mut number = expand_exponent(number)?;
    if let Some(point) = memchr::memchr(b'.', &number) {
        if number[point + 1..].iter().any(|b| *b != b'0') {
            return Err(refuse("number is not whole"));
        }
        match &mut number {
            std::borrow::Cow::Borrowed(text) => *text = &text[..point],
            std::borrow::Cow::Owned(text) => text.truncate(point),
        }
    }
    Ok(number)
}

impl RecordDecoder for JsonDecoder {
    fn decode(&mut self, input: &[u8], end: InputEnd) -> Result<usize> {
        let mut taken = 0;
        if self.rows.place.offset == 0 && input.starts_with(b"\xef\xbb\xbf") {
            self.rows.advance(3, 0);
            taken = 3;
        }
        while !self.rows.is_full() && taken < input.len() {
            let rest = &input[taken..];
            let (length, skip) = match memchr::memchr(b'\n', rest) {
                Some(length) => (length, length + 1),
                None if end == InputEnd::Last => (rest.len(), rest.len()),
                None if self.oversized.is_some() || rest.len() > self.options.max_record_bytes => {
                    let (place, allowed) = (self.rows.place, self.options.max_record_bytes);
                    self.oversized.get_or_insert_with(|| Oversized::new(place, rest, allowed));
                    self.rows.advance(rest.len(), 0);
                    return Ok(input.len());
                }
                None => break,
            };
            match self.oversized.take() {
                Some(line) => self.oversized_line(line),
                None => self.line(&rest[..length]),
            }
            self.rows.advance(skip, 1);
            taken += skip;
        }
        if end == InputEnd::Last
            && taken == input.len()
            && let Some(line) = self.oversized.take()
        {
            self.oversized_line(line);
        }
        Ok(taken)
    }

    fn is_full(&self) -> bool {
        self.rows.is_full()
    }

    fn place(&self) -> Place {
        self.rows.place
    }

    fn take(&mut self) -> Result<DecodedRows> {
        self.rows.take()
    }
}
