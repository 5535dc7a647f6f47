//! Owns a schema registry in memory, and messages as a broker would hold them.

use std::sync::{Arc, Mutex};

use canalis_batch::ChangeBatch;
use canalis_formats::{
    avro::{AvroDecoder, AvroDecoderOptions, AvroEncoder, AvroEncoderOptions, AvroKind, SchemaSource},
    message::{Message, MessageEncoder, Messages},
};
use canalis_types::{Code, Error, Result, TableSchema};

/// Schemas by id, with the subjects that they were registered under.
#[derive(Debug, Default)]
pub struct Registry {
    pub schemas: Mutex<Vec<(String, String)>>,
    /// It cannot be reached.
    pub down: Mutex<bool>,
}

impl Registry {
    pub fn put(&self, schema: &str) -> u32 {
        self.register("s", schema).unwrap()
    }
}

impl SchemaSource for Registry {
    fn by_id(&self, id: u32) -> Result<std::result::Result<String, String>> {
        if *self.down.lock().unwrap() {
            return Err(Error::new(Code::SourceUnreachable, "the registry is down"));
        }
        let schemas = self.schemas.lock().unwrap();
        let found = (id as usize).checked_sub(1).and_then(|at| schemas.get(at));
        Ok(found.map(|(_, text)| text.clone()).ok_or_else(|| format!("schema {id} is not known")))
    }

    fn register(&self, subject: &str, schema: &str) -> Result<u32> {
        let mut schemas = self.schemas.lock().unwrap();
        let entry = (subject.to_owned(), schema.to_owned());
        let at = schemas.iter().position(|known| *known == entry);
        let at = at.unwrap_or_else(|| {
            schemas.push(entry);
            schemas.len() - 1
        });
        Ok(at as u32 + 1)
    }
}

pub fn reading(kind: AvroKind, registry: Option<&Arc<Registry>>, schema: Option<&str>) -> AvroDecoderOptions {
    AvroDecoderOptions {
        kind,
        registry: registry.map(|r| r.clone() as Arc<dyn SchemaSource>),
        schema: schema.map(str::to_owned),
        table: None,
        primary_key: Vec::new(),
        max_message_bytes: 1 << 20,
    }
}

pub fn decoder(kind: AvroKind, registry: &Arc<Registry>, tables: Vec<Arc<TableSchema>>) -> AvroDecoder {
    AvroDecoder::new(reading(kind, Some(registry), None), tables)
}

pub fn encoder(kind: AvroKind, registry: Option<&Arc<Registry>>) -> AvroEncoder {
    AvroEncoder::new(AvroEncoderOptions {
        registry: registry.map(|r| r.clone() as Arc<dyn SchemaSource>),
        ..AvroEncoderOptions::new(kind)
    })
}

/// Key and payload.
pub type Stored = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Messages of all rows but those that are refused, and the refused rows with the reasons.
pub fn encode(encoder: &mut dyn MessageEncoder, batch: &ChangeBatch) -> (Vec<Stored>, Vec<(usize, String)>) {
    let first = |row: &usize| batch.kinds()[*row] != canalis_types::RowKind::UpdateAfter;
    let refused: Vec<(usize, String)> = (0..batch.num_rows())
        .filter(first)
        .filter_map(|row| Some((row, encoder.refusal(batch, row)?)))
        .collect();
    let skip: Vec<usize> = refused.iter().map(|(row, _)| *row).collect();
    let mut messages = Messages::default();
    encoder.encode(batch, &skip, &mut messages).unwrap();
    let part = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    (messages.iter().map(|m| (part(m.key), part(m.value))).collect(), refused)
}

pub fn message(stored: &Stored) -> Message<'_> {
    Message { topic: "t", key: stored.0.as_deref(), value: stored.1.as_deref(), timestamp_ms: None }
}

pub fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

/// A payload with the header of a registry.
pub fn framed(id: u32, datum: &[u8]) -> Vec<u8> {
    [&[0], &id.to_be_bytes()[..], datum].concat()
}
