//! Owns folding of windows in which the source left cells out: such cells take the value that an earlier change of the
//! window gave them, and rows that still lack some become updates of the row at the target.

use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_select::interleave::interleave;
use canalis_types::{Error, Result, RowKind};
use hashbrown::HashMap;

use super::{FoldedImages, RowRef, fold_images};
use crate::{ChangeBatch, KeyEncoder, key::encode_column};

/// An update of a row that the target has: cells that are marked unchanged in `after` keep their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    /// The row whose key the target's row has.
    pub before: RowRef,
    /// The row with the new values, the new key included.
    pub after: RowRef,
}

/// One part of a window: apply deletes, then upserts, then patches in their order. No key is touched twice, except by
/// a last patch, which may depend on everything before it.
#[derive(Debug, Default)]
pub struct Stage {
    /// Rows whose key must not exist afterwards. Only their keys count.
    pub deletes: Vec<RowRef>,
    /// Whole rows, whose image must be the one stored afterwards.
    pub upserts: Vec<RowRef>,
    /// Rows that are known in part. Where the target has no row of the key, the change cannot be applied.
    pub patches: Vec<Patch>,
}

/// A folded window of a table with a key.
#[derive(Debug)]
pub struct Marked {
    /// The batches with the cells filled in that the window tells. References are into these.
    pub batches: Vec<ChangeBatch>,
    /// What is to be done, stage after stage.
    pub stages: Vec<Stage>,
    /// Rows without a key, which can be neither found nor stored.
    pub keyless: Vec<RowRef>,
}

/// A folded window of a table without a key.
#[derive(Debug)]
pub struct MarkedImages {
    /// The batches with the cells filled in that images before updates tell. References are into these.
    pub batches: Vec<ChangeBatch>,
    /// What is to be done.
    pub folded: FoldedImages,
    /// Rows that are not whole, and the other halves of their updates.
    pub partial: Vec<RowRef>,
}

/// Whether any batch says "unchanged" for a cell.
pub fn has_marks(batches: &[ChangeBatch]) -> bool {
    batches.iter().any(|batch| batch.unchanged().is_some())
}

/// When the patches of a window are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOrder {
    /// Together at the end of the window, as far as their keys allow it.
    AnyKey,
    /// Each in its place among all changes: for targets where rows of different keys can be in each other's way.
    AsSent,
}

/// Folds batches of one keyed table like [`fold`](super::fold), cell by cell: a later value wins over an earlier one, and a
/// cell that was left out keeps the value that the key's row had.
///
/// The images before an update and of a delete need nothing but their keys. Their other values are taken when they
/// are neither NULL nor marked: a cell that is unchanged is what it was before.
///
/// # Errors
/// Internal for a column that cannot be a key, or for batches of different structures.
pub fn fold_marked(batches: &[ChangeBatch], key: &KeyEncoder, order: PatchOrder) -> Result<Marked> {
    let mut pass = Pass::new(batches, key, order);
    for (b, batch) in (0u32..).zip(batches) {
        let mut before = None;
        for (r, kind) in (0u32..).zip(batch.kinds()) {
            let at = RowRef { batch: b, row: r };
            match kind {
                RowKind::UpdateBefore => before = Some(at),
                RowKind::Delete => pass.delete(at)?,
                RowKind::Insert | RowKind::UpdateAfter => pass.store(before.take(), at)?,
            }
        }
    }
    pass.end_stage();
    Ok(Marked { batches: fill(batches, &pass.sources)?, stages: pass.stages, keyless: pass.keyless })
}

