//! Owns sending: a batch at a time in flight for each queue, because brokers work on requests side by side, and the order
//! inside of a queue is that of the changes.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use canalis_messages::{Producer, Record, Unsent};
use canalis_types::{Code, Error, Result};

use crate::{
    client::{Client, Queue},
    failure::{Side, broken, is_busy, refused},
    options::SinkOptions,
    protocol::{
        answer,
        connection::{Arrival, Link},
        frame::{self, Answer, Fields, fields},
        message, request,
    },
};

/// A batch is sent at so many bytes, or as soon as the queue is free at a commit.
const BATCH: usize = 256 << 10;
/// Bytes that wait for all queues together.
const WAITING: usize = 32 << 20;
/// How long a batch may take, with all its attempts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause after a broker has said that it is busy.
const PAUSE: Duration = Duration::from_millis(50);
/// The largest message that brokers take unless they are told otherwise.
const DEFAULT_LIMIT: usize = 4 << 20;
/// What a message takes beside key and value, at most; brokers measure it as it is stored.
const OVERHEAD: usize = 512;

/// A batch on its way.
struct Flight {
    opaque: i32,
    since: Instant,
    timestamp_ms: i64,
}

/// A queue and what waits for it.
struct Target {
    queue: Queue,
    limit: usize,
    link: usize,
    /// Messages of the batch that is filled, and where the last one begins.
    batch: Vec<u8>,
    timestamp_ms: Option<i64>,
    /// The batch on its way, kept to be sent again when the broker is busy.
    sending: Vec<u8>,
    flight: Option<Flight>,
}

/// Sends messages to queues of all brokers.
pub(super) struct QueueProducer {
    options: Arc<SinkOptions>,
    client: Arc<Client>,
    topics: HashMap<String, std::ops::Range<usize>>,
    targets: Vec<Target>,
    links: Vec<(String, Option<Link>)>,
    waiting: usize,
    opaque: i32,
    arrivals: Receiver<Arrival>,
    sender: Sender<Arrival>,
}

impl QueueProducer {
    pub(super) fn new(options: Arc<SinkOptions>, client: Arc<Client>) -> Self {
        let (sender, arrivals) = mpsc::channel();
        Self {
            options,
            client,
            topics: HashMap::new(),
            targets: Vec::new(),
            links: Vec::new(),
            waiting: 0,
            opaque: 0,
            arrivals,
            sender,
        }
    }

    fn add_topic(&mut self, topic: &str) -> Result<std::ops::Range<usize>> {
        let none =
            || Error::new(Code::SinkFailed, format!("RocketMQ has no topic `{topic}` that can be written"));
        let queues = self.client.queues(topic)?.filter(|queues| !queues.is_empty()).ok_or_else(none)?;
        let first = self.targets.len();
        let mut limits: HashMap<String, usize> = HashMap::new();
        for queue in queues {
            let limit = match limits.get(&queue.broker) {
                Some(limit) => *limit,
                None => {
                    let limit = self.client.largest_message(&queue)?.unwrap_or(DEFAULT_LIMIT);
                    *limits.entry(queue.broker.clone()).or_insert(limit)
                }
            };
            let link = self.links.iter().position(|(name, _)| *name == queue.broker).unwrap_or_else(|| {
                self.links.push((queue.broker.clone(), None));
                self.links.len() - 1
            });
            self.targets.push(Target {
                queue,
                limit,
                link,
                batch: Vec::new(),
                timestamp_ms: None,
                sending: Vec::new(),
                flight: None,
            });
        }
        let range = first..self.targets.len();
        self.topics.insert(topic.to_owned(), range.clone());
        Ok(range)
    }

    /// Sends what waits for a queue; there must be no batch on its way.
    fn launch(&mut self, index: usize) -> Result<()> {
        let target = &mut self.targets[index];
        if target.batch.is_empty() {
            return Ok(());
        }
        std::mem::swap(&mut target.batch, &mut target.sending);
        target.batch.clear();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let timestamp_ms = target.timestamp_ms.take().unwrap_or(i64::try_from(now).unwrap_or(i64::MAX));
        target.flight = Some(Flight { opaque: 0, since: Instant::now(), timestamp_ms });
        self.transmit(index)
    }

    /// Sends what waits for queues that have nothing on its way.
    fn launch_all(&mut self) -> Result<()> {
        // A connection that was closed while nothing was due is made anew.
        while self.take_answer(Duration::ZERO)? {}
        for index in 0..self.targets.len() {
            if self.targets[index].flight.is_none() {
                self.launch(index)?;
            }
        }
        Ok(())
    }

    /// Sends the batch of a queue that is to be on its way, perhaps again.
    fn transmit(&mut self, index: usize) -> Result<()> {
        let target = &mut self.targets[index];
        let Some(flight) = &mut target.flight else { return Ok(()) };
        let (name, link) = &mut self.links[target.link];
        let fail = |error| broken(Side::Sink, &format!("write to broker {name}"), error);
        let link = match link {
            Some(link) => link,
            none => {
                let address = self.client.address(&target.queue)?;
                none.insert(Link::open(&address, target.link, self.sender.clone()).map_err(fail)?)
            }
        };
        self.opaque = self.opaque.wrapping_add(1);
        flight.opaque = self.opaque;
        let fields = send_fields(&target.queue, &self.options.group, flight.timestamp_ms);
        let account = self.client.settings.account.as_ref();
        let request = frame::request(request::SEND_BATCH, self.opaque, fields, &target.sending, account);
        link.send(&request).map_err(fail)
    }

