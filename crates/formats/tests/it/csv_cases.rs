//! Owns the cases of CSV.

use std::sync::Arc;

use canalis_batch::BatchBuilder;
use canalis_formats::{
    ChangeColumn, InputEnd, Place, RowEncoder,
    csv::{CsvDecoder, CsvDialect, CsvEncoder, read_header},
};
use canalis_types::RowKind;

use crate::support::{Read, SMALL, drive, read_csv, read_csv_pieces, schema, some};

fn bare() -> CsvDialect {
    CsvDialect { header: false, ..CsvDialect::default() }
}

#[test]
fn fm_01_line_breaks_inside_quotes() {
    let input = b"id,txt\r\n1,\"a\nb\"\r\n2,\"q\"\"q, z\"\r\n3,\"\"\r\n4,\r\n";
    let read = read_csv("id INT, txt STRING", &CsvDialect::default(), input);
    assert_eq!(
        read.rows,
        [some(&["1", "a\nb"]), some(&["2", "q\"q, z"]), some(&["3", ""]), vec![Some("4".into()), None]]
    );
    assert_eq!((read.failures.len(), read.offset), (0, input.len() as u64));
    // With another null literal the last one is the empty text too.
    let dialect = CsvDialect { null_literal: b"\\N".to_vec(), ..CsvDialect::default() };
    assert_eq!(read_csv("id INT, txt STRING", &dialect, input).rows[3], some(&["4", ""]));
}

