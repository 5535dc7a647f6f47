//! Owns what a table should hold: schemas, changes, the batches made of them, and a multiset of rows that the same changes
//! are applied to.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_connector_api::{CommitPoint, CommitReport, Split, SplitBegin, SplitMode};
use canalis_types::{Column, LogicalType, Position, RowKind, TableSchema};

use super::lab::Lab;

/// Cells as text; `None` is NULL.
pub type Row = Vec<Option<String>>;
/// Rows with what they stand for; an update is two.
pub type Changes = Vec<(RowKind, Row)>;

/// A row; the text `NULL` stands for NULL.
pub fn row(cells: &[&str]) -> Row {
    cells.iter().map(|cell| (*cell != "NULL").then(|| (*cell).to_owned())).collect()
}

/// A new row.
pub fn insert(cells: &[&str]) -> Changes {
    vec![(RowKind::Insert, row(cells))]
}

/// A row that becomes another.
pub fn update(before: &[&str], after: &[&str]) -> Changes {
    vec![(RowKind::UpdateBefore, row(before)), (RowKind::UpdateAfter, row(after))]
}

/// A row that goes.
pub fn delete(cells: &[&str]) -> Changes {
    vec![(RowKind::Delete, row(cells))]
}

/// A table with columns `(name, type)`, all nullable but the key.
pub fn schema(lab: &Lab, table: &str, columns: &[(&str, LogicalType)], key: &[&str]) -> Arc<TableSchema> {
    let columns =
        columns.iter().map(|(name, ty)| Column::new(*name, ty.clone(), !key.contains(name))).collect();
    let key = key.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(TableSchema::new(lab.id(table), columns, key))
}

/// `id` (the key) and a text `v`.
pub fn keyed(lab: &Lab, table: &str) -> Arc<TableSchema> {
    schema(lab, table, &[("id", LogicalType::Int32), ("v", LogicalType::Varchar { length: 20 })], &["id"])
}

/// The same columns without a key.
pub fn keyless(lab: &Lab, table: &str) -> Arc<TableSchema> {
    schema(lab, table, &[("id", LogicalType::Int32), ("v", LogicalType::Varchar { length: 20 })], &[])
}

/// One batch of changes.
pub fn batch(schema: &Arc<TableSchema>, changes: &[(RowKind, Row)]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), changes.len());
    for (kind, cells) in changes {
        assert_eq!(cells.len(), schema.columns.len());
        for (index, cell) in cells.iter().enumerate() {
            match cell {
                Some(text) => builder.column(index).append_text(text.as_bytes()).unwrap(),
                None => builder.column(index).append_null(),
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

/// What a table holds, as a multiset.
#[derive(Debug, Default, Clone)]
pub struct Model(Vec<Row>);

impl Model {
    /// Applies changes in order. A row that is removed must be there.
    pub fn apply(&mut self, changes: &[(RowKind, Row)]) {
        for (kind, row) in changes {
            match kind {
                RowKind::Insert | RowKind::UpdateAfter => self.0.push(row.clone()),
                RowKind::UpdateBefore | RowKind::Delete => {
                    let at = self.0.iter().position(|held| held == row).expect("the row is there");
                    self.0.swap_remove(at);
                }
            }
        }
    }

    /// The rows as [`Lab::rows`] gives them.
    pub fn lines(&self) -> Vec<String> {
        lines(self.0.clone())
    }
}

/// Rows as sorted lines of cells joined by `|`.
pub fn lines(rows: Vec<Row>) -> Vec<String> {
    let line = |row: Row| {
        let cells: Vec<String> =
            row.into_iter().map(|cell| cell.unwrap_or_else(|| "NULL".to_owned())).collect();
        cells.join("|")
    };
    let mut lines: Vec<String> = rows.into_iter().map(line).collect();
    lines.sort();
    lines
}

/// The place `n` in the stream; its text has what JSON and SQL must quote.
pub fn position(n: u64) -> Position {
    Position::new([1, n, 0], format!("{{\"n\":{n},\"it's\":\"\\\\列\"}}"))
}

/// A commit at the place `n` in the stream.
pub fn point(n: u64) -> CommitPoint {
    CommitPoint { position: Some(position(n)), epoch: n, ..CommitPoint::default() }
}

/// A commit that ends splits.
pub fn ends(splits: &[&str]) -> CommitPoint {
    let splits = splits.iter().map(|id| (*id).to_owned()).collect();
    CommitPoint { splits, epoch: 1, ..CommitPoint::default() }
}

/// Announces the first attempt at a snapshot split.
pub fn begin(id: &str, schema: &Arc<TableSchema>) -> SplitBegin {
    let split = Split {
        id: id.into(),
        mode: SplitMode::Snapshot,
        table: Some(schema.id.clone()),
        payload: serde_json::Value::Null,
        position: None,
        retried: false,
    };
    SplitBegin { split, schema: Some(schema.clone()) }
}

/// Announces another attempt.
pub fn begin_again(id: &str, schema: &Arc<TableSchema>) -> SplitBegin {
    let mut begin = begin(id, schema);
    begin.split.retried = true;
    begin
}

/// Changes written and changes refused, over all tables of a report.
pub fn counts(report: &CommitReport) -> (u64, u64) {
    let sum = |list: &[(_, u64)]| list.iter().map(|(_, changes)| changes).sum();
    (sum(&report.written), sum(&report.dead_lettered))
}

/// Numbers that look random and are the same in every run.
pub struct Numbers(u64);

impl Numbers {
    /// Begins at a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        // The generator of Knuth's MMIX; its upper bits are good enough here.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
