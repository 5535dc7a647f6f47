//! Owns [`Transcoding`]: messages in a character set of their own, decoded as a whole before anything is split.

use std::sync::Arc;

use canalis_batch::ChangeBatch;
use canalis_formats::{
    Charset,
    message::{Message, MessageDecoder, Step, StructureChange, Undecodable},
};
use canalis_types::{Result, TableId, TableSchema};

/// A decoder of messages that are not UTF-8, around one that wants UTF-8.
pub(super) struct Transcoding {
    charset: Charset,
    inner: Box<dyn MessageDecoder>,
}

impl Transcoding {
    pub(super) fn new(charset: Charset, inner: Box<dyn MessageDecoder>) -> Self {
        Self { charset, inner }
    }
}

impl MessageDecoder for Transcoding {
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable> {
        let wrong =
            |part: &str| Undecodable::new(format!("the message's {part} is not {}", self.charset.name()));
        let decode = |bytes: Option<&[u8]>, part: &str| match bytes {
            Some(bytes) => {
                self.charset.decode(bytes).map(|text| Some(text.into_owned())).ok_or_else(|| wrong(part))
            }
            None => Ok(None),
        };
        let (key, value) = (decode(message.key, "key")?, decode(message.value, "payload")?);
        self.inner.decode(&Message {
            key: key.as_deref().map(str::as_bytes),
            value: value.as_deref().map(str::as_bytes),
            ..*message
        })
    }

    fn apply(&mut self, change: &StructureChange) {
        self.inner.apply(change);
    }

    fn tables(&self) -> Vec<Arc<TableSchema>> {
        self.inner.tables()
    }

    fn rows(&self) -> usize {
        self.inner.rows()
    }

    fn newest(&self) -> Option<&TableId> {
        self.inner.newest()
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn take(&mut self) -> Result<Vec<ChangeBatch>> {
        self.inner.take()
    }
}
