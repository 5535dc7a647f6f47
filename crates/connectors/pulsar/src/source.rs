//! Owns the source: which topics and partitions there are, where they begin and end, what is gone.

mod acknowledger;
mod consumer;
mod reader;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use canalis_connector_api::Finding;
use canalis_messages::{Broker, Consumer as LaneConsumer, LaneStart, Lanes, LostRange, OnLost, Place};
use canalis_types::{Code, Error, Result};

use crate::{
    client::Cluster,
    failure::Side,
    names,
    options::{SourceOptions, Startup, TopicChoice},
    place,
};
use acknowledger::Acknowledger;
use consumer::PulsarConsumer;
use reader::Reader;

/// A Pulsar cluster as a source.
pub(crate) struct PulsarSource {
    options: Arc<SourceOptions>,
    cluster: Mutex<Option<Arc<Cluster>>>,
    acknowledger: Arc<Acknowledger>,
}

impl PulsarSource {
    pub(crate) fn new(options: SourceOptions) -> Self {
        let acknowledger = Arc::new(Acknowledger::new(options.subscription.clone()));
        Self { options: Arc::new(options), cluster: Mutex::new(None), acknowledger }
    }

    /// Does something with a client that is kept until something goes wrong.
    fn with<T>(&self, work: impl FnOnce(&Arc<Cluster>) -> Result<T>) -> Result<T> {
        let mut kept = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = match &*kept {
            Some(cluster) => cluster.clone(),
            None => kept.insert(Cluster::connect(&self.options.client, Side::Source)?).clone(),
        };
        let done = work(&cluster);
        if done.is_err() {
            *kept = None;
        }
        done
    }
}

/// The whole name of the topic or partition of a lane.
fn topic_of_lane(lane: &str) -> Result<String> {
    names::whole(lane).map_err(|why| Error::new(Code::StateIncompatible, format!("a lane of Pulsar: {why}")))
}

/// Names of all topics and partitions that are read. A topic that is named and missing is an error.
fn parts(cluster: &Cluster, topics: &TopicChoice) -> Result<Vec<String>> {
    match topics {
        TopicChoice::Names(names) => {
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                let parts = cluster.parts(name)?.ok_or_else(|| {
                    Error::new(Code::TableNotFound, format!("Pulsar has no topic `{}`", names::short(name)))
                })?;
                found.extend(parts);
            }
            Ok(found)
        }
        TopicChoice::Pattern { namespace, pattern } => {
            let mut found = cluster.topics(namespace)?;
            // Names that begin so are the cluster's own.
            found.retain(|name| {
                let topic = names::topic_of(names::local(name));
                !topic.starts_with("__") && pattern.is_match(topic)
            });
            found.sort();
            found.dedup();
            Ok(found)
        }
    }
}

/// Where a topic ends now: the place of its last message.
fn end(cluster: &Arc<Cluster>, topic: &str) -> Result<Place> {
    Reader::probe(cluster, topic, None)?.end()
}

fn start_of(cluster: &Arc<Cluster>, options: &SourceOptions, topic: &str) -> Result<Place> {
    match options.startup {
        Startup::Earliest => Ok(place::BEGINNING),
        Startup::Latest => end(cluster, topic),
        Startup::Timestamp(millis) => {
            let end = end(cluster, topic)?;
            if end == place::BEGINNING {
                return Ok(end);
            }
            Ok(Reader::first_since(cluster, topic, millis)?.map_or(end, place::before))
        }
        Startup::Subscription => {
            let Some(subscription) = &options.subscription else { return Ok(place::BEGINNING) };
            let mut reader = Reader::subscribe(cluster, topic, subscription)?;
            let end = reader.end()?;
            Ok(reader.first_behind(place::BEGINNING)?.map_or(end, place::before))
        }
    }
}

/// What is gone of a lane, if anything.
///
/// The last message that was taken is never acknowledged, so a broker that has kept what it owes still has it.
fn lost(cluster: &Arc<Cluster>, lane: &str, at: Place, on_lost: OnLost) -> Result<Option<LostRange>> {
    if at == place::BEGINNING {
        return Ok(None);
    }
    let topic = topic_of_lane(lane)?;
    let mut reader = Reader::probe(cluster, &topic, Some(at))?;
    let end = reader.end()?;
    let range = |available| Some(LostRange { lane: lane.to_owned(), wanted: at, available });
    if end < at && !place::same_entry(end, at) {
        return Ok(range(end));
    }
    let first = reader.first_behind(place::BEGINNING)?;
    Ok(match first {
        Some(first) if !place::same_entry(first, at) && first > at => {
            range(if on_lost == OnLost::Latest { end } else { place::before(first) })
        }
        _ => None,
    })
}

impl Broker for PulsarSource {
    fn check(&self) -> Vec<Finding> {
        let subject = "source pulsar: topics";
        let mut findings = match self.with(|cluster| parts(cluster, &self.options.topics)) {
            Ok(parts) if parts.is_empty() => vec![Finding::warning(
                subject,
                "no topic matches `topic-pattern`",
                "it is read as soon as there is one; check the pattern and `namespace`",
            )],
            Ok(parts) => vec![Finding::ok(subject, format!("{} topics and partitions", parts.len()))],
            Err(error) => vec![Finding::error(
                subject,
                error.to_string(),
                "check `service-url`, the names of the topics, and the right `consume`",
            )],
        };
        if self.options.subscription.is_none() {
            findings.push(Finding::warning(
                "source pulsar: subscription",
                "without `subscription` the broker does not know what the job has not read yet",
                "set `subscription`, or see that the namespace has a retention long enough for any pause",
            ));
        }
        findings
    }

    fn start(&self) -> Result<Vec<LaneStart>> {
        self.with(|cluster| {
            let parts = parts(cluster, &self.options.topics)?;
            parts
                .iter()
                .map(|topic| Ok((names::short(topic).to_owned(), start_of(cluster, &self.options, topic)?)))
                .collect()
        })
    }

    fn ends(&self, lanes: &Lanes) -> Result<Lanes> {
        self.with(|cluster| {
            let mut ends = BTreeMap::new();
            for lane in lanes.lanes.keys() {
                ends.insert(lane.clone(), end(cluster, &topic_of_lane(lane)?)?);
            }
            Ok(Lanes { count: 0, lanes: ends })
        })
    }

    fn lost(&self, lanes: &Lanes) -> Result<Vec<LostRange>> {
        self.with(|cluster| {
            let mut all = Vec::new();
            for (lane, at) in &lanes.lanes {
                all.extend(lost(cluster, lane, *at, self.options.settings.on_lost)?);
            }
            Ok(all)
        })
    }

    fn consumer(&self) -> Result<Box<dyn LaneConsumer>> {
        Ok(Box::new(PulsarConsumer::new(self.options.clone(), self.acknowledger.clone())?))
    }

    fn acknowledge(&self, lanes: &Lanes) -> Result<()> {
        if self.options.subscription.is_none() {
            return Ok(());
        }
        self.with(|cluster| self.acknowledger.acknowledge(cluster, lanes))
    }
}
