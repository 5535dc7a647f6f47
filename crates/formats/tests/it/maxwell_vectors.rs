//! Owns the published vectors of maxwell-json: one value of each type, read and written.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_formats::{
    maxwell::{MaxwellDecoder, MaxwellDecoderOptions, MaxwellEncoder, MaxwellEncoderOptions},
    message::MessageEncoder,
};
use canalis_types::{Column, LogicalType as L, RowKind, TableId, TableSchema};

use crate::message_support::{decode_values, encode};

fn table(ty: L) -> Arc<TableSchema> {
    Arc::new(TableSchema::new(TableId::new("shop", "t"), vec![Column::new("v", ty, true)], Vec::new()))
}

fn one(schema: &Arc<TableSchema>, value: Option<&[u8]>) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), 1);
    match value {
        Some(text) => builder.column(0).append_text(text).unwrap(),
        None => builder.column(0).append_null(),
    }
    builder.end_row(RowKind::Insert, 0);
    builder.finish().unwrap()
}

fn options() -> MaxwellEncoderOptions {
    MaxwellEncoderOptions { clock: || 1_710_469_230_000, first_xid: 9, ..MaxwellEncoderOptions::default() }
}

fn message(value: &str) -> String {
    format!(
        r#"{{"database":"shop","table":"t","type":"insert","ts":1710469230,"xid":9,"commit":true,"data":{{"v":{value}}}}}"#
    )
}

