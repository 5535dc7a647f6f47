//! Owns the writer: bounded splits stream through COPY inside one transaction; windows of changes are folded and
//! applied, with the position, in one transaction at commit.

mod bulk;
mod fold;
mod land;
mod patch;
mod preview;
mod rows;
mod statement;
mod window;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    CommitPoint, CommitReport, DeadLetter, SinkWriter, SplitBegin, SplitMode, WriterContext,
};
use canalis_types::{Error, Result, TableId, TableSchema};
use tokio_postgres::Client;

use self::bulk::Bulk;
use crate::{client::hold_job, sink::Shared, target::Target};

pub use preview::preview;

/// Writes rows over one session.
pub struct PostgresWriter {
    ctx: WriterContext,
    shared: Arc<Shared>,
    client: Client,
    generation: u64,
    targets: HashMap<TableId, Known>,
    /// Changes that wait for the commit, by table in order of appearance.
    windows: Vec<Window>,
    /// The bounded split under way.
    split: Option<SplitBegin>,
    /// Splits whose end is marked in the target, because their rows must not come twice.
    marked: BTreeSet<String>,
    bulk: Option<Bulk>,
    ledger: Ledger,
}

struct Known {
    schema: Arc<TableSchema>,
    target: Arc<Target>,
}

struct Window {
    target: Arc<Target>,
    batches: Vec<ChangeBatch>,
}

/// Changes and dead letters since the last commit.
#[derive(Default)]
struct Ledger {
    changes: BTreeMap<TableId, u64>,
    letters: BTreeMap<TableId, u64>,
}

impl Ledger {
    fn take(&mut self) -> CommitReport {
        let letters = std::mem::take(&mut self.letters);
        let written = std::mem::take(&mut self.changes)
            .into_iter()
            .map(|(table, changes)| {
                let refused = letters.get(&table).copied().unwrap_or(0);
                (table, changes.saturating_sub(refused))
            })
            .collect();
        CommitReport { written, dead_lettered: letters.into_iter().collect() }
    }
}

impl PostgresWriter {
    /// A writer over a fresh session.
    pub async fn open(ctx: WriterContext, shared: Arc<Shared>, client: Client) -> Result<Self> {
        hold_job(&client, &ctx.job).await?;
        let generation = shared.generation();
        Ok(Self {
            ctx,
            shared,
            client,
            generation,
            targets: HashMap::new(),
            windows: Vec::new(),
            split: None,
            marked: BTreeSet::new(),
            bulk: None,
            ledger: Ledger::default(),
        })
    }

    async fn target(&mut self, schema: &Arc<TableSchema>) -> Result<Arc<Target>> {
        let generation = self.shared.generation();
        if generation != self.generation {
            self.targets.clear();
            self.generation = generation;
        }
        if let Some(known) = self.targets.get(&schema.id)
            && (Arc::ptr_eq(&known.schema, schema) || same_columns(&known.schema, schema))
        {
            return Ok(known.target.clone());
        }
        let (target, _) = self.shared.target(&self.client, schema).await?;
        let target = Arc::new(target);
        self.targets.insert(schema.id.clone(), Known { schema: schema.clone(), target: target.clone() });
        Ok(target)
    }

    fn count(&mut self, batch: &ChangeBatch) {
        let id = &batch.schema().id;
        match self.ledger.changes.get_mut(id) {
            Some(changes) => *changes += batch.num_changes(),
            None => {
                self.ledger.changes.insert(id.clone(), batch.num_changes());
            }
        }
    }

    /// Hands refused rows over.
    async fn reject(&mut self, letters: Vec<DeadLetter>) -> Result<()> {
        if letters.is_empty() {
            return Ok(());
        }
        let mut counts: BTreeMap<TableId, u64> = BTreeMap::new();
        for letter in &letters {
            *counts.entry(letter.table.clone()).or_default() += 1;
        }
        self.ctx.dead_letters.reject(letters).await?;
        for (table, count) in counts {
            *self.ledger.letters.entry(table).or_default() += count;
        }
        Ok(())
    }

    /// Statements that record the point; empty when there is nothing to record.
    fn record(&self, point: &CommitPoint) -> Result<String> {
        self.shared.progress.record(&self.ctx.job, self.ctx.index, self.ctx.writers, point, &self.marked)
    }
}

fn same_columns(a: &TableSchema, b: &TableSchema) -> bool {
    a.columns == b.columns && a.primary_key == b.primary_key
}

#[async_trait]
impl SinkWriter for PostgresWriter {
    async fn begin_split(&mut self, begin: &SplitBegin) -> Result<()> {
        let keyed = begin.schema.as_ref().is_some_and(|s| s.has_key());
        if !keyed || begin.split.mode == SplitMode::Append {
            self.marked.insert(begin.split.id.clone());
        }
        if begin.split.retried {
            // Its rows may be there already, so they must not join a COPY that counts on a table without them.
            self.finish_segment().await?;
        }
        self.split = Some(begin.clone());
        Ok(())
    }

    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.count(&batch);
        let is_whole = batch.is_insert_only() && batch.unchanged().is_none();
        let bulk = self.split.is_some() && self.windows.is_empty() && is_whole;
        if bulk {
            return self.write_bulk(batch).await;
        }
        // The session is inside COPY until the segment ends.
        self.finish_segment().await?;
        let target = self.target(batch.schema()).await?;
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
        if self.bulk.is_some() {
            self.commit_bulk(point).await?;
        } else if !self.windows.is_empty() {
            self.commit_windows(point).await?;
        } else {
            let record = self.record(point)?;
            if !record.is_empty() {
                land::control(&self.client, &record).await?;
            }
        }
        for split in &point.splits {
            self.marked.remove(split);
            if self.split.as_ref().is_some_and(|s| s.split.id == *split) {
                self.split = None;
            }
        }
        Ok(self.ledger.take())
    }

    async fn schema_changed(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        self.targets.remove(&schema.id);
        Ok(())
    }
}
