//! Owns the contract of message formats: one message of a broker to changes of tables, changes to messages.

mod changes;
mod gather;
mod java_number;

use std::{fmt, ops::Range, sync::Arc};

use canalis_batch::ChangeBatch;
use canalis_types::{Error, Result, SchemaChangeKind, TableId, TableSchema};

pub(crate) use changes::{Change, changes};
pub(crate) use gather::{Gatherer, Slot};
pub use java_number::{write_java_f32, write_java_f64};

/// A message as a broker delivers it.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Topic it stands in.
    pub topic: &'a str,
    /// Key bytes, if it has a key.
    pub key: Option<&'a [u8]>,
    /// Payload; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
    /// The broker's time, milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
}

/// What became of a message.
#[derive(Debug)]
pub enum Step {
    /// Its rows are gathered.
    Taken,
    /// It carries no rows: a heartbeat, a tombstone after its delete, a type the format says to pass over.
    Ignored,
    /// A table is new or has changed. Nothing of the message is gathered yet: the caller takes the rows gathered before, passes
    /// the change on, calls [`MessageDecoder::apply`], and decodes the same message again.
    Structure(Box<StructureChange>),
    /// What decoding needs beside the message cannot be had, a schema registry for example. Nothing of the message is gathered, and
    /// it may be fine: the job fails, and tries again if the error is one that allows it.
    Failed(Box<Error>),
}

/// A change of structure that a message told of.
#[derive(Debug, Clone)]
pub struct StructureChange {
    /// What changed.
    pub kind: SchemaChangeKind,
    /// Structure until now; `None` for a new table.
    pub before: Option<Arc<TableSchema>>,
    /// Structure from now on.
    pub after: Arc<TableSchema>,
    /// The statement, where the message has one; else what was seen, in words.
    pub statement: String,
    /// The message is nothing but this change: it is not to be decoded again.
    pub alone: bool,
}

/// Why a message does not decode. Nothing of it is gathered; the whole message becomes a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable {
    /// The table, where the message got that far.
    pub table: Option<TableId>,
    /// Why, with the column named where it is known.
    pub reason: String,
}

impl Undecodable {
    /// A message whose table is not known.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { table: None, reason: reason.into() }
    }

    /// A message of this table.
    pub fn of(table: &TableId, reason: impl Into<String>) -> Self {
        Self { table: Some(table.clone()), reason: reason.into() }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Turns messages into rows, which it gathers by table until they are taken.
pub trait MessageDecoder: Send {
    /// Decodes one message.
    ///
    /// # Errors
    /// [`Undecodable`] when the message is not of the format or a value is not one of its column.
    fn decode(&mut self, message: &Message<'_>) -> std::result::Result<Step, Undecodable>;

    /// Takes a change over; rows gathered before it have been taken.
    fn apply(&mut self, change: &StructureChange);

    /// The tables known now.
    fn tables(&self) -> Vec<Arc<TableSchema>>;

    /// Rows gathered, −U included.
    fn rows(&self) -> usize;

    /// The table of the message that was decoded last; `None` when every message is of the same.
    fn newest(&self) -> Option<&TableId> {
        None
    }

    /// Bytes of the messages of the rows gathered.
    fn bytes(&self) -> usize;

    /// Takes the rows out, one batch a table; rows of one table are in the order of their messages.
    ///
    /// # Errors
    /// Internal only.
    fn take(&mut self) -> Result<Vec<ChangeBatch>>;
}

/// Turns rows into messages. Made for tables as they come: it keeps what it planned for a structure until that changes.
pub trait MessageEncoder: Send {
    /// Appends the messages of all rows of `batch` but those that `skip` names (row indexes in rising order; for an update
    /// that of its −U).
    ///
    /// # Errors
    /// Internal only; ask [`MessageEncoder::refusal`] first.
    fn encode(&mut self, batch: &ChangeBatch, skip: &[usize], out: &mut Messages) -> Result<()>;

    /// Why the change that begins at `row` (for an update its −U) cannot be written, or `None` when it can.
    fn refusal(&mut self, batch: &ChangeBatch, row: usize) -> Option<String>;

    /// Appends the message that tells of a change of structure, if the format has one.
    ///
    /// # Errors
    /// Internal only.
    fn encode_structure(&mut self, change: &StructureChange, out: &mut Messages) -> Result<()> {
        let _ = (change, out);
        Ok(())
    }
}

/// Encoded messages, all in one buffer.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    key: Option<Range<usize>>,
    lane: Option<Range<usize>>,
    value: Option<Range<usize>>,
    row: usize,
}

/// One encoded message.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// Key, if it has one.
    pub key: Option<&'a [u8]>,
    /// Bytes of which equal ones must keep their order: the row's key in the format's own form, which need not be sent.
    /// `None` for a table without a key.
    pub lane: Option<&'a [u8]>,
    /// Payload; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
    /// Row of the batch with which its change begins.
    pub row: usize,
}

/// A message being written: [`Messages::begin`], then the parts in any order.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    messages: &'a mut Messages,
    entry: Entry,
}

impl Messages {
    /// Forgets all messages and keeps the room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Messages.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Begins the message of the change that begins at `row`.
    pub fn begin(&mut self, row: usize) -> MessageWriter<'_> {
        MessageWriter { messages: self, entry: Entry { key: None, lane: None, value: None, row } }
    }

    /// The messages in order.
    pub fn iter(&self) -> impl Iterator<Item = Encoded<'_>> {
        self.entries.iter().map(|entry| {
            let part = |range: &Option<Range<usize>>| range.clone().map(|r| &self.bytes[r]);
            Encoded {
                key: part(&entry.key),
                lane: part(&entry.lane),
                value: part(&entry.value),
                row: entry.row,
            }
        })
    }
}

impl MessageWriter<'_> {
    fn part<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Range<usize>, E> {
        let start = self.messages.bytes.len();
        write(&mut self.messages.bytes)?;
        Ok(start..self.messages.bytes.len())
    }

    /// Writes the key, which is the lane too.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn key<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let range = self.part(write)?;
        self.entry.key = Some(range.clone());
        self.entry.lane = Some(range);
        Ok(())
    }

    /// Writes the lane of a message that has no key.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn lane<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.entry.lane = Some(self.part(write)?);
        Ok(())
    }

    /// Writes the payload.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn value<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.entry.value = Some(self.part(write)?);
        Ok(())
    }

    /// Ends the message. Without a payload it is a tombstone.
    pub fn end(self) {
        self.messages.entries.push(self.entry);
    }
}
