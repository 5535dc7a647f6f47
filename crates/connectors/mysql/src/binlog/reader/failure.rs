//! Owns how a session with the server may end, and telling a lost position from other refusals of the server.

use canalis_types::{Code, Error};

use crate::wire::WireError;

/// Why a session ended.
#[derive(Debug)]
pub enum Failure {
    /// The connection is lost; another session may go on.
    Lost(WireError),
    /// Nothing helps.
    Fatal(Error),
    /// Nobody wants more.
    Closed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// Result of a part of a session.
pub type Session<T> = Result<T, Failure>;

/// Sorts an error of the connection: lost, or refused for good.
pub fn refused(error: WireError, doing: &str) -> Failure {
    if error.is_transient() { Failure::Lost(error) } else { Failure::Fatal(error.into_error(doing)) }
}

/// Number of the server's error when it cannot go on with a dump.
const FATAL_DUMP_ERROR: u16 = 1236;

/// How far a dump had come when the server refused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No event of a file was sent.
    None,
    /// Some were.
    Some,
}

/// Sorts an error of a running dump. `at` is the position asked for or reached, `oldest` the oldest one that the
/// server has.
pub fn dump_refused(error: WireError, at: &str, oldest: Option<&str>, progress: Progress) -> Failure {
    let WireError::Server { code, message } = &error else { return refused(error, "reading the binlog") };
    if *code != FATAL_DUMP_ERROR {
        return refused(error, "reading the binlog");
    }
    let text = message.to_ascii_lowercase();
    let lost = [
        "could not find first log file",
        "could not find target log",
        "purged",
        "position > file size",
        "impossible position",
        "could not find gtid state",
        "not in the master's binlog",
        "has more gtids than",
        "file size",
    ];
    // At the first event these mean that the offset is not where an event begins: the file is another one.
    let misplaced = ["max_allowed_packet", "bogus data", "truncated in the middle", "crc check"];
    let is_misplaced = progress == Progress::None && misplaced.iter().any(|part| text.contains(part));
    if is_misplaced || lost.iter().any(|part| text.contains(part)) {
        return Failure::Fatal(position_lost(at, oldest, message));
    }
    if text.contains("same server_uuid/server_id") || text.contains("same server_id") {
        return Failure::Fatal(Error::new(
            Code::SourceMisconfigured,
            format!(
                "another replica with the same server id has connected; give this job another server-id: {message}"
            ),
        ));
    }
    Failure::Fatal(Error::new(Code::SourceUndecodable, format!("reading the binlog at {at}: {message}")))
}

/// The error for a position that the server no longer has, or never had.
pub fn position_lost(at: &str, oldest: Option<&str>, why: &str) -> Error {
    let oldest = oldest
        .map(|file| format!("; the oldest position that the server has is {file}:4"))
        .unwrap_or_default();
    Error::new(Code::PositionLost, format!("binlog position {at} is lost: {why}{oldest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(code: u16, message: &str) -> Option<Code> {
        let error = WireError::Server { code, message: message.to_owned() };
        match dump_refused(error, "bin.000003:4", Some("bin.000007"), Progress::Some) {
            Failure::Fatal(error) => Some(error.code()),
            _ => None,
        }
    }

    #[test]
    fn rs_01_refusals_of_a_dump_are_told_apart() {
        for (code, message, expected) in [
            (1236, "Could not find first log file name in binary log index file", Some(Code::PositionLost)),
            (
                1236,
                "Cannot replicate because the source purged required binary logs.",
                Some(Code::PositionLost),
            ),
            (
                1236,
                "Client requested source to start replication from position > file size",
                Some(Code::PositionLost),
            ),
            (
                1236,
                "Error: connecting slave requested to start from GTID 0-1-9, which is not in the master's binlog",
                Some(Code::PositionLost),
            ),
            (
                1236,
                "A slave with the same server_uuid/server_id as this slave has connected",
                Some(Code::SourceMisconfigured),
            ),
            (1236, "event read from binlog did not pass crc check", Some(Code::SourceUndecodable)),
            (1227, "Access denied; you need REPLICATION SLAVE", Some(Code::SourceAccessDenied)),
            (1927, "Connection was killed", None),
            (1053, "Server shutdown in progress", None),
        ] {
            assert_eq!(sorted(code, message), expected, "{message}");
        }
    }
}
