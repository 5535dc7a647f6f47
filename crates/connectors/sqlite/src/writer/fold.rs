//! Owns what a window of changes comes to: per key for tables with one, per row image for tables without.

use std::collections::HashMap;

use canalis_batch::{ChangeBatch, KeyEncoder, RowRef, fold};
use canalis_types::{Result, RowKind};

use crate::target::Target;

/// What a window comes to.
pub enum Changes {
    /// By key: first the deletes, then the rows that must be there.
    Keyed {
        /// Rows whose key must go.
        deletes: Vec<RowRef>,
        /// Rows that must be there.
        upserts: Vec<RowRef>,
    },
    /// By image.
    Images {
        /// Images of which one copy each must go.
        deletes: Vec<RowRef>,
        /// Rows that are added.
        inserts: Vec<RowRef>,
    },
}

/// Folds a window.
pub fn changes(target: &Target, batches: &[ChangeBatch]) -> Result<Changes> {
    let key = batches.first().filter(|_| target.has_key()).and_then(|b| KeyEncoder::for_table(b.schema()));
    match key {
        Some(key) => {
            let folded = fold(batches, &key)?;
            Ok(Changes::Keyed { deletes: folded.deletes, upserts: folded.upserts })
        }
        None => {
            let (deletes, inserts) = fold_images(batches)?;
            Ok(Changes::Images { deletes, inserts })
        }
    }
}

/// Without a key a table is a multiset: its content after the window is what it was, less every −D and −U image, plus
/// every +I and +U image. Equal images cancel out, so each image is either deleted or inserted, as often as the
/// difference says. Gives deletes and inserts, one reference per copy.
fn fold_images(batches: &[ChangeBatch]) -> Result<(Vec<RowRef>, Vec<RowRef>)> {
    #[derive(Default)]
    struct Copies {
        added: Vec<RowRef>,
        removed: Vec<RowRef>,
    }
    let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
    // In order of appearance, so that inserts keep the order of the source.
    let mut images: Vec<Copies> = Vec::new();
    let mut image = Vec::new();
    for (b, batch) in (0u32..).zip(batches) {
        let encoder = KeyEncoder::over((0..batch.schema().columns.len()).collect());
        for (r, kind) in (0u32..).zip(batch.kinds()) {
            image.clear();
            let row = usize::try_from(r).unwrap_or(usize::MAX);
            encoder.encode(batch.rows(), row, &mut image)?;
            let slot = match index.get(image.as_slice()) {
                Some(slot) => *slot,
                None => {
                    images.push(Copies::default());
                    index.insert(image.clone(), images.len() - 1);
                    images.len() - 1
                }
            };
            let copies = &mut images[slot];
            let (side, other) = match kind {
                RowKind::Insert | RowKind::UpdateAfter => (&mut copies.added, &mut copies.removed),
                RowKind::Delete | RowKind::UpdateBefore => (&mut copies.removed, &mut copies.added),
            };
            if other.pop().is_none() {
                side.push(RowRef { batch: b, row: r });
            }
        }
    }
    let mut deletes = Vec::new();
    let mut inserts = Vec::new();
    for copies in images {
        deletes.extend(copies.removed);
        inserts.extend(copies.added);
    }
    inserts.sort_unstable_by_key(|at| (at.batch, at.row));
    Ok((deletes, inserts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use canalis_batch::BatchBuilder;
    use canalis_types::{Column, LogicalType, TableId, TableSchema};

    use super::*;

    fn check(changes: &[(RowKind, &str)], deletes: &[u32], inserts: &[u32]) {
        let columns = vec![Column::new("v", LogicalType::Text, true)];
        let schema = Arc::new(TableSchema::new(TableId::bare("t"), columns, Vec::new()));
        let mut builder = BatchBuilder::new(schema, changes.len());
        for (kind, value) in changes {
            builder.column(0).append_text(value.as_bytes()).unwrap();
            builder.end_row(*kind, 0);
        }
        let (d, i) = fold_images(&[builder.finish().unwrap()]).unwrap();
        let rows = |refs: Vec<RowRef>| refs.iter().map(|at| at.row).collect::<Vec<_>>();
        assert_eq!((rows(d), rows(i)), (deletes.to_vec(), inserts.to_vec()));
    }

    #[test]
    fn images_cancel_out() {
        use RowKind::*;
        check(&[(Insert, "x"), (Insert, "x"), (Insert, "y")], &[], &[0, 1, 2]);
        check(&[(Insert, "x"), (Insert, "x"), (Delete, "x")], &[], &[0]);
        check(&[(Delete, "x"), (Delete, "x"), (Insert, "x")], &[0], &[]);
        check(&[(UpdateBefore, "x"), (UpdateAfter, "x")], &[], &[]);
        check(
            &[(UpdateBefore, "x"), (UpdateAfter, "y"), (UpdateBefore, "y"), (UpdateAfter, "z")],
            &[0],
            &[3],
        );
    }
}
