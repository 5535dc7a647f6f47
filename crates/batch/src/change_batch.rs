//! Owns [`ChangeBatch`].

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, UInt32Array};
use canalis_types::{Error, Result, RowKind, TableSchema};

/// Rows of one table under one schema version, with the kind of each row.
///
/// An update is two neighbouring rows, −U then +U, never split over two batches. `unchanged` marks cells whose value
/// the source did not send ("unchanged", neither value nor NULL): one optional mask per column. A marked cell of a +U
/// row is what it was before; one of a −U or −D row is not known.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    schema: Arc<TableSchema>,
    rows: RecordBatch,
    kinds: Arc<[RowKind]>,
    unchanged: Option<Arc<[Option<BooleanArray>]>>,
    /// Commit time at the source of the newest row, milliseconds since the epoch; `None` for snapshot rows.
    pub event_time_ms: Option<i64>,
}

impl ChangeBatch {
    /// A batch from its parts.
    ///
    /// # Errors
    /// Internal when lengths or column counts disagree, or a −U is not followed by its +U.
    pub fn new(schema: Arc<TableSchema>, rows: RecordBatch, kinds: Vec<RowKind>) -> Result<Self> {
        if rows.num_rows() != kinds.len() || rows.num_columns() != schema.columns.len() {
            return Err(Error::internal(format!(
                "batch of {} has {} rows, {} kinds, {} columns, {} declared",
                schema.id,
                rows.num_rows(),
                kinds.len(),
                rows.num_columns(),
                schema.columns.len()
            )));
        }
        let mut after_due = false;
        for kind in &kinds {
            if after_due != (*kind == RowKind::UpdateAfter) {
                return Err(Error::internal(format!("batch of {} tears an update apart", schema.id)));
            }
            after_due = *kind == RowKind::UpdateBefore;
        }
        if after_due {
            return Err(Error::internal(format!("batch of {} ends inside an update", schema.id)));
        }
        Ok(Self { schema, rows, kinds: kinds.into(), unchanged: None, event_time_ms: None })
    }

    /// A batch of inserts only.
    pub fn inserts(schema: Arc<TableSchema>, rows: RecordBatch) -> Result<Self> {
        let kinds = vec![RowKind::Insert; rows.num_rows()];
        Self::new(schema, rows, kinds)
    }

    /// Marks cells as unchanged; one entry per column.
    #[must_use]
    pub fn with_unchanged(mut self, masks: Vec<Option<BooleanArray>>) -> Self {
        self.unchanged = masks.iter().any(Option::is_some).then(|| masks.into());
        self
    }

    /// Sets the commit time at the source.
    #[must_use]
    pub fn with_event_time(mut self, millis: Option<i64>) -> Self {
        self.event_time_ms = millis;
        self
    }

    /// Structure of the rows.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Columns.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// Kind of each row.
    pub fn kinds(&self) -> &[RowKind] {
        &self.kinds
    }

    /// Masks of unchanged cells, one per column, if there are any.
    pub fn unchanged(&self) -> Option<&[Option<BooleanArray>]> {
        self.unchanged.as_deref()
    }

    /// Whether the source left this cell out.
    pub fn is_unchanged(&self, column: usize, row: usize) -> bool {
        self.unchanged.as_ref().and_then(|m| m[column].as_ref()).is_some_and(|m| m.value(row))
    }

    /// Rows, −U included.
    pub fn num_rows(&self) -> usize {
        self.kinds.len()
    }

    /// Changes as the ledger counts them: an update is one.
    pub fn num_changes(&self) -> u64 {
        self.kinds.iter().filter(|k| k.is_counted()).count() as u64
    }

    /// Whether every row is +I.
    pub fn is_insert_only(&self) -> bool {
        self.kinds.iter().all(|k| *k == RowKind::Insert)
    }

    /// Bytes held in buffers, for budgets and byte rates.
    pub fn num_bytes(&self) -> u64 {
        let mut bytes = 0;
        for column in self.rows.columns() {
            bytes += column.to_data().get_slice_memory_size().unwrap_or(0);
        }
        bytes as u64
    }

    /// The same rows under another schema (renamed table or columns); column count and types must agree.
    pub fn with_schema(&self, schema: Arc<TableSchema>) -> Result<Self> {
        if schema.columns.len() != self.rows.num_columns() {
            return Err(Error::internal(format!("schema of {} does not fit the batch", schema.id)));
        }
        Ok(Self { schema, ..self.clone() })
    }

    /// The rows at `indexes`, in that order. Callers keep −U and +U together.
    pub fn take(&self, indexes: &UInt32Array) -> Result<Self> {
        let kinds = indexes.values().iter().map(|i| self.kinds[*i as usize]).collect();
        self.take_as(indexes, kinds)
    }

    /// The rows at `indexes`, in that order, with new kinds (an update that is split into −D and +I).
    pub fn take_as(&self, indexes: &UInt32Array, kinds: Vec<RowKind>) -> Result<Self> {
        let rows = arrow_select::take::take_record_batch(&self.rows, indexes)
            .map_err(|e| Error::internal("cannot take rows").with_source(e))?;
        let mut batch = Self::new(self.schema.clone(), rows, kinds)?.with_event_time(self.event_time_ms);
        if let Some(masks) = &self.unchanged {
            let mut taken = Vec::with_capacity(masks.len());
            for mask in masks.iter() {
                taken.push(mask.as_ref().map(|m| {
                    BooleanArray::from_iter(indexes.values().iter().map(|i| Some(m.value(*i as usize))))
                }));
            }
            batch = batch.with_unchanged(taken);
        }
        Ok(batch)
    }
}
