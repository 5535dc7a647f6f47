//! Owns the cases of InLong bodies.

use canalis_formats::{
    Charset,
    inlong::{InlongBody, InlongDecoder, InlongOptions},
    json::UnknownMembers,
    message::{Message, MessageDecoder, Step},
};
use proptest::prelude::*;

use crate::{
    message_support::{decode, decode_values},
    support::schema,
};

const COLUMNS: &str = "id INT NOT NULL, txt STRING";

fn csv() -> InlongOptions {
    let options = InlongOptions::new(InlongBody::Csv { separator: b'|' });
    InlongOptions { escape: Some(b'\\'), null_literal: Some(b"n".to_vec()), ..options }
}

fn key_value() -> InlongOptions {
    let body = InlongBody::KeyValue { entry_separator: b'&', kv_separator: b'=' };
    InlongOptions {
        escape: Some(b'\\'),
        quote: Some(b'"'),
        null_literal: Some(b"n".to_vec()),
        ..InlongOptions::new(body)
    }
}

fn open(options: InlongOptions) -> InlongDecoder {
    InlongDecoder::new(options, schema(COLUMNS))
}

#[test]
fn fm_09_fields_are_split_by_separator_and_escape() {
    let outcome = decode_values(
        &mut open(csv()),
        &[r"1|a", r"2|a\|b\\", "3|", "4|n", r"5|\n", "6", "7|a|b", "x|a", r"8|a\", "9|\"q\"\nz", ""],
    );
    assert_eq!(outcome.rows, ["+I 1|a", r"+I 2|a|b\", "+I 3|", "+I 4|NULL", "+I 5|n", "+I 9|\"q\"\nz"]);
    let reasons: Vec<(usize, &str)> =
        outcome.undecodable.iter().map(|(at, why)| (*at, why.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (5, "record has 1 fields, the table has 2 columns"),
            (6, "record has more fields than the 2 columns of the table"),
            (7, "column `id`: text is not a whole number of 64 bits"),
            (8, "nothing follows an escape"),
        ]
    );
    assert_eq!(outcome.ignored, 1);
}

#[test]
fn quotes_and_lines_are_options() {
    let options = InlongOptions { quote: Some(b'"'), line_separator: Some(b'\n'), ..csv() };
    let outcome = decode_values(&mut open(options), &["1|\"a|b\n\"\n2|\"n\"\n\n3|x\n", "4|a\n5", "6|\"a"]);
    assert_eq!(outcome.rows, ["+I 1|a|b\n", "+I 2|n", "+I 3|x"]);
    let failed: Vec<usize> = outcome.undecodable.iter().map(|(at, _)| *at).collect();
    assert_eq!(failed, [1, 2]);
}

#[test]
fn entries_name_their_columns() {
    let messages = [
        "id=1&txt=a",
        r#"txt="x&y=z"\&&id=2"#,
        "id=3",
        "id=4&txt=n",
        "id=5&txt=a=b",
        "txt=a",
        "id=6&x=1",
        "id=7&id=8",
        "id",
    ];
    let outcome = decode_values(&mut open(key_value()), &messages);
    assert_eq!(outcome.rows, ["+I 1|a", "+I 2|x&y=z&", "+I 3|NULL", "+I 4|NULL", "+I 5|a=b"]);
    let reasons: Vec<&str> = outcome.undecodable.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "column `id`: NULL in a column that is NOT NULL",
            "entry `x` is no column",
            "entry `id` stands twice",
            "an entry has no separator between name and value",
        ]
    );
    let lenient = InlongOptions { unknown: UnknownMembers::Ignore, ..key_value() };
    assert_eq!(decode_values(&mut open(lenient), &messages[6..7]).rows, ["+I 6|NULL"]);
}

#[test]
fn bodies_are_decoded_before_they_are_split() {
    let options = InlongOptions { charset: Charset::parse("gbk").unwrap(), ..csv() };
    // The second byte of this character is the escape elsewhere.
    let message = |value| Message { topic: "t", key: None, value: Some(value), timestamp_ms: Some(7) };
    let outcome = decode(&mut open(options), &[message(b"1|\xbf\x5c"), message(b"2|\xff")]);
    assert_eq!(outcome.rows, ["+I 1|縗"]);
    assert_eq!(outcome.undecodable, [(1, "message is not GBK".to_owned())]);
    assert_eq!(outcome.event_time_ms, Some(7));
}

proptest! {
    #[test]
    fn any_bytes_are_rows_or_a_reason(value in proptest::collection::vec(prop::sample::select(&b"1a|\\\"&=\nn"[..]), 0..30)) {
        for options in [csv(), InlongOptions { line_separator: Some(b'\n'), ..key_value() }] {
            let mut decoder = open(options);
            let message = Message { topic: "t", key: None, value: Some(&value), timestamp_ms: None };
            if let Ok(Step::Taken) = decoder.decode(&message) {
                prop_assert!(decoder.rows() > 0);
            }
            decoder.take().unwrap();
        }
    }
}
