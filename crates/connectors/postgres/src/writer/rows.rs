//! Owns [`RowSet`]: batches of one table with their encoders, and the rows of them that were refused.

use std::collections::BTreeMap;

use canalis_batch::{ChangeBatch, RowRef};
use canalis_connector_api::DeadLetter;
use canalis_types::{Position, Result, RowKind};

use crate::{
    encode::{Refusal, RowEncoder, Style},
    options::InvalidDatePolicy,
    target::Target,
};

/// Batches of one table, ready to be written.
pub struct RowSet<'a> {
    /// Where they go.
    pub target: &'a Target,
    /// The batches.
    pub batches: &'a [ChangeBatch],
    encoders: Vec<RowEncoder<'a>>,
    row_bytes: Vec<usize>,
}

impl<'a> RowSet<'a> {
    /// Makes encoders for the batches.
    pub fn new(target: &'a Target, batches: &'a [ChangeBatch], dates: InvalidDatePolicy) -> Result<Self> {
        let mut encoders = Vec::with_capacity(batches.len());
        let mut row_bytes = Vec::with_capacity(batches.len());
        for batch in batches {
            encoders.push(RowEncoder::new(target, batch.rows(), dates)?);
            let bytes = usize::try_from(batch.num_bytes()).unwrap_or(usize::MAX);
            row_bytes.push(bytes / batch.num_rows().max(1));
        }
        Ok(Self { target, batches, encoders, row_bytes })
    }

    /// Appends a row with all columns.
    pub fn row(&self, at: RowRef, style: Style, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let (batch, row) = place(at);
        self.encoders[batch].row(row, style, out)
    }

    /// Appends a row with some columns.
    pub fn some(
        &self,
        columns: &[usize],
        at: RowRef,
        style: Style,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (batch, row) = place(at);
        self.encoders[batch].some(columns, row, style, out)
    }

    /// Appends one literal; `false` when it is NULL.
    pub fn literal(&self, column: usize, at: RowRef, out: &mut Vec<u8>) -> Result<bool, Refusal> {
        let (batch, row) = place(at);
        self.encoders[batch].literal(column, row, out)
    }

    /// About how many bytes the rows have.
    pub fn bytes(&self, rows: &[RowRef]) -> usize {
        rows.iter().map(|at| self.row_bytes[place(*at).0]).fold(0, usize::saturating_add)
    }

    /// References to all rows in order.
    pub fn all(&self) -> Vec<RowRef> {
        let mut refs = Vec::new();
        for (batch, rows) in (0u32..).zip(self.batches) {
            let rows = u32::try_from(rows.num_rows()).unwrap_or(u32::MAX);
            refs.extend((0..rows).map(|row| RowRef { batch, row }));
        }
        refs
    }

    /// Whether the source sent the value of a column of the target.
    pub fn is_sent(&self, column: usize, at: RowRef) -> bool {
        let (batch, row) = place(at);
        !self.batches[batch].is_unchanged(self.target.columns[column].source, row)
    }

    /// What a row stands for.
    pub fn kind(&self, at: RowRef) -> RowKind {
        let (batch, row) = place(at);
        self.batches[batch].kinds()[row]
    }

    /// The dead letter of a refused row.
    pub fn letter(&self, at: RowRef, reason: String, position: Option<&Position>) -> DeadLetter {
        let (batch, row) = place(at);
        let batch = &self.batches[batch];
        DeadLetter { position: position.cloned(), ..DeadLetter::refused(batch, row, reason) }
    }
}

fn place(at: RowRef) -> (usize, usize) {
    // Both are indexes of things in memory.
    (usize::try_from(at.batch).unwrap_or(usize::MAX), usize::try_from(at.row).unwrap_or(usize::MAX))
}

/// Rows of one [`RowSet`] that cannot be held, with the reason.
#[derive(Debug, Default, Clone)]
pub struct Refused {
    rows: BTreeMap<(u32, u32), String>,
}

impl Refused {
    /// Notes a row; a second reason for the same row changes nothing.
    pub fn note(&mut self, at: RowRef, reason: String) {
        self.rows.entry((at.batch, at.row)).or_insert(reason);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the row is among them.
    pub fn contains(&self, at: RowRef) -> bool {
        self.rows.contains_key(&(at.batch, at.row))
    }

    /// The images before those updates that were refused, as far as they were found: rows that stay.
    pub fn replaced(&self, set: &RowSet<'_>) -> Vec<RowRef> {
        let after = |at: &&(u32, u32)| set.kind(RowRef { batch: at.0, row: at.1 }) == RowKind::UpdateAfter;
        // −U stands right before its +U.
        let before = |at: &(u32, u32)| RowRef { batch: at.0, row: at.1 - 1 };
        self.rows.keys().filter(after).map(before).filter(|at| !self.contains(*at)).collect()
    }

    /// Dead letters for all of them. An update is one change: when both of its images are refused, the image after
    /// stands for it.
    pub fn letters(self, set: &RowSet<'_>, position: Option<&Position>) -> Vec<DeadLetter> {
        let mut letters = Vec::with_capacity(self.rows.len());
        for ((batch, row), reason) in &self.rows {
            let at = RowRef { batch: *batch, row: *row };
            if set.kind(at) == RowKind::UpdateBefore && self.rows.contains_key(&(*batch, row + 1)) {
                continue;
            }
            letters.push(set.letter(at, reason.clone(), position));
        }
        letters
    }
}
