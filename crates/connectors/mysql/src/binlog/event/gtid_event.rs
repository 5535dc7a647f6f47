//! Owns the events that begin a transaction: GTID, its tagged form of MySQL 8.3, and MariaDB's.

use crate::binlog::{
    cursor::{Cursor, DecodeError, Decoded},
    gtid::{DomainGtid, Gtid, GtidList, Source, is_number},
};

/// The beginning of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidEvent {
    /// Its identity; `None` for an anonymous one.
    pub gtid: Option<Gtid>,
    /// When it was committed where it was first written, microseconds since the epoch, if the event tells.
    pub commit_micros: Option<u64>,
    /// The one statement behind is the whole transaction (MariaDB tells; in MySQL the statement does).
    pub standalone: bool,
    /// It is prepared by XA PREPARE and committed later, or never.
    pub prepared_xa: bool,
    /// Its ALTER TABLE only begins here or is taken back; where it takes effect it is logged again (MariaDB with
    /// `binlog_alter_two_phase`).
    pub alter_without_effect: bool,
}

/// Parses GTID and ANONYMOUS_GTID. The caller knows which of them it is and drops the identity of the latter.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_gtid(body: &[u8]) -> Decoded<GtidEvent> {
    let mut cursor = Cursor::new(body);
    cursor.skip(1)?;
    let uuid = cursor.array::<16>()?;
    let number = cursor.u64()?;
    // An anonymous transaction has the number 0.
    if number > 0 && !is_number(number) {
        return Err(DecodeError::malformed("number of a gtid is out of range"));
    }
    let gtid = Some(Gtid::MySql(Source::new(uuid, ""), number));
    // Servers before 5.7 and 8.0 stop earlier.
    let mut commit_micros = None;
    if cursor.rest().len() >= 1 + 16 + 7 && cursor.u8()? == 2 {
        cursor.skip(16)?;
        let immediate = cursor.uint(7)?;
        // The top bit says that the time of the first commit follows, which is then another.
        let differs = immediate & (1 << 55) != 0;
        commit_micros = Some(if differs { cursor.uint(7)? } else { immediate });
    }
    Ok(GtidEvent {
        gtid,
        commit_micros: commit_micros.filter(|t| *t > 0),
        standalone: false,
        prepared_xa: false,
        alter_without_effect: false,
    })
}

/// Parses GTID_TAGGED_LOG: numbered fields in the variable-length form of MySQL's serialisation library.
///
/// # Errors
/// When the bytes break the format or a field that must be understood is not known.
pub fn parse_tagged_gtid(body: &[u8]) -> Decoded<GtidEvent> {
    let mut cursor = Cursor::new(body);
    let _version = varlen(&mut cursor)?;
    let _size = varlen(&mut cursor)?;
    let last_needed = varlen(&mut cursor)?;
    let (mut uuid, mut number, mut tag) = (None, None, "");
    let (mut immediate, mut original) = (None, None);
    while !cursor.is_empty() {
        match varlen(&mut cursor)? {
            1 => {
                let mut bytes = [0; 16];
                for byte in &mut bytes {
                    let value = varlen(&mut cursor)?;
                    *byte = u8::try_from(value)
                        .map_err(|_| DecodeError::malformed("uuid of a gtid is damaged"))?;
                }
                uuid = Some(bytes);
            }
            2 => number = Some(signed(varlen(&mut cursor)?)),
            3 => {
                let len = usize::try_from(varlen(&mut cursor)?).unwrap_or(usize::MAX);
                let bytes = cursor.take(len)?;
                tag = std::str::from_utf8(bytes)
                    .map_err(|_| DecodeError::malformed("tag of a gtid is damaged"))?;
            }
            6 => immediate = Some(varlen(&mut cursor)?),
            7 => original = Some(varlen(&mut cursor)?),
            // Flags, logical clock, length, versions and ticket: numbers of no use here.
            0 | 4 | 5 | 8..=11 => {
                varlen(&mut cursor)?;
            }
            field if field > last_needed => break,
            _ => return Err(DecodeError::malformed("gtid has a field that is not known")),
        }
    }
    let (Some(uuid), Some(Ok(number))) = (uuid, number.map(u64::try_from)) else {
        return Err(DecodeError::malformed("gtid has no source or no number"));
    };
    let source = Source::checked(uuid, tag).filter(|_| is_number(number));
    let source = source.ok_or_else(|| DecodeError::malformed("tag or number of a gtid is damaged"))?;
    Ok(GtidEvent {
        gtid: Some(Gtid::MySql(source, number)),
        commit_micros: original.or(immediate).filter(|t| *t > 0),
        standalone: false,
        prepared_xa: false,
        alter_without_effect: false,
    })
}

