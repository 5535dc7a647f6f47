//! Owns walking over the changes of a batch, an update as one.

use canalis_batch::ChangeBatch;
use canalis_types::RowKind;

/// One change of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    /// Row of the −U of an update.
    pub before: Option<usize>,
    /// Row of the +I, −D or +U.
    pub row: usize,
    /// Kind of that row.
    pub kind: RowKind,
}

impl Change {
    /// The row with which the change begins.
    pub(crate) fn first(self) -> usize {
        self.before.unwrap_or(self.row)
    }

    /// The change that begins at `row`.
    pub(crate) fn at(batch: &ChangeBatch, row: usize) -> Self {
        match batch.kinds()[row] {
            RowKind::UpdateBefore => Self { before: Some(row), row: row + 1, kind: RowKind::UpdateAfter },
            kind => Self { before: None, row, kind },
        }
    }
}

/// The changes of `batch` but those that `skip` names by their first rows, which rise.
pub(crate) fn changes(batch: &ChangeBatch, skip: &[usize]) -> impl Iterator<Item = Change> {
    let mut skip = skip.iter().copied().peekable();
    let mut next = 0;
    std::iter::from_fn(move || {
        while next < batch.num_rows() {
            let change = Change::at(batch, next);
            next = change.row + 1;
            if skip.next_if_eq(&change.first()).is_none() {
                return Some(change);
            }
        }
        None
    })
}
