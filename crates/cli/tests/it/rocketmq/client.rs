//! Owns what a test does with a broker by itself, by a few requests of its protocol: topics, messages in, messages out.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use canalis_testkit::Server;
use serde_json::{Map, Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// A message as it stands in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub queue: u32,
    pub offset: u64,
    pub key: Option<String>,
    pub tag: Option<String>,
    /// Empty bodies are no value.
    pub value: Option<String>,
}

/// A message to put: key, tag, value.
pub type New<'a> = (Option<&'a str>, Option<&'a str>, &'a str);

/// A name no other test uses.
pub fn fresh(prefix: &str) -> String {
    format!("{prefix}-{:08x}", rand::random::<u32>())
}

/// Code, fields and body of the answer to a request.
fn call(port: u16, code: u16, fields: Value, body: &[u8]) -> (i64, Map<String, Value>, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let header =
        json!({"code": code, "language": "OTHER", "version": 0, "opaque": 1, "flag": 0, "extFields": fields});
    let header = header.to_string().into_bytes();
    let mut frame = Vec::new();
    frame.extend(u32::try_from(4 + header.len() + body.len()).unwrap().to_be_bytes());
    frame.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
    frame.extend(header);
    frame.extend(body);
    stream.write_all(&frame).unwrap();
    let mut word = [0; 4];
    stream.read_exact(&mut word).unwrap();
    let mut rest = vec![0; u32::from_be_bytes(word) as usize];
    stream.read_exact(&mut rest).unwrap();
    let head = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
    let answer: Value = serde_json::from_slice(&rest[4..4 + head]).unwrap();
    let fields = answer["extFields"].as_object().cloned().unwrap_or_default();
    (answer["code"].as_i64().unwrap(), fields, rest[4 + head..].to_vec())
}

/// Where the broker listens.
fn broker(server: &Server) -> u16 {
    let (_, _, body) = call(server.port, 106, json!({}), &[]);
    let text = String::from_utf8(body).unwrap();
    let (_, rest) = text.split_once("\"127.0.0.1:").unwrap();
    rest.split_once('"').unwrap().0.parse().unwrap()
}

/// Number of queues of a topic; none when the name server does not know it.
pub fn queues(server: &Server, topic: &str) -> Option<u64> {
    let fields = json!({"topic": topic, "acceptStandardJsonOnly": "true"});
    let (code, _, body) = call(server.port, 105, fields, &[]);
    if code == 17 {
        return None;
    }
    assert_eq!(code, 0);
    serde_json::from_slice::<Value>(&body).unwrap()["queueDatas"][0]["readQueueNums"].as_u64()
}

fn until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "the broker did not get there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes a topic, or gives it more queues.
pub fn create(server: &Server, topic: &str, count: u32) {
    let fields = json!({
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": count.to_string(),
        "writeQueueNums": count.to_string(), "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0",
        "order": "false", "attributes": "",
    });
    assert_eq!(call(broker(server), 17, fields, &[]).0, 0);
    until(|| queues(server, topic) == Some(u64::from(count)));
}

fn offset(server: &Server, code: u16, topic: &str, queue: u32) -> u64 {
    let fields = json!({"topic": topic, "queueId": queue.to_string()});
    let (code, fields, _) = call(broker(server), code, fields, &[]);
    assert_eq!(code, 0, "{fields:?}");
    fields["offset"].as_str().unwrap().parse().unwrap()
}

/// First offset and the one behind the last message.
pub fn range(server: &Server, topic: &str, queue: u32) -> (u64, u64) {
    (offset(server, 31, topic, queue), offset(server, 30, topic, queue))
}

/// Where a group is.
pub fn group_offset(server: &Server, group: &str, topic: &str, queue: u32) -> Option<u64> {
    let fields = json!({
        "consumerGroup": group, "topic": topic, "queueId": queue.to_string(), "setZeroIfNotFound": "false",
    });
    let (code, fields, _) = call(broker(server), 14, fields, &[]);
    (code == 0).then(|| fields["offset"].as_str().unwrap().parse().unwrap())
}

fn properties(key: Option<&str>, tag: Option<&str>) -> String {
    let pair = |name: &str, value: Option<&str>| {
        value.map(|value| format!("{name}\u{1}{value}\u{2}")).unwrap_or_default()
    };
    pair("KEYS", key) + &pair("TAGS", tag)
}

fn send_fields(topic: &str, queue: u32, flags: u32, properties: &str, batch: bool) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    json!({
        "a": "test", "b": topic, "c": "TBW102", "d": "4", "e": queue.to_string(), "f": flags.to_string(),
        "g": now.to_string(), "h": "0", "i": properties, "j": "0", "k": "false", "m": batch.to_string(),
    })
}

