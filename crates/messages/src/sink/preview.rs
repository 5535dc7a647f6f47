//! Owns the preview of messages: what the writer's encoder makes of rows, and where it would go.

use base64::{Engine, engine::general_purpose::STANDARD};
use canalis_batch::ChangeBatch;
use canalis_connector_api::SinkPreview;
use canalis_formats::message::Messages;
use canalis_types::Result;

use super::{Partitioner, SinkSettings, writer::refusals};

/// The messages of a batch. The partition is told in words: its number would need a producer, which shuts out that of a job
/// that runs.
pub(super) fn preview(settings: &SinkSettings, batch: &ChangeBatch) -> Result<SinkPreview> {
    let mut encoder = settings.formats.encoder(settings.partitioner.separates_keys(), &settings.topics, true);
    let (skip, refused) = refusals(&mut *encoder, batch);
    let mut messages = Messages::default();
    encoder.encode(batch, &skip, &mut messages)?;
    let topic = settings.topics.of(&batch.schema().id);
    let partition = match settings.partitioner {
        Partitioner::ByKey => "by the hash of the key",
        Partitioner::ByTable => "by the hash of the table",
        Partitioner::AllToZero => "0",
        Partitioner::RoundRobin => "in turn",
    };
    let statements = messages.iter().map(|message| {
        let key = message.key.map_or_else(|| "none".to_owned(), shown);
        let value = message.value.map_or_else(|| "none (tombstone)".to_owned(), shown);
        format!("topic {topic}, partition {partition}\nkey: {key}\nvalue: {value}")
    });
    Ok(SinkPreview { statements: statements.collect(), refused })
}

fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("base64 {}", STANDARD.encode(bytes)),
    }
}
