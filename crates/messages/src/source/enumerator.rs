//! Owns the enumerator: one stream over all lanes, started, restored, and bounded where it is to end.

use std::sync::Arc;

use async_trait::async_trait;
use canalis_connector_api::{
    NextSplit, SourceReader, SourceRestore, Split, SplitEnumerator, SplitMode, TableEstimate,
};
use canalis_types::{Code, Error, Position, Result, TableId, TableSchema};
use serde_json::{Value, json};

use super::{Broker, LostRange, Metadata, OnLost, SourceSettings, history::History, reader::Reader};
use crate::{Lanes, blocking};

/// Id of the one split.
const STREAM: &str = "messages";
/// Version of the state.
const VERSION: u64 = 1;

/// Deals the stream.
pub(super) struct Enumerator {
    broker: Arc<dyn Broker>,
    settings: Arc<SourceSettings>,
    history: History,
    start: Lanes,
    ends: Option<Lanes>,
    cuts: Vec<Position>,
    dealt: bool,
    finished: bool,
}

impl Enumerator {
    pub(super) fn fresh(broker: Arc<dyn Broker>, settings: Arc<SourceSettings>) -> Result<Self> {
        let start = Lanes { count: 0, lanes: broker.start()?.into_iter().collect() };
        let ends = if settings.bounded { Some(broker.ends(&start)?) } else { None };
        let history = History::default();
        for table in settings.formats.declared() {
            Metadata::new(settings.formats.metadata().to_vec()).extend(&table)?;
            history.add(0, table);
        }
        Ok(Self { broker, settings, history, start, ends, cuts: Vec::new(), dealt: false, finished: false })
    }

    pub(super) fn restore(
        broker: Arc<dyn Broker>,
        settings: Arc<SourceSettings>,
        restore: SourceRestore,
    ) -> Result<Self> {
        let wrong = |why: String| Error::new(Code::StateIncompatible, format!("state of the source: {why}"));
        let mut state = restore.state;
        if state["version"] != VERSION {
            return Err(wrong(format!("version is {}, not {VERSION}", state["version"])));
        }
        let mut part = |key: &str| state.get_mut(key).map(Value::take).unwrap_or_default();
        let history = History::restore(part("tables")).map_err(|e| wrong(e.to_string()))?;
        let start: Lanes = serde_json::from_value(part("start")).map_err(|e| wrong(e.to_string()))?;
        let ends: Option<Lanes> = serde_json::from_value(part("ends")).map_err(|e| wrong(e.to_string()))?;
        let finished = part("finished") == Value::Bool(true);
        let running = restore.running.into_iter().find(|s| s.id == STREAM);
        let mut from = match running.and_then(|s| s.position) {
            Some(position) => Lanes::parse(&position)?,
            None => start,
        };
        let mut cuts = restore.cuts;
        if !finished {
            let lost = broker.lost(&from)?;
            if !lost.is_empty() {
                give_up_lost(settings.on_lost, &lost, &mut from)?;
                // Places that can no longer be passed by cannot be waited for. Writers that were there take everything from here
                // on: some rows twice rather than any row not at all.
                let furthest = cuts.iter().map(|cut| cut.order[0]).max();
                from.count = from.count.max(furthest.unwrap_or(0));
                cuts.clear();
            }
        }
        history.cut(from.count);
        Ok(Self { broker, settings, history, start: from, ends, cuts, dealt: false, finished })
    }
}

/// Moves lanes over what is gone, if that is allowed.
fn give_up_lost(on_lost: OnLost, lost: &[LostRange], from: &mut Lanes) -> Result<()> {
    let text: Vec<String> = lost
        .iter()
        .map(|r| {
            let (wanted, there) = (r.wanted.0[0], r.available.0[0]);
            if r.wanted.0[1..] != [0; 2] || r.available.0[1..] != [0; 2] {
                // Places of more than one number do not count messages.
                format!(
                    "{}: of what follows {:?} the first that is there follows {:?}",
                    r.lane, r.wanted.0, r.available.0
                )
            } else if wanted < there {
                format!("{}: {wanted} to {} are gone ({} messages)", r.lane, there - 1, there - wanted)
            } else {
                format!("{}: {wanted} is beyond its end {there}", r.lane)
            }
        })
        .collect();
    let text = text.join("; ");
    if on_lost == OnLost::Fail {
        return Err(Error::new(
            Code::PositionLost,
            format!(
                "messages are gone that the job has not read: {text}. To go on without them, set \
                 `scan.position-lost` to `earliest` or `latest`"
            ),
        ));
    }
    tracing::warn!(
        lost = text,
        "messages are gone that the job has not read; going on as `scan.position-lost` says"
    );
    for range in lost {
        from.lanes.insert(range.lane.clone(), range.available);
    }
    Ok(())
}

#[async_trait]
impl SplitEnumerator for Enumerator {
    fn tables(&self) -> Vec<Arc<TableSchema>> {
        let metadata = Metadata::new(self.settings.formats.metadata().to_vec());
        let tables = self.history.tables_at(self.start.count);
        // A clash of names was refused when the job was opened.
        tables.iter().map(|table| metadata.extend(table).unwrap_or_else(|_| table.clone())).collect()
    }

    fn estimate(&self, _table: &TableId) -> Option<TableEstimate> {
        None
    }

    async fn next(&mut self, _reader: usize) -> Result<NextSplit> {
        if self.finished {
            return Ok(NextSplit::Finished);
        }
        if self.dealt {
            return Ok(NextSplit::Wait);
        }
        self.dealt = true;
        Ok(NextSplit::Split(Box::new(Split {
            id: STREAM.to_owned(),
            mode: SplitMode::Stream,
            table: None,
            payload: Value::Null,
            position: Some(self.start.position()),
            retried: false,
        })))
    }

    fn split_finished(&mut self, id: &str) {
        self.finished |= id == STREAM;
    }

    async fn open_reader(&mut self) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Reader {
            broker: self.broker.clone(),
            settings: self.settings.clone(),
            history: self.history.clone(),
            cuts: self.cuts.clone(),
            ends: self.ends.clone(),
            events: None,
        }))
    }

    fn state(&self) -> Value {
        json!({
            "version": VERSION,
            "tables": self.history.state(),
            "start": self.start,
            "ends": self.ends,
            "finished": self.finished,
        })
    }

    async fn checkpoint_durable(&mut self, position: Option<&Position>) -> Result<()> {
        let Some(position) = position else { return Ok(()) };
        let lanes = Lanes::parse(position)?;
        self.history.settle(lanes.count);
        if let Err(error) = blocking(|| self.broker.acknowledge(&lanes)) {
            tracing::warn!(%error, "the broker was not told how far the job is; tools that watch the lag show an old place");
        }
        Ok(())
    }
}
