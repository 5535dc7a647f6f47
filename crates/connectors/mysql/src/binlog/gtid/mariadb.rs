//! Owns MariaDB's GTIDs: `domain-server-sequence`, and lists with the newest of each domain.

use std::{collections::BTreeMap, fmt};

/// One GTID of MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainGtid {
    /// Replication domain.
    pub domain: u32,
    /// Server that first committed the transaction.
    pub server: u32,
    /// Number inside the domain.
    pub sequence: u64,
}

impl fmt::Display for DomainGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

/// The newest GTID of each domain, as in `gtid_binlog_pos`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidList {
    newest: BTreeMap<u32, DomainGtid>,
}

impl GtidList {
    /// Parses `0-1-42,1-2-7`; the empty text is the empty list.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let parts: Vec<&str> = item.split('-').collect();
            let [domain, server, sequence] = parts.as_slice() else {
                return Err(format!("{item:?} is not domain-server-sequence"));
            };
            let number = |_| format!("{item:?} holds something that is no number");
            let gtid = DomainGtid {
                domain: domain.parse().map_err(number)?,
                server: server.parse().map_err(number)?,
                sequence: sequence.parse().map_err(number)?,
            };
            if list.newest.insert(gtid.domain, gtid).is_some() {
                return Err(format!("domain {domain} stands twice"));
            }
        }
        Ok(list)
    }

    /// Notes a transaction as the newest of its domain. The stream's order counts, not the number: a domain
    /// written by two servers may go back.
    pub fn add(&mut self, gtid: DomainGtid) {
        self.newest.insert(gtid.domain, gtid);
    }

    /// Whether every domain of `other` is here at least as far.
    pub fn contains(&self, other: &Self) -> bool {
        other.newest.values().all(|theirs| {
            self.newest.get(&theirs.domain).is_some_and(|ours| ours.sequence >= theirs.sequence)
        })
    }

    /// Whether a transaction comes before or is the newest of its domain. Known only if the same server wrote both:
    /// its numbers only grow.
    pub fn covers(&self, gtid: DomainGtid) -> bool {
        self.newest
            .get(&gtid.domain)
            .is_some_and(|ours| ours.server == gtid.server && ours.sequence >= gtid.sequence)
    }

    /// Whether its domain has come at least as far as a transaction, whoever wrote it.
    pub fn reaches(&self, gtid: DomainGtid) -> bool {
        self.newest.get(&gtid.domain).is_some_and(|ours| ours.sequence >= gtid.sequence)
    }

    /// Whether there is no domain.
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }
}

impl fmt::Display for GtidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, gtid) in self.newest.values().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            gtid.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_newest_of_each_domain() {
        let mut list = GtidList::parse(" 1-2-7, 0-1-42 ").unwrap();
        assert_eq!(list.to_string(), "0-1-42,1-2-7");
        list.add(DomainGtid { domain: 0, server: 3, sequence: 43 });
        assert_eq!(list.to_string(), "0-3-43,1-2-7");
        assert!(list.covers(DomainGtid { domain: 1, server: 2, sequence: 7 }));
        assert!(!list.covers(DomainGtid { domain: 1, server: 2, sequence: 8 }));
        assert!(!list.covers(DomainGtid { domain: 1, server: 3, sequence: 1 }));
        assert!(list.contains(&GtidList::parse("0-1-42").unwrap()));
        assert!(!list.contains(&GtidList::parse("0-1-44").unwrap()));
        assert!(!list.contains(&GtidList::parse("5-1-1").unwrap()));
        assert!(list.contains(&GtidList::default()));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["0-1", "a-b-c", "0-1-2-3", "0-1-5,0-1-6", "0-1-18446744073709551616"] {
            assert!(GtidList::parse(text).is_err(), "{text}");
        }
    }
}
