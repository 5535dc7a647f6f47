//! Owns what is remembered of each topic: which table it holds, and the keys of the newest deletes, whose tombstones follow.

use std::collections::HashMap;

/// Deletes of a topic whose tombstones may still come: those of several partitions stand between each other.
const KEYS: usize = 16;

/// The tables that rows of a topic were of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    None,
    One(usize),
    Many,
}

#[derive(Debug)]
pub(crate) struct Topic {
    pub tables: Tables,
    /// Table of the last row.
    pub last: Option<usize>,
    deleted: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl Topic {
    /// A row of this table came.
    pub(crate) fn note(&mut self, slot: usize) {
        self.last = Some(slot);
        self.tables = match self.tables {
            Tables::None => Tables::One(slot),
            Tables::One(one) if one == slot => Tables::One(one),
            Tables::One(_) | Tables::Many => Tables::Many,
        };
    }

    /// A row of this key was deleted.
    pub(crate) fn deleted(&mut self, key: &[u8]) {
        self.forget(key);
        let mut room = if self.deleted.len() == KEYS {
            self.deleted.remove(0)
        } else {
            self.spare.pop().unwrap_or_default()
        };
        room.clear();
        room.extend_from_slice(key);
        self.deleted.push(room);
    }

    /// A row of this key came, or the tombstone. Whether its delete was the newest that was known of it.
    pub(crate) fn forget(&mut self, key: &[u8]) -> bool {
        let Some(at) = self.deleted.iter().rposition(|k| k == key) else { return false };
        self.spare.push(self.deleted.remove(at));
        true
    }
}

/// All topics seen.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    by_name: HashMap<String, usize>,
    topics: Vec<Topic>,
    last: (String, usize),
}

impl Topics {
    /// The number of a topic.
    pub(crate) fn number(&mut self, name: &str) -> usize {
        if self.last.0 == name && !self.topics.is_empty() {
            return self.last.1;
        }
        let number = match self.by_name.get(name) {
            Some(number) => *number,
            None => {
                let topic =
                    Topic { tables: Tables::None, last: None, deleted: Vec::new(), spare: Vec::new() };
                self.topics.push(topic);
                self.by_name.insert(name.to_owned(), self.topics.len() - 1);
                self.topics.len() - 1
            }
        };
        self.last.0.clear();
        self.last.0.push_str(name);
        self.last.1 = number;
        number
    }

    pub(crate) fn get(&mut self, number: usize) -> &mut Topic {
        &mut self.topics[number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kf_01_the_tombstone_of_a_delete_is_known_once() {
        let mut topics = Topics::default();
        let number = topics.number("t");
        let topic = topics.get(number);
        topic.deleted(b"1");
        topic.deleted(b"2");
        assert!(topic.forget(b"1"));
        assert!(!topic.forget(b"1"));
        for key in 0..100_u8 {
            topic.deleted(&[key]);
        }
        assert!(!topic.forget(b"2"), "old ones are forgotten");
        assert!(topic.forget(&[99]));
        assert_eq!(topics.number("t"), number);
        assert_ne!(topics.number("u"), number);
    }
}
