//! Owns the reader: the async end of the consuming thread.

use std::sync::Arc;

use async_trait::async_trait;
use canalis_connector_api::{SourceEvent, SourceReader, Split};
use canalis_types::{Error, Position, Result};
use tokio::sync::mpsc;

use super::{
    Broker, SourceSettings,
    history::History,
    worker::{self, Start},
};
use crate::Lanes;

/// Events that wait for the runtime; a batch holds at most a few megabytes.
const WAITING: usize = 4;

pub(super) struct Reader {
    pub broker: Arc<dyn Broker>,
    pub settings: Arc<SourceSettings>,
    pub history: History,
    pub cuts: Vec<Position>,
    pub ends: Option<Lanes>,
    pub events: Option<mpsc::Receiver<Result<SourceEvent>>>,
}

#[async_trait]
impl SourceReader for Reader {
    async fn start(&mut self, split: Split) -> Result<()> {
        let position = split.position.ok_or_else(|| Error::internal("the stream split has no position"))?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let start = Start {
            broker: self.broker.clone(),
            settings: self.settings.clone(),
            from: Lanes::parse(&position)?,
            cuts: std::mem::take(&mut self.cuts),
            ends: self.ends.clone(),
            history: self.history.clone(),
            events: sender,
        };
        std::thread::Builder::new()
            .name("messages".to_owned())
            .spawn(move || worker::run(start))
            .map_err(|error| Error::internal("cannot start the consuming thread").with_source(error))?;
        self.events = Some(receiver);
        Ok(())
    }

    async fn next(&mut self) -> Result<SourceEvent> {
        match &mut self.events {
            Some(events) => {
                events.recv().await.ok_or_else(|| Error::internal("the consuming thread has ended"))?
            }
            None => Err(Error::internal("the reader was not started")),
        }
    }
}
