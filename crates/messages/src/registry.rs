//! Owns [`Registry`]: the client of a schema registry that speaks the REST protocol of Confluent's.
//!
//! Calls block the thread, are made once for each schema, and then answered from memory.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_formats::avro::SchemaSource;
use canalis_types::{Code, Error, Result};
use serde_json::{Value, json};
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig},
};

/// How long a call takes at most, connecting included.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of the longest answer that is read.
const LONGEST: u64 = 16 << 20;
const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";

/// Where a registry is, and how it is used.
#[derive(Clone, Default)]
pub struct RegistryOptions {
    /// Base addresses; the next is asked where one does not answer.
    pub urls: Vec<String>,
    /// Name and password for basic authentication.
    pub account: Option<(String, String)>,
    /// Certificates that are trusted, PEM; without them those of the public authorities.
    pub authorities: Option<String>,
    /// Registers schemas that are not known, instead of refusing them.
    pub register: bool,
}

/// The password stays out of logs.
impl fmt::Debug for RegistryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryOptions").field("urls", &self.urls).finish_non_exhaustive()
    }
}

/// A schema registry.
pub struct Registry {
    agent: Agent,
    urls: Vec<String>,
    authorization: Option<String>,
    register: bool,
    schemas: Mutex<HashMap<u32, String>>,
    ids: Mutex<HashMap<(String, String), u32>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("urls", &self.urls).finish_non_exhaustive()
    }
}

/// What a registry answered.
struct Answer {
    status: u16,
    body: Value,
    url: String,
}

impl Answer {
    /// What it says of an error.
    fn message(&self) -> String {
        let code = self.body["error_code"].as_i64().map(|code| format!(" ({code})")).unwrap_or_default();
        let text = self.body["message"].as_str().unwrap_or("it gives no reason");
        format!("{} answers {}{code}: {text}", self.url, self.status)
    }
}

/// Which side of a pipeline a call is for, which decides whose error it is.
#[derive(Clone, Copy)]
enum Side {
    Source,
    Sink,
}

impl Side {
    fn unreachable(self) -> Code {
        match self {
            Self::Source => Code::SourceUnreachable,
            Self::Sink => Code::SinkUnreachable,
        }
    }

    fn denied(self) -> Code {
        match self {
            Self::Source => Code::SourceAccessDenied,
            Self::Sink => Code::SinkAccessDenied,
        }
    }
}

impl Registry {
    /// A client, which does not connect yet.
    ///
    /// # Errors
    /// Why the addresses or certificates cannot be used.
    pub fn new(options: RegistryOptions) -> std::result::Result<Self, String> {
        let urls: Vec<String> = options.urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
        for url in &urls {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err("an address must begin with `http://` or `https://`".to_owned());
            }
            let host = url.split_once("://").map_or("", |(_, rest)| rest).split('/').next().unwrap_or("");
            if host.contains('@') {
                return Err("name and password have options of their own".to_owned());
            }
        }
        if urls.is_empty() {
            return Err("names no address".to_owned());
        }
        let roots = match &options.authorities {
            Some(pem) => RootCerts::new_with_certs(&certificates(pem)?),
            None => RootCerts::WebPki,
        };
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        let basic = |(user, password): &(String, String)| {
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        };
        Ok(Self {
            agent: config.into(),
            urls,
            authorization: options.account.as_ref().map(basic),
            register: options.register,
            schemas: Mutex::default(),
            ids: Mutex::default(),
        })
    }

    fn call(&self, side: Side, path: &str, body: Option<&Value>) -> Result<Answer> {
        let mut failure = None;
        for base in &self.urls {
            let url = format!("{base}{path}");
            match self.ask(&url, body) {
                Ok(answer) if matches!(answer.status, 401 | 403) => {
                    let what = format!("the schema registry {}", answer.message());
                    return Err(Error::new(side.denied(), what));
                }
                Ok(answer) if answer.status == 429 || answer.status >= 500 => {
                    failure = Some(Error::new(
                        side.unreachable(),
                        format!("the schema registry {}", answer.message()),
                    ));
                }
                Ok(answer) => return Ok(answer),
                Err(why) => {
                    let what = format!("the schema registry at {base} cannot be asked: {why}");
                    failure = Some(Error::new(side.unreachable(), what).with_source(why));
                }
            }
        }
        Err(failure.unwrap_or_else(|| Error::internal("a schema registry without an address")))
    }

    fn ask(&self, url: &str, body: Option<&Value>) -> std::result::Result<Answer, ureq::Error> {
        let authorization = self.authorization.as_deref();
        let mut response = match body {
            Some(body) => {
                let mut request = self.agent.post(url).header("Content-Type", MEDIA_TYPE);
                if let Some(authorization) = authorization {
                    request = request.header("Authorization", authorization);
                }
                request.header("Accept", MEDIA_TYPE).send(body.to_string())?
            }
            None => {
                let mut request = self.agent.get(url);
                if let Some(authorization) = authorization {
                    request = request.header("Authorization", authorization);
                }
                request.header("Accept", MEDIA_TYPE).call()?
            }
        };
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(LONGEST).read_to_string()?;
        let body = serde_json::from_str(&text).unwrap_or_else(|_| json!({ "message": shortened(&text) }));
        Ok(Answer { status, body, url: url.to_owned() })
    }

    /// What is incompatible, as far as the registry tells it beyond the refusal itself.
    fn incompatibilities(&self, subject: &str, body: &Value) -> String {
        let subject = encoded(subject);
        let path = format!("/compatibility/subjects/{subject}/versions/latest?verbose=true");
        let Ok(answer) = self.call(Side::Sink, &path, Some(body)) else { return String::new() };
        let messages = answer.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut out = String::new();
        for message in messages.iter().filter_map(Value::as_str) {
            out.push_str("; ");
            out.push_str(message);
        }
        if let Ok(latest) = self.call(Side::Sink, &format!("/subjects/{subject}/versions/latest"), None)
            && let (Some(version), Some(schema)) =
                (latest.body["version"].as_i64(), latest.body["schema"].as_str())
        {
            out.push_str(&format!("; version {version} of the subject is {schema}"));
        }
        out
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(500).collect()
}

