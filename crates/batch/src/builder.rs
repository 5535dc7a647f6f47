//! Owns builders: values go in column by column or row by row, a [`ChangeBatch`] comes out.

use std::{fmt, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, RecordBatch,
    builder::{
        ArrayBuilder, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Decimal256Builder,
        DurationMicrosecondBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
        Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt8Builder, UInt16Builder, UInt32Builder,
        UInt64Builder,
    },
};
use arrow_buffer::i256;
use arrow_schema::SchemaRef;
use canalis_types::{LogicalType, Result, RowKind, TableSchema, temporal};

use crate::{ChangeBatch, arrow_schema};

/// Why a text or number is not a value of a column's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// What was wrong, without the value itself.
    pub reason: String,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ValueError {}

fn refuse(reason: impl Into<String>) -> ValueError {
    ValueError { reason: reason.into() }
}

/// Builder of one column; the variant follows [`crate::arrow_type`].
///
/// Decoders that know the type match on the variant and append to the inner Arrow builder; the
/// `append_*` methods convert exactly or refuse.
#[allow(missing_docs)] // The variants are the Arrow builders of the same name.
#[derive(Debug)]
pub enum ColumnBuilder {
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal128(Decimal128Builder, u8),
    Decimal256(Decimal256Builder, u8),
    Date(Date32Builder),
    Duration(DurationMicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Utf8(StringBuilder),
    Binary(BinaryBuilder),
}

macro_rules! on_builder {
    ($self:expr, $b:ident => $body:expr) => {
        match $self {
            ColumnBuilder::Boolean($b) => $body,
            ColumnBuilder::Int8($b) => $body,
            ColumnBuilder::Int16($b) => $body,
            ColumnBuilder::Int32($b) => $body,
            ColumnBuilder::Int64($b) => $body,
            ColumnBuilder::UInt8($b) => $body,
            ColumnBuilder::UInt16($b) => $body,
            ColumnBuilder::UInt32($b) => $body,
            ColumnBuilder::UInt64($b) => $body,
            ColumnBuilder::Float32($b) => $body,
            ColumnBuilder::Float64($b) => $body,
            ColumnBuilder::Decimal128($b, _) => $body,
            ColumnBuilder::Decimal256($b, _) => $body,
            ColumnBuilder::Date($b) => $body,
            ColumnBuilder::Duration($b) => $body,
            ColumnBuilder::Timestamp($b) => $body,
            ColumnBuilder::Utf8($b) => $body,
            ColumnBuilder::Binary($b) => $body,
        }
    };
}

impl ColumnBuilder {
    /// An empty builder for values of `ty` with room for `rows`.
    pub fn new(ty: &LogicalType, rows: usize) -> Self {
        use LogicalType::*;
        match ty {
            Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            Int8 => Self::Int8(Int8Builder::with_capacity(rows)),
            Int16 => Self::Int16(Int16Builder::with_capacity(rows)),
            Int32 => Self::Int32(Int32Builder::with_capacity(rows)),
            Int64 => Self::Int64(Int64Builder::with_capacity(rows)),
            UInt8 => Self::UInt8(UInt8Builder::with_capacity(rows)),
            UInt16 | Year => Self::UInt16(UInt16Builder::with_capacity(rows)),
            UInt32 => Self::UInt32(UInt32Builder::with_capacity(rows)),
            UInt64 | Bit { .. } => Self::UInt64(UInt64Builder::with_capacity(rows)),
            Float32 => Self::Float32(Float32Builder::with_capacity(rows)),
            Float64 => Self::Float64(Float64Builder::with_capacity(rows)),
            Decimal { precision, scale } if *precision <= 38 => Self::Decimal128(
                Decimal128Builder::with_capacity(rows).with_data_type(crate::arrow_type(ty)),
                *scale,
            ),
            Decimal { scale, .. } => Self::Decimal256(
                Decimal256Builder::with_capacity(rows).with_data_type(crate::arrow_type(ty)),
                *scale,
            ),
            Date => Self::Date(Date32Builder::with_capacity(rows)),
            Time { .. } => Self::Duration(DurationMicrosecondBuilder::with_capacity(rows)),
            Timestamp { .. } | TimestampTz { .. } => Self::Timestamp(
                TimestampMicrosecondBuilder::with_capacity(rows).with_data_type(crate::arrow_type(ty)),
            ),
            Char { .. } | Varchar { .. } | Text | Json | Enum { .. } | Set { .. } | Uuid => {
                Self::Utf8(StringBuilder::with_capacity(rows, rows * 16))
            }
            Binary { .. } | Varbinary { .. } | Bytes | Geometry => {
                Self::Binary(BinaryBuilder::with_capacity(rows, rows * 16))
            }
        }
    }

    /// Appends NULL.
    pub fn append_null(&mut self) {
        on_builder!(self, b => b.append_null());
    }

