//! Owns the sink: topics made, messages produced, positions in the transactions of their rows.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use canalis_connector_api::Finding;
use canalis_messages::{
    Producer as MessageProducer, ProducerContext as Context, Progress, Record, SinkBroker, Unsent,
};
use canalis_types::{Code, Error, Result};
use futures::executor::block_on;
use rdkafka::{
    ClientContext, Message, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::DeliveryResult,
    producer::{BaseProducer, BaseRecord, Producer, ProducerContext},
};

use crate::{
    client::{self, PATIENCE},
    failure::{Side, failure, is_passing},
    options::SinkOptions,
};

/// How long a commit may take; the brokers retry inside.
const COMMIT: Duration = Duration::from_secs(120);
/// How long transactions of earlier runs may hold up reading the progress.
const RECOVERY: Duration = Duration::from_secs(120);
/// Messages between two looks at delivery reports.
const LOOK_EVERY: u32 = 512;
/// What a record takes beside key and payload, at most.
const OVERHEAD: usize = 128;

/// A Kafka cluster as a sink.
pub(crate) struct KafkaSink {
    options: Arc<SinkOptions>,
    client: Mutex<Option<Arc<BaseConsumer>>>,
}

impl KafkaSink {
    pub(crate) fn new(options: SinkOptions) -> Self {
        Self { options: Arc::new(options), client: Mutex::new(None) }
    }

