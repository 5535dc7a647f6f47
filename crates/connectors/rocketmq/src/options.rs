//! Owns the options of the connector and what they mean.

use std::{collections::BTreeMap, time::Duration};

use canalis_connector_api::{
    ConnectorSpec, DeliveryGuarantee, OptionSpec, OptionType, Options, Role, TableSelector,
};
use canalis_messages::{
    FORMAT_OPTIONS, Formats, OnLost, Partitioner, Problem, SinkSettings, SourceSettings, TopicRule, Topics,
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

fn word(options: &Options, key: &str) -> String {
    options.text(key).unwrap_or_default().to_ascii_lowercase()
}

fn note<T>(problems: &mut Vec<Problem>, key: &str, value: Result<T, String>) -> Option<T> {
    value.map_err(|why| problems.push((key.to_owned(), why))).ok()
}

fn list(text: &str, between: &str) -> Vec<String> {
    text.split(between).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn client(options: &Options, problems: &mut Vec<Problem>) -> Settings {
    let name_servers = list(options.text("name-server").unwrap_or_default(), ";");
    if name_servers.is_empty() || name_servers.iter().any(|server| !server.contains(':')) {
        problems.push(("name-server".into(), "must be `host:port`, joined by `;`".into()));
    }
    let text = |key: &str| options.text(key).filter(|t| !t.is_empty()).map(str::to_owned);
    let account = match (text("access-key"), text("secret-key")) {
        (Some(access_key), Some(secret_key)) => Some(Account { access_key, secret_key }),
        (None, None) => None,
        (Some(_), None) => {
            problems.push(("secret-key".into(), "`access-key` needs it".into()));
            None
        }
        (None, Some(_)) => {
            problems.push(("access-key".into(), "`secret-key` needs it".into()));
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

fn startup(options: &Options, problems: &mut Vec<Problem>) -> Startup {
    match word(options, "scan.startup.mode").as_str() {
        "latest-offset" => Startup::Latest,
        "group-offsets" => {
            if options.text("consumer-group").is_none() {
                problems.push(("consumer-group".into(), "`group-offsets` needs it".into()));
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
            note(problems, key, specific_offsets(text)).map_or(Startup::Earliest, Startup::Specific)
        }
        _ => Startup::Earliest,
    }
}

fn topics(options: &Options, problems: &mut Vec<Problem>) -> Option<TopicChoice> {
    let wrong = match (options.text("topic"), options.text("topic-pattern")) {
        (Some(names), None) => {
            let names = list(names, ";");
            if !names.is_empty() {
                return Some(TopicChoice::Names(names));
            }
            ("topic", "names no topic")
        }
        (None, Some(pattern)) => {
            let regex = regex::Regex::new(&format!("^(?:{pattern})$")).map_err(|error| error.to_string());
            return note(problems, "topic-pattern", regex).map(TopicChoice::Pattern);
        }
        (Some(_), Some(_)) => ("topic-pattern", "only one of `topic` and `topic-pattern` can be given"),
        (None, None) => ("topic", "one of `topic` and `topic-pattern` must be given"),
    };
    problems.push((wrong.0.into(), wrong.1.into()));
    None
}

fn tags(options: &Options, problems: &mut Vec<Problem>) -> Vec<String> {
    let tags = list(options.text("tags").unwrap_or_default(), "||");
    if tags.iter().any(|tag| tag == "*" || tag.contains('|')) {
        problems.push(("tags".into(), "must be tags joined by `||`; leave it out to read all".into()));
    }
    tags
}

impl SourceOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let client = client(options, &mut problems);
        let topics = topics(options, &mut problems);
        let tags = tags(options, &mut problems);
        let startup = startup(options, &mut problems);
        let formats = Formats::read(options, Role::Source).map_err(|more| problems.extend(more)).ok();
        let discovery = options.duration("scan.queue-discovery.interval");
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
        let group = options.text("consumer-group").filter(|group| !group.is_empty());
        let most = options.bytes("max-message-bytes").ok().and_then(|n| usize::try_from(n).ok());
        Ok(Self {
            client,
            topics,
            tags,
            startup,
            group: group.unwrap_or(GROUP).to_owned(),
            commits: group.is_some(),
            max_message_bytes: most.unwrap_or(64 << 20),
            settings,
        })
    }
}

impl SinkOptions {
    /// Reads validated options.
    pub(crate) fn read(options: &Options) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let client = client(options, &mut problems);
        let rules = options.text("sink.tableId-to-topic.mapping").unwrap_or_default();
        let rules = note(&mut problems, "sink.tableId-to-topic.mapping", topic_rules(rules));
        let tag = options.text("sink.tag").filter(|tag| !tag.is_empty()).map(str::to_owned);
        if tag.as_ref().is_some_and(|tag| tag.contains(|c: char| c.is_control() || c == '|')) {
            problems.push(("sink.tag".into(), "must be one tag, without `|`".into()));
        }
        let formats = Formats::read(options, Role::Sink).map_err(|more| problems.extend(more)).ok();
        let (Some(formats), Some(rules), true) = (formats, rules, problems.is_empty()) else {
            return Err(problems);
        };
        let text = |key: &str| options.text(key).unwrap_or_default().to_owned();
        let queues = options.integer("sink.topic.queues").ok().and_then(|n| u32::try_from(n).ok());
        Ok(Self {
            client,
            tag,
            group: text("sink.producer-group"),
            queues: queues.unwrap_or(4),
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
    for part in list(text, ";") {
        let (tables, topic) =
            part.rsplit_once(':').ok_or_else(|| format!("`{part}` is not `tables:topic`"))?;
        let tables = TableSelector::parse(tables.trim()).map_err(|error| error.to_string())?;
        rules.push(TopicRule { tables, topic: topic.trim().to_owned() });
    }
    Ok(rules)
}
