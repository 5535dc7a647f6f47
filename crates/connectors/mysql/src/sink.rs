//! Owns the sink: tables are made or checked, rows are loaded, merged by key or applied in order, and each transaction
//! carries the position it stands for.

mod cells;
mod check;
mod collation;
mod column_sql;
mod config;
mod ddl;
mod existing;
mod failure;
mod fit;
mod indexes;
mod keyed;
mod keyless;
mod load;
mod prepare;
mod progress;
mod screen;
mod session;
mod shared;
mod statement;
mod strict;
mod target;
mod text;
mod writer;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    Finding, Options, Sink, SinkCapabilities, SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode,
    TablePlan, WriterContext,
};
use canalis_types::{Code, Error, Result, SchemaChange, TableSchema};
use futures::{TryStreamExt, stream};
use serde_json::Value;

pub(crate) use config::SINK_OPTIONS;

use config::SinkConfig;
use progress::{Progress, Start};
use shared::Shared;
use writer::Writer;

/// Tables whose indexes are built at once.
const INDEX_BUILDERS: usize = 2;

/// Makes a sink. No IO.
///
/// # Errors
/// Definition errors.
pub(crate) fn sink(options: &Options) -> Result<Arc<dyn Sink>> {
    let shared = Arc::new(Shared::new(SinkConfig::parse(options)?));
    Ok(Arc::new(MySqlSink { shared, fresh: AtomicBool::new(true) }))
}

struct MySqlSink {
    shared: Arc<Shared>,
    fresh: AtomicBool,
}

#[async_trait]
impl Sink for MySqlSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities { upsert: true, parallel: true, add_column: true }
    }

    async fn check(&self, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        check::check(&self.shared, tables).await
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        let mut session = self.shared.session().await?;
        let plan = prepare::plan(&self.shared, &mut session, schema).await?;
        self.shared.keep(session);
        Ok(plan)
    }

    async fn preview(&self, batch: &ChangeBatch, _mode: SplitMode) -> Result<SinkPreview> {
        writer::preview(&self.shared, batch).await
    }

    async fn open(&self, ctx: &SinkContext) -> Result<SinkRecovery> {
        let database = self
            .shared
            .config
            .database
            .clone()
            .or_else(|| ctx.tables.first().and_then(|table| table.schema.clone()))
            .ok_or_else(|| {
                Error::new(
                    Code::PipelineInvalid,
                    "there is no database for the job's records: give the sink the option `database`",
                )
            })?;
        self.fresh.store(ctx.fresh, Ordering::Relaxed);
        let start = if ctx.fresh { Start::Fresh } else { Start::Restored };
        let mut session = self.shared.session().await?;
        let progress = Progress::open(&mut session, &database, &ctx.job, start, ctx.writers).await?;
        let recovery = progress.recover(&mut session, ctx.writers).await?;
        self.shared.set_progress(progress);
        self.shared.keep(session);
        Ok(recovery)
    }

    async fn prepare_table(&self, schema: &Arc<TableSchema>, snapshot: bool) -> Result<TablePlan> {
        let moment = prepare::Moment { before_snapshot: snapshot, fresh: self.fresh.load(Ordering::Relaxed) };
        let mut session = self.shared.session().await?;
        let plan = prepare::prepare(&self.shared, &mut session, schema, moment).await?;
        self.shared.keep(session);
        Ok(plan)
    }

    async fn snapshot_complete(&self, tables: &[Arc<TableSchema>]) -> Result<()> {
        stream::iter(tables.iter().map(Ok))
            .try_for_each_concurrent(INDEX_BUILDERS, |schema| async move {
                let mut session = self.shared.connect().await?;
                indexes::complete(&self.shared, &mut session, schema).await?;
                session.close().await;
                Ok(())
            })
            .await
    }

    async fn apply_schema_change(&self, change: &SchemaChange) -> Result<()> {
        let mut session = self.shared.session().await?;
        prepare::change(&self.shared, &mut session, change).await?;
        self.shared.keep(session);
        Ok(())
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Writer::open(self.shared.clone(), ctx).await?))
    }

    /// Unique indexes that the rows did not satisfy right after the snapshot are tried again.
    async fn publish(&self, _prepared: &[Value]) -> Result<()> {
        for schema in self.shared.postponed() {
            let mut session = self.shared.session().await?;
            indexes::complete(&self.shared, &mut session, &schema).await?;
            self.shared.keep(session);
        }
        Ok(())
    }
}
