//! Owns [`History`]: the structures of tables as messages told them, each with the place where it began.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use canalis_types::TableSchema;
use serde::{Deserialize, Serialize};

/// A structure and the number of messages before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    since: u64,
    schema: Arc<TableSchema>,
}

/// Structures in the order in which they were met. Shared by the reader, which adds to it, and the enumerator, whose state holds it.
#[derive(Debug, Clone, Default)]
pub(super) struct History(Arc<Mutex<Vec<Entry>>>);

impl History {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Entries are pushed whole, so a panic elsewhere does not spoil them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, since: u64, schema: Arc<TableSchema>) {
        self.lock().push(Entry { since, schema });
    }

    /// The structure of every table after `count` messages.
    pub(super) fn tables_at(&self, count: u64) -> Vec<Arc<TableSchema>> {
        let mut tables: Vec<Arc<TableSchema>> = Vec::new();
        for entry in self.lock().iter().filter(|e| e.since <= count) {
            match tables.iter_mut().find(|t| t.id == entry.schema.id) {
                Some(table) => *table = entry.schema.clone(),
                None => tables.push(entry.schema.clone()),
            }
        }
        tables
    }

    /// Forgets what came after `count` messages: a restart decides it anew.
    pub(super) fn cut(&self, count: u64) {
        self.lock().retain(|e| e.since <= count);
    }

    /// Keeps one structure a table for everything up to `count` messages, which no restart goes back behind.
    pub(super) fn settle(&self, count: u64) {
        let mut entries = self.lock();
        let superseded: Vec<bool> = entries
            .iter()
            .enumerate()
            .map(|(at, e)| {
                entries[at + 1..].iter().any(|later| later.schema.id == e.schema.id && later.since <= count)
            })
            .collect();
        let mut superseded = superseded.into_iter();
        entries.retain(|_| !superseded.next().unwrap_or(false));
    }

    pub(super) fn state(&self) -> serde_json::Value {
        serde_json::to_value(&*self.lock()).unwrap_or_default()
    }

    pub(super) fn restore(state: serde_json::Value) -> serde_json::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(serde_json::from_value(state)?))))
    }
}

#[cfg(test)]
mod tests {
    use canalis_types::{Column, LogicalType, TableId};

    use super::*;

    #[test]
    fn the_structure_at_a_place_is_the_newest_before_it() {
        let schema = |table: &str, columns: usize| {
            let columns =
                (0..columns).map(|i| Column::new(format!("c{i}"), LogicalType::Int32, true)).collect();
            Arc::new(TableSchema::new(TableId::bare(table), columns, Vec::new()))
        };
        let history = History::default();
        for (since, table, columns) in [(0, "a", 1), (5, "b", 1), (7, "a", 2), (9, "a", 3)] {
            history.add(since, schema(table, columns));
        }
        let widths = |history: &History, count| {
            history.tables_at(count).iter().map(|t| (t.id.table.clone(), t.columns.len())).collect::<Vec<_>>()
        };
        assert_eq!(widths(&history, 4), [("a".to_owned(), 1)]);
        assert_eq!(widths(&history, 8), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        let restored = History::restore(history.state()).unwrap();
        restored.settle(8);
        assert_eq!(widths(&restored, 4), []);
        assert_eq!(widths(&restored, 9), [("b".to_owned(), 1), ("a".to_owned(), 3)]);
        restored.cut(8);
        assert_eq!(widths(&restored, 100).len(), 2);
    }
}
