//! Owns Avro by option: where schemas come from, and decoders and encoders made with that.

use std::sync::Arc;

use canalis_connector_api::{OptionSpec, OptionType, Options, Role};
use canalis_formats::{
    avro::{
        AvroDecoder, AvroDecoderOptions, AvroEncoder, AvroEncoderOptions, AvroKind, SchemaSource,
        SubjectNames, check_schema,
    },
    message::{MessageDecoder, MessageEncoder},
};
use canalis_types::{Result, TableId, TableSchema};

use super::Problem;
use crate::{
    registry::{Registry, RegistryOptions},
    sink::Topics,
};

const fn option(key: &'static str, ty: OptionType, role: Role, doc: &'static str) -> OptionSpec {
    OptionSpec::new(key, ty, role, doc)
}

/// Options of Avro.
pub(super) const AVRO_OPTIONS: [OptionSpec; 9] = [
    option(
        "avro.schema-registry.url",
        OptionType::Text,
        Role::Both,
        "Addresses of a schema registry that speaks Confluent's REST protocol, joined by commas; messages have its header then",
    ),
    option(
        "avro.schema-registry.username",
        OptionType::Text,
        Role::Both,
        "Name for basic authentication at the schema registry",
    ),
    option(
        "avro.schema-registry.password",
        OptionType::Text,
        Role::Both,
        "Password for basic authentication at the schema registry",
    )
    .secret(),
    option(
        "avro.schema-registry.ca-certificates",
        OptionType::Text,
        Role::Both,
        "Certificates that are trusted for `https`, as PEM, for example `${file:/etc/ca.pem}`; without them those of the public authorities",
    ),
    option("avro.schema", OptionType::Text, Role::Source, "Schema of messages without a header, as JSON"),
    option(
        "avro.subject-name-strategy",
        OptionType::Enum(&["topic", "record", "topic-record"]),
        Role::Sink,
        "How subjects of schemas are named: after the topic, the record, or both",
    )
    .default("topic"),
    option(
        "avro.auto-register",
        OptionType::Boolean,
        Role::Sink,
        "Whether schemas are registered; if not, they must be there",
    )
    .default("true"),
    option(
        "debezium-avro.topic.prefix",
        OptionType::Text,
        Role::Sink,
        "Name of the source in messages of `debezium-avro`",
    )
    .default("canalis"),
    option(
        "debezium-avro.tombstones.on.delete",
        OptionType::Boolean,
        Role::Sink,
        "Whether a delete of `debezium-avro` is followed by a message without payload",
    )
    .default("true"),
];

/// Avro as the options say.
#[derive(Debug, Clone)]
pub(crate) struct AvroSettings {
    registry: Option<Arc<Registry>>,
    schema: Option<String>,
    subjects: SubjectNames,
    server_name: String,
    tombstones: bool,
    primary_key: Vec<String>,
    max_message_bytes: usize,
}

impl AvroSettings {
    /// Reads validated options; `used` says whether the format is one of Avro's.
    pub(super) fn read(
        options: &Options,
        role: Role,
        used: bool,
        primary_key: &[String],
        max_message_bytes: usize,
    ) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let is = |key: &str| options.text(key).unwrap_or_default().eq_ignore_ascii_case("true");
        let text = |key: &str| options.text(key).filter(|t| !t.is_empty()).map(str::to_owned);
        let mut note = |key: &str, why: String| problems.push((key.to_owned(), why));
        let url = text("avro.schema-registry.url").filter(|_| used);
        let schema = text("avro.schema").filter(|_| used);
        let account = match (text("avro.schema-registry.username"), text("avro.schema-registry.password")) {
            (Some(user), password) => Some((user, password.unwrap_or_default())),
            (None, Some(_)) => {
                note("avro.schema-registry.username", "the password needs a name".into());
                None
            }
            (None, None) => None,
        };
        let registry = url.as_ref().and_then(|url| {
            let urls = url.split(',').map(|u| u.trim().to_owned()).filter(|u| !u.is_empty()).collect();
            let options = RegistryOptions {
                urls,
                account,
                authorities: text("avro.schema-registry.ca-certificates"),
                register: is("avro.auto-register"),
            };
            Registry::new(options).map_err(|why| note("avro.schema-registry.url", why)).ok()
        });
        match (&url, &schema) {
            (Some(_), Some(_)) => note("avro.schema", "messages have their schemas in the registry".into()),
            (None, None) if used && role == Role::Source => note(
                "avro.schema-registry.url",
                "messages in Avro need a schema registry, or `avro.schema` where they have no header".into(),
            ),
            (_, Some(schema)) => {
                if let Err(why) = check_schema(schema) {
                    note("avro.schema", why);
                }
            }
            _ => {}
        }
        let settings = Self {
            registry: registry.map(Arc::new),
            schema,
            subjects: match text("avro.subject-name-strategy").unwrap_or_default().as_str() {
                "record" => SubjectNames::Record,
                "topic-record" => SubjectNames::TopicRecord,
                _ => SubjectNames::Topic,
            },
            server_name: text("debezium-avro.topic.prefix").unwrap_or_else(|| "canalis".into()),
            tombstones: is("debezium-avro.tombstones.on.delete"),
            primary_key: primary_key.to_vec(),
            max_message_bytes,
        };
        (settings, problems)
    }

    pub(super) fn decoder(
        &self,
        kind: AvroKind,
        table: Option<TableId>,
        declared: Vec<Arc<TableSchema>>,
    ) -> Box<dyn MessageDecoder> {
        let options = AvroDecoderOptions {
            kind,
            registry: self.registry.clone().map(|registry| registry as Arc<dyn SchemaSource>),
            schema: self.schema.clone(),
            table,
            primary_key: self.primary_key.clone(),
            max_message_bytes: self.max_message_bytes,
        };
        Box::new(AvroDecoder::new(options, declared))
    }

    /// An encoder for these topics; one that is dry asks no registry, and its headers have the id 0.
    pub(super) fn encoder(&self, kind: AvroKind, topics: &Topics, dry: bool) -> Box<dyn MessageEncoder> {
        let topics = topics.clone();
        let registry = self.registry.clone().map(|registry| match dry {
            true => Arc::new(Unregistered) as Arc<dyn SchemaSource>,
            false => registry as Arc<dyn SchemaSource>,
        });
        Box::new(AvroEncoder::new(AvroEncoderOptions {
            registry,
            subjects: self.subjects,
            topics: Arc::new(move |table| topics.of(table)),
            server_name: self.server_name.clone(),
            tombstones: self.tombstones,
            ..AvroEncoderOptions::new(kind)
        }))
    }
}

/// A registry that knows nothing and takes nothing.
struct Unregistered;

impl SchemaSource for Unregistered {
    fn by_id(&self, _id: u32) -> Result<std::result::Result<String, String>> {
        Ok(Err("no registry is asked".to_owned()))
    }

    fn register(&self, _subject: &str, _schema: &str) -> Result<u32> {
        Ok(0)
    }
}
