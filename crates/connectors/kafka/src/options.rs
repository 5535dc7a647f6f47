//! Owns the options of the connector and what they mean.

use std::{collections::BTreeMap, time::Duration};

use canalis_connector_api::{
    ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role, TableSelector,
};
use canalis_messages::{
    FORMAT_OPTIONS, Formats, OnLost, Partitioner, Problem, SinkSettings, SourceSettings, TopicRule, Topics,
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

const fn joined<const N: usize>(first: &[OptionSpec], second: &[OptionSpec]) -> [OptionSpec; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

static OPTIONS: [OptionSpec; OWN.len() + FORMAT_OPTIONS.len()] = joined(OWN, FORMAT_OPTIONS);

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

fn settings(options: &Options, problems: &mut Vec<Problem>) -> Settings {
    let mut settings = Vec::new();
    for (key, value) in options.with_prefix("properties.") {
        match OURS.iter().find(|(ours, _)| *ours == key) {
            Some((_, why)) => problems.push((format!("properties.{key}"), format!("cannot be set: {why}"))),
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

/// Which topics are read.
#[derive(Debug, Clone)]
pub(crate) enum TopicChoice {
    Names(Vec<String>),
    Pattern(regex::Regex),
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

fn word(options: &Options, key: &str) -> String {
    options.text(key).unwrap_or_default().to_ascii_lowercase()
}

fn note<T>(problems: &mut Vec<Problem>, key: &str, value: Result<T, String>) -> Option<T> {
    value.map_err(|why| problems.push((key.to_owned(), why))).ok()
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
        let mut problems = Vec::new();
        let client = settings(options, &mut problems);
        let topics = topics(options, &mut problems);
        let group = options.text("properties.group.id").map(str::to_owned);
        let startup = match word(options, "scan.startup.mode").as_str() {
            "latest-offset" => Startup::Latest,
            "group-offsets" => {
                if group.is_none() {
                    problems
                        .push(("properties.group.id".into(), "`group-offsets` needs the group's id".into()));
                }
                Startup::Group
            }
            "timestamp" => match options.integer("scan.startup.timestamp-millis") {
                Ok(millis) => Startup::Timestamp(millis),
                Err(_) => {
                    let why = "`scan.startup.mode: timestamp` needs it";
                    problems.push(("scan.startup.timestamp-millis".into(), why.into()));
                    Startup::Earliest
                }
            },
            "specific-offsets" => {
                let key = "scan.startup.specific-offsets";
                let text = options.text(key).unwrap_or_default();
                note(&mut problems, key, specific_offsets(text)).map_or(Startup::Earliest, Startup::Specific)
            }
            _ => Startup::Earliest,
        };
        let formats = match Formats::read(options, Role::Source) {
            Ok(formats) => Some(formats),
            Err(more) => {
                problems.extend(more);
                None
            }
        };
        let discovery = options.duration("scan.topic-partition-discovery.interval");
        let (Some(formats), Some(topics), true) = (formats, topics, problems.is_empty()) else {
            return Err(problems);
        };
        let settings = SourceSettings {
            formats,
            bounded: word(options, "scan.bounded.mode") == "latest-offset",
            discovery: discovery.unwrap_or(Duration::from_secs(30)),
            on_lost: match word(options, "scan.position-lost").as_str() {
                "earliest" => OnLost::Earliest,
                "latest" => OnLost::Latest,
                _ => OnLost::Fail,
            },
        };
        Ok(Self { client, topics, startup, group, settings })
    }
}

fn topics(options: &Options, problems: &mut Vec<Problem>) -> Option<TopicChoice> {
    match (options.text("topic"), options.text("topic-pattern")) {
        (Some(names), None) => {
            let names: Vec<String> =
                names.split(';').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
            if names.is_empty() {
                problems.push(("topic".into(), "names no topic".into()));
            }
            Some(TopicChoice::Names(names))
        }
        (None, Some(pattern)) => {
            let regex = regex::Regex::new(&format!("^(?:{pattern})$")).map_err(|error| error.to_string());
            note(problems, "topic-pattern", regex).map(TopicChoice::Pattern)
        }
        (Some(_), Some(_)) => {
            problems.push((
                "topic-pattern".into(),
                "only one of `topic` and `topic-pattern` can be given".into(),
            ));
            None
        }
        (None, None) => {
            problems.push(("topic".into(), "one of `topic` and `topic-pattern` must be given".into()));
            None
        }
    }
}

impl SinkOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let client = settings(options, &mut problems);
        let rules = options.text("sink.tableId-to-topic.mapping").unwrap_or_default();
        let rules = note(&mut problems, "sink.tableId-to-topic.mapping", topic_rules(rules));
        let formats = match Formats::read(options, Role::Sink) {
            Ok(formats) => Some(formats),
            Err(more) => {
                problems.extend(more);
                None
            }
        };
        let (Some(formats), Some(rules), true) = (formats, rules, problems.is_empty()) else {
            return Err(problems);
        };
        let text = |key: &str| options.text(key).unwrap_or_default().to_owned();
        let number = |key: &str| options.integer(key).ok().and_then(|n| i32::try_from(n).ok());
        Ok(Self {
            client,
            exactly_once: word(options, "sink.delivery-guarantee") == "exactly-once",
            transactional_id: text("sink.transactional-id-prefix"),
            progress_topic: text("sink.progress.topic"),
            partitions: number("sink.topic.partitions"),
            replication: number("sink.topic.replication-factor"),
            settings: SinkSettings {
                formats,
                topics: Topics { rules, pattern: text("topic") },
                partitioner: match word(options, "partition.strategy").as_str() {
                    "by-table" => Partitioner::ByTable,
                    "all-to-zero" => Partitioner::AllToZero,
                    "round-robin" => Partitioner::RoundRobin,
                    _ => Partitioner::ByKey,
                },
            },
        })
    }
}

fn topic_rules(text: &str) -> Result<Vec<TopicRule>, String> {
    let mut rules = Vec::new();
    for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
        let (tables, topic) =
            part.rsplit_once(':').ok_or_else(|| format!("`{part}` is not `tables:topic`"))?;
        let tables = TableSelector::parse(tables.trim()).map_err(|error| error.to_string())?;
        rules.push(TopicRule { tables, topic: topic.trim().to_owned() });
    }
    Ok(rules)
}
