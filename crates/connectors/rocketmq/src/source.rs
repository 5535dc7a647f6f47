//! Owns the source: which queues there are, where they begin and end.

mod consumer;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use canalis_connector_api::Finding;
use canalis_messages::{Broker, Consumer, LaneStart, Lanes, LostRange, OnLost, Place, TopicChoice};
use canalis_types::{Code, Error, Result};

use crate::{
    client::{Client, Queue},
    failure::Side,
    options::{SourceOptions, Startup},
};
use consumer::QueueConsumer;

/// How long a topic may have no route before the job is told: brokers register again some seconds after a restart.
const NO_ROUTE: Duration = Duration::from_secs(30);

/// How long a queue may end before what was read already.
const LAGS: Duration = Duration::from_secs(10);

/// For every lane the place of the last message that was handed on, and the offset up to which the queue was looked through.
pub(crate) type LookedThrough = Arc<Mutex<HashMap<String, (u64, u64)>>>;

/// A RocketMQ cluster as a source.
pub(crate) struct RocketMqSource {
    options: SourceOptions,
    client: Arc<Client>,
    looked: LookedThrough,
}

impl RocketMqSource {
    pub(crate) fn new(options: SourceOptions) -> Self {
        let client = Arc::new(Client::new(options.client.clone(), Side::Source));
        Self { options, client, looked: LookedThrough::default() }
    }

    fn start_of(&self, queue: &Queue) -> Result<u64> {
        let (low, high) = self.client.range(queue)?;
        let offset = match &self.options.startup {
            Startup::Earliest => low,
            Startup::Latest => high,
            Startup::Timestamp(millis) => self.client.offset_at(queue, *millis)?.clamp(low, high),
            // A group that has read nothing begins where there is something.
            Startup::Group => self.client.group_offset(queue, &self.options.group)?.unwrap_or(low),
            Startup::Specific(offsets) => {
                let name = format!("{}-{}", queue.broker, queue.id);
                *offsets.get(&name).ok_or_else(|| {
                    let why = format!(
                        "`scan.startup.specific-offsets` does not name queue {name} of topic `{}`",
                        queue.topic
                    );
                    Error::new(Code::SourceMisconfigured, why)
                })?
            }
        };
        if offset < low || offset > high {
            let why = format!("queue {}: offset {offset} is not between {low} and {high}", queue.lane());
            return Err(Error::new(Code::PositionLost, why));
        }
        Ok(offset)
    }
}

/// The queues that are read and exist. A topic that is named and missing is an error.
pub(crate) fn queues(client: &Client, topics: &TopicChoice) -> Result<Vec<Queue>> {
    let mut found = Vec::new();
    match topics {
        TopicChoice::Names(names) => {
            for name in names {
                match client.queues(name)? {
                    Some(queues) => found.extend(queues),
                    None => return Err(no_topic(client, name)?),
                }
            }
        }
        TopicChoice::Pattern(pattern) => {
            for name in client.topics()?.iter().filter(|name| pattern.is_match(name)) {
                found.extend(client.queues(name)?.unwrap_or_default());
            }
        }
    }
    Ok(found)
}

/// Why there is no such topic: name servers forget what brokers have while those are away.
fn no_topic(client: &Client, name: &str) -> Result<Error> {
    let code = if client.cluster()?.broker_addr_table.is_empty() {
        Code::SourceUnreachable
    } else {
        Code::TableNotFound
    };
    Ok(Error::new(code, format!("RocketMQ: no broker that is there has the topic `{name}`")))
}

/// Begin and end of a queue at a restart, when brokers may be about to come back, and copies may lag behind what was read.
fn await_range(client: &Client, queue: &Queue, wanted: u64) -> Result<(u64, u64)> {
    let began = Instant::now();
    loop {
        match client.range(queue) {
            Ok((_, high)) if high < wanted && began.elapsed() < LAGS => {
                std::thread::sleep(Duration::from_millis(200));
            }
            Err(error) if error.code() == Code::SourceUnreachable && began.elapsed() < NO_ROUTE => {
                std::thread::sleep(Duration::from_millis(200));
            }
            other => return other,
        }
    }
}

impl Broker for RocketMqSource {
    fn check(&self) -> Vec<Finding> {
        let subject = "source rocketmq: topics";
        match queues(&self.client, &self.options.topics) {
            Ok(queues) if queues.is_empty() => vec![Finding::warning(
                subject,
                "no topic matches `topic-pattern`",
                "it is read as soon as there is one; check the pattern",
            )],
            Ok(queues) => {
                let mut topics: Vec<&String> = queues.iter().map(|q| &q.topic).collect();
                topics.dedup();
                vec![Finding::ok(subject, format!("{} topics, {} queues", topics.len(), queues.len()))]
            }
            Err(error) => vec![Finding::error(
                subject,
                error.to_string(),
                "check `name-server`, the names of the topics, and the right SUB on topics and group",
            )],
        }
    }

    fn start(&self) -> Result<Vec<LaneStart>> {
        let queues = queues(&self.client, &self.options.topics)?;
        queues.iter().map(|queue| Ok((queue.lane(), Place::at(self.start_of(queue)?)))).collect()
    }

    fn ends(&self, lanes: &Lanes) -> Result<Lanes> {
        let mut ends = Lanes::default();
        for lane in lanes.lanes.keys() {
            let (_, high) = self.client.range(&Queue::parse(lane)?)?;
            ends.lanes.insert(lane.clone(), Place::at(high));
        }
        Ok(ends)
    }

    fn lost(&self, lanes: &Lanes) -> Result<Vec<LostRange>> {
        let mut lost = Vec::new();
        for (lane, place) in &lanes.lanes {
            let wanted = place.0[0];
            let (low, high) = await_range(&self.client, &Queue::parse(lane)?, wanted)?;
            if wanted < low || wanted > high {
                let on =
                    if self.options.settings.on_lost == OnLost::Latest || wanted > high { high } else { low };
                lost.push(LostRange { lane: lane.clone(), wanted: *place, available: Place::at(on) });
            }
        }
        Ok(lost)
    }

    fn consumer(&self) -> Result<Box<dyn Consumer>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(Box::new(QueueConsumer::new(self.options.clone(), self.client.clone(), self.looked.clone())))
    }

    fn acknowledge(&self, lanes: &Lanes) -> Result<()> {
        if !self.options.commits {
            return Ok(());
        }
        for (lane, place) in &lanes.lanes {
            // Messages with other tags behind the last one taken are no lag.
            let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner).get(lane).copied();
            let at = match looked {
                Some((taken, through)) if taken == place.0[0] => through,
                _ => place.0[0],
            };
            self.client.commit(&Queue::parse(lane)?, &self.options.group, at)?;
        }
        Ok(())
    }
}
