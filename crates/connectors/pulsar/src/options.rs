//! Owns the options of the connector and what they mean.

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_messages::{
    FORMAT_OPTIONS, Problem, Reading, SinkSettings, SourceSettings, TopicChoice as Given, with_formats,
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

static OPTIONS: [OptionSpec; OWN.len() + FORMAT_OPTIONS.len()] = with_formats(OWN);

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

fn client(reading: &mut Reading<'_>) -> Settings {
    let text = |key: &str| reading.options.text(key).map(str::to_owned);
    let (token, certificates) = (text("auth.token"), text("tls.ca-certificates"));
    let url = reading.text("service-url");
    if !url.starts_with("pulsar://") && !url.starts_with("pulsar+ssl://") {
        reading.wrong("service-url", "begins with `pulsar://`, or with `pulsar+ssl://` for TLS");
    }
    if certificates.is_some() && !url.starts_with("pulsar+ssl://") {
        reading.wrong("tls.ca-certificates", "is for a `service-url` that begins with `pulsar+ssl://`");
    }
    Settings { url, token, certificates }
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(options);
        let client = client(&mut reading);
        let topics = topics(&mut reading);
        let subscription = options.text("subscription").map(|name| Subscription {
            name: name.to_owned(),
            failover: reading.word("subscription.type") == "failover",
        });
        let startup = startup(&mut reading, subscription.is_some());
        let read = topics.zip(reading.source("scan.topic-partition-discovery.interval"));
        let read = read.map(|(topics, settings)| Self { client, topics, startup, subscription, settings });
        reading.end(read)
    }
}

fn startup(reading: &mut Reading<'_>, subscribes: bool) -> Startup {
    match reading.word("scan.startup.mode").as_str() {
        "latest" => Startup::Latest,
        "subscription" => {
            if !subscribes {
                reading.wrong("subscription", "`scan.startup.mode: subscription` needs it");
            }
            Startup::Subscription
        }
        "timestamp" => {
            let millis = reading.options.integer("scan.startup.timestamp-millis").ok();
            let millis = millis.and_then(|n| u64::try_from(n).ok());
            if millis.is_none() {
                reading.wrong("scan.startup.timestamp-millis", "`scan.startup.mode: timestamp` needs it");
            }
            Startup::Timestamp(millis.unwrap_or(0))
        }
        _ => Startup::Earliest,
    }
}

fn topics(reading: &mut Reading<'_>) -> Option<TopicChoice> {
    match reading.topics()? {
        Given::Names(names) => {
            let names = names.iter().map(|name| names::whole(name)).collect::<Result<Vec<_>, _>>();
            reading.take("topic", names).map(TopicChoice::Names)
        }
        Given::Pattern(pattern) => {
            let namespace = reading.options.text("namespace").unwrap_or("public/default").to_owned();
            if namespace.split('/').filter(|part| !part.is_empty()).count() != 2 {
                reading.wrong("namespace", format!("`{namespace}` is not `tenant/namespace`"));
            }
            Some(TopicChoice::Pattern { namespace, pattern })
        }
    }
}

impl SinkOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(options);
        let client = client(&mut reading);
        let max_message = options.bytes("sink.max-message-bytes").ok();
        let max_message = max_message.and_then(|n| usize::try_from(n).ok()).unwrap_or(5 << 20);
        if !(1024..=512 << 20).contains(&max_message) {
            reading.wrong("sink.max-message-bytes", "must be between 1kb and 512mb");
        }
        let compression = match reading.word("sink.compression").as_str() {
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            "zlib" => Compression::Zlib,
            "snappy" => Compression::Snappy,
            _ => Compression::None,
        };
        let read = reading.sink().map(|settings| Self { client, compression, max_message, settings });
        reading.end(read)
    }
}