    fn client(&self) -> Result<Arc<BaseConsumer>> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        match &*client {
            Some(client) => Ok(client.clone()),
            None => Ok(client.insert(Arc::new(self.options.client.consumer(Side::Sink, &[])?)).clone()),
        }
    }

    fn create(&self, topic: &str, partitions: Option<i32>, compacted: bool) -> Result<()> {
        let doing = format!("create topic `{topic}`");
        let admin = admin(&self.options)?;
        // -1 is the cluster's own default.
        let replication = TopicReplication::Fixed(self.options.replication.unwrap_or(-1));
        let mut new = NewTopic::new(topic, partitions.unwrap_or(-1), replication);
        if compacted {
            new = new.set("cleanup.policy", "compact");
        }
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
        let made = block_on(admin.create_topics([&new], &options));
        match made.map_err(|e| failure(Side::Sink, &doing, e))?.into_iter().next() {
            None | Some(Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => {}
            Some(Err((_, code))) => return Err(failure(Side::Sink, &doing, KafkaError::AdminOp(code))),
        }
        // Brokers learn of it one after another.
        let began = Instant::now();
        while client::partitions(&*self.client()?, Side::Sink, topic)?.is_none() {
            if began.elapsed() > PATIENCE {
                return Err(Error::new(
                    Code::SinkUnreachable,
                    format!("Kafka: topic `{topic}` was made and does not appear"),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn transactional_id(&self, job: &str, writer: usize) -> String {
        format!("{}-{job}-{writer}", self.options.transactional_id)
    }
}

fn admin(options: &SinkOptions) -> Result<AdminClient<DefaultClientContext>> {
    options.client.config(&[]).create().map_err(|e| failure(Side::Sink, "make an admin client", e))
}

impl SinkBroker for KafkaSink {
    fn check(&self, topics: &[String]) -> Vec<Finding> {
        let subject = "sink kafka";
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => {
                return vec![Finding::error(
                    subject,
                    error.to_string(),
                    "check the options under `properties.`",
                )];
            }
        };
        let mut findings = Vec::new();
        for topic in topics {
            findings.push(match client::partitions(&client, Side::Sink, topic) {
                Ok(Some(partitions)) => Finding::ok(
                    format!("{subject}: topic {topic}"),
                    format!("{} partitions", partitions.len()),
                ),
                Ok(None) => Finding::ok(format!("{subject}: topic {topic}"), "is made when the job starts"),
                Err(error) => Finding::error(
                    format!("{subject}: topic {topic}"),
                    error.to_string(),
                    "check `properties.bootstrap.servers` and the rights Describe, Write and Create",
                ),
            });
        }
        findings
    }

    fn has_topic(&self, topic: &str) -> Result<bool> {
        Ok(client::partitions(&*self.client()?, Side::Sink, topic)?.is_some())
    }

    fn creation(&self, topic: &str) -> String {
        match self.options.partitions {
            Some(partitions) => format!("create topic {topic} with {partitions} partitions"),
            None => format!("create topic {topic}"),
        }
    }

    fn create_topic(&self, topic: &str) -> Result<()> {
        self.create(topic, self.options.partitions, false)
    }

    fn exactly_once(&self) -> bool {
        self.options.exactly_once
    }

    fn recover(&self, job: &str, writers: usize, prefix: &str) -> Result<Progress> {
        let topic = &self.options.progress_topic;
        if !self.has_topic(topic)? {
            self.create(topic, Some(1), true)?;
            return Ok(Vec::new());
        }
        // What a writer of an earlier run left open is given up here, so that it is neither seen nor waited for.
        for writer in 0..writers {
            transactional(&self.options, &self.transactional_id(job, writer))?;
        }
        read_progress(&self.options, topic, prefix)
    }

    fn producer(&self, context: Context) -> Result<Box<dyn MessageProducer>> {
        let client = if self.options.exactly_once {
            transactional(&self.options, &self.transactional_id(&context.job, context.writer))?
        } else {
            producer(&self.options, &[])?
        };
        let most = self.options.client.0.iter().find(|(key, _)| key == "message.max.bytes");
        Ok(Box::new(KafkaProducer {
            client,
            questions: self.client()?,
            options: self.options.clone(),
            open: false,
            sent: 0,
            limit: most.and_then(|(_, value)| value.parse().ok()).unwrap_or(DEFAULT_LIMIT),
            limits: HashMap::new(),
        }))
    }
}

/// The client's own default of `message.max.bytes`.
const DEFAULT_LIMIT: usize = 1_000_000;

fn producer(options: &SinkOptions, more: &[(&str, &str)]) -> Result<BaseProducer<Reports>> {
    let mut config = options.client.config(&[
        ("linger.ms", "5"),
        ("batch.size", "1048576"),
        ("queue.buffering.max.kbytes", "65536"),
        ("queue.buffering.max.messages", "500000"),
        ("compression.type", "lz4"),
    ]);
    config.set("enable.idempotence", "true");
    for (key, value) in more {
        config.set(*key, *value);
    }
    config.create_with_context(Reports::default()).map_err(|e| failure(Side::Sink, "make a producer", e))
}

/// A producer that has shut out all others of its id and given up what they left open.
fn transactional(options: &SinkOptions, id: &str) -> Result<BaseProducer<Reports>> {
    let client = producer(options, &[("transactional.id", id), ("transaction.timeout.ms", "300000")])?;
    client
        .init_transactions(PATIENCE)
        .map_err(|e| failure(Side::Sink, &format!("begin with the transactional id `{id}`"), e))?;
    Ok(client)
}

/// Reads committed records to the end that there is now.
fn read_progress(options: &SinkOptions, topic: &str, prefix: &str) -> Result<Progress> {
    let doing = format!("read the progress in topic `{topic}`");
    let fail = |error| failure(Side::Sink, &doing, error);
    // The true end, behind transactions that are still open.
    let open = options.client.consumer(Side::Sink, &[("isolation.level", "read_uncommitted")])?;
    let (low, high) = client::range(&open, Side::Sink, topic, 0)?;
    let reader = options
        .client
        .consumer(Side::Sink, &[("isolation.level", "read_committed"), ("enable.partition.eof", "true")])?;
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning)
        .and_then(|()| reader.assign(&list))
        .map_err(fail)?;
    let mut found: HashMap<String, String> = HashMap::new();
    let began = Instant::now();
    let mut next = low;
    while next < high {
        if began.elapsed() > RECOVERY {
            return Err(Error::new(
                Code::SinkContention,
                format!(
                    "Kafka: a transaction that another producer left open holds up topic `{topic}`; it is over at its timeout"
                ),
            ));
        }
        match reader.poll(Duration::from_millis(100)) {
            None => {}
            Some(Ok(message)) => {
                next = u64::try_from(message.offset()).unwrap_or(0) + 1;
                let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8_lossy(b).into_owned());
                let Some(key) = text(message.key()).filter(|key| key.starts_with(prefix)) else { continue };
                match text(message.payload()) {
                    Some(value) => found.insert(key, value),
                    None => found.remove(&key),
                };
            }
            // The end of what is committed: all, unless a transaction is open before `high`.
            Some(Err(KafkaError::PartitionEOF(_))) => {
                let (_, stable) = client::range(&reader, Side::Sink, topic, 0)?;
                if stable >= high {
                    // Markers of transactions take offsets too.
                    next = high;
                }
            }
            Some(Err(error)) if is_passing(&error) => {}
            Some(Err(error)) => return Err(fail(error)),
        }
    }
    Ok(found.into_iter().collect())
}

/// Remembers the first message that was not taken.
#[derive(Default, Clone)]
struct Reports(Arc<Mutex<Option<KafkaError>>>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): Self::DeliveryOpaque) {
        if let Err((error, _)) = result {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
        }
    }
}

