//! Owns the preview of lanes: the newest messages of all of them, through the decoder that a job uses.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use canalis_connector_api::{Decoded, PreviewRecord, RawRecord, SplitMode};
use canalis_formats::message::{MessageDecoder, Step};
use canalis_types::{Code, Error, Result};

use super::{Broker, Metadata, RecentLane, SourceSettings, message_position, replay::Held, worker};
use crate::{Lanes, Place};

/// How long one wait for messages takes.
const WAIT: Duration = Duration::from_millis(100);
/// How long nothing may come of lanes that are not at their end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of messages that are held; beyond, fewer messages are shown.
const HELD_BYTES: usize = 64 << 20;

/// The newest messages, newest first.
pub(super) fn preview(
    broker: &dyn Broker,
    settings: &SourceSettings,
    rows: usize,
) -> Result<Vec<PreviewRecord>> {
    let mut looked_at = u64::try_from(rows).unwrap_or(u64::MAX);
    let newest = loop {
        let lanes = broker.recent(looked_at)?;
        let newest = read(broker, &lanes, rows)?;
        // Places are not messages: some stand for what is gone or was never for readers.
        let is_short = |(lane, count): (&RecentLane, &usize)| *count < rows && !lane.is_whole;
        if !lanes.iter().zip(&newest.counts).any(is_short) {
            break newest;
        }
        looked_at = looked_at.saturating_mul(8);
    };
    let mut decoder = settings.formats.decoder(worker::decoded_tables(broker, settings)?)?;
    let mut metadata = Metadata::new(settings.formats.metadata().to_vec());
    let mut records = Vec::with_capacity(newest.held.len());
    // Structures follow each other as in a job, so the oldest is decoded first.
    for held in newest.held.values() {
        let lane = &newest.names[held.lane];
        records.push(decode(&mut *decoder, &mut metadata, settings, lane, held)?);
    }
    records.reverse();
    Ok(records)
}

/// The newest messages of all lanes.
struct Newest {
    names: Vec<String>,
    /// Messages seen, by lane.
    counts: Vec<usize>,
    /// By time, which within a lane never goes back, and place.
    held: BTreeMap<(i64, usize, Place), Held>,
    bytes: usize,
}

impl Newest {
    fn hold(&mut self, order: (i64, usize, Place), held: Held, rows: usize) {
        self.counts[held.lane] += 1;
        self.bytes += held.bytes();
        self.held.insert(order, held);
        while self.held.len() > rows || (self.bytes > HELD_BYTES && self.held.len() > 1) {
            let Some((_, oldest)) = self.held.pop_first() else { break };
            self.bytes -= oldest.bytes();
        }
    }
}

fn read(broker: &dyn Broker, lanes: &[RecentLane], rows: usize) -> Result<Newest> {
    let mut newest = Newest {
        names: lanes.iter().map(|lane| lane.name.clone()).collect(),
        counts: vec![0; lanes.len()],
        held: BTreeMap::new(),
        bytes: 0,
    };
    let mut open: HashSet<usize> = (0..lanes.len()).filter(|i| lanes[*i].from < lanes[*i].end).collect();
    if open.is_empty() {
        return Ok(newest);
    }
    let starts: Vec<_> = lanes.iter().map(|lane| (lane.name.clone(), lane.from)).collect();
    let mut consumer = broker.consumer()?;
    consumer.assign(&starts)?;
    let mut reached: Vec<Place> = lanes.iter().map(|lane| lane.from).collect();
    let mut times = vec![i64::MIN; lanes.len()];
    let mut last = Instant::now();
    while !open.is_empty() {
        let came = consumer.poll(WAIT, &mut |delivery| {
            let lane = delivery.lane;
            if delivery.next >= lanes[lane].end {
                open.remove(&lane);
            }
            if delivery.next <= lanes[lane].end {
                times[lane] = times[lane].max(delivery.message.timestamp_ms.unwrap_or(i64::MIN));
                let held = Held::new(&delivery);
                newest.hold((times[lane], lane, delivery.next), held, rows);
            }
            reached[lane] = delivery.next;
            Ok(())
        })?;
        if came {
            last = Instant::now();
            continue;
        }
        for lane in open.clone() {
            if consumer.is_empty_between(lane, reached[lane], lanes[lane].end)? {
                open.remove(&lane);
            }
        }
        if last.elapsed() > PATIENCE {
            let names: Vec<&str> = open.iter().map(|lane| newest.names[*lane].as_str()).collect();
            return Err(Error::new(
                Code::SourceUnreachable,
                format!("the broker does not deliver the messages of {}", names.join(", ")),
            ));
        }
    }
    Ok(newest)
}

fn decode(
    decoder: &mut dyn MessageDecoder,
    metadata: &mut Metadata,
    settings: &SourceSettings,
    lane: &str,
    held: &Held,
) -> Result<PreviewRecord> {
    let delivery = held.delivery();
    let message = delivery.message;
    let fallback = settings.formats.fallback_table();
    let position = message_position(&Lanes::default(), lane, held.next);
    let place = position.detail.to_string();
    let mut structure = Vec::new();
    let failure = loop {
        match worker::decode(decoder, metadata, lane, &fallback, &delivery) {
            Ok(Step::Taken | Step::Ignored) => break None,
            Ok(Step::Failed(error)) => return Err(*error),
            Ok(Step::Structure(change)) => {
                decoder.apply(&change);
                structure.push(change.statement.clone());
                if change.alone {
                    break None;
                }
            }
            Err(failure) => break Some(failure),
        }
    };
    let decoded = match failure {
        Some(failure) => {
            let letter = worker::letter(&fallback, lane, position, &message, failure);
            Decoded::Undecodable(Box::new(letter))
        }
        None => {
            let mut batches = Vec::new();
            for batch in decoder.take()? {
                let time = batch.event_time_ms.or(message.timestamp_ms);
                batches.push(metadata.attach(batch)?.with_event_time(time));
            }
            Decoded::Rows(batches)
        }
    };
    let raw = RawRecord {
        key: message.key.map(<[u8]>::to_vec),
        value: message.value.map(<[u8]>::to_vec),
        timestamp_ms: message.timestamp_ms,
    };
    Ok(PreviewRecord { place, raw: Some(raw), structure, decoded, mode: SplitMode::Stream })
}