/// Type, text for the builder (bytes for binary columns), JSON, text of the cell that was read.
fn vectors() -> Vec<(L, &'static [u8], &'static str, &'static str)> {
    let decimal = |precision, scale| L::Decimal { precision, scale };
    let labels = |all: &[&str]| all.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    let nines = "99999999999999999999999999999999999.999999999999999999999999999999";
    let set = || L::Set { labels: labels(&["a", "b", "c"]) };
    let instant = |precision| L::TimestampTz { precision };
    let local = |precision| L::Timestamp { precision };
    let point = b"\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40";
    vec![
        (L::Int8, b"-128", "-128", "-128"),
        (L::UInt8, b"255", "255", "255"),
        (L::UInt8, b"1", "1", "1"),
        (L::UInt16, b"65535", "65535", "65535"),
        (L::UInt32, b"16777215", "16777215", "16777215"),
        (L::UInt32, b"4294967295", "4294967295", "4294967295"),
        (L::Int64, b"-9223372036854775808", "-9223372036854775808", "-9223372036854775808"),
        (L::UInt64, b"9223372036854775808", "9223372036854775808", "9223372036854775808"),
        (L::UInt64, b"18446744073709551615", "18446744073709551615", "18446744073709551615"),
        (decimal(10, 2), b"0.00", "0.00", "0.00"),
        (decimal(10, 2), b"1.27", "1.27", "1.27"),
        (decimal(10, 2), b"1.28", "1.28", "1.28"),
        (decimal(10, 2), b"-99999999.99", "-99999999.99", "-99999999.99"),
        (decimal(20, 10), b"0", "0E-10", "0.0000000000"),
        (decimal(65, 30), nines.as_bytes(), nines, nines),
        (L::Float32, b"1e10", "1.0E10", "10000000000.0"),
        (L::Float32, b"0.1", "0.1", "0.1"),
        (L::Float64, b"1.7976931348623157E308", "1.7976931348623157E308", "1.7976931348623157e308"),
        (L::Bit { length: 1 }, b"0", "0", "0"),
        (L::Bit { length: 1 }, b"1", "1", "1"),
        (L::Bit { length: 8 }, b"165", "165", "165"),
        (L::Bit { length: 10 }, b"513", "513", "513"),
        (L::Bit { length: 64 }, b"18446744073709551615", "18446744073709551615", "18446744073709551615"),
        (L::Enum { labels: labels(&["new", "paid"]) }, b"paid", r#""paid""#, "paid"),
        (set(), b"a,c", r#"["a","c"]"#, "a,c"),
        (set(), b"", "[]", ""),
        (L::Date, b"1969-12-31", r#""1969-12-31""#, "1969-12-31"),
        (L::Date, b"1970-01-01", r#""1970-01-01""#, "1970-01-01"),
        (L::Date, b"1000-01-01", r#""1000-01-01""#, "1000-01-01"),
        (L::Date, b"9999-12-31", r#""9999-12-31""#, "9999-12-31"),
        (L::Date, b"0000-00-00", r#""0000-00-00""#, "0000-00-00"),
        (L::Time { precision: 6 }, b"10:20:30.123456", r#""10:20:30.123456""#, "10:20:30.123456"),
        (L::Time { precision: 3 }, b"00:00:00.001", r#""00:00:00.001""#, "00:00:00.001"),
        // Maxwell itself wraps this one into a day.
        (L::Time { precision: 0 }, b"-838:59:59", r#""-838:59:59""#, "-838:59:59"),
        (local(0), b"1000-01-01 00:00:00", r#""1000-01-01 00:00:00""#, "1000-01-01 00:00:00"),
        (local(3), b"2024-03-15 10:20:30.120", r#""2024-03-15 10:20:30.120""#, "2024-03-15 10:20:30.120"),
        (
            local(6),
            b"9999-12-31 23:59:59.999999",
            r#""9999-12-31 23:59:59.999999""#,
            "9999-12-31 23:59:59.999999",
        ),
        (instant(0), b"2024-03-15 02:20:30", r#""2024-03-15 02:20:30""#, "2024-03-15 02:20:30"),
        (instant(3), b"2024-03-15 02:20:30.120", r#""2024-03-15 02:20:30.120""#, "2024-03-15 02:20:30.120"),
        (L::Year, b"2024", "2024", "2024"),
        (L::Year, b"0", "1900", "0"),
        (
            L::Json,
            br#"{"a": [true, null], "k": 1}"#,
            r#"{"a":[true,null],"k":1}"#,
            r#"{"a":[true,null],"k":1}"#,
        ),
        (L::Varbinary { length: 8 }, b"\x00\x01\xfe\xff", r#""AAH+/w==""#, "0001FEFF"),
        (L::Binary { length: 8 }, b"ab\0\0\0\0\0\0", r#""YWI=""#, "6162000000000000"),
        (L::Varbinary { length: 8 }, b"", r#""""#, ""),
        (L::Varchar { length: 20 }, "héllo 😀".as_bytes(), "\"héllo 😀\"", "héllo 😀"),
        (L::Geometry, point, r#""POINT (1 2)""#, "000000000101000000000000000000F03F0000000000000040"),
    ]
}

#[test]
fn every_vector_is_written_bit_by_bit() {
    for (ty, value, json, _) in vectors() {
        let schema = table(ty.clone());
        let written = encode(&mut MaxwellEncoder::new(options()), &one(&schema, Some(value)));
        assert_eq!(written, [(None, Some(message(json)))], "{ty}");
        let written = encode(&mut MaxwellEncoder::new(options()), &one(&schema, None));
        assert_eq!(written, [(None, Some(message("null")))], "{ty}");
    }
    let labels = vec!["new".to_owned(), "paid".to_owned()];
    let schema = table(L::Enum { labels });
    let written = encode(&mut MaxwellEncoder::new(options()), &one(&schema, Some(b"")));
    assert_eq!(written, [(None, Some(message("null")))], "the error value of an ENUM");
}

#[test]
fn every_vector_is_read() {
    for (ty, _, json, text) in vectors() {
        let open = || MaxwellDecoder::new(MaxwellDecoderOptions::default(), vec![table(ty.clone())]);
        let absent = message("1").replace(r#""v":1"#, "");
        let outcome = decode_values(&mut open(), &[&message(json), &message("null"), &absent]);
        assert_eq!(outcome.undecodable, [], "{ty}");
        assert_eq!(outcome.rows, [format!("+I {text}").as_str(), "+I NULL", "+I NULL"], "{ty} from {json}");
        assert_eq!(outcome.event_time_ms, Some(1_710_469_230_000));
    }
}

#[test]
fn other_spellings_of_values_are_read() {
    let labels = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    for (ty, json, text) in [
        (L::Int32, r#""12""#, "12"),
        (L::Int8, "true", "1"),
        (L::Int64, "1e3", "1000"),
        (L::Decimal { precision: 10, scale: 2 }, r#""1.5""#, "1.50"),
        (L::Decimal { precision: 10, scale: 2 }, "1.5e2", "150.00"),
        (L::Float64, r#""0.5""#, "0.5"),
        (L::Boolean, "1", "true"),
        (L::Boolean, "false", "false"),
        (L::Set { labels: labels() }, r#"[""]"#, ""),
        (L::Set { labels: labels() }, r#""a,b""#, "a,b"),
        (L::Json, r#""text \"q\"""#, r#""text \"q\"""#),
        (L::Json, "12.50", "12.50"),
        (L::Text, r#""\u00e9\n""#, "é\n"),
    ] {
        let mut decoder = MaxwellDecoder::new(MaxwellDecoderOptions::default(), vec![table(ty.clone())]);
        let outcome = decode_values(&mut decoder, &[&message(json)]);
        assert_eq!(outcome.rows, [format!("+I {text}")], "{ty} from {json}: {:?}", outcome.undecodable);
    }
}

#[test]
fn other_values_are_refused() {
    for (ty, json) in [
        (L::Int8, "128"),
        (L::Int32, "1.5"),
        (L::Int32, "{}"),
        (L::Boolean, "2"),
        (L::Text, "12"),
        (L::Bytes, r#""a""#),
        (L::Binary { length: 1 }, r#""YWI=""#),
        (L::Set { labels: vec!["a".into()] }, r#"["b"]"#),
        (L::Set { labels: vec!["a".into()] }, "[1]"),
        (L::Enum { labels: vec!["a".into()] }, "1"),
        (L::Geometry, r#""POINT (1)""#),
        (L::Date, r#""2024-13-01""#),
        (L::Timestamp { precision: 0 }, r#""2024-01-01 00:00:00.5""#),
    ] {
        let mut decoder = MaxwellDecoder::new(MaxwellDecoderOptions::default(), vec![table(ty.clone())]);
        let outcome = decode_values(&mut decoder, &[&message(json)]);
        assert_eq!((outcome.rows.len(), outcome.undecodable.len()), (0, 1), "{ty} from {json}");
        assert!(outcome.undecodable[0].1.starts_with("column `v`: "), "{:?}", outcome.undecodable);
    }
}

#[test]
fn what_the_format_cannot_say_is_refused() {
    let curve = b"\0\0\0\0\x01\x08\0\0\0\0\0\0\0";
    let placed = b"\xe6\x10\0\0\x01\x01\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40";
    for (ty, value) in [
        (L::Float64, b"NaN".as_slice()),
        (L::Float32, b"inf"),
        (L::Json, b"null"),
        (L::Geometry, curve),
        (L::Geometry, placed),
    ] {
        let mut encoder = MaxwellEncoder::new(options());
        let refusal = encoder.refusal(&one(&table(ty.clone()), Some(value)), 0);
        assert!(refusal.as_ref().is_some_and(|why| why.starts_with("column `v`: ")), "{ty}: {refusal:?}");
    }
}
