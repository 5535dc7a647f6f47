//! Owns the options of the connector and what they mean.

use std::collections::BTreeMap;

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_messages::{
    FORMAT_OPTIONS, Problem, Reading, SinkSettings, SourceSettings, TopicChoice, with_formats,
};

use crate::client::Settings;

const fn option(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, role, doc)
}

const OWN: &[OptionSpec] = &[
    option("properties.bootstrap.servers", OptionType::Text, Role::Both, "Brokers to begin with, `host:port` joined by commas").required().aliases(&["bootstrap.servers"]),
    option("properties.sasl.password", OptionType::Text, Role::Both, "Password for SASL").secret(),
    option("properties.ssl.key.password", OptionType::Text, Role::Both, "Password of the client's private key").secret(),
    option("topic", OptionType::Text, Role::Source, "Topics, joined by `;`"),
    option("topic-pattern", OptionType::Text, Role::Source, "Regular expression that whole names of topics match; topics that appear later are read too"),
    option("scan.startup.mode", OptionType::Enum(&["earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"]), Role::Source, "Where reading begins").default("earliest-offset"),
    option("scan.startup.specific-offsets", OptionType::Text, Role::Source, "For `specific-offsets`: `partition:0,offset:42;partition:1,offset:300`"),
    option("scan.startup.timestamp-millis", OptionType::Integer { min: 0, max: i64::MAX }, Role::Source, "For `timestamp`: milliseconds since the epoch"),
    option("scan.bounded.mode", OptionType::Enum(&["unbounded", "latest-offset"]), Role::Source, "Whether reading ends where the partitions ended when the job began").default("unbounded"),
    option("scan.topic-partition-discovery.interval", OptionType::Duration, Role::Source, "How often new partitions and topics are looked for").default("30s"),
    option("scan.position-lost", OptionType::Enum(&["fail", "earliest", "latest"]), Role::Source, "What happens when messages are gone that the job has not read").default("fail"),
    option("topic", OptionType::Text, Role::Sink, "Topic, or pattern with `{id}`, `{namespace}`, `{schema}` and `{table}` for the parts of the table's id").default("{id}"),
    option("sink.tableId-to-topic.mapping", OptionType::Text, Role::Sink, "Topics of single tables before the pattern: `tables:topic;tables:topic`"),
    option("partition.strategy", OptionType::Enum(&["hash-by-key", "by-table", "all-to-zero", "round-robin"]), Role::Sink, "Which partition takes a message; `round-robin` loses the order of a key").default("hash-by-key"),
    option("sink.delivery-guarantee", OptionType::Enum(&["exactly-once", "at-least-once"]), Role::Sink, "`exactly-once` writes in transactions, which readers with `isolation.level=read_committed` see whole").default("exactly-once"),
    option("sink.transactional-id-prefix", OptionType::Text, Role::Sink, "What the transactional ids begin with; the name of the pipeline and the writer follow").default("canalis"),
    option("sink.progress.topic", OptionType::Text, Role::Sink, "Compacted topic for the committed positions of `exactly-once`").default("canalis-progress"),
    option("sink.topic.partitions", OptionType::Integer { min: 1, max: 100_000 }, Role::Sink, "Partitions of topics that are made; the cluster's default without it"),
    option("sink.topic.replication-factor", OptionType::Integer { min: 1, max: 100 }, Role::Sink, "Replicas of topics that are made; the cluster's default without it"),
];

static OPTIONS: [OptionSpec; OWN.len() + FORMAT_OPTIONS.len()] = with_formats(OWN);

pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "kafka",
    role: Role::Both,
    summary: "Apache Kafka: topics read partition by partition, written in transactions",
    options: &OPTIONS,
    prefixes: &[("properties.", None)],
    guarantee: DeliveryGuarantee::ExactlyOnce,
};

/// Settings that would take decisions out of our hands, and what to write instead.
const OURS: &[(&str, &str)] = &[
    ("auto.offset.reset", "write `scan.startup.mode`, and `scan.position-lost` for messages that are gone"),
    ("enable.auto.commit", "offsets are committed after checkpoints"),
    ("enable.auto.offset.store", "offsets are committed after checkpoints"),
    ("enable.partition.eof", "it is set by the connector"),
    ("transactional.id", "write `sink.transactional-id-prefix`"),
    (
        "sasl.jaas.config",
        "it is of Java's clients; write `properties.sasl.username` and `properties.sasl.password`",
    ),
    (
        "ssl.truststore.location",
        "it is of Java's clients; write `properties.ssl.ca.location` with a PEM file",
    ),
    (
        "ssl.keystore.location",
        "PEM files are read: `properties.ssl.certificate.location` and `properties.ssl.key.location`",
    ),
    ("key.serializer", "it is of Java's clients"),
    ("value.serializer", "it is of Java's clients"),
    ("key.deserializer", "it is of Java's clients"),
    ("value.deserializer", "it is of Java's clients"),
];

