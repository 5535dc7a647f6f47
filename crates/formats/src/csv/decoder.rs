//! Owns the CSV decoder: records straight into columns.

use std::sync::Arc;

use canalis_types::{Code, Error, Result, TableSchema};

use super::{
    CsvDialect,
    fields::{FieldsDecoder, FieldsError},
    split::{Record, Splitter},
};
use crate::{
    BatchLimits, DecodedRows, InputEnd, Place, RecordDecoder,
    decode::{Oversized, RowGatherer},
};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Column names.
    pub names: Vec<String>,
    /// Where the second record begins.
    pub end: Place,
}

/// Reads the header at the front of a file; `None` when it is not whole in `input` and more may follow.
///
/// # Errors
/// `CNL-2006` when there is none, it is malformed or a name is not UTF-8 or stands twice.
pub fn read_header(input: &[u8], dialect: &CsvDialect, end: InputEnd) -> Result<Option<Header>> {
    let wrong = |why: &str| Error::new(Code::SourceUndecodable, format!("cannot read the CSV header: {why}"));
    let mark = if input.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let input = &input[mark..];
    let splitter = Splitter::new(dialect);
    let mut fields = Vec::new();
    let length = match splitter.split(input, end == InputEnd::Last, &mut fields) {
        Record::Complete { content: 0, .. } => return Err(wrong("the first line is empty")),
        Record::Complete { length, .. } => length,
        Record::Malformed { reason, .. } => return Err(wrong(reason)),
        Record::Incomplete { .. } if input.len() > dialect.max_record_bytes => {
            return Err(wrong("the first record is too long"));
        }
        Record::Incomplete { .. } => return Ok(None),
    };
    let mut names: Vec<String> = Vec::with_capacity(fields.len());
    let mut scratch = Vec::new();
    for field in &fields {
        splitter.unescape(&input[field.start..field.end], field.quoted, &mut scratch);
        let name = std::str::from_utf8(&scratch).map_err(|_| wrong("a name is not UTF-8"))?.to_owned();
        if name.is_empty() {
            return Err(wrong("a name is empty"));
        }
        if names.contains(&name) {
            return Err(wrong(&format!("`{name}` stands twice")));
        }
        names.push(name);
    }
    let line = 1 + count_lines(&input[..length], dialect.line_end.byte()) as u64;
    Ok(Some(Header { names, end: Place { offset: (mark + length) as u64, line } }))
}

fn count_lines(bytes: &[u8], line_end: u8) -> usize {
    memchr::memchr_iter(line_end, bytes).count()
}

/// Decodes CSV records by a table's structure.
#[derive(Debug)]
pub struct CsvDecoder {
    rows: RowGatherer,
    fields: FieldsDecoder,
    line_end: u8,
    max_record_bytes: usize,
    /// An oversized record that is being passed over, and whether it stands inside quotes.
    oversized: Option<(Oversized, bool)>,
}

impl CsvDecoder {
    /// A decoder of tables of this structure whose input begins at `start`, behind the header if there is one. Fields
    /// belong to columns by the header's names, without one by their order.
    ///
    /// # Errors
    /// `CNL-2006` when header and structure do not have the same columns.
    pub fn new(
        schema: Arc<TableSchema>,
        dialect: &CsvDialect,
        header: Option<&[String]>,
        start: Place,
        limits: BatchLimits,
    ) -> Result<Self> {
        let order = match header {
            None => (0..schema.columns.len()).collect(),
            Some(names) => match_columns(&schema, names)?,
        };
        Ok(Self {
            fields: FieldsDecoder::new(&schema, dialect, &order),
            rows: RowGatherer::new(schema, limits, start),
            line_end: dialect.line_end.byte(),
            max_record_bytes: dialect.max_record_bytes,
            oversized: None,
        })
    }

    /// Puts the fields of a whole record into the columns.
    fn record(&mut self, record: &[u8]) {
        match self.fields.append(record, &mut self.rows.builder) {
            Ok(()) => self.rows.end_row(record),
            Err(FieldsError::Count(reason)) => self.rows.fail(record, reason),
            Err(FieldsError::Value(reason)) => self.rows.end_bad_row(record, reason),
        }
    }

    pub(crate) fn gatherer(&mut self) -> &mut RowGatherer {
        &mut self.rows
    }

