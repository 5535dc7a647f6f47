//! Owns the CSV encoder.

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, TableSchema};

use super::CsvDialect;
use crate::{
    ChangeColumn, RowEncoder,
    cells::{Cells, TimeForm, Values},
};

/// Writes rows of one structure as CSV. A text is put in quotes when it would not be read back as it is without them.
#[derive(Debug)]
pub struct CsvEncoder {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    line_end: u8,
    null_literal: Vec<u8>,
    head: Vec<u8>,
    with_kind: bool,
    columns: usize,
    /// Bytes that make quotes needed.
    special: Box<[bool; 256]>,
    /// Whether numbers, dates and the like may need quotes too.
    check_all: bool,
}

impl CsvEncoder {
    /// An encoder for tables with these columns.
    pub fn new(schema: &TableSchema, dialect: &CsvDialect, changes: &ChangeColumn) -> Self {
        let mut special = Box::new([false; 256]);
        let bytes = [
            Some(dialect.delimiter),
            Some(dialect.quote),
            dialect.escape,
            Some(b'\n'),
            Some(b'\r'),
            Some(dialect.line_end.byte()),
        ];
        for byte in bytes.into_iter().flatten() {
            special[usize::from(byte)] = true;
        }
        let in_values = |byte: u8| b"+-.:/= ".contains(&byte);
        let mut encoder = Self {
            delimiter: dialect.delimiter,
            quote: dialect.quote,
            escape: dialect.escape,
            line_end: dialect.line_end.byte(),
            null_literal: dialect.null_literal.clone(),
            head: Vec::new(),
            with_kind: *changes != ChangeColumn::Absent,
            columns: schema.columns.len(),
            special,
            check_all: !dialect.null_literal.is_empty() || bytes.into_iter().flatten().any(in_values),
        };
        if dialect.header {
            encoder.head = encoder.header(schema, changes);
        }
        encoder
    }

    fn header(&self, schema: &TableSchema, changes: &ChangeColumn) -> Vec<u8> {
        let kind = match changes {
            ChangeColumn::Absent => None,
            ChangeColumn::Named(name) => Some(name.as_str()),
        };
        let mut out = Vec::new();
        for name in kind.into_iter().chain(schema.columns.iter().map(|c| c.name.as_str())) {
            if !out.is_empty() {
                out.push(self.delimiter);
            }
            self.write_text(name.as_bytes(), &mut out);
        }
        out.push(self.line_end);
        out
    }

    fn needs_quotes(&self, text: &[u8]) -> bool {
        let (Some(first), Some(last)) = (text.first(), text.last()) else { return true };
        first.is_ascii_whitespace()
            || last.is_ascii_whitespace()
            // Three bytes at the front of a file are a byte-order mark.
            || *first == 0xef
            || text == self.null_literal
            || text.iter().any(|b| self.special[usize::from(*b)])
    }

    fn write_text(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.needs_quotes(text) { self.write_quoted(text, out) } else { out.extend_from_slice(text) }
    }

    fn write_quoted(&self, text: &[u8], out: &mut Vec<u8>) {
        out.push(self.quote);
        for byte in text {
            match self.escape {
                None if *byte == self.quote => out.push(self.quote),
                Some(escape) if *byte == self.quote || *byte == escape => out.push(escape),
                _ => {}
            }
            out.push(*byte);
        }
        out.push(self.quote);
    }

    fn write_cell(&self, cells: &Cells<'_>, row: usize, out: &mut Vec<u8>) {
        if cells.is_null(row) {
            out.extend_from_slice(&self.null_literal);
            return;
        }
        match &cells.values {
            Values::Text(texts) | Values::Json(texts) => self.write_text(texts.value(row).as_bytes(), out),
            values => {
                let start = out.len();
                values.write(row, TimeForm::Blank, out);
                // No bytes at all are an empty text, which is not NULL.
                if (self.check_all || out.len() == start) && self.needs_quotes(&out[start..]) {
                    let text = out.split_off(start);
                    self.write_quoted(&text, out);
                }
            }
        }
    }
}

impl CsvEncoder {
    /// Appends the cells of a row with delimiters between.
    pub(crate) fn write_fields<'a>(
        &self,
        columns: impl Iterator<Item = &'a Cells<'a>>,
        row: usize,
        out: &mut Vec<u8>,
    ) {
        for (index, cells) in columns.enumerate() {
            if index > 0 {
                out.push(self.delimiter);
            }
            self.write_cell(cells, row, out);
        }
    }
}

impl RowEncoder for CsvEncoder {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
    }

    fn write_rows(
        &self,
        batch: &ChangeBatch,
        rows: &mut dyn Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let columns = batch.rows().columns().iter().zip(&batch.schema().columns);
        let columns = columns.map(|(array, c)| Cells::new(array, &c.ty)).collect::<Result<Vec<_>>>()?;
        if columns.len() != self.columns {
            return Err(Error::internal(format!("rows of {} have another structure", batch.schema().id)));
        }
        for row in rows {
            if self.with_kind {
                self.write_text(batch.kinds()[row].symbol().as_bytes(), out);
                out.push(self.delimiter);
            }
            self.write_fields(columns.iter(), row, out);
            out.push(self.line_end);
        }
        Ok(())
    }

    fn refusal(&self, batch: &ChangeBatch, row: usize) -> Option<String> {
        batch.unchanged()?;
        let columns = &batch.schema().columns;
        let left_out = (0..columns.len()).find(|column| batch.is_unchanged(*column, row))?;
        Some(format!(
            "column `{}` was left unchanged by the source and its value is not known; CSV cannot say so",
            columns[left_out].name
        ))
    }
}
