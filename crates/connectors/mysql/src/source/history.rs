//! Owns the schema history: which structure each captured table has at which place of the stream. It is part of the
//! durable state, so that rows are always decoded with the structure that was valid where they were written.

use std::{collections::BTreeMap, sync::Arc};

use canalis_types::{Order, TableId, TableSchema};
use serde::{Deserialize, Serialize};

use crate::catalog::Table;

/// A structure and the statement from which on it is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    /// First position that has the structure; none for the structure at the start of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Order>,
    table: Arc<Table>,
}

/// Structures of all captured tables. Serializes as a list, because JSON keys are texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(TableId, Vec<Version>)>", into = "Vec<(TableId, Vec<Version>)>")]
pub(crate) struct History {
    tables: BTreeMap<TableId, Vec<Version>>,
}

impl From<Vec<(TableId, Vec<Version>)>> for History {
    fn from(list: Vec<(TableId, Vec<Version>)>) -> Self {
        Self { tables: list.into_iter().collect() }
    }
}

impl From<History> for Vec<(TableId, Vec<Version>)> {
    fn from(history: History) -> Self {
        history.tables.into_iter().collect()
    }
}

impl History {
    /// Tables with their structure at the start.
    pub(crate) fn new(tables: impl IntoIterator<Item = Arc<Table>>) -> Self {
        let version = |table: Arc<Table>| (table.schema.id.clone(), vec![Version { from: None, table }]);
        Self { tables: tables.into_iter().map(version).collect() }
    }

    /// The newest structure of a table; `None` when it is not captured.
    pub(crate) fn current(&self, id: &TableId) -> Option<&Arc<Table>> {
        self.tables.get(id)?.last().map(|version| &version.table)
    }

    /// Captured tables.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &TableId> {
        self.tables.keys()
    }

    /// Newest structures of all tables.
    pub(crate) fn schemas(&self) -> Vec<Arc<TableSchema>> {
        self.tables.values().filter_map(|v| v.last()).map(|v| v.table.schema.clone()).collect()
    }

    /// The structure of a table just before `position`.
    pub(crate) fn before(&self, id: &TableId, position: Order) -> Option<&Arc<Table>> {
        let earlier = |version: &&Version| version.from.is_none_or(|from| from < position);
        self.tables.get(id)?.iter().rev().find(earlier).map(|version| &version.table)
    }

    /// Notes the structure that is valid from `position` on. What was noted for this or a later position is
    /// forgotten: the stream has gone back and will deliver it again.
    pub(crate) fn record(&mut self, position: Order, table: Arc<Table>) {
        let versions = self.tables.entry(table.schema.id.clone()).or_default();
        versions.retain(|v| v.from.is_none_or(|from| from < position));
        versions.push(Version { from: Some(position), table });
    }

    /// Forgets structures that a stream going on from `position` has still before it.
    pub(crate) fn rewind(&mut self, position: Order) {
        for versions in self.tables.values_mut() {
            versions.retain(|v| v.from.is_none_or(|from| from <= position));
        }
    }

    /// Forgets structures that nothing at or after `position` needs.
    pub(crate) fn prune(&mut self, position: Order) {
        for versions in self.tables.values_mut() {
            let taken = versions.iter().filter(|v| v.from.is_none_or(|from| from <= position)).count();
            versions.drain(..taken.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use canalis_types::{Column, LogicalType};

    use super::*;

    fn table(columns: usize) -> Arc<Table> {
        let columns = (0..columns).map(|i| Column::new(format!("c{i}"), LogicalType::Int32, true)).collect();
        Arc::new(Table {
            schema: Arc::new(TableSchema::new(TableId::new("d", "t"), columns, Vec::new())),
            charset: "utf8mb4".into(),
            collation: "utf8mb4_general_ci".into(),
            prefix_key: false,
        })
    }

    fn width(history: &History) -> usize {
        history.current(&TableId::new("d", "t")).unwrap().schema.columns.len()
    }

    #[test]
    fn my_15_each_position_has_its_structure() {
        let mut history = History::new([table(1)]);
        history.record([1, 100, 0], table(2));
        history.record([1, 500, 0], table(3));
        let text = serde_json::to_string(&history).unwrap();
        for (position, expect) in [
            ([1, 4, 0], 1),
            ([1, 99, 9], 1),
            ([1, 100, 0], 2),
            ([1, 499, 0], 2),
            ([1, 500, 0], 3),
            ([2, 4, 0], 3),
        ] {
            let mut restored: History = serde_json::from_str(&text).unwrap();
            restored.rewind(position);
            assert_eq!(width(&restored), expect, "{position:?}");
        }
        let mut pruned = history.clone();
        pruned.prune([1, 300, 0]);
        assert_eq!(pruned.tables.values().next().unwrap().len(), 2);
        pruned.rewind([1, 300, 0]);
        assert_eq!(width(&pruned), 2);
    }
}
