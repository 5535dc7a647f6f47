//! Owns the sink `blackhole`.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    CommitPoint, CommitReport, ConnectorSpec, DeliveryGuarantee, Finding, Role, Sink, SinkCapabilities,
    SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode, TablePlan, WriterContext,
};
use canalis_types::{Result, SchemaChange, TableId, TableSchema};

pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "blackhole",
    role: Role::Sink,
    summary: "Counts rows and forgets them, to measure a source",
    options: &[],
    prefixes: &[],
    guarantee: DeliveryGuarantee::None,
};

pub(crate) struct BlackholeSink;

#[async_trait]
impl Sink for BlackholeSink {
    fn capabilities(&self) -> SinkCapabilities {
        // A repeated row changes nothing indeed.
        SinkCapabilities { upsert: true, parallel: true, add_column: true }
    }

    async fn check(&self, _tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        vec![Finding::ok("sink blackhole", "takes everything")]
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        Ok(TablePlan { table: schema.id.clone(), statements: Vec::new(), notes: Vec::new() })
    }

    async fn preview(&self, batch: &ChangeBatch, _mode: SplitMode) -> Result<SinkPreview> {
        let forgotten =
            |row: usize| format!("count and forget {} {}", batch.kinds()[row].symbol(), batch.schema().id);
        Ok(SinkPreview { statements: (0..batch.num_rows()).map(forgotten).collect(), refused: Vec::new() })
    }

    async fn open(&self, _ctx: &SinkContext) -> Result<SinkRecovery> {
        Ok(SinkRecovery::default())
    }

    async fn prepare_table(&self, schema: &Arc<TableSchema>, _snapshot: bool) -> Result<TablePlan> {
        self.plan_table(schema).await
    }

    async fn snapshot_complete(&self, _tables: &[Arc<TableSchema>]) -> Result<()> {
        Ok(())
    }

    async fn apply_schema_change(&self, _change: &SchemaChange) -> Result<()> {
        Ok(())
    }

    async fn open_writer(&self, _ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(BlackholeWriter::default()))
    }
}

#[derive(Default)]
struct BlackholeWriter {
    written: BTreeMap<TableId, u64>,
}

#[async_trait]
impl SinkWriter for BlackholeWriter {
    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        let table = &batch.schema().id;
        match self.written.get_mut(table) {
            Some(written) => *written += batch.num_changes(),
            None => {
                self.written.insert(table.clone(), batch.num_changes());
            }
        }
        Ok(())
    }

    async fn commit(&mut self, _point: &CommitPoint) -> Result<CommitReport> {
        let written = std::mem::take(&mut self.written).into_iter().collect();
        Ok(CommitReport { written, dead_lettered: Vec::new() })
    }
}