fn settings(reading: &mut Reading<'_>) -> Settings {
    let mut settings = Vec::new();
    for (key, value) in reading.options.with_prefix("properties.") {
        match OURS.iter().find(|(ours, _)| *ours == key) {
            Some((_, why)) => reading.wrong(&format!("properties.{key}"), format!("cannot be set: {why}")),
            None => settings.push((key.to_owned(), value.to_owned())),
        }
    }
    Settings(settings)
}

/// Where reading begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Startup {
    Earliest,
    Latest,
    Group,
    Timestamp(i64),
    /// Offsets by partition, the same for every topic.
    Specific(BTreeMap<i32, u64>),
}

/// Options of a source.
#[derive(Debug, Clone)]
pub(crate) struct SourceOptions {
    pub client: Settings,
    pub topics: TopicChoice,
    pub startup: Startup,
    /// The group whose offsets are read and committed, if one was named.
    pub group: Option<String>,
    pub settings: SourceSettings,
}

/// Options of a sink.
#[derive(Debug, Clone)]
pub(crate) struct SinkOptions {
    pub client: Settings,
    pub exactly_once: bool,
    pub transactional_id: String,
    pub progress_topic: String,
    pub partitions: Option<i32>,
    pub replication: Option<i32>,
    pub settings: SinkSettings,
}

/// `partition:0,offset:42;partition:1,offset:300`.
fn specific_offsets(text: &str) -> Result<BTreeMap<i32, u64>, String> {
    let mut offsets = BTreeMap::new();
    for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
        let wrong = || format!("`{part}` is not `partition:N,offset:N`");
        let (partition, offset) = part.split_once(',').ok_or_else(wrong)?;
        let number = |text: &str, name: &str| {
            let value = text.trim().strip_prefix(name).and_then(|t| t.trim().strip_prefix(':'));
            value.map(|v| v.trim().to_owned()).ok_or_else(wrong)
        };
        let partition = number(partition, "partition")?.parse().map_err(|_| wrong())?;
        let offset = number(offset, "offset")?.parse().map_err(|_| wrong())?;
        if offsets.insert(partition, offset).is_some() {
            return Err(format!("partition {partition} is named twice"));
        }
    }
    if offsets.is_empty() { Err("names no partition".to_owned()) } else { Ok(offsets) }
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(options);
        let client = settings(&mut reading);
        let topics = reading.topics();
        let group = options.text("properties.group.id").map(str::to_owned);
        let startup = startup(&mut reading, group.is_some());
        let settings = reading.source("scan.topic-partition-discovery.interval");
        let read = topics.zip(settings);
        let read = read.map(|(topics, settings)| Self { client, topics, startup, group, settings });
        reading.end(read)
    }
}

fn startup(reading: &mut Reading<'_>, has_group: bool) -> Startup {
    match reading.word("scan.startup.mode").as_str() {
        "latest-offset" => Startup::Latest,
        "group-offsets" => {
            if !has_group {
                reading.wrong("properties.group.id", "`group-offsets` needs the group's id");
            }
            Startup::Group
        }
        "timestamp" => match reading.options.integer("scan.startup.timestamp-millis") {
            Ok(millis) => Startup::Timestamp(millis),
            Err(_) => {
                reading.wrong("scan.startup.timestamp-millis", "`scan.startup.mode: timestamp` needs it");
                Startup::Earliest
            }
        },
        "specific-offsets" => {
            let key = "scan.startup.specific-offsets";
            let offsets = specific_offsets(&reading.text(key));
            reading.take(key, offsets).map_or(Startup::Earliest, Startup::Specific)
        }
        _ => Startup::Earliest,
    }
}

impl SinkOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(options);
        let client = settings(&mut reading);
        let number = |key: &str| options.integer(key).ok().and_then(|n| i32::try_from(n).ok());
        let read = reading.sink().map(|settings| Self {
            client,
            exactly_once: reading.word("sink.delivery-guarantee") == "exactly-once",
            transactional_id: reading.text("sink.transactional-id-prefix"),
            progress_topic: reading.text("sink.progress.topic"),
            partitions: number("sink.topic.partitions"),
            replication: number("sink.topic.replication-factor"),
            settings,
        });
        reading.end(read)
    }
}
