//! Owns the options of the connector and what they mean.

use std::collections::BTreeMap;

use canalis_connector_api::{ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role};
use canalis_messages::{
    FORMAT_OPTIONS, Problem, Reading, SinkSettings, SourceSettings, TopicChoice, with_formats,
};

use crate::{client::Settings, protocol::frame::Account};

/// The group that pulls are made in when none is named; brokers want one.
const GROUP: &str = "canalis";

const fn option(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, role, doc)
}

const OWN: &[OptionSpec] = &[
    option("name-server", OptionType::Text, Role::Both, "Name servers, `host:port` joined by `;`").required().aliases(&["nameServerAddress", "namesrvAddr"]),
    option("access-key", OptionType::Text, Role::Both, "Name of the account").aliases(&["accessKey"]),
    option("secret-key", OptionType::Text, Role::Both, "Secret of the account").secret().aliases(&["secretKey"]),
    option("topic", OptionType::Text, Role::Source, "Topics, joined by `;`"),
    option("topic-pattern", OptionType::Text, Role::Source, "Regular expression that whole names of topics match; topics that appear later are read too"),
    option("tags", OptionType::Text, Role::Source, "Only messages with one of these tags, joined by `||`; all without it").aliases(&["tag"]),
    option("consumer-group", OptionType::Text, Role::Source, "Group whose offsets are read by `group-offsets` and set after checkpoints, for the tools that watch lag").aliases(&["consumerGroup"]),
    option("scan.startup.mode", OptionType::Enum(&["earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"]), Role::Source, "Where reading begins").default("earliest-offset"),
    option("scan.startup.specific-offsets", OptionType::Text, Role::Source, "For `specific-offsets`: `broker-a-0:42;broker-a-1:300`, broker and queue of every topic"),
    option("scan.startup.timestamp-millis", OptionType::Integer { min: 0, max: i64::MAX }, Role::Source, "For `timestamp`: milliseconds since the epoch"),
    option("scan.bounded.mode", OptionType::Enum(&["unbounded", "latest-offset"]), Role::Source, "Whether reading ends where the queues ended when the job began").default("unbounded"),
    option("scan.queue-discovery.interval", OptionType::Duration, Role::Source, "How often new queues and topics are looked for").default("30s"),
    option("scan.position-lost", OptionType::Enum(&["fail", "earliest", "latest"]), Role::Source, "What happens when messages are gone that the job has not read").default("fail"),
    option("topic", OptionType::Text, Role::Sink, "Topic, or pattern with `{namespace}`, `{schema}` and `{table}` for the parts of the table's id").default("{schema}_{table}"),
    option("sink.tableId-to-topic.mapping", OptionType::Text, Role::Sink, "Topics of single tables before the pattern: `tables:topic;tables:topic`"),
    option("sink.tag", OptionType::Text, Role::Sink, "Tag of all messages"),
    option("sink.producer-group", OptionType::Text, Role::Sink, "Group that messages are sent in").default(GROUP),
    option("partition.strategy", OptionType::Enum(&["hash-by-key", "by-table", "all-to-zero", "round-robin"]), Role::Sink, "Which queue takes a message; `round-robin` loses the order of a key").default("hash-by-key"),
    option("sink.topic.queues", OptionType::Integer { min: 1, max: 1000 }, Role::Sink, "Queues on every broker of topics that are made").default("4"),
];

static OPTIONS: [OptionSpec; OWN.len() + FORMAT_OPTIONS.len()] = with_formats(OWN);

pub(crate) static SPEC: ConnectorSpec = ConnectorSpec {
    name: "rocketmq",
    role: Role::Both,
    summary: "Apache RocketMQ: topics read queue by queue, written in keyed batches",
    options: &OPTIONS,
    prefixes: &[],
    guarantee: DeliveryGuarantee::AtLeastOnce,
};

/// Where reading begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Startup {
    Earliest,
    Latest,
    Group,
    Timestamp(i64),
    /// Offsets by broker and queue, the same for every topic.
    Specific(BTreeMap<String, u64>),
}

