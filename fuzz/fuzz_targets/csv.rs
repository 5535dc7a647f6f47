//! CSV: the first byte chooses dialect and table, the second the size of the pieces; the rest is the file.
#![no_main]

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use canalis_formats::{
    InputEnd,
    csv::{CsvDialect, read_header},
};
use canalis_fuzz::records::{every_type, read_csv, round_trip_csv, small};
use canalis_types::{LogicalType, TableSchema};
use libfuzzer_sys::fuzz_target;

static TABLES: LazyLock<[Arc<TableSchema>; 3]> = LazyLock::new(|| {
    [
        small(&[LogicalType::Int32, LogicalType::Text, LogicalType::Float64]),
        small(&[LogicalType::Text]),
        every_type(),
    ]
});

fn dialect(number: u8) -> CsvDialect {
    let plain = CsvDialect { header: false, ..CsvDialect::default() };
    match number % 5 {
        0 => plain,
        1 => CsvDialect { null_literal: b"\\N".to_vec(), ..plain },
        2 => CsvDialect { delimiter: b'\t', escape: Some(b'\\'), null_literal: b"\\N".to_vec(), ..plain },
        3 => CsvDialect { delimiter: b'-', quote: b'\'', null_literal: b"0".to_vec(), ..plain },
        _ => CsvDialect { delimiter: b':', quote: b'.', escape: Some(b' '), max_record_bytes: 20, ..plain },
    }
}

fuzz_target!(|data: &[u8]| {
    let [choice, piece, input @ ..] = data else { return };
    let dialect = dialect(choice / 3);
    let schema = &TABLES[usize::from(choice % 3)];

    let whole = read_csv(schema, &dialect, input, input.len().max(1));
    assert_eq!(whole.offset, input.len() as u64);
    let pieces = read_csv(schema, &dialect, input, usize::from(*piece).max(1));
    assert_eq!(pieces.offset, input.len() as u64);
    if dialect.max_record_bytes >= input.len() {
        assert_eq!(pieces, whole, "pieces of {piece}");
    }
    round_trip_csv(&whole, &dialect);

    if let Ok(Some(header)) = read_header(input, &dialect, InputEnd::Last) {
        assert!(header.end.offset <= input.len() as u64);
        assert_eq!(header.names.iter().collect::<HashSet<_>>().len(), header.names.len());
    }
});
