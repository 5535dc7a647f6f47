//! Owns the text of cells: lines of `COPY … FROM STDIN` and lists of literals, straight from Arrow columns. Every
//! value is written exactly or its row is refused with the column named.

mod cell;

use arrow_array::{
    Array, BinaryArray, BooleanArray, PrimitiveArray, RecordBatch, StringArray, cast::AsArray, types::*,
};
use arrow_buffer::{NullBuffer, i256};
use arrow_schema::{DataType, TimeUnit};
use canalis_types::{Error, Result};
use memchr::{memchr2, memchr3};

use crate::{
    options::InvalidDatePolicy,
    target::{Target, TargetColumn},
};

/// How cells are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line of COPY's text format.
    Copy,
    /// SQL literals in parentheses.
    Literal,
}

/// Why a row cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Reason with the column named.
    pub reason: String,
}

/// Writes rows of one batch.
pub struct RowEncoder<'a> {
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    values: Values<'a>,
    nulls: Option<&'a NullBuffer>,
    target: &'a TargetColumn,
    dates: InvalidDatePolicy,
}

/// Typed access to an Arrow column.
enum Values<'a> {
    Bool(&'a BooleanArray),
    I8(&'a PrimitiveArray<Int8Type>),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U8(&'a PrimitiveArray<UInt8Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
    F32(&'a PrimitiveArray<Float32Type>),
    F64(&'a PrimitiveArray<Float64Type>),
    D128(&'a PrimitiveArray<Decimal128Type>),
    D256(&'a PrimitiveArray<Decimal256Type>),
    Date(&'a PrimitiveArray<Date32Type>),
    Duration(&'a PrimitiveArray<DurationMicrosecondType>),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    Text(TextColumn<'a>),
    Bytes(&'a BinaryArray),
}

/// A text column with what one scan over all its bytes found, so that clean cells need no scan of their own.
struct TextColumn<'a> {
    array: &'a StringArray,
    has_escapes: bool,
    has_nul: bool,
}

impl<'a> RowEncoder<'a> {
    /// An encoder for the rows of a batch of the target's source table.
    ///
    /// # Errors
    /// Internal for an Arrow type that no column of ours has.
    pub fn new(target: &'a Target, rows: &'a RecordBatch, dates: InvalidDatePolicy) -> Result<Self> {
        let mut columns = Vec::with_capacity(target.columns.len());
        for column in &target.columns {
            let array = rows.column(column.source);
            columns.push(Column {
                values: values(array)?,
                nulls: array.nulls().filter(|n| n.null_count() > 0),
                target: column,
                dates,
            });
        }
        Ok(Self { columns })
    }

    /// Appends the row with all columns; on refusal `out` is as before.
    pub fn row(&self, row: usize, style: Style, out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.write(self.columns.iter(), row, style, out)
    }

    /// Appends the row with some columns; on refusal `out` is as before.
    pub fn some(
        &self,
        columns: &[usize],
        row: usize,
        style: Style,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        self.write(columns.iter().map(|i| &self.columns[*i]), row, style, out)
    }

    /// Appends one literal; `false` when it is NULL. On refusal `out` is as before.
    pub fn literal(&self, column: usize, row: usize, out: &mut Vec<u8>) -> Result<bool, Refusal> {
        let start = out.len();
        let column = &self.columns[column];
        column
            .cell(row, Style::Literal, out)
            .inspect_err(|_| out.truncate(start))
            .map_err(|r| column.refuse(&r))?;
        Ok(out.get(start) == Some(&b'\''))
    }

    fn write<'b>(
        &self,
        columns: impl Iterator<Item = &'b Column<'b>>,
        row: usize,
        style: Style,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal>
    where
        'a: 'b,
    {
        let start = out.len();
        let (open, separator, close): (&[u8], u8, &[u8]) = match style {
            Style::Copy => (b"", b'\t', b"\n"),
            Style::Literal => (b"(", b',', b")"),
        };
        out.extend_from_slice(open);
        for (index, column) in columns.enumerate() {
            if index > 0 {
                out.push(separator);
            }
            if let Err(reason) = column.cell(row, style, out) {
                out.truncate(start);
                return Err(column.refuse(&reason));
            }
        }
        out.extend_from_slice(close);
        Ok(())
    }
}

fn values(array: &dyn Array) -> Result<Values<'_>> {
    Ok(match array.data_type() {
        DataType::Boolean => Values::Bool(array.as_boolean()),
        DataType::Int8 => Values::I8(array.as_primitive()),
        DataType::Int16 => Values::I16(array.as_primitive()),
        DataType::Int32 => Values::I32(array.as_primitive()),
        DataType::Int64 => Values::I64(array.as_primitive()),
        DataType::UInt8 => Values::U8(array.as_primitive()),
        DataType::UInt16 => Values::U16(array.as_primitive()),
        DataType::UInt32 => Values::U32(array.as_primitive()),
        DataType::UInt64 => Values::U64(array.as_primitive()),
        DataType::Float32 => Values::F32(array.as_primitive()),
        DataType::Float64 => Values::F64(array.as_primitive()),
        DataType::Decimal128(..) => Values::D128(array.as_primitive()),
        DataType::Decimal256(..) => Values::D256(array.as_primitive()),
        DataType::Date32 => Values::Date(array.as_primitive()),
        DataType::Duration(TimeUnit::Microsecond) => Values::Duration(array.as_primitive()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Values::Timestamp(array.as_primitive()),
        DataType::Utf8 => Values::Text(text_column(array.as_string())),
        DataType::Binary => Values::Bytes(array.as_binary()),
        other => return Err(Error::internal(format!("a column of {other} cannot be written"))),
    })
}

/// Scans the bytes of a whole column once.
fn text_column(array: &StringArray) -> TextColumn<'_> {
    let offsets = array.value_offsets();
    let at = |o: Option<&i32>| o.and_then(|o| usize::try_from(*o).ok()).unwrap_or(0);
    let bytes = &array.value_data()[at(offsets.first())..at(offsets.last())];
    TextColumn {
        array,
        has_escapes: memchr3(b'\\', b'\n', b'\t', bytes).is_some() || memchr2(b'\r', b'\'', bytes).is_some(),
        has_nul: memchr::memchr(0, bytes).is_some(),
    }
}

/// A decimal of either width.
fn wide(value: i128) -> i256 {
    i256::from_i128(value)
}
