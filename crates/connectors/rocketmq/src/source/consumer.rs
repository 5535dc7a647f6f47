//! Owns reading queues: one pull at a time in flight for each, over one connection to each broker, answers taken as they come.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use canalis_formats::message::Message;
use canalis_messages::{Consumer, Delivery, LaneStart, OnLost, Place};
use canalis_types::{Code, Error, Result};

use super::{LookedThrough, queues};
use crate::{
    client::{Client, Pulled, Queue, pull_fields},
    failure::{Side, broken, is_busy},
    options::SourceOptions,
    protocol::{
        answer,
        connection::{Arrival, Link},
        frame::{self, Answer},
        message::{self, StoredMessage},
        request,
    },
};

/// How long a broker may be away before the job is told.
const MAX_DOWN: Duration = Duration::from_secs(30);
/// Pause before a broker or a queue is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a broker holds back a pull when there is nothing, in milliseconds.
const HOLD_MS: u32 = 15_000;
/// Bytes that may wait to be decoded before pulls stop.
const READY_BYTES: usize = 16 << 20;
/// How long the answer to a pull may take: longer than brokers hold it back.
const SILENCE: Duration = Duration::from_secs(40);
/// How long looking into one queue may take.
const PROBE: Duration = Duration::from_secs(10);
/// What a broker says when messages go while it looks at them: it has not made up its mind where the queue begins.
const BEING_REMOVED: &str = "MESSAGE_WAS_REMOVING";

struct Lane {
    queue: Queue,
    name: String,
    broker: usize,
    /// Where the next pull begins.
    ask: u64,
    /// Offset that the next message has if none is missing.
    expect: u64,
    /// Place behind the last message handed on.
    taken: u64,
    in_flight: Option<i32>,
    asked: Instant,
    /// Since when the broker says that the queue ends before what was read already, as a copy may that lags behind.
    beyond: Option<Instant>,
    not_before: Instant,
}

/// A broker and the connection to it.
struct Server {
    name: String,
    /// Number of the connection; each has its own.
    number: usize,
    link: Option<Link>,
    down: Option<Instant>,
    not_before: Instant,
}

/// Messages of one pull.
struct Chunk {
    lane: usize,
    body: Vec<u8>,
    at: usize,
    next: u64,
}

/// Reads queues of all brokers.
pub(super) struct QueueConsumer {
    options: SourceOptions,
    client: Arc<Client>,
    looked: LookedThrough,
    lanes: Vec<Lane>,
    servers: Vec<Server>,
    connections: usize,
    opaque: i32,
    idle: Vec<usize>,
    ready: VecDeque<Chunk>,
    ready_bytes: usize,
    arrivals: Receiver<Arrival>,
    sender: Sender<Arrival>,
}

impl QueueConsumer {
    pub(super) fn new(options: SourceOptions, client: Arc<Client>, looked: LookedThrough) -> Self {
        let (sender, arrivals) = mpsc::channel();
        Self {
            options,
            client,
            looked,
            lanes: Vec::new(),
            servers: Vec::new(),
            connections: 0,
            opaque: 0,
            idle: Vec::new(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            arrivals,
            sender,
        }
    }

    /// Asks for more wherever nothing is on its way.
    fn pull_due(&mut self) -> Result<()> {
        if self.idle.is_empty() || self.ready_bytes > READY_BYTES {
            return Ok(());
        }
        let now = Instant::now();
        for index in std::mem::take(&mut self.idle) {
            let lane = &self.lanes[index];
            if now < lane.not_before || now < self.servers[lane.broker].not_before {
                self.idle.push(index);
            } else if let Err(error) = self.pull(index) {
                self.idle.push(index);
                self.went_down(self.lanes[index].broker, error)?;
            }
        }
        Ok(())
    }

    fn pull(&mut self, index: usize) -> Result<()> {
        let lane = &mut self.lanes[index];
        let server = &mut self.servers[lane.broker];
        let link = match &mut server.link {
            Some(link) => link,
            none => {
                let address = self.client.address(&lane.queue)?;
                self.connections += 1;
                server.number = self.connections;
                let link = Link::open(&address, server.number, self.sender.clone());
                none.insert(
                    link.map_err(|e| broken(Side::Source, &format!("connect to broker {address}"), e))?,
                )
            }
        };
        self.opaque = self.opaque.wrapping_add(1);
        let fields = pull_fields(&lane.queue, &self.options.group, lane.ask, &self.options.tags, HOLD_MS);
        let account = self.client.settings.account.as_ref();
        let request = frame::request(request::PULL, self.opaque, fields, &[], account);
        link.send(&request).map_err(|e| broken(Side::Source, "ask for messages", e))?;
        lane.in_flight = Some(self.opaque);
        lane.asked = Instant::now();
        Ok(())
    }

    /// Notes that a broker is away; an error when that lasts too long.
    fn went_down(&mut self, index: usize, error: Error) -> Result<()> {
        let server = &mut self.servers[index];
        server.link = None;
        self.client.forget(&server.name);
        let now = Instant::now();
        server.not_before = now + PAUSE;
        let since = *server.down.get_or_insert_with(|| {
            tracing::warn!(%error, broker = server.name, "a broker is away; it is tried again");
            now
        });
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lane.broker == index && lane.in_flight.take().is_some() {
                self.idle.push(at);
            }
        }
        if now.duration_since(since) > MAX_DOWN { Err(error) } else { Ok(()) }
    }

