//! Owns the source: which partitions there are, where they begin and end, and reading them.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use canalis_connector_api::Finding;
use canalis_formats::message::Message as Lent;
use canalis_messages::{
    Broker, Consumer as LaneConsumer, Delivery, LaneStart, Lanes, LostRange, MetadataColumn, OnLost, Place,
    RecentLane, TopicChoice, headers_text,
};
use canalis_types::{Code, Error, Result};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::KafkaError,
    message::Headers as _,
};

use crate::{
    client::{self, PATIENCE, TopicPartitions},
    failure::{Side, failure, is_passing},
    options::{SourceOptions, Startup},
};

/// How long brokers may be away before the job is told.
const MAX_DOWN: Duration = Duration::from_secs(30);
/// How long looking into one partition may take.
const PROBE: Duration = Duration::from_secs(10);

/// A Kafka cluster as a source.
pub(crate) struct KafkaSource {
    options: SourceOptions,
    /// Commits offsets for the group.
    committer: Mutex<Option<BaseConsumer>>,
}

impl KafkaSource {
    pub(crate) fn new(options: SourceOptions) -> Self {
        Self { options, committer: Mutex::new(None) }
    }

    fn client(&self) -> Result<BaseConsumer> {
        self.options.client.consumer(Side::Source, &[])
    }
}

fn lane_name(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// Topic and partition of a lane.
fn parse_lane(lane: &str) -> Result<(&str, i32)> {
    let parts = lane.rsplit_once('-').and_then(|(topic, partition)| Some((topic, partition.parse().ok()?)));
    parts
        .ok_or_else(|| Error::new(Code::StateIncompatible, format!("`{lane}` is not a partition of a topic")))
}

fn offset_of(place: Place) -> Offset {
    // Offsets have 63 bits.
    Offset::Offset(i64::try_from(place.0[0]).unwrap_or(i64::MAX))
}

/// The topics that are read and exist. A topic that is named and missing is an error.
fn topic_partitions(client: &BaseConsumer, topics: &TopicChoice) -> Result<TopicPartitions> {
    match topics {
        TopicChoice::Names(names) => {
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                let partitions = client::partitions(client, Side::Source, name)?
                    .ok_or_else(|| Error::new(Code::TableNotFound, format!("Kafka has no topic `{name}`")))?;
                found.push((name.clone(), partitions));
            }
            Ok(found)
        }
        TopicChoice::Pattern(pattern) => {
            let mut found = client::topics(client, Side::Source)?;
            found.retain(|(name, _)| pattern.is_match(name));
            Ok(found)
        }
    }
}

fn starts(client: &BaseConsumer, options: &SourceOptions) -> Result<Vec<LaneStart>> {
    let topics = topic_partitions(client, &options.topics)?;
    let mut list = TopicPartitionList::new();
    for (topic, partitions) in &topics {
        for partition in partitions {
            list.add_partition(topic, *partition);
        }
    }
    let asked = match &options.startup {
        Startup::Timestamp(millis) => {
            list.set_all_offsets(Offset::Offset(*millis))
                .map_err(|e| failure(Side::Source, "ask by time", e))?;
            let found = client.offsets_for_times(list, PATIENCE);
            Some(found.map_err(|e| failure(Side::Source, "ask for offsets by time", e))?)
        }
        Startup::Group => {
            let found = client.committed_offsets(list, PATIENCE);
            Some(found.map_err(|e| failure(Side::Source, "ask for the offsets of the group", e))?)
        }
        _ => None,
    };
    let mut lanes = Vec::new();
    for (topic, partitions) in &topics {
        for partition in partitions {
            let (low, high) = client::range(client, Side::Source, topic, *partition)?;
            let found =
                asked.as_ref().and_then(|list| list.find_partition(topic, *partition)).map(|e| e.offset());
            let offset = match (&options.startup, found) {
                (Startup::Latest, _) => high,
                (Startup::Timestamp(_) | Startup::Group, Some(Offset::Offset(at))) => u64::try_from(at).unwrap_or(low),
                // Nothing is as new as that.
                (Startup::Timestamp(_), _) => high,
                (Startup::Specific(offsets), _) => *offsets.get(partition).ok_or_else(|| {
                    Error::new(
                        Code::SourceMisconfigured,
                        format!("`scan.startup.specific-offsets` does not name partition {partition} of topic `{topic}`"),
                    )
                })?,
                // A group that has read nothing begins where there is something.
                (Startup::Earliest | Startup::Group, _) => low,
            };
            if offset < low || offset > high {
                return Err(Error::new(
                    Code::PositionLost,
                    format!(
                        "topic `{topic}`, partition {partition}: offset {offset} is not between {low} and {high}"
                    ),
                ));
            }
            lanes.push((lane_name(topic, *partition), Place::at(offset)));
        }
    }
    Ok(lanes)
}

