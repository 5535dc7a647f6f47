//! Owns which operations a window of changes comes to.

use canalis_batch::{
    ChangeBatch, KeyEncoder, Patch, PatchOrder, RowRef, Stage, fold, fold_images, fold_marked,
    fold_marked_images, has_marks,
};
use canalis_types::Result;

use super::{rows::Refused, statement::Op};
use crate::target::Target;

/// Why a change of a row without a key is refused.
const NO_KEY: &str = "the source did not send the key of the row";
/// Why a change of a table without a key is refused.
const NOT_WHOLE: &str =
    "the source did not send all columns of the row, and without a key it can be found by all of them only";

/// What a window of one table comes to.
pub struct Operations {
    /// The batches that the rows are in.
    pub batches: Vec<ChangeBatch>,
    /// Operations in the order in which they are done.
    pub steps: Vec<(Op, Vec<RowRef>)>,
    /// Rows that are refused before anything is tried.
    pub refused: Refused,
    /// Whether an operation may come more than once.
    pub repeats: bool,
}

/// Folds a window.
pub fn operations(target: &Target, batches: Vec<ChangeBatch>) -> Result<Operations> {
    let (steps, refused) = (Vec::new(), Refused::default());
    let mut done = Operations { batches, steps, refused, repeats: false };
    let Some(first) = done.batches.first() else { return Ok(done) };
    let key = if target.has_key() { KeyEncoder::for_table(first.schema()) } else { None };
    let marked = has_marks(&done.batches);
    match key {
        None if marked => {
            let found = fold_marked_images(&done.batches)?;
            for at in found.partial {
                done.refused.note(at, NOT_WHOLE.to_owned());
            }
            done.batches = found.batches;
            done.steps = vec![(Op::DeleteImages, found.folded.deletes), (Op::Insert, found.folded.inserts)];
        }
        None => {
            let folded = fold_images(&done.batches)?;
            done.steps = vec![(Op::DeleteImages, folded.deletes), (Op::Insert, folded.inserts)];
        }
        Some(key) if marked => {
            // With another unique index rows can be in each other's way, but not in the order of the source.
            let order = if target.other_unique { PatchOrder::AsSent } else { PatchOrder::AnyKey };
            let found = fold_marked(&done.batches, &key, order)?;
            for at in found.keyless {
                done.refused.note(at, NO_KEY.to_owned());
            }
            done.batches = found.batches;
            done.repeats = found.stages.len() > 1;
            for stage in found.stages {
                push_stage(target, stage, &mut done.steps);
            }
        }
        Some(key) => {
            let folded = fold(&done.batches, &key)?;
            done.steps = vec![(Op::Delete, folded.deletes), (storing(target), folded.upserts)];
        }
    }
    Ok(done)
}

fn storing(target: &Target) -> Op {
    if target.arbiter { Op::Upsert } else { Op::Replace }
}

fn push_stage(target: &Target, stage: Stage, steps: &mut Vec<(Op, Vec<RowRef>)>) {
    steps.push((Op::Delete, stage.deletes));
    steps.push((storing(target), stage.upserts));
    let mut patches = Vec::new();
    for Patch { before, after } in stage.patches {
        if before == after {
            patches.push(after);
        } else {
            steps.push((Op::Patch, std::mem::take(&mut patches)));
            steps.push((Op::Move, vec![after]));
        }
    }
    steps.push((Op::Patch, patches));
    steps.retain(|(_, rows)| !rows.is_empty());
}
