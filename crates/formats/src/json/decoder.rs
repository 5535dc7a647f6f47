//! Owns the JSON-lines decoder: lines straight into columns.

use std::sync::Arc;

use canalis_types::{Result, TableSchema};

use super::{
    object::{ObjectDecoder, ObjectError, Strangers, TextColumns},
    scan::Scanner,
};
use crate::{
    BatchLimits, DecodedRows, InputEnd, Place, RecordDecoder,
    decode::{Oversized, RowGatherer},
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
    object: ObjectDecoder,
    oversized: Option<Oversized>,
}

impl JsonDecoder {
    /// A decoder of tables of this structure whose input begins at `start`.
    pub fn new(
        schema: Arc<TableSchema>,
        options: JsonDecoderOptions,
        start: Place,
        limits: BatchLimits,
    ) -> Self {
        Self {
            object: ObjectDecoder::new(&schema, TextColumns::TextOnly),
            rows: RowGatherer::new(schema, limits, start),
            options,
            oversized: None,
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
        let strangers = match self.options.unknown {
            UnknownMembers::Refuse => Strangers::Refuse,
            UnknownMembers::Ignore => Strangers::Ignore,
        };
        let mut scanner = Scanner::new(line);
        let row = self.object.row(&mut scanner, &mut self.rows.builder, strangers);
        let reason = match row.and_then(|()| scanner.end().map_err(ObjectError::Syntax)) {
            Ok(()) => return self.rows.end_row(line),
            Err(ObjectError::Syntax(why)) => format!("line is not a JSON object: {why}"),
            Err(ObjectError::Value(reason)) => reason,
            Err(ObjectError::Stranger(name)) => {
                format!("member `{name}` is no column of {}", self.rows.schema().id)
            }
        };
        self.object.complete(&mut self.rows.builder);
        self.rows.end_bad_row(line, reason);
    }

    pub(crate) fn gatherer(&mut self) -> &mut RowGatherer {
        &mut self.rows
    }

    /// Where an oversized record begins that is being passed over.
    pub(crate) fn oversized(&self) -> Option<Place> {
        self.oversized.as_ref().map(|line| line.place)
    }

    fn oversized_line(&mut self, line: Oversized) {
        let reason = format!("line is longer than {} bytes", self.options.max_record_bytes);
        self.rows.fail_at(line.place, &line.kept, reason);
    }
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