impl Broker for KafkaSource {
    fn check(&self) -> Vec<Finding> {
        let subject = "source kafka: topics";
        match self.client().and_then(|client| topic_partitions(&client, &self.options.topics)) {
            Ok(topics) if topics.is_empty() => vec![Finding::warning(
                subject,
                "no topic matches `topic-pattern`",
                "it is read as soon as there is one; check the pattern",
            )],
            Ok(topics) => {
                let partitions: usize = topics.iter().map(|(_, p)| p.len()).sum();
                vec![Finding::ok(subject, format!("{} topics, {partitions} partitions", topics.len()))]
            }
            Err(error) => vec![Finding::error(
                subject,
                error.to_string(),
                "check `properties.bootstrap.servers`, the names of the topics, and the rights Describe and Read",
            )],
        }
    }

    fn start(&self) -> Result<Vec<LaneStart>> {
        starts(&self.client()?, &self.options)
    }

    fn ends(&self, lanes: &Lanes) -> Result<Lanes> {
        let client = self.client()?;
        let mut ends = Lanes::default();
        for lane in lanes.lanes.keys() {
            let (topic, partition) = parse_lane(lane)?;
            let (_, high) = client::range(&client, Side::Source, topic, partition)?;
            ends.lanes.insert(lane.clone(), Place::at(high));
        }
        Ok(ends)
    }

    fn recent(&self, messages: u64) -> Result<Vec<RecentLane>> {
        let client = self.client()?;
        let mut recent = Vec::new();
        for (topic, partitions) in topic_partitions(&client, &self.options.topics)? {
            for partition in partitions {
                let (low, high) = client::range(&client, Side::Source, &topic, partition)?;
                let from = high.saturating_sub(messages).max(low);
                recent.push(RecentLane {
                    name: lane_name(&topic, partition),
                    from: Place::at(from),
                    end: Place::at(high),
                    is_whole: from == low,
                });
            }
        }
        Ok(recent)
    }

    fn lost(&self, lanes: &Lanes) -> Result<Vec<LostRange>> {
        let client = self.client()?;
        let mut lost = Vec::new();
        for (lane, place) in &lanes.lanes {
            let (topic, partition) = parse_lane(lane)?;
            let (low, high) = client::range(&client, Side::Source, topic, partition)?;
            let wanted = place.0[0];
            if wanted < low || wanted > high {
                let on =
                    if self.options.settings.on_lost == OnLost::Latest || wanted > high { high } else { low };
                lost.push(LostRange { lane: lane.clone(), wanted: *place, available: Place::at(on) });
            }
        }
        Ok(lost)
    }

    fn consumer(&self) -> Result<Box<dyn LaneConsumer>> {
        Ok(Box::new(KafkaConsumer {
            client: self.client()?,
            options: self.options.clone(),
            lanes: Vec::new(),
            last: 0,
            down: None,
            headers: String::new(),
        }))
    }

    fn acknowledge(&self, lanes: &Lanes) -> Result<()> {
        if self.options.group.is_none() {
            return Ok(());
        }
        let mut committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner);
        let client = match &mut *committer {
            Some(client) => client,
            none => none.insert(self.client()?),
        };
        let mut list = TopicPartitionList::new();
        let doing = "commit offsets for the group";
        for (lane, place) in &lanes.lanes {
            let (topic, partition) = parse_lane(lane)?;
            list.add_partition_offset(topic, partition, offset_of(*place))
                .map_err(|e| failure(Side::Source, doing, e))?;
        }
        client.commit(&list, CommitMode::Sync).map_err(|e| failure(Side::Source, doing, e))
    }
}

struct Lane {
    topic: String,
    partition: i32,
    /// Offset to go on from.
    next: u64,
}

struct KafkaConsumer {
    client: BaseConsumer,
    options: SourceOptions,
    lanes: Vec<Lane>,
    /// Lane of the last message: most come in runs.
    last: usize,
    /// Since when brokers are away, and when that was last said.
    down: Option<(Instant, Instant)>,
    /// Headers of the message that is lent, where they are asked for.
    headers: String,
}

