//! Owns the consumer: all lanes at once, each without a gap and without a message twice, whatever happens to connections.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_formats::message::Message as Lent;
use canalis_messages::{Consumer, Delivery, LaneStart, Place};
use canalis_types::{Code, Error, Result};
use futures::task::noop_waker;
use pulsar::{Payload, consumer::Message};

use super::{
    acknowledger::Acknowledger,
    parts,
    reader::{Given, Reader},
    topic_of_lane,
};
use crate::{
    client::Cluster,
    failure::{Side, failure},
    names,
    options::SourceOptions,
    place,
};

/// How long brokers may be away before the job is told.
const MAX_DOWN: Duration = Duration::from_secs(60);
/// Between two attempts to get back.
const RETRY: Duration = Duration::from_millis(300);
/// After so long without a message it is asked whether there should have been one.
const SILENCE: Duration = Duration::from_secs(15);
/// A reader that ends so soon is not built again before it has been silent for long.
const AT_ONCE: Duration = Duration::from_secs(2);
/// While messages come it is not looked into a lane for what may be missing.
const FLOWING: Duration = Duration::from_millis(500);
/// How often the very same message may be given as damaged.
const MAX_DAMAGED: u32 = 3;

struct Lane {
    /// Whole name of the topic or partition.
    part: String,
    /// What messages say their topic is.
    topic: String,
    reader: Option<Reader>,
    /// Place of the last message that was taken.
    at: Place,
    /// When a message came, or was looked for.
    heard: Instant,
    /// Nothing has come since it was opened again.
    quiet: bool,
    /// Errors since the last message.
    damaged: u32,
}

/// What a look at the lanes found.
enum Found {
    Message(usize, Box<Message<Vec<u8>>>),
    Broken(usize, Option<pulsar::Error>),
}

pub(super) struct PulsarConsumer {
    options: Arc<SourceOptions>,
    acknowledger: Arc<Acknowledger>,
    cluster: Arc<Cluster>,
    lanes: Vec<Lane>,
    /// Lane of the last message: most come in runs.
    last: usize,
    /// Since when readers are to be opened again, and when that was tried.
    down: Option<(Instant, Instant)>,
    key: Vec<u8>,
}

impl PulsarConsumer {
    pub(super) fn new(options: Arc<SourceOptions>, acknowledger: Arc<Acknowledger>) -> Result<Self> {
        let cluster = Cluster::connect(&options.client, Side::Source)?;
        Ok(Self { options, acknowledger, cluster, lanes: Vec::new(), last: 0, down: None, key: Vec::new() })
    }

    /// Looks at all lanes once, beginning with the one that gave the last message.
    fn look(lanes: &mut [Lane], last: usize, context: &mut Context<'_>) -> Poll<Found> {
        for step in 0..lanes.len() {
            let index = (last + step) % lanes.len();
            let Some(reader) = &mut lanes[index].reader else { continue };
            let given: Option<Given> = match reader.poll(context) {
                Poll::Pending => continue,
                Poll::Ready(given) => given,
            };
            return Poll::Ready(match given {
                Some(Ok(message)) => Found::Message(index, Box::new(message)),
                Some(Err(error)) => Found::Broken(index, Some(error)),
                None => Found::Broken(index, None),
            });
        }
        Poll::Pending
    }

    /// Waits for something to come.
    fn find(&mut self, wait: Duration) -> Option<Found> {
        let (lanes, last) = (&mut self.lanes, self.last);
        let at_once = Self::look(lanes, last, &mut Context::from_waker(&noop_waker()));
        if let Poll::Ready(found) = at_once {
            return Some(found);
        }
        if wait.is_zero() {
            return None;
        }
        self.cluster.wait_at_most(wait, poll_fn(|context| Self::look(lanes, last, context)))
    }

    /// Something is wrong with a lane: its reader is opened again where the lane is. Nothing is passed over.
    fn broken(&mut self, index: usize, error: Option<pulsar::Error>) -> Result<()> {
        let lane = &mut self.lanes[index];
        lane.reader = None;
        if let Some(error) = error {
            lane.damaged += 1;
            if lane.damaged >= MAX_DAMAGED {
                let doing = format!("read the message behind {:?} of topic `{}`", lane.at.0, lane.part);
                let error = failure(Side::Source, &doing, &error);
                return Err(Error::new(Code::SourceUndecodable, error.to_string()));
            }
            tracing::warn!(topic = lane.part, %error, "the reader is built again");
        } else if lane.quiet && lane.heard.elapsed() < AT_ONCE {
            // A topic that was terminated ends again and again.
            return Ok(());
        } else {
            tracing::warn!(topic = lane.part, "the reader has ended and is built again");
        }
        let now = Instant::now();
        self.down.get_or_insert((now, now.checked_sub(RETRY).unwrap_or(now)));
        Ok(())
    }

    /// Opens readers that are missing by a new client.
    fn rebuild(&mut self) -> Result<()> {
        let Some((since, tried)) = self.down else { return Ok(()) };
        if tried.elapsed() < RETRY {
            std::thread::sleep(RETRY.saturating_sub(tried.elapsed()));
        }
        self.down = Some((since, Instant::now()));
        match self.reopen() {
            Ok(()) => {
                self.down = None;
                tracing::info!(seconds = since.elapsed().as_secs(), "the readers are built again");
                Ok(())
            }
            Err(error) if since.elapsed() > MAX_DOWN => Err(error),
            Err(error) => {
                tracing::warn!(%error, "trying again");
                Ok(())
            }
        }
    }

