//! Owns dealing the one stream split.

use std::sync::Arc;

use async_trait::async_trait;
use canalis_connector_api::{
    NextSplit, SourceReader, SourceRestore, Split, SplitEnumerator, SplitMode, TableEstimate,
};
use canalis_types::{Code, Error, Result, TableId, TableSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    options::DatagenOptions,
    order::order_schema,
    reader::{DatagenReader, change_of},
};

const SPLIT: &str = "stream";
const STATE_VERSION: u32 = 1;

/// Durable state: what the stream depends on, and whether it is still to be dealt.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u32,
    table: TableId,
    seed: u64,
    updates: u64,
    deletes: u64,
    dealt: bool,
}

pub(crate) struct DatagenEnumerator {
    options: DatagenOptions,
    schema: Arc<TableSchema>,
    /// The split, until it is dealt.
    waiting: Option<Split>,
    cuts: Vec<u64>,
}

impl DatagenEnumerator {
    pub(crate) fn new(options: DatagenOptions) -> Self {
        let schema = Arc::new(order_schema(options.table.clone()));
        let split = Split {
            id: SPLIT.into(),
            mode: SplitMode::Stream,
            table: None,
            payload: Value::Null,
            position: None,
            retried: false,
        };
        Self { options, schema, waiting: Some(split), cuts: Vec::new() }
    }

    /// # Errors
    /// `CNL-4001` when the state does not decode, `CNL-4002` when it is of another stream.
    pub(crate) fn restore(options: DatagenOptions, restore: SourceRestore) -> Result<Self> {
        let state: State = serde_json::from_value(restore.state).map_err(|e| {
            Error::new(Code::CheckpointDamaged, "cannot decode the state of the source `datagen`")
                .with_source(e)
        })?;
        let mut enumerator = Self::new(options);
        let now = enumerator.durable(state.dealt);
        if (state.version, &state.table, state.seed, state.updates, state.deletes)
            != (now.version, &now.table, now.seed, now.updates, now.deletes)
        {
            return Err(Error::new(
                Code::StateIncompatible,
                "`table`, `seed`, `update-ratio` or `delete-ratio` of the source `datagen` differs from the one the job \
                 started with",
            ));
        }
        if state.dealt {
            // Neither running nor to be dealt: it has ended.
            enumerator.waiting = restore.running.into_iter().find(|split| split.id == SPLIT);
        }
        enumerator.cuts = restore.cuts.iter().map(change_of).collect::<Result<_>>()?;
        Ok(enumerator)
    }

    fn durable(&self, dealt: bool) -> State {
        let mix = self.options.mix;
        State {
            version: STATE_VERSION,
            table: self.options.table.clone(),
            seed: mix.seed,
            updates: mix.updates,
            deletes: mix.deletes,
            dealt,
        }
    }
}

#[async_trait]
impl SplitEnumerator for DatagenEnumerator {
    fn tables(&self) -> Vec<Arc<TableSchema>> {
        vec![self.schema.clone()]
    }

    fn estimate(&self, _table: &TableId) -> Option<TableEstimate> {
        self.options.changes.map(|rows| TableEstimate { rows })
    }

    async fn next(&mut self, _reader: usize) -> Result<NextSplit> {
        Ok(match self.waiting.take() {
            Some(split) => NextSplit::Split(Box::new(split)),
            None => NextSplit::Finished,
        })
    }

    fn split_finished(&mut self, _id: &str) {}

    async fn open_reader(&mut self) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(DatagenReader::new(self.options.clone(), self.schema.clone(), self.cuts.clone())))
    }

    fn state(&self) -> Value {
        serde_json::to_value(self.durable(self.waiting.is_none()))
            .expect("the state holds nothing that JSON cannot")
    }
}
