//! Owns the contract of encoders: rows of a batch to bytes.

use canalis_batch::ChangeBatch;
use canalis_types::Result;

/// How the row kind is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeColumn {
    /// Not at all: for rows that are all inserts.
    Absent,
    /// As the first column or field, under this name, with `+I`, `-U`, `+U` or `-D`.
    Named(String),
}

/// Turns rows of tables of one structure into bytes.
pub trait RowEncoder: Send + Sync {
    /// Appends what stands once at the head of a file.
    fn write_head(&self, out: &mut Vec<u8>);

    /// Appends the rows of `batch` that `rows` names, one line each. The batch has the structure that the
    /// encoder was made for.
    ///
    /// # Errors
    /// Internal when the batch has another structure.
    fn write_rows(
        &self,
        batch: &ChangeBatch,
        rows: &mut dyn Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) -> Result<()>;

    /// Why this row cannot be written, or `None` when it can.
    fn refusal(&self, batch: &ChangeBatch, row: usize) -> Option<String>;
}
