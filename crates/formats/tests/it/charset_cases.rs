//! Owns the cases of character sets and of line ends.

use canalis_formats::{
    BatchLimits, ChangeColumn, Charset, CharsetDecoder, InputEnd, Place, RowEncoder,
    csv::{CsvDecoder, CsvDialect, CsvEncoder, LineEnd},
    json::{JsonDecoder, JsonDecoderOptions},
    read_header_in,
};
use proptest::prelude::*;

use crate::support::{Read, SMALL, drive, read_csv, read_csv_pieces, schema, some};

const COLUMNS: &str = "id INT NOT NULL, txt STRING";

fn charset(label: &str) -> Charset {
    Charset::parse(label).unwrap().unwrap()
}

fn open(label: &str, dialect: &CsvDialect, input: &[u8], limits: BatchLimits) -> CharsetDecoder {
    let charset = charset(label);
    let header =
        dialect.header.then(|| read_header_in(charset, input, dialect, InputEnd::Last).unwrap().unwrap());
    let start = header.as_ref().map_or(Place::START, |h| h.end);
    let names = header.map(|h| h.names);
    let decoder = CsvDecoder::new(schema(COLUMNS), dialect, names.as_deref(), start, limits).unwrap();
    CharsetDecoder::csv(charset, decoder, dialect)
}

fn read(label: &str, dialect: &CsvDialect, input: &[u8]) -> Read {
    let whole = drive(&mut open(label, dialect, input, SMALL), input, input.len().max(1));
    for piece in [1, 2, 3, 7] {
        assert_eq!(drive(&mut open(label, dialect, input, SMALL), input, piece), whole, "pieces of {piece}");
    }
    assert_eq!(whole.offset, input.len() as u64);
    whole
}

fn utf16le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// In each of these sets the second byte of the character is a backslash or a vertical bar elsewhere.
#[test]
fn fm_01_characters_are_decoded_before_records_are_split() {
    let dialect = CsvDialect { delimiter: b'|', escape: Some(b'\\'), ..CsvDialect::default() };
    for (label, character, expect) in [
        ("gbk", &b"\xbf\x5c"[..], "縗"),
        ("gb18030", b"\xbf\x5c", "縗"),
        ("big5", b"\xa5\x5c", "功"),
        ("shift_jis", b"\x95\x5c", "表"),
        ("shift_jis", b"\x83\x7c", "ポ"),
    ] {
        let input =
            [b"id|txt\r\n1|", character, b"\r\n2|\"", character, b"\n", character, b"\"\r\n3|\"\"\r\n4|\r\n"]
                .concat();
        let read = read(label, &dialect, &input);
        assert_eq!(read.reasons(), [""; 0], "{label}");
        let lines = format!("{expect}\n{expect}");
        assert_eq!(
            read.rows,
            [some(&["1", expect]), some(&["2", &lines]), some(&["3", ""]), vec![Some("4".into()), None]]
        );
    }
}

#[test]
fn sets_of_one_byte_and_of_two_are_read() {
    let latin = read("latin1", &CsvDialect::default(), b"id,txt\n1,caf\xe9 \x80\n");
    assert_eq!(latin.rows, [some(&["1", "café €"])]);
    for text in ["id,txt\n1,\"ü\n,😀\"\n\n2,ਊ\n", "\u{feff}id,txt\r\n1,\"ü\n,😀\"\r\n2,ਊ"] {
        let little = utf16le(text);
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (label, input) in [("utf-16le", &little), ("utf-16", &little), ("utf-16be", &big)] {
            let read = read(label, &CsvDialect::default(), input);
            assert_eq!(read.rows, [some(&["1", "ü\n,😀"]), some(&["2", "ਊ"])], "{label}");
        }
    }
}

