//! Owns the making of clients from options, and questions to the cluster that both roles ask.

use std::time::Duration;

use canalis_types::{Code, Error, Result};
use rdkafka::{
    ClientConfig,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer},
    error::RDKafkaErrorCode,
};

use crate::failure::{Side, failure};

/// How long a question to the cluster may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Settings of the client, as given under `properties.`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings(pub Vec<(String, String)>);

impl Settings {
    /// A configuration with these settings over `ours`.
    pub(crate) fn config(&self, ours: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("client.id", "canalis");
        config.set_log_level(RDKafkaLogLevel::Warning);
        for (key, value) in ours {
            config.set(*key, *value);
        }
        for (key, value) in &self.0 {
            config.set(key, value);
        }
        config
    }

    /// A consumer that commits nothing by itself and never jumps.
    pub(crate) fn consumer(&self, side: Side, more: &[(&str, &str)]) -> Result<BaseConsumer> {
        let mut config = self.config(&[
            ("group.id", "canalis"),
            ("queued.max.messages.kbytes", "32768"),
            // How long fetching pauses once so much is waiting; the client's second starves a reader that is faster.
            ("fetch.queue.backoff.ms", "2"),
            ("fetch.wait.max.ms", "100"),
        ]);
        config.set("enable.auto.commit", "false");
        config.set("enable.auto.offset.store", "false");
        config.set("auto.offset.reset", "error");
        for (key, value) in more {
            config.set(*key, *value);
        }
        config.create().map_err(|error| failure(side, "make a consumer", error))
    }
}

/// Names and partitions of topics.
pub(crate) type TopicPartitions = Vec<(String, Vec<i32>)>;

/// The partitions of a topic; `None` when there is no such topic.
pub(crate) fn partitions(client: &BaseConsumer, side: Side, topic: &str) -> Result<Option<Vec<i32>>> {
    let doing = || format!("ask for the partitions of topic `{topic}`");
    let metadata = client.fetch_metadata(Some(topic), PATIENCE).map_err(|e| failure(side, &doing(), e))?;
    let Some(found) = metadata.topics().iter().find(|t| t.name() == topic) else { return Ok(None) };
    match found.error().map(RDKafkaErrorCode::from) {
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => return Ok(None),
        Some(code) => {
            return Err(failure(side, &doing(), rdkafka::error::KafkaError::MetadataFetch(code)));
        }
        None => {}
    }
    let partitions: Vec<i32> = found.partitions().iter().map(|p| p.id()).collect();
    Ok((!partitions.is_empty()).then_some(partitions))
}

/// All topics that are not the cluster's own.
pub(crate) fn topics(client: &BaseConsumer, side: Side) -> Result<TopicPartitions> {
    let metadata =
        client.fetch_metadata(None, PATIENCE).map_err(|e| failure(side, "ask for the topics", e))?;
    let own = |name: &str| name.starts_with("__");
    let topics = metadata.topics().iter().filter(|t| !own(t.name()) && t.error().is_none());
    Ok(topics.map(|t| (t.name().to_owned(), t.partitions().iter().map(|p| p.id()).collect())).collect())
}

/// First offset there is, and the offset behind the last message that readers may see.
pub(crate) fn range(client: &BaseConsumer, side: Side, topic: &str, partition: i32) -> Result<(u64, u64)> {
    let (low, high) = client.fetch_watermarks(topic, partition, PATIENCE).map_err(|e| {
        failure(side, &format!("ask where partition {partition} of topic `{topic}` begins and ends"), e)
    })?;
    let number = |offset: i64| {
        u64::try_from(offset).map_err(|_| {
            Error::new(Code::SourceUndecodable, format!("Kafka gave the offset {offset} for topic `{topic}`"))
        })
    };
    Ok((number(low)?, number(high)?))
}