    /// Values so far.
    pub fn len(&self) -> usize {
        on_builder!(self, b => b.len())
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a signed number, exactly or not at all.
    pub fn append_i64(&mut self, value: i64) -> Result<(), ValueError> {
        self.append_i128(i128::from(value))
    }

    /// Appends an unsigned number, exactly or not at all.
    pub fn append_u64(&mut self, value: u64) -> Result<(), ValueError> {
        self.append_i128(i128::from(value))
    }

    fn append_i128(&mut self, value: i128) -> Result<(), ValueError> {
        fn fit<T: TryFrom<i128>>(value: i128) -> Result<T, ValueError> {
            T::try_from(value).map_err(|_| refuse("number is out of the column's range"))
        }
        match self {
            Self::Int8(b) => b.append_value(fit(value)?),
            Self::Int16(b) => b.append_value(fit(value)?),
            Self::Int32(b) => b.append_value(fit(value)?),
            Self::Int64(b) => b.append_value(fit(value)?),
            Self::UInt8(b) => b.append_value(fit(value)?),
            Self::UInt16(b) => b.append_value(fit(value)?),
            Self::UInt32(b) => b.append_value(fit(value)?),
            Self::UInt64(b) => b.append_value(fit(value)?),
            Self::Boolean(b) if value == 0 || value == 1 => b.append_value(value == 1),
            Self::Decimal128(..) | Self::Decimal256(..) | Self::Utf8(_) => {
                return self.append_text(itoa::Buffer::new().format(value).as_bytes());
            }
            _ => return Err(refuse("a whole number does not fit the column's type")),
        }
        Ok(())
    }

    /// Appends a value from its canonical text: numbers in decimal, dates `YYYY-MM-DD`, date-times
    /// `YYYY-MM-DD HH:MM:SS[.f]`, durations `[-]HH:MM:SS[.f]`, booleans `true/false/1/0`, bytes as they are.
    pub fn append_text(&mut self, text: &[u8]) -> Result<(), ValueError> {
        fn parse<T: std::str::FromStr>(text: &[u8], what: &str) -> Result<T, ValueError> {
            std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse().ok())
                .ok_or_else(|| refuse(format!("text is not {what}")))
        }
        match self {
            Self::Boolean(b) => match text {
                b"1" | b"true" | b"TRUE" | b"True" => b.append_value(true),
                b"0" | b"false" | b"FALSE" | b"False" => b.append_value(false),
                _ => return Err(refuse("text is neither true nor false")),
            },
            Self::Int8(b) => b.append_value(parse(text, "a whole number of 8 bits")?),
            Self::Int16(b) => b.append_value(parse(text, "a whole number of 16 bits")?),
            Self::Int32(b) => b.append_value(parse(text, "a whole number of 32 bits")?),
            Self::Int64(b) => b.append_value(parse(text, "a whole number of 64 bits")?),
            Self::UInt8(b) => b.append_value(parse(text, "an unsigned number of 8 bits")?),
            Self::UInt16(b) => b.append_value(parse(text, "an unsigned number of 16 bits")?),
            Self::UInt32(b) => b.append_value(parse(text, "an unsigned number of 32 bits")?),
            Self::UInt64(b) => b.append_value(parse(text, "an unsigned number of 64 bits")?),
            Self::Float32(b) => b.append_value(parse(text, "a number")?),
            Self::Float64(b) => b.append_value(parse(text, "a number")?),
            Self::Decimal128(b, scale) => {
                let value = unscaled(text, *scale)?.to_i128().ok_or_else(|| refuse("decimal is too long"))?;
                b.append_value(value);
            }
            Self::Decimal256(b, scale) => {
                let value = unscaled(text, *scale)?;
                b.append_value(value);
            }
            Self::Date(b) => {
                b.append_value(temporal::parse_date(text).ok_or_else(|| refuse("text is not a date"))?);
            }
            Self::Duration(b) => {
                b.append_value(
                    temporal::parse_duration(text).ok_or_else(|| refuse("text is not a duration"))?,
                );
            }
            Self::Timestamp(b) => {
                b.append_value(
                    temporal::parse_datetime(text).ok_or_else(|| refuse("text is not a date-time"))?,
                );
            }
            Self::Utf8(b) => {
                b.append_value(std::str::from_utf8(text).map_err(|_| refuse("text is not UTF-8"))?);
            }
            Self::Binary(b) => b.append_value(text),
        }
        Ok(())
    }

