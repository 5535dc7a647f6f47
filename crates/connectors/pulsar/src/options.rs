//! Owns the options of the connector and what they mean.

use std::time::Duration;

use canalis_connector_api::{
    ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role, TableSelector,
};
use canalis_messages::{
    FORMAT_OPTIONS, Formats, OnLost, Partitioner, Problem, SinkSettings, SourceSettings, TopicRule, Topics,
};

use crate::{client::Settings, names};

const fn option(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, role, doc)
}

const OWN: &[OptionSpec] = &[
    option("service-url", OptionType::Text, Role::Both, "Brokers or proxy, `pulsar://host:6650`, with TLS `pulsar+ssl://host:6651`").required(),
    option("auth.token", OptionType::Text, Role::Both, "Token that says who we are").secret(),
    option("tls.ca-certificates", OptionType::Text, Role::Both, "File of PEM certificates that vouch for the brokers, beside the public ones"),
    option("topic", OptionType::Text, Role::Source, "Topics, joined by `;`: `topic`, `tenant/namespace/topic` or `persistent://…`"),
    option("topic-pattern", OptionType::Text, Role::Source, "Regular expression that whole names of topics in `namespace` match (without the namespace); topics that appear later are read too"),
    option("namespace", OptionType::Text, Role::Source, "Where topics of `topic-pattern` are looked for").default("public/default"),
    option("subscription", OptionType::Text, Role::Source, "Subscription that is told after checkpoints how far the job is; with it the broker keeps what was not read"),
    option("subscription.type", OptionType::Enum(&["exclusive", "failover"]), Role::Source, "Whether others may wait on the subscription").default("exclusive"),
    option("scan.startup.mode", OptionType::Enum(&["earliest", "latest", "subscription", "timestamp"]), Role::Source, "Where reading begins").default("earliest"),
    option("scan.startup.timestamp-millis", OptionType::Integer { min: 0, max: i64::MAX }, Role::Source, "For `timestamp`: milliseconds since the epoch, by the time of publishing"),
    option("scan.bounded.mode", OptionType::Enum(&["unbounded", "latest"]), Role::Source, "Whether reading ends where the topics ended when the job began").default("unbounded"),
    option("scan.topic-partition-discovery.interval", OptionType::Duration, Role::Source, "How often new partitions and topics are looked for").default("30s"),
    option("scan.position-lost", OptionType::Enum(&["fail", "earliest", "latest"]), Role::Source, "What happens when messages are gone that the job has not read").default("fail"),
    option("topic", OptionType::Text, Role::Sink, "Topic, or pattern with `{id}`, `{namespace}`, `{schema}` and `{table}` for the parts of the table's id").default("{id}"),
    option("sink.tableId-to-topic.mapping", OptionType::Text, Role::Sink, "Topics of single tables before the pattern: `tables:topic;tables:topic`"),
    option("partition.strategy", OptionType::Enum(&["hash-by-key", "by-table", "all-to-zero", "round-robin"]), Role::Sink, "Which partition takes a message; `round-robin` loses the order of a key").default("hash-by-key"),
    option("sink.compression", OptionType::Enum(&["none", "lz4", "zstd", "zlib", "snappy"]), Role::Sink, "How batches of messages are compressed").default("lz4"),
    option("sink.max-message-bytes", OptionType::Bytes, Role::Sink, "Size of the largest message; not above `maxMessageSize` of the brokers").default("5242880"),
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
    name: "pulsar",
    role: Role::Both,
    summary: "Apache Pulsar: topics read partition by partition, written at least once",
    options: &OPTIONS,
    prefixes: &[],
    guarantee: DeliveryGuarantee::AtLeastOnce,
};

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Startup {
    Earliest,
    Latest,
    Subscription,
    /// Milliseconds since the epoch.
    Timestamp(u64),
}

/// Which topics are read.
#[derive(Debug, Clone)]
pub(crate) enum TopicChoice {
    /// Whole names.
    Names(Vec<String>),
    /// Names in a namespace.
    Pattern { namespace: String, pattern: regex::Regex },
}

/// A durable subscription.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub name: String,
    pub failover: bool,
}

impl Subscription {
    pub(crate) fn kind(&self) -> pulsar::SubType {
        if self.failover { pulsar::SubType::Failover } else { pulsar::SubType::Exclusive }
    }
}

/// How batches are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Lz4,
    Zstd,
    Zlib,
    Snappy,
}

/// Options of a source.
#[derive(Clone)]
pub(crate) struct SourceOptions {
    pub client: Settings,
    pub topics: TopicChoice,
    pub startup: Startup,
    pub subscription: Option<Subscription>,
    pub settings: SourceSettings,
}

/// Options of a sink.
#[derive(Clone)]
pub(crate) struct SinkOptions {
    pub client: Settings,
    pub compression: Compression,
    /// Bytes.
    pub max_message: usize,
    pub settings: SinkSettings,
}

fn word(options: &Options, key: &str) -> String {
    options.text(key).unwrap_or_default().to_ascii_lowercase()
}

fn note<T>(problems: &mut Vec<Problem>, key: &str, value: Result<T, String>) -> Option<T> {
    value.map_err(|why| problems.push((key.to_owned(), why))).ok()
}

