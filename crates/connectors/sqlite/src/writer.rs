//! Owns the writer: rows of bounded splits go in as they come, windows of changes are folded, and both are committed
//! with the position in one transaction.

mod apply;
mod preview;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    CommitPoint, CommitReport, DeadLetter, DeadLetterQueue, SinkWriter, SplitBegin, SplitMode,
};
use canalis_types::{Error, Result, TableId, TableSchema};

use crate::{
    database::Database,
    error::to_error,
    progress::{self, Owner, has_record},
    sink,
    target::Target,
};

pub use preview::preview;

/// Refused rows that wait for the commit before they are handed over earlier.
const MAX_WAITING_LETTERS: usize = 500;

/// Writes rows over one connection.
pub struct SqliteWriter {
    owner: Owner,
    dead_letters: Arc<dyn DeadLetterQueue>,
    database: Database,
    targets: HashMap<TableId, Known>,
    windows: Vec<Window>,
    split: Option<SplitBegin>,
    /// Splits whose end is marked in the file, because their rows must not come twice.
    marked: BTreeSet<String>,
    /// Whether a transaction with rows of bounded splits is open.
    open: bool,
    letters: Vec<DeadLetter>,
    changes: BTreeMap<TableId, u64>,
    refused: BTreeMap<TableId, u64>,
}

struct Known {
    schema: Arc<TableSchema>,
    target: Arc<Target>,
}

/// Changes of one table that wait for the commit.
pub struct Window {
    /// Where they go.
    pub target: Arc<Target>,
    /// The changes.
    pub batches: Vec<ChangeBatch>,
}

impl SqliteWriter {
    /// A writer over a connection of its own.
    pub fn new(owner: Owner, dead_letters: Arc<dyn DeadLetterQueue>, database: Database) -> Self {
        Self {
            owner,
            dead_letters,
            database,
            targets: HashMap::new(),
            windows: Vec::new(),
            split: None,
            marked: BTreeSet::new(),
            open: false,
            letters: Vec::new(),
            changes: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    async fn target(&mut self, schema: &Arc<TableSchema>) -> Result<Arc<Target>> {
        if let Some(known) = self.targets.get(&schema.id)
            && (Arc::ptr_eq(&known.schema, schema)
                || (known.schema.columns == schema.columns && known.schema.primary_key == schema.primary_key))
        {
            return Ok(known.target.clone());
        }
        let wanted = schema.clone();
        let (target, _) = self.database.call(move |connection| sink::target(connection, &wanted)).await?;
        let target = Arc::new(target);
        let known = Known { schema: schema.clone(), target: target.clone() };
        self.targets.insert(schema.id.clone(), known);
        Ok(target)
    }

    async fn begin(&mut self) -> Result<()> {
        if !self.open {
            self.database.call(begin).await?;
            self.open = true;
        }
        Ok(())
    }

    async fn hand_over(&mut self, letters: Vec<DeadLetter>) -> Result<()> {
        if letters.is_empty() {
            return Ok(());
        }
        let mut counts: BTreeMap<TableId, u64> = BTreeMap::new();
        for letter in &letters {
            *counts.entry(letter.table.clone()).or_default() += 1;
        }
        self.dead_letters.reject(letters).await?;
        for (table, count) in counts {
            *self.refused.entry(table).or_default() += count;
        }
        Ok(())
    }

    fn report(&mut self) -> CommitReport {
        let refused = std::mem::take(&mut self.refused);
        let written = std::mem::take(&mut self.changes)
            .into_iter()
            .map(|(table, changes)| {
                let letters = refused.get(&table).copied().unwrap_or(0);
                (table, changes.saturating_sub(letters))
            })
            .collect();
        CommitReport { written, dead_lettered: refused.into_iter().collect() }
    }
}

fn begin(connection: &rusqlite::Connection) -> Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE").map_err(|e| to_error("beginning a transaction", e))
}

#[async_trait]
impl SinkWriter for SqliteWriter {
    async fn begin_split(&mut self, begin: &SplitBegin) -> Result<()> {
        let keyed = begin.schema.as_ref().is_some_and(|s| s.has_key());
        if !keyed || begin.split.mode == SplitMode::Append {
            self.marked.insert(begin.split.id.clone());
        }
        self.split = Some(begin.clone());
        Ok(())
    }

    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        *self.changes.entry(batch.schema().id.clone()).or_default() += batch.num_changes();
        let target = self.target(batch.schema()).await?;
        let is_whole = batch.is_insert_only() && batch.unchanged().is_none();
        if self.split.is_some() && self.windows.is_empty() && is_whole {
            self.begin().await?;
            let mut letters =
                self.database.call(move |connection| apply::rows(connection, &target, &batch)).await?;
            self.letters.append(&mut letters);
            if self.letters.len() >= MAX_WAITING_LETTERS {
                let letters = std::mem::take(&mut self.letters);
                self.hand_over(letters).await?;
            }
            return Ok(());
        }
        match self.windows.iter_mut().find(|w| w.target.id == target.id) {
            Some(window) if Arc::ptr_eq(&window.target, &target) => window.batches.push(batch),
            Some(_) => {
                let id = &target.id;
                return Err(Error::internal(format!(
                    "the structure of {id} changed without a commit before it"
                )));
            }
            None => self.windows.push(Window { target, batches: vec![batch] }),
        }
        Ok(())
    }

    async fn commit(&mut self, point: &CommitPoint) -> Result<CommitReport> {
        let windows = std::mem::take(&mut self.windows);
        if self.open || !windows.is_empty() || has_record(point, &self.marked) {
            self.begin().await?;
            let position = point.position.clone();
            let mut letters = std::mem::take(&mut self.letters);
            let more = self
                .database
                .call(move |connection| apply::windows(connection, &windows, position.as_ref()))
                .await?;
            letters.extend(more);
            // Before the COMMIT: what is refused must be safe when the position has passed it.
            self.hand_over(letters).await?;
            let (owner, marked, point) = (self.owner.clone(), self.marked.clone(), point.clone());
            self.database
                .call(move |connection| {
                    progress::record(connection, &owner, &point, &marked)?;
                    connection.execute_batch("COMMIT").map_err(|e| to_error("committing", e))
                })
                .await?;
            self.open = false;
        }
        for split in &point.splits {
            self.marked.remove(split);
            if self.split.as_ref().is_some_and(|s| s.split.id == *split) {
                self.split = None;
            }
        }
        Ok(self.report())
    }

    async fn schema_changed(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        self.targets.remove(&schema.id);
        Ok(())
    }
}
