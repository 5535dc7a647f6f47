//! Owns driving decoders over pieces of input, as a file reader does.

use std::sync::Arc;

use canalis_batch::{ChangeBatch, cell_to_text};
use canalis_formats::{
    BatchLimits, DecodeFailure, InputEnd, Place, RecordDecoder, csv,
    json::{JsonDecoder, JsonDecoderOptions},
    parse_columns,
};
use canalis_types::{TableId, TableSchema};

pub fn schema(columns: &str) -> Arc<TableSchema> {
    Arc::new(TableSchema::new(TableId::new("d", "t"), parse_columns(columns).unwrap(), Vec::new()))
}

/// Rows as texts, NULL as `None`; failures; the final place.
#[derive(Debug, Default, PartialEq)]
pub struct Read {
    pub rows: Vec<Vec<Option<String>>>,
    pub failures: Vec<DecodeFailure>,
    pub offset: u64,
}

impl Read {
    pub fn reasons(&self) -> Vec<&str> {
        self.failures.iter().map(|f| f.reason.as_str()).collect()
    }
}

pub fn cells(batch: &ChangeBatch) -> Vec<Vec<Option<String>>> {
    let columns = &batch.schema().columns;
    let row = |row: usize| {
        let cell = |(c, column): (usize, &canalis_types::Column)| {
            cell_to_text(batch.rows().column(c), &column.ty, row)
        };
        columns.iter().enumerate().map(cell).collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// Feeds `input` in pieces of `piece` bytes, starting at the decoder's place.
pub fn drive(decoder: &mut dyn RecordDecoder, input: &[u8], piece: usize) -> Read {
    let mut read = Read::default();
    let mut start = usize::try_from(decoder.place().offset).unwrap();
    let mut end = start;
    loop {
        let last = end == input.len();
        let state = if last { InputEnd::Last } else { InputEnd::Open };
        let taken = decoder.decode(&input[start..end], state).unwrap();
        start += taken;
        if decoder.is_full() || (last && start == end) {
            let rows = decoder.take().unwrap();
            read.rows.extend(rows.batch.as_ref().map(cells).unwrap_or_default());
            read.failures.extend(rows.failures);
            if last && start == end {
                break;
            }
        } else {
            assert!(!last, "a decoder takes everything at the end");
            end = input.len().min(end + piece);
        }
        assert_eq!(decoder.place().offset, start as u64);
    }
    read.offset = decoder.place().offset;
    read
}

pub const SMALL: BatchLimits = BatchLimits { rows: 3, bytes: 1 << 20 };

pub fn read_csv_pieces(columns: &str, dialect: &csv::CsvDialect, input: &[u8], piece: usize) -> Read {
    let header = dialect.header.then(|| csv::read_header(input, dialect, InputEnd::Last).unwrap().unwrap());
    let start = header.as_ref().map_or(Place::START, |h| h.end);
    let names = header.map(|h| h.names);
    let mut decoder = csv::CsvDecoder::new(schema(columns), dialect, names.as_deref(), start, SMALL).unwrap();
    drive(&mut decoder, input, piece)
}

pub fn read_csv(columns: &str, dialect: &csv::CsvDialect, input: &[u8]) -> Read {
    read_csv_pieces(columns, dialect, input, input.len().max(1))
}

pub fn read_json(columns: &str, input: &[u8]) -> Read {
    read_json_pieces(columns, JsonDecoderOptions::default(), input, input.len().max(1))
}

pub fn read_json_pieces(columns: &str, options: JsonDecoderOptions, input: &[u8], piece: usize) -> Read {
    drive(&mut JsonDecoder::new(schema(columns), options, Place::START, SMALL), input, piece)
}

pub fn some(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|c| Some((*c).to_owned())).collect()
}
