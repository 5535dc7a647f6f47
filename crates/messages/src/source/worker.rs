//! Owns the thread that consumes and decodes: messages in, events out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_connector_api::{DeadLetter, SourceEvent, Watermark};
use canalis_formats::message::{Message, MessageDecoder, Step, StructureChange, Undecodable};
use canalis_types::{Code, Error, Position, Result, RowKind, SchemaChange, TableId, TableSchema};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    Broker, Consumer, Delivery, Metadata, SourceSettings, history::History, message_position, replay::Replay,
};
use crate::{Lanes, Place};

/// Rows are delivered at so many rows or bytes, and always before the thread waits.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 2 << 20;
/// How long one wait for messages takes at most, and so a stop.
const WAIT: Duration = Duration::from_millis(100);
/// Bytes that lanes may run ahead of a place all lanes have to come by.
const HELD_BYTES: usize = 64 << 20;
/// How much of a topic is read to tell its structure.
const SAMPLE_MESSAGES: usize = 1000;
const SAMPLE_PAUSE: Duration = Duration::from_secs(2);

/// The async side has gone.
struct Gone;

/// Why the thread ends.
enum End {
    Gone,
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Failed(error)
    }
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        End::Gone
    }
}

/// What the thread is started with.
pub(super) struct Start {
    pub broker: Arc<dyn Broker>,
    pub settings: Arc<SourceSettings>,
    pub from: Lanes,
    pub cuts: Vec<Position>,
    pub ends: Option<Lanes>,
    pub history: History,
    pub events: mpsc::Sender<Result<SourceEvent>>,
}

/// Runs until the source ends, fails, or nobody wants events any more.
pub(super) fn run(start: Start) {
    let events = start.events.clone();
    let end = Worker::new(start).map_err(End::from).and_then(Worker::work);
    if let Err(End::Failed(error)) = end {
        // Nobody left to tell is a way to stop.
        let _ = events.blocking_send(Err(error));
    }
}

struct Worker {
    settings: Arc<SourceSettings>,
    consumer: Box<dyn Consumer>,
    state: Decoding,
}

/// Everything but the consumer, which lends messages while they are decoded.
struct Decoding {
    decoder: Box<dyn MessageDecoder>,
    names: Vec<String>,
    lanes: Lanes,
    replay: Replay,
    ends: Option<Lanes>,
    history: History,
    events: mpsc::Sender<Result<SourceEvent>>,
    /// Tables are told by messages, so a new one has to be announced.
    event_time_ms: Option<i64>,
    /// Something was taken since the last watermark.
    moved: bool,
    fallback: TableId,
    metadata: Metadata,
}

impl Worker {
    fn new(start: Start) -> Result<Self> {
        let mut consumer = start.broker.consumer()?;
        let known: Vec<(String, Place)> = start.from.lanes.iter().map(|(n, p)| (n.clone(), *p)).collect();
        consumer.assign(&known)?;
        let state = Decoding {
            decoder: start.settings.formats.decoder(start.history.tables_at(start.from.count))?,
            names: known.into_iter().map(|(name, _)| name).collect(),
            replay: Replay::new(&start.cuts, &start.from)?,
            lanes: start.from,
            ends: start.ends,
            history: start.history,
            events: start.events,
            event_time_ms: None,
            moved: false,
            fallback: start.settings.formats.fallback_table(),
            metadata: Metadata::new(start.settings.formats.metadata().to_vec()),
        };
        Ok(Self { settings: start.settings, consumer, state })
    }

    fn work(mut self) -> std::result::Result<(), End> {
        let mut discovered: Option<Instant> = None;
        loop {
            // A bounded read ends at lanes that are known.
            let due = discovered.is_none_or(|at| at.elapsed() >= self.settings.discovery);
            if self.state.ends.is_none() && due {
                discovered = Some(Instant::now());
                let new = self.consumer.discover()?;
                self.consumer.assign(&new)?;
                self.state.add_lanes(new);
            }
            self.pass_cuts()?;
            if self.state.is_at_end() {
                self.state.deliver()?;
                self.state.send(SourceEvent::SplitEnd)?;
                return Ok(());
            }
            let wait = if self.state.moved || self.state.decoder.rows() > 0 { Duration::ZERO } else { WAIT };
            let mut gone = None;
            let state = &mut self.state;
            let came = self.consumer.poll(wait, &mut |delivery| match state.take(delivery) {
                Ok(()) => Ok(()),
                Err(End::Failed(error)) => Err(error),
                Err(End::Gone) => {
                    gone = Some(Gone);
                    Ok(())
                }
            })?;
            if let Some(gone) = gone {
                return Err(gone.into());
            }
            if self.state.replay.held_bytes() > HELD_BYTES {
                return Err(Error::new(
                    Code::StateIncompatible,
                    format!(
                        "the sink has committed messages that the broker does not deliver any more in lanes {:?}",
                        self.state.replay.behind()
                    ),
                )
                .into());
            }
            if !came {
                for (lane, at, goal) in self.state.lagging() {
                    if self.consumer.is_empty_between(lane, at, goal)? {
                        self.state.reached(lane, goal);
                    }
                }
            }
            if !came || self.state.is_full() {
                self.state.deliver()?;
                if self.state.events.is_closed() {
                    return Err(End::Gone);
                }
            }
        }
    }

