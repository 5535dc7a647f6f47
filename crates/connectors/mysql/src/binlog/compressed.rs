//! Owns compressed bytes in the log: MariaDB's compressed events and columns (zlib), and MySQL's transaction payloads
//! (zstd), which are read event by event and never expanded as a whole.

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, Operation};

use super::{
    cursor::{Cursor, DecodeError, Decoded},
    event::{EventHeader, HEADER_LEN},
};

/// The server takes no greater packets, so no honest value is longer.
const MAX_LEN: usize = 1 << 30;
/// Growth of a buffer while it is filled, so that a false length costs no memory.
const STEP: usize = 1 << 20;

fn bad(what: &'static str) -> DecodeError {
    DecodeError::malformed(what)
}

/// Expands the compressed part of a MariaDB event into `out`, which is emptied first.
///
/// The first byte has its top bit set, the algorithm (0, zlib) below it, and how many bytes of length follow,
/// big-endian.
///
/// # Errors
/// When the bytes break the format or are not as long as they say.
pub fn event_part(bytes: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
    out.clear();
    let mut cursor = Cursor::new(bytes);
    let head = cursor.u8()?;
    if head & 0xf0 != 0x80 {
        return Err(bad("compressed event has an unknown algorithm"));
    }
    inflate(&mut cursor, usize::from(head & 0x07), Wrap::Zlib, out)
}