    fn reopen(&mut self) -> Result<()> {
        let cluster = Cluster::connect(&self.options.client, Side::Source)?;
        let mut readers = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            readers.push(Reader::open(&cluster, &lane.part, lane.at)?);
        }
        for (lane, reader) in self.lanes.iter_mut().zip(readers) {
            lane.reader = Some(reader);
            lane.quiet = true;
            lane.heard = Instant::now();
        }
        self.cluster = cluster;
        Ok(())
    }

    /// Asks about one lane that has been silent for long: a reader that is dead without knowing it is built again.
    fn ask_the_silent(&mut self) -> Result<()> {
        let Some(index) = self.lanes.iter().position(|lane| lane.heard.elapsed() > SILENCE) else {
            return Ok(());
        };
        let lane = &mut self.lanes[index];
        lane.heard = Instant::now();
        let dead = match &mut lane.reader {
            Some(reader) => match reader.end() {
                // A message may have come in this very moment; then the new reader gives it.
                Ok(end) => end > lane.at && !lane.quiet,
                Err(error) => {
                    tracing::warn!(topic = lane.part, %error, "the reader does not answer");
                    true
                }
            },
            None => true,
        };
        if dead {
            lane.quiet = false;
            self.broken(index, None)?;
        }
        Ok(())
    }
}

/// A message as it is lent. The key's bytes are put into `key`.
fn lend<'a>(topic: &'a str, payload: &'a Payload, key: &'a mut Vec<u8>) -> Lent<'a> {
    let metadata = &payload.metadata;
    let text = metadata.partition_key.as_ref().map(String::as_bytes);
    let has_key = match text {
        None => false,
        Some(text) => {
            key.clear();
            let encoded = metadata.partition_key_b64_encoded == Some(true);
            if !encoded || STANDARD.decode_vec(text, key).is_err() {
                key.clear();
                key.extend_from_slice(text);
            }
            true
        }
    };
    let null = metadata.null_value == Some(true) || (has_key && payload.data.is_empty());
    let time = metadata.event_time.filter(|time| *time > 0).unwrap_or(metadata.publish_time);
    Lent {
        topic,
        key: has_key.then_some(&**key),
        value: (!null).then_some(&*payload.data),
        timestamp_ms: i64::try_from(time).ok(),
    }
}

impl Consumer for PulsarConsumer {
    fn assign(&mut self, lanes: &[LaneStart]) -> Result<()> {
        for (name, at) in lanes {
            let part = topic_of_lane(name)?;
            let reader = Reader::open(&self.cluster, &part, *at)?;
            self.lanes.push(Lane {
                topic: names::topic_of(name).to_owned(),
                reader: Some(reader),
                part,
                at: *at,
                heard: Instant::now(),
                quiet: true,
                damaged: 0,
            });
        }
        Ok(())
    }

    fn discover(&mut self) -> Result<Vec<LaneStart>> {
        if self.down.is_some() {
            return Ok(Vec::new());
        }
        let found = match parts(&self.cluster, &self.options.topics) {
            Ok(found) => found,
            Err(error) if self.lanes.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "new partitions are looked for later");
                return Ok(Vec::new());
            }
        };
        let new = found.iter().filter(|part| !self.lanes.iter().any(|lane| lane.part == **part));
        Ok(new.map(|part| (names::short(part).to_owned(), place::BEGINNING)).collect())
    }

    fn is_empty_between(&mut self, lane: usize, from: Place, to: Place) -> Result<bool> {
        let lane = &self.lanes[lane];
        if self.down.is_some() || lane.heard.elapsed() < FLOWING {
            return Ok(false);
        }
        let mut reader = Reader::probe(&self.cluster, &lane.part, Some(from))?;
        let end = reader.end()?;
        Ok(match reader.first_behind(from)? {
            Some(first) => first > to,
            None => end <= from,
        })
    }

    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<bool> {
        if self.down.is_some() {
            self.acknowledger.check()?;
            self.rebuild()?;
        }
        loop {
            let (index, message) = match self.find(wait) {
                None => {
                    self.acknowledger.check()?;
                    self.ask_the_silent()?;
                    return Ok(false);
                }
                Some(Found::Broken(index, error)) => {
                    self.broken(index, error)?;
                    return Ok(false);
                }
                Some(Found::Message(index, message)) => (index, message),
            };
            self.last = index;
            let next = place::of(message.message_id());
            let lane = &mut self.lanes[index];
            lane.heard = Instant::now();
            if next <= lane.at {
                if !place::same_entry(next, lane.at) && !lane.quiet {
                    // After a break the client begins where it began at first.
                    self.broken(index, None)?;
                    return Ok(false);
                }
                continue;
            }
            if message.payload.metadata.num_chunks_from_msg.is_some_and(|chunks| chunks > 1) {
                let (part, at) = (&lane.part, next.0);
                let why = format!(
                    "Pulsar: topic `{part}` has a message in chunks at {at:?}, which are not put together"
                );
                return Err(Error::new(Code::SourceUndecodable, why));
            }
            let lent = lend(&lane.topic, &message.payload, &mut self.key);
            take(Delivery { lane: index, next, message: lent, headers: None })?;
            lane.at = next;
            lane.quiet = false;
            lane.damaged = 0;
            return Ok(true);
        }
    }
}
