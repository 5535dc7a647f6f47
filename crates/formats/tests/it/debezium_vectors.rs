//! Owns the value vectors of the contract for debezium-json, both ways, with schema and without, in all modes.

use std::sync::Arc;

use canalis_formats::debezium::{
    BigintUnsignedMode, BinaryMode, DebeziumDecoderOptions, DebeziumEncoderOptions, DecimalMode, TimeMode,
    ZeroDates,
};
use canalis_types::{Column, LogicalType as L, RowKind, TableSchema};

use crate::debezium_support::{Reader, batch, column, encode, encoder, native, table};
use canalis_formats::message::MessageEncoder;

#[derive(Debug, Clone, Copy, Default)]
struct Modes {
    decimal: DecimalMode,
    bigint: BigintUnsignedMode,
    binary: BinaryMode,
    time: TimeMode,
}

impl Modes {
    fn reading(self) -> DebeziumDecoderOptions {
        DebeziumDecoderOptions {
            decimal_mode: self.decimal,
            bigint_unsigned: self.bigint,
            binary_mode: self.binary,
            time_mode: self.time,
            ..DebeziumDecoderOptions::default()
        }
    }

    fn writing(self) -> DebeziumEncoderOptions {
        DebeziumEncoderOptions {
            decimal_mode: self.decimal,
            bigint_unsigned: self.bigint,
            binary_mode: self.binary,
            time_mode: self.time,
            ..DebeziumEncoderOptions::default()
        }
    }
}

fn time(time: TimeMode) -> Modes {
    Modes { time, ..Modes::default() }
}

