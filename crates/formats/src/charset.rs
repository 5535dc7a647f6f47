//! Owns input in other character sets than UTF-8: it is decoded before records are looked for, because in many sets a byte of
//! a character is a comma, quote or backslash elsewhere. Places and raw records stay those of the input.

use std::{borrow::Cow, collections::VecDeque};

use canalis_types::Result;
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::{
    DecodedRows, InputEnd, Place, RecordDecoder,
    csv::{CsvDecoder, CsvDialect, Header, read_header},
    decode::RowGatherer,
    json::JsonDecoder,
};

/// Stands in the decoded text for a sequence that is none of the character set, so that its record does not decode.
const MALFORMED: u8 = 0xff;
/// Decoded bytes that are dealt with and still held.
const SLACK: usize = 64 << 10;

/// A character set of the WHATWG Encoding Standard other than UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Charset {
    /// The set that a label of the standard names (`gbk`, `latin1`, `utf-16le`); `None` is UTF-8.
    ///
    /// # Errors
    /// A message when no set has this label.
    pub fn parse(label: &str) -> std::result::Result<Option<Self>, String> {
        match Encoding::for_label_no_replacement(label.as_bytes()) {
            Some(encoding) if encoding == UTF_8 => Ok(None),
            Some(encoding) => Ok(Some(Self(encoding))),
            None => Err(format!(
                "`{label}` is no character set of the WHATWG Encoding Standard; write for example `utf-8`, `gbk` or `windows-1252`"
            )),
        }
    }

    /// The text of a whole input; `None` when a sequence is none of the set.
    pub fn decode(self, input: &[u8]) -> Option<Cow<'_, str>> {
        self.0.decode_without_bom_handling_and_without_replacement(input)
    }

    /// The name in the standard.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

/// Reads the header at the front of a file in a character set; see [`read_header`].
///
/// # Errors
/// Those of [`read_header`].
pub fn read_header_in(
    charset: Charset,
    input: &[u8],
    dialect: &CsvDialect,
    end: InputEnd,
) -> Result<Option<Header>> {
    let mut transcoder = Transcoder::new(charset, dialect.line_end.byte(), 0);
    transcoder.feed(input, end == InputEnd::Last);
    let Some(mut header) = read_header(&transcoder.text, dialect, end)? else { return Ok(None) };
    header.end.offset = transcoder.raw_of(header.end.offset).unwrap_or(transcoder.raw);
    Ok(Some(header))
}

/// The end of a line: bytes before it in the decoded text and in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    text: u64,
    raw: u64,
}

/// Decodes consecutive pieces of input.
struct Transcoder {
    decoder: Decoder,
    /// Order of the bytes of a UTF-16 set: whether the low one is first.
    wide: Option<bool>,
    /// Byte-order mark that may begin the input.
    mark: &'static [u8],
    line_end: u8,
    text: Vec<u8>,
    /// Bytes of the whole text and of the whole input so far.
    text_end: u64,
    raw: u64,
    /// Where the text that is held begins.
    start: Mark,
    marks: VecDeque<Mark>,
    /// Places of malformed sequences in the input.
    malformed: VecDeque<u64>,
    ended: bool,
}

impl Transcoder {
    fn new(charset: Charset, line_end: u8, offset: u64) -> Self {
        let wide = [(UTF_16LE, true), (UTF_16BE, false)];
        Self {
            decoder: charset.0.new_decoder_without_bom_handling(),
            wide: wide.into_iter().find(|(e, _)| *e == charset.0).map(|(_, low)| low),
            mark: match charset.name() {
                "UTF-16LE" => b"\xff\xfe",
                "UTF-16BE" => b"\xfe\xff",
                "gb18030" => b"\x84\x31\x95\x33",
                _ => b"",
            },
            line_end,
            text: Vec::new(),
            text_end: offset,
            raw: offset,
            start: Mark { text: offset, raw: offset },
            marks: VecDeque::new(),
            malformed: VecDeque::new(),
            ended: false,
        }
    }

    fn feed(&mut self, mut input: &[u8], last: bool) {
        if self.raw == 0 && !self.mark.is_empty() {
            if input.len() < self.mark.len() && self.mark.starts_with(input) && !last {
                return;
            }
            if let Some(rest) = input.strip_prefix(self.mark) {
                input = rest;
                self.raw = self.mark.len() as u64;
                self.start.raw = self.raw;
            }
        }
        while !input.is_empty() {
            let line = self.line(input);
            let (piece, rest) = input.split_at(line.unwrap_or(input.len()));
            self.decode(piece, false);
            if line.is_some() {
                self.marks.push_back(Mark { text: self.text_end, raw: self.raw });
            }
            input = rest;
        }
        if last && !self.ended {
            self.ended = true;
            self.decode(&[], true);
        }
    }

