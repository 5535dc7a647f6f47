//! Owns where schemas come from: the contract of a schema registry, and the names under which it keeps schemas.

use canalis_types::Result;

/// A schema registry. Calls may block.
pub trait SchemaSource: Send + Sync {
    /// The schema of an id. The inner error says why a message with that id cannot be read.
    ///
    /// # Errors
    /// When the registry cannot be asked: the message may be fine.
    fn by_id(&self, id: u32) -> Result<std::result::Result<String, String>>;

    /// The id of a schema under a subject, which is registered first where that is wanted.
    ///
    /// # Errors
    /// When the registry cannot be asked, refuses the schema, or does not know it and it is not to be registered.
    fn register(&self, subject: &str, schema: &str) -> Result<u32>;
}

/// How subjects are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubjectNames {
    /// `topic-key` and `topic-value`.
    #[default]
    Topic,
    /// The full name of the record.
    Record,
    /// `topic-` and the full name of the record.
    TopicRecord,
}

impl SubjectNames {
    /// The subject of a record in the part `key` or `value` of a topic's messages.
    pub fn subject(self, topic: &str, part: &str, record: &str) -> String {
        match self {
            Self::Topic => format!("{topic}-{part}"),
            Self::Record => record.to_owned(),
            Self::TopicRecord => format!("{topic}-{record}"),
        }
    }
}
