//! Owns [`Gatherer`]: rows of many tables, of which those of a message that fails half-way are taken out again.

use std::{collections::HashMap, sync::Arc};

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_types::{Error, Result, RowKind, TableId, TableSchema};

/// Rows a builder has room for at first.
const ROOM: usize = 1024;

/// The rows of one table, with what a format has planned for its columns.
#[derive(Debug)]
pub(crate) struct Slot<P> {
    pub schema: Arc<TableSchema>,
    pub plan: P,
    pub builder: BatchBuilder,
    /// Rows when the message under way began.
    mark: usize,
    bad: Vec<u32>,
}

impl<P> Slot<P> {
    fn new(schema: Arc<TableSchema>, plan: P) -> Self {
        Self { builder: BatchBuilder::new(schema.clone(), ROOM), schema, plan, mark: 0, bad: Vec::new() }
    }

    /// A message of this table begins.
    pub(crate) fn begin(&mut self) {
        self.mark = self.builder.len();
    }

    /// Takes back the rows of the message under way, a half-written one among them.
    pub(crate) fn undo(&mut self) {
        let longest = self.builder.columns().iter().map(|c| c.len()).max().unwrap_or(0);
        if longest > self.builder.len() {
            let columns = self.builder.columns();
            for column in columns.iter_mut().filter(|c| c.len() < longest) {
                column.append_null();
            }
            self.builder.end_row(if self.is_torn() { RowKind::UpdateAfter } else { RowKind::Insert }, 0);
        }
        // A −U whose +U never came needs a partner until both are taken out.
        if self.is_torn() {
            for column in self.builder.columns() {
                column.append_null();
            }
            self.builder.end_row(RowKind::UpdateAfter, 0);
        }
        let number = |row: usize| u32::try_from(row).expect("batches are far below 2^32 rows");
        self.bad.extend((self.mark..self.builder.len()).map(number));
    }

    fn is_torn(&self) -> bool {
        self.builder.last_kind() == Some(RowKind::UpdateBefore)
    }

    fn take(&mut self) -> Result<Option<ChangeBatch>> {
        self.mark = 0;
        if self.builder.is_empty() {
            return Ok(None);
        }
        let mut batch = self.builder.finish()?;
        if !self.bad.is_empty() {
            let rows = u32::try_from(batch.num_rows()).map_err(|e| {
                Error::internal(format!("batch of {} is too long", self.schema.id)).with_source(e)
            })?;
            let mut bad = std::mem::take(&mut self.bad).into_iter().peekable();
            let good = (0..rows).filter(|row| bad.next_if_eq(row).is_none()).collect::<Vec<u32>>();
            batch = batch.take(&good.into())?;
        }
        Ok((batch.num_rows() > 0).then_some(batch))
    }
}

/// Rows of many tables.
#[derive(Debug)]
pub(crate) struct Gatherer<P> {
    slots: Vec<Slot<P>>,
    by_id: HashMap<TableId, usize>,
    bytes: usize,
    /// The slot that was asked for last.
    newest: Option<usize>,
}

impl<P> Default for Gatherer<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), by_id: HashMap::new(), bytes: 0, newest: None }
    }
}

impl<P> Gatherer<P> {
    /// Adds a table or gives one another structure; it has no rows waiting.
    pub(crate) fn put(&mut self, schema: Arc<TableSchema>, plan: P) -> usize {
        match self.by_id.get(&schema.id) {
            Some(index) => {
                self.slots[*index] = Slot::new(schema, plan);
                *index
            }
            None => {
                self.by_id.insert(schema.id.clone(), self.slots.len());
                self.slots.push(Slot::new(schema, plan));
                self.slots.len() - 1
            }
        }
    }

    /// Where a table is; stays the same for good.
    pub(crate) fn find(&self, id: &TableId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn slot(&mut self, index: usize) -> &mut Slot<P> {
        self.newest = Some(index);
        &mut self.slots[index]
    }

    /// The table that was worked on last.
    pub(crate) fn newest(&self) -> Option<&TableId> {
        self.newest.map(|index| &self.slots[index].schema.id)
    }

    pub(crate) fn slots(&self) -> &[Slot<P>] {
        &self.slots
    }

    /// Notes the size of a message whose rows were gathered.
    pub(crate) fn taken(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    pub(crate) fn tables(&self) -> Vec<Arc<TableSchema>> {
        self.slots.iter().map(|s| s.schema.clone()).collect()
    }

    pub(crate) fn rows(&self) -> usize {
        self.slots.iter().map(|s| s.builder.len()).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn take(&mut self) -> Result<Vec<ChangeBatch>> {
        self.bytes = 0;
        let mut batches = Vec::new();
        for slot in &mut self.slots {
            batches.extend(slot.take()?);
        }
        Ok(batches)
    }
}

#[cfg(test)]
mod tests {
    use canalis_types::{Column, LogicalType};

    use super::*;

    #[test]
    fn rows_of_a_message_that_fails_are_taken_out_whole() {
        let columns =
            vec![Column::new("a", LogicalType::Int32, false), Column::new("b", LogicalType::Int32, true)];
        let schema = Arc::new(TableSchema::new(TableId::bare("t"), columns, vec!["a".into()]));
        for torn in
            ["half a row", "an update without its second half", "half a second half", "nothing at all"]
        {
            let mut gatherer = Gatherer::default();
            let index = gatherer.put(schema.clone(), ());
            let slot = gatherer.slot(index);
            let row = |slot: &mut Slot<()>, value: i64, kind| {
                slot.builder.column(0).append_i64(value).unwrap();
                slot.builder.column(1).append_i64(value).unwrap();
                slot.builder.end_row(kind, 8);
            };
            slot.begin();
            row(slot, 1, RowKind::Insert);
            slot.begin();
            row(slot, 2, RowKind::Insert);
            match torn {
                "half a row" => slot.builder.column(0).append_i64(3).unwrap(),
                "an update without its second half" => row(slot, 3, RowKind::UpdateBefore),
                "half a second half" => {
                    row(slot, 3, RowKind::UpdateBefore);
                    slot.builder.column(0).append_i64(4).unwrap();
                }
                _ => {}
            }
            slot.undo();
            slot.begin();
            row(slot, 5, RowKind::UpdateBefore);
            row(slot, 6, RowKind::UpdateAfter);
            let batches = gatherer.take().unwrap();
            let kinds: Vec<RowKind> = batches[0].kinds().to_vec();
            assert_eq!(kinds, [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter], "{torn}");
            assert_eq!(gatherer.rows(), 0);
        }
    }
}