    fn pass_cuts(&mut self) -> std::result::Result<(), End> {
        while let Some((position, lanes, held)) = self.state.replay.pass() {
            self.state.batches()?;
            for (name, place) in lanes.lanes {
                self.state.lanes.lanes.insert(name, place);
            }
            self.state.lanes.count = lanes.count;
            self.state.watermark(position)?;
            for held in held {
                self.state.message(&held.delivery())?;
            }
        }
        Ok(())
    }
}

impl Decoding {
    fn add_lanes(&mut self, new: Vec<(String, Place)>) {
        for (name, place) in new {
            tracing::info!(lane = name, "a new lane is read from its beginning");
            self.lanes.lanes.insert(name.clone(), place);
            self.names.push(name);
        }
    }

    fn is_full(&self) -> bool {
        self.decoder.rows() >= BATCH_ROWS || self.decoder.bytes() >= BATCH_BYTES
    }

    fn is_at_end(&self) -> bool {
        let Some(ends) = &self.ends else { return false };
        ends.lanes.iter().all(|(name, end)| self.lanes.lanes.get(name).is_some_and(|place| place >= end))
    }

    fn take(&mut self, delivery: Delivery<'_>) -> std::result::Result<(), End> {
        self.message(&delivery)
    }

    /// Lanes that have not got to where they must come by or end, as index, place and goal.
    fn lagging(&self) -> Vec<(usize, Place, Place)> {
        let goals = self.replay.goal().or(self.ends.as_ref());
        let Some(goals) = goals else { return Vec::new() };
        let lanes = self.names.iter().enumerate();
        let lag = |(index, name): (usize, &String)| {
            let (at, goal) = (self.lanes.lanes.get(name)?, goals.lanes.get(name)?);
            (at < goal).then_some((index, *at, *goal))
        };
        lanes.filter_map(lag).collect()
    }

    /// Nothing more comes before this place of a lane.
    fn reached(&mut self, lane: usize, place: Place) {
        let name = &self.names[lane];
        self.replay.reached(name, place);
        if let Some(at) = self.lanes.lanes.get_mut(name) {
            *at = place;
        }
    }

    fn message(&mut self, delivery: &Delivery<'_>) -> std::result::Result<(), End> {
        let Delivery { lane, next, ref message, .. } = *delivery;
        let beyond = |ends: &Lanes, name: &String| ends.lanes.get(name).is_none_or(|end| next > *end);
        if self.ends.as_ref().is_some_and(|ends| beyond(ends, &self.names[lane])) {
            return Ok(());
        }
        if !self.replay.admit(&self.names[lane], delivery) {
            return Ok(());
        }
        loop {
            match decode(&mut *self.decoder, &mut self.metadata, &self.names[lane], &self.fallback, delivery)
            {
                Ok(Step::Taken | Step::Ignored) => break,
                Ok(Step::Failed(error)) => return Err(End::Failed(*error)),
                Ok(Step::Structure(change)) => {
                    self.structure(&change)?;
                    if change.alone {
                        break;
                    }
                }
                Err(failure) => {
                    // What came before can be committed up to exactly this message.
                    self.deliver()?;
                    let position = message_position(&self.lanes, &self.names[lane], next);
                    let letter = letter(&self.fallback, &self.names[lane], position, message, failure);
                    self.send(SourceEvent::Undecodable(vec![letter]))?;
                    break;
                }
            }
        }
        self.lanes.count += 1;
        if let Some(place) = self.lanes.lanes.get_mut(&self.names[lane]) {
            *place = next;
        }
        self.replay.reached(&self.names[lane], next);
        self.event_time_ms = self.event_time_ms.max(message.timestamp_ms);
        self.moved = true;
        Ok(())
    }

    fn structure(&mut self, change: &StructureChange) -> std::result::Result<(), End> {
        self.deliver()?;
        // A change is only let through where everything before it is covered, also when nothing was taken since.
        self.watermark(self.lanes.position())?;
        self.decoder.apply(change);
        self.history.add(self.lanes.count, change.after.clone());
        let before = change.before.as_ref().map(|schema| self.metadata.extend(schema)).transpose()?;
        let change = SchemaChange {
            kind: self.metadata.place(&change.kind, change.before.as_deref()),
            before,
            after: self.metadata.extend(&change.after)?,
            statement: change.statement.clone(),
            position: self.lanes.position(),
        };
        Ok(self.send(SourceEvent::SchemaChange(Box::new(change)))?)
    }