#[test]
fn fm_03_the_writer_quotes_what_needs_it() {
    let schema = schema("id INT, txt STRING");
    let values = [
        "a,b",
        "c\"d",
        "line\nbreak",
        "\r\n",
        " leading",
        "trailing ",
        "",
        "\\N",
        "\"",
        "\"\"",
        "plain",
        ";",
        "\t",
        "\\",
        "a\\",
        "\u{feff}mark",
        "NULL",
        "漢字",
        "'",
    ];
    let mut builder = BatchBuilder::new(schema.clone(), values.len());
    for (id, value) in values.iter().enumerate() {
        builder.column(0).append_i64(id as i64).unwrap();
        builder.column(1).append_text(value.as_bytes()).unwrap();
        builder.end_row(RowKind::Insert, 0);
    }
    builder.column(0).append_null();
    builder.column(1).append_null();
    builder.end_row(RowKind::Insert, 0);
    let batch = builder.finish().unwrap();
    let expect = crate::support::cells(&batch);
    for dialect in [
        CsvDialect::default(),
        bare(),
        CsvDialect { delimiter: b';', quote: b'\'', ..CsvDialect::default() },
        CsvDialect {
            delimiter: b'\t',
            escape: Some(b'\\'),
            null_literal: b"\\N".to_vec(),
            ..CsvDialect::default()
        },
        CsvDialect { null_literal: b"NULL".to_vec(), ..CsvDialect::default() },
        CsvDialect { null_literal: b"3".to_vec(), ..bare() },
    ] {
        dialect.validate().unwrap();
        let encoder = CsvEncoder::new(&schema, &dialect, &ChangeColumn::Absent);
        let mut out = Vec::new();
        encoder.write_head(&mut out);
        encoder.write_rows(&batch, &mut (0..batch.num_rows()), &mut out).unwrap();
        let read = read_csv("id INT, txt STRING", &dialect, &out);
        assert_eq!(read.reasons(), [""; 0], "{dialect:?}");
        assert_eq!(read.rows, expect, "{dialect:?}\n{}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn row_kinds_are_the_first_column() {
    let schema = schema("id INT, t STRING");
    let mut builder = BatchBuilder::new(schema.clone(), 3);
    for (kind, id) in [(RowKind::Insert, 1), (RowKind::UpdateBefore, 1), (RowKind::UpdateAfter, 2)] {
        builder.column(0).append_i64(id).unwrap();
        builder.column(1).append_null();
        builder.end_row(kind, 0);
    }
    let encoder = CsvEncoder::new(&schema, &CsvDialect::default(), &ChangeColumn::Named("__op__".into()));
    let mut out = Vec::new();
    encoder.write_head(&mut out);
    encoder.write_rows(&builder.finish().unwrap(), &mut [0, 2].into_iter(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "__op__,id,t\n+I,1,\n+U,2,\n");
}

#[test]
fn records_that_do_not_decode_leave_the_others_alone() {
    let input = b"1,a\nx,b\n3,c,d\n\"4\"z,d\n5\n6,\"e\n\n7,\"f\n8,g\n\xff,h\n9,\xff\n10,i\n,j\n";
    let read = read_csv("id INT NOT NULL, t STRING", &bare(), input);
    let ids: Vec<_> = read.rows.iter().map(|r| r[0].clone().unwrap()).collect();
    assert_eq!(ids, ["1", "8", "10"]);
    let failures: Vec<_> =
        read.failures.iter().map(|f| (f.place.line, f.place.offset, f.reason.as_str())).collect();
    assert_eq!(
        failures,
        [
            (2, 4, "column `id`: text is not a whole number of 64 bits"),
            (3, 8, "record has 3 fields, the table has 2 columns"),
            (4, 14, "a closing quote is followed by something that is neither delimiter nor line break"),
            (5, 21, "record has 1 fields, the table has 2 columns"),
            (6, 23, "a closing quote is followed by something that is neither delimiter nor line break"),
            (10, 38, "column `id`: text is not a whole number of 64 bits"),
            (11, 42, "column `t`: text is not UTF-8"),
            (13, 51, "column `id`: NULL in a column that is NOT NULL"),
        ]
    );
    assert_eq!(read.failures[4].raw, b"6,\"e\n\n7,\"f\n");
}

#[test]
fn pieces_of_any_size_give_the_same_rows() {
    let input =
        b"\xef\xbb\xbfid,t\r\n1,\"a\r\n\"\"b\"\r\n\r\n2,\"x\"y\nz,1\n3,\"\xc3\xa4\"\n4,\"never closed\n5,";
    let dialect = CsvDialect::default();
    let whole = read_csv("id INT, t STRING", &dialect, input);
    assert_eq!((whole.rows.len(), whole.failures.len()), (2, 3));
    for piece in 1..input.len() {
        assert_eq!(read_csv_pieces("id INT, t STRING", &dialect, input, piece), whole, "{piece}");
    }
}

#[test]
fn reading_goes_on_from_any_place() {
    let input = b"1,\"a\nb\"\n2,c\n3,\"d\"\n4,e\n5,f\n6,g";
    let schema = schema("id INT, t STRING");
    let open = |place| CsvDecoder::new(schema.clone(), &bare(), None, place, SMALL).unwrap();
    let whole = drive(&mut open(Place::START), input, 7);
    let mut first = open(Place::START);
    let taken = canalis_formats::RecordDecoder::decode(&mut first, input, InputEnd::Open).unwrap();
    let place = canalis_formats::RecordDecoder::place(&first);
    assert_eq!((taken, place), (18, Place { offset: 18, line: 5 }));
    let rest = drive(&mut open(place), input, 7);
    assert_eq!(rest.rows, whole.rows[3..]);
}

#[test]
fn oversized_records_are_passed_over() {
    let long = "x".repeat(70_000);
    let dialect = CsvDialect { max_record_bytes: 1000, ..bare() };
    for (middle, lines) in [
        (format!("2,{long}\n"), 1),
        (format!("2,\"{long}\n3,\"\"{long}\"\n"), 2),
        (format!("2,\"{}\"\n", "\"\"\n".repeat(2000)), 2001),
    ] {
        let input = format!("1,a\n{middle}4,d\n");
        let expect = Read {
            rows: vec![some(&["1", "a"]), some(&["4", "d"])],
            failures: Vec::new(),
            offset: input.len() as u64,
        };
        for piece in [1, 999, 1001, 4096, input.len()] {
            let mut read = read_csv_pieces("id INT, t STRING", &dialect, input.as_bytes(), piece);
            let failures = std::mem::take(&mut read.failures);
            assert_eq!(read, expect, "{piece}");
            assert_eq!(failures.len(), 1);
            assert_eq!((failures[0].place.line, failures[0].place.offset), (2, 4));
            assert!(failures[0].reason.contains("longer than 1000 bytes"));
            assert!(failures[0].raw.len() <= 65_536 && middle.as_bytes().starts_with(&failures[0].raw));
        }
        assert_eq!(middle.matches('\n').count(), lines);
    }
    // The last record of a file, never ended.
    let input = format!("1,a\n2,\"{long}");
    let read = read_csv_pieces("id INT, t STRING", &dialect, input.as_bytes(), 512);
    assert_eq!((read.rows.len(), read.failures.len()), (1, 1));
}

#[test]
fn headers_name_the_columns() {
    let dialect = CsvDialect::default();
    let read = read_csv("id INT, t STRING", &dialect, b"\xef\xbb\xbf\"t\",id\nx,1\n");
    assert_eq!(read.rows, [some(&["1", "x"])]);
    let header = read_header(b"a,\"b\nc\"\n1,2\n", &dialect, InputEnd::Open).unwrap().unwrap();
    assert_eq!((header.names, header.end), (vec!["a".into(), "b\nc".into()], Place { offset: 8, line: 3 }));
    assert_eq!(read_header(b"a,b", &dialect, InputEnd::Open).unwrap(), None);
    assert_eq!(read_header(b"a,b", &dialect, InputEnd::Last).unwrap().unwrap().names, ["a", "b"]);
    for wrong in [&b"\n1,2\n"[..], b"a,a\n", b"a,\n", b"\"a\n", b"a,\xff\n", b""] {
        assert!(read_header(wrong, &dialect, InputEnd::Last).is_err(), "{wrong:?}");
    }
    for names in [&["id"][..], &["id", "t", "more"], &["id", "T"]] {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let decoder =
            CsvDecoder::new(schema("id INT, t STRING"), &dialect, Some(&names), Place::START, SMALL);
        assert!(decoder.is_err(), "{names:?}");
    }
}

#[test]
fn an_empty_line_is_a_row_of_one_column_only() {
    assert_eq!(read_csv("a STRING", &bare(), b"x\n\ny\n").rows, [some(&["x"]), vec![None], some(&["y"])]);
    assert_eq!(read_csv("a STRING, b STRING", &bare(), b"x,1\n\ny,2\n").rows.len(), 2);
    assert_eq!(read_csv("a STRING", &bare(), b"").rows.len(), 0);
}

#[test]
fn a_cell_that_was_left_unchanged_is_refused() {
    let schema = schema("id INT, t STRING");
    let mut builder = BatchBuilder::new(schema.clone(), 1);
    builder.column(0).append_i64(1).unwrap();
    builder.append_unchanged(1);
    builder.end_row(RowKind::Insert, 0);
    let batch = builder.finish().unwrap();
    let encoder = CsvEncoder::new(&Arc::clone(&schema), &bare(), &ChangeColumn::Absent);
    assert!(encoder.refusal(&batch, 0).unwrap().contains("`t`"));
}
