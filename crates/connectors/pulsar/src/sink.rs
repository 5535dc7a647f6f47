//! Owns the sink: messages put into batches, sent in order, and waited for at every commit.
//!
//! The client numbers messages anew in every run, so a broker cannot tell what an earlier run has sent, and a name that stays
//! would make it drop new messages as old ones. So producers get their names from the broker: what is sent again within one run
//! is dropped where the broker removes duplicates, and what is sent again after a restart stands twice.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_connector_api::Finding;
use canalis_messages::{
    Producer as MessageProducer, ProducerContext as Context, Progress, Record, SinkBroker, Unsent,
};
use canalis_types::{Code, Error, Result};
use futures::FutureExt;
use pulsar::{
    ProducerOptions, TokioExecutor,
    compression::{
        Compression as Method, CompressionLz4, CompressionSnappy, CompressionZlib, CompressionZstd,
    },
    producer::{Message, SendFuture},
};

use crate::{
    client::{Cluster, PATIENCE},
    failure::{Side, failure, timeout},
    names,
    options::{Compression, SinkOptions},
};

/// Messages and bytes of one batch.
const BATCH: u32 = 1000;
const BATCH_BYTES: usize = 128 << 10;
/// How long a batch may wait for more.
const BATCH_WAIT: Duration = Duration::from_millis(10);
/// Messages that may be under way.
const UNDER_WAY: usize = 16 * BATCH as usize;
/// How long what was sent may take to be confirmed.
const COMMIT: Duration = Duration::from_secs(60);
/// What a message takes beside key and payload, at most.
const OVERHEAD: usize = 256;

/// A Pulsar cluster as a sink.
pub(crate) struct PulsarSink {
    options: Arc<SinkOptions>,
    cluster: Mutex<Option<Arc<Cluster>>>,
}

impl PulsarSink {
    pub(crate) fn new(options: SinkOptions) -> Self {
        Self { options: Arc::new(options), cluster: Mutex::new(None) }
    }

    /// Does something with a client that is kept until something goes wrong.
    fn with<T>(&self, work: impl FnOnce(&Arc<Cluster>) -> Result<T>) -> Result<T> {
        let mut kept = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = match &*kept {
            Some(cluster) => cluster.clone(),
            None => kept.insert(Cluster::connect(&self.options.client, Side::Sink)?).clone(),
        };
        let done = work(&cluster);
        if done.is_err() {
            *kept = None;
        }
        done
    }
}

fn whole(topic: &str) -> Result<String> {
    names::whole(topic).map_err(|why| Error::new(Code::SinkFailed, format!("option `topic`: {why}")))
}

fn parts(cluster: &Cluster, topic: &str) -> Result<Option<Vec<String>>> {
    cluster.parts(&whole(topic)?)
}

impl SinkBroker for PulsarSink {
    fn check(&self, topics: &[String]) -> Vec<Finding> {
        let subject = "sink pulsar";
        let mut findings = Vec::new();
        for topic in topics {
            let subject = format!("{subject}: topic {topic}");
            findings.push(match self.with(|cluster| parts(cluster, topic)) {
                Ok(Some(parts)) => Finding::ok(subject, format!("{} partitions", parts.len())),
                Ok(None) => Finding::ok(subject, "is made when the job starts, if the namespace allows that"),
                Err(error) => {
                    Finding::error(subject, error.to_string(), "check `service-url` and the right `produce`")
                }
            });
        }
        findings
    }

    fn has_topic(&self, topic: &str) -> Result<bool> {
        self.with(|cluster| Ok(parts(cluster, topic)?.is_some()))
    }

    fn creation(&self, topic: &str) -> String {
        format!("create topic {topic}")
    }

    fn create_topic(&self, topic: &str) -> Result<()> {
        let whole = whole(topic)?;
        let doing =
            format!("create topic `{topic}`, which is only possible where topics may be made by producers");
        self.with(|cluster| {
            // Brokers make a topic for the first who wants to write to it.
            let producer = cluster.ask(&doing, cluster.client().producer().with_topic(&whole).build())?;
            let _guard = cluster.enter();
            drop(producer);
            Ok(())
        })
    }

    fn exactly_once(&self) -> bool {
        false
    }

    fn recover(&self, _job: &str, _writers: usize, _prefix: &str) -> Result<Progress> {
        Ok(Progress::new())
    }

    fn producer(&self, _context: Context) -> Result<Box<dyn MessageProducer>> {
        Ok(Box::new(PulsarProducer {
            cluster: Cluster::connect(&self.options.client, Side::Sink)?,
            options: self.options.clone(),
            topics: HashMap::new(),
            under_way: VecDeque::new(),
        }))
    }
}

type Part = pulsar::Producer<TokioExecutor>;

struct PulsarProducer {
    cluster: Arc<Cluster>,
    options: Arc<SinkOptions>,
    /// Producers of each topic by partition, made when they are first needed.
    topics: HashMap<String, Vec<(String, Option<Part>)>>,
    /// What is not confirmed, oldest first.
    under_way: VecDeque<SendFuture>,
}