/// Folds batches of one table without a key like [`fold_images`]. A row that is unchanged in part takes these cells from
/// the image before its update; images that are not whole cannot be found in the target and are given back.
///
/// # Errors
/// As [`fold_images`].
pub fn fold_marked_images(batches: &[ChangeBatch]) -> Result<MarkedImages> {
    let mut sources = Sources::new();
    let mut partial = Vec::new();
    for (b, batch) in (0u32..).zip(batches) {
        let columns = batch.schema().columns.len();
        let mut before = None;
        for (r, kind) in (0u32..).zip(batch.kinds()) {
            let at = RowRef { batch: b, row: r };
            if *kind == RowKind::UpdateBefore {
                before = Some(at);
                continue;
            }
            let earlier = before.take();
            match earlier {
                Some(earlier) if is_partial(batch, earlier) => partial.extend([earlier, at]),
                Some(earlier) if is_partial(batch, at) => {
                    let from = |c| if is_marked(batch, c, at) { earlier } else { at };
                    sources.insert(place(at), (0..columns).map(|c| Some(from(c))).collect());
                }
                None if is_partial(batch, at) => partial.push(at),
                _ => {}
            }
        }
    }
    let batches = fill(batches, &sources)?;
    let mut kept = Vec::new();
    let mut numbers: Vec<Vec<u32>> = Vec::new();
    for (b, batch) in (0u32..).zip(&batches) {
        let rows: Vec<u32> = (0u32..)
            .take(batch.num_rows())
            .filter(|row| partial.binary_search_by_key(&(b, *row), |at| place(*at)).is_err())
            .collect();
        kept.push(batch.take(&rows.clone().into())?);
        numbers.push(rows);
    }
    let mut folded = fold_images(&kept)?;
    for at in folded.deletes.iter_mut().chain(&mut folded.inserts) {
        at.row = numbers[index(at.batch)][index(at.row)];
    }
    Ok(MarkedImages { batches, folded, partial })
}

/// For each row with marks: where the value of each column comes from; `None` when only the target has it.
type Sources = HashMap<(u32, u32), Vec<Option<RowRef>>>;

/// What the window says about a key.
#[derive(Debug, Clone, Copy)]
enum Known {
    Gone,
    Is(RowRef),
}

/// What a stage does with a key.
#[derive(Debug, Clone, Copy)]
enum Last {
    Delete(RowRef),
    Upsert(RowRef),
    Patch(RowRef),
}

struct Pass<'a> {
    batches: &'a [ChangeBatch],
    key: &'a KeyEncoder,
    order: PatchOrder,
    known: HashMap<Box<[u8]>, Known>,
    sources: Sources,
    last: HashMap<Box<[u8]>, Last>,
    stages: Vec<Stage>,
    keyless: Vec<RowRef>,
}

impl<'a> Pass<'a> {
    fn new(batches: &'a [ChangeBatch], key: &'a KeyEncoder, order: PatchOrder) -> Self {
        Self {
            batches,
            key,
            order,
            known: HashMap::new(),
            sources: Sources::new(),
            last: HashMap::new(),
            stages: Vec::new(),
            keyless: Vec::new(),
        }
    }

    fn delete(&mut self, at: RowRef) -> Result<()> {
        match self.key_of(at, None)? {
            Some(key) => self.note(key, Known::Gone, Last::Delete(at)),
            None => self.keyless.push(at),
        }
        Ok(())
    }

    fn store(&mut self, before: Option<RowRef>, at: RowRef) -> Result<()> {
        let Some(key) = self.key_of(at, before)? else {
            self.keyless.extend(before);
            self.keyless.push(at);
            return Ok(());
        };
        // A source that tells only one of the two keys tells that the key is the same.
        let old = match before {
            Some(before) => self.key_of(before, None)?,
            None => None,
        };
        let old = old.unwrap_or_else(|| key.clone());
        let base = self.known.get(&old).copied();
        let is_whole = self.resolve(before, at, base);
        let moves = old != key;
        let alone =
            !is_whole && (moves || matches!(base, Some(Known::Gone)) || self.order == PatchOrder::AsSent);
        if alone {
            self.end_stage();
            let before = before.filter(|_| moves).unwrap_or(at);
            self.stages.push(Stage { patches: vec![Patch { before, after: at }], ..Stage::default() });
            if moves {
                self.known.insert(old, Known::Gone);
            }
            self.known.insert(key, Known::Is(at));
            return Ok(());
        }
        if let (true, Some(before)) = (moves, before) {
            self.note(old, Known::Gone, Last::Delete(before));
        }
        let last = if is_whole { Last::Upsert(at) } else { Last::Patch(at) };
        self.note(key, Known::Is(at), last);
        Ok(())
    }