    /// Where an oversized record begins that is being passed over.
    pub(crate) fn oversized(&self) -> Option<Place> {
        self.oversized.as_ref().map(|(record, _)| record.place)
    }

    fn oversized_record(&mut self, record: Oversized) {
        let reason = format!("record is longer than {} bytes", self.max_record_bytes);
        self.rows.fail_at(record.place, &record.kept, reason);
    }

    /// Passes over the rest of an oversized record. Returns the bytes passed and whether its end was among them.
    fn pass_over(&mut self, input: &[u8], last: bool) -> (usize, bool) {
        let Some((record, mut in_quotes)) = self.oversized.take() else { return (0, true) };
        let (length, ended) = self.fields.splitter.pass_over(input, last, &mut in_quotes);
        if ended {
            self.oversized_record(record);
        } else {
            self.oversized = Some((record, in_quotes));
        }
        self.rows.advance(length, count_lines(&input[..length], self.line_end));
        (length, ended)
    }
}

/// For each field of the header at the front of a whole `input`, its column; and the header's bytes, a byte-order mark before it
/// included.
///
/// # Errors
/// Those of [`read_header`] and [`CsvDecoder::new`].
pub(crate) fn header_order(
    schema: &TableSchema,
    dialect: &CsvDialect,
    input: &[u8],
) -> Result<(Vec<usize>, usize)> {
    let header = read_header(input, dialect, InputEnd::Last)?
        .ok_or_else(|| Error::internal("a header at the end of the input is not whole"))?;
    let length = usize::try_from(header.end.offset).unwrap_or(input.len());
    Ok((match_columns(schema, &header.names)?, length))
}

/// For each name of a header, the column of that name.
fn match_columns(schema: &TableSchema, names: &[String]) -> Result<Vec<usize>> {
    let wrong =
        |why: String| Error::new(Code::SourceUndecodable, format!("cannot read {}: {why}", schema.id));
    let mut order = Vec::with_capacity(names.len());
    for name in names {
        let column = schema.column_index(name).ok_or_else(|| {
            wrong(format!("the header has `{name}`, the declared structure has no such column"))
        })?;
        order.push(column);
    }
    for (index, column) in schema.columns.iter().enumerate() {
        if !order.contains(&index) {
            return Err(wrong(format!("the header lacks the declared column `{}`", column.name)));
        }
    }
    Ok(order)
}

impl RecordDecoder for CsvDecoder {
    fn decode(&mut self, input: &[u8], end: InputEnd) -> Result<usize> {
        let last = end == InputEnd::Last;
        let mut taken = 0;
        if self.rows.place.offset == 0 && input.starts_with(BYTE_ORDER_MARK) {
            taken = BYTE_ORDER_MARK.len();
            self.rows.advance(taken, 0);
        }
        if self.oversized.is_some() {
            let (length, ended) = self.pass_over(&input[taken..], last);
            taken += length;
            if !ended {
                return Ok(taken);
            }
        }
        while !self.rows.is_full() && taken < input.len() {
            let rest = &input[taken..];
            let (length, lines) = match self.fields.split(rest, last) {
                Record::Complete { length, content } => {
                    if content > 0 || self.fields.count() == 1 {
                        if content > self.max_record_bytes {
                            self.oversized_record(Oversized::new(
                                self.rows.place,
                                &rest[..content],
                                self.max_record_bytes,
                            ));
                        } else {
                            self.record(&rest[..content]);
                        }
                    }
                    let lines_inside = self.fields.may_span_lines();
                    (length, if lines_inside { count_lines(&rest[..length], self.line_end) } else { 1 })
                }
                Record::Malformed { length, reason } => {
                    self.rows.fail(&rest[..length.min(self.max_record_bytes)], reason.to_owned());
                    (length, count_lines(&rest[..length], self.line_end))
                }
                Record::Incomplete { clear, in_quotes } if rest.len() > self.max_record_bytes => {
                    let record = Oversized::new(self.rows.place, rest, self.max_record_bytes);
                    self.oversized = Some((record, in_quotes));
                    self.rows.advance(clear, count_lines(&rest[..clear], self.line_end));
                    taken += clear;
                    break;
                }
                Record::Incomplete { .. } => break,
            };
            self.rows.advance(length, lines);
            taken += length;
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