/// Puts messages into a queue and waits until they can be read.
pub fn put(server: &Server, topic: &str, queue: u32, messages: &[New<'_>]) {
    for messages in messages.chunks(500) {
        let mut body = Vec::new();
        for (key, tag, value) in messages {
            let properties = properties(*key, *tag);
            let length = 22 + value.len() + properties.len();
            body.extend(u32::try_from(length).unwrap().to_be_bytes());
            body.extend([0; 12]);
            body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
            body.extend(value.bytes());
            body.extend(u16::try_from(properties.len()).unwrap().to_be_bytes());
            body.extend(properties.bytes());
        }
        let before = range(server, topic, queue).1;
        // A busy broker refuses; it has done nothing then.
        until(|| match call(broker(server), 320, send_fields(topic, queue, 0, "", true), &body).0 {
            0 => true,
            2 => false,
            code => panic!("code {code}"),
        });
        until(|| range(server, topic, queue).1 == before + messages.len() as u64);
    }
}

/// Puts a message in a transaction of its own, committed or given up.
pub fn put_transaction(server: &Server, topic: &str, value: &str, commit: bool) {
    let port = broker(server);
    let properties = format!("TRAN_MSG\u{1}true\u{2}PGROUP\u{1}test\u{2}UNIQ_KEY\u{1}{}\u{2}", fresh("x"));
    let (code, fields, _) = call(port, 310, send_fields(topic, 0, 4, &properties, false), value.as_bytes());
    assert_eq!(code, 0, "{fields:?}");
    // The id is address and place in the log.
    let id = fields["msgId"].as_str().unwrap();
    let place = u64::from_str_radix(&id[id.len() - 16..], 16).unwrap();
    let end = json!({
        "producerGroup": "test", "tranStateTableOffset": fields["queueOffset"], "commitLogOffset": place.to_string(),
        "commitOrRollback": if commit { "8" } else { "12" }, "fromTransactionCheck": "false", "msgId": id,
        "topic": topic,
    });
    let before = range(server, topic, 0).1;
    let (code, fields, _) = call(port, 37, end, &[]);
    assert_eq!(code, 0, "{fields:?}");
    until(|| range(server, topic, 0).1 == before + u64::from(commit));
}

/// Removes all files of a stopped broker's log but the newest two.
pub fn remove_oldest(server: &Server) {
    let log = server.log.parent().unwrap().join("data/commitlog");
    let mut files: Vec<_> = std::fs::read_dir(&log).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 2, "{files:?}");
    for file in &files[..files.len() - 2] {
        std::fs::remove_file(file).unwrap();
    }
}

/// All messages of a topic, by queue and offset.
pub fn stored(server: &Server, topic: &str) -> Vec<Stored> {
    let mut found = Vec::new();
    for queue in 0..u32::try_from(queues(server, topic).unwrap_or_default()).unwrap() {
        let (mut at, end) = range(server, topic, queue);
        while at < end {
            let fields = json!({
                "consumerGroup": "test", "topic": topic, "queueId": queue.to_string(), "queueOffset": at.to_string(),
                "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0",
                "subscription": "*", "subVersion": "0", "expressionType": "TAG",
            });
            let (code, fields, body) = call(broker(server), 11, fields, &[]);
            assert!(matches!(code, 0 | 20), "{code} {fields:?}");
            let mut rest = &body[..];
            while !rest.is_empty() {
                let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
                found.push(read(&rest[..length]));
                rest = &rest[length..];
            }
            at = fields["nextBeginOffset"].as_str().unwrap().parse().unwrap();
        }
    }
    found
}

/// Reads a message with addresses of IPv4: the parts before the body have 84 bytes.
fn read(bytes: &[u8]) -> Stored {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let length = word(84) as usize;
    let (value, rest) = bytes[88..].split_at(length);
    let properties = String::from_utf8(rest[1 + usize::from(rest[0]) + 2..].to_vec()).unwrap();
    let property = |name: &str| {
        let pairs = properties.split('\u{2}').filter_map(|pair| pair.split_once('\u{1}'));
        pairs.filter(|(n, _)| *n == name).map(|(_, value)| value.to_owned()).next()
    };
    Stored {
        queue: word(12),
        offset: u64::from_be_bytes(bytes[20..28].try_into().unwrap()),
        key: property("KEYS"),
        tag: property("TAGS"),
        value: (length > 0).then(|| String::from_utf8(value.to_vec()).unwrap()),
    }
}
