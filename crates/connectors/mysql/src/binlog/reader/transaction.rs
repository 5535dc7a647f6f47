//! Owns where the reader is: the place in the files, and the transaction under way.

use crate::binlog::gtid::Gtid;

/// A place in the files of the log.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Name of the file; empty before the server has told it.
    pub file: String,
    /// Behind the last event that was read.
    pub offset: u64,
    /// When the server began the file, seconds since the epoch.
    pub file_time: Option<u32>,
    /// Going on from here by file and offset would deliver what follows and nothing else. Not so after a start by
    /// GTIDs, before the first transaction has come.
    pub is_exact: bool,
}

impl Place {
    /// Moves behind an event, whose header has only the low 32 bits of where it ends. Offsets in a file only grow.
    pub fn advance(&mut self, log_pos: u32) {
        let low = u32::try_from(self.offset & 0xffff_ffff).unwrap_or(0);
        self.offset += u64::from(log_pos.wrapping_sub(low));
    }
}

/// A transaction under way.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Where its first event begins.
    pub begin: u64,
    /// Its row events that are consumed, those that were passed over included.
    pub consumed: u64,
    /// Row events still to be passed over, because they were consumed before a restart.
    pub skip: u64,
    /// Its identity.
    pub gtid: Option<Gtid>,
    /// When it was committed, milliseconds since the epoch.
    pub time_ms: i64,
    /// It ends with COMMIT or XID; if not, with its one statement.
    pub explicit: bool,
    /// It belongs to XA: its rows count only if it is committed in one phase.
    pub xa: bool,
    /// It is older than what was asked for.
    pub discard: bool,
    /// Its statement takes effect elsewhere in the log, or never.
    pub without_effect: bool,
    /// Rows of captured tables were delivered.
    pub has_rows: bool,
}

impl Transaction {
    /// A transaction that begins at `begin`.
    pub fn new(begin: u64, time_ms: i64) -> Self {
        Self {
            begin,
            consumed: 0,
            skip: 0,
            gtid: None,
            time_ms,
            explicit: false,
            xa: false,
            discard: false,
            without_effect: false,
            has_rows: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_on_beyond_four_gigabytes() {
        let mut place = Place { file: "b.000001".into(), offset: 4_294_967_000, ..Place::default() };
        place.advance(4_294_967_200);
        assert_eq!(place.offset, 4_294_967_200);
        place.advance(100);
        assert_eq!(place.offset, 4_294_967_396);
        place.advance(1_000);
        assert_eq!(place.offset, 4_294_968_296);
    }
}