fn client(options: &Options, problems: &mut Vec<Problem>) -> Settings {
    let text = |key: &str| options.text(key).map(str::to_owned);
    let url = text("service-url").unwrap_or_default();
    if !url.starts_with("pulsar://") && !url.starts_with("pulsar+ssl://") {
        let why = "begins with `pulsar://`, or with `pulsar+ssl://` for TLS";
        problems.push(("service-url".into(), why.into()));
    }
    if text("tls.ca-certificates").is_some() && !url.starts_with("pulsar+ssl://") {
        let why = "is for a `service-url` that begins with `pulsar+ssl://`";
        problems.push(("tls.ca-certificates".into(), why.into()));
    }
    Settings { url, token: text("auth.token"), certificates: text("tls.ca-certificates") }
}

fn formats(options: &Options, role: Role, problems: &mut Vec<Problem>) -> Option<Formats> {
    Formats::read(options, role).map_err(|more| problems.extend(more)).ok()
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let client = client(options, &mut problems);
        let topics = topics(options, &mut problems);
        let subscription = options.text("subscription").map(|name| Subscription {
            name: name.to_owned(),
            failover: word(options, "subscription.type") == "failover",
        });
        let startup = match word(options, "scan.startup.mode").as_str() {
            "latest" => Startup::Latest,
            "subscription" => {
                if subscription.is_none() {
                    let why = "`scan.startup.mode: subscription` needs it";
                    problems.push(("subscription".into(), why.into()));
                }
                Startup::Subscription
            }
            "timestamp" => {
                let millis = options.integer("scan.startup.timestamp-millis").ok();
                let millis = millis.and_then(|n| u64::try_from(n).ok());
                if millis.is_none() {
                    let why = "`scan.startup.mode: timestamp` needs it";
                    problems.push(("scan.startup.timestamp-millis".into(), why.into()));
                }
                Startup::Timestamp(millis.unwrap_or(0))
            }
            _ => Startup::Earliest,
        };
        let formats = formats(options, Role::Source, &mut problems);
        let discovery = options.duration("scan.topic-partition-discovery.interval");
        let (Some(formats), Some(topics), true) = (formats, topics, problems.is_empty()) else {
            return Err(problems);
        };
        let settings = SourceSettings {
            formats,
            bounded: word(options, "scan.bounded.mode") == "latest",
            discovery: discovery.unwrap_or(Duration::from_secs(30)),
            on_lost: match word(options, "scan.position-lost").as_str() {
                "earliest" => OnLost::Earliest,
                "latest" => OnLost::Latest,
                _ => OnLost::Fail,
            },
        };
        Ok(Self { client, topics, startup, subscription, settings })
    }
}

fn topics(options: &Options, problems: &mut Vec<Problem>) -> Option<TopicChoice> {
    match (options.text("topic"), options.text("topic-pattern")) {
        (Some(list), None) => {
            let list = list.split(';').map(str::trim).filter(|name| !name.is_empty());
            let found = list.map(names::whole).collect::<Result<Vec<_>, _>>();
            let found =
                found.and_then(|f| if f.is_empty() { Err("names no topic".to_owned()) } else { Ok(f) });
            note(problems, "topic", found).map(TopicChoice::Names)
        }
        (None, Some(pattern)) => {
            let namespace = options.text("namespace").unwrap_or("public/default").to_owned();
            if namespace.split('/').filter(|part| !part.is_empty()).count() != 2 {
                problems.push(("namespace".into(), format!("`{namespace}` is not `tenant/namespace`")));
            }
            let regex = regex::Regex::new(&format!("^(?:{pattern})$")).map_err(|error| error.to_string());
            note(problems, "topic-pattern", regex).map(|pattern| TopicChoice::Pattern { namespace, pattern })
        }
        (Some(_), Some(_)) => {
            let why = "only one of `topic` and `topic-pattern` can be given";
            problems.push(("topic-pattern".into(), why.into()));
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
        let client = client(options, &mut problems);
        let rules = topic_rules(options.text("sink.tableId-to-topic.mapping").unwrap_or_default());
        let rules = note(&mut problems, "sink.tableId-to-topic.mapping", rules);
        let formats = formats(options, Role::Sink, &mut problems);
        let max_message = options.bytes("sink.max-message-bytes").ok();
        let max_message = max_message.and_then(|n| usize::try_from(n).ok()).unwrap_or(5 << 20);
        if !(1024..=512 << 20).contains(&max_message) {
            problems.push(("sink.max-message-bytes".into(), "must be between 1kb and 512mb".into()));
        }
        let (Some(formats), Some(rules), true) = (formats, rules, problems.is_empty()) else {
            return Err(problems);
        };
        let pattern = options.text("topic").unwrap_or_default().to_owned();
        Ok(Self {
            client,
            compression: match word(options, "sink.compression").as_str() {
                "lz4" => Compression::Lz4,
                "zstd" => Compression::Zstd,
                "zlib" => Compression::Zlib,
                "snappy" => Compression::Snappy,
                _ => Compression::None,
            },
            max_message,
            settings: SinkSettings {
                formats,
                topics: Topics { rules, pattern },
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
            part.split_once(':').ok_or_else(|| format!("`{part}` is not `tables:topic`"))?;
        let tables = TableSelector::parse(tables.trim()).map_err(|error| error.to_string())?;
        rules.push(TopicRule { tables, topic: topic.trim().to_owned() });
    }
    Ok(rules)
}
