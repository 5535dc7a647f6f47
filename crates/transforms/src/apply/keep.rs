//! Owns the choice of rows: what the filter keeps, what became of updates, and what is left without refused rows.

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, cast::AsArray};
use arrow_select::take::take;
use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, RowKind};

use super::indexes;
use crate::evaluate::Refused;

/// Rows that go on, with their kinds from now on.
#[derive(Debug)]
pub(super) struct Kept {
    /// Row numbers in the batch; `None` for all.
    pub indexes: Option<UInt32Array>,
    pub kinds: Vec<RowKind>,
}

impl Kept {
    /// Everything.
    pub fn all(batch: &ChangeBatch) -> Self {
        Self { indexes: None, kinds: batch.kinds().to_vec() }
    }

    /// Row number in the batch of a kept row.
    pub fn original(&self, row: usize) -> usize {
        match &self.indexes {
            None => row,
            Some(indexes) => usize::try_from(indexes.value(row)).unwrap_or(usize::MAX),
        }
    }

    /// The kept cells of a column.
    pub fn take(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match &self.indexes {
            None => Ok(array.clone()),
            Some(indexes) => {
                take(array, indexes, None).map_err(|e| Error::internal("cannot take rows").with_source(e))
            }
        }
    }

    /// The kept part of the batch's masks of unchanged cells.
    pub fn masks(&self, batch: &ChangeBatch) -> Result<Option<Vec<Option<BooleanArray>>>> {
        let Some(masks) = batch.unchanged() else { return Ok(None) };
        let Some(indexes) = &self.indexes else { return Ok(Some(masks.to_vec())) };
        Ok(Some(masks.iter().map(|m| m.as_ref().map(|m| take_mask(m, indexes))).collect()))
    }
}

/// Applies a filter's answers and counts the changes that it drops. Refused changes are left out and not counted.
/// Both sides of an update are tested: yes/no is a delete of the row before, no/yes an insert of the row after.
pub(super) fn select(kinds: &[RowKind], passes: &ArrayRef, refused: &Refused) -> Result<(Kept, u64)> {
    let passes = passes.as_boolean();
    if refused.is_empty() && passes.null_count() == 0 && passes.true_count() == kinds.len() {
        return Ok((Kept { indexes: None, kinds: kinds.to_vec() }, 0));
    }
    let is_kept = |row: usize| passes.is_valid(row) && passes.value(row);
    let mut rows = Vec::with_capacity(kinds.len());
    let mut kept = Vec::with_capacity(kinds.len());
    let mut filtered = 0;
    let mut row = 0;
    while row < kinds.len() {
        let start = row;
        let is_update = kinds[row] == RowKind::UpdateBefore;
        row += if is_update { 2 } else { 1 };
        if (start..row).any(|r| refused.contains_key(&r)) {
            continue;
        }
        let number =
            |row: usize| u32::try_from(row).map_err(|_| Error::internal("a batch has more than 2^32 rows"));
        if !is_update {
            if is_kept(start) {
                rows.push(number(start)?);
                kept.push(kinds[start]);
            } else {
                filtered += 1;
            }
            continue;
        }
        match (is_kept(start), is_kept(start + 1)) {
            (true, true) => {
                rows.extend([number(start)?, number(start + 1)?]);
                kept.extend([RowKind::UpdateBefore, RowKind::UpdateAfter]);
            }
            (true, false) => {
                rows.push(number(start)?);
                kept.push(RowKind::Delete);
            }
            (false, true) => {
                rows.push(number(start + 1)?);
                kept.push(RowKind::Insert);
            }
            (false, false) => filtered += 1,
        }
    }
    Ok((Kept { indexes: Some(indexes(rows)), kinds: kept }, filtered))
}

/// Rows whose change holds no refused row.
pub(super) fn without(kinds: &[RowKind], refused: &Refused) -> Result<UInt32Array> {
    let mut rows = Vec::with_capacity(kinds.len());
    let mut row = 0;
    while row < kinds.len() {
        let length = if kinds[row] == RowKind::UpdateBefore { 2 } else { 1 };
        if !(row..row + length).any(|r| refused.contains_key(&r)) {
            for r in row..row + length {
                rows.push(u32::try_from(r).map_err(|_| Error::internal("a batch has more than 2^32 rows"))?);
            }
        }
        row += length;
    }
    Ok(indexes(rows))
}

/// The chosen part of a mask.
pub(super) fn take_mask(mask: &BooleanArray, rows: &UInt32Array) -> BooleanArray {
    rows.values().iter().map(|row| Some(mask.value(usize::try_from(*row).unwrap_or(usize::MAX)))).collect()
}

/// The chosen kinds.
pub(super) fn take_kinds(kinds: &[RowKind], rows: &UInt32Array) -> Vec<RowKind> {
    rows.values().iter().map(|row| kinds[usize::try_from(*row).unwrap_or(usize::MAX)]).collect()
}