#[test]
fn a_malformed_sequence_fails_its_record_only() {
    let input = b"1,a\n2,\xff\xff\nx,\xbf\x5c\n\"4\"z,\xbf\x5c\n5,\xbf\x5c,\n6,\xbf";
    let dialect = CsvDialect { header: false, ..CsvDialect::default() };
    let read = read("gbk", &dialect, input);
    assert_eq!(read.rows, [some(&["1", "a"])]);
    let failures: Vec<(u64, u64, &[u8], &str)> = read
        .failures
        .iter()
        .map(|f| (f.place.offset, f.place.line, f.raw.as_slice(), f.reason.as_str()))
        .collect();
    let after = "a closing quote is followed by something that is neither delimiter nor line break";
    assert_eq!(
        failures,
        [
            (4, 2, &b"2,\xff\xff"[..], "bytes at offset 6 are not GBK"),
            (9, 3, b"x,\xbf\x5c", "column `id`: text is not a whole number of 64 bits"),
            (14, 4, b"\"4\"z,\xbf\x5c", after),
            (22, 5, b"5,\xbf\x5c,", "record has 3 fields, the table has 2 columns"),
            (28, 6, b"6,\xbf", "bytes at offset 30 are not GBK"),
        ]
    );
    let wide = [&utf16le("1,a\r\n2,"), &[0x00, 0xdc][..], &utf16le("\r\n3,b\n")].concat();
    let read = drive(&mut open("utf-16le", &dialect, &wide, SMALL), &wide, 5);
    assert_eq!(read.rows, [some(&["1", "a"]), some(&["3", "b"])]);
    let failure = &read.failures[0];
    assert_eq!((failure.place.offset, failure.reason.as_str()), (10, "bytes at offset 14 are not UTF-16LE"));
    assert_eq!(failure.raw, [&utf16le("2,"), &[0x00, 0xdc][..]].concat());
}

#[test]
fn oversized_records_are_told_of_where_they_begin() {
    let long = "ü".repeat(40);
    let input = utf16le(&format!("1,a\n2,\"{long}\n{long}\"\n3,c\n"));
    let dialect = CsvDialect { header: false, max_record_bytes: 20, ..CsvDialect::default() };
    for piece in [4, 9, 1000] {
        let read = drive(&mut open("utf-16le", &dialect, &input, SMALL), &input, piece);
        assert_eq!(read.rows, [some(&["1", "a"]), some(&["3", "c"])], "pieces of {piece}");
        let failure = &read.failures[0];
        assert_eq!((failure.place.offset, failure.place.line), (8, 2));
        assert_eq!(failure.reason, "record is longer than 20 bytes");
    }
}

#[test]
fn reading_goes_on_from_any_place() {
    let input: Vec<u8> =
        (0..50).flat_map(|id| [format!("{id},").as_bytes(), b"\xbf\x5c\n"].concat()).collect();
    let dialect = CsvDialect { header: false, ..CsvDialect::default() };
    let whole = read("gbk", &dialect, &input);
    let mut decoder = open("gbk", &dialect, &input, SMALL);
    let (mut at, mut rows) = (0, 0);
    while at < input.len() {
        at += canalis_formats::RecordDecoder::decode(&mut decoder, &input[at..], InputEnd::Last).unwrap();
        let taken = canalis_formats::RecordDecoder::take(&mut decoder).unwrap();
        rows += taken.batch.map_or(0, |b| b.num_rows());
        let place = canalis_formats::RecordDecoder::place(&decoder);
        let again = CsvDecoder::new(schema(COLUMNS), &dialect, None, place, SMALL).unwrap();
        let rest = drive(&mut CharsetDecoder::csv(charset("gbk"), again, &dialect), &input, 10);
        assert_eq!(rest.rows, whole.rows[rows..]);
    }
}

#[test]
fn json_lines_may_be_in_another_set() {
    let input = "{\"id\":1,\"txt\":\"ü\"}\n{\"id\":}\n{\"id\":3}\n";
    let bytes = utf16le(input);
    let decoder = JsonDecoder::new(schema(COLUMNS), JsonDecoderOptions::default(), Place::START, SMALL);
    let read = drive(&mut CharsetDecoder::json(charset("utf-16"), decoder), &bytes, 11);
    assert_eq!(read.rows, [some(&["1", "ü"]), vec![Some("3".into()), None]]);
    assert_eq!((read.failures[0].place.offset, read.failures[0].raw.clone()), (38, utf16le("{\"id\":}")));
}

