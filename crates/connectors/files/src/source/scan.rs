//! Owns reading a file: blocks of bytes into a decoder. Everything here blocks.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};

use canalis_formats::{
    BatchLimits, CharsetDecoder, DecodedRows, InputEnd, Place, RecordDecoder,
    csv::{CsvDecoder, Header, read_header},
    json::JsonDecoder,
    read_header_in,
};
use canalis_types::{Code, Error, Result, TableSchema};

use super::FileEntry;
use crate::{
    error::source_io,
    options::{Format, SourceOptions},
};

/// Bytes read at once.
const BLOCK: usize = 1 << 20;
/// Bytes looked at for an estimate.
const SAMPLE: u64 = 64 << 10;

/// A file on its way through a decoder.
pub(super) struct FileScan {
    path: String,
    input: io::Take<File>,
    decoder: Box<dyn RecordDecoder>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are decoded.
    start: usize,
    /// Bytes of the buffer that are read.
    end: usize,
    state: InputEnd,
    ended: bool,
}

impl FileScan {
    /// Opens a file at a place between two records, or at its beginning. Batches are cut at `limits`.
    ///
    /// # Errors
    /// `CNL-2004` when the file is shorter than when it was found, `CNL-2006` when its header does not fit.
    pub(super) fn open(
        options: &SourceOptions,
        entry: &FileEntry,
        schema: Arc<TableSchema>,
        place: Option<Place>,
        limits: BatchLimits,
    ) -> Result<Self> {
        let mut file = open(entry)?;
        let decoder: Box<dyn RecordDecoder> = match options.format {
            Format::Json => {
                let place = place.unwrap_or(Place::START);
                json(options, JsonDecoder::new(schema, options.json, place, limits))
            }
            Format::Csv if options.csv.header && entry.size > 0 => {
                let header = header(options, entry)?;
                let place = place.unwrap_or(header.end);
                let decoder = CsvDecoder::new(schema, &options.csv, Some(&header.names), place, limits)
                    .map_err(|e| e.context(&entry.path))?;
                csv(options, decoder)
            }
            Format::Csv => {
                let place = place.unwrap_or(Place::START);
                csv(options, CsvDecoder::new(schema, &options.csv, None, place, limits)?)
            }
        };
        let offset = decoder.place().offset;
        file.seek(SeekFrom::Start(offset)).map_err(|e| source_io(format!("read {}", entry.path), e))?;
        Ok(Self {
            path: entry.path.clone(),
            input: file.take(entry.size.saturating_sub(offset)),
            decoder,
            buffer: vec![0; BLOCK],
            start: 0,
            end: 0,
            state: InputEnd::Open,
            ended: false,
        })
    }

    /// Where reading goes on, between two records.
    pub(super) fn place(&self) -> Place {
        self.decoder.place()
    }

    /// The next rows and the place behind them; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(DecodedRows, Place)>> {
        while !self.ended {
            self.start += self.decoder.decode(&self.buffer[self.start..self.end], self.state)?;
            if self.decoder.is_full() {
                return Ok(Some((self.decoder.take()?, self.decoder.place())));
            }
            if self.state == InputEnd::Last {
                self.ended = true;
                let rows = self.decoder.take()?;
                if rows.batch.is_some() || !rows.failures.is_empty() {
                    return Ok(Some((rows, self.decoder.place())));
                }
            } else {
                self.fill()?;
            }
        }
        Ok(None)
    }

    /// Reads more behind what is not decoded yet.
    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            // A record longer than the buffer. The decoder passes over those above the limit, which bounds the growth.
            self.buffer.resize(self.end * 2, 0);
        }
        let doing = || format!("read {}", self.path);
        let read = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|e| source_io(doing(), e))?,
            }
        };
        self.end += read;
        if self.input.limit() == 0 {
            self.state = InputEnd::Last;
        } else if read == 0 {
            return Err(shrunk(&self.path));
        }
        Ok(())
    }
}

fn csv(options: &SourceOptions, decoder: CsvDecoder) -> Box<dyn RecordDecoder> {
    match options.charset {
        Some(charset) => Box::new(CharsetDecoder::csv(charset, decoder, &options.csv)),
        None => Box::new(decoder),
    }
}

fn json(options: &SourceOptions, decoder: JsonDecoder) -> Box<dyn RecordDecoder> {
    match options.charset {
        Some(charset) => Box::new(CharsetDecoder::json(charset, decoder)),
        None => Box::new(decoder),
    }
}

pub(super) fn open(entry: &FileEntry) -> Result<File> {
    let doing = || format!("open {}", entry.path);
    let file = File::open(&entry.path).map_err(|e| source_io(doing(), e))?;
    let size = file.metadata().map_err(|e| source_io(doing(), e))?.len();
    if size < entry.size {
        return Err(shrunk(&entry.path));
    }
    Ok(file)
}

fn shrunk(path: &str) -> Error {
    Error::new(Code::PositionLost, format!("cannot read {path}: it has become shorter since the job started"))
}

/// The header of a CSV file.
pub(super) fn header(options: &SourceOptions, entry: &FileEntry) -> Result<Header> {
    let mut file = open(entry)?.take(entry.size);
    let mut bytes = Vec::new();
    loop {
        let block = u64::try_from(bytes.len().max(64 << 10)).unwrap_or(u64::MAX);
        let read = file
            .by_ref()
            .take(block)
            .read_to_end(&mut bytes)
            .map_err(|e| source_io(format!("read {}", entry.path), e))?;
        let end = if read == 0 || file.limit() == 0 { InputEnd::Last } else { InputEnd::Open };
        let header = match options.charset {
            Some(charset) => read_header_in(charset, &bytes, &options.csv, end),
            None => read_header(&bytes, &options.csv, end),
        };
        if let Some(header) = header.map_err(|e| e.context(&entry.path))? {
            return Ok(header);
        }
    }
}

/// Rows of a file by the length of its first lines.
pub(super) fn estimate_rows(options: &SourceOptions, entry: &FileEntry) -> io::Result<u64> {
    let mut sample = Vec::new();
    File::open(&entry.path)?.take(SAMPLE).read_to_end(&mut sample)?;
    let line_end = match options.format {
        Format::Csv => options.csv.line_end.byte(),
        Format::Json => b'\n',
    };
    let lines = sample.iter().filter(|b| **b == line_end).count() as u64;
    let sampled = sample.len() as u64;
    if entry.size <= sampled || lines == 0 {
        return Ok(lines.max(u64::from(sampled > 0)));
    }
    let rows = u128::from(entry.size) * u128::from(lines) / u128::from(sampled);
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}
