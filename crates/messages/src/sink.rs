//! Owns the sink around a broker's producer, and the contract of that producer.

mod preview;
mod progress;
mod topics;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{
    Finding, Sink, SinkCapabilities, SinkContext, SinkPreview, SinkRecovery, SinkWriter, SplitMode,
    TablePlan, WriterContext,
};
use canalis_types::{Result, SchemaChange, TableId, TableSchema};

use crate::{Formats, blocking};
pub use topics::{Partitioner, TopicRule, Topics};
use writer::MessageWriter;

/// A record of what is committed, by key; `None` removes it.
pub type Record = (String, Option<String>);

/// What records of earlier runs say, by key.
pub type Progress = Vec<(String, String)>;

/// Why a message was not taken.
#[derive(Debug)]
pub enum Unsent {
    /// It is larger than the broker takes; the row becomes a dead letter.
    TooLarge {
        /// Bytes of key and payload.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Anything else.
    Failed(canalis_types::Error),
}

/// What a producer is made for.
#[derive(Debug, Clone)]
pub struct ProducerContext {
    /// Stable name of the job.
    pub job: String,
    /// Which writer.
    pub writer: usize,
}

/// A broker as a sink, configured. Methods may block.
pub trait SinkBroker: Send + Sync {
    /// Looks at the live system and the topics that will be written. Never fails.
    fn check(&self, topics: &[String]) -> Vec<Finding>;

    /// Whether there is such a topic.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn has_topic(&self, topic: &str) -> Result<bool>;

    /// What would be done to make a topic, in words.
    fn creation(&self, topic: &str) -> String;

    /// Makes a topic that is not there.
    ///
    /// # Errors
    /// When the broker refuses.
    fn create_topic(&self, topic: &str) -> Result<()>;

    /// Keeps positions in the same transaction as messages.
    fn exactly_once(&self) -> bool;

    /// Shuts out producers of earlier runs and reads what they have committed, all keys that begin with `prefix`.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn recover(&self, job: &str, writers: usize, prefix: &str) -> Result<Progress>;

    /// Connects a producer.
    ///
    /// # Errors
    /// When it cannot be made.
    fn producer(&self, context: ProducerContext) -> Result<Box<dyn Producer>>;
}

/// Sends messages. Used by one task; methods may block.
pub trait Producer: Send {
    /// Partitions of a topic.
    ///
    /// # Errors
    /// When the broker cannot be asked.
    fn partitions(&mut self, topic: &str) -> Result<u32>;

    /// Takes a message for a partition; it may stay in memory until [`Producer::commit`].
    ///
    /// # Errors
    /// See [`Unsent`].
    fn send(
        &mut self,
        topic: &str,
        partition: u32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp_ms: Option<i64>,
    ) -> std::result::Result<(), Unsent>;

    /// Makes everything sent so far durable, with the records in the same transaction where there is one.
    ///
    /// # Errors
    /// When anything sent was not taken.
    fn commit(&mut self, records: &[Record]) -> Result<()>;
}

/// How a sink around a broker writes.
#[derive(Debug, Clone)]
pub struct SinkSettings {
    /// The format of values.
    pub formats: Formats,
    /// Where rows of which table go.
    pub topics: Topics,
    /// Which partition takes a message.
    pub partitioner: Partitioner,
}

/// A sink around a broker.
pub struct MessageSink {
    broker: Arc<dyn SinkBroker>,
    settings: Arc<SinkSettings>,
}

impl MessageSink {
    /// A sink that writes to `broker`.
    pub fn new(broker: impl SinkBroker + 'static, settings: SinkSettings) -> Self {
        Self { broker: Arc::new(broker), settings: Arc::new(settings) }
    }

    fn plan(&self, table: &TableId) -> Result<(String, TablePlan)> {
        let topic = self.settings.topics.of(table);
        let statements = if blocking(|| self.broker.has_topic(&topic))? {
            Vec::new()
        } else {
            vec![self.broker.creation(&topic)]
        };
        Ok((topic, TablePlan { table: table.clone(), statements, notes: Vec::new() }))
    }
}

#[async_trait]
impl Sink for MessageSink {
    fn capabilities(&self) -> SinkCapabilities {
        // A change format carries a row's key, so that a repeated row changes nothing for who applies it.
        SinkCapabilities { upsert: true, parallel: true, add_column: true }
    }

    async fn check(&self, tables: &[Arc<TableSchema>]) -> Vec<Finding> {
        let mut topics: Vec<String> = tables.iter().map(|t| self.settings.topics.of(&t.id)).collect();
        topics.sort();
        topics.dedup();
        blocking(|| self.broker.check(&topics))
    }

    async fn plan_table(&self, schema: &TableSchema) -> Result<TablePlan> {
        Ok(self.plan(&schema.id)?.1)
    }

    async fn preview(&self, batch: &ChangeBatch, _mode: SplitMode) -> Result<SinkPreview> {
        preview::preview(&self.settings, batch)
    }

    async fn open(&self, ctx: &SinkContext) -> Result<SinkRecovery> {
        if !self.broker.exactly_once() {
            return Ok(SinkRecovery::default());
        }
        let found = blocking(|| self.broker.recover(&ctx.job, ctx.writers, &progress::prefix(&ctx.job)))?;
        if ctx.fresh {
            let removals: Vec<Record> = found.into_iter().map(|(key, _)| (key, None)).collect();
            if !removals.is_empty() {
                let context = ProducerContext { job: ctx.job.clone(), writer: 0 };
                blocking(|| self.broker.producer(context)?.commit(&removals))?;
            }
            return Ok(SinkRecovery::default());
        }
        progress::recovery(&ctx.job, ctx.writers, &found)
    }

    async fn prepare_table(&self, schema: &Arc<TableSchema>, _snapshot: bool) -> Result<TablePlan> {
        let (topic, plan) = self.plan(&schema.id)?;
        if !plan.statements.is_empty() {
            blocking(|| self.broker.create_topic(&topic))?;
        }
        Ok(plan)
    }

    async fn snapshot_complete(&self, _tables: &[Arc<TableSchema>]) -> Result<()> {
        Ok(())
    }

    async fn apply_schema_change(&self, _change: &SchemaChange) -> Result<()> {
        // Messages carry their structure.
        Ok(())
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let context = ProducerContext { job: ctx.job.clone(), writer: ctx.index };
        let producer = blocking(|| self.broker.producer(context))?;
        Ok(Box::new(MessageWriter::new(self.settings.clone(), producer, self.broker.exactly_once(), ctx)))
    }
}