impl PulsarProducer {
    fn settings(&self) -> ProducerOptions {
        ProducerOptions {
            batch_size: Some(BATCH),
            batch_byte_size: Some(BATCH_BYTES),
            batch_timeout: Some(BATCH_WAIT),
            compression: match self.options.compression {
                Compression::None => None,
                Compression::Lz4 => Some(Method::Lz4(CompressionLz4::default())),
                Compression::Zstd => Some(Method::Zstd(CompressionZstd::default())),
                Compression::Zlib => Some(Method::Zlib(CompressionZlib::default())),
                Compression::Snappy => Some(Method::Snappy(CompressionSnappy::default())),
            },
            block_queue_if_full: true,
            ..ProducerOptions::default()
        }
    }

    /// The producer of a partition.
    fn part(&mut self, topic: &str, partition: u32) -> Result<&mut Part> {
        let missing = || Error::internal(format!("partition {partition} of topic `{topic}` is not known"));
        let index = partition as usize;
        let parts = self.topics.get(topic).ok_or_else(missing)?;
        if let Some((name, None)) = parts.get(index) {
            let builder = self.cluster.client().producer().with_topic(name).with_options(self.settings());
            let made = self.cluster.ask(&format!("write to topic `{name}`"), builder.build())?;
            if let Some((_, place)) = self.topics.get_mut(topic).and_then(|parts| parts.get_mut(index)) {
                *place = Some(made);
            }
        }
        let parts = self.topics.get_mut(topic);
        parts.and_then(|parts| parts.get_mut(index)?.1.as_mut()).ok_or_else(missing)
    }

    /// Waits until at most so many messages are under way.
    fn confirm(&mut self, most: usize) -> Result<()> {
        let doing = "write";
        let began = Instant::now();
        while self.under_way.len() > most {
            let Some(mut oldest) = self.under_way.pop_front() else { break };
            let confirmed = match (&mut oldest).now_or_never() {
                Some(confirmed) => Some(confirmed),
                None => self.cluster.wait_at_most(COMMIT.saturating_sub(began.elapsed()), oldest),
            };
            match confirmed {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(failure(Side::Sink, doing, &error)),
                None => return Err(timeout(Side::Sink, doing)),
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, topic: &str, partition: u32, message: Message) -> Result<()> {
        let cluster = self.cluster.clone();
        // With others in its batch a large message could be too large.
        let alone = message.payload.len() > BATCH_BYTES;
        let part = self.part(topic, partition)?;
        let doing = format!("write to topic `{topic}`");
        if alone {
            cluster.ask(&doing, part.send_batch())?;
        }
        let sent = cluster.ask(&doing, part.send_non_blocking(message))?;
        self.under_way.push_back(sent);
        if self.under_way.len() > UNDER_WAY {
            self.confirm(UNDER_WAY - UNDER_WAY / 4)?;
        }
        Ok(())
    }
}

impl Drop for PulsarProducer {
    fn drop(&mut self) {
        // The client starts tasks to say goodbye.
        let _guard = self.cluster.enter();
        self.topics.clear();
    }
}

impl MessageProducer for PulsarProducer {
    fn partitions(&mut self, topic: &str) -> Result<u32> {
        let parts = parts(&self.cluster, topic)?
            .ok_or_else(|| Error::new(Code::SinkFailed, format!("Pulsar has no topic `{topic}`")))?;
        let number = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let known = self.topics.entry(topic.to_owned()).or_default();
        known.extend(parts.into_iter().skip(known.len()).map(|name| (name, None)));
        Ok(number)
    }

    fn send(
        &mut self,
        topic: &str,
        partition: u32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp_ms: Option<i64>,
    ) -> std::result::Result<(), Unsent> {
        let bytes = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + OVERHEAD;
        let limit = self.options.max_message;
        if bytes > limit {
            return Err(Unsent::TooLarge { bytes, limit });
        }
        let (partition_key, encoded) = match key.map(std::str::from_utf8) {
            None => (None, None),
            Some(Ok(text)) => (Some(text.to_owned()), None),
            Some(Err(_)) => (key.map(|bytes| STANDARD.encode(bytes)), Some(true)),
        };
        let message = Message {
            // No bytes are what removes a key where a topic is compacted.
            payload: value.unwrap_or_default().to_vec(),
            partition_key,
            partition_key_b64_encoded: encoded,
            event_time: timestamp_ms.and_then(|millis| u64::try_from(millis).ok()),
            ..Message::default()
        };
        self.enqueue(topic, partition, message).map_err(Unsent::Failed)
    }

    fn commit(&mut self, _records: &[Record]) -> Result<()> {
        let cluster = self.cluster.clone();
        for (_, part) in self.topics.values_mut().flatten() {
            if let Some(part) = part {
                let flushed = cluster.wait_at_most(PATIENCE, part.send_batch());
                match flushed {
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Err(failure(Side::Sink, "write", &error)),
                    None => return Err(timeout(Side::Sink, "write")),
                }
            }
        }
        self.confirm(0)
    }
}
