//! Owns [`RowKind`].

use serde::{Deserialize, Serialize};

/// What a row of a change batch stands for. An update is two neighbouring rows, −U then +U.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum RowKind {
    /// +I: a new row (also every row of a snapshot).
    Insert = 0,
    /// −U: the image before an update; always followed by its +U in the same batch.
    UpdateBefore = 1,
    /// +U: the image after an update.
    UpdateAfter = 2,
    /// −D: the image of a deleted row.
    Delete = 3,
}

impl RowKind {
    /// `+I`, `-U`, `+U` or `-D`.
    pub fn symbol(self) -> &'static str {
        match self {
            RowKind::Insert => "+I",
            RowKind::UpdateBefore => "-U",
            RowKind::UpdateAfter => "+U",
            RowKind::Delete => "-D",
        }
    }

    /// Whether the row is a change of its own in the ledger: −U is counted with its +U.
    pub fn is_counted(self) -> bool {
        self != RowKind::UpdateBefore
    }
}
