//! Owns the cases of JSON lines.

use canalis_batch::BatchBuilder;
use canalis_formats::{
    ChangeColumn, RowEncoder,
    json::{DecimalForm, JsonDecoderOptions, JsonEncoder, JsonEncoderOptions, UnknownMembers},
};
use canalis_types::RowKind;

use crate::support::{read_json, read_json_pieces, schema, some};

fn written(columns: &str, rows: &[(RowKind, &[Option<&str>])], options: &JsonEncoderOptions) -> String {
    let schema = schema(columns);
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, cells) in rows {
        for (index, cell) in cells.iter().enumerate() {
            match cell {
                Some(text) => builder.column(index).append_text(text.as_bytes()).unwrap(),
                None => builder.column(index).append_null(),
            }
        }
        builder.end_row(*kind, 0);
    }
    let batch = builder.finish().unwrap();
    let mut out = Vec::new();
    let encoder = JsonEncoder::new(&schema, options);
    encoder.write_rows(&batch, &mut (0..batch.num_rows()), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn values_have_their_documented_forms() {
    let columns = "b BOOLEAN, i BIGINT UNSIGNED, d DECIMAL(20, 2), f DOUBLE, day DATE, ts TIMESTAMP(3), \
                   at TIMESTAMP_LTZ(0), t TIME(0), x BYTES, j JSON, s STRING";
    let row: &[Option<&str>] = &[
        Some("true"),
        Some("18446744073709551615"),
        Some("-0.5"),
        Some("1e300"),
        Some("2026-02-28"),
        Some("2026-02-28 01:02:03.4"),
        Some("0000-00-00 00:00:00"),
        Some("-838:59:59"),
        Some("\u{1}\u{2}"),
        Some("{\"a\": [1]}"),
        Some("q\"\n"),
    ];
    let options =
        JsonEncoderOptions { changes: ChangeColumn::Named("__op__".into()), ..JsonEncoderOptions::default() };
    assert_eq!(
        written(columns, &[(RowKind::Delete, row)], &options),
        concat!(
            r#"{"__op__":"-D","b":true,"i":18446744073709551615,"d":"-0.50","f":1e300,"day":"2026-02-28","#,
            r#""ts":"2026-02-28T01:02:03.400","at":"0000-00-00T00:00:00Z","t":"-838:59:59","x":"AQI=","#,
            r#""j":{"a": [1]},"s":"q\"\n"}"#,
            "\n"
        )
    );
    let number = JsonEncoderOptions { decimals: DecimalForm::Number, ..JsonEncoderOptions::default() };
    assert_eq!(written("d DECIMAL(5, 2)", &[(RowKind::Insert, &[Some("1.5")])], &number), "{\"d\":1.50}\n");
}

#[test]
fn json_texts_and_null_stay_apart() {
    let texts = [
        None,
        Some("null"),
        Some("\"null\""),
        Some("12"),
        Some("{}"),
        Some("[ ]"),
        Some("{\n}"),
        Some("\"a\\\"b\""),
    ];
    let rows: Vec<_> = texts.iter().map(|t| (RowKind::Insert, std::slice::from_ref(t))).collect();
    let out = written("j JSON", &rows, &JsonEncoderOptions::default());
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..6],
        [
            r#"{"j":null}"#,
            r#"{"j":"null"}"#,
            r#"{"j":"\"null\""}"#,
            r#"{"j":"12"}"#,
            r#"{"j":{}}"#,
            r#"{"j":[ ]}"#
        ]
    );
    let read: Vec<_> = read_json("j JSON", out.as_bytes()).rows.into_iter().flatten().collect();
    let expect: Vec<_> = texts.iter().map(|t| t.map(str::to_owned)).collect();
    assert_eq!(read, expect);
}

#[test]
fn unchanged_cells_are_left_out() {
    let schema = schema("id INT, t STRING, u STRING");
    let mut builder = BatchBuilder::new(schema.clone(), 1);
    builder.append_unchanged(0);
    builder.append_unchanged(1);
    builder.column(2).append_null();
    builder.end_row(RowKind::Insert, 0);
    let mut out = Vec::new();
    let encoder = JsonEncoder::new(&schema, &JsonEncoderOptions::default());
    encoder.write_rows(&builder.finish().unwrap(), &mut (0..1), &mut out).unwrap();
    assert_eq!(out, b"{\"u\":null}\n");
}