/// Options of a source.
#[derive(Debug, Clone)]
pub(crate) struct SourceOptions {
    pub client: Settings,
    pub topics: TopicChoice,
    /// None for all messages.
    pub tags: Vec<String>,
    pub startup: Startup,
    /// The group that pulls are made in.
    pub group: String,
    /// Whether the group was named, so that its offsets are kept.
    pub commits: bool,
    pub max_message_bytes: usize,
    pub settings: SourceSettings,
}

/// Options of a sink.
#[derive(Debug, Clone)]
pub(crate) struct SinkOptions {
    pub client: Settings,
    pub tag: Option<String>,
    pub group: String,
    pub queues: u32,
    pub settings: SinkSettings,
}

fn list(text: &str, between: &str) -> Vec<String> {
    text.split(between).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn client(reading: &mut Reading<'_>) -> Settings {
    let name_servers = list(&reading.text("name-server"), ";");
    if name_servers.is_empty() || name_servers.iter().any(|server| !server.contains(':')) {
        reading.wrong("name-server", "must be `host:port`, joined by `;`");
    }
    let text = |key: &str| reading.options.text(key).filter(|t| !t.is_empty()).map(str::to_owned);
    let account = match (text("access-key"), text("secret-key")) {
        (Some(access_key), Some(secret_key)) => Some(Account { access_key, secret_key }),
        (None, None) => None,
        (Some(_), None) => {
            reading.wrong("secret-key", "`access-key` needs it");
            None
        }
        (None, Some(_)) => {
            reading.wrong("access-key", "`secret-key` needs it");
            None
        }
    };
    Settings { name_servers, account }
}

/// `broker-a-0:42;broker-a-1:300`.
fn specific_offsets(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let mut offsets = BTreeMap::new();
    for part in list(text, ";") {
        let wrong = || format!("`{part}` is not `broker-queue:offset`, such as `broker-a-0:42`");
        let (queue, offset) = part.rsplit_once(':').ok_or_else(wrong)?;
        let offset = offset.trim().parse().map_err(|_| wrong())?;
        if offsets.insert(queue.trim().to_owned(), offset).is_some() {
            return Err(format!("queue {queue} is named twice"));
        }
    }
    if offsets.is_empty() { Err("names no queue".to_owned()) } else { Ok(offsets) }
}

fn startup(reading: &mut Reading<'_>) -> Startup {
    match reading.word("scan.startup.mode").as_str() {
        "latest-offset" => Startup::Latest,
        "group-offsets" => {
            if reading.options.text("consumer-group").is_none() {
                reading.wrong("consumer-group", "`group-offsets` needs it");
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

fn tags(reading: &mut Reading<'_>) -> Vec<String> {
    let tags = list(&reading.text("tags"), "||");
    if tags.iter().any(|tag| tag == "*" || tag.contains('|')) {
        reading.wrong("tags", "must be tags joined by `||`; leave it out to read all");
    }
    tags
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(options);
        let client = client(&mut reading);
        let topics = reading.topics();
        let tags = tags(&mut reading);
        let startup = startup(&mut reading);
        let group = options.text("consumer-group").filter(|group| !group.is_empty());
        let most = options.bytes("max-message-bytes").ok().and_then(|n| usize::try_from(n).ok());
        let read = topics.zip(reading.source("scan.queue-discovery.interval"));
        let read = read.map(|(topics, settings)| Self {
            client,
            topics,
            tags,
            startup,
            group: group.unwrap_or(GROUP).to_owned(),
            commits: group.is_some(),
            max_message_bytes: most.unwrap_or(64 << 20),
            settings,
        });
        reading.end(read)
    }
}

impl SinkOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(options);
        let client = client(&mut reading);
        let tag = options.text("sink.tag").filter(|tag| !tag.is_empty()).map(str::to_owned);
        if tag.as_ref().is_some_and(|tag| tag.contains(|c: char| c.is_control() || c == '|')) {
            reading.wrong("sink.tag", "must be one tag, without `|`");
        }
        let queues = options.integer("sink.topic.queues").ok().and_then(|n| u32::try_from(n).ok());
        let read = reading.sink().map(|settings| Self {
            client,
            tag,
            group: reading.text("sink.producer-group"),
            queues: queues.unwrap_or(4),
            settings,
        });
        reading.end(read)
    }
}
