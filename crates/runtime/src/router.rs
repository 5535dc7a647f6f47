//! Owns the dealing of stream rows to writers. The rule is deterministic over restarts, because writers skip what
//! they have committed: same number of writers, same key, same writer.

use std::{collections::HashMap, sync::Arc};

use arrow_array::UInt32Array;
use canalis_batch::{ChangeBatch, KeyEncoder, route_hash};
use canalis_types::{LogicalType, Result, RowKind, TableId, TableSchema};

/// Which writer takes the rows of a table.
#[derive(Debug, Clone)]
enum Rule {
    /// All rows go to one writer.
    One(usize),
    /// Rows go by key.
    ByKey(KeyEncoder),
}

/// Deals rows to writers.
#[derive(Debug)]
pub struct Router {
    writers: usize,
    rules: HashMap<TableId, (Arc<TableSchema>, Rule)>,
}

impl Router {
    /// A router for so many writers.
    pub fn new(writers: usize) -> Self {
        Self { writers, rules: HashMap::new() }
    }

    fn rule(&mut self, schema: &Arc<TableSchema>) -> Rule {
        if let Some((known, rule)) = self.rules.get(&schema.id)
            && Arc::ptr_eq(known, schema)
        {
            return rule.clone();
        }
        let rule = rule_for(schema, self.writers);
        self.rules.insert(schema.id.clone(), (schema.clone(), rule.clone()));
        rule
    }

    /// Splits a batch into `(writer, rows)`, order per key kept. An update whose old and new key belong to different
    /// writers becomes a delete for one and an insert for the other.
    pub fn deal(&mut self, batch: ChangeBatch) -> Result<Vec<(usize, ChangeBatch)>> {
        let encoder = match self.rule(batch.schema()) {
            Rule::One(writer) => return Ok(vec![(writer, batch)]),
            Rule::ByKey(encoder) => encoder,
        };
        let kinds = batch.kinds();
        let mut parts: Vec<(Vec<u32>, Vec<RowKind>)> = vec![Default::default(); self.writers];
        let mut key = Vec::new();
        let mut place = |row: usize| -> Result<usize> {
            key.clear();
            encoder.encode(batch.rows(), row, &mut key)?;
            let slot = route_hash(&key) % self.writers as u64;
            Ok(usize::try_from(slot).expect("below the number of writers"))
        };
        let index = |row: usize| u32::try_from(row).expect("batches are below 2^32 rows");
        let mut row = 0;
        while row < kinds.len() {
            let writer = place(row)?;
            if kinds[row] != RowKind::UpdateBefore {
                parts[writer].0.push(index(row));
                parts[writer].1.push(kinds[row]);
                row += 1;
                continue;
            }
            let after = place(row + 1)?;
            let (before_kind, after_kind) = if writer == after {
                (RowKind::UpdateBefore, RowKind::UpdateAfter)
            } else {
                (RowKind::Delete, RowKind::Insert)
            };
            parts[writer].0.push(index(row));
            parts[writer].1.push(before_kind);
            parts[after].0.push(index(row + 1));
            parts[after].1.push(after_kind);
            row += 2;
        }
        let mut dealt = Vec::with_capacity(self.writers);
        for (writer, (rows, kinds)) in parts.into_iter().enumerate() {
            if rows.len() == batch.num_rows() {
                return Ok(vec![(writer, batch)]);
            }
            if !rows.is_empty() {
                dealt.push((writer, batch.take_as(&UInt32Array::from(rows), kinds)?));
            }
        }
        Ok(dealt)
    }
}

fn rule_for(schema: &TableSchema, writers: usize) -> Rule {
    let Some(encoder) = KeyEncoder::for_table(schema) else { return Rule::One(0) };
    // Keys that the database may call equal although their bytes differ, and rows that can collide on
    // another unique index, must keep their order among each other.
    let loose_text = schema.key_indexes().iter().any(|i| {
        let column = &schema.columns[*i];
        let binary = column
            .native
            .as_ref()
            .and_then(|n| n.collation.as_deref())
            .is_some_and(|c| c.ends_with("_bin") || c == "binary");
        (column.ty.is_text() && column.ty != LogicalType::Uuid && !binary)
            || matches!(column.ty, LogicalType::Float32 | LogicalType::Float64)
    });
    if writers == 1 {
        Rule::One(0)
    } else if loose_text || schema.indexes.iter().any(|i| i.unique) {
        let slot = route_hash(format!("{}\0", schema.id).as_bytes()) % writers as u64;
        Rule::One(usize::try_from(slot).expect("below the number of writers"))
    } else {
        Rule::ByKey(encoder)
    }
}

#[cfg(test)]
mod tests {
    use canalis_batch::BatchBuilder;
    use canalis_types::{Column, Index};

    use super::*;

    fn schema(change: impl FnOnce(&mut TableSchema)) -> Arc<TableSchema> {
        let mut schema = TableSchema::new(
            TableId::new("d", "t"),
            vec![Column::new("id", LogicalType::Int64, false), Column::new("s", LogicalType::Text, true)],
            vec!["id".into()],
        );
        change(&mut schema);
        Arc::new(schema)
    }

    fn batch(schema: &Arc<TableSchema>, rows: &[(RowKind, i64)]) -> ChangeBatch {
        let mut builder = BatchBuilder::new(schema.clone(), rows.len());
        for (kind, id) in rows {
            builder.column(0).append_i64(*id).unwrap();
            builder.column(1).append_null();
            builder.end_row(*kind, 0);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn neighbours_stay_together_and_blocks_spread() {
        let schema = schema(|_| ());
        let rows: Vec<(RowKind, i64)> = (0..4096).map(|i| (RowKind::Insert, i)).collect();
        let dealt = Router::new(4).deal(batch(&schema, &rows)).unwrap();
        assert_eq!(dealt.len(), 4);
        assert_eq!(dealt.iter().map(|(_, b)| b.num_rows()).sum::<usize>(), 4096);
        for (_, part) in &dealt {
            assert_eq!(part.num_rows() % 256, 0);
        }
    }

    #[test]
    fn ky_02_a_key_change_over_writers_is_delete_and_insert() {
        let schema = schema(|_| ());
        let mut router = Router::new(4);
        let moved = (1..100)
            .map(|i| {
                router
                    .deal(batch(&schema, &[(RowKind::UpdateBefore, 5), (RowKind::UpdateAfter, i * 1000)]))
                    .unwrap()
            })
            .find(|parts| parts.len() == 2)
            .expect("some key belongs to another writer");
        let kinds: Vec<RowKind> = moved.iter().flat_map(|(_, b)| b.kinds().to_vec()).collect();
        assert!(kinds.contains(&RowKind::Delete) && kinds.contains(&RowKind::Insert));
    }

    #[test]
    fn tables_without_a_plain_key_go_to_one_writer() {
        let rows: Vec<(RowKind, i64)> = (0..4096).map(|i| (RowKind::Insert, i)).collect();
        let keyless = schema(|s| s.primary_key.clear());
        assert_eq!(Router::new(4).deal(batch(&keyless, &rows)).unwrap()[0].0, 0);
        let unique = schema(|s| {
            s.indexes.push(Index {
                name: "u".into(),
                unique: true,
                definition: String::new(),
                columns: vec!["s".into()],
            });
        });
        assert_eq!(Router::new(4).deal(batch(&unique, &rows)).unwrap().len(), 1);
    }
}