#[test]
fn lines_decode_exactly_or_not_at_all() {
    let columns = "id BIGINT NOT NULL, d DECIMAL(10, 2), t STRING, f DOUBLE, b BOOLEAN, j JSON, n TINYINT";
    for (line, expect) in [
        (r#"{"id":1}"#, Ok([Some("1"), None, None, None, None, None, None])),
        (r#"{"t":"x","id":"7"}"#, Ok([Some("7"), None, Some("x"), None, None, None, None])),
        (r#" { "id" : 1.0e1 , "d" : 12.5 } "#, Ok([Some("10"), Some("12.50"), None, None, None, None, None])),
        (
            r#"{"id":9007199254740993,"d":"99999999.99"}"#,
            Ok([Some("9007199254740993"), Some("99999999.99"), None, None, None, None, None]),
        ),
        (
            r#"{"\u0069d":1,"t":"a\u00e4\ud83d\ude00"}"#,
            Ok([Some("1"), None, Some("aä😀"), None, None, None, None]),
        ),
        (
            r#"{"id":1,"f":0.1,"b":false,"j":[1,{"x":null}],"n":null}"#,
            Ok([Some("1"), None, None, Some("0.1"), Some("false"), Some("[1,{\"x\":null}]"), None]),
        ),
        (r#"{"id":1,"j":true}"#, Ok([Some("1"), None, None, None, None, Some("true"), None])),
        (r#"{"id":1.5}"#, Err("number is not whole")),
        (r#"{"id":1,"d":1.005}"#, Err("column `d`")),
        (r#"{"id":1,"n":128}"#, Err("column `n`: number is out")),
        (r#"{"id":1,"t":5}"#, Err("it must be a string")),
        (r#"{"id":1,"t":{"a":1}}"#, Err("declare the column as JSON")),
        (r#"{"id":1,"t":"\ud800"}"#, Err("surrogate")),
        (r#"{"id":1,"j":"no json"}"#, Err("not JSON")),
        (r#"{"id":1,"f":1e999}"#, Err("out of the column's range")),
        (r#"{"id":null}"#, Err("NOT NULL")),
        (r#"{"t":"x"}"#, Err("column `id` is missing")),
        (r#"{"id":1,"id":2}"#, Err("stands twice")),
        (r#"{"id":1,"ID":2}"#, Err("member `ID` is no column")),
        (r#"{"id":1,}"#, Err("member name")),
        (r#"{"id":1"#, Err("comma or a closing brace")),
        (r#"{"id":1} {"id":2}"#, Err("something follows")),
        (r#"[1]"#, Err("opening brace")),
        (r#"garbage"#, Err("opening brace")),
    ] {
        let read = read_json(columns, line.as_bytes());
        match expect {
            Ok(cells) => {
                assert_eq!(
                    read.rows,
                    [cells.map(|c: Option<&str>| c.map(str::to_owned)).to_vec()],
                    "{line}: {:?}",
                    read.failures
                );
            }
            Err(reason) => {
                assert_eq!((read.rows.len(), read.failures.len()), (0, 1), "{line}");
                assert!(read.failures[0].reason.contains(reason), "{line}: {}", read.failures[0].reason);
                assert_eq!(read.failures[0].raw, line.as_bytes());
            }
        }
    }
}

#[test]
fn unknown_members_may_be_ignored() {
    let options = JsonDecoderOptions { unknown: UnknownMembers::Ignore, ..JsonDecoderOptions::default() };
    let line = br#"{"more":{"a":[1,"}"]},"id":1,"x":null}"#;
    assert_eq!(read_json_pieces("id INT", options, line, 5).rows, [some(&["1"])]);
}

#[test]
fn pieces_of_any_size_give_the_same_rows() {
    let input = b"\xef\xbb\xbf{\"id\":1}\r\n\n  \n{\"id\":2}\nx\n{\"id\":3}\n{\"id\":4";
    let whole = read_json("id INT", input);
    assert_eq!((whole.rows.len(), whole.failures.len()), (3, 2));
    assert_eq!((whole.failures[0].place.line, whole.failures[0].place.offset), (5, 26));
    for piece in 1..input.len() {
        assert_eq!(read_json_pieces("id INT", JsonDecoderOptions::default(), input, piece), whole, "{piece}");
    }
}

#[test]
fn a_blank_line_is_too_long_whatever_the_pieces() {
    let options = JsonDecoderOptions { max_record_bytes: 20, ..JsonDecoderOptions::default() };
    let input = format!("{{\"id\":1}}\n{}\n{}\n{{\"id\":2}}", " ".repeat(21), " ".repeat(20));
    for piece in [1, 7, 21, input.len()] {
        let read = read_json_pieces("id INT", options, input.as_bytes(), piece);
        assert_eq!(read.rows, [some(&["1"]), some(&["2"])], "{piece}");
        assert_eq!(read.reasons(), ["line is longer than 20 bytes"], "{piece}");
    }
}

#[test]
fn oversized_lines_are_passed_over() {
    let options = JsonDecoderOptions { max_record_bytes: 100, ..JsonDecoderOptions::default() };
    let long = format!("{{\"id\":\"{}\"}}", "9".repeat(90_000));
    let input = format!("{{\"id\":1}}\n{long}\n{{\"id\":2}}\n{long}");
    for piece in [1, 99, 101, 5000, input.len()] {
        let read = read_json_pieces("id INT", options, input.as_bytes(), piece);
        assert_eq!(read.rows, [some(&["1"]), some(&["2"])], "{piece}");
        let places: Vec<_> = read.failures.iter().map(|f| f.place.line).collect();
        assert_eq!(places, [2, 4]);
        assert!(read.failures.iter().all(|f| f.raw.len() <= 65_536 && f.reason.contains("longer than 100")));
    }
}
