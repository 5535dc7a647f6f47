//! Owns questions to name servers and brokers that both roles ask, over connections that are kept.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use canalis_types::{Code, Error, Result};

use crate::{
    failure::{Side, broken, refused, senseless},
    protocol::{
        answer,
        body::{self, BrokerData, Cluster, READABLE, Route, TopicList, WRITABLE},
        connection::Connection,
        frame::{Account, Answer, Fields, fields},
        request,
    },
};

/// Topics of the servers' own, beside those named like a broker or a cluster.
const OWN_TOPICS: &[&str] =
    &["BenchmarkTest", "OFFSET_MOVED_EVENT", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX", "TBW102"];
const OWN_PREFIXES: &[&str] = &["RMQ_SYS_", "rmq_sys_", "%"];
const OWN_SUFFIX: &str = "_REPLY_TOPIC";

/// Which name servers, and as whom.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub name_servers: Vec<String>,
    pub account: Option<Account>,
}

/// A queue of a topic on one broker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Queue {
    pub topic: String,
    pub broker: String,
    pub id: u32,
}

impl Queue {
    /// The name of its lane.
    pub(crate) fn lane(&self) -> String {
        format!("{}@{}-{}", self.topic, self.broker, self.id)
    }

    /// The queue of a lane.
    pub(crate) fn parse(lane: &str) -> Result<Self> {
        let parts = lane.split_once('@').and_then(|(topic, rest)| {
            let (broker, id) = rest.rsplit_once('-')?;
            Some(Self { topic: topic.to_owned(), broker: broker.to_owned(), id: id.parse().ok()? })
        });
        parts
            .ok_or_else(|| Error::new(Code::StateIncompatible, format!("`{lane}` is not a queue of a topic")))
    }

    /// What requests say of it.
    fn fields(&self) -> Fields {
        fields([("topic", &self.topic), ("queueId", &self.id)])
    }
}

/// What a pull brought.
#[derive(Debug)]
pub(crate) struct Pulled {
    pub code: i64,
    /// Where the next pull goes on.
    pub next: u64,
    /// First offset there is.
    pub low: u64,
    /// Messages as they are stored.
    pub body: Vec<u8>,
}

impl Pulled {
    /// Reads the answer to a pull.
    pub(crate) fn read(answer: Answer) -> Result<Self> {
        let doing = "read";
        let usable = [answer::SUCCESS, answer::PULL_NOT_FOUND, answer::PULL_RETRY, answer::PULL_OFFSET_MOVED];
        if !usable.contains(&answer.code) {
            return Err(refused(Side::Source, doing, &answer));
        }
        let offset = |name| offset(&answer, name, Side::Source, doing);
        Ok(Self {
            code: answer.code,
            next: offset("nextBeginOffset")?,
            low: offset("minOffset")?,
            body: answer.body,
        })
    }
}

/// An offset among the fields of an answer; queues that were never written have -1 in some.
fn offset(answer: &Answer, name: &str, side: Side, doing: &str) -> Result<u64> {
    let number = answer.number(name).ok_or_else(|| senseless(side, doing, &format!("no `{name}`")))?;
    Ok(u64::try_from(number).unwrap_or(0))
}

/// Fields of a pull.
pub(crate) fn pull_fields(queue: &Queue, group: &str, from: u64, tags: &[String], hold_ms: u32) -> Fields {
    // The request says itself what it wants, and a broker with nothing may hold it back.
    const SUBSCRIPTION: u32 = 4;
    const HOLD: u32 = 2;
    let flags = SUBSCRIPTION | if hold_ms > 0 { HOLD } else { 0 };
    let wanted = if tags.is_empty() { "*".to_owned() } else { tags.join("||") };
    let mut fields = queue.fields();
    fields.extend(self::fields([
        ("consumerGroup", &group),
        ("queueOffset", &from),
        ("maxMsgNums", &1024),
        ("sysFlag", &flags),
        ("commitOffset", &0),
        ("suspendTimeoutMillis", &hold_ms),
        ("subscription", &wanted),
        ("subVersion", &0),
        ("expressionType", &"TAG"),
    ]));
    fields
}

/// Asks name servers and brokers. Calls block.
#[derive(Debug)]
pub(crate) struct Client {
    pub settings: Settings,
    side: Side,
    open: Mutex<HashMap<String, Connection>>,
    /// Address of each broker that was met.
    brokers: Mutex<HashMap<String, String>>,
}

impl Client {
    pub(crate) fn new(settings: Settings, side: Side) -> Self {
        Self { settings, side, open: Mutex::default(), brokers: Mutex::default() }
    }

