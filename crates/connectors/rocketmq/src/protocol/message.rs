//! Owns messages as brokers store and deliver them, and as they take them in batches.

use std::{borrow::Cow, io::Read};

use base64::{Engine, engine::general_purpose::STANDARD};

/// Mark of a message whose topic has a length of one byte.
const MAGIC: u32 = 0xdaa3_20a7;
/// Mark of a message whose topic has a length of two bytes.
const MAGIC_2: u32 = 0xdaa3_20ab;
/// Flags of a message.
const COMPRESSED: u32 = 1;
const BORN_HOST_V6: u32 = 1 << 4;
const STORE_HOST_V6: u32 = 1 << 5;
const INNER_BATCH: u32 = 1 << 7;
const COMPRESSION: u32 = 7 << 8;
const LZ4: u32 = 1 << 8;
const ZSTD: u32 = 2 << 8;
/// Ends of names and of values among properties.
const NAME_END: u8 = 1;
const VALUE_END: u8 = 2;
/// Longest text of properties.
pub const MAX_PROPERTIES: usize = i16::MAX as usize;
/// Properties: keys, tag, and two of ours, for keys that properties cannot hold and for values that are there and empty.
const KEYS: &str = "KEYS";
const TAGS: &str = "TAGS";
const KEY_BASE64: &str = "CANALIS_KEY_BASE64";
const EMPTY_VALUE: &str = "CANALIS_EMPTY_VALUE";

/// A message lent from the bytes that a broker delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredMessage<'a> {
    /// Offset in its queue.
    pub queue_offset: u64,
    /// The queue.
    pub queue: u32,
    /// When the producer made it, in milliseconds since the epoch.
    pub born_ms: i64,
    /// Topic.
    pub topic: &'a str,
    flags: u32,
    check: u32,
    body: &'a [u8],
    properties: &'a [u8],
}

/// What a message holds when it cannot be handed on as it is: its body damaged, in a form that is not read, or too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub String);

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

/// The first message of what a broker delivered, and how many bytes it takes.
///
/// # Errors
/// When the bytes are no message, in words.
pub fn decode(bytes: &[u8]) -> Result<(StoredMessage<'_>, usize), String> {
    let mut all = Cursor(bytes);
    let length = all.u32().ok_or("it ends in the length of a message")? as usize;
    let rest = length.checked_sub(4).and_then(|n| all.bytes(n));
    let rest = rest.ok_or_else(|| format!("a message says {length} bytes and there are {}", bytes.len()))?;
    let message = fields(Cursor(rest))
        .ok_or_else(|| "a message is shorter than its parts, or not a message".to_owned())?;
    Ok((message, length))
}