    /// Gives up connections to brokers that answer no more.
    fn give_up_silent(&mut self) -> Result<()> {
        let silent = |lane: &&Lane| lane.in_flight.is_some() && lane.asked.elapsed() > SILENCE;
        match self.lanes.iter().find(silent) {
            Some(lane) => {
                let error = broken(Side::Source, "read", io::ErrorKind::TimedOut.into());
                self.went_down(lane.broker, error)
            }
            None => Ok(()),
        }
    }

    fn arrived(&mut self, arrival: Arrival) -> Result<()> {
        let Some(index) = self.servers.iter().position(|s| s.number == arrival.link && s.link.is_some())
        else {
            // Of a connection that was given up.
            return Ok(());
        };
        let answer = match arrival.answer {
            Ok(answer) => answer,
            Err(error) => return self.went_down(index, broken(Side::Source, "read", error)),
        };
        self.servers[index].down = None;
        if answer.is_answer
            && let Some(lane) =
                self.lanes.iter().position(|l| l.broker == index && l.in_flight == Some(answer.opaque))
        {
            self.lanes[lane].in_flight = None;
            self.idle.push(lane);
            self.pulled(lane, answer)?;
        }
        self.pull_due()
    }

    fn pulled(&mut self, index: usize, answer: Answer) -> Result<()> {
        let lane = &mut self.lanes[index];
        let undecided = answer.code == answer::PULL_RETRY && answer.remark == BEING_REMOVED;
        if is_busy(&answer) || undecided {
            lane.not_before = Instant::now() + PAUSE;
            return Ok(());
        }
        let pulled = Pulled::read(answer)?;
        match pulled.code {
            answer::PULL_OFFSET_MOVED => {
                let now = Instant::now();
                let since = *lane.beyond.get_or_insert(now);
                if pulled.low <= lane.ask && now.duration_since(since) < MAX_DOWN {
                    lane.not_before = now + PAUSE;
                    return Ok(());
                }
                let why = format!(
                    "queue {}: offset {} is not there; it has {} and later",
                    lane.name, lane.ask, pulled.low
                );
                Err(lost(self.options.settings.on_lost, why))
            }
            answer::PULL_NOT_FOUND => {
                lane.beyond = None;
                Ok(())
            }
            _ => {
                lane.beyond = None;
                // Also when nothing of it is wanted, so that it is noted how far the queue was looked through.
                self.ready_bytes += pulled.body.len();
                lane.ask = pulled.next.max(lane.ask);
                self.ready.push_back(Chunk { lane: index, body: pulled.body, at: 0, next: lane.ask });
                Ok(())
            }
        }
    }

    /// Hands on the next message that is wanted, of those that are here.
    fn deliver(&mut self, take: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<bool> {
        while let Some(chunk) = self.ready.front_mut() {
            let lane = &mut self.lanes[chunk.lane];
            while chunk.at < chunk.body.len() {
                let (message, length) = message::decode(&chunk.body[chunk.at..]).map_err(|why| {
                    Error::new(Code::SourceUndecodable, format!("RocketMQ: queue {}: {why}", lane.name))
                })?;
                chunk.at += length;
                if message.queue_offset < lane.expect {
                    continue;
                }
                lane.pass_to(message.queue_offset, &self.options)?;
                lane.expect = message.queue_offset + 1;
                if message.has_tag(&self.options.tags) {
                    lane.taken = lane.expect;
                    hand_on(chunk.lane, lane, &message, self.options.max_message_bytes, take)?;
                    return Ok(true);
                }
            }
            lane.pass_to(chunk.next, &self.options)?;
            if !self.options.tags.is_empty()
                && let Some(place) =
                    self.looked.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&lane.name)
            {
                *place = (lane.taken, lane.expect);
            }
            self.ready_bytes -= chunk.body.len();
            self.ready.pop_front();
            self.pull_due()?;
        }
        Ok(false)
    }
}

