//! Owns driving decoders of records, and the demand that what was read can be written and reads back as the same.

use std::sync::Arc;

use canalis_batch::{ChangeBatch, cell_to_text};
use canalis_formats::{
    BatchLimits, ChangeColumn, DecodeFailure, InputEnd, Place, RecordDecoder, RowEncoder,
    csv::{CsvDecoder, CsvDialect, CsvEncoder},
    json::{DecimalForm, JsonDecoder, JsonDecoderOptions, JsonEncoder, JsonEncoderOptions},
};
use canalis_types::{Column, LogicalType, TableId, TableSchema};

/// Small batches, so that their borders are met.
const LIMITS: BatchLimits = BatchLimits { rows: 4, bytes: 64 };

/// Everything that a decoder made of an input.
#[derive(Debug, Default)]
pub struct Read {
    /// Cells of the rows as texts, NULL as `None`.
    pub rows: Vec<Vec<Option<String>>>,
    /// Records that did not decode.
    pub failures: Vec<DecodeFailure>,
    /// The rows as they came.
    pub batches: Vec<ChangeBatch>,
    /// Bytes taken.
    pub offset: u64,
}

impl PartialEq for Read {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.failures == other.failures && self.offset == other.offset
    }
}

/// Feeds `input` in pieces of `piece` bytes and holds the decoder to its contract.
pub fn drive(decoder: &mut dyn RecordDecoder, input: &[u8], piece: usize) -> Read {
    let mut read = Read::default();
    let mut start = offset(decoder);
    let mut end = start;
    loop {
        let last = end == input.len();
        let state = if last { InputEnd::Last } else { InputEnd::Open };
        start += decoder.decode(&input[start..end], state).expect("decoding has internal errors only");
        assert_eq!(offset(decoder), start);
        if decoder.is_full() || (last && start == end) {
            let taken = decoder.take().expect("taking has internal errors only");
            read.failures.extend(taken.failures);
            if let Some(batch) = taken.batch {
                read.rows.extend(cells(&batch));
                read.batches.push(batch);
            }
            if last && start == end {
                read.offset = decoder.place().offset;
                return read;
            }
        } else {
            assert!(!last, "a decoder takes everything at the end");
            end = input.len().min(end + piece);
        }
    }
}

fn offset(decoder: &dyn RecordDecoder) -> usize {
    usize::try_from(decoder.place().offset).expect("inputs are small")
}

fn cells(batch: &ChangeBatch) -> Vec<Vec<Option<String>>> {
    let columns = &batch.schema().columns;
    let cell = |index: usize, row| cell_to_text(batch.rows().column(index), &columns[index].ty, row);
    (0..batch.num_rows()).map(|row| (0..columns.len()).map(|index| cell(index, row)).collect()).collect()
}

/// Decodes CSV without a header, whole or in pieces.
pub fn read_csv(schema: &Arc<TableSchema>, dialect: &CsvDialect, input: &[u8], piece: usize) -> Read {
    let decoder = CsvDecoder::new(schema.clone(), dialect, None, Place::START, LIMITS);
    drive(&mut decoder.expect("without a header every structure will do"), input, piece)
}

/// Decodes JSON lines, whole or in pieces.
pub fn read_json(schema: &Arc<TableSchema>, options: JsonDecoderOptions, input: &[u8], piece: usize) -> Read {
    drive(&mut JsonDecoder::new(schema.clone(), options, Place::START, LIMITS), input, piece)
}

/// Demands that rows written as CSV read back as the same.
pub fn round_trip_csv(read: &Read, dialect: &CsvDialect) {
    let dialect = CsvDialect { header: false, max_record_bytes: 64 << 20, ..dialect.clone() };
    for batch in &read.batches {
        let encoder = CsvEncoder::new(batch.schema(), &dialect, &ChangeColumn::Absent);
        round_trip(batch, &encoder, &|out| read_csv(batch.schema(), &dialect, out, out.len().max(1)));
    }
}

/// Demands that rows written as JSON lines read back as the same.
pub fn round_trip_json(read: &Read, decimals: DecimalForm) {
    let options = JsonEncoderOptions { decimals, changes: ChangeColumn::Absent };
    for batch in &read.batches {
        let encoder = JsonEncoder::new(batch.schema(), &options);
        let again =
            |out: &[u8]| read_json(batch.schema(), JsonDecoderOptions::default(), out, out.len().max(1));
        round_trip(batch, &encoder, &again);
    }
}

fn round_trip(batch: &ChangeBatch, encoder: &dyn RowEncoder, again: &dyn Fn(&[u8]) -> Read) {
    let rows = (0..batch.num_rows()).filter(|row| encoder.refusal(batch, *row).is_none()).collect::<Vec<_>>();
    let mut out = Vec::new();
    encoder.write_rows(batch, &mut rows.iter().copied(), &mut out).expect("the structure is the encoder's");
    let read = again(&out);
    let shown = String::from_utf8_lossy(&out);
    assert!(read.failures.is_empty(), "{:?} of {shown}", read.failures);
    let all = cells(batch);
    let expect: Vec<_> = rows.iter().map(|row| all[*row].clone()).collect();
    assert_eq!(read.rows, expect, "{shown}");
}

/// A table of a few columns whose values are short.
pub fn small(types: &[LogicalType]) -> Arc<TableSchema> {
    let column = |(at, ty): (usize, &LogicalType)| Column::new(["id", "a", "b"][at % 3], ty.clone(), true);
    let columns = types.iter().enumerate().map(column).collect();
    Arc::new(TableSchema::new(TableId::new("d", "t"), columns, Vec::new()))
}

/// A table with a column of every type, named by letters.
pub fn every_type() -> Arc<TableSchema> {
    use LogicalType::*;
    let labels = || vec!["one".to_owned(), "two words".to_owned(), "q\"uote".to_owned()];
    let types = [
        Boolean,
        Int8,
        Int64,
        UInt64,
        Float32,
        Float64,
        Decimal { precision: 10, scale: 2 },
        Decimal { precision: 38, scale: 38 },
        Decimal { precision: 65, scale: 30 },
        Date,
        Time { precision: 6 },
        Timestamp { precision: 3 },
        TimestampTz { precision: 6 },
        Year,
        Char { length: 5 },
        Text,
        Varbinary { length: 16 },
        Bit { length: 64 },
        Json,
        Enum { labels: labels() },
        Set { labels: labels() },
        Geometry,
        Uuid,
    ];
    let names = "abcdefghijklmnopqrstuvwxyz".chars().map(String::from);
    let columns = names.zip(types).map(|(name, ty)| Column::new(name, ty, true)).collect();
    Arc::new(TableSchema::new(TableId::new("d", "t"), columns, Vec::new()))
}
