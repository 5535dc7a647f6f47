//! Owns the sink `print`: a line `[shop.orders] +I {…}` for every row.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::Arc,
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    CommitPoint, CommitReport, ConnectorSpec, DeliveryGuarantee, Finding, OptionSpec, OptionType, Options,
    Role, Sink, SinkCapabilities, SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode, TablePlan,
    WriterContext,
};
use canalis_formats::{
    RowEncoder,
    json::{JsonEncoder, JsonEncoderOptions},
};
use canalis_types::{Code, Error, Result, SchemaChange, TableId, TableSchema};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Bytes that are held back before a commit at most.
const MOST_HELD: usize = 64 << 10;

pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "print",
    role: Role::Sink,
    summary: "Prints a line for every row",
    options: &[
        OptionSpec::new(
            "print-identifier",
            OptionType::Text,
            Role::Sink,
            "Text at the beginning of every line, for telling pipelines apart",
        ),
        OptionSpec::new(
            "standard-error",
            OptionType::Boolean,
            Role::Sink,
            "Whether lines go to standard error instead of standard output",
        )
        .default("false"),
    ],
    prefixes: &[],
    guarantee: DeliveryGuarantee::AtLeastOnce,
};

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Output,
    Error,
}

pub(crate) struct PrintSink {
    identifier: Vec<u8>,
    target: Target,
}

impl PrintSink {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let mut identifier = options.text("print-identifier").unwrap_or_default().as_bytes().to_vec();
        if !identifier.is_empty() {
            identifier.push(b' ');
        }
        let target = if options.boolean("standard-error")? { Target::Error } else { Target::Output };
        Ok(Self { identifier, target })
    }
}

#[async_trait]
impl Sink for PrintSink {
    /// One writer, so that lines come in the order of the source.
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities { upsert: false, parallel: false, add_column: true }
    }

    async fn check(&self, _tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        vec![Finding::ok("sink print", "prints every row")]
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        Ok(TablePlan { table: schema.id.clone(), statements: Vec::new(), notes: Vec::new() })
    }

    async fn preview(&self, batch: &ChangeBatch, _mode: SplitMode) -> Result<SinkPreview> {
        let encoder = JsonEncoder::new(batch.schema(), &JsonEncoderOptions::default());
        let mut statements = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let mut lines = Lines { identifier: self.identifier.clone(), held: Vec::new() };
            lines.row(&encoder, batch, row)?;
            statements.push(String::from_utf8_lossy(&lines.held).trim_end().to_owned());
        }
        Ok(SinkPreview { statements, refused: Vec::new() })
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
        Ok(Box::new(PrintWriter {
            lines: Lines { identifier: self.identifier.clone(), held: Vec::new() },
            target: self.target,
            written: BTreeMap::new(),
        }))
    }
}

struct PrintWriter {
    lines: Lines,
    target: Target,
    written: BTreeMap<TableId, u64>,
}

impl PrintWriter {
    fn flush(&mut self) -> Result<()> {
        if self.lines.held.is_empty() {
            return Ok(());
        }
        let held = &self.lines.held;
        let target = self.target;
        // Lines are whole even when others print too, because each call holds the lock.
        let printed = blocking(|| match target {
            Target::Output => write_all(&mut io::stdout().lock(), held),
            Target::Error => write_all(&mut io::stderr().lock(), held),
        });
        printed.map_err(|e| Error::new(Code::SinkFailed, "cannot print rows").with_source(e))?;
        self.lines.held.clear();
        Ok(())
    }
}

fn write_all(to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush())
}

/// Runs work that may block without starving other tasks where the runtime has other threads.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[async_trait]
impl SinkWriter for PrintWriter {
    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        let encoder = JsonEncoder::new(batch.schema(), &JsonEncoderOptions::default());
        for row in 0..batch.num_rows() {
            self.lines.row(&encoder, &batch, row)?;
            if self.lines.held.len() >= MOST_HELD {
                self.flush()?;
            }
        }
        *self.written.entry(batch.schema().id.clone()).or_default() += batch.num_changes();
        Ok(())
    }

    async fn commit(&mut self, _point: &CommitPoint) -> Result<CommitReport> {
        self.flush()?;
        let written = std::mem::take(&mut self.written).into_iter().collect();
        Ok(CommitReport { written, dead_lettered: Vec::new() })
    }
}

/// Lines that are not printed yet.
struct Lines {
    identifier: Vec<u8>,
    held: Vec<u8>,
}

impl Lines {
    fn row(&mut self, encoder: &JsonEncoder, batch: &ChangeBatch, row: usize) -> Result<()> {
        self.held.extend_from_slice(&self.identifier);
        write!(self.held, "[{}] {} ", batch.schema().id, batch.kinds()[row].symbol())
            .map_err(|e| Error::internal("writing to memory has failed").with_source(e))?;
        encoder.write_rows(batch, &mut std::iter::once(row), &mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use canalis_batch::BatchBuilder;
    use canalis_types::{Column, LogicalType, RowKind};

    use super::*;

    #[test]
    fn a_line_tells_table_kind_and_row() {
        let columns =
            vec![Column::new("id", LogicalType::Int64, false), Column::new("note", LogicalType::Text, true)];
        let schema = Arc::new(TableSchema::new(TableId::new("shop", "orders"), columns, Vec::new()));
        let mut builder = BatchBuilder::new(schema.clone(), 2);
        for (kind, note) in [(RowKind::Insert, Some("a\nb")), (RowKind::Delete, None)] {
            builder.column(0).append_i64(7).unwrap();
            match note {
                Some(text) => builder.column(1).append_text(text.as_bytes()).unwrap(),
                None => builder.column(1).append_null(),
            }
            builder.end_row(kind, 0);
        }
        let batch = builder.finish().unwrap();
        let encoder = JsonEncoder::new(&schema, &JsonEncoderOptions::default());
        let mut lines = Lines { identifier: b"mine ".to_vec(), held: Vec::new() };
        for row in 0..2 {
            lines.row(&encoder, &batch, row).unwrap();
        }
        assert_eq!(
            String::from_utf8(lines.held).unwrap(),
            "mine [shop.orders] +I {\"id\":7,\"note\":\"a\\nb\"}\nmine [shop.orders] -D {\"id\":7,\"note\":null}\n"
        );
    }
}