fn fields(mut at: Cursor<'_>) -> Option<StoredMessage<'_>> {
    let magic = at.u32()?;
    if magic != MAGIC && magic != MAGIC_2 {
        return None;
    }
    let check = at.u32()?;
    let queue = at.u32()?;
    let _flag_of_the_user = at.u32()?;
    let queue_offset = u64::try_from(at.i64()?).ok()?;
    let _place_in_the_log = at.i64()?;
    let flags = at.u32()?;
    let born_ms = at.i64()?;
    at.bytes(if flags & BORN_HOST_V6 == 0 { 8 } else { 20 })?;
    let _stored_ms = at.i64()?;
    at.bytes(if flags & STORE_HOST_V6 == 0 { 8 } else { 20 })?;
    let _times_consumed = at.u32()?;
    let _place_of_the_prepared = at.i64()?;
    let length = at.u32()? as usize;
    let body = at.bytes(length)?;
    let length = if magic == MAGIC { usize::from(at.bytes(1)?[0]) } else { usize::from(at.u16()?) };
    let topic = std::str::from_utf8(at.bytes(length)?).ok()?;
    let length = usize::from(at.u16()?);
    let properties = at.bytes(length)?;
    Some(StoredMessage { queue_offset, queue, born_ms, topic, flags, check, body, properties })
}

impl<'a> StoredMessage<'a> {
    /// The value of a property.
    fn property(&self, name: &str) -> Option<&'a [u8]> {
        self.properties.split(|b| *b == VALUE_END).find_map(|pair| {
            let rest = pair.strip_prefix(name.as_bytes())?;
            rest.strip_prefix(&[NAME_END])
        })
    }

    /// Whether it has one of these tags; no tags stand for all messages.
    pub fn has_tag(&self, tags: &[String]) -> bool {
        tags.is_empty() || self.property(TAGS).is_some_and(|tag| tags.iter().any(|t| t.as_bytes() == tag))
    }

    /// Its key, if it has one.
    ///
    /// # Errors
    /// When a key in Base64 is none.
    pub fn key(&self) -> Result<Option<Cow<'a, [u8]>>, Unreadable> {
        match self.property(KEY_BASE64) {
            Some(text) => match STANDARD.decode(text) {
                Ok(key) => Ok(Some(Cow::Owned(key))),
                Err(error) => Err(Unreadable(format!("property {KEY_BASE64}: {error}"))),
            },
            None => Ok(self.property(KEYS).map(Cow::Borrowed)),
        }
    }

    /// Its body as the producer gave it, of at most so many bytes; an empty body is no value.
    ///
    /// # Errors
    /// When its check sum is another, it is compressed in a way that is not read, or larger.
    pub fn value(&self, most: usize) -> Result<Option<Cow<'a, [u8]>>, Unreadable> {
        if self.flags & INNER_BATCH != 0 {
            return Err(Unreadable("it is a batch inside of a message, which is not read".to_owned()));
        }
        // Brokers leave the sum of an empty body out.
        if !self.body.is_empty() && crc32fast::hash(self.body) & 0x7fff_ffff != self.check {
            return Err(Unreadable("its body has another check sum".to_owned()));
        }
        let body = if self.flags & COMPRESSED == 0 {
            Cow::Borrowed(self.body)
        } else {
            Cow::Owned(decompress(self.body, self.flags & COMPRESSION, most)?)
        };
        if body.len() > most {
            return Err(Unreadable(format!("it has {} bytes, more than {most}", body.len())));
        }
        let is_value = !body.is_empty() || self.property(EMPTY_VALUE).is_some();
        Ok(is_value.then_some(body))
    }

    /// Its body as it is stored.
    pub fn stored_body(&self) -> &'a [u8] {
        self.body
    }
}

fn decompress(body: &[u8], kind: u32, most: usize) -> Result<Vec<u8>, Unreadable> {
    let fail = |error: std::io::Error| Unreadable(format!("its compressed body: {error}"));
    let limit = most as u64 + 1;
    let mut out = Vec::new();
    match kind {
        LZ4 => return Err(Unreadable("it is compressed by LZ4, which is not read".to_owned())),
        ZSTD => zstd::Decoder::new(body)
            .and_then(|decoder| decoder.take(limit).read_to_end(&mut out))
            .map_err(fail)?,
        // Producers before 5 give no kind.
        _ => flate2::read::ZlibDecoder::new(body).take(limit).read_to_end(&mut out).map_err(fail)?,
    };
    if out.len() > most { Err(Unreadable(format!("it has more than {most} bytes"))) } else { Ok(out) }
}

/// Adds a message to a batch. Returns false, with the batch as it was, when its properties are longer than brokers take.
pub fn encode(batch: &mut Vec<u8>, key: Option<&[u8]>, value: Option<&[u8]>, tag: Option<&str>) -> bool {
    let begin = batch.len();
    let body = value.unwrap_or_default();
    // Length, mark, check sum and flag, of which brokers fill in what they need; lengths are corrected below.
    batch.extend_from_slice(&[0; 16]);
    batch.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    batch.extend_from_slice(body);
    let properties = batch.len() + 2;
    batch.extend_from_slice(&[0; 2]);
    let mut property = |name: &str, value: &[u8]| {
        batch.extend_from_slice(name.as_bytes());
        batch.push(NAME_END);
        batch.extend_from_slice(value);
        batch.push(VALUE_END);
    };
    match key {
        Some(key) if is_plain(key) => property(KEYS, key),
        Some(key) => property(KEY_BASE64, STANDARD.encode(key).as_bytes()),
        None => {}
    }
    if let Some(tag) = tag {
        property(TAGS, tag.as_bytes());
    }
    if value.is_some_and(<[u8]>::is_empty) {
        property(EMPTY_VALUE, b"1");
    }
    let length = batch.len() - properties;
    let (Ok(whole), Some(short)) =
        (u32::try_from(batch.len() - begin), u16::try_from(length).ok().filter(|_| length <= MAX_PROPERTIES))
    else {
        batch.truncate(begin);
        return false;
    };
    batch[begin..begin + 4].copy_from_slice(&whole.to_be_bytes());
    batch[properties - 2..properties].copy_from_slice(&short.to_be_bytes());
    true
}

