//! Owns [`Reader`]: one topic or partition, read from a place on.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use canalis_messages::Place;
use canalis_types::Result;
use futures::{Stream, StreamExt};
use pulsar::{
    Consumer, ConsumerOptions, SubType, TokioExecutor,
    consumer::{InitialPosition, Message},
};

use crate::{client::Cluster, options::Subscription, place};

/// Messages that wait to be taken.
const WAITING: u32 = 1000;
/// Messages that are asked for where only the first are of interest.
const FEW: u32 = 4;
/// Room for messages of a reader that is asked something: where it has none left, the client does not answer before they are
/// taken. One entry may hold many.
pub(super) const ROOM: u32 = 20_000;
/// How long the first message behind a place may take, when there is one.
const PROBE: Duration = Duration::from_secs(10);

/// The name of a subscription that no other reader has.
fn fresh(topic: &str) -> String {
    format!("canalis-reader-{:016x}", RandomState::new().hash_one(topic))
}

/// What the client gives.
pub(super) type Given = std::result::Result<Message<Vec<u8>>, pulsar::Error>;

/// A reader. What it ends is ended in the background.
pub(super) struct Reader {
    cluster: Arc<Cluster>,
    topic: String,
    consumer: Option<Consumer<Vec<u8>, TokioExecutor>>,
}

impl Reader {
    /// Reads a topic from a place on, by a subscription that is gone with it.
    pub(super) fn open(cluster: &Arc<Cluster>, topic: &str, from: Place) -> Result<Self> {
        let options = ConsumerOptions::default().durable(false).starting_on_message(place::start(from));
        Self::build(cluster, topic, &fresh(topic), SubType::Exclusive, WAITING, options)
    }

    /// The same to look at a few messages; without a place, at what comes from now on.
    pub(super) fn probe(cluster: &Arc<Cluster>, topic: &str, from: Option<Place>) -> Result<Self> {
        let mut options = ConsumerOptions::default().durable(false);
        match from {
            Some(from) => options.start_message_id = Some(place::start(from)),
            None => options.initial_position = InitialPosition::Latest,
        }
        Self::build(cluster, topic, &fresh(topic), SubType::Exclusive, FEW, options)
    }

    /// The place of the first message that was published at a time or later.
    pub(super) fn first_since(cluster: &Arc<Cluster>, topic: &str, millis: u64) -> Result<Option<Place>> {
        // Only a durable subscription keeps where it was sent, and only this kind lets the client in twice while it moves.
        let subscription = Subscription { name: fresh(topic), failover: true };
        let mut reader = Self::subscribe(cluster, topic, &subscription)?;
        let found = reader.seek(millis).and_then(|()| reader.first_behind(place::BEGINNING));
        let doing = format!("leave subscription `{}` of topic `{topic}`", subscription.name);
        if let Some(consumer) = &mut reader.consumer {
            cluster.ask(&doing, consumer.unsubscribe())?;
        }
        found
    }

    /// Joins a durable subscription where it is.
    pub(super) fn subscribe(
        cluster: &Arc<Cluster>,
        topic: &str,
        subscription: &Subscription,
    ) -> Result<Self> {
        let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
        Self::build(cluster, topic, &subscription.name, subscription.kind(), FEW, options)
    }

    fn build(
        cluster: &Arc<Cluster>,
        topic: &str,
        subscription: &str,
        kind: SubType,
        waiting: u32,
        options: ConsumerOptions,
    ) -> Result<Self> {
        let room = if waiting == FEW { ROOM } else { waiting };
        let consumer = cluster
            .client()
            .consumer()
            .with_topic(topic)
            .with_subscription(subscription)
            .with_subscription_type(kind)
            .with_consumer_name("canalis")
            .with_batch_size(waiting)
            .with_options(options.with_receiver_queue_size(room));
        let doing = format!("read topic `{topic}`");
        let consumer = cluster.ask(&doing, consumer.build())?;
        Ok(Self { cluster: cluster.clone(), topic: topic.to_owned(), consumer: Some(consumer) })
    }

    /// The place of the topic's last message.
    pub(super) fn end(&mut self) -> Result<Place> {
        let Some(consumer) = &mut self.consumer else { return Ok(place::BEGINNING) };
        let doing = format!("ask where topic `{}` ends", self.topic);
        let ids = self.cluster.ask(&doing, consumer.get_last_message_id())?;
        Ok(ids.first().map_or(place::BEGINNING, place::of))
    }

    fn seek(&mut self, millis: u64) -> Result<()> {
        let Some(consumer) = &mut self.consumer else { return Ok(()) };
        let doing = format!("go to a time in topic `{}`", self.topic);
        let client = self.cluster.client().clone();
        self.cluster.ask(&doing, consumer.seek(None, None, Some(millis), client))
    }

    /// The place of the first message behind `from`, if there is one.
    pub(super) fn first_behind(&mut self, from: Place) -> Result<Option<Place>> {
        if self.end()? <= from {
            return Ok(None);
        }
        let began = Instant::now();
        while let Some(left) = PROBE.checked_sub(began.elapsed()) {
            let Some(consumer) = &mut self.consumer else { break };
            match self.cluster.wait_at_most(left, consumer.next()) {
                Some(Some(Ok(message))) => {
                    let at = place::of(message.message_id());
                    if at > from {
                        return Ok(Some(at));
                    }
                }
                Some(Some(Err(_)) | None) | None => break,
            }
        }
        Ok(None)
    }

    /// The next message, as a stream gives it.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Given>> {
        match &mut self.consumer {
            Some(consumer) => Pin::new(consumer).poll_next(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // The client starts a task to say goodbye.
        let _guard = self.cluster.enter();
        self.consumer = None;
    }
}