    /// Asks one server; over a new connection when a kept one has gone. Every question may be asked twice.
    fn call(&self, address: &str, code: u16, fields: &Fields, doing: &str) -> Result<Answer> {
        let account = self.settings.account.as_ref();
        let take = || self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
        let fail = |error| broken(self.side, &format!("{doing} at {address}"), error);
        let mut kept = take();
        loop {
            let was_kept = kept.is_some();
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => Connection::open(address).map_err(fail)?,
            };
            match connection.call(code, fields, &[], account) {
                Ok(answer) => {
                    let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                    open.insert(address.to_owned(), connection);
                    return Ok(answer);
                }
                Err(_) if was_kept => {}
                Err(error) => return Err(fail(error)),
            }
        }
    }

    /// Asks the first name server that answers.
    fn ask_name_server(&self, code: u16, fields: &Fields, doing: &str) -> Result<Answer> {
        let mut failed = None;
        for address in &self.settings.name_servers {
            match self.call(address, code, fields, doing) {
                Ok(answer) => return Ok(answer),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::internal("no name server is set")))
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, answer: &Answer, doing: &str) -> Result<T> {
        if answer.code != answer::SUCCESS {
            return Err(refused(self.side, doing, answer));
        }
        body::parse(&answer.body).map_err(|error| senseless(self.side, doing, &error.to_string()))
    }

    /// Where the queues of a topic are; `None` when no broker has it.
    pub(crate) fn route(&self, topic: &str) -> Result<Option<Route>> {
        let doing = format!("ask where topic `{topic}` is");
        let fields = fields([("topic", &topic), ("acceptStandardJsonOnly", &true)]);
        let answer = self.ask_name_server(request::ROUTE, &fields, &doing)?;
        if answer.code == answer::TOPIC_NOT_EXIST {
            return Ok(None);
        }
        let route: Route = self.parse(&answer, &doing)?;
        let mut brokers = self.brokers.lock().unwrap_or_else(PoisonError::into_inner);
        for broker in &route.broker_datas {
            let address = if self.side == Side::Source { broker.any() } else { broker.master() };
            if let Some(address) = address {
                brokers.insert(broker.broker_name.clone(), address.clone());
            }
        }
        Ok(Some(route))
    }

    /// The queues of a topic that this side may use, in an order that is always the same; `None` when there is no such topic.
    pub(crate) fn queues(&self, topic: &str) -> Result<Option<Vec<Queue>>> {
        let Some(route) = self.route(topic)? else { return Ok(None) };
        let mut queues = Vec::new();
        for on in &route.queue_datas {
            let (right, count) = match self.side {
                Side::Source => (READABLE, on.read_queue_nums),
                Side::Sink => (WRITABLE, on.write_queue_nums),
            };
            let has_master =
                route.broker_datas.iter().any(|b| b.broker_name == on.broker_name && b.master().is_some());
            if on.perm & right == 0 || (self.side == Side::Sink && !has_master) {
                continue;
            }
            queues.extend((0..count).map(|id| Queue {
                topic: topic.to_owned(),
                broker: on.broker_name.clone(),
                id,
            }));
        }
        queues.sort();
        Ok(Some(queues))
    }

    /// All brokers.
    pub(crate) fn cluster(&self) -> Result<Cluster> {
        let doing = "ask for the brokers";
        let answer = self.ask_name_server(request::CLUSTER, &Fields::new(), doing)?;
        self.parse(&answer, doing)
    }

    /// Names of all topics that are not the servers' own.
    pub(crate) fn topics(&self) -> Result<Vec<String>> {
        let doing = "ask for the topics";
        let answer = self.ask_name_server(request::TOPICS, &Fields::new(), doing)?;
        let list: TopicList = self.parse(&answer, doing)?;
        let cluster = self.cluster()?;
        let names = cluster.broker_addr_table.keys().chain(cluster.cluster_addr_table.keys());
        let names: BTreeSet<&String> = names.collect();
        let own = |topic: &String| {
            names.contains(topic)
                || OWN_TOPICS.contains(&topic.as_str())
                || OWN_PREFIXES.iter().any(|p| topic.starts_with(p))
                || topic.ends_with(OWN_SUFFIX)
        };
        let mut topics: Vec<String> = list.topic_list.into_iter().filter(|topic| !own(topic)).collect();
        topics.sort();
        Ok(topics)
    }

    /// Where a queue's broker listens.
    pub(crate) fn address(&self, queue: &Queue) -> Result<String> {
        let known =
            || self.brokers.lock().unwrap_or_else(PoisonError::into_inner).get(&queue.broker).cloned();
        if known().is_none() {
            self.route(&queue.topic)?;
        }
        known().ok_or_else(|| {
            let why = std::io::Error::new(std::io::ErrorKind::NotFound, "the name servers do not know it");
            broken(self.side, &format!("reach broker `{}`", queue.broker), why)
        })
    }

    /// Forgets where a broker listens, so that the name servers are asked anew.
    pub(crate) fn forget(&self, broker: &str) {
        self.brokers.lock().unwrap_or_else(PoisonError::into_inner).remove(broker);
    }

    fn ask_queue(&self, queue: &Queue, code: u16, more: Fields, doing: &str) -> Result<Answer> {
        let doing = format!("{doing} queue {}", queue.lane());
        let address = self.address(queue)?;
        let mut fields = queue.fields();
        fields.extend(more);
        let answer =
            self.call(&address, code, &fields, &doing).inspect_err(|_| self.forget(&queue.broker))?;
        match answer.code {
            answer::SUCCESS | answer::QUERY_NOT_FOUND => Ok(answer),
            _ => Err(refused(self.side, &doing, &answer)),
        }
    }

    /// First offset there is, and the offset behind the last message.
    pub(crate) fn range(&self, queue: &Queue) -> Result<(u64, u64)> {
        let doing = "ask for the range of";
        let ask =
            |code| offset(&self.ask_queue(queue, code, Fields::new(), doing)?, "offset", self.side, doing);
        let low = ask(request::MIN_OFFSET)?;
        Ok((low, ask(request::MAX_OFFSET)?.max(low)))
    }

    /// First offset whose message was stored at this time or later.
    pub(crate) fn offset_at(&self, queue: &Queue, millis: i64) -> Result<u64> {
        let doing = "ask by time in";
        let more = fields([("timestamp", &millis)]);
        offset(&self.ask_queue(queue, request::OFFSET_BY_TIME, more, doing)?, "offset", self.side, doing)
    }

    /// Where the group is in a queue, if it has been there.
    pub(crate) fn group_offset(&self, queue: &Queue, group: &str) -> Result<Option<u64>> {
        let doing = "ask for the group's offset in";
        let more = fields([("consumerGroup", &group), ("setZeroIfNotFound", &false)]);
        let answer = self.ask_queue(queue, request::QUERY_GROUP_OFFSET, more, doing)?;
        if answer.code == answer::QUERY_NOT_FOUND {
            return Ok(None);
        }
        offset(&answer, "offset", self.side, doing).map(Some)
    }

    /// Notes where the group is in a queue.
    pub(crate) fn commit(&self, queue: &Queue, group: &str, at: u64) -> Result<()> {
        let more = fields([("consumerGroup", &group), ("commitOffset", &at)]);
        self.ask_queue(queue, request::UPDATE_GROUP_OFFSET, more, "commit the group's offset in").map(drop)
    }

    /// Pulls once, without waiting for messages.
    pub(crate) fn pull(&self, queue: &Queue, group: &str, from: u64, tags: &[String]) -> Result<Pulled> {
        let address = self.address(queue)?;
        let fields = pull_fields(queue, group, from, tags, 0);
        Pulled::read(self.call(&address, request::PULL, &fields, "read")?)
    }

    /// Makes a topic with so many queues on every broker.
    pub(crate) fn create_topic(&self, topic: &str, queues: u32) -> Result<()> {
        let doing = format!("create topic `{topic}`");
        let masters: BTreeMap<String, String> = self
            .cluster()?
            .broker_addr_table
            .into_iter()
            .filter_map(|(name, broker): (String, BrokerData)| Some((name, broker.master()?.clone())))
            .collect();
        if masters.is_empty() {
            return Err(senseless(self.side, &doing, "the name servers know no broker that can be written"));
        }
        let fields = fields([
            ("topic", &topic),
            ("defaultTopic", &"TBW102"),
            ("readQueueNums", &queues),
            ("writeQueueNums", &queues),
            ("perm", &(READABLE | WRITABLE)),
            ("topicFilterType", &"SINGLE_TAG"),
            ("topicSysFlag", &0),
            ("order", &false),
            ("attributes", &""),
        ]);
        for address in masters.values() {
            let answer = self.call(address, request::CREATE_TOPIC, &fields, &doing)?;
            if answer.code != answer::SUCCESS {
                return Err(refused(self.side, &doing, &answer));
            }
        }
        Ok(())
    }

    /// The largest message that a queue's broker takes, if it tells.
    pub(crate) fn largest_message(&self, queue: &Queue) -> Result<Option<usize>> {
        let address = self.address(queue)?;
        let answer = self.call(&address, request::BROKER_CONFIG, &Fields::new(), "ask for the settings")?;
        let text = String::from_utf8_lossy(&answer.body);
        let line = text.lines().find_map(|line| line.strip_prefix("maxMessageSize="));
        Ok(line.and_then(|value| value.trim().parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_name_their_queue() {
        let queue = Queue { topic: "%odd|t-1".into(), broker: "broker-a-0".into(), id: 12 };
        assert_eq!(queue.lane(), "%odd|t-1@broker-a-0-12");
        assert_eq!(Queue::parse(&queue.lane()).unwrap(), queue);
        for wrong in ["t-0", "t@b", "t@b-x", ""] {
            assert_eq!(Queue::parse(wrong).unwrap_err().code(), Code::StateIncompatible, "{wrong}");
        }
    }
}
