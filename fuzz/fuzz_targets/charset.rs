//! CSV in other character sets: the first byte chooses set and dialect, the second the size of the pieces; the rest is the
//! file.
#![no_main]

use std::sync::{Arc, LazyLock};

use canalis_formats::{
    BatchLimits, Charset, CharsetDecoder, InputEnd, Place,
    csv::{CsvDecoder, CsvDialect},
    read_header_in,
};
use canalis_fuzz::records::{Read, drive, round_trip_csv, small};
use canalis_types::{LogicalType, TableSchema};
use libfuzzer_sys::fuzz_target;

const SETS: [&str; 10] = [
    "gbk",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "euc-kr",
    "utf-16le",
    "utf-16be",
    "windows-1252",
];
const LIMITS: BatchLimits = BatchLimits { rows: 4, bytes: 64 };

static TABLES: LazyLock<[Arc<TableSchema>; 2]> = LazyLock::new(|| {
    [small(&[LogicalType::Int32, LogicalType::Text, LogicalType::Text]), small(&[LogicalType::Text])]
});

fuzz_target!(|data: &[u8]| {
    let [choice, piece, input @ ..] = data else { return };
    let charset = Charset::parse(SETS[usize::from(choice % 10)]).ok().flatten().expect("a set, not UTF-8");
    let schema = &TABLES[usize::from(choice / 10 % 2)];
    let plain = CsvDialect { header: false, ..CsvDialect::default() };
    let dialect = match choice / 20 % 3 {
        0 => plain,
        1 => CsvDialect { delimiter: b'|', escape: Some(b'\\'), null_literal: b"\\N".to_vec(), ..plain },
        _ => CsvDialect { max_record_bytes: 20, ..plain },
    };
    let read = |piece: usize| -> Read {
        let decoder = CsvDecoder::new(schema.clone(), &dialect, None, Place::START, LIMITS);
        let decoder = decoder.expect("without a header every structure will do");
        drive(&mut CharsetDecoder::csv(charset, decoder, &dialect), input, piece)
    };
    let whole = read(input.len().max(1));
    assert_eq!(whole.offset, input.len() as u64);
    let pieces = read(usize::from(*piece).max(1));
    assert_eq!(pieces.offset, whole.offset);
    assert_eq!(pieces.rows, whole.rows, "pieces of {piece}");
    if dialect.max_record_bytes > input.len() * 3 {
        assert_eq!(pieces.failures, whole.failures, "pieces of {piece}");
    }
    round_trip_csv(&whole, &dialect);
    if let Ok(Some(header)) = read_header_in(charset, input, &dialect, InputEnd::Last) {
        assert!(header.end.offset <= input.len() as u64);
    }
});