/// Whether bytes can be the value of a property.
fn is_plain(key: &[u8]) -> bool {
    !key.is_empty()
        && !key.iter().any(|b| matches!(*b, NAME_END | VALUE_END))
        && std::str::from_utf8(key).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as a RocketMQ 5.3.3 delivered it: `hello` with key `k1` and tag `A`, at offset 0 of queue 0 of topic `t1`.
    const HELLO: &[u8] = b"\x00\x00\x00\xa8\xda\xa3 \xa76\x10\xa6\x86\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xa21\xd3]\xb3\x7f\x00\x00\x01\x00\x00\xa6\xbe\x00\x00\x01\xa21\xd3]\xcc\x7f\x00\x00\x01\x00\x00U\x97\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05hello\x02t1\x00FKEYS\x01k1\x02TAGS\x01A\x02MSG_REGION\x01DefaultRegion\x02CLUSTER\x01canalis\x02TRACE_ON\x01true\x02";

    #[test]
    fn a_message_of_a_broker_is_read() {
        let (message, length) = decode(HELLO).unwrap();
        assert_eq!(length, 168);
        assert_eq!((message.topic, message.queue, message.queue_offset), ("t1", 0, 0));
        assert_eq!(message.born_ms, 0x01a2_31d3_5db3);
        assert_eq!(message.key().unwrap().as_deref(), Some(&b"k1"[..]));
        assert_eq!(message.value(5).unwrap().as_deref(), Some(&b"hello"[..]));
        assert!(message.value(4).is_err());
        let tags = |t: &[&str]| t.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        assert!(message.has_tag(&[]) && message.has_tag(&tags(&["B", "A"])));
        assert!(!message.has_tag(&tags(&["B", "AA", ""])));
        for end in 0..HELLO.len() {
            assert!(decode(&HELLO[..end]).is_err(), "{end}");
        }
        let mut damaged = HELLO.to_vec();
        damaged[90] ^= 1;
        assert!(decode(&damaged).unwrap().0.value(100).is_err());
    }

    /// As Java producers compress bodies of 4 KiB and more; the bytes come from Python's zlib.
    #[test]
    fn a_compressed_body_is_read_up_to_its_limit() {
        let body = b"x\x9cKLLL\x04\x00\x03\xce\x01\x85";
        let message = StoredMessage {
            queue_offset: 0,
            queue: 0,
            born_ms: 0,
            topic: "t",
            flags: COMPRESSED,
            check: crc32fast::hash(body) & 0x7fff_ffff,
            body,
            properties: b"",
        };
        assert!(message.value(3).is_err());
        assert_eq!(message.value(4).unwrap().as_deref(), Some(&b"aaaa"[..]));
        assert!(StoredMessage { flags: COMPRESSED | LZ4, ..message }.value(9).is_err());
        assert_eq!(message.key().unwrap(), None);
    }

    /// The bytes are those that a RocketMQ 5.3.3 took as a batch and delivered as the message above.
    #[test]
    fn a_batch_is_written_as_brokers_take_it() {
        let mut batch = Vec::new();
        assert!(encode(&mut batch, Some(b"k1"), Some(b"hello"), Some("A")));
        let expect = b"\x00\x00\x00\x2a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05hello\x00\x0fKEYS\x01k1\x02TAGS\x01A\x02";
        assert_eq!(batch, expect);
        assert!(!encode(&mut batch, Some(&[b'k'; MAX_PROPERTIES]), None, None));
        assert_eq!(batch, expect);
        let mut batch = Vec::new();
        assert!(encode(&mut batch, Some(b"a\x01"), Some(b""), None));
        assert!(
            batch.ends_with(b"\x00\x2eCANALIS_KEY_BASE64\x01YQE=\x02CANALIS_EMPTY_VALUE\x011\x02"),
            "{batch:?}"
        );
    }
}
