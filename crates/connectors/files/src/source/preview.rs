//! Owns the preview of files: the first records, each with its bytes, through the decoder that a job uses.

use std::{
    io::{Read, Seek, SeekFrom},
    sync::Arc,
};

use canalis_connector_api::{Decoded, PreviewRecord, RawRecord, SplitMode};
use canalis_formats::{BatchLimits, Place};
use canalis_types::{Error, Result, TableSchema};

use super::{
    Catalog, FileEntry,
    reader::letter,
    scan::{self, FileScan},
};
use crate::{
    error::source_io,
    options::{Format, SourceOptions},
};

/// Bytes of one record that are shown at most.
const SHOWN_BYTES: u64 = 1 << 20;

/// The first records of the files in order of their names. Blocks.
pub(super) fn preview(options: &SourceOptions, rows: usize) -> Result<Vec<PreviewRecord>> {
    let catalog = Catalog::find(options)?;
    let mut records = Vec::new();
    for entry in &catalog.files {
        if records.len() >= rows {
            break;
        }
        let schema = catalog.tables.get(&entry.table).cloned();
        let schema = schema.ok_or_else(|| Error::internal("a file without a table"))?;
        file(options, entry, schema, rows, &mut records)?;
    }
    Ok(records)
}

fn file(
    options: &SourceOptions,
    entry: &FileEntry,
    schema: Arc<TableSchema>,
    rows: usize,
    records: &mut Vec<PreviewRecord>,
) -> Result<()> {
    // One record a batch, so that its bytes are those between two places.
    let limits = BatchLimits { rows: 1, ..BatchLimits::default() };
    let mut scan = FileScan::open(options, entry, schema, None, limits)?;
    let mut begin = scan.place();
    while records.len() < rows {
        let Some((decoded, end)) = scan.next()? else { break };
        let (raw, blank_lines) = bytes(options, entry, begin, end)?;
        let raw = RawRecord { value: Some(raw), ..RawRecord::default() };
        let mut line = begin.line + blank_lines;
        let decoded = match (decoded.batch, decoded.failures.into_iter().next()) {
            (_, Some(failure)) => {
                line = failure.place.line;
                Decoded::Undecodable(Box::new(letter(entry, failure)?))
            }
            (batch, None) => Decoded::Rows(batch.into_iter().collect()),
        };
        begin = end;
        records.push(PreviewRecord {
            place: format!("{}, line {line}", entry.path),
            raw: Some(raw),
            structure: Vec::new(),
            decoded,
            mode: SplitMode::Append,
        });
    }
    Ok(())
}

/// The bytes between two places without the end of their line, and the blank lines before them.
fn bytes(options: &SourceOptions, entry: &FileEntry, begin: Place, end: Place) -> Result<(Vec<u8>, u64)> {
    let fail = |e| source_io(format!("read {}", entry.path), e);
    let mut file = scan::open(entry)?;
    file.seek(SeekFrom::Start(begin.offset)).map_err(fail)?;
    let mut bytes = Vec::new();
    let length = end.offset.saturating_sub(begin.offset).min(SHOWN_BYTES);
    file.take(length).read_to_end(&mut bytes).map_err(fail)?;
    let line_end = if options.format == Format::Csv { options.csv.line_end.byte() } else { b'\n' };
    let is_end = |b: &u8| *b == line_end || (line_end == b'\n' && *b == b'\r');
    // Blank lines are passed over, so they may stand before a record.
    let first = bytes.iter().position(|b| !is_end(b)).unwrap_or(bytes.len());
    let last = bytes.iter().rposition(|b| !is_end(b)).map_or(first, |last| last + 1);
    let blank_lines = bytes[..first].iter().filter(|b| **b == line_end).count();
    Ok((bytes[first..last].to_vec(), blank_lines as u64))
}
