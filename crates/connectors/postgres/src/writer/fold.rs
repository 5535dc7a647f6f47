//! Owns which operations a window of changes comes to.

use canalis_batch::{ChangeBatch, KeyEncoder, RowRef, fold, fold_images};
use canalis_types::Result;

use super::statement::Op;
use crate::target::Target;

/// Operations of a window, in the order in which they are done.
pub fn operations(target: &Target, batches: &[ChangeBatch]) -> Result<Vec<(Op, Vec<RowRef>)>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let key = if target.has_key() { KeyEncoder::for_table(first.schema()) } else { None };
    let Some(key) = key else {
        let folded = fold_images(batches)?;
        return Ok(vec![(Op::DeleteImages, folded.deletes), (Op::Insert, folded.inserts)]);
    };
    let folded = fold(batches, &key)?;
    let upsert = if target.arbiter { Op::Upsert } else { Op::Replace };
    Ok(vec![(Op::Delete, folded.deletes), (upsert, folded.upserts)])
}
