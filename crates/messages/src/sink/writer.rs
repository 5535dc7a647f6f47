//! Owns the writer: rows to messages, messages to the producer, positions with them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use canalis_batch::ChangeBatch;
use canalis_connector_api::{CommitPoint, CommitReport, DeadLetter, SinkWriter, WriterContext};
use canalis_formats::message::{MessageEncoder, Messages};
use canalis_types::{Result, RowKind, TableId};

use super::{Producer, SinkSettings, Unsent, progress};
use crate::blocking;

/// Topic and partitions of a table.
#[derive(Debug, Clone)]
struct Route {
    topic: String,
    partitions: u32,
    table: Vec<u8>,
}

pub(super) struct MessageWriter {
    settings: Arc<SinkSettings>,
    producer: Box<dyn Producer>,
    encoder: Box<dyn MessageEncoder>,
    exactly_once: bool,
    context: WriterContext,
    routes: HashMap<TableId, Route>,
    messages: Messages,
    turn: u32,
    written: BTreeMap<TableId, u64>,
    refused: BTreeMap<TableId, u64>,
    /// Something was sent since the last commit.
    sent: bool,
}

impl MessageWriter {
    pub(super) fn new(
        settings: Arc<SinkSettings>,
        producer: Box<dyn Producer>,
        exactly_once: bool,
        context: WriterContext,
    ) -> Self {
        let encoder =
            settings.formats.encoder(settings.partitioner.separates_keys(), &settings.topics, false);
        Self {
            settings,
            producer,
            encoder,
            exactly_once,
            context,
            routes: HashMap::new(),
            messages: Messages::default(),
            turn: 0,
            written: BTreeMap::new(),
            refused: BTreeMap::new(),
            sent: false,
        }
    }

    fn route(&mut self, table: &TableId) -> Result<Route> {
        if let Some(route) = self.routes.get(table) {
            return Ok(route.clone());
        }
        let topic = self.settings.topics.of(table);
        let partitions = blocking(|| self.producer.partitions(&topic))?;
        let route = Route { topic, partitions, table: table.to_string().into_bytes() };
        self.routes.insert(table.clone(), route.clone());
        Ok(route)
    }

    /// Sends all that is encoded; rows whose messages are too large come back as letters.
    fn send(&mut self, batch: &ChangeBatch, route: &Route) -> Result<Vec<DeadLetter>> {
        let mut letters: Vec<DeadLetter> = Vec::new();
        let mut refused_row = None;
        for message in self.messages.iter() {
            if refused_row == Some(message.row) {
                continue;
            }
            let partition = self.settings.partitioner.partition(
                message.lane,
                &route.table,
                &mut self.turn,
                route.partitions,
            );
            let taken =
                self.producer.send(&route.topic, partition, message.key, message.value, batch.event_time_ms);
            match taken {
                Ok(()) => {}
                Err(Unsent::TooLarge { bytes, limit }) => {
                    refused_row = Some(message.row);
                    let why =
                        format!("message of {bytes} bytes is larger than the {limit} that the broker takes");
                    letters.push(DeadLetter::refused(batch, shown_row(batch, message.row), why));
                }
                Err(Unsent::Failed(error)) => return Err(error),
            }
        }
        Ok(letters)
    }
}

/// The rows, as their encoder counts them, that the format cannot say, and their letters.
pub(super) fn refusals(
    encoder: &mut dyn MessageEncoder,
    batch: &ChangeBatch,
) -> (Vec<usize>, Vec<DeadLetter>) {
    let mut skip = Vec::new();
    let mut letters = Vec::new();
    for (row, kind) in batch.kinds().iter().enumerate() {
        if *kind != RowKind::UpdateAfter
            && let Some(reason) = encoder.refusal(batch, row)
        {
            skip.push(row);
            letters.push(DeadLetter::refused(batch, shown_row(batch, row), reason));
        }
    }
    (skip, letters)
}

/// The row of a change that says most: of an update the one after it.
fn shown_row(batch: &ChangeBatch, row: usize) -> usize {
    if batch.kinds()[row] == RowKind::UpdateBefore { row + 1 } else { row }
}

#[async_trait]
impl SinkWriter for MessageWriter {
    async fn write(&mut self, batch: ChangeBatch) -> Result<()> {
        let table = batch.schema().id.clone();
        let route = self.route(&table)?;
        let (skip, mut letters) = refusals(&mut *self.encoder, &batch);
        self.messages.clear();
        // A schema registry may have to be asked.
        blocking(|| self.encoder.encode(&batch, &skip, &mut self.messages))?;
        self.sent = true;
        letters.extend(blocking(|| self.send(&batch, &route))?);
        let refused = letters.len() as u64;
        if refused > 0 {
            self.context.dead_letters.reject(letters).await?;
            *self.refused.entry(table.clone()).or_default() += refused;
        }
        *self.written.entry(table).or_default() += batch.num_changes() - refused;
        Ok(())
    }

    async fn commit(&mut self, point: &CommitPoint) -> Result<CommitReport> {
        let records = if self.exactly_once {
            progress::records(&self.context.job, self.context.index, self.context.writers, point)
        } else {
            Vec::new()
        };
        if self.sent || !records.is_empty() {
            blocking(|| self.producer.commit(&records))?;
            self.sent = false;
        }
        Ok(CommitReport {
            written: std::mem::take(&mut self.written).into_iter().collect(),
            dead_lettered: std::mem::take(&mut self.refused).into_iter().collect(),
        })
    }
}