/// A number whose first byte ends in as many ones as bytes follow.
fn varlen(cursor: &mut Cursor<'_>) -> Decoded<u64> {
    let first = cursor.u8()?;
    let more = first.trailing_ones();
    let behind = cursor.uint(usize::try_from(more).unwrap_or(8))?;
    let own_bits = 7u32.saturating_sub(more);
    let own = u64::from(first).checked_shr(more + 1).unwrap_or(0);
    Ok(behind.checked_shl(own_bits).unwrap_or(0) | own)
}

/// Signed numbers keep their sign in the lowest bit.
fn signed(number: u64) -> i64 {
    let half = (number >> 1).cast_signed();
    if number & 1 == 0 { half } else { !half }
}

/// Parses MariaDB's GTID; the server of the identity stands in the header.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_mariadb_gtid(body: &[u8], server: u32) -> Decoded<GtidEvent> {
    const STANDALONE: u8 = 0x01;
    const GROUP_COMMIT: u8 = 0x02;
    const PREPARED_XA: u8 = 0x40;
    const COMPLETED_XA: u8 = 0x80;
    const START_ALTER: u8 = 0x02;
    const ROLLBACK_ALTER: u8 = 0x08;
    let mut cursor = Cursor::new(body);
    let sequence = cursor.u64()?;
    let domain = cursor.u32()?;
    let flags = cursor.u8()?;
    if flags & GROUP_COMMIT != 0 {
        cursor.skip(8)?;
    }
    if flags & (PREPARED_XA | COMPLETED_XA) != 0 {
        cursor.skip(4)?;
        let parts = usize::from(cursor.u8()?) + usize::from(cursor.u8()?);
        cursor.skip(parts)?;
    }
    // Absent before 10.8; short events are filled up with zeros.
    let more_flags = cursor.u8().unwrap_or(0);
    Ok(GtidEvent {
        gtid: Some(Gtid::MariaDb(DomainGtid { domain, server, sequence })),
        commit_micros: None,
        standalone: flags & STANDALONE != 0,
        prepared_xa: flags & PREPARED_XA != 0,
        alter_without_effect: more_flags & (START_ALTER | ROLLBACK_ALTER) != 0,
    })
}

/// Parses MariaDB's GTID_LIST: the newest transaction of each domain and server, the newest of a domain last.
///
/// # Errors
/// When the bytes break the format.
pub fn parse_gtid_list(body: &[u8]) -> Decoded<GtidList> {
    let mut cursor = Cursor::new(body);
    // The top four bits are flags.
    let count = cursor.u32()? & 0x0fff_ffff;
    let mut list = GtidList::default();
    for _ in 0..count {
        let (domain, server, sequence) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
        list.add(DomainGtid { domain, server, sequence });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inverse of [`varlen`].
    fn write(out: &mut Vec<u8>, value: u64) {
        let bits = 64 - value.leading_zeros().min(63);
        let bytes = bits.div_ceil(7).clamp(1, 9);
        if bytes == 9 {
            out.push(0xff);
            out.extend_from_slice(&value.to_le_bytes());
            return;
        }
        let wide = value << bytes | ((1 << (bytes - 1)) - 1);
        out.extend_from_slice(&wide.to_le_bytes()[..usize::try_from(bytes).unwrap()]);
    }

    #[test]
    fn numbers_of_every_length() {
        for value in [0, 1, 65, 127, 128, 16_383, 16_384, 1 << 35, (1 << 56) - 1, 1 << 56, u64::MAX] {
            let mut out = Vec::new();
            write(&mut out, value);
            let mut cursor = Cursor::new(&out);
            assert_eq!(varlen(&mut cursor).unwrap(), value);
            assert!(cursor.is_empty());
        }
        assert_eq!((signed(0), signed(1), signed(2), signed(3)), (0, -1, 1, -2));
    }

    #[test]
    fn tagged_gtids() {
        let mut body = Vec::new();
        for number in [1, 60, 10, 0, 1, 1] {
            write(&mut body, number);
        }
        for byte in 240..=255u64 {
            write(&mut body, byte);
        }
        write(&mut body, 2);
        write(&mut body, 42 << 1);
        write(&mut body, 3);
        write(&mut body, 4);
        body.extend_from_slice(b"blue");
        write(&mut body, 6);
        write(&mut body, 1_700_000_000_000_000);
        let event = parse_tagged_gtid(&body).unwrap();
        let Some(Gtid::MySql(source, 42)) = event.gtid else { panic!("{event:?}") };
        assert_eq!(source.to_string(), "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff:blue");
        assert_eq!(event.commit_micros, Some(1_700_000_000_000_000));
    }
}
