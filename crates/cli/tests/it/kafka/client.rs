//! Owns what a test does with a broker by itself: topics, messages in, messages out.

use std::{collections::BTreeMap, time::Duration};

use canalis_testkit::Server;
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    producer::{BaseProducer, BaseRecord, Producer},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A message as it stands in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<String>,
    pub value: Option<String>,
}

/// A name no other test uses.
pub fn fresh(prefix: &str) -> String {
    format!("{prefix}-{:08x}", rand::random::<u32>())
}

pub fn config(server: &Server) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", format!("127.0.0.1:{}", server.port));
    config
}

fn admin(server: &Server) -> AdminClient<DefaultClientContext> {
    config(server).create().unwrap()
}

/// Makes a topic.
pub async fn create(server: &Server, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    for (key, value) in settings {
        new = new.set(key, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    for made in admin(server).create_topics([&new], &options).await.unwrap() {
        made.unwrap();
    }
}

/// Adds partitions.
pub async fn grow(server: &Server, topic: &str, partitions: usize) {
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    for grown in
        admin(server).create_partitions(&[NewPartitions::new(topic, partitions)], &options).await.unwrap()
    {
        grown.unwrap();
    }
}

/// Removes all messages before an offset, as retention does.
pub async fn trim(server: &Server, topic: &str, partition: i32, before: i64) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(before)).unwrap();
    admin(server)
        .delete_records(&list, &AdminOptions::new().operation_timeout(Some(PATIENCE)))
        .await
        .unwrap();
}

/// Puts messages into a partition and waits until they are there.
pub fn put(server: &Server, topic: &str, partition: i32, messages: &[(Option<&str>, Option<&str>)]) {
    let producer: BaseProducer = config(server).create().unwrap();
    send(&producer, topic, partition, messages);
    producer.flush(PATIENCE).unwrap();
}

fn send(producer: &BaseProducer, topic: &str, partition: i32, messages: &[(Option<&str>, Option<&str>)]) {
    for (key, value) in messages {
        let mut record: BaseRecord<'_, str, str> = BaseRecord::to(topic).partition(partition);
        if let Some(key) = key {
            record = record.key(key);
        }
        if let Some(value) = value {
            record = record.payload(value);
        }
        producer.send(record).map_err(|(error, _)| error).unwrap();
        producer.poll(Duration::ZERO);
    }
}

/// Puts messages into a partition in one transaction, committed or given up.
pub fn put_transaction(server: &Server, topic: &str, values: &[&str], commit: bool) {
    let producer: BaseProducer = config(server).set("transactional.id", fresh("test")).create().unwrap();
    producer.init_transactions(PATIENCE).unwrap();
    producer.begin_transaction().unwrap();
    let messages: Vec<_> = values.iter().map(|v| (None, Some(*v))).collect();
    send(&producer, topic, 0, &messages);
    if commit {
        producer.commit_transaction(PATIENCE).unwrap();
    } else {
        producer.flush(PATIENCE).unwrap();
        producer.abort_transaction(PATIENCE).unwrap();
    }
}

/// All committed messages of a topic, by partition and offset.
pub fn committed(server: &Server, topic: &str) -> Vec<Stored> {
    let consumer: BaseConsumer = config(server)
        .set("group.id", fresh("test"))
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).unwrap();
    let partitions: Vec<i32> = metadata.topics()[0].partitions().iter().map(|p| p.id()).collect();
    let mut list = TopicPartitionList::new();
    for partition in &partitions {
        list.add_partition_offset(topic, *partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    let mut found: BTreeMap<(i32, i64), Stored> = BTreeMap::new();
    let mut open = partitions.len();
    while open > 0 {
        match consumer.poll(PATIENCE).expect("an end of every partition") {
            Ok(message) => {
                let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
                let stored = Stored {
                    partition: message.partition(),
                    offset: message.offset(),
                    key: text(message.key()),
                    value: text(message.payload()),
                };
                found.insert((stored.partition, stored.offset), stored);
            }
            Err(KafkaError::PartitionEOF(_)) => open -= 1,
            Err(error) => panic!("{error}"),
        }
    }
    found.into_values().collect()
}

/// What a group has committed, by partition.
pub fn group_offsets(server: &Server, group: &str, topic: &str, partitions: i32) -> Vec<Option<i64>> {
    let consumer: BaseConsumer = config(server).set("group.id", group).create().unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition(topic, partition);
    }
    let found = consumer.committed_offsets(list, PATIENCE).unwrap();
    (0..partitions)
        .map(|p| match found.find_partition(topic, p).unwrap().offset() {
            Offset::Offset(at) => Some(at),
            _ => None,
        })
        .collect()
}

/// Whether there is such a topic.
pub fn exists(server: &Server, topic: &str) -> bool {
    let consumer: BaseConsumer = config(server).create().unwrap();
    consumer.fetch_metadata(Some(topic), PATIENCE).unwrap().topics()[0].error().is_none()
}
