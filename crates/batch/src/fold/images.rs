//! Owns folding of tables without a key: changes of equal row images inside a window cancel out.

use canalis_types::{Result, RowKind};
use hashbrown::HashMap;

use super::RowRef;
use crate::{ChangeBatch, KeyEncoder};

/// A folded window of one table without a key: apply all deletes first, then all inserts.
#[derive(Debug, Default)]
pub struct FoldedImages {
    /// Rows of whose image one copy each must go; an image comes as often as copies of it must go.
    pub deletes: Vec<RowRef>,
    /// Rows that are added, in the order of the source.
    pub inserts: Vec<RowRef>,
}

/// Folds batches of one table without a key, whose content is a multiset: after the window it is what it was, less
/// every −D and −U image, plus every +I and +U image. Equal images cancel out, so each image is either deleted or
/// inserted, as often as the difference says.
///
/// # Errors
/// Internal for a column type that has no [encoding](KeyEncoder::encode).
pub fn fold_images(batches: &[ChangeBatch]) -> Result<FoldedImages> {
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
    let mut folded = FoldedImages::default();
    for copies in images {
        folded.deletes.extend(copies.removed);
        folded.inserts.extend(copies.added);
    }
    folded.inserts.sort_unstable_by_key(|at| (at.batch, at.row));
    Ok(folded)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use canalis_types::{Column, LogicalType, TableId, TableSchema};

    use super::*;
    use crate::BatchBuilder;

    fn check(changes: &[(RowKind, &str)], deletes: &[u32], inserts: &[u32]) {
        let columns = vec![Column::new("v", LogicalType::Text, true)];
        let schema = Arc::new(TableSchema::new(TableId::bare("t"), columns, Vec::new()));
        let mut builder = BatchBuilder::new(schema, changes.len());
        for (kind, value) in changes {
            builder.column(0).append_text(value.as_bytes()).unwrap();
            builder.end_row(*kind, 0);
        }
        let folded = fold_images(&[builder.finish().unwrap()]).unwrap();
        let rows = |refs: Vec<RowRef>| refs.iter().map(|at| at.row).collect::<Vec<_>>();
        assert_eq!((rows(folded.deletes), rows(folded.inserts)), (deletes.to_vec(), inserts.to_vec()));
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
