//! Owns the formats of messages by option: one table of options for all brokers, decoders and encoders made from it.

mod avro;
mod options;
mod tables;
mod transcoding;

use std::sync::Arc;

use canalis_formats::{
    Charset,
    avro::AvroKind,
    canal::{CanalDecoder, CanalDecoderOptions, CanalEncoder, CanalEncoderOptions, KeyChanges},
    debezium::{DebeziumDecoder, DebeziumDecoderOptions, DebeziumEncoder, DebeziumEncoderOptions},
    inlong::{InlongDecoder, InlongOptions},
    maxwell::{MaxwellDecoder, MaxwellDecoderOptions, MaxwellEncoder, MaxwellEncoderOptions},
    message::{MessageDecoder, MessageEncoder, StructureChange},
    rows::{RawForm, RawKey, RowsDecoder, RowsEncoder, RowsKind, RowsOptions, raw_table},
};
use canalis_types::{Code, Error, Result, SchemaChangeKind, TableId, TableSchema};

pub use options::{FORMAT_OPTIONS, Problem};
use transcoding::Transcoding;

use crate::{sink::Topics, source::MetadataColumn};

/// A format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFormat {
    /// Plain rows as JSON objects.
    Json,
    /// Plain rows as CSV records.
    Csv,
    /// Any bytes.
    Raw,
    /// Flat messages of Canal.
    CanalJson,
    /// Envelopes of Debezium.
    DebeziumJson,
    /// Messages of Maxwell.
    MaxwellJson,
    /// Plain rows in Avro.
    Avro,
    /// Envelopes of Debezium in Avro.
    DebeziumAvro,
    /// InLong's delimited bodies.
    InlongCsv,
    /// InLong's bodies of names with values.
    InlongKv,
}

impl MessageFormat {
    /// The kind of rows, for the formats of plain rows.
    fn rows(self) -> Option<RowsKind> {
        match self {
            Self::Json => Some(RowsKind::Json),
            Self::Csv => Some(RowsKind::Csv),
            Self::Raw => Some(RowsKind::Raw),
            _ => None,
        }
    }

    /// What messages hold, for the formats of Avro.
    fn avro(self) -> Option<AvroKind> {
        match self {
            Self::Avro => Some(AvroKind::Rows),
            Self::DebeziumAvro => Some(AvroKind::Debezium),
            _ => None,
        }
    }

    /// Whether a message does not say which table it is of.
    fn is_of_one_table(self) -> bool {
        self.rows().is_some() || matches!(self, Self::InlongCsv | Self::InlongKv | Self::Avro)
    }
}

/// The formats of a source or sink, as its options say.
#[derive(Debug, Clone)]
pub struct Formats {
    pub(crate) format: MessageFormat,
    pub(crate) table: Option<TableId>,
    pub(crate) declared: Vec<Arc<TableSchema>>,
    pub(crate) rows: RowsOptions,
    pub(crate) raw: (RawForm, RawKey),
    pub(crate) canal: (CanalDecoderOptions, CanalEncoderOptions),
    pub(crate) debezium: (DebeziumDecoderOptions, DebeziumEncoderOptions),
    pub(crate) maxwell: (MaxwellDecoderOptions, MaxwellEncoderOptions),
    pub(crate) inlong: InlongOptions,
    pub(crate) avro: avro::AvroSettings,
    /// Of JSON and CSV messages, if it is not UTF-8.
    pub(crate) charset: Option<Charset>,
    pub(crate) metadata: Vec<MetadataColumn>,
}

impl Formats {
    /// The tables that were declared.
    pub fn declared(&self) -> Vec<Arc<TableSchema>> {
        if self.format == MessageFormat::Raw {
            return vec![Arc::new(raw_table(self.fallback_table(), self.raw.0, self.raw.1))];
        }
        self.declared.clone()
    }

    /// Columns that tell of the message behind those of its rows.
    pub fn metadata(&self) -> &[MetadataColumn] {
        &self.metadata
    }

    /// Whether no message has to be looked at to know the structure.
    pub fn is_declared(&self) -> bool {
        self.format == MessageFormat::Raw || !self.declared.is_empty()
    }

    /// The table of messages that do not say theirs.
    pub fn fallback_table(&self) -> TableId {
        self.table.clone().unwrap_or_else(|| TableId::bare("messages"))
    }

    /// A decoder that knows the declared tables, and those that messages of an earlier run have told.
    ///
    /// # Errors
    /// `CNL-1002` when the declared structure does not go with the format.
    pub fn decoder(&self, known: Vec<Arc<TableSchema>>) -> Result<Box<dyn MessageDecoder>> {
        let declared = self.declared();
        let mut decoder: Box<dyn MessageDecoder> = match (self.format, self.format.rows()) {
            (_, Some(kind)) => match declared.first() {
                Some(table) => {
                    let decoder = RowsDecoder::new(kind, self.rows.clone(), table.clone());
                    Box::new(decoder.map_err(|why| Error::new(Code::PipelineInvalid, why))?)
                }
                None => Box::new(RowsDecoder::inferring(self.rows.clone(), self.table.clone())),
            },
            (MessageFormat::InlongCsv | MessageFormat::InlongKv, None) => {
                let table = declared.first().ok_or_else(|| Error::internal("no table is declared"))?;
                Box::new(InlongDecoder::new(self.inlong.clone(), table.clone()))
            }
            (MessageFormat::Avro, None) => {
                self.avro.decoder(AvroKind::Rows, self.table.clone(), declared.clone())
            }
            (MessageFormat::DebeziumAvro, None) => {
                self.avro.decoder(AvroKind::Debezium, None, declared.clone())
            }
            (MessageFormat::DebeziumJson, None) => {
                Box::new(DebeziumDecoder::new(self.debezium.0.clone(), declared.clone()))
            }
            (MessageFormat::MaxwellJson, None) => {
                Box::new(MaxwellDecoder::new(self.maxwell.0, declared.clone()))
            }
            (_, None) => Box::new(CanalDecoder::new(self.canal.0, declared.clone())),
        };
        if let (Some(charset), Some(_)) = (self.charset, self.format.rows()) {
            decoder = Box::new(Transcoding::new(charset, decoder));
        }
        for after in known {
            if !declared.contains(&after) {
                decoder.apply(&StructureChange {
                    kind: SchemaChangeKind::CreateTable,
                    before: None,
                    after,
                    statement: String::new(),
                    alone: false,
                });
            }
        }
        Ok(decoder)
    }

    /// An encoder. With `separate_keys`, rows of one key may go to another partition when the key changes, so a change of the key
    /// is written as a delete of the old and an insert of the new. A dry one changes nothing anywhere: it does not register schemas.
    pub(crate) fn encoder(&self, separate_keys: bool, topics: &Topics, dry: bool) -> Box<dyn MessageEncoder> {
        if let Some(kind) = self.format.avro() {
            return self.avro.encoder(kind, topics, dry);
        }
        match (self.format, self.format.rows()) {
            (_, Some(kind)) => Box::new(RowsEncoder::new(kind, self.rows.clone())),
            (MessageFormat::DebeziumJson, None) => Box::new(DebeziumEncoder::new(self.debezium.1.clone())),
            (MessageFormat::MaxwellJson, None) => Box::new(MaxwellEncoder::new(self.maxwell.1)),
            (_, None) => {
                let key_changes = if separate_keys { KeyChanges::DeleteInsert } else { KeyChanges::Update };
                Box::new(CanalEncoder::new(CanalEncoderOptions { key_changes, ..self.canal.1 }))
            }
        }
    }
}
