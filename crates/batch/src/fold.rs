//! Owns folding: many changes of one key inside a window become the one that counts, so that a sink
//! touches each row once.

mod images;
mod marks;

use canalis_types::{Result, RowKind};
use hashbrown::HashMap;

pub use images::{FoldedImages, fold_images};
pub use marks::{Marked, MarkedImages, Patch, PatchOrder, Stage, fold_marked, fold_marked_images, has_marks};

use crate::{ChangeBatch, KeyEncoder};

/// A row of a window: which batch, which row of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRef {
    /// Index into the window's batches.
    pub batch: u32,
    /// Row in that batch.
    pub row: u32,
}

/// A folded window of one keyed table: apply all deletes first, then all upserts. Both are in key order.
#[derive(Debug, Default)]
pub struct Folded {
    /// Rows whose key must not exist afterwards (the row holds the key).
    pub deletes: Vec<RowRef>,
    /// Rows whose image must be the one stored afterwards.
    pub upserts: Vec<RowRef>,
}

/// Folds batches of one keyed table: the last image of a key wins; insert then delete is a delete; an update that
/// changes the key is a delete of the old key and an upsert of the new one.
///
/// Deletes come first in application order. That is right for every mix, because at the end of a window each
/// stored key is held by one live row at most.
pub fn fold(batches: &[ChangeBatch], key: &KeyEncoder) -> Result<Folded> {
    struct Last {
        row: RowRef,
        live: bool,
    }
    let changes: usize = batches.iter().map(ChangeBatch::num_rows).sum();
    let mut last: HashMap<Box<[u8]>, Last> = HashMap::with_capacity(changes / 2 + 1);
    let mut current = Vec::new();
    let mut note = |key: &[u8], row: RowRef, live: bool| {
        if let Some(entry) = last.get_mut(key) {
            *entry = Last { row, live };
        } else {
            last.insert(key.into(), Last { row, live });
        }
    };
    for (b, batch) in batches.iter().enumerate() {
        let b = u32::try_from(b).expect("windows hold few batches");
        let kinds = batch.kinds();
        let mut row = 0;
        while row < kinds.len() {
            current.clear();
            key.encode(batch.rows(), row, &mut current)?;
            let at = |row: usize| RowRef { batch: b, row: u32::try_from(row).expect("below 2^32 rows") };
            match kinds[row] {
                RowKind::Insert | RowKind::UpdateAfter => note(&current, at(row), true),
                RowKind::Delete => note(&current, at(row), false),
                RowKind::UpdateBefore => {
                    let length = current.len();
                    key.encode(batch.rows(), row + 1, &mut current)?;
                    let (before, after) = current.split_at(length);
                    if before != after {
                        note(before, at(row), false);
                    }
                    note(after, at(row + 1), true);
                    row += 1;
                }
            }
            row += 1;
        }
    }
    let mut ordered: Vec<(Box<[u8]>, Last)> = last.into_iter().collect();
    ordered.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut folded = Folded::default();
    for (_, entry) in ordered {
        if entry.live {
            folded.upserts.push(entry.row);
        } else {
            folded.deletes.push(entry.row);
        }
    }
    Ok(folded)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use canalis_types::{Column, LogicalType, TableId, TableSchema};

    use super::*;
    use crate::{BatchBuilder, cell_to_text};

    fn batch(changes: &[(RowKind, i64, &str)]) -> ChangeBatch {
        let schema = TableSchema::new(
            TableId::new("d", "t"),
            vec![Column::new("id", LogicalType::Int64, false), Column::new("v", LogicalType::Text, true)],
            vec!["id".into()],
        );
        let mut builder = BatchBuilder::new(Arc::new(schema), changes.len());
        for (kind, id, v) in changes {
            builder.column(0).append_i64(*id).unwrap();
            builder.column(1).append_text(v.as_bytes()).unwrap();
            builder.end_row(*kind, 0);
        }
        builder.finish().unwrap()
    }

    fn check(changes: &[(RowKind, i64, &str)], deletes: &[i64], upserts: &[(i64, &str)]) {
        let batches = [batch(changes)];
        let key = KeyEncoder::for_table(batches[0].schema()).unwrap();
        let folded = fold(&batches, &key).unwrap();
        let cell = |r: &RowRef, column: usize| {
            let batch = &batches[r.batch as usize];
            let ty = &batch.schema().columns[column].ty;
            cell_to_text(batch.rows().column(column), ty, r.row as usize).unwrap()
        };
        let got: Vec<String> = folded.deletes.iter().map(|r| cell(r, 0)).collect();
        let want: Vec<String> = deletes.iter().map(ToString::to_string).collect();
        assert_eq!(got, want);
        let got: Vec<(String, String)> = folded.upserts.iter().map(|r| (cell(r, 0), cell(r, 1))).collect();
        let want: Vec<(String, String)> =
            upserts.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn tx_05_many_changes_of_one_row_become_one() {
        use RowKind::*;
        let changes = [
            (Insert, 1, "a"),
            (UpdateBefore, 1, "a"),
            (UpdateAfter, 1, "b"),
            (Delete, 1, "b"),
            (Insert, 1, "c"),
            (UpdateBefore, 1, "c"),
            (UpdateAfter, 1, "d"),
        ];
        check(&changes, &[], &[(1, "d")]);
        let mut ending = changes.to_vec();
        ending.push((Delete, 1, "d"));
        check(&ending, &[1], &[]);
    }

    #[test]
    fn ky_02_key_update_is_delete_and_upsert() {
        use RowKind::*;
        check(&[(UpdateBefore, 6, "x"), (UpdateAfter, 7, "x")], &[6], &[(7, "x")]);
        // A chain of moves, and a move back.
        check(
            &[(UpdateBefore, 2, "x"), (UpdateAfter, 1, "x"), (UpdateBefore, 1, "x"), (UpdateAfter, 2, "y")],
            &[1],
            &[(2, "y")],
        );
    }

    #[test]
    fn folded_rows_are_in_key_order() {
        use RowKind::*;
        check(
            &[(Insert, 300, "c"), (Insert, -5, "a"), (Delete, 9, ""), (Insert, 20, "b"), (Delete, -7, "")],
            &[-7, 9],
            &[(-5, "a"), (20, "b"), (300, "c")],
        );
    }
}
