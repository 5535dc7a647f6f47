//! Owns [`Replay`]: stopping every lane exactly at the places that writers of the sink have committed.
//!
//! After a restart the sink may be ahead of the checkpoint, each writer at a place of its own. A writer passes over the rows up to
//! its place, so the stream has to come by that very place: all lanes are read up to it and no further, then it is announced,
//! then they go on to the next.

use std::collections::{BTreeSet, VecDeque};

use canalis_formats::message::Message;
use canalis_types::{Position, Result};

use super::Delivery;
use crate::{Lanes, Place};

/// A message that came before its turn.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) lane: usize,
    pub(super) next: Place,
    topic: String,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp_ms: Option<i64>,
    headers: Option<String>,
}

impl Held {
    pub(super) fn new(delivery: &Delivery<'_>) -> Self {
        let message = &delivery.message;
        Self {
            lane: delivery.lane,
            next: delivery.next,
            topic: message.topic.to_owned(),
            key: message.key.map(<[u8]>::to_vec),
            value: message.value.map(<[u8]>::to_vec),
            timestamp_ms: message.timestamp_ms,
            headers: delivery.headers.map(str::to_owned),
        }
    }

    pub(super) fn delivery(&self) -> Delivery<'_> {
        Delivery {
            lane: self.lane,
            next: self.next,
            message: Message {
                topic: &self.topic,
                key: self.key.as_deref(),
                value: self.value.as_deref(),
                timestamp_ms: self.timestamp_ms,
            },
            headers: self.headers.as_deref(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let part = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        self.topic.len() + part(&self.key) + part(&self.value) + self.headers.as_ref().map_or(0, String::len)
    }
}

/// The cuts that are still ahead, and what waits for them.
#[derive(Debug, Default)]
pub(super) struct Replay {
    cuts: VecDeque<(Position, Lanes)>,
    /// Lanes that have not got to the next cut.
    behind: BTreeSet<String>,
    held: VecDeque<Held>,
    held_bytes: usize,
}

impl Replay {
    /// Cuts beyond `from`, in order.
    pub(super) fn new(cuts: &[Position], from: &Lanes) -> Result<Self> {
        let mut replay = Self::default();
        for cut in cuts {
            let lanes = Lanes::parse(cut)?;
            if lanes.count > from.count {
                replay.cuts.push_back((cut.clone(), lanes));
            }
        }
        replay.aim(from);
        Ok(replay)
    }

    fn aim(&mut self, from: &Lanes) {
        self.behind.clear();
        if let Some((_, cut)) = self.cuts.front() {
            let behind =
                cut.lanes.iter().filter(|(name, goal)| from.lanes.get(*name).is_none_or(|p| p < goal));
            self.behind = behind.map(|(name, _)| name.clone()).collect();
        }
    }

    /// Whether a message may be decoded now. If not, it is kept until its cut has been passed.
    pub(super) fn admit(&mut self, name: &str, delivery: &Delivery<'_>) -> bool {
        let Some((_, cut)) = self.cuts.front() else { return true };
        if cut.lanes.get(name).is_some_and(|goal| delivery.next <= *goal) {
            return true;
        }
        // What comes behind the goal tells that the lane is there, also where nothing stands at the goal itself.
        self.behind.remove(name);
        let held = Held::new(delivery);
        self.held_bytes += held.bytes();
        self.held.push_back(held);
        false
    }

    /// Notes how far a lane is.
    pub(super) fn reached(&mut self, name: &str, place: Place) {
        if let Some((_, cut)) = self.cuts.front()
            && cut.lanes.get(name).is_none_or(|goal| place >= *goal)
        {
            self.behind.remove(name);
        }
    }

    /// The next cut, if every lane is there; it is over then, and what was held for it comes back to be admitted again.
    pub(super) fn pass(&mut self) -> Option<(Position, Lanes, VecDeque<Held>)> {
        if !self.behind.is_empty() {
            return None;
        }
        let (position, lanes) = self.cuts.pop_front()?;
        self.aim(&lanes);
        self.held_bytes = 0;
        Some((position, lanes, std::mem::take(&mut self.held)))
    }

    /// The places all lanes come by next.
    pub(super) fn goal(&self) -> Option<&Lanes> {
        self.cuts.front().map(|(_, lanes)| lanes)
    }

    /// Bytes held: a lane that runs ahead is not to fill the memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Lanes that have not got to the next cut.
    pub(super) fn behind(&self) -> &BTreeSet<String> {
        &self.behind
    }
}
