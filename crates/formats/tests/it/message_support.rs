//! Owns driving message decoders and encoders, as a connector does.

use std::collections::BTreeMap;

use canalis_batch::ChangeBatch;
use canalis_formats::message::{Message, MessageDecoder, MessageEncoder, Messages, Step, StructureChange};
use canalis_types::RowKind;

use crate::support::cells;

/// What became of messages.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `+I 1|a|NULL`, in order.
    pub rows: Vec<String>,
    /// Reasons, with the index of the message.
    pub undecodable: Vec<(usize, String)>,
    pub ignored: usize,
    pub structures: Vec<StructureChange>,
    pub event_time_ms: Option<i64>,
}

/// A message of topic `t` with this key and payload.
pub type Pair<'a> = (Option<&'a str>, Option<&'a str>);

pub fn decode_pairs(decoder: &mut dyn MessageDecoder, pairs: &[Pair<'_>]) -> Outcome {
    let messages: Vec<Message<'_>> = pairs
        .iter()
        .map(|(key, value)| Message {
            topic: "t",
            key: key.map(str::as_bytes),
            value: value.map(str::as_bytes),
            timestamp_ms: None,
        })
        .collect();
    decode(decoder, &messages)
}

pub fn decode_values(decoder: &mut dyn MessageDecoder, values: &[&str]) -> Outcome {
    let pairs: Vec<Pair<'_>> = values.iter().map(|v| (None, Some(*v))).collect();
    decode_pairs(decoder, &pairs)
}

pub fn decode(decoder: &mut dyn MessageDecoder, messages: &[Message<'_>]) -> Outcome {
    let mut outcome = Outcome::default();
    for (at, message) in messages.iter().enumerate() {
        let mut tries = 0;
        loop {
            match decoder.decode(message) {
                Ok(Step::Taken) => {}
                Ok(Step::Ignored) => outcome.ignored += 1,
                Ok(Step::Failed(why)) => panic!("{why}"),
                Ok(Step::Structure(change)) => {
                    take(decoder, &mut outcome);
                    decoder.apply(&change);
                    let alone = change.alone;
                    outcome.structures.push(*change);
                    tries += 1;
                    assert!(tries < 3, "the same message asks for changes without end");
                    if !alone {
                        continue;
                    }
                }
                Err(why) => outcome.undecodable.push((at, why.reason)),
            }
            break;
        }
    }
    take(decoder, &mut outcome);
    outcome
}

fn take(decoder: &mut dyn MessageDecoder, outcome: &mut Outcome) {
    for batch in decoder.take().unwrap() {
        outcome.rows.extend(show(&batch));
        outcome.event_time_ms = outcome.event_time_ms.max(batch.event_time_ms);
    }
    assert_eq!((decoder.rows(), decoder.bytes()), (0, 0));
}

/// Rows as `+I 1|a|NULL`, unchanged cells as `~`.
pub fn show(batch: &ChangeBatch) -> Vec<String> {
    let row = |(row, texts): (usize, Vec<Option<String>>)| {
        let cell = |(column, text): (usize, Option<String>)| match text {
            _ if batch.is_unchanged(column, row) => "~".to_owned(),
            text => text.unwrap_or_else(|| "NULL".to_owned()),
        };
        let cells: Vec<String> = texts.into_iter().enumerate().map(cell).collect();
        format!("{} {}", batch.kinds()[row].symbol(), cells.join("|"))
    };
    cells(batch).into_iter().enumerate().map(row).collect()
}

/// Keys and payloads of the messages of `batch`, all of which can be written.
pub fn encode(
    encoder: &mut dyn MessageEncoder,
    batch: &ChangeBatch,
) -> Vec<(Option<String>, Option<String>)> {
    for (row, kind) in batch.kinds().iter().enumerate() {
        if *kind != RowKind::UpdateAfter {
            assert_eq!(encoder.refusal(batch, row), None, "row {row}");
        }
    }
    let mut messages = Messages::default();
    encoder.encode(batch, &[], &mut messages).unwrap();
    let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
    messages.iter().map(|m| (text(m.key), text(m.value))).collect()
}

/// Rows left after applying changes by the first column as the key.
pub fn state(rows: &[String]) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for row in rows {
        let (kind, cells) = row.split_once(' ').unwrap();
        let key = cells.split('|').next().unwrap().to_owned();
        match kind {
            "+I" | "+U" => state.insert(key, cells.to_owned()),
            _ => state.remove(&key),
        };
    }
    state
}
