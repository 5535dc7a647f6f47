//! Tests of folds with marks of unchanged cells.

use std::sync::Arc;

use canalis_types::{Column, LogicalType, TableId, TableSchema};

use super::*;
use crate::{BatchBuilder, cell_to_text};

use RowKind::*;

/// A cell of these is marked unchanged.
const OPEN: &str = "?";

fn batch(key: &[&str], changes: &[(RowKind, &str)]) -> ChangeBatch {
    let columns = ["id", "a", "b"].map(|name| Column::new(name, LogicalType::Text, true)).to_vec();
    let key = key.iter().map(|name| (*name).to_owned()).collect();
    let schema = Arc::new(TableSchema::new(TableId::bare("t"), columns, key));
    let mut builder = BatchBuilder::new(schema, changes.len());
    for (kind, cells) in changes {
        for (index, cell) in cells.split(' ').enumerate() {
            match cell {
                OPEN => builder.append_unchanged(index),
                "-" => builder.column(index).append_null(),
                text => builder.column(index).append_text(text.as_bytes()).unwrap(),
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

fn show(batches: &[ChangeBatch], at: RowRef) -> String {
    let batch = &batches[index(at.batch)];
    let cells: Vec<String> = (0..3)
        .map(|column| {
            if is_marked(batch, column, at) {
                return OPEN.to_owned();
            }
            let text = cell_to_text(batch.rows().column(column), &LogicalType::Text, index(at.row));
            text.unwrap_or_else(|| "-".to_owned())
        })
        .collect();
    cells.join(" ")
}

/// Stages as `- row`, `+ row`, `before > after`, with `|` between stages.
fn told(order: PatchOrder, batches: &[ChangeBatch]) -> Vec<String> {
    let key = KeyEncoder::for_table(batches[0].schema()).unwrap();
    let marked = fold_marked(batches, &key, order).unwrap();
    let mut lines = Vec::new();
    for (number, stage) in marked.stages.iter().enumerate() {
        if number > 0 {
            lines.push("|".to_owned());
        }
        lines.extend(stage.deletes.iter().map(|at| format!("- {}", show(&marked.batches, *at))));
        lines.extend(stage.upserts.iter().map(|at| format!("+ {}", show(&marked.batches, *at))));
        for patch in &stage.patches {
            let [before, after] = [patch.before, patch.after].map(|at| show(&marked.batches, at));
            lines.push(format!("{before} > {after}"));
        }
    }
    lines.extend(marked.keyless.iter().map(|at| format!("no key: {}", show(&marked.batches, *at))));
    lines
}

fn check(changes: &[(RowKind, &str)], want: &[&str]) {
    assert_eq!(told(PatchOrder::AnyKey, &[batch(&["id"], changes)]), want, "{changes:?}");
    // The same with every change in a batch of its own.
    let mut batches = Vec::new();
    let mut rest = changes;
    while let Some((kind, _)) = rest.first() {
        let (one, more) = rest.split_at(if *kind == UpdateBefore { 2 } else { 1 });
        batches.push(batch(&["id"], one));
        rest = more;
    }
    assert_eq!(told(PatchOrder::AnyKey, &batches), want, "{changes:?} in single batches");
}

#[test]
fn later_values_win_and_cells_that_were_left_out_keep_earlier_ones() {
    // A row that is whole stays whole.
    check(&[(Insert, "1 x y"), (UpdateBefore, "1 ? ?"), (UpdateAfter, "1 z ?")], &["+ 1 z y"]);
    // NULL is a value.
    check(&[(Insert, "1 x -"), (UpdateBefore, "1 ? ?"), (UpdateAfter, "1 ? ?")], &["+ 1 x -"]);
    // Two parts of a row that only the target has.
    check(
        &[(UpdateBefore, "1 ? ?"), (UpdateAfter, "1 x ?"), (UpdateBefore, "1 ? ?"), (UpdateAfter, "1 ? y")],
        &["+ 1 x y"],
    );
    check(
        &[
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "1 x ?"),
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "1 w ?"),
            (Insert, "2 ? y"),
        ],
        &["1 w ? > 1 w ?", "2 ? y > 2 ? y"],
    );
    // A whole row ends what was open, a delete as well.
    check(&[(Insert, "1 x ?"), (Insert, "1 p q")], &["+ 1 p q"]);
    check(&[(Insert, "1 x ?"), (Delete, "1 ? ?")], &["- 1 ? ?"]);
    // What the image before tells is what the cell is.
    check(&[(UpdateBefore, "1 v w"), (UpdateAfter, "1 ? z")], &["+ 1 v z"]);
    check(&[(UpdateBefore, "1 - w"), (UpdateAfter, "1 ? z")], &["1 ? z > 1 ? z"]);
}

#[test]
fn changes_of_the_key_carry_values_along() {
    check(&[(Insert, "1 x y"), (UpdateBefore, "1 ? ?"), (UpdateAfter, "2 z ?")], &["- 1 ? ?", "+ 2 z y"]);
    // Rows that only the target has move in their place; two of them change places by way of a third key.
    check(
        &[
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "9 ? ?"),
            (UpdateBefore, "2 ? ?"),
            (UpdateAfter, "1 ? ?"),
            (UpdateBefore, "9 ? ?"),
            (UpdateAfter, "2 x ?"),
        ],
        &["1 ? ? > 9 ? ?", "|", "2 ? ? > 1 ? ?", "|", "9 ? ? > 2 x ?"],
    );
    check(
        &[
            (Delete, "2 ? ?"),
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "2 x ?"),
            (UpdateBefore, "2 ? ?"),
            (UpdateAfter, "2 ? z"),
            (Insert, "1 p q"),
        ],
        &["- 2 ? ?", "|", "1 ? ? > 2 x ?", "|", "+ 1 p q", "+ 2 x z"],
    );
}