    /// Bytes of the line at the front, its end included.
    fn line(&self, input: &[u8]) -> Option<usize> {
        let Some(low_first) = self.wide else {
            return memchr::memchr(self.line_end, input).map(|at| at + 1);
        };
        let unit = if low_first { [self.line_end, 0] } else { [0, self.line_end] };
        // A unit that was cut by the end of the last piece is no line end: these are cut off whole.
        let skip = usize::from(!self.raw.is_multiple_of(2));
        let units = input.get(skip..)?.chunks_exact(2);
        units.enumerate().find(|(_, u)| *u == unit).map(|(at, _)| skip + 2 * at + 2)
    }

    fn decode(&mut self, mut piece: &[u8], last: bool) {
        loop {
            let before = self.text.len();
            let room = self.decoder.max_utf8_buffer_length_without_replacement(piece.len());
            self.text.resize(before + room.unwrap_or(piece.len().saturating_add(16)), 0);
            let (outcome, read, written) =
                self.decoder.decode_to_utf8_without_replacement(piece, &mut self.text[before..], last);
            self.text.truncate(before + written);
            self.raw += read as u64;
            piece = &piece[read..];
            match outcome {
                encoding_rs::DecoderResult::InputEmpty => {
                    self.text_end += written as u64;
                    return;
                }
                encoding_rs::DecoderResult::OutputFull => self.text_end += written as u64,
                encoding_rs::DecoderResult::Malformed(bad, behind) => {
                    self.text.push(MALFORMED);
                    self.text_end += written as u64 + 1;
                    self.malformed.push_back(self.raw - u64::from(bad) - u64::from(behind));
                }
            }
        }
    }

    /// The place in the input of a place between two lines of the text.
    fn raw_of(&self, text: u64) -> Option<u64> {
        if text == self.start.text {
            return Some(self.start.raw);
        }
        self.marks.binary_search_by_key(&text, |m| m.text).ok().map(|at| self.marks[at].raw)
    }
}

enum Inner {
    Csv(Box<CsvDecoder>),
    Json(Box<JsonDecoder>),
}

impl Inner {
    fn decoder(&mut self) -> &mut dyn RecordDecoder {
        match self {
            Inner::Csv(decoder) => &mut **decoder,
            Inner::Json(decoder) => &mut **decoder,
        }
    }

    fn gatherer(&mut self) -> &mut RowGatherer {
        match self {
            Inner::Csv(decoder) => decoder.gatherer(),
            Inner::Json(decoder) => decoder.gatherer(),
        }
    }

    /// Where an oversized record begins that is being passed over.
    fn oversized(&self) -> Option<Place> {
        match self {
            Inner::Csv(decoder) => decoder.oversized(),
            Inner::Json(decoder) => decoder.oversized(),
        }
    }

    fn place(&self) -> Place {
        match self {
            Inner::Csv(decoder) => decoder.place(),
            Inner::Json(decoder) => decoder.place(),
        }
    }
}

/// Decodes records of input in a character set. A record with a sequence that is none of the set does not decode.
pub struct CharsetDecoder {
    charset: Charset,
    inner: Inner,
    transcoder: Transcoder,
    /// Bytes of the text that the inner decoder has taken.
    taken: usize,
    /// Bytes of the input that the caller no longer passes.
    passed: u64,
    /// The beginning of the oversized record that is being passed over.
    oversized: Option<Mark>,
}

impl CharsetDecoder {
    /// Puts a decoder of CSV records behind the character set; its place is one of the input.
    pub fn csv(charset: Charset, decoder: CsvDecoder, dialect: &CsvDialect) -> Self {
        let place = decoder.place();
        Self::new(charset, Inner::Csv(Box::new(decoder)), dialect.line_end.byte(), place)
    }

    /// Puts a decoder of JSON lines behind the character set; its place is one of the input.
    pub fn json(charset: Charset, decoder: JsonDecoder) -> Self {
        let place = decoder.place();
        Self::new(charset, Inner::Json(Box::new(decoder)), b'\n', place)
    }

    fn new(charset: Charset, inner: Inner, line_end: u8, place: Place) -> Self {
        let transcoder = Transcoder::new(charset, line_end, place.offset);
        Self { charset, inner, transcoder, taken: 0, passed: place.offset, oversized: None }
    }

