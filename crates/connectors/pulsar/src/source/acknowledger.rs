//! Owns [`Acknowledger`]: telling a durable subscription how far durable checkpoints are.
//!
//! The subscription is joined for each message to it and left again. Whoever stays is lent messages, and the client does not
//! pass on what it is told while they are not taken; taking them would mean to read everything twice.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use canalis_messages::{Lanes, Place};
use canalis_types::{Code, Error, Result};
use futures::future::join_all;
use pulsar::{
    Consumer, ConsumerOptions, TokioExecutor, consumer::InitialPosition, message::proto::MessageIdData,
};

use super::reader::ROOM;
use crate::{
    client::{Client, Cluster},
    failure::{Side, failure, is_busy, timeout},
    options::Subscription,
    place,
};

/// Lanes that are told at once.
const AT_ONCE: usize = 16;
/// How long it may take for so many.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was told of each lane, and whether somebody else has the subscription.
pub(super) struct Acknowledger {
    subscription: Option<Subscription>,
    told: Mutex<HashMap<String, Place>>,
    taken: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Acknowledger {
    pub(super) fn new(subscription: Option<Subscription>) -> Self {
        Self { subscription, told: Mutex::new(HashMap::new()), taken: Mutex::new(None) }
    }

    /// The error when somebody else reads by the same subscription, so that what this job needs may be removed.
    pub(super) fn check(&self) -> Result<()> {
        match &*lock(&self.taken) {
            Some(why) => Err(Error::new(Code::SourceMisconfigured, why.clone())),
            None => Ok(()),
        }
    }

    /// Tells the subscription of every lane that has moved. All entries before the last one are let go; the last one stays, and
    /// is how a restart sees that nothing is gone.
    pub(super) fn acknowledge(&self, cluster: &Cluster, lanes: &Lanes) -> Result<()> {
        let Some(subscription) = &self.subscription else { return Ok(()) };
        let mut told = lock(&self.told);
        let mut moved = Vec::new();
        for (lane, at) in &lanes.lanes {
            if told.get(lane) != Some(at) {
                moved.push((lane, *at, super::topic_of_lane(lane)?));
            }
        }
        for some in moved.chunks(AT_ONCE) {
            let tell = some
                .iter()
                .map(|(_, at, topic)| tell(cluster.client(), subscription, topic, place::entry_before(*at)));
            let doing = format!("acknowledge messages for subscription `{}`", subscription.name);
            let Some(results) = cluster.wait_at_most(PATIENCE, join_all(tell)) else {
                return Err(timeout(Side::Source, &doing));
            };
            for ((lane, at, _), result) in some.iter().zip(results) {
                if let Err(error) = result {
                    let busy = is_busy(&error);
                    let error = failure(Side::Source, &doing, &error);
                    if busy {
                        *lock(&self.taken) = Some(error.to_string());
                    }
                    return Err(error);
                }
                told.insert((*lane).clone(), *at);
            }
        }
        Ok(())
    }
}

/// Joins, lets everything up to an entry go, and leaves. Whoever joins first makes the subscription.
async fn tell(
    client: &Client,
    subscription: &Subscription,
    topic: &str,
    id: Option<MessageIdData>,
) -> std::result::Result<(), pulsar::Error> {
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    let mut member: Consumer<Vec<u8>, TokioExecutor> = client
        .consumer()
        .with_topic(topic)
        .with_subscription(&subscription.name)
        .with_subscription_type(subscription.kind())
        .with_consumer_name("canalis")
        .with_batch_size(1)
        .with_options(options.with_receiver_queue_size(ROOM))
        .build()
        .await?;
    if let Some(id) = id {
        member.cumulative_ack_with_id(topic, id).await?;
    }
    // The client keeps the order, so this is answered when the other has been taken.
    member.close().await
}
