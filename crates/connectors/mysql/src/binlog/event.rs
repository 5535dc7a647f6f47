//! Owns events other than rows: their header, checksum, and the bodies that the reader needs.

mod gtid_event;
mod query;

pub use gtid_event::{GtidEvent, parse_gtid, parse_gtid_list, parse_mariadb_gtid, parse_tagged_gtid};
pub use query::{QueryEvent, parse_execute_load, parse_query, statement_text};

use super::cursor::{Cursor, DecodeError, Decoded};

/// Bytes of every event's header.
pub const HEADER_LEN: usize = 19;
/// Bytes of a checksum behind an event.
pub const CHECKSUM_LEN: usize = 4;

/// Event types, as the protocol has them.
#[allow(missing_docs)] // The names are the protocol's own.
pub mod event_type {
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const INTVAR: u8 = 5;
    pub const APPEND_BLOCK: u8 = 9;
    pub const DELETE_FILE: u8 = 11;
    pub const RAND: u8 = 13;
    pub const USER_VAR: u8 = 14;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const BEGIN_LOAD_QUERY: u8 = 17;
    pub const EXECUTE_LOAD_QUERY: u8 = 18;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const IGNORABLE: u8 = 28;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS_V2: u8 = 30;
    pub const UPDATE_ROWS_V2: u8 = 31;
    pub const DELETE_ROWS_V2: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const TRANSACTION_CONTEXT: u8 = 36;
    pub const VIEW_CHANGE: u8 = 37;
    pub const XA_PREPARE: u8 = 38;
    pub const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;
    pub const MARIADB_ANNOTATE_ROWS: u8 = 160;
    pub const MARIADB_BINLOG_CHECKPOINT: u8 = 161;
    pub const MARIADB_GTID: u8 = 162;
    pub const MARIADB_GTID_LIST: u8 = 163;
    pub const MARIADB_START_ENCRYPTION: u8 = 164;
    pub const MARIADB_QUERY_COMPRESSED: u8 = 165;
    pub const MARIADB_WRITE_ROWS_COMPRESSED_V1: u8 = 166;
    pub const MARIADB_UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
    pub const MARIADB_DELETE_ROWS_COMPRESSED_V1: u8 = 168;
    pub const MARIADB_WRITE_ROWS_COMPRESSED: u8 = 169;
    pub const MARIADB_UPDATE_ROWS_COMPRESSED: u8 = 170;
    pub const MARIADB_DELETE_ROWS_COMPRESSED: u8 = 171;
}

/// Flag of events that the server made up for this connection and that are in no file.
pub const FLAG_ARTIFICIAL: u16 = 0x20;
/// Flag of events that a reader may pass over without knowing their type.
pub const FLAG_IGNORABLE: u16 = 0x80;

/// The header of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// When the statement began, seconds since the epoch; 0 in made-up events.
    pub timestamp: u32,
    /// Type number.
    pub kind: u8,
    /// Server that first wrote the event.
    pub server_id: u32,
    /// Bytes of the event, header and checksum included.
    pub size: u32,
    /// Low 32 bits of the offset behind the event in its file; 0 in made-up events.
    pub log_pos: u32,
    /// Flags.
    pub flags: u16,
}

impl EventHeader {
    /// Reads the header at the front of an event.
    ///
    /// # Errors
    /// When there are fewer than 19 bytes.
    pub fn parse(event: &[u8]) -> Decoded<Self> {
        let mut cursor = Cursor::new(event);
        Ok(Self {
            timestamp: cursor.u32()?,
            kind: cursor.u8()?,
            server_id: cursor.u32()?,
            size: cursor.u32()?,
            log_pos: cursor.u32()?,
            flags: cursor.u16()?,
        })
    }

