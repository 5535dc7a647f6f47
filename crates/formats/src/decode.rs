//! Owns the contract of decoders: bytes to batches, with the rest of the input untouched by a record that is wrong.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_types::{Error, Result, RowKind, TableSchema};

/// Raw bytes kept of a record that is larger than allowed.
const KEPT_OF_OVERSIZED: usize = 64 << 10;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub offset: u64,
    /// Line it is on, from 1.
    pub line: u64,
}

impl Place {
    /// The first byte of a file.
    pub const START: Place = Place { offset: 0, line: 1 };
}

/// Whether more input may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputEnd {
    /// More may follow: an incomplete record at the end is left alone.
    Open,
    /// This is all: an incomplete record at the end is the last one.
    Last,
}

/// When a batch is full.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Rows.
    pub rows: usize,
    /// Bytes of input.
    pub bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { rows: 8192, bytes: 4 << 20 }
    }
}

/// A record that does not decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeFailure {
    /// Where it begins.
    pub place: Place,
    /// Why, with the column named where it is known.
    pub reason: String,
    /// The record as it stands in the input; of an oversized one only the beginning.
    pub raw: Vec<u8>,
}

/// What a decoder has gathered.
#[derive(Debug)]
pub struct DecodedRows {
    /// Rows, if there are any.
    pub batch: Option<ChangeBatch>,
    /// Records that did not decode.
    pub failures: Vec<DecodeFailure>,
}

/// Decodes records of one table from consecutive pieces of input.
pub trait RecordDecoder: Send {
    /// Takes whole records from the front of `input` until it is full, and returns the bytes taken; the caller
    /// passes the rest again, with more behind it. Takes nothing only when it is full or the input is incomplete; with
    /// [`InputEnd::Last`] it takes everything unless it becomes full.
    ///
    /// # Errors
    /// Internal only; a record that does not decode is a [`DecodeFailure`].
    fn decode(&mut self, input: &[u8], end: InputEnd) -> Result<usize>;

    /// Whether [`RecordDecoder::take`] should be called before more is decoded.
    fn is_full(&self) -> bool;

    /// Where decoding goes on: everything before is in the rows and failures taken or waiting.
    fn place(&self) -> Place;

    /// Takes rows and failures out. Called when the decoder is full or the input has ended, so that
    /// [`RecordDecoder::place`] is between two records.
    ///
    /// # Errors
    /// Internal only.
    fn take(&mut self) -> Result<DecodedRows>;
}

/// A record larger than allowed that is being passed over: where it began and its first bytes.
#[derive(Debug)]
pub(crate) struct Oversized {
    pub place: Place,
    pub kept: Vec<u8>,
}

impl Oversized {
    pub(crate) fn new(place: Place, record: &[u8], allowed: usize) -> Self {
        Self { place, kept: record[..KEPT_OF_OVERSIZED.min(allowed).min(record.len())].to_vec() }
    }
}

/// Gathers rows; a row that fails half-way is taken out again when the batch is finished.
#[derive(Debug)]
pub(crate) struct RowGatherer {
    schema: Arc<TableSchema>,
    limits: BatchLimits,
    pub builder: BatchBuilder,
    bad_rows: Vec<u32>,
    failures: Vec<DecodeFailure>,
    bytes: usize,
    pub place: Place,
}

impl RowGatherer {
    pub(crate) fn new(schema: Arc<TableSchema>, limits: BatchLimits, place: Place) -> Self {
        let builder = BatchBuilder::new(schema.clone(), limits.rows);
        Self { schema, limits, builder, bad_rows: Vec::new(), failures: Vec::new(), bytes: 0, place }
    }

    /// Records that did not decode and wait to be taken.
    pub(crate) fn failures(&mut self) -> &mut [DecodeFailure] {
        &mut self.failures
    }

    pub(crate) fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    pub(crate) fn is_full(&self) -> bool {
        self.builder.len() + self.failures.len() >= self.limits.rows || self.bytes >= self.limits.bytes
    }

    /// Ends the row that came from `raw`.
    pub(crate) fn end_row(&mut self, raw: &[u8]) {
        self.builder.end_row(RowKind::Insert, raw.len());
        self.bytes += raw.len();
    }

    /// Ends a row whose columns are filled up with NULL and that is not to be delivered.
    pub(crate) fn end_bad_row(&mut self, raw: &[u8], reason: String) {
        self.bad_rows.push(u32::try_from(self.builder.len()).expect("batches are far below 2^32 rows"));
        self.builder.end_row(RowKind::Insert, 0);
        self.fail(raw, reason);
    }

    /// Notes a record of which nothing went into the columns.
    pub(crate) fn fail(&mut self, raw: &[u8], reason: String) {
        self.fail_at(self.place, raw, reason);
    }

    /// Notes a record that began at an earlier place.
    pub(crate) fn fail_at(&mut self, place: Place, raw: &[u8], reason: String) {
        self.bytes += raw.len();
        self.failures.push(DecodeFailure { place, reason, raw: raw.to_vec() });
    }

    /// Moves on over input that is dealt with.
    pub(crate) fn advance(&mut self, bytes: usize, lines: usize) {
        self.place.offset += bytes as u64;
        self.place.line += lines as u64;
    }

    pub(crate) fn take(&mut self) -> Result<DecodedRows> {
        let fresh = BatchBuilder::new(self.schema.clone(), self.limits.rows);
        let mut batch = std::mem::replace(&mut self.builder, fresh).finish()?;
        self.bytes = 0;
        let bad = std::mem::take(&mut self.bad_rows);
        if !bad.is_empty() {
            let rows = u32::try_from(batch.num_rows()).map_err(|e| {
                Error::internal(format!("batch of {} is too long", self.schema.id)).with_source(e)
            })?;
            let mut bad = bad.into_iter().peekable();
            let good = (0..rows).filter(|row| bad.next_if_eq(row).is_none()).collect::<Vec<u32>>();
            batch = batch.take(&good.into())?;
        }
        Ok(DecodedRows {
            batch: (batch.num_rows() > 0).then_some(batch),
            failures: std::mem::take(&mut self.failures),
        })
    }
}
