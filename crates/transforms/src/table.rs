//! Owns [`TableTransform`]: what happens to the batches of one source table under one schema.

use std::sync::Arc;

use canalis_batch::ChangeBatch;
use canalis_connector_api::DeadLetter;
use canalis_types::{Error, Result, TableSchema};

use crate::{apply::Work, merge::Alignment};

/// The transform and routes of one table, planned.
pub struct TableTransform {
    source: Arc<TableSchema>,
    outputs: Vec<Arc<TableSchema>>,
    /// For each output the step to the structure that it shares with other tables, if it is another.
    alignments: Vec<Option<Alignment>>,
    /// `None` when rows stay as they are.
    work: Option<Work>,
    is_identity: bool,
}

/// What became of a batch. Changes of the batch = changes of any one output + `filtered` + `rejected`.
#[derive(Debug)]
pub struct Applied {
    /// One batch per output in their order, all with the same changes; none at all when no change is left.
    pub batches: Vec<ChangeBatch>,
    /// Changes that the filter dropped, each counted once and not per output.
    pub filtered: u64,
    /// Changes that an expression could not handle, one letter each.
    pub rejected: Vec<DeadLetter>,
}

impl TableTransform {
    pub(crate) fn new(source: Arc<TableSchema>, outputs: Vec<Arc<TableSchema>>, work: Option<Work>) -> Self {
        let is_identity = work.is_none() && outputs.len() == 1 && outputs[0] == source;
        let alignments = outputs.iter().map(|_| None).collect();
        Self { source, outputs, alignments, work, is_identity }
    }

    /// Makes an output the structure that it shares with other tables.
    ///
    /// # Errors
    /// Internal, when the structure is not wide enough.
    pub(crate) fn share(&mut self, index: usize, merged: &Arc<TableSchema>) -> Result<()> {
        self.alignments[index] = Alignment::plan(&self.outputs[index], merged)?;
        self.outputs[index] = merged.clone();
        self.is_identity &= *merged == self.source;
        Ok(())
    }

    /// The source table under the schema that this was planned for.
    pub fn source(&self) -> &Arc<TableSchema> {
        &self.source
    }

    /// Schemas at the sink, one per route target; the source's own id if no route matches.
    pub fn outputs(&self) -> &[Arc<TableSchema>] {
        &self.outputs
    }

    /// Whether batches pass untouched, so that applying is a clone without work per row.
    pub fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// Transforms a batch. Updates stay two neighbouring rows; an update of which only one side passes the filter
    /// becomes a delete or an insert.
    ///
    /// # Errors
    /// Internal, when the batch does not have the planned schema. Rows that cannot be handled are not errors.
    pub fn apply(&self, batch: &ChangeBatch) -> Result<Applied> {
        if batch.rows().num_columns() != self.source.columns.len() {
            return Err(Error::internal(format!(
                "batch of {} has {} columns, its transform was planned for {}",
                self.source.id,
                batch.rows().num_columns(),
                self.source.columns.len()
            )));
        }
        if batch.num_rows() == 0 {
            return Ok(Applied { batches: Vec::new(), filtered: 0, rejected: Vec::new() });
        }
        let Some(work) = &self.work else {
            return Ok(Applied { batches: self.deliver(batch)?, filtered: 0, rejected: Vec::new() });
        };
        let done = work.run(&self.source, batch)?;
        let batches = done.batch.map_or(Ok(Vec::new()), |batch| self.deliver(&batch))?;
        Ok(Applied { batches, filtered: done.filtered, rejected: done.rejected })
    }

    /// The rows for each output.
    fn deliver(&self, batch: &ChangeBatch) -> Result<Vec<ChangeBatch>> {
        let outputs = self.outputs.iter().zip(&self.alignments);
        outputs
            .map(|(output, alignment)| match alignment {
                None => batch.with_schema(output.clone()),
                Some(alignment) => alignment.apply(batch),
            })
            .collect()
    }

    /// Compares with the plan of the next schema: outputs that differ in more than their version, before and after.
    /// An output that is new in `next` (or gone) is not in the list, because routes depend on the id alone.
    pub fn evolve(&self, next: &TableTransform) -> Vec<(Arc<TableSchema>, Arc<TableSchema>)> {
        let mut changed = Vec::new();
        for after in &next.outputs {
            let Some(before) = self.outputs.iter().find(|o| o.id == after.id) else { continue };
            let is_same = TableSchema { version: after.version, ..(**before).clone() } == **after;
            if !is_same {
                changed.push((before.clone(), after.clone()));
            }
        }
        changed
    }
}