struct KafkaProducer {
    client: BaseProducer<Reports>,
    questions: Arc<BaseConsumer>,
    options: Arc<SinkOptions>,
    /// A transaction is open.
    open: bool,
    sent: u32,
    /// Largest message the client takes.
    limit: usize,
    /// Largest message each topic takes.
    limits: HashMap<String, usize>,
}

impl KafkaProducer {
    fn begin(&mut self) -> Result<()> {
        if self.options.exactly_once && !self.open {
            self.client.begin_transaction().map_err(|e| failure(Side::Sink, "begin a transaction", e))?;
            self.open = true;
        }
        Ok(())
    }

    fn check_reports(&self) -> Result<()> {
        let mut failed = self.client.context().0.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.take() {
            Some(error) => Err(failure(Side::Sink, "write", error)),
            None => Ok(()),
        }
    }

    fn enqueue(&mut self, record: BaseRecord<'_, [u8], [u8]>) -> std::result::Result<(), Unsent> {
        self.begin().map_err(Unsent::Failed)?;
        self.sent = self.sent.wrapping_add(1);
        if self.sent.is_multiple_of(LOOK_EVERY) {
            self.client.poll(Duration::ZERO);
            self.check_reports().map_err(Unsent::Failed)?;
        }
        let mut record = record;
        loop {
            match self.client.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    // Room comes with the reports of what the brokers have taken.
                    self.client.poll(Duration::from_millis(10));
                    self.check_reports().map_err(Unsent::Failed)?;
                    record = back;
                }
                Err((error, _)) => return Err(Unsent::Failed(failure(Side::Sink, "write", error))),
            }
        }
    }

    /// The largest message that a topic takes.
    fn limit(&mut self, topic: &str) -> Result<usize> {
        if let Some(limit) = self.limits.get(topic) {
            return Ok(*limit);
        }
        let admin = admin(&self.options)?;
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        let described = block_on(admin.describe_configs([&ResourceSpecifier::Topic(topic)], &options));
        let described = described.map_err(|e| failure(Side::Sink, "ask for the settings of a topic", e))?;
        // Who may not see settings finds out by sending.
        let of_topic = described.into_iter().flatten().next().and_then(|resource| {
            resource.get("max.message.bytes").and_then(|entry| entry.value.as_ref()?.parse::<usize>().ok())
        });
        let limit = of_topic.unwrap_or(self.limit).min(self.limit);
        self.limits.insert(topic.to_owned(), limit);
        Ok(limit)
    }
}

impl MessageProducer for KafkaProducer {
    fn partitions(&mut self, topic: &str) -> Result<u32> {
        self.limit(topic)?;
        let partitions = client::partitions(&self.questions, Side::Sink, topic)?;
        partitions
            .and_then(|p| u32::try_from(p.len()).ok())
            .ok_or_else(|| Error::new(Code::SinkFailed, format!("Kafka has no topic `{topic}`")))
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
        let limit = self.limit(topic).map_err(Unsent::Failed)?;
        if bytes > limit {
            return Err(Unsent::TooLarge { bytes, limit });
        }
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
        record = record.partition(i32::try_from(partition).unwrap_or(i32::MAX));
        if let Some(key) = key {
            record = record.key(key);
        }
        if let Some(value) = value {
            record = record.payload(value);
        }
        if let Some(millis) = timestamp_ms {
            record = record.timestamp(millis);
        }
        self.enqueue(record)
    }

    fn commit(&mut self, records: &[Record]) -> Result<()> {
        let progress = self.options.progress_topic.clone();
        for (key, value) in records {
            let mut record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(&progress).partition(0).key(key.as_bytes());
            if let Some(value) = value {
                record = record.payload(value.as_bytes());
            }
            self.enqueue(record).map_err(|unsent| match unsent {
                Unsent::Failed(error) => error,
                Unsent::TooLarge { bytes, .. } => {
                    Error::internal(format!("a record of progress has {bytes} bytes"))
                }
            })?;
        }
        if !self.options.exactly_once {
            self.client.flush(COMMIT).map_err(|e| failure(Side::Sink, "write", e))?;
        } else if self.open {
            self.client
                .commit_transaction(COMMIT)
                .map_err(|e| failure(Side::Sink, "commit a transaction", e))?;
            self.open = false;
        }
        self.check_reports()
    }
}
