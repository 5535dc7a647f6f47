//! Owns the generator: batches of consecutive changes from any number on, with the memory of a few blocks.

use std::{collections::VecDeque, sync::Arc};

use canalis_batch::ChangeBatch;
use canalis_types::{Result, RowKind, TableSchema};

use crate::{
    order::OrderColumns,
    schedule::{Action, BLOCK, LAG, Mix},
};

pub(crate) struct Generator {
    mix: Mix,
    schema: Arc<TableSchema>,
    /// Number of the next change.
    next: u64,
    /// Changes of the block that `next` is in.
    actions: Vec<Action>,
    /// How often each order of the window was updated.
    updates: VecDeque<u32>,
    /// The first order of the window.
    window: u64,
}

impl Generator {
    /// A generator whose first change is number `next`.
    pub(crate) fn new(mix: Mix, schema: Arc<TableSchema>, next: u64) -> Self {
        let block = next / BLOCK;
        let from = block.saturating_sub(LAG);
        let mut generator = Self {
            mix,
            schema,
            next: from * BLOCK,
            actions: mix.block(from),
            updates: VecDeque::new(),
            window: mix.first(from),
        };
        // Updates of orders that came before the window are of no interest any more.
        while generator.next < next {
            generator.step();
        }
        generator
    }

    /// Number of the next change.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The next `changes` changes.
    pub(crate) fn batch(&mut self, changes: usize) -> Result<ChangeBatch> {
        let mut columns = OrderColumns::with_capacity(changes + changes / 2);
        let seed = self.mix.seed;
        for _ in 0..changes {
            let (action, updates) = self.step();
            match action {
                Action::Insert(order) => columns.push(RowKind::Insert, seed, order, 0),
                Action::Update(order) => {
                    columns.push(RowKind::UpdateBefore, seed, order, updates);
                    columns.push(RowKind::UpdateAfter, seed, order, updates + 1);
                }
                Action::Delete(order) => columns.push(RowKind::Delete, seed, order, updates),
            }
        }
        columns.finish(&self.schema)
    }

    /// Takes the next change; the number is how often its order was updated before.
    fn step(&mut self) -> (Action, u32) {
        let at = usize::try_from(self.next % BLOCK).unwrap_or_default();
        if at == 0 && self.next > 0 {
            self.enter(self.next / BLOCK);
        }
        self.next += 1;
        let action = self.actions[at];
        let updates = match action {
            Action::Insert(_) => {
                self.updates.push_back(0);
                0
            }
            Action::Update(order) => self.slot(order).map_or(0, |updates| {
                *updates += 1;
                *updates - 1
            }),
            Action::Delete(order) => self.slot(order).map_or(0, |updates| *updates),
        };
        (action, updates)
    }

    /// Begins a block: no change goes to orders of blocks more than [`LAG`] before any more.
    fn enter(&mut self, block: u64) {
        self.actions = self.mix.block(block);
        let window = self.mix.first(block.saturating_sub(LAG));
        let leaving = usize::try_from(window.saturating_sub(self.window)).unwrap_or(usize::MAX);
        self.updates.drain(..leaving.min(self.updates.len()));
        self.window = self.window.max(window);
    }

    fn slot(&mut self, order: u64) -> Option<&mut u32> {
        let at = usize::try_from(order.checked_sub(self.window)?).ok()?;
        self.updates.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use canalis_types::TableId;

    use super::*;
    use crate::order::order_schema;

    #[test]
    fn going_on_from_any_change_gives_the_same_stream() {
        let schema = Arc::new(order_schema(TableId::bare("orders")));
        for (updates, deletes) in [(300, 100), (900, 0), (100, 450)] {
            let mix = Mix::new(3, updates, deletes).unwrap();
            for start in [0, 1, 999, 1000, 1001, 15_500, 16_000, 17_123, 40_001] {
                let mut whole = Generator::new(mix, schema.clone(), 0);
                while whole.next() < start {
                    whole.batch(usize::try_from(start - whole.next()).unwrap().min(777)).unwrap();
                }
                let mut resumed = Generator::new(mix, schema.clone(), start);
                assert!(resumed.updates.len() < 20_000);
                let (a, b) = (whole.batch(500).unwrap(), resumed.batch(500).unwrap());
                assert_eq!((a.rows(), a.kinds()), (b.rows(), b.kinds()), "{start}");
            }
        }
    }
}