#[test]
fn a_row_that_is_gone_is_not_patched() {
    // The delete is done first, so that the patch finds no row.
    check(&[(Delete, "1 ? ?"), (Insert, "1 x ?")], &["- 1 ? ?", "|", "1 x ? > 1 x ?"]);
    check(
        &[
            (Insert, "1 x y"),
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "2 ? ?"),
            (UpdateBefore, "1 ? ?"),
            (UpdateAfter, "1 z ?"),
        ],
        &["- 1 ? ?", "+ 2 x y", "|", "1 z ? > 1 z ?"],
    );
}

#[test]
fn keys_are_known_from_either_image() {
    check(&[(UpdateBefore, "1 ? ?"), (UpdateAfter, "? x ?")], &["1 x ? > 1 x ?"]);
    check(&[(UpdateBefore, "? ? ?"), (UpdateAfter, "1 x ?")], &["1 x ? > 1 x ?"]);
    check(
        &[(UpdateBefore, "? x ?"), (UpdateAfter, "? z ?"), (Delete, "? x y"), (Insert, "? x y")],
        &["no key: ? x ?", "no key: ? z ?", "no key: ? x y", "no key: ? x y"],
    );
    let both = batch(&["a", "id"], &[(UpdateBefore, "1 x ?"), (UpdateAfter, "2 ? z")]);
    assert_eq!(told(PatchOrder::AnyKey, &[both]), ["- 1 x ?", "+ 2 x z"]);
}

#[test]
fn patches_in_their_place_are_stages_of_their_own() {
    let changes = [
        (Insert, "5 p q"),
        (UpdateBefore, "1 ? ?"),
        (UpdateAfter, "1 x ?"),
        (UpdateBefore, "1 ? ?"),
        (UpdateAfter, "1 z ?"),
        (Insert, "4 p q"),
    ];
    let want = ["+ 5 p q", "|", "1 x ? > 1 x ?", "|", "1 z ? > 1 z ?", "|", "+ 4 p q"];
    assert_eq!(told(PatchOrder::AsSent, &[batch(&["id"], &changes)]), want);
}

#[test]
fn images_that_are_not_whole_are_given_back() {
    let changes = [
        (Delete, "1 x ?"),
        (Insert, "2 x y"),
        (UpdateBefore, "3 x -"),
        (UpdateAfter, "3 z ?"),
        (UpdateBefore, "4 ? y"),
        (UpdateAfter, "4 z y"),
        (Insert, "5 ? y"),
        (Delete, "2 x y"),
    ];
    let marked = fold_marked_images(&[batch(&[], &changes)]).unwrap();
    let list = |rows: &[RowRef]| rows.iter().map(|at| show(&marked.batches, *at)).collect::<Vec<_>>();
    assert_eq!(list(&marked.folded.deletes), ["3 x -"]);
    assert_eq!(list(&marked.folded.inserts), ["3 z -"]);
    assert_eq!(list(&marked.partial), ["1 x ?", "4 ? y", "4 z y", "5 ? y"]);
}
