//! Owns [`Acknowledger`]: telling a durable subscription how far durable checkpoints are.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use canalis_messages::{Lanes, Place};
use canalis_types::{Code, Error, Result};
use futures::{FutureExt, StreamExt};
use pulsar::{
    Consumer, ConsumerOptions, TokioExecutor, consumer::InitialPosition, message::proto::MessageIdData,
};

use crate::{
    client::{Cluster, PATIENCE},
    failure::{Side, failure, is_busy, timeout},
    options::Subscription,
    place,
};

/// A member of the subscription is lent a few messages that it never takes; while they wait, it does not see what else it is
/// told. So some are thrown away around each message to it.
const THROWN_AWAY: usize = 4;
const PAUSE: Duration = Duration::from_millis(5);

/// The member of the subscription for one lane.
struct Member {
    consumer: Option<Consumer<Vec<u8>, TokioExecutor>>,
    cluster: Arc<Cluster>,
    told: Option<Place>,
}

impl Member {
    fn throw_away(&mut self) {
        let Some(consumer) = &mut self.consumer else { return };
        let cluster = self.cluster.clone();
        for _ in 0..THROWN_AWAY {
            if consumer.next().now_or_never().is_none()
                && cluster.wait_at_most(PAUSE, consumer.next()).flatten().is_none()
            {
                break;
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _guard = self.cluster.enter();
        self.consumer = None;
    }
}

/// All members, and whether somebody else has the subscription.
pub(super) struct Acknowledger {
    subscription: Option<Subscription>,
    members: Mutex<HashMap<String, Member>>,
    taken: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Acknowledger {
    pub(super) fn new(subscription: Option<Subscription>) -> Self {
        Self { subscription, members: Mutex::new(HashMap::new()), taken: Mutex::new(None) }
    }

    /// Leaves the subscription with a client that is given up.
    pub(super) fn forget(&self, cluster: &Arc<Cluster>) {
        lock(&self.members).retain(|_, member| !Arc::ptr_eq(&member.cluster, cluster));
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
    pub(super) fn acknowledge(&self, cluster: &Arc<Cluster>, lanes: &Lanes) -> Result<()> {
        let Some(subscription) = &self.subscription else { return Ok(()) };
        let mut members = lock(&self.members);
        for (lane, at) in &lanes.lanes {
            let topic = super::topic_of_lane(lane)?;
            if !members.contains_key(lane) {
                let member = self.join(cluster, subscription, &topic)?;
                members.insert(lane.clone(), member);
            }
            let Some(member) = members.get_mut(lane) else { continue };
            if member.told == Some(*at) {
                continue;
            }
            if let Some(id) = place::entry_before(*at) {
                Self::tell(cluster, member, &topic, id)?;
            }
            member.told = Some(*at);
        }
        Ok(())
    }

    fn tell(cluster: &Arc<Cluster>, member: &mut Member, topic: &str, id: MessageIdData) -> Result<()> {
        member.throw_away();
        let doing = format!("acknowledge messages of topic `{topic}`");
        if let Some(consumer) = &mut member.consumer {
            let told = consumer.cumulative_ack_with_id(topic, id);
            cluster.ask(&doing, async { told.await.map_err(pulsar::Error::from) })?;
        }
        member.throw_away();
        Ok(())
    }

    fn join(&self, cluster: &Arc<Cluster>, subscription: &Subscription, topic: &str) -> Result<Member> {
        let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
        let building = cluster
            .client()
            .consumer()
            .with_topic(topic)
            .with_subscription(&subscription.name)
            .with_subscription_type(subscription.kind())
            .with_consumer_name("canalis")
            .with_batch_size(1)
            .with_options(options.with_receiver_queue_size(1))
            .build();
        let doing = format!("join subscription `{}` of topic `{topic}`", subscription.name);
        match cluster.wait_at_most(PATIENCE, building) {
            Some(Ok(consumer)) => {
                *lock(&self.taken) = None;
                Ok(Member { consumer: Some(consumer), cluster: cluster.clone(), told: None })
            }
            Some(Err(error)) => {
                let busy = is_busy(&error);
                let error = failure(Side::Source, &doing, &error);
                if busy {
                    *lock(&self.taken) = Some(error.to_string());
                }
                Err(error)
            }
            None => Err(timeout(Side::Source, &doing)),
        }
    }
}
