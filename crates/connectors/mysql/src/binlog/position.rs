//! Owns [`BinlogPosition`], what a [`Position`] of the binlog is made of.

use canalis_types::{Code, Error, Position, Result};
use serde::{Deserialize, Serialize};

/// Offset of the first event in every binlog file, after the magic number.
pub const FIRST_OFFSET: u64 = 4;

/// A place in the binlog to go on from.
///
/// At a transaction border `events` is 0 and `offset` is where the next event begins. Inside a transaction
/// `offset` is where that transaction begins and `events` counts its row events that have been consumed, so the
/// transaction is asked for again and so many row events of it are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinlogPosition {
    /// Name of the file, for example `binlog.000007`.
    pub file: String,
    /// Offset in the file in bytes; may exceed 32 bits.
    #[serde(rename = "pos")]
    pub offset: u64,
    /// Row events of the transaction at `offset` that are consumed.
    #[serde(default)]
    pub events: u64,
    /// Transactions that are done, when they are known: a GTID set of MySQL or a GTID list of MariaDB. Those of them
    /// that come after the position in the file are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid_set: Option<String>,
    /// Identity of the server: `server_uuid` of MySQL, `server_id` of MariaDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// How often the stream has gone on at another server. Files and offsets of two servers have nothing to do with each
    /// other; positions of the later one come after all of the earlier one.
    #[serde(default, skip_serializing_if = "is_first")]
    pub term: u32,
    /// When the server began the file, seconds since the epoch: tells a file from a later one of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_time: Option<u32>,
    /// Commit time of the newest transaction before the position, milliseconds since the epoch.
    #[serde(default, rename = "ts", skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<i64>,
}

impl BinlogPosition {
    /// A transaction border of which no more is known.
    pub fn new(file: impl Into<String>, offset: u64) -> Self {
        Self {
            file: file.into(),
            offset,
            events: 0,
            gtid_set: None,
            server: None,
            term: 0,
            file_time: None,
            time_ms: None,
        }
    }

    /// Sets the transactions that come before the position.
    #[must_use]
    pub fn with_gtid_set(mut self, gtid_set: Option<String>) -> Self {
        self.gtid_set = gtid_set.filter(|set| !set.is_empty());
        self
    }

    /// Sets the identity of the server.
    #[must_use]
    pub fn with_server(mut self, server: Option<String>) -> Self {
        self.server = server;
        self
    }

    /// The general form; its order is term and file number, offset, events.
    ///
    /// # Errors
    /// Misconfigured source when the file name does not end in a number.
    pub fn to_position(&self) -> Result<Position> {
        let number = file_number(&self.file).ok_or_else(|| {
            Error::new(
                Code::SourceMisconfigured,
                format!("binlog file name {:?} does not end in a number", self.file),
            )
        })?;
        // Servers number files with 31 bits.
        let file = (u64::from(self.term) << 32) | number;
        let detail = serde_json::to_string(self)
            .map_err(|e| Error::internal("writing a binlog position").with_source(e))?;
        Ok(Position::new([file, self.offset, self.events], detail))
    }

    /// Reads the general form back.
    ///
    /// # Errors
    /// Incompatible state when the text is not one that [`BinlogPosition::to_position`] wrote.
    pub fn parse(position: &Position) -> Result<Self> {
        serde_json::from_str(&position.detail).map_err(|e| {
            Error::new(Code::StateIncompatible, format!("reading binlog position {}", position.detail))
                .with_source(e)
        })
    }
}

fn is_first(term: &u32) -> bool {
    *term == 0
}

/// The number at the end of a binlog file's name: 7 for `binlog.000007`.
pub fn file_number(file: &str) -> Option<u64> {
    file.rsplit_once('.')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_and_order_by_file_number() {
        let early = BinlogPosition { events: 3, time_ms: Some(5), ..BinlogPosition::new("bin.999999", 120) };
        let late = BinlogPosition::new("bin.1000000", 4).with_gtid_set(Some("0-1-5".into()));
        assert!(early.to_position().unwrap() < late.to_position().unwrap());
        let elsewhere = BinlogPosition { term: 1, ..BinlogPosition::new("other.000001", 4) };
        assert!(late.to_position().unwrap() < elsewhere.to_position().unwrap());
        for position in [early, late, elsewhere] {
            assert_eq!(BinlogPosition::parse(&position.to_position().unwrap()).unwrap(), position);
        }
        assert!(BinlogPosition::new("nonsense", 4).to_position().is_err());
        assert!(BinlogPosition::parse(&Position::new([0; 3], "{}")).is_err());
    }
}
