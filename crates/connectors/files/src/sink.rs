//! Owns the sink: rows go to hidden files, which become visible with a checkpoint that covers them.
//!
//! Exactly once in two phases. A writer appends to hidden files; [`SinkWriter::prepare`] makes them durable and tells their
//! lengths, and which are complete. When the checkpoint is durable, `publish` renames the complete ones. After a crash,
//! `publish` gets the same states again before any writer exists: it cuts the files that were open at the checkpoint back to
//! their lengths then and makes them visible too; everything else that is hidden belongs to no checkpoint and is
//! removed. Each step is idempotent.

mod publish;
mod rolling;
mod state;
mod writer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    Finding, Sink, SinkCapabilities, SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode,
    TablePlan, WriterContext,
};
use canalis_types::{Code, Error, Result, SchemaChange, TableSchema};
use serde_json::Value;

use crate::{
    blocking::blocking,
    naming::{job_tag, table_directory},
    options::{RowKinds, SinkOptions},
};
use publish::Publisher;

pub(crate) struct FilesSink {
    options: Arc<SinkOptions>,
    publisher: Publisher,
    phase: Mutex<Phase>,
    /// Every writer holds a copy.
    alive: Arc<()>,
}

/// Where in its life the sink is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Opened, no writer yet: hidden files are of an earlier run.
    Recovering,
    /// Writers are at work on hidden files.
    Writing,
}

impl FilesSink {
    pub(crate) fn new(options: SinkOptions) -> Self {
        Self {
            publisher: Publisher::new(options.path.clone()),
            options: Arc::new(options),
            phase: Mutex::new(Phase::Recovering),
            alive: Arc::new(()),
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        // A phase is a plain value: it is sound even if a holder has panicked.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// INVARIANT: recovery touches hidden files only while no writer exists that could write to them.
    fn check_alone(&self) -> Result<()> {
        if Arc::strong_count(&self.alive) > 1 {
            let text = "cannot recover files: writers of an earlier run are still at work";
            return Err(Error::new(Code::SinkContention, text));
        }
        Ok(())
    }

    fn check_columns(&self, schema: &TableSchema) -> Result<()> {
        let name = &self.options.row_kind_column;
        if self.options.row_kinds == RowKinds::Always && schema.column(name).is_some() {
            return Err(row_kind_clash(schema, name));
        }
        Ok(())
    }
}

/// The error for a table that has a column of the row kind's name.
fn row_kind_clash(schema: &TableSchema, name: &str) -> Error {
    Error::new(
        Code::TargetIncompatible,
        format!(
            "{} has a column `{name}`, which is where the row kind goes; set `row-kind.column`",
            schema.id
        ),
    )
}

#[async_trait]
impl Sink for FilesSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities { upsert: false, parallel: true, add_column: true }
    }

    async fn check(&self, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        let root = self.options.path.display();
        let mut findings = vec![match blocking(|| self.publisher.probe()) {
            Ok(()) => Finding::ok("sink files: path", format!("{root} can be written")),
            Err(error) => Finding::error(
                "sink files: path",
                error.to_string(),
                format!("make a directory that the account of the job may write: mkdir -p '{root}'"),
            ),
        }];
        for table in tables {
            if let Err(error) = self.check_columns(table) {
                let remedy = "set `row-kind.column` to a name that no table has, or `row-kind: never`";
                findings.push(Finding::error(format!("sink files: {}", table.id), error.to_string(), remedy));
            }
        }
        findings
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        self.check_columns(schema)?;
        let directory = self.options.path.join(table_directory(&schema.id));
        let missing = blocking(|| !directory.is_dir());
        Ok(TablePlan {
            table: schema.id.clone(),
            statements: if missing {
                vec![format!("mkdir -p '{}'", directory.display())]
            } else {
                Vec::new()
            },
            notes: Vec::new(),
        })
    }

    async fn preview(&self, batch: &ChangeBatch, mode: SplitMode) -> Result<SinkPreview> {
        writer::preview(&self.options, batch, mode)
    }

    async fn open(&self, _ctx: &SinkContext) -> Result<SinkRecovery> {
        *self.phase() = Phase::Recovering;
        blocking(|| self.publisher.create_directory(None))?;
        Ok(SinkRecovery::default())
    }

    async fn prepare_table(&self, schema: &Arc<TableSchema>, _snapshot: bool) -> Result<TablePlan> {
        let plan = self.plan_table(schema).await?;
        blocking(|| self.publisher.create_directory(Some(&table_directory(&schema.id))))?;
        Ok(plan)
    }

    async fn snapshot_complete(&self, _tables: &[Arc<TableSchema>]) -> Result<()> {
        Ok(())
    }

    /// Nothing to do: a file has one structure, so a new one is begun with the first row of the new structure.
    async fn apply_schema_change(&self, _change: &SchemaChange) -> Result<()> {
        Ok(())
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let mut phase = self.phase();
        if *phase == Phase::Recovering {
            self.check_alone()?;
            // What was hidden and is covered by the checkpoint has been published by now.
            blocking(|| self.publisher.remove_hidden(&job_tag(&ctx.job)))?;
            *phase = Phase::Writing;
        }
        let alive = self.alive.clone();
        Ok(Box::new(writer::FilesWriter::new(self.options.clone(), ctx, alive)))
    }

    async fn publish(&self, prepared: &[Value]) -> Result<()> {
        let phase = self.phase();
        if *phase == Phase::Writing {
            return blocking(|| self.publisher.publish(prepared));
        }
        self.check_alone()?;
        blocking(|| self.publisher.recover(prepared))
    }
}