    /// Finds where the cells of a row come from; whether all are known.
    fn resolve(&mut self, before: Option<RowRef>, at: RowRef, base: Option<Known>) -> bool {
        let batch = &self.batches[index(at.batch)];
        if !is_partial(batch, at) {
            return true;
        }
        let mut is_whole = true;
        let columns = batch.schema().columns.len();
        let mut row = Vec::with_capacity(columns);
        for column in 0..columns {
            let source = if !is_marked(batch, column, at) {
                Some(at)
            } else {
                let earlier = match base {
                    Some(Known::Is(base)) => self.source(base, column),
                    Some(Known::Gone) | None => None,
                };
                let told = |before: &RowRef| {
                    let has_value = batch.rows().column(column).is_valid(index(before.row));
                    let is_key = self.key.columns().contains(&column);
                    !is_marked(batch, column, *before) && (has_value || is_key)
                };
                earlier.or_else(|| before.filter(told))
            };
            is_whole &= source.is_some();
            row.push(source);
        }
        self.sources.insert(place(at), row);
        is_whole
    }

    /// Where the value of a column of a row comes from.
    fn source(&self, at: RowRef, column: usize) -> Option<RowRef> {
        self.sources.get(&place(at)).map_or(Some(at), |row| row[column])
    }

    /// The encoded key; parts that were left out are those of `before`. `None` when a part is not known.
    fn key_of(&self, at: RowRef, before: Option<RowRef>) -> Result<Option<Box<[u8]>>> {
        let batch = &self.batches[index(at.batch)];
        let mut key = Vec::new();
        for column in self.key.columns() {
            let holders = [Some(at), before];
            let told = holders.into_iter().flatten().find(|row| !is_marked(batch, *column, *row));
            let Some(told) = told else { return Ok(None) };
            encode_column(batch.rows().column(*column), index(told.row), &mut key)?;
        }
        Ok(Some(key.into()))
    }

    fn note(&mut self, key: Box<[u8]>, known: Known, last: Last) {
        self.known.insert(key.clone(), known);
        self.last.insert(key, last);
    }

    /// Puts the changes since the last stage into one, in key order.
    fn end_stage(&mut self) {
        if self.last.is_empty() {
            return;
        }
        let mut ordered: Vec<(Box<[u8]>, Last)> = self.last.drain().collect();
        ordered.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut stage = Stage::default();
        for (_, last) in ordered {
            match last {
                Last::Delete(row) => stage.deletes.push(row),
                Last::Upsert(row) => stage.upserts.push(row),
                Last::Patch(row) => stage.patches.push(Patch { before: row, after: row }),
            }
        }
        self.stages.push(stage);
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn place(at: RowRef) -> (u32, u32) {
    (at.batch, at.row)
}

fn is_marked(batch: &ChangeBatch, column: usize, at: RowRef) -> bool {
    batch.is_unchanged(column, index(at.row))
}

fn is_partial(batch: &ChangeBatch, at: RowRef) -> bool {
    (0..batch.schema().columns.len()).any(|column| is_marked(batch, column, at))
}

/// Fills in the cells whose values come from other rows. A mark stays where there is no value.
fn fill(batches: &[ChangeBatch], sources: &Sources) -> Result<Vec<ChangeBatch>> {
    let mut filled = Vec::with_capacity(batches.len());
    for (b, batch) in (0u32..).zip(batches) {
        let Some(masks) = batch.unchanged() else {
            filled.push(batch.clone());
            continue;
        };
        let mut columns = batch.rows().columns().to_vec();
        let mut left = masks.to_vec();
        for (column, mask) in left.iter_mut().enumerate() {
            let Some(marks) = mask else { continue };
            let mut places: Vec<(usize, usize)> = Vec::with_capacity(batch.num_rows());
            let mut open = Vec::with_capacity(batch.num_rows());
            for (r, is_marked) in (0u32..).zip(marks.values().iter()) {
                let known = sources.get(&(b, r)).and_then(|row| row[column]).filter(|_| is_marked);
                let at = known.unwrap_or(RowRef { batch: b, row: r });
                places.push((index(at.batch), index(at.row)));
                open.push(is_marked && known.is_none());
            }
            let arrays: Vec<&dyn Array> = batches.iter().map(|b| b.rows().column(column).as_ref()).collect();
            columns[column] = interleave(&arrays, &places)
                .map_err(|e| Error::internal("cannot fill in cells that were left out").with_source(e))?;
            *mask = open.contains(&true).then(|| BooleanArray::from(open));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(batch.rows().schema(), columns, &options)
            .map_err(|e| Error::internal("cannot fill in cells that were left out").with_source(e))?;
        let whole = ChangeBatch::new(Arc::clone(batch.schema()), rows, batch.kinds().to_vec())?;
        filled.push(whole.with_event_time(batch.event_time_ms).with_unchanged(left));
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