impl KafkaConsumer {
    /// A message or an error of the client.
    fn is_down_too_long(&mut self) -> bool {
        let now = Instant::now();
        let since = match self.down {
            Some((since, said)) if now.duration_since(said) < MAX_DOWN => since,
            _ => now,
        };
        self.down = Some((since, now));
        now.duration_since(since) > MAX_DOWN
    }

    fn mean(&self, error: KafkaError) -> Error {
        let error = failure(Side::Source, "read", error);
        if error.code() == Code::PositionLost && self.options.settings.on_lost != OnLost::Fail {
            // The restart finds out what is gone and moves on.
            return Error::new(Code::SourceUnreachable, "messages are gone that were to be read next")
                .with_source(error);
        }
        error
    }
}

impl LaneConsumer for KafkaConsumer {
    fn assign(&mut self, lanes: &[LaneStart]) -> Result<()> {
        if lanes.is_empty() {
            return Ok(());
        }
        for (lane, place) in lanes {
            let (topic, partition) = parse_lane(lane)?;
            self.lanes.push(Lane { topic: topic.to_owned(), partition, next: place.0[0] });
        }
        let doing = "assign partitions";
        let mut list = TopicPartitionList::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            list.add_partition_offset(&lane.topic, lane.partition, offset_of(Place::at(lane.next)))
                .map_err(|e| failure(Side::Source, doing, e))?;
        }
        self.client.assign(&list).map_err(|e| failure(Side::Source, doing, e))
    }

    fn discover(&mut self) -> Result<Vec<LaneStart>> {
        let mut new = Vec::new();
        for (topic, partitions) in topic_partitions(&self.client, &self.options.topics)? {
            for partition in partitions {
                if !self.lanes.iter().any(|l| l.partition == partition && l.topic == topic) {
                    let (low, _) = client::range(&self.client, Side::Source, &topic, partition)?;
                    new.push((lane_name(&topic, partition), Place::at(low)));
                }
            }
        }
        Ok(new)
    }

    fn is_empty_between(&mut self, lane: usize, from: Place, to: Place) -> Result<bool> {
        let lane = &self.lanes[lane];
        let probe = self.options.client.consumer(Side::Source, &[("enable.partition.eof", "true")])?;
        let doing = "look into a partition";
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&lane.topic, lane.partition, offset_of(from))
            .and_then(|()| probe.assign(&list))
            .map_err(|e| failure(Side::Source, doing, e))?;
        let began = Instant::now();
        while began.elapsed() < PROBE {
            match probe.poll(Duration::from_millis(200)) {
                None => {}
                Some(Ok(message)) => return Ok(u64::try_from(message.offset()).is_ok_and(|at| at >= to.0[0])),
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(true),
                Some(Err(error)) if is_passing(&error) => {}
                Some(Err(error)) => return Err(self.mean(error)),
            }
        }
        Ok(false)
    }

    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<bool> {
        let message = match self.client.poll(wait) {
            None => return Ok(false),
            Some(Ok(message)) => message,
            Some(Err(error)) if is_passing(&error) => {
                let error = failure(Side::Source, "read", error);
                tracing::warn!(%error, "the client goes on trying");
                return if self.is_down_too_long() { Err(error) } else { Ok(false) };
            }
            Some(Err(error)) => return Err(self.mean(error)),
        };
        let (topic, partition) = (message.topic(), message.partition());
        let is = |lane: &Lane| lane.partition == partition && lane.topic == topic;
        if !self.lanes.get(self.last).is_some_and(is) {
            self.last = self.lanes.iter().position(is).ok_or_else(|| {
                Error::internal(format!(
                    "a message of partition {partition} of topic `{topic}`, which is not assigned"
                ))
            })?;
        }
        let next = u64::try_from(message.offset()).unwrap_or(0) + 1;
        self.headers.clear();
        if self.options.settings.formats.metadata().contains(&MetadataColumn::Headers)
            && let Some(headers) = message.headers()
        {
            self.headers = headers_text(headers.iter().map(|header| (header.key, header.value)));
        }
        take(Delivery {
            lane: self.last,
            next: Place::at(next),
            message: Lent {
                topic,
                key: message.key(),
                value: message.payload(),
                timestamp_ms: message.timestamp().to_millis(),
            },
            headers: (!self.headers.is_empty()).then_some(self.headers.as_str()),
        })?;
        self.lanes[self.last].next = next;
        Ok(true)
    }
}
