//! Owns frames: a length, the length of the header, the header as JSON, the body; and the signature of requests.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde::{Deserialize, Serialize};

/// Largest frame that is read. Brokers take messages of 4 MiB unless they are told otherwise.
const MAX_FRAME: u32 = 256 << 20;
/// Largest header that is read.
const MAX_HEADER: u32 = 1 << 20;
/// Bit of an answer in the flags.
const ANSWER: u32 = 1;

/// Fields of a request or an answer, in the order that signatures want.
pub(crate) type Fields = BTreeMap<String, String>;

/// Fields from names and values.
pub(crate) fn fields<const N: usize>(of: [(&str, &dyn ToString); N]) -> Fields {
    of.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// The keys of an account.
#[derive(Clone)]
pub(crate) struct Account {
    pub access_key: String,
    pub secret_key: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

impl Account {
    /// Adds name and signature: HMAC-SHA1 of all values in the order of their names, then the body.
    fn sign(&self, fields: &mut Fields, body: &[u8]) {
        fields.insert("AccessKey".to_owned(), self.access_key.clone());
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.secret_key.as_bytes());
        let mut context = hmac::Context::with_key(&key);
        for value in fields.values() {
            context.update(value.as_bytes());
        }
        context.update(body);
        fields.insert("Signature".to_owned(), STANDARD.encode(context.sign()));
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    code: u16,
    language: &'static str,
    version: u16,
    opaque: i32,
    flag: u32,
    ext_fields: &'a Fields,
    #[serde(rename = "serializeTypeCurrentRPC")]
    serialization: &'static str,
}

/// The bytes of a request. `opaque` comes back in its answer.
pub(crate) fn request(
    code: u16,
    opaque: i32,
    mut fields: Fields,
    body: &[u8],
    account: Option<&Account>,
) -> Vec<u8> {
    if let Some(account) = account {
        account.sign(&mut fields, body);
    }
    let request = Request {
        code,
        language: "OTHER",
        version: 0,
        opaque,
        flag: 0,
        ext_fields: &fields,
        serialization: "JSON",
    };
    // Maps of texts always serialize.
    let header = serde_json::to_vec(&request).unwrap_or_default();
    let mut frame = Vec::with_capacity(8 + header.len() + body.len());
    // Bodies are far below 2 GiB; a frame that is not would be refused by its length.
    let length = u32::try_from(4 + header.len() + body.len()).unwrap_or(u32::MAX);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&u32::try_from(header.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(body);
    frame
}

/// A frame that came: an answer, or a request of the broker's own.
#[derive(Debug)]
pub(crate) struct Answer {
    pub code: i64,
    pub opaque: i32,
    pub remark: String,
    pub fields: Fields,
    pub body: Vec<u8>,
    /// False for a request of the broker's own, which nobody has to heed.
    pub is_answer: bool,
}

impl Answer {
    /// A number among the fields.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.fields.get(name)?.parse().ok()
    }

    /// What it says, for people.
    pub(crate) fn text(&self) -> String {
        let line = self.remark.lines().next().unwrap_or_default();
        if line.is_empty() { format!("code {}", self.code) } else { format!("{line} (code {})", self.code) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    code: i64,
    #[serde(default)]
    opaque: i32,
    #[serde(default)]
    flag: u32,
    #[serde(default)]
    remark: Option<String>,
    #[serde(default)]
    ext_fields: Option<BTreeMap<String, Option<String>>>,
}

/// Reads the next frame.
pub(crate) fn read(from: &mut impl Read) -> io::Result<Answer> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut word = [0; 4];
    from.read_exact(&mut word)?;
    let length = u32::from_be_bytes(word);
    if !(4..=MAX_FRAME).contains(&length) {
        return Err(wrong(format!("a frame of {length} bytes; this is no RocketMQ, or it speaks TLS")));
    }
    from.read_exact(&mut word)?;
    // The highest byte tells how the header is written; requests in JSON are answered in JSON.
    let [serialization, high, middle, low] = word;
    let header_length = u32::from_be_bytes([0, high, middle, low]);
    if serialization != 0 || header_length > (length - 4).min(MAX_HEADER) {
        return Err(wrong(format!("a header of kind {serialization} and {header_length} bytes")));
    }
    let header = read_bytes(from, header_length)?;
    let body = read_bytes(from, length - 4 - header_length)?;
    let header: Header =
        serde_json::from_slice(&header).map_err(|error| wrong(format!("header: {error}")))?;
    let fields = header.ext_fields.unwrap_or_default();
    Ok(Answer {
        code: header.code,
        opaque: header.opaque,
        remark: header.remark.unwrap_or_default(),
        fields: fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        body,
        is_answer: header.flag & ANSWER != 0,
    })
}

/// Exactly so many bytes; memory is taken as they come.
fn read_bytes(from: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity((length as usize).min(1 << 20));
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() == length as usize { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Python's hmac module over `AK3ordersbody`: the values of AccessKey, queueId and topic, then the body.
    #[test]
    fn requests_are_signed_over_their_values_and_their_body() {
        let account = Account { access_key: "AK".into(), secret_key: "secret".into() };
        let mut signed = fields([("topic", &"orders"), ("queueId", &3)]);
        account.sign(&mut signed, b"body");
        assert_eq!(signed["Signature"], "I32ETv+Wri+0SHRWx7NWnuqg9yM=");
    }

    #[test]
    fn frames_are_read_and_refused() {
        let header = br#"{"code":17,"flag":1,"language":"JAVA","opaque":9,"remark":"No topic\nSee","extFields":{"offset":"5","none":null},"version":479}"#;
        let mut bytes = Vec::new();
        let head = u32::try_from(header.len()).unwrap();
        bytes.extend_from_slice(&(4 + head + 3).to_be_bytes());
        bytes.extend_from_slice(&head.to_be_bytes());
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(b"abc");
        let answer = read(&mut &bytes[..]).unwrap();
        assert_eq!((answer.code, answer.opaque, answer.is_answer), (17, 9, true));
        assert_eq!(answer.number("offset"), Some(5));
        assert_eq!((answer.text().as_str(), &answer.body[..]), ("No topic (code 17)", &b"abc"[..]));
        assert_eq!(read(&mut &bytes[..bytes.len() - 1]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for damaged in [0x7fff_ffff_u32, 3] {
            bytes[..4].copy_from_slice(&damaged.to_be_bytes());
            assert_eq!(read(&mut &bytes[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