    /// Takes the column out and leaves an empty builder.
    pub fn finish(&mut self) -> ArrayRef {
        on_builder!(self, b => Arc::new(b.finish()))
    }
}

/// The unscaled integer of a decimal text at `scale`: `-12.5` at 2 is −1250. More fraction digits than the
/// scale are refused unless they are zeros, so nothing is rounded in silence.
fn unscaled(text: &[u8], scale: u8) -> Result<i256, ValueError> {
    let text = std::str::from_utf8(text).map_err(|_| refuse("decimal is not text"))?;
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty()
        || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
    {
        return Err(refuse("text is not a decimal"));
    }
    let scale = usize::from(scale);
    let (kept, rest) = fraction.split_at(fraction.len().min(scale));
    if rest.bytes().any(|b| b != b'0') {
        return Err(refuse(format!("decimal has more than {scale} fraction digits")));
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() + scale > 76 {
        return Err(refuse("decimal is longer than 76 digits"));
    }
    if whole.len() + scale <= 38 {
        let mut value: i128 = 0;
        for b in whole.bytes().chain(kept.bytes()) {
            value = value * 10 + i128::from(b - b'0');
        }
        for _ in kept.len()..scale {
            value *= 10;
        }
        return Ok(i256::from_i128(if negative { -value } else { value }));
    }
    let mut all = String::with_capacity(80);
    if negative {
        all.push('-');
    }
    all.push_str(whole);
    all.push_str(kept);
    all.extend(std::iter::repeat_n('0', scale - kept.len()));
    i256::from_string(&all).ok_or_else(|| refuse("decimal is longer than 76 digits"))
}

/// Builds batches of one table. Append one value (or NULL) to every column, then [`BatchBuilder::end_row`].
#[derive(Debug)]
pub struct BatchBuilder {
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    columns: Vec<ColumnBuilder>,
    kinds: Vec<RowKind>,
    bytes: usize,
    unchanged: Vec<(u32, u32)>,
    event_time_ms: Option<i64>,
}

impl BatchBuilder {
    /// An empty builder with room for `rows`.
    pub fn new(schema: Arc<TableSchema>, rows: usize) -> Self {
        let columns = schema.columns.iter().map(|c| ColumnBuilder::new(&c.ty, rows)).collect();
        let arrow = arrow_schema(&schema);
        Self {
            schema,
            arrow,
            columns,
            kinds: Vec::with_capacity(rows),
            bytes: 0,
            unchanged: Vec::new(),
            event_time_ms: None,
        }
    }

    /// Structure of the rows.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The builder of column `index`.
    pub fn column(&mut self, index: usize) -> &mut ColumnBuilder {
        &mut self.columns[index]
    }

    /// All column builders.
    pub fn columns(&mut self) -> &mut [ColumnBuilder] {
        &mut self.columns
    }

    /// Appends "unchanged" (held as NULL plus a mark) to column `index` of the current row.
    pub fn append_unchanged(&mut self, index: usize) {
        let row = u32::try_from(self.kinds.len()).expect("batches are far below 2^32 rows");
        self.unchanged.push((u32::try_from(index).expect("few columns"), row));
        self.columns[index].append_null();
    }

    /// Ends the current row; `bytes` is its size for the budget, as far as the caller knows it.
    pub fn end_row(&mut self, kind: RowKind, bytes: usize) {
        self.kinds.push(kind);
        self.bytes += bytes;
    }

    /// Notes the commit time at the source; the newest wins.
    pub fn note_event_time(&mut self, millis: i64) {
        self.event_time_ms = self.event_time_ms.max(Some(millis));
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Kind of the newest row.
    pub fn last_kind(&self) -> Option<RowKind> {
        self.kinds.last().copied()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Bytes so far, as told to [`BatchBuilder::end_row`].
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the rows out and leaves the builder empty.
    ///
    /// # Errors
    /// Internal when columns have different lengths.
    pub fn finish(&mut self) -> Result<ChangeBatch> {
        let arrays: Vec<ArrayRef> = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let kinds = std::mem::take(&mut self.kinds);
        self.bytes = 0;
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        let rows = RecordBatch::try_new_with_options(self.arrow.clone(), arrays, &options).map_err(|e| {
            canalis_types::Error::internal(format!("columns of {} disagree", self.schema.id)).with_source(e)
        })?;
        let length = kinds.len();
        let mut batch =
            ChangeBatch::new(self.schema.clone(), rows, kinds)?.with_event_time(self.event_time_ms.take());
        if !self.unchanged.is_empty() {
            let mut masks: Vec<Option<Vec<bool>>> = vec![None; self.schema.columns.len()];
            for (column, row) in self.unchanged.drain(..) {
                masks[column as usize].get_or_insert_with(|| vec![false; length])[row as usize] = true;
            }
            batch = batch.with_unchanged(masks.into_iter().map(|m| m.map(BooleanArray::from)).collect());
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_to_text;

    #[test]
    fn my_22_long_decimals_are_exact() {
        let ty = LogicalType::Decimal { precision: 65, scale: 30 };
        for text in [
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "0.000000000000000000000000000001",
            "-0.500000000000000000000000000000",
        ] {
            let mut builder = ColumnBuilder::new(&ty, 1);
            builder.append_text(text.as_bytes()).unwrap();
            assert_eq!(cell_to_text(&builder.finish(), &ty, 0).unwrap(), text);
        }
    }

    #[test]
    fn values_are_exact_or_refused() {
        let mut tiny = ColumnBuilder::new(&LogicalType::Int8, 1);
        assert!(tiny.append_i64(300).is_err());
        assert!(tiny.append_text(b"-129").is_err());
        assert!(tiny.append_i64(-128).is_ok());
        let mut decimal = ColumnBuilder::new(&LogicalType::Decimal { precision: 5, scale: 2 }, 1);
        assert!(decimal.append_text(b"1.005").is_err());
        assert!(decimal.append_text(b"1.50000").is_ok());
        assert!(decimal.append_text(b".").is_err());
    }
}
