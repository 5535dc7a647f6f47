//! Owns the JSON-lines encoder.

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, TableSchema};

use super::string::write_string;
use crate::{
    ChangeColumn, RowEncoder,
    cells::{Cells, TimeForm, Values},
    json,
};

/// How decimals are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalForm {
    /// `"12.50"`: nothing that reads it can round.
    String,
    /// `12.50`: exact text, which many readers round to 53 bits.
    Number,
}

/// How a [`JsonEncoder`] writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonEncoderOptions {
    /// Decimals.
    pub decimals: DecimalForm,
    /// Row kinds.
    pub changes: ChangeColumn,
}

impl Default for JsonEncoderOptions {
    fn default() -> Self {
        Self { decimals: DecimalForm::String, changes: ChangeColumn::Absent }
    }
}

/// Writes rows of one structure as JSON lines. A cell that the source left unchanged is left out of its object.
#[derive(Debug)]
pub struct JsonEncoder {
    decimals: DecimalForm,
    /// `"name":` of the row kind.
    kind_name: Option<Vec<u8>>,
    /// `"name":` of every column.
    names: Vec<Vec<u8>>,
}

impl JsonEncoder {
    /// An encoder for tables with these columns.
    pub fn new(schema: &TableSchema, options: &JsonEncoderOptions) -> Self {
        let member = |name: &str| {
            let mut out = Vec::new();
            write_string(&mut out, name.as_bytes());
            out.push(b':');
            out
        };
        Self {
            decimals: options.decimals,
            kind_name: match &options.changes {
                ChangeColumn::Absent => None,
                ChangeColumn::Named(name) => Some(member(name)),
            },
            names: schema.columns.iter().map(|c| member(&c.name)).collect(),
        }
    }
}

impl JsonEncoder {
    /// Appends one row; `columns` are those of `batch`.
    pub(crate) fn write_object(
        &self,
        batch: &ChangeBatch,
        columns: &[Cells<'_>],
        row: usize,
        out: &mut Vec<u8>,
    ) {
        out.push(b'{');
        let mut separate = false;
        if let Some(name) = &self.kind_name {
            out.extend_from_slice(name);
            write_string(out, batch.kinds()[row].symbol().as_bytes());
            separate = true;
        }
        for (index, (cells, name)) in columns.iter().zip(&self.names).enumerate() {
            if batch.is_unchanged(index, row) {
                continue;
            }
            if separate {
                out.push(b',');
            }
            separate = true;
            out.extend_from_slice(name);
            write_cell(cells, row, self.decimals, out);
        }
        out.push(b'}');
    }

    /// Appends an object of these columns only.
    pub(crate) fn write_columns(&self, columns: &[Cells<'_>], of: &[usize], row: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        for (at, index) in of.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&self.names[*index]);
            write_cell(&columns[*index], row, self.decimals, out);
        }
        out.push(b'}');
    }
}

impl RowEncoder for JsonEncoder {
    fn write_head(&self, _out: &mut Vec<u8>) {}

    fn write_rows(
        &self,
        batch: &ChangeBatch,
        rows: &mut dyn Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let columns = open_columns(batch)?;
        if columns.len() != self.names.len() {
            return Err(Error::internal(format!("rows of {} have another structure", batch.schema().id)));
        }
        for row in rows {
            self.write_object(batch, &columns, row, out);
            out.push(b'\n');
        }
        Ok(())
    }

    fn refusal(&self, _batch: &ChangeBatch, _row: usize) -> Option<String> {
        None
    }
}

/// Appends one row as a JSON object without a line break.
///
/// # Errors
/// Internal when an array is not of its type's physical form.
pub fn write_row(batch: &ChangeBatch, row: usize, decimals: DecimalForm, out: &mut Vec<u8>) -> Result<()> {
    let options = JsonEncoderOptions { decimals, changes: ChangeColumn::Absent };
    JsonEncoder::new(batch.schema(), &options).write_rows(batch, &mut std::iter::once(row), out)?;
    out.pop();
    Ok(())
}

/// The columns of a batch, ready for row-wise access.
pub(crate) fn open_columns(batch: &ChangeBatch) -> Result<Vec<Cells<'_>>> {
    let columns = batch.rows().columns().iter().zip(&batch.schema().columns);
    columns.map(|(array, column)| Cells::new(array, &column.ty)).collect()
}

/// Appends the JSON value of one cell.
fn write_cell(cells: &Cells<'_>, row: usize, decimals: DecimalForm, out: &mut Vec<u8>) {
    if cells.is_null(row) {
        out.extend_from_slice(b"null");
        return;
    }
    let bare = match &cells.values {
        Values::Text(texts) => return write_string(out, texts.value(row).as_bytes()),
        Values::Json(texts) => return write_document(out, texts.value(row).as_bytes()),
        // Not-a-number and the infinities are no JSON numbers.
        Values::Float32(numbers) => numbers.value(row).is_finite(),
        Values::Float64(numbers) => numbers.value(row).is_finite(),
        Values::Decimal128(..) | Values::Decimal256(..) => decimals == DecimalForm::Number,
        Values::Date(_)
        | Values::Time(..)
        | Values::Timestamp(..)
        | Values::Instant(..)
        | Values::Binary(_) => false,
        _ => true,
    };
    if bare {
        cells.values.write(row, TimeForm::Iso, out);
    } else {
        out.push(b'"');
        cells.values.write(row, TimeForm::Iso, out);
        out.push(b'"');
    }
}

/// Embeds objects and arrays; everything else becomes a string with the text in it (see the module's documentation).
fn write_document(out: &mut Vec<u8>, text: &[u8]) {
    let embeddable = matches!(text.first(), Some(b'{' | b'['))
        && matches!(text.last(), Some(b'}' | b']'))
        && memchr::memchr2(b'\n', b'\r', text).is_none()
        && json::is_valid(text);
    if embeddable {
        out.extend_from_slice(text);
    } else {
        write_string(out, text);
    }
}
