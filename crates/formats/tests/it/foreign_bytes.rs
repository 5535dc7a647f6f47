//! Owns the property that foreign bytes never panic and never get lost: each record is a row or a failure, whatever the
//! pieces.

use canalis_formats::{
    BatchLimits, Place,
    csv::{CsvDecoder, CsvDialect},
    json::{JsonDecoder, JsonDecoderOptions, UnknownMembers, is_valid},
    parse_columns,
};
use proptest::prelude::*;

use crate::{every_type, support::drive};

const LIMITS: BatchLimits = BatchLimits { rows: 4, bytes: 64 };

/// Bytes in which structure is likely.
fn structured(alphabet: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![9 => prop::sample::select(alphabet), 1 => any::<u8>()];
    proptest::collection::vec(byte, 0..200)
}

fn json_text() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        8 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"id\"", "1", "-0", "1.5", "1e3", "true", "null", " ", "\"\\u0041\"", "\"\\n\"",
            "\n", "\\", "\"", "0", "e", "-", ".",
        ]).prop_map(|t| t.as_bytes().to_vec()),
        1 => any::<[u8; 1]>().prop_map(Vec::from),
    ];
    proptest::collection::vec(token, 0..30).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn csv_decoders_take_anything(
        input in structured(b"ab1,\"\\\n\r\r ;-2"),
        piece in 1_usize..50,
        escape in prop::option::of(Just(b'\\')),
        cap in 5_usize..100,
        one_column in any::<bool>(),
    ) {
        let dialect = CsvDialect { escape, max_record_bytes: cap, header: false, ..CsvDialect::default() };
        let columns = if one_column { "a STRING" } else { "a INT, b STRING" };
        let open = || CsvDecoder::new(crate::support::schema(columns), &dialect, None, Place::START, LIMITS).unwrap();
        let whole = drive(&mut open(), &input, input.len().max(1));
        let pieces = drive(&mut open(), &input, piece);
        prop_assert_eq!(whole.offset, input.len() as u64);
        prop_assert_eq!(pieces.offset, whole.offset);
        if cap >= input.len() {
            prop_assert_eq!(pieces, whole);
        }
    }

    #[test]
    fn json_decoders_take_anything(input in json_text(), piece in 1_usize..50, cap in 5_usize..100) {
        let options = JsonDecoderOptions { unknown: UnknownMembers::Ignore, max_record_bytes: cap };
        let schema = crate::support::schema("id INT, a JSON");
        let open = || JsonDecoder::new(schema.clone(), options, Place::START, LIMITS);
        let whole = drive(&mut open(), &input, input.len().max(1));
        prop_assert_eq!(drive(&mut open(), &input, piece), whole);
    }

    #[test]
    fn every_type_takes_any_text(line in any::<Vec<u8>>(), texts in proptest::collection::vec(any::<String>(), 37)) {
        let schema = every_type::schema();
        let record = texts.join(",").into_bytes();
        for input in [line, record] {
            let dialect = CsvDialect { header: false, ..CsvDialect::default() };
            drive(&mut CsvDecoder::new(schema.clone(), &dialect, None, Place::START, LIMITS).unwrap(), &input, 64);
            drive(&mut JsonDecoder::new(schema.clone(), JsonDecoderOptions::default(), Place::START, LIMITS), &input, 64);
        }
    }

    #[test]
    fn json_is_what_another_parser_calls_json(input in json_text()) {
        let theirs = serde_json::from_slice::<serde_json::Value>(&input).is_ok();
        prop_assert_eq!(is_valid(&input), theirs, "{}", String::from_utf8_lossy(&input));
    }

    #[test]
    fn column_lists_never_panic(text in any::<String>(), tail in "[a-zA-Z`\"'(), 0-9é]{0,60}") {
        let _ = parse_columns(&text);
        let _ = parse_columns(&format!("id {tail}"));
        let _ = parse_columns(&tail);
    }
}
