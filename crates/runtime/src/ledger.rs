//! Owns the ledger: for every table, rows read are the sum of rows written, filtered and dead-lettered.

use std::collections::BTreeMap;

use canalis_types::{Code, Error, Result, TableId};
use serde::{Deserialize, Serialize};

/// Counts of changes; an update is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableCounts {
    /// Read from the source (source tables).
    pub read: u64,
    /// Dropped by a filter (source tables).
    pub filtered: u64,
    /// Refused before they reached a writer (source tables).
    pub refused: u64,
    /// Passed on towards writers, all routes together (source tables).
    pub emitted: u64,
    /// Sent by readers, a key change over two writers as two (sink tables).
    pub expected: u64,
    /// Received by writers (sink tables).
    pub sent: u64,
    /// Written (sink tables).
    pub written: u64,
    /// Dead-lettered by writers (sink tables).
    pub dead_lettered: u64,
    /// Skipped because an earlier run had committed them (sink tables).
    pub skipped: u64,
    /// Bytes read (source tables).
    pub bytes: u64,
}

impl TableCounts {
    fn add(&mut self, other: &TableCounts) {
        self.read += other.read;
        self.filtered += other.filtered;
        self.refused += other.refused;
        self.emitted += other.emitted;
        self.expected += other.expected;
        self.sent += other.sent;
        self.written += other.written;
        self.dead_lettered += other.dead_lettered;
        self.skipped += other.skipped;
        self.bytes += other.bytes;
    }
}

/// Counts by table, source side and sink side apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// By source table.
    #[serde(with = "by_table")]
    pub sources: BTreeMap<TableId, TableCounts>,
    /// By sink table.
    #[serde(with = "by_table")]
    pub sinks: BTreeMap<TableId, TableCounts>,
}

/// JSON keys must be text: tables are kept as pairs.
mod by_table {
    use super::*;

    pub fn serialize<S: serde::Serializer>(
        map: &BTreeMap<TableId, TableCounts>,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<BTreeMap<TableId, TableCounts>, D::Error> {
        Ok(Vec::<(TableId, TableCounts)>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl Ledger {
    /// Counts of a source table.
    pub fn source(&mut self, table: &TableId) -> &mut TableCounts {
        if !self.sources.contains_key(table) {
            self.sources.insert(table.clone(), TableCounts::default());
        }
        self.sources.get_mut(table).expect("just inserted")
    }

    /// Counts of a sink table.
    pub fn sink(&mut self, table: &TableId) -> &mut TableCounts {
        if !self.sinks.contains_key(table) {
            self.sinks.insert(table.clone(), TableCounts::default());
        }
        self.sinks.get_mut(table).expect("just inserted")
    }

    /// Adds the counts of a part.
    pub fn add(&mut self, part: &Ledger) {
        for (table, counts) in &part.sources {
            self.source(table).add(counts);
        }
        for (table, counts) in &part.sinks {
            self.sink(table).add(counts);
        }
    }

    /// Checks the sums at a moment when nothing is in flight.
    ///
    /// # Errors
    /// `CNL-4003` with the table and its figures.
    pub fn verify(&self) -> Result<()> {
        for (table, c) in &self.sources {
            if c.read != c.filtered + c.refused + c.emitted {
                return Err(Error::new(
                    Code::LedgerMismatch,
                    format!(
                        "table {table}: {} changes read, but {} filtered + {} refused + {} passed on",
                        c.read, c.filtered, c.refused, c.emitted
                    ),
                ));
            }
        }
        for (table, c) in &self.sinks {
            if c.expected != c.sent {
                return Err(Error::new(
                    Code::LedgerMismatch,
                    format!(
                        "table {table}: {} changes sent by readers, {} received by writers",
                        c.expected, c.sent
                    ),
                ));
            }
            if c.sent != c.written + c.dead_lettered + c.skipped {
                return Err(Error::new(
                    Code::LedgerMismatch,
                    format!(
                        "table {table}: {} changes sent to the sink, but {} written + {} dead-lettered + {} skipped",
                        c.sent, c.written, c.dead_lettered, c.skipped
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Totals over all tables: (read, written, filtered, dead-lettered).
    pub fn totals(&self) -> (u64, u64, u64, u64) {
        let s = self.sources.values();
        let read = s.clone().map(|c| c.read).sum();
        let filtered = s.clone().map(|c| c.filtered).sum();
        let refused: u64 = s.map(|c| c.refused).sum();
        let written = self.sinks.values().map(|c| c.written).sum();
        let dead: u64 = self.sinks.values().map(|c| c.dead_lettered).sum();
        (read, written, filtered, refused + dead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_an_error_that_names_the_table() {
        let mut ledger = Ledger::default();
        let table = TableId::new("shop", "orders");
        *ledger.source(&table) =
            TableCounts { read: 10, filtered: 3, refused: 1, emitted: 6, ..Default::default() };
        *ledger.sink(&table) =
            TableCounts { expected: 6, sent: 6, written: 5, dead_lettered: 1, ..Default::default() };
        ledger.verify().unwrap();
        ledger.sink(&table).written = 4;
        let error = ledger.verify().unwrap_err();
        assert_eq!(error.code(), Code::LedgerMismatch);
        assert!(error.message().contains("shop.orders"));
    }

    #[test]
    fn a_ledger_survives_json() {
        let mut ledger = Ledger::default();
        ledger.source(&TableId::new("a.b", "c")).read = 7;
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
    }
}