fn labels(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn with_value(value: Column) -> Arc<TableSchema> {
    table("t", vec![column("id", L::Int32, false), value], &["id"])
}

/// The value of a batch of one column is written as `json`, and read back from it with a schema and without.
fn check(value: Column, text: &str, json: &str, modes: Modes) {
    let schema = with_value(value);
    let rows = batch(&schema, &[(RowKind::Insert, &["1", text])]);
    let what = format!("{} {text}, {modes:?}", schema.columns[1].ty);
    let bare = encode(&modes.writing(), &rows);
    let image = format!(r#""after":{{"id":1,"v":{json}}},"source""#);
    assert!(bare[0].1.as_ref().unwrap().contains(&image), "{what}: {:?}", bare[0].1);
    let wrapped = encode(&DebeziumEncoderOptions { schema: true, ..modes.writing() }, &rows);
    assert!(wrapped[0].1.as_ref().unwrap().contains(&image), "{what}: {:?}", wrapped[0].1);

    let expect = crate::debezium_support::texts(&rows);
    let read = Reader::new(modes.reading(), vec![schema.clone()]).all(&bare);
    assert_eq!(read.rows, expect, "declared, {what}");
    let read = Reader::new(modes.reading(), vec![schema.clone()]).all(&wrapped);
    assert_eq!(read.rows, expect, "declared, with schema, {what}");
    assert!(read.changes.is_empty(), "what is declared is what the schema shows, {what}: {:?}", read.changes);
    // Strings in the schema do not tell that they are bytes; wrapped numbers not that they are unsigned.
    let is_hidden = (schema.columns[1].ty.is_binary() && modes.binary != BinaryMode::Bytes)
        || (schema.columns[1].ty == L::UInt64 && modes.bigint == BigintUnsignedMode::Long)
        || modes.decimal == DecimalMode::Double;
    if !is_hidden {
        let read = Reader::new(DebeziumDecoderOptions::default(), vec![]).all(&wrapped);
        assert_eq!(read.rows, expect, "by the schema, {what}");
    }
}

#[test]
fn numbers() {
    let plain = Modes::default();
    for (ty, text, json) in [
        (L::Int8, "-128", "-128"),
        (L::UInt8, "255", "255"),
        (L::UInt8, "1", "1"),
        (L::UInt16, "65535", "65535"),
        (L::UInt32, "4294967295", "4294967295"),
        (L::Int64, "-9223372036854775808", "-9223372036854775808"),
        (L::Float32, "1e10", "1.0E10"),
        (L::Float32, "0.1", "0.1"),
        (L::Float64, "1.7976931348623157E308", "1.7976931348623157E308"),
        (L::Bit { length: 1 }, "0", "false"),
        (L::Bit { length: 1 }, "1", "true"),
        (L::Bit { length: 8 }, "165", r#""pQ==""#),
        (L::Bit { length: 10 }, "513", r#""AQI=""#),
        (L::Bit { length: 64 }, "18446744073709551615", r#""//////////8=""#),
        (L::Year, "2024", "2024"),
        (L::Year, "0", "0"),
        (L::Boolean, "true", "true"),
    ] {
        check(column("v", ty.clone(), true), text, json, plain);
        check(column("v", ty, true), "NULL", "null", plain);
    }
    let medium = native(column("v", L::UInt32, true), "mediumint(8) unsigned");
    check(medium.clone(), "16777215", "16777215", plain);
    let schema = with_value(medium);
    let rows = batch(&schema, &[(RowKind::Insert, &["1", "1"])]);
    let wrapped = encode(&DebeziumEncoderOptions { schema: true, ..plain.writing() }, &rows);
    assert!(wrapped[0].1.as_ref().unwrap().contains(r#"{"type":"int32","optional":true,"field":"v"}"#));
}

#[test]
fn unsigned_numbers_of_64_bits_wrap_only_where_asked() {
    let long = Modes { bigint: BigintUnsignedMode::Long, ..Modes::default() };
    for (text, wrapped, precise) in [
        ("9223372036854775808", "-9223372036854775808", r#""AIAAAAAAAAAA""#),
        ("18446744073709551615", "-1", r#""AP//////////""#),
        ("0", "0", r#""AA==""#),
    ] {
        check(column("v", L::UInt64, true), text, wrapped, long);
        check(column("v", L::UInt64, true), text, precise, Modes::default());
    }
}

#[test]
fn decimals_are_exact() {
    let most = "99999999999999999999999999999999999.999999999999999999999999999999";
    for (precision, scale, text, json) in [
        (10, 2, "0.00", r#""AA==""#),
        (10, 2, "1.27", r#""fw==""#),
        (10, 2, "1.28", r#""AIA=""#),
        (10, 2, "-1.28", r#""gA==""#),
        (10, 2, "-1.29", r#""/38=""#),
        (10, 2, "-1.50", r#""/2o=""#),
        (10, 2, "123.45", r#""MDk=""#),
        (10, 2, "41.05", r#""EAk=""#),
        (10, 2, "-99999999.99", r#""/av0HAE=""#),
        (20, 10, "0.0000000000", r#""AA==""#),
        (65, 30, most, r#""APMWJxx/w5CKi+9GTjlF73olNgn//////////w==""#),
    ] {
        let value = || column("v", L::Decimal { precision, scale }, true);
        check(value(), text, json, Modes::default());
        let string = Modes { decimal: DecimalMode::String, ..Modes::default() };
        check(value(), text, &format!("\"{text}\""), string);
    }
    let double = Modes { decimal: DecimalMode::Double, ..Modes::default() };
    check(column("v", L::Decimal { precision: 10, scale: 2 }, true), "123.45", "123.45", double);
    check(
        column("v", L::Decimal { precision: 12, scale: 2 }, true),
        "9999999999.00",
        "9.999999999E9",
        double,
    );
}

#[test]
fn texts_and_bytes() {
    let plain = Modes::default();
    for (ty, text, json) in [
        (L::Enum { labels: labels("new,paid") }, "paid", r#""paid""#),
        (L::Enum { labels: labels("new,paid") }, "", r#""""#),
        (L::Enum { labels: vec!["a,b".into(), "c".into()] }, "a,b", r#""a,b""#),
        (L::Set { labels: labels("a,b,c") }, "a,c", r#""a,c""#),
        (L::Set { labels: labels("a,b,c") }, "", r#""""#),
        (L::Varchar { length: 20 }, "héllo 😀", r#""héllo 😀""#),
        (L::Text, "a\"b\\c\n\u{1}", r#""a\"b\\c\n\u0001""#),
        (L::Json, r#"{"a": [true, null], "k": 1}"#, r#""{\"a\":[true,null],\"k\":1}""#),
        (L::Varbinary { length: 8 }, "0001FEFF", r#""AAH+/w==""#),
        (L::Varbinary { length: 8 }, "", r#""""#),
        (L::Binary { length: 8 }, "6162000000000000", r#""YWIAAAAAAAA=""#),
        (L::Uuid, "123e4567-e89b-12d3-a456-426614174000", r#""123e4567-e89b-12d3-a456-426614174000""#),
    ] {
        // JSON is compared as JSON: the blanks that MySQL prints are not in its binlog.
        if ty == L::Json {
            check(column("v", ty, true), r#"{"a":[true,null],"k":1}"#, json, plain);
            let rows = batch(&with_value(column("v", L::Json, true)), &[(RowKind::Insert, &["1", text])]);
            assert!(encode(&plain.writing(), &rows)[0].1.as_ref().unwrap().contains(json));
        } else {
            check(column("v", ty, true), text, json, plain);
        }
    }
    for (binary, json) in [
        (BinaryMode::Base64, r#""AAH+/w==""#),
        (BinaryMode::Base64UrlSafe, r#""AAH-_w==""#),
        (BinaryMode::Hex, r#""0001feff""#),
    ] {
        check(column("v", L::Bytes, true), "0001FEFF", json, Modes { binary, ..plain });
    }
}

#[test]
fn json_keeps_blanks_inside_of_its_strings() {
    let schema = with_value(column("v", L::Json, true));
    let rows = batch(&schema, &[(RowKind::Insert, &["1", r#"{"a b": "x \" y\\", "c": [1, 2]}"#])]);
    let pairs = encode(&DebeziumEncoderOptions::default(), &rows);
    let read = Reader::new(DebeziumDecoderOptions::default(), vec![schema]).all(&pairs);
    assert_eq!(read.rows, [r#"+I 1|{"a b":"x \" y\\","c":[1,2]}"#]);
}

#[test]
fn geometries_are_structs() {
    let point = "00000000".to_owned() + "0101000000000000000000F03F0000000000000040";
    let json = r#"{"x":1.0,"y":2.0,"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null}"#;
    check(native(column("v", L::Geometry, true), "point"), &point, json, Modes::default());
    let json = r#"{"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":4326}"#;
    let with_srid = "E6100000".to_owned() + &point[8..];
    check(native(column("v", L::Geometry, true), "geometry"), &with_srid, json, Modes::default());
}

#[test]
fn dates_and_times_in_every_mode() {
    use TimeMode::*;
    let (t, ts) = (|precision| L::Time { precision }, |precision| L::Timestamp { precision });
    for (ty, text, json, modes) in [
        (L::Date, "1969-12-31", "-1", vec![Adaptive, AdaptiveMicros, Connect, Micros, Nanos]),
        (L::Date, "1970-01-01", "0", vec![AdaptiveMicros]),
        (L::Date, "1000-01-01", "-354285", vec![AdaptiveMicros]),
        (L::Date, "9999-12-31", "2932896", vec![AdaptiveMicros]),
        (L::Date, "2024-03-15", r#""2024-03-15Z""#, vec![IsoString]),
        (t(6), "10:20:30.123456", "37230123456", vec![AdaptiveMicros, Adaptive, Micros]),
        (t(6), "10:20:30.123456", "37230123456000", vec![Nanos]),
        (t(6), "10:20:30.123456", r#""10:20:30.123456Z""#, vec![IsoString]),
        (t(3), "00:00:00.001", "1000", vec![AdaptiveMicros, Micros]),
        (t(3), "00:00:00.001", "1", vec![Adaptive, Connect]),
        (t(0), "-838:59:59", "-3020399000000", vec![AdaptiveMicros, Micros]),
        (t(0), "-01:30:00", "-5400000000", vec![AdaptiveMicros]),
        (t(0), "-01:30:00", "-5400000", vec![Adaptive, Connect]),
        (ts(0), "1000-01-01 00:00:00", "-30610224000000", vec![Adaptive, AdaptiveMicros, Connect]),
        (ts(0), "1000-01-01 00:00:00", "-30610224000000000", vec![Micros]),
        (ts(3), "2024-03-15 10:20:30.120", "1710498030120", vec![AdaptiveMicros, Connect]),
        (ts(3), "2024-03-15 10:20:30.120", "1710498030120000000", vec![Nanos]),
        (ts(6), "9999-12-31 23:59:59.999999", "253402300799999999", vec![Adaptive, AdaptiveMicros, Micros]),
        (ts(6), "2024-03-15 10:20:30.123456", r#""2024-03-15T10:20:30.123456Z""#, vec![IsoString]),
        (ts(6), "12345-03-15 10:20:30.123456", r#""+12345-03-15T10:20:30.123456Z""#, vec![IsoString]),
        (
            L::TimestampTz { precision: 0 },
            "2024-03-15 02:20:30",
            r#""2024-03-15T02:20:30Z""#,
            vec![AdaptiveMicros],
        ),
        (
            L::TimestampTz { precision: 3 },
            "2024-03-15 02:20:30.120",
            r#""2024-03-15T02:20:30.120Z""#,
            vec![Connect],
        ),
        (
            L::TimestampTz { precision: 6 },
            "21016-11-04 06:51:30.123456",
            r#""+21016-11-04T06:51:30.123456Z""#,
            vec![Adaptive],
        ),
    ] {
        for mode in modes {
            check(column("v", ty.clone(), true), text, json, time(mode));
        }
    }
}

#[test]
fn values_that_a_form_of_times_would_change_are_refused() {
    use TimeMode::*;
    let (t, ts) = (|precision| L::Time { precision }, |precision| L::Timestamp { precision });
    for (ty, text, mode, reason) in [
        (ts(6), "2024-03-15 10:20:30.123456", Connect, "finer than a millisecond"),
        (t(6), "10:20:30.123456", Connect, "finer than a millisecond"),
        (t(0), "838:59:59", Adaptive, "beyond what the form of times can hold"),
        (ts(0), "9999-12-31 00:00:00", Nanos, "beyond what the form of times can hold"),
        (t(0), "-00:00:01", IsoString, "is no time of day"),
        (t(0), "24:00:00", IsoString, "is no time of day"),
        (L::Date, "0000-00-00", AdaptiveMicros, "on no calendar"),
        (L::Date, "2024-02-00", IsoString, "on no calendar"),
        (ts(6), "0000-00-00 00:00:00", AdaptiveMicros, "on no calendar"),
        (ts(3), "2024-00-01 00:00:00", AdaptiveMicros, "on no calendar"),
        (L::TimestampTz { precision: 0 }, "0000-00-00 00:00:00", AdaptiveMicros, "on no calendar"),
    ] {
        let schema = with_value(column("v", ty, true));
        let rows = batch(&schema, &[(RowKind::Delete, &["1", "NULL"]), (RowKind::Insert, &["1", text])]);
        let mut encoder = encoder(time(mode).writing());
        assert_eq!(encoder.refusal(&rows, 0), None);
        let refusal = encoder.refusal(&rows, 1).unwrap_or_default();
        assert!(refusal.starts_with("column `v`: ") && refusal.contains(reason), "{text}: {refusal}");
    }
}

#[test]
fn zero_dates_become_null_or_the_epoch_where_asked() {
    for (ty, text, epoch) in [
        (L::Date, "0000-00-00", "0"),
        (L::Timestamp { precision: 0 }, "0000-00-00 00:00:00", "0"),
        (L::TimestampTz { precision: 0 }, "0000-00-00 00:00:00", r#""1970-01-01T00:00:00Z""#),
    ] {
        for (nullable, json) in [(true, "null"), (false, epoch)] {
            let schema = with_value(column("v", ty.clone(), nullable));
            let rows = batch(&schema, &[(RowKind::Insert, &["1", text])]);
            let options = DebeziumEncoderOptions {
                zero_dates: ZeroDates::NullOrEpoch,
                ..DebeziumEncoderOptions::default()
            };
            assert_eq!(encoder(options.clone()).refusal(&rows, 0), None);
            let value = encode(&options, &rows)[0].1.clone().unwrap();
            assert!(value.contains(&format!(r#""v":{json}}}"#)), "{value}");
        }
    }
}
