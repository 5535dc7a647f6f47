//! Owns GTIDs: sets of MySQL (tagged ones too), lists of MariaDB, and the one type that a stream keeps of either.

mod mariadb;
mod mysql;

pub use mariadb::{DomainGtid, GtidList};
pub use mysql::{GtidSet, Source, is_number};

use std::fmt;

use canalis_types::{Code, Error, Result};

use crate::Flavor;

/// Identity of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtid {
    /// MySQL: source and number.
    MySql(Source, u64),
    /// MariaDB: domain, server and sequence number.
    MariaDb(DomainGtid),
}

/// The transactions that a stream has delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executed {
    /// MySQL.
    MySql(GtidSet),
    /// MariaDB.
    MariaDb(GtidList),
}

impl Executed {
    /// Parses the text that servers of `flavor` use.
    ///
    /// # Errors
    /// Invalid pipeline definition when the text is not of that form.
    pub fn parse(flavor: Flavor, text: &str) -> Result<Self> {
        let parsed = match flavor {
            Flavor::MySql => GtidSet::parse(text).map(Self::MySql),
            Flavor::MariaDb => GtidList::parse(text).map(Self::MariaDb),
        };
        parsed.map_err(|reason| Error::new(Code::PipelineInvalid, format!("gtid set {text:?}: {reason}")))
    }

    /// Adds one transaction; one of the other flavor is not added.
    pub fn add(&mut self, gtid: &Gtid) {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql(source, number)) => set.add(source.clone(), *number),
            (Self::MariaDb(list), Gtid::MariaDb(gtid)) => list.add(*gtid),
            _ => {}
        }
    }
}

impl Executed {
    /// Whether every transaction of `other` is in it; false for one of the other flavor.
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::MySql(all), Self::MySql(set)) => all.contains_all(set),
            (Self::MariaDb(all), Self::MariaDb(list)) => all.contains(list),
            _ => false,
        }
    }

    /// Whether a transaction is in it, where the numbers of a domain of MariaDB are taken to grow, whoever wrote.
    pub fn reaches(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql(source, number)) => set.contains(source, *number),
            (Self::MariaDb(list), Gtid::MariaDb(gtid)) => list.reaches(*gtid),
            _ => false,
        }
    }
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(set) => set.fmt(f),
            Self::MariaDb(list) => list.fmt(f),
        }
    }
}