    fn batches(&mut self) -> std::result::Result<(), End> {
        for batch in self.decoder.take()? {
            let time = batch.event_time_ms.or(self.event_time_ms);
            let batch = self.metadata.attach(batch)?;
            self.send(SourceEvent::Batch(batch.with_event_time(time)))?;
        }
        Ok(())
    }

    /// Delivers what is gathered, and the place it leads to.
    fn deliver(&mut self) -> std::result::Result<(), End> {
        self.batches()?;
        // Between two cuts no watermark may stand where a writer has not been.
        if self.moved {
            self.watermark(self.lanes.position())?;
        }
        Ok(())
    }

    fn watermark(&mut self, position: Position) -> std::result::Result<(), End> {
        self.moved = false;
        let event_time_ms = self.event_time_ms;
        Ok(self.send(SourceEvent::Watermark(Watermark { position, event_time_ms }))?)
    }

    fn send(&mut self, event: SourceEvent) -> std::result::Result<(), Gone> {
        self.events.blocking_send(Ok(event)).map_err(|_| Gone)
    }
}

/// Decodes a message, and notes it for the rows that came of it.
pub(super) fn decode(
    decoder: &mut dyn MessageDecoder,
    metadata: &mut Metadata,
    lane: &str,
    fallback: &TableId,
    delivery: &Delivery<'_>,
) -> std::result::Result<Step, Undecodable> {
    if metadata.is_empty() {
        return decoder.decode(&delivery.message);
    }
    // Looked at first: rows cannot be taken back once they are gathered.
    if delivery.message.key.is_some_and(|key| std::str::from_utf8(key).is_err()) {
        return Err(Undecodable::new("the key is not UTF-8, and `metadata.list` wants it as text"));
    }
    let before = decoder.rows();
    let step = decoder.decode(&delivery.message)?;
    let rows = decoder.rows() - before;
    if rows > 0 {
        let table = decoder.newest().unwrap_or(fallback);
        metadata.note(table, rows, lane, delivery).map_err(Undecodable::new)?;
    }
    Ok(step)
}

/// The letter of a message that does not decode.
pub(super) fn letter(
    fallback: &TableId,
    lane: &str,
    position: Position,
    message: &Message<'_>,
    failure: Undecodable,
) -> DeadLetter {
    DeadLetter {
        table: failure.table.unwrap_or_else(|| fallback.clone()),
        kind: RowKind::Insert,
        key: Value::Null,
        payload: json!({
            "topic": message.topic,
            "lane": lane,
            "key": message.key.map(text_or_base64),
            "value": message.value.map(text_or_base64),
            "timestamp_ms": message.timestamp_ms,
        }),
        code: Code::SourceUndecodable,
        reason: failure.reason,
        position: Some(position),
    }
}

pub(super) fn text_or_base64(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// The structures that the first messages tell of, beside those declared, as they are delivered.
pub(super) fn sample(broker: &dyn Broker, settings: &SourceSettings) -> Result<Vec<Arc<TableSchema>>> {
    let metadata = Metadata::new(settings.formats.metadata().to_vec());
    decoded_tables(broker, settings)?.iter().map(|table| metadata.extend(table)).collect()
}

/// The same structures as they are decoded.
pub(super) fn decoded_tables(
    broker: &dyn Broker,
    settings: &SourceSettings,
) -> Result<Vec<Arc<TableSchema>>> {
    let mut decoder = settings.formats.decoder(settings.formats.declared())?;
    if settings.formats.is_declared() {
        return Ok(decoder.tables());
    }
    let start = broker.start()?;
    let from = Lanes { count: 0, lanes: start.iter().cloned().collect() };
    let mut open = broker.ends(&from)?.lanes;
    open.retain(|lane, end| from.lanes.get(lane).is_some_and(|at| at < end));
    let mut consumer = broker.consumer()?;
    consumer.assign(&start)?;
    let (mut taken, mut newest) = (0, Instant::now());
    while !open.is_empty() && taken < SAMPLE_MESSAGES && newest.elapsed() < SAMPLE_PAUSE {
        consumer.poll(WAIT, &mut |Delivery { lane, next, message, .. }| {
            taken += 1;
            newest = Instant::now();
            loop {
                match decoder.decode(&message) {
                    Ok(Step::Structure(change)) => {
                        decoder.apply(&change);
                        if change.alone {
                            break;
                        }
                    }
                    Ok(Step::Failed(error)) => return Err(*error),
                    _ => break,
                }
            }
            if open.get(&start[lane].0).is_some_and(|end| next >= *end) {
                open.remove(&start[lane].0);
            }
            Ok(())
        })?;
        if decoder.rows() >= BATCH_ROWS {
            decoder.take()?;
        }
    }
    Ok(decoder.tables())
}
