//! Owns the data model on the move: [`ChangeBatch`] (one table, one schema version, columns plus row
//! kinds), its builders, row keys, last-write-wins folding, distribution over writers, and the text forms of cells.
//!
//! Must not know: connectors, IO, async runtimes.

mod arrow_type;
mod builder;
mod change_batch;
mod fold;
mod key;
mod render;

pub use arrow_type::{arrow_schema, arrow_type};
pub use builder::{BatchBuilder, ColumnBuilder, ValueError};
pub use change_batch::ChangeBatch;
pub use fold::{
    Folded, FoldedImages, Marked, MarkedImages, Patch, PatchOrder, RowRef, Stage, fold, fold_images,
    fold_marked, fold_marked_images, has_marks,
};
pub use key::{KeyEncoder, route_hash};
pub use render::{cell_to_json, cell_to_text, row_to_json, write_decimal};
