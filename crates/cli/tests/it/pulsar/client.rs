//! Owns what a test does with a broker by itself: topics, messages in, messages out.

use std::time::Duration;

use canalis_testkit::{Server, pulsar_admin};
use futures::StreamExt;
use pulsar::{
    Consumer, ConsumerOptions, ProducerOptions, Pulsar, SubType, TokioExecutor, consumer::InitialPosition,
    message::proto::MessageIdData, producer::Message,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A message as it stands in a partition: part, key, value.
pub type Stored = (String, Option<String>, String);

/// A name no other test uses.
pub fn fresh(prefix: &str) -> String {
    format!("{prefix}-{:08x}", rand::random::<u32>())
}

/// A `source` or `sink` block for a broker.
pub fn broker(role: &str, server: &Server, more: &str) -> String {
    format!("{role}:\n  type: pulsar\n  service-url: pulsar://127.0.0.1:{}\n{more}", server.port)
}

fn admin(server: &Server, method: &str, path: &str, body: &str) -> String {
    let (status, answer) =
        pulsar_admin(server, method, &format!("persistent/public/default/{path}"), body).unwrap();
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    answer
}

/// Makes a topic; with no partitions, one that is not partitioned.
pub fn create(server: &Server, topic: &str, partitions: u32) {
    match partitions {
        0 => admin(server, "PUT", topic, ""),
        n => admin(server, "PUT", &format!("{topic}/partitions"), &n.to_string()),
    };
}

/// Adds partitions.
pub fn grow(server: &Server, topic: &str, partitions: u32) {
    admin(server, "POST", &format!("{topic}/partitions"), &partitions.to_string());
}

/// Has the broker drop everything that a subscription has not read, as an expiry does.
pub fn skip_all(server: &Server, topic: &str, subscription: &str) {
    admin(server, "POST", &format!("{topic}/subscription/{subscription}/skip_all"), "");
}

/// Has the broker close a topic or partition and open it again, as it does to balance its load.
pub fn unload(server: &Server, part: &str) {
    admin(server, "PUT", &format!("{part}/unload"), "");
}

/// Messages that a subscription has not read, by the broker; `None` when there is no such subscription.
pub fn backlog(server: &Server, topic: &str, subscription: &str) -> Option<u64> {
    let stats: serde_json::Value =
        serde_json::from_str(&admin(server, "GET", &format!("{topic}/stats"), "")).unwrap();
    stats["subscriptions"][subscription]["msgBacklog"].as_u64()
}

/// Ledgers that the broker keeps of a topic.
pub fn ledgers(server: &Server, topic: &str) -> Vec<u64> {
    let answer = admin(server, "GET", &format!("{topic}/internalStats"), "");
    let stats: serde_json::Value = serde_json::from_str(&answer).unwrap();
    stats["ledgers"].as_array().unwrap().iter().map(|l| l["ledgerId"].as_u64().unwrap()).collect()
}

pub async fn connect(server: &Server) -> Pulsar<TokioExecutor> {
    Pulsar::builder(format!("pulsar://127.0.0.1:{}", server.port), TokioExecutor).build().await.unwrap()
}

/// Puts messages into a topic or partition, several to a batch or each by itself, and waits until they are there. A message
/// without a value has no bytes.
pub async fn put(server: &Server, part: &str, batched: bool, messages: &[(Option<&str>, Option<&str>)]) {
    let client = connect(server).await;
    let options = ProducerOptions {
        batch_size: batched.then_some(7),
        block_queue_if_full: true,
        ..ProducerOptions::default()
    };
    let mut producer = client.producer().with_topic(part).with_options(options).build().await.unwrap();
    let mut sent = Vec::new();
    for (key, value) in messages {
        let message = Message {
            payload: value.unwrap_or_default().as_bytes().to_vec(),
            partition_key: key.map(str::to_owned),
            ..Message::default()
        };
        sent.push(producer.send_non_blocking(message).await.unwrap());
    }
    if batched {
        producer.send_batch().await.unwrap();
    }
    for receipt in sent {
        receipt.await.unwrap();
    }
    producer.close().await.unwrap();
}

/// All messages of the parts of a topic.
pub async fn stored(server: &Server, parts: &[String]) -> Vec<Stored> {
    let client = connect(server).await;
    let mut found = Vec::new();
    for part in parts {
        let options =
            ConsumerOptions::default().durable(false).with_initial_position(InitialPosition::Earliest);
        let mut consumer: Consumer<Vec<u8>, TokioExecutor> = client
            .consumer()
            .with_topic(part)
            .with_subscription(fresh("test"))
            .with_subscription_type(SubType::Exclusive)
            .with_options(options)
            .build()
            .await
            .unwrap();
        let last = consumer.get_last_message_id().await.unwrap().remove(0);
        if i64::try_from(last.entry_id).is_err() {
            continue;
        }
        loop {
            let message = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap().unwrap();
            let value = String::from_utf8(message.payload.data.clone()).unwrap();
            found.push((part.clone(), message.key(), value));
            if number(message.message_id()) >= number(&last) {
                break;
            }
        }
    }
    found
}

fn number(id: &MessageIdData) -> (u64, u64, i32) {
    (id.ledger_id, id.entry_id, id.batch_index.unwrap_or(-1).max(0))
}

/// Whether a topic or partition is there.
pub fn exists(server: &Server, part: &str) -> bool {
    let (_, answer) = pulsar_admin(server, "GET", "persistent/public/default", "").unwrap();
    answer.contains(&format!("/{part}\""))
}