/// The certificates of a PEM text.
fn certificates(pem: &str) -> std::result::Result<Vec<Certificate<'static>>, String> {
    let mut out = Vec::new();
    for item in ureq::tls::parse_pem(pem.as_bytes()) {
        match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => out.push(certificate),
            Ok(_) => {}
            Err(why) => return Err(format!("is not PEM: {why}")),
        }
    }
    if out.is_empty() { Err("holds no certificate".to_owned()) } else { Ok(out) }
}

/// A name as a part of a path.
fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

impl SchemaSource for Registry {
    fn by_id(&self, id: u32) -> Result<std::result::Result<String, String>> {
        if let Some(known) = self.schemas.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Ok(Ok(known.clone()));
        }
        let answer = self.call(Side::Source, &format!("/schemas/ids/{id}"), None)?;
        // An unknown id is the message's fault; an unknown path is that of the address.
        if answer.status == 404 && answer.body["error_code"].as_i64().is_some_and(|code| code != 404) {
            return Ok(Err(format!("schema {id} is not known to the schema registry")));
        }
        let Some(schema) = answer.body["schema"].as_str().filter(|_| answer.status == 200) else {
            let what = format!("asking for schema {id}: {}", answer.message());
            return Err(Error::new(Code::SourceMisconfigured, what));
        };
        match answer.body["schemaType"].as_str() {
            None | Some("AVRO") => {}
            Some(other) => return Ok(Err(format!("schema {id} is not one of Avro but of {other}"))),
        }
        if answer.body["references"].as_array().is_some_and(|list| !list.is_empty()) {
            return Ok(Err(format!(
                "schema {id} refers to schemas of other subjects, which is not supported"
            )));
        }
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        schemas.insert(id, schema.to_owned());
        Ok(Ok(schema.to_owned()))
    }

    fn register(&self, subject: &str, schema: &str) -> Result<u32> {
        let key = (subject.to_owned(), schema.to_owned());
        if let Some(known) = self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(*known);
        }
        let body = json!({ "schema": schema });
        let path = format!("/subjects/{}", encoded(subject));
        let path = if self.register { format!("{path}/versions") } else { path };
        let answer = self.call(Side::Sink, &path, Some(&body))?;
        let id = answer.body["id"].as_u64().and_then(|id| u32::try_from(id).ok());
        let Some(id) = id.filter(|_| answer.status == 200) else {
            let more =
                if answer.status == 409 { self.incompatibilities(subject, &body) } else { String::new() };
            let hint = if self.register || answer.status != 404 {
                ""
            } else {
                " (schemas are not registered, as `avro.auto-register: false` says)"
            };
            let what = format!("the schema registry refuses the schema: {}{more}{hint}", answer.message());
            return Err(Error::new(Code::SinkFailed, what));
        };
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(key, id);
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