/// Expands a value of a MariaDB column that is declared COMPRESSED, appending it to `out`.
///
/// The first byte is 0 before a plain value; else it has its top bit set, 8 for raw deflate, and how many bytes of
/// length follow.
///
/// # Errors
/// When the bytes break the format or are not as long as they say.
pub fn column_value(bytes: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
    let mut cursor = Cursor::new(bytes);
    if cursor.is_empty() {
        return Ok(());
    }
    match cursor.u8()? {
        0 => {
            out.extend_from_slice(cursor.rest());
            Ok(())
        }
        head if head & 0xf0 == 0x80 => {
            let wrap = if head & 0x08 != 0 { Wrap::Raw } else { Wrap::Zlib };
            inflate(&mut cursor, usize::from(head & 0x07), wrap, out)
        }
        _ => Err(bad("compressed column has an unknown algorithm")),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrap {
    Raw,
    Zlib,
}

fn inflate(cursor: &mut Cursor<'_>, len_bytes: usize, wrap: Wrap, out: &mut Vec<u8>) -> Decoded<()> {
    let len = usize::try_from(cursor.uint_be(len_bytes)?).unwrap_or(usize::MAX);
    if len > MAX_LEN {
        return Err(bad("compressed value is too long"));
    }
    let input = cursor.rest();
    let begin = out.len();
    let mut inflater = Decompress::new(wrap == Wrap::Zlib);
    loop {
        let done = out.len() - begin;
        if done > len {
            return Err(bad("compressed value is longer than it says"));
        }
        // One more byte than is left shows a value that is too long.
        out.reserve((len - done).saturating_add(1).min(STEP));
        let read = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        let rest = input.get(read..).unwrap_or_default();
        let status = inflater
            .decompress_vec(rest, out, FlushDecompress::None)
            .map_err(|_| bad("compressed value is damaged"))?;
        match status {
            Status::StreamEnd if out.len() - begin == len => return Ok(()),
            Status::Ok
                if out.len() - begin > done
                    || usize::try_from(inflater.total_in()).is_ok_and(|n| n > read) => {}
            _ => return Err(bad("compressed value is shorter or longer than it says")),
        }
    }
}

/// Reads the events inside TRANSACTION_PAYLOAD events. Kept from one payload to the next.
pub struct PayloadReader {
    zstd: Decoder<'static>,
    chunk: Vec<u8>,
    /// Decoded bytes of `chunk` not yet handed out.
    ready: std::ops::Range<usize>,
    event: Vec<u8>,
}

/// A payload being read.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    compressed: bool,
    rest: &'a [u8],
    /// Decoded bytes that are still to come, as the event says.
    left: u64,
}

impl<'a> Payload<'a> {
    /// Reads the head of a payload event's body.
    ///
    /// # Errors
    /// When the bytes break the format or name an unknown algorithm.
    pub fn parse(body: &'a [u8]) -> Decoded<Self> {
        let mut cursor = Cursor::new(body);
        let (mut size, mut algorithm, mut uncompressed) = (None, None, None);
        loop {
            let field = cursor.lenenc()?;
            if field == 0 {
                break;
            }
            let mut value = Cursor::new(cursor.lenenc_bytes()?);
            match field {
                1 => size = Some(value.lenenc_len()?),
                2 => algorithm = Some(value.lenenc()?),
                3 => uncompressed = Some(value.lenenc()?),
                // Later servers may add fields.
                _ => {}
            }
        }
        let rest = cursor.take(size.unwrap_or(cursor.rest().len()))?;
        let compressed = match algorithm {
            Some(0) => true,
            Some(255) => false,
            _ => return Err(bad("transaction payload has an unknown algorithm")),
        };
        let plain = u64::try_from(rest.len()).unwrap_or(u64::MAX);
        let left = if compressed { uncompressed.unwrap_or(u64::MAX) } else { plain };
        Ok(Self { compressed, rest, left })
    }
}

impl PayloadReader {
    /// A reader with its buffers.
    ///
    /// # Errors
    /// When the decoder cannot be made.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { zstd: Decoder::new()?, chunk: vec![0; 128 << 10], ready: 0..0, event: Vec::new() })
    }

    /// Begins a payload.
    ///
    /// # Errors
    /// When the decoder cannot be reset.
    pub fn begin(&mut self) -> Decoded<()> {
        self.ready = 0..0;
        self.zstd.reinit().map_err(|_| bad("zstd decoder cannot be reset"))
    }

    /// The next event inside, head and body; `None` at the end.
    ///
    /// # Errors
    /// When the bytes are damaged or end inside an event.
    pub fn next(&mut self, payload: &mut Payload<'_>) -> Decoded<Option<&[u8]>> {
        self.event.clear();
        // Buffers that one huge event needed are given back.
        if self.event.capacity() > 4 * STEP {
            self.event = Vec::new();
        }
        if !self.fill(payload, HEADER_LEN)? {
            return if self.event.is_empty() { Ok(None) } else { Err(bad("payload ends inside an event")) };
        }
        let len = EventHeader::parse(&self.event)?.len();
        if !(HEADER_LEN..=MAX_LEN + HEADER_LEN).contains(&len)
            || u64::try_from(len - HEADER_LEN).unwrap_or(u64::MAX) > payload.left
        {
            return Err(bad("event in a payload has a false length"));
        }
        if !self.fill(payload, len)? {
            return Err(bad("payload ends inside an event"));
        }
        Ok(Some(&self.event))
    }

    /// Fills the event up to `len` bytes; false when the payload ends before.
    fn fill(&mut self, payload: &mut Payload<'_>, len: usize) -> Decoded<bool> {
        while self.event.len() < len {
            let want = len - self.event.len();
            if !payload.compressed {
                let Some((head, rest)) = payload.rest.split_at_checked(want) else { return Ok(false) };
                self.event.extend_from_slice(head);
                payload.rest = rest;
                payload.left = payload.left.saturating_sub(u64::try_from(want).unwrap_or(u64::MAX));
                continue;
            }
            if self.ready.is_empty() && !self.decode(payload)? {
                return Ok(false);
            }
            let take = want.min(self.ready.len());
            self.event.extend_from_slice(&self.chunk[self.ready.start..self.ready.start + take]);
            self.ready.start += take;
            payload.left = payload.left.saturating_sub(u64::try_from(take).unwrap_or(u64::MAX));
        }
        Ok(true)
    }

    fn decode(&mut self, payload: &mut Payload<'_>) -> Decoded<bool> {
        loop {
            let status = self
                .zstd
                .run_on_buffers(payload.rest, &mut self.chunk)
                .map_err(|_| bad("transaction payload is damaged"))?;
            payload.rest = &payload.rest[status.bytes_read..];
            self.ready = 0..status.bytes_written;
            if status.bytes_written > 0 {
                return Ok(true);
            }
            if status.bytes_read == 0 || (payload.rest.is_empty() && status.remaining == 0) {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn event(kind: u8, len: usize) -> Vec<u8> {
        let mut event = vec![0; HEADER_LEN + len];
        event[4] = kind;
        let size = u32::try_from(event.len()).unwrap();
        event[9..13].copy_from_slice(&size.to_le_bytes());
        for (index, byte) in event[HEADER_LEN..].iter_mut().enumerate() {
            *byte = u8::try_from(index % 251).unwrap();
        }
        event
    }

    fn payload(algorithm: u8, data: &[u8], uncompressed: usize) -> Vec<u8> {
        let mut body = vec![3, 9, 0xfe];
        body.extend_from_slice(&u64::try_from(uncompressed).unwrap().to_le_bytes());
        body.extend_from_slice(&[2, 3, 0xfc, algorithm, 0]);
        body.extend_from_slice(&[1, 4, 0xfd]);
        body.extend_from_slice(&u32::try_from(data.len()).unwrap().to_le_bytes()[..3]);
        body.push(0);
        body.extend_from_slice(data);
        body
    }

    #[test]
    fn payloads_give_their_events_one_by_one() {
        let events = [event(2, 10), event(30, 700_000), event(16, 8)];
        let plain: Vec<u8> = events.concat();
        let packed = zstd::bulk::compress(&plain, 3).unwrap();
        let size = plain.len();
        let mut reader = PayloadReader::new().unwrap();
        for body in [payload(255, &plain, size), payload(0, &packed, size), payload(0, &packed, size)] {
            let mut payload = Payload::parse(&body).unwrap();
            reader.begin().unwrap();
            for event in &events {
                assert_eq!(reader.next(&mut payload).unwrap().unwrap(), event.as_slice());
            }
            assert!(reader.next(&mut payload).unwrap().is_none());
        }
        let body = payload(0, &packed[..packed.len() - 4], size);
        let mut payload = Payload::parse(&body).unwrap();
        reader.begin().unwrap();
        while let Ok(Some(_)) = reader.next(&mut payload) {}
        assert!(reader.next(&mut payload).is_err() || reader.event.is_empty());
    }

    #[test]
    fn zlib_parts_expand_and_false_lengths_are_errors() {
        let plain = vec![7u8; 70_000];
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&plain).unwrap();
        let packed = encoder.finish().unwrap();
        let mut out = vec![1];
        let whole = |len: u32| [&[0x83][..], &len.to_be_bytes()[1..], &packed].concat();
        event_part(&whole(70_000), &mut out).unwrap();
        assert_eq!(out, plain);
        assert!(event_part(&whole(69_999), &mut out).is_err());
        assert!(event_part(&whole(70_001), &mut out).is_err());
        assert!(event_part(&whole(70_000)[..40], &mut out).is_err());
        assert!(event_part(&[0x11, 1], &mut out).is_err());
        out.clear();
        column_value(b"\0plain", &mut out).unwrap();
        assert_eq!(out, b"plain");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut out = Vec::new();
            let _ = event_part(&bytes, &mut out);
            let _ = column_value(&bytes, &mut out);
            if let Ok(mut payload) = Payload::parse(&bytes) {
                let mut reader = PayloadReader::new().unwrap();
                reader.begin().unwrap();
                while let Ok(Some(_)) = reader.next(&mut payload) {}
            }
        }
    }
}