    /// Takes one answer, and sends what waited for it. False when none came in time.
    fn take_answer(&mut self, wait: Duration) -> Result<bool> {
        let arrival = match self.arrivals.recv_timeout(wait) {
            Ok(arrival) => arrival,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => return Err(Error::internal("no channel for answers")),
        };
        let answer = match arrival.answer {
            Ok(answer) => answer,
            Err(error) => {
                let on_it = |t: &Target| t.link == arrival.link && t.flight.is_some();
                let (name, link) = &mut self.links[arrival.link];
                *link = None;
                if self.targets.iter().any(on_it) {
                    self.client.forget(name);
                    return Err(broken(Side::Sink, &format!("write to broker {name}"), error));
                }
                // It was closed while nothing was due.
                return Ok(true);
            }
        };
        let is = |t: &Target| t.flight.as_ref().is_some_and(|f| f.opaque == answer.opaque);
        if let Some(index) = self.targets.iter().position(is).filter(|_| answer.is_answer) {
            self.answered(index, &answer)?;
        }
        Ok(true)
    }

    fn answered(&mut self, index: usize, answer: &Answer) -> Result<()> {
        let target = &mut self.targets[index];
        let since = target.flight.as_ref().map_or_else(Instant::now, |flight| flight.since);
        if is_busy(answer) && since.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
            return self.transmit(index);
        }
        if answer.code != answer::SUCCESS {
            return Err(refused(Side::Sink, &format!("write to queue {}", target.queue.lane()), answer));
        }
        self.waiting -= target.sending.len();
        target.flight = None;
        if target.batch.len() >= BATCH { self.launch(index) } else { Ok(()) }
    }

    /// Waits for the next answer of any queue.
    fn await_answer(&mut self) -> Result<()> {
        let oldest = self.targets.iter().filter_map(|t| t.flight.as_ref()).map(|f| f.since).min();
        let left = oldest.map_or(PATIENCE, |since| PATIENCE.saturating_sub(since.elapsed()));
        if self.take_answer(left)? {
            return Ok(());
        }
        let why = std::io::Error::from(std::io::ErrorKind::TimedOut);
        Err(broken(Side::Sink, "write: no answer came", why))
    }
}

/// Fields of a batch, whose names brokers know by single letters.
fn send_fields(queue: &Queue, group: &str, timestamp_ms: i64) -> Fields {
    fields([
        ("a", &group),
        ("b", &queue.topic),
        ("c", &"TBW102"),
        ("d", &4),
        ("e", &queue.id),
        ("f", &0),
        ("g", &timestamp_ms),
        ("h", &0),
        ("i", &""),
        ("j", &0),
        ("k", &false),
        ("m", &true),
        ("n", &queue.broker),
    ])
}

impl Producer for QueueProducer {
    fn partitions(&mut self, topic: &str) -> Result<u32> {
        let range = match self.topics.get(topic) {
            Some(range) => range.clone(),
            None => self.add_topic(topic)?,
        };
        Ok(u32::try_from(range.len()).unwrap_or(u32::MAX))
    }

    fn send(
        &mut self,
        topic: &str,
        partition: u32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp_ms: Option<i64>,
    ) -> std::result::Result<(), Unsent> {
        let range = match self.topics.get(topic) {
            Some(range) => range.clone(),
            None => self.add_topic(topic).map_err(Unsent::Failed)?,
        };
        let index = range.start + partition as usize;
        let (Some(target), true) = (self.targets.get(index), index < range.end) else {
            return Err(Unsent::Failed(Error::internal(format!("topic `{topic}` has no queue {partition}"))));
        };
        let key_bytes = key.map_or(0, <[u8]>::len);
        let bytes = key_bytes + value.map_or(0, <[u8]>::len) + topic.len() + OVERHEAD;
        let limit = target.limit;
        if bytes > limit {
            return Err(Unsent::TooLarge { bytes, limit });
        }
        // A batch is measured as one message.
        while self.targets[index].batch.len() + bytes > limit || self.waiting > WAITING {
            self.launch_all().map_err(Unsent::Failed)?;
            self.await_answer().map_err(Unsent::Failed)?;
        }
        let target = &mut self.targets[index];
        let before = target.batch.len();
        if !message::encode(&mut target.batch, key, value, self.options.tag.as_deref()) {
            return Err(Unsent::TooLarge { bytes: key_bytes, limit: message::MAX_PROPERTIES });
        }
        self.waiting += target.batch.len() - before;
        target.timestamp_ms = target.timestamp_ms.max(timestamp_ms);
        if target.batch.len() < BATCH {
            return Ok(());
        }
        while self.take_answer(Duration::ZERO).map_err(Unsent::Failed)? {}
        if self.targets[index].flight.is_none() {
            self.launch(index).map_err(Unsent::Failed)?;
        }
        Ok(())
    }

    fn commit(&mut self, records: &[Record]) -> Result<()> {
        if !records.is_empty() {
            return Err(Error::internal("RocketMQ keeps no records of what is committed"));
        }
        loop {
            self.launch_all()?;
            if self.targets.iter().all(|t| t.flight.is_none()) {
                return Ok(());
            }
            self.await_answer()?;
        }
    }
}