    /// Brings places and raw bytes of the failures from `first` on back to the input.
    fn restore_failures(&mut self, first: usize, input: &[u8]) {
        let Self { charset, inner, transcoder, oversized, passed, .. } = self;
        for failure in &mut inner.gatherer().failures()[first..] {
            let begin = failure.place.offset;
            let end = begin + failure.raw.len() as u64;
            let pinned = oversized.filter(|mark| mark.text == begin).map(|mark| mark.raw);
            let (from, to) = (pinned.or_else(|| transcoder.raw_of(begin)), transcoder.line_behind(end));
            failure.place.offset = from.unwrap_or(transcoder.start.raw);
            let range = from.and_then(|from| {
                let index = |raw: u64| usize::try_from(raw.checked_sub(*passed)?).ok();
                input.get(index(from)?..index(to)?)
            });
            // An oversized record keeps the beginning of its text.
            let Some(raw) = range.filter(|_| pinned.is_none()) else { continue };
            let of_record = |at: &&u64| (failure.place.offset..to).contains(*at);
            if let Some(at) = transcoder.malformed.iter().find(of_record) {
                failure.reason = format!("bytes at offset {at} are not {}", charset.name());
            }
            failure.raw = transcoder.without_line_end(raw).to_vec();
        }
    }

    /// Moves on to the last line end before what the inner decoder has taken.
    fn advance(&mut self, taken: usize, all: bool) {
        let transcoder = &mut self.transcoder;
        self.taken += taken;
        let text = transcoder.text_end - (transcoder.text.len() - self.taken) as u64;
        while let Some(mark) = transcoder.marks.front().copied().filter(|m| m.text <= text) {
            transcoder.start = mark;
            transcoder.marks.pop_front();
        }
        if all && self.taken == transcoder.text.len() {
            transcoder.start = Mark { text, raw: transcoder.raw };
        }
        while transcoder.malformed.front().is_some_and(|at| *at < transcoder.start.raw) {
            transcoder.malformed.pop_front();
        }
        if self.taken == transcoder.text.len() || self.taken > SLACK {
            transcoder.text.drain(..self.taken);
            self.taken = 0;
        }
    }
}

impl Transcoder {
    /// The end in the input of the line that the text place `text` is on.
    fn line_behind(&self, text: u64) -> u64 {
        let at = self.marks.partition_point(|mark| mark.text < text);
        self.marks.get(at).map_or(self.raw, |mark| mark.raw)
    }

    fn without_line_end<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        let strip = |raw: &'a [u8], byte: u8| match self.wide {
            None => raw.strip_suffix(&[byte]),
            Some(true) => raw.strip_suffix(&[byte, 0]),
            Some(false) => raw.strip_suffix(&[0, byte]),
        };
        let Some(line) = strip(raw, self.line_end) else { return raw };
        if self.line_end == b'\n' { strip(line, b'\r').unwrap_or(line) } else { line }
    }
}

impl RecordDecoder for CharsetDecoder {
    fn decode(&mut self, input: &[u8], end: InputEnd) -> Result<usize> {
        let last = end == InputEnd::Last;
        let fed = usize::try_from(self.transcoder.raw - self.passed).unwrap_or(input.len());
        self.transcoder.feed(input.get(fed..).unwrap_or_default(), last);
        let failures = self.inner.gatherer().failures().len();
        let taken = self.inner.decoder().decode(&self.transcoder.text[self.taken..], end)?;
        match (self.inner.oversized(), self.oversized) {
            (Some(place), known) if known.is_none_or(|mark| mark.text != place.offset) => {
                // A record that ended before may be the pinned one.
                self.restore_failures(failures, input);
                let raw = self.transcoder.raw_of(place.offset).unwrap_or(self.transcoder.start.raw);
                self.oversized = Some(Mark { text: place.offset, raw });
            }
            _ => self.restore_failures(failures, input),
        }
        if self.inner.oversized().is_none() {
            self.oversized = None;
        }
        self.advance(taken, last);
        let before = self.passed;
        self.passed = self.transcoder.start.raw;
        Ok(usize::try_from(self.passed - before).unwrap_or(input.len()))
    }

    fn is_full(&self) -> bool {
        match &self.inner {
            Inner::Csv(decoder) => decoder.is_full(),
            Inner::Json(decoder) => decoder.is_full(),
        }
    }

    fn place(&self) -> Place {
        Place { offset: self.passed, line: self.inner.place().line }
    }

    fn take(&mut self) -> Result<DecodedRows> {
        self.inner.decoder().take()
    }
}