/// All names of the standard, by which every set can be chosen.
#[test]
fn every_charset_of_the_standard_is_known() {
    let names = "ibm866 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-8-i iso-8859-10 \
                 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 koi8-r koi8-u macintosh windows-874 windows-1250 windows-1251 \
                 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 x-mac-cyrillic gbk \
                 gb18030 big5 euc-jp iso-2022-jp shift_jis euc-kr x-user-defined";
    for name in names.split_whitespace() {
        let read = read(name, &CsvDialect::default(), b"id,txt\n1,\"plain, ASCII\"\n");
        assert_eq!(read.rows, [some(&["1", "plain, ASCII"])], "{name}");
    }
    assert_eq!(Charset::parse("UTF8"), Ok(None));
    for label in ["", "utf-7", "iso-2022-kr", "latin-99"] {
        assert!(Charset::parse(label).is_err(), "{label}");
    }
}

#[test]
fn records_may_end_with_any_byte() {
    for (end, input) in [
        (b'\r', &b"id,txt\r1,\"a\rb\"\r2,c\nd\r\r3,\"\"\r4,"[..]),
        (b';', b"id,txt;1,\"a;b\";2,c\nd;;3,\"\";4,;"),
        (0x1e, b"id,txt\x1e1,\"a\x1eb\"\x1e2,c\nd\x1e3,\"\"\x1e4,\x1e"),
    ] {
        let dialect = CsvDialect { line_end: LineEnd::Byte(end), ..CsvDialect::default() };
        dialect.validate().unwrap();
        let whole = read_csv(COLUMNS, &dialect, input);
        let first = format!("a{}b", char::from(end));
        let expect =
            [some(&["1", &first]), some(&["2", "c\nd"]), some(&["3", ""]), vec![Some("4".into()), None]];
        assert_eq!(whole.rows, expect, "{end}");
        for piece in 1..8 {
            assert_eq!(read_csv_pieces(COLUMNS, &dialect, input, piece), whole);
        }
    }
    let dialect = CsvDialect { line_end: LineEnd::Byte(b';'), ..CsvDialect::default() };
    let wrong = read_csv(COLUMNS, &dialect, b"id,txt;1,a;x,b;3,c;");
    assert_eq!((wrong.rows.len(), wrong.failures[0].place), (2, Place { offset: 11, line: 3 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fm_03_what_is_written_reads_back_in_every_set(
        texts in proptest::collection::vec("[a-zé|,;\"\n\r\\\\ 縗表]{0,6}", 1..6),
        piece in 1_usize..40,
        end in prop::sample::select(vec![LineEnd::LineFeed, LineEnd::Byte(b';'), LineEnd::Byte(b'\r')]),
        escape in prop::option::of(Just(b'\\')),
    ) {
        let dialect = CsvDialect { line_end: end, escape, ..CsvDialect::default() };
        let schema = schema(COLUMNS);
        let mut builder = canalis_batch::BatchBuilder::new(schema.clone(), texts.len());
        for (id, text) in texts.iter().enumerate() {
            builder.column(0).append_i64(id as i64).unwrap();
            builder.column(1).append_text(text.as_bytes()).unwrap();
            builder.end_row(canalis_types::RowKind::Insert, 0);
        }
        let batch = builder.finish().unwrap();
        let encoder = CsvEncoder::new(&schema, &dialect, &ChangeColumn::Absent);
        let mut out = Vec::new();
        encoder.write_head(&mut out);
        encoder.write_rows(&batch, &mut (0..batch.num_rows()), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (gb18030, _, lossy) = encoding_rs::GB18030.encode(&text);
        prop_assert!(!lossy);
        for (label, input) in [("utf-16le", utf16le(&text)), ("gb18030", gb18030.into_owned())] {
            let read = drive(&mut open(label, &dialect, &input, SMALL), &input, piece);
            prop_assert_eq!(read.reasons(), Vec::<&str>::new());
            prop_assert_eq!(read.rows, crate::support::cells(&batch));
        }
    }

    #[test]
    fn any_bytes_are_rows_or_failures(
        input in proptest::collection::vec(prop_oneof![prop::sample::select(&b"1,\"\n\r\\a\xbf\x5c\x00"[..]), any::<u8>()], 0..80),
        piece in 1_usize..20,
        label in prop::sample::select(vec!["gbk", "utf-16le", "iso-2022-jp", "big5", "windows-1252"]),
        cap in 5_usize..60,
    ) {
        let dialect = CsvDialect { header: false, max_record_bytes: cap, ..CsvDialect::default() };
        let read = drive(&mut open(label, &dialect, &input, SMALL), &input, piece);
        prop_assert_eq!(read.offset, input.len() as u64);
    }
}
