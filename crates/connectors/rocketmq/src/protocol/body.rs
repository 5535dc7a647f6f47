//! Owns the JSON bodies of answers: routes of topics, brokers of the cluster, names of topics.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, de::DeserializeOwned};

/// Bit of a queue that can be read.
pub(crate) const READABLE: u32 = 4;
/// Bit of a queue that can be written.
pub(crate) const WRITABLE: u32 = 2;

/// Where the queues of a topic are.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Route {
    #[serde(default)]
    pub broker_datas: Vec<BrokerData>,
    #[serde(default)]
    pub queue_datas: Vec<QueueData>,
}

/// Addresses of a broker.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BrokerData {
    pub broker_name: String,
    /// By id; 0 is the master.
    pub broker_addrs: BTreeMap<u64, String>,
}

impl BrokerData {
    /// Where the master listens.
    pub(crate) fn master(&self) -> Option<&String> {
        self.broker_addrs.get(&0)
    }

    /// Where messages can be read: the master, or who is left of its copies.
    pub(crate) fn any(&self) -> Option<&String> {
        self.broker_addrs.values().next()
    }
}

/// Queues of a topic on one broker.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueData {
    pub broker_name: String,
    pub perm: u32,
    pub read_queue_nums: u32,
    pub write_queue_nums: u32,
}

/// Brokers of all clusters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cluster {
    #[serde(default)]
    pub broker_addr_table: BTreeMap<String, BrokerData>,
    #[serde(default)]
    pub cluster_addr_table: BTreeMap<String, Vec<String>>,
}

/// Names of topics.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TopicList {
    #[serde(default)]
    pub topic_list: Vec<String>,
}

/// Reads a body.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&with_quoted_keys(body))
}

/// Puts quotes around keys that are bare numbers, as name servers write the ids of brokers.
fn with_quoted_keys(body: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let (mut copied, mut at, mut in_text, mut last) = (0, 0, false, 0_u8);
    while at < body.len() {
        let byte = body[at];
        if in_text {
            at += if byte == b'\\' { 2 } else { 1 };
            in_text = byte != b'"';
            continue;
        }
        if byte.is_ascii_digit() && matches!(last, b'{' | b',') {
            let end = at + body[at..].iter().take_while(|b| b.is_ascii_digit()).count();
            if body.get(end) == Some(&b':') {
                out.extend_from_slice(&body[copied..at]);
                out.push(b'"');
                out.extend_from_slice(&body[at..end]);
                out.push(b'"');
                copied = end;
            }
            at = end;
            last = b'0';
            continue;
        }
        in_text = byte == b'"';
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(body);
    }
    out.extend_from_slice(&body[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are answers of a RocketMQ 5.3.3.
    #[test]
    fn bodies_are_read_with_bare_and_with_quoted_ids() {
        let cluster: Cluster = parse(br#"{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"127.0.0.1:21911"},"brokerName":"broker-a","cluster":"canalis","enableActingMaster":false}},"clusterAddrTable":{"canalis":["broker-a"]}}"#).unwrap();
        assert_eq!(cluster.broker_addr_table["broker-a"].master().unwrap(), "127.0.0.1:21911");
        assert_eq!(cluster.cluster_addr_table["canalis"], ["broker-a"]);
        let route: Route = parse(br#"{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:21911"},"brokerName":"broker-a","cluster":"canalis","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":2,"topicSysFlag":0,"writeQueueNums":3}]}"#).unwrap();
        let queues = &route.queue_datas[0];
        assert_eq!((queues.read_queue_nums, queues.write_queue_nums), (2, 3));
        assert_eq!(queues.perm, READABLE | WRITABLE);
    }

    #[test]
    fn only_bare_keys_get_quotes() {
        for (body, expect) in [
            (r#"{1:"a",22:{3:[4,5]}}"#, r#"{"1":"a","22":{"3":[4,5]}}"#),
            (r#"{"a":"{1:\"2,3:"}"#, r#"{"a":"{1:\"2,3:"}"#),
            (r#"{ 1 : 2"#, r#"{ 1 : 2"#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(&*with_quoted_keys(body.as_bytes()), expect.as_bytes());
        }
    }
}