impl Lane {
    /// Goes on to an offset. Without tags every offset has a message, so that none is passed over in silence.
    fn pass_to(&mut self, offset: u64, options: &SourceOptions) -> Result<()> {
        if offset <= self.expect {
            return Ok(());
        }
        if options.tags.is_empty() {
            let (from, count) = (self.expect, offset - self.expect);
            let why = format!("queue {}: {from} to {} are gone ({count} messages)", self.name, offset - 1);
            if options.settings.on_lost == OnLost::Fail {
                return Err(lost(OnLost::Fail, why));
            }
            tracing::warn!(lost = why, "messages are gone; going on as `scan.position-lost` says");
        }
        self.expect = offset;
        Ok(())
    }
}

fn lost(on_lost: OnLost, why: String) -> Error {
    if on_lost == OnLost::Fail {
        return Error::new(Code::PositionLost, format!("messages are gone that the job has not read: {why}"));
    }
    // The restart finds out what is gone and moves on.
    Error::new(Code::SourceUnreachable, format!("messages are gone that were to be read next: {why}"))
}

fn hand_on(
    index: usize,
    lane: &Lane,
    message: &StoredMessage<'_>,
    most: usize,
    take: &mut dyn FnMut(Delivery<'_>) -> Result<()>,
) -> Result<()> {
    let parts = message.key().and_then(|key| Ok((key, message.value(most)?)));
    let (key, value) = parts.map_err(|unreadable| {
        let why = format!("RocketMQ: message {}@{}: {}", lane.name, message.queue_offset, unreadable.0);
        Error::new(Code::SourceUndecodable, why)
    })?;
    take(Delivery {
        lane: index,
        next: Place::at(lane.expect),
        message: Message {
            topic: &lane.queue.topic,
            key: key.as_deref(),
            value: value.as_deref(),
            timestamp_ms: Some(message.born_ms),
        },
        headers: None,
    })
}

impl Consumer for QueueConsumer {
    fn assign(&mut self, lanes: &[LaneStart]) -> Result<()> {
        let now = Instant::now();
        for (name, place) in lanes {
            let queue = Queue::parse(name)?;
            let broker = self.servers.iter().position(|s| s.name == queue.broker).unwrap_or_else(|| {
                self.servers.push(Server {
                    name: queue.broker.clone(),
                    number: 0,
                    link: None,
                    down: None,
                    not_before: now,
                });
                self.servers.len() - 1
            });
            let at = place.0[0];
            self.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), (at, at));
            self.idle.push(self.lanes.len());
            self.lanes.push(Lane {
                queue,
                name: name.clone(),
                broker,
                ask: at,
                expect: at,
                taken: at,
                in_flight: None,
                asked: now,
                beyond: None,
                not_before: now,
            });
        }
        Ok(())
    }

    fn discover(&mut self) -> Result<Vec<LaneStart>> {
        let found = queues(&self.client, &self.options.topics).and_then(|queues| {
            let new = queues.into_iter().filter(|q| !self.lanes.iter().any(|lane| lane.queue == *q));
            new.map(|q| Ok((q.lane(), Place::at(self.client.range(&q)?.0)))).collect()
        });
        match found {
            // What is read does not wait for what may be new.
            Err(error) if matches!(error.code(), Code::SourceUnreachable | Code::TableNotFound) => {
                tracing::warn!(%error, "it is not known whether there are new queues; asking again later");
                Ok(Vec::new())
            }
            found => found,
        }
    }

    fn is_empty_between(&mut self, lane: usize, from: Place, to: Place) -> Result<bool> {
        let (queue, tags) = (&self.lanes[lane].queue, &self.options.tags);
        let (mut at, to, began) = (from.0[0], to.0[0], Instant::now());
        while at < to && began.elapsed() < PROBE {
            let pulled = self.client.pull(queue, &self.options.group, at, tags)?;
            match pulled.code {
                answer::PULL_NOT_FOUND => return Ok(true),
                answer::PULL_OFFSET_MOVED => return Ok(pulled.low >= to),
                _ => {}
            }
            let mut rest = &pulled.body[..];
            while let Ok((message, length)) = message::decode(rest) {
                if (at..to).contains(&message.queue_offset) && message.has_tag(tags) {
                    return Ok(false);
                }
                rest = &rest[length..];
            }
            if pulled.next <= at {
                std::thread::sleep(PAUSE);
            }
            at = pulled.next.max(at);
        }
        Ok(at >= to)
    }

    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<bool> {
        let deadline = Instant::now() + wait;
        loop {
            if self.deliver(take)? {
                return Ok(true);
            }
            self.pull_due()?;
            match self.arrivals.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(arrival) => self.arrived(arrival)?,
                // We hold a sender ourselves, so it is never the other error.
                Err(_) => {
                    self.give_up_silent()?;
                    return Ok(false);
                }
            }
        }
    }
}