    /// Bytes of the event, as a length in memory.
    pub fn len(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    /// Whether the event says that it has no bytes, which none can.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Whether the event is in no file.
    pub fn is_artificial(&self) -> bool {
        self.log_pos == 0 || self.flags & FLAG_ARTIFICIAL != 0
    }
}

/// Splits the checksum off an event and compares it.
///
/// # Errors
/// When the event is shorter than a header with checksum, or the checksum is wrong.
pub fn verified(event: &[u8]) -> Decoded<&[u8]> {
    let at = event.len().checked_sub(CHECKSUM_LEN).filter(|at| *at >= HEADER_LEN);
    let (content, checksum) = at.map(|at| event.split_at(at)).ok_or_else(too_short)?;
    let expected = Cursor::new(checksum).u32()?;
    if crc32fast::hash(content) != expected {
        return Err(DecodeError::malformed("checksum of an event is wrong"));
    }
    Ok(content)
}

fn too_short() -> DecodeError {
    DecodeError::malformed("event is shorter than its header")
}

/// What a FORMAT_DESCRIPTION says about the events behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Whether events carry a CRC32.
    pub checksum: bool,
    /// Bytes of table numbers in TABLE_MAP and row events.
    pub table_id_len: usize,
}

/// Parses a FORMAT_DESCRIPTION's whole event. Its own checksum is compared whatever its algorithm says.
///
/// # Errors
/// When the log is older than MySQL 5.6, or has another header length or checksum algorithm than is known.
pub fn parse_format(event: &[u8]) -> Decoded<Format> {
    let body = event.get(HEADER_LEN..).ok_or_else(too_short)?;
    let mut cursor = Cursor::new(body);
    let version = cursor.u16()?;
    cursor.skip(50 + 4)?;
    if version != 4 || usize::from(cursor.u8()?) != HEADER_LEN {
        return Err(DecodeError::malformed("binlog is not of version 4"));
    }
    let tail = cursor.rest();
    let Some((lengths, tail)) = tail.len().checked_sub(1 + CHECKSUM_LEN).map(|at| tail.split_at(at)) else {
        return Err(too_short());
    };
    // A table map has 8 bytes before its names; very old servers had 6.
    let table_map_len = lengths.get(usize::from(event_type::TABLE_MAP) - 1).copied().unwrap_or(8);
    let checksum = match tail.first() {
        Some(0) => false,
        Some(1) => {
            verified(event)?;
            true
        }
        _ => return Err(DecodeError::malformed("checksum algorithm of the binlog is not known")),
    };
    Ok(Format { checksum, table_id_len: if table_map_len == 6 { 4 } else { 6 } })
}

/// Name and offset that a ROTATE leads to.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_rotate(body: &[u8]) -> Decoded<(&str, u64)> {
    let mut cursor = Cursor::new(body);
    let offset = cursor.u64()?;
    let file =
        std::str::from_utf8(cursor.rest()).map_err(|_| DecodeError::malformed("file name is not UTF-8"))?;
    if file.is_empty() {
        return Err(DecodeError::malformed("rotate event names no file"));
    }
    Ok((file, offset))
}

/// Whether an XA_PREPARE commits at once (`XA COMMIT … ONE PHASE`).
///
/// # Errors
/// When the body is empty.
pub fn parse_xa_prepare(body: &[u8]) -> Decoded<bool> {
    Ok(Cursor::new(body).u8()? != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn checksums_are_compared() {
        let mut event = vec![0u8; HEADER_LEN + 3];
        event[4] = event_type::XID;
        let checksum = crc32fast::hash(&event);
        event.extend_from_slice(&checksum.to_le_bytes());
        assert_eq!(verified(&event).unwrap().len(), HEADER_LEN + 3);
        event[20] ^= 1;
        assert!(verified(&event).is_err());
        assert!(verified(&event[..20]).is_err());
    }

    #[test]
    fn rotations_name_file_and_offset() {
        let body = [&4u64.to_le_bytes()[..], b"bin.000002"].concat();
        assert_eq!(parse_rotate(&body).unwrap(), ("bin.000002", 4));
        assert!(parse_rotate(&body[..8]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = EventHeader::parse(&bytes);
            let _ = parse_format(&bytes);
            let _ = parse_rotate(&bytes);
            let _ = parse_xa_prepare(&bytes);
            let _ = parse_query(&bytes);
            let _ = parse_execute_load(&bytes);
            let _ = parse_gtid_list(&bytes);
            let _ = parse_gtid(&bytes);
            let _ = parse_tagged_gtid(&bytes);
            let _ = parse_mariadb_gtid(&bytes, 1);
            let _ = verified(&bytes);
        }
    }
}
