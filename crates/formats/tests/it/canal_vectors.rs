//! Owns the vectors of the contract for canal-json: every value both ways, and the reference row to the byte.

use canalis_formats::{
    canal::{CanalDecoder, CanalDecoderOptions, CanalEncoder, CanalEncoderOptions, EnumMode, Zone},
    message::MessageDecoder,
};
use canalis_types::RowKind;

use crate::{
    canal_support::{batch, decoder, encoder_options, table},
    message_support::{decode_values, encode},
};

/// MySQL type, value (bytes in hex), `data`, `sqlType`.
const VECTORS: &[(&str, &str, &str, i32)] = &[
    ("tinyint", "-128", "-128", -6),
    ("tinyint unsigned", "255", "255", 5),
    ("tinyint unsigned", "1", "1", -6),
    ("tinyint unsigned", "127", "127", -6),
    ("tinyint unsigned", "128", "128", 5),
    ("smallint", "-32768", "-32768", 5),
    ("smallint unsigned", "65535", "65535", 4),
    ("smallint unsigned", "32767", "32767", 5),
    ("mediumint", "-8388608", "-8388608", 4),
    ("mediumint unsigned", "16777215", "16777215", 4),
    ("int", "-2147483648", "-2147483648", 4),
    ("int unsigned", "2147483647", "2147483647", 4),
    ("int unsigned", "4294967295", "4294967295", -5),
    ("bigint", "-9223372036854775808", "-9223372036854775808", -5),
    ("bigint unsigned", "9223372036854775807", "9223372036854775807", -5),
    ("bigint unsigned", "9223372036854775808", "9223372036854775808", 3),
    ("bigint unsigned", "18446744073709551615", "18446744073709551615", 3),
    ("decimal(10,2)", "0.00", "0.00", 3),
    ("decimal(10,2)", "1.27", "1.27", 3),
    ("decimal(10,2)", "1.28", "1.28", 3),
    ("decimal(10,2)", "-1.28", "-1.28", 3),
    ("decimal(10,2)", "-1.29", "-1.29", 3),
    ("decimal(10,2)", "123.40", "123.40", 3),
    ("decimal(10,2)", "-99999999.99", "-99999999.99", 3),
    ("decimal(20,10)", "0.0000000000", "0.0000000000", 3),
    (
        "decimal(65,30)",
        "99999999999999999999999999999999999.999999999999999999999999999999",
        "99999999999999999999999999999999999.999999999999999999999999999999",
        3,
    ),
    ("float", "10000000000.0", "1.0E10", 7),
    ("float", "0.1", "0.1", 7),
    ("double", "1.7976931348623157e308", "1.7976931348623157E308", 8),
    ("double", "1.0", "1.0", 8),
    ("double", "0.00001", "1.0E-5", 8),
    ("bit(1)", "0", "0", -7),
    ("bit(1)", "1", "1", -7),
    ("bit(8)", "165", "165", -7),
    ("bit(10)", "513", "513", -7),
    ("bit(64)", "18446744073709551615", "18446744073709551615", -7),
    ("enum('new','paid')", "paid", "2", 4),
    ("enum('new','paid')", "", "0", 4),
    ("set('a','b','c')", "a,c", "5", -7),
    ("set('a','b','c')", "", "0", -7),
    ("date", "1969-12-31", "1969-12-31", 91),
    ("date", "1970-01-01", "1970-01-01", 91),
    ("date", "1000-01-01", "1000-01-01", 91),
    ("date", "9999-12-31", "9999-12-31", 91),
    ("date", "0000-00-00", "0000-00-00", 91),
    ("date", "2024-00-00", "2024-00-00", 91),
    ("time(6)", "10:20:30.123456", "10:20:30.123456", 92),
    ("time(3)", "00:00:00.001", "00:00:00.001", 92),
    ("time", "-838:59:59", "-838:59:59", 92),
    ("datetime", "1000-01-01 00:00:00", "1000-01-01 00:00:00", 93),
    ("datetime", "0000-00-00 00:00:00", "0000-00-00 00:00:00", 93),
    ("datetime(3)", "2024-03-15 10:20:30.120", "2024-03-15 10:20:30.120", 93),
    ("datetime(6)", "9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999", 93),
    ("timestamp", "2024-03-15 02:20:30", "2024-03-15 02:20:30", 93),
    ("timestamp", "0000-00-00 00:00:00", "0000-00-00 00:00:00", 93),
    ("timestamp(3)", "2024-03-15 02:20:30.120", "2024-03-15 02:20:30.120", 93),
    ("year", "2024", "2024", 12),
    ("year", "0", "0000", 12),
    ("json", r#"{"a": [true, null], "k": 1}"#, r#"{\"a\": [true, null], \"k\": 1}"#, 12),
    ("varbinary(8)", "0001FEFF", "\\u0000\\u0001þÿ", 2004),
    ("binary(8)", "6162000000000000", "ab", 2004),
    ("varbinary(8)", "", "", 2004),
    ("blob", "C3A9", "Ã©", 2004),
    ("varchar(20)", "héllo 😀", "héllo 😀", 12),
    ("char(5)", "ab", "ab", 1),
    ("mediumtext", "a\"\\\n", "a\\\"\\\\\\n", 2005),
    (
        "point",
        "000000000101000000000000000000F03F0000000000000040",
        "\\u0000\\u0000\\u0000\\u0000\\u0001\\u0001\\u0000\\u0000\\u0000\
         \\u0000\\u0000\\u0000\\u0000\\u0000\\u0000ð?\
         \\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000@",
        2004,
    ),
];

fn wrap(data: &str, mysql_type: &str, sql_type: i32) -> String {
    let mysql_type = mysql_type.replace('"', "\\\"");
    format!(
        "{{\"data\":[{{\"v\":{data}}}],\"database\":\"shop\",\"es\":1710469230000,\"gtid\":\"\",\"id\":7,\
         \"isDdl\":false,\"mysqlType\":{{\"v\":\"{mysql_type}\"}},\"old\":null,\"pkNames\":null,\"sql\":\"\",\
         \"sqlType\":{{\"v\":{sql_type}}},\"table\":\"v\",\"ts\":1710469230123,\"type\":\"INSERT\"}}"
    )
}

fn written(options: CanalEncoderOptions, ty: &str, value: Option<&str>) -> String {
    let schema = table("v", &[("v", ty)], &[]);
    let batch = batch(&schema, &[(RowKind::Insert, &[value])]);
    encode(&mut CanalEncoder::new(options), &batch).remove(0).1.unwrap()
}

/// The value that a decoder without any declaration reads.
fn read(message: &str) -> String {
    let outcome = decode_values(&mut decoder(&[]), &[message]);
    assert_eq!(outcome.undecodable, [], "{message}");
    assert_eq!(outcome.structures.len(), 1);
    outcome.rows[0].clone()
}

#[test]
fn every_vector_is_written_to_the_byte() {
    for (ty, value, data, sql_type) in VECTORS {
        let expect = wrap(&format!("\"{data}\""), ty, *sql_type);
        assert_eq!(written(encoder_options(7), ty, Some(value)), expect, "{ty} {value}");
    }
    for (ty, ..) in VECTORS {
        let usual = written(encoder_options(7), ty, None);
        assert!(usual.starts_with(r#"{"data":[{"v":null}],"#), "{usual}");
    }
}

#[test]
fn every_vector_is_read_exactly() {
    for (ty, value, data, sql_type) in VECTORS {
        let got = read(&wrap(&format!("\"{data}\""), ty, *sql_type));
        assert_eq!(got, format!("+I {value}"), "{ty}");
        assert_eq!(read(&wrap("null", ty, *sql_type)), "+I NULL", "{ty}");
    }
}

#[test]
fn labels_are_written_on_demand_and_read_without() {
    let options = CanalEncoderOptions { enum_mode: EnumMode::Label, ..encoder_options(7) };
    for (ty, value) in [("enum('new','paid')", "paid"), ("set('a','b','c')", "a,c")] {
        let message = wrap(&format!("\"{value}\""), ty, 12);
        assert_eq!(written(options, ty, Some(value)), message);
        assert_eq!(read(&message), format!("+I {value}"));
    }
    // An index, unless the writer says that it writes labels.
    assert_eq!(read(&wrap("\"2\"", "enum('2','1')", 4)), "+I 1");
    assert_eq!(read(&wrap("\"2\"", "enum('2','1')", 12)), "+I 2");
}

const REFERENCE_TABLE: &[(&str, &str)] = &[
    ("id", "bigint unsigned"),
    ("amount", "decimal(10,2)"),
    ("qty", "int unsigned"),
    ("flag", "bit(1)"),
    ("bits", "bit(10)"),
    ("st", "enum('new','paid','done')"),
    ("tags", "set('a','b','c')"),
    ("d", "date"),
    ("t6", "time(6)"),
    ("dt", "datetime"),
    ("dt6", "datetime(6)"),
    ("ts", "timestamp"),
    ("y", "year"),
    ("doc", "json"),
    ("bin", "varbinary(8)"),
    ("txt", "text"),
    ("g", "geometry"),
    ("ok", "tinyint(1)"),
    ("f", "float"),
    ("db", "double"),
];

/// The reference row as Canal writes it in a JVM at +08:00.
pub const REFERENCE: &str = concat!(
    r#"{"data":[{"id":"18446744073709551615","amount":"123.45","qty":"4294967295","flag":"1","bits":"513","#,
    r#""st":"2","tags":"5","d":"2024-03-15","t6":"10:20:30.123456","dt":"2024-03-15 10:20:30","#,
    r#""dt6":"2024-03-15 10:20:30.123456","ts":"2024-03-15 10:20:30","y":"2024","doc":"{\"k\": 1}","#,
    r#""bin":"\u0000\u0001þÿ","txt":"héllo","#,
    r#""g":"\u0000\u0000\u0000\u0000\u0001\u0001\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000ð?"#,
    r#"\u0000\u0000\u0000\u0000\u0000\u0000\u0000@","ok":"1","f":"0.1","db":"1.0E10"}],"#,
    r#""database":"shop","es":1710469230000,"gtid":"","id":7,"isDdl":false,"#,
    r#""mysqlType":{"id":"bigint unsigned","amount":"decimal(10,2)","qty":"int unsigned","flag":"bit(1)","#,
    r#""bits":"bit(10)","st":"enum('new','paid','done')","tags":"set('a','b','c')","d":"date","t6":"time(6)","#,
    r#""dt":"datetime","dt6":"datetime(6)","ts":"timestamp","y":"year","doc":"json","bin":"varbinary(8)","#,
    r#""txt":"text","g":"geometry","ok":"tinyint(1)","f":"float","db":"double"},"#,
    r#""old":null,"pkNames":["id"],"sql":"","#,
    r#""sqlType":{"id":3,"amount":3,"qty":-5,"flag":-7,"bits":-7,"st":4,"tags":-7,"d":91,"t6":92,"dt":93,"#,
    r#""dt6":93,"ts":93,"y":12,"doc":12,"bin":2004,"txt":2005,"g":2004,"ok":-6,"f":7,"db":8},"#,
    r#""table":"orders","ts":1710469230123,"type":"INSERT"}"#
);

#[test]
fn the_reference_row_is_exact_both_ways() {
    let time_zone = Zone::parse("+08:00").unwrap();
    let mut decoder = CanalDecoder::new(CanalDecoderOptions { time_zone }, Vec::new());
    let outcome = decode_values(&mut decoder, &[REFERENCE, REFERENCE]);
    let row = "+I 18446744073709551615|123.45|4294967295|1|513|paid|a,c|2024-03-15|10:20:30.123456|\
               2024-03-15 10:20:30|2024-03-15 10:20:30.123456|2024-03-15 02:20:30|2024|{\"k\": 1}|0001FEFF|héllo|\
               000000000101000000000000000000F03F0000000000000040|1|0.1|10000000000.0";
    assert_eq!(outcome.rows, [row, row]);
    assert_eq!(outcome.event_time_ms, Some(1_710_469_230_000));
    assert_eq!(outcome.structures.len(), 1);
    assert_eq!(*outcome.structures[0].after, *table("orders", REFERENCE_TABLE, &["id"]));
    assert_eq!(decoder.tables().len(), 1);

    let cells: Vec<Option<&str>> = row[3..].split('|').map(Some).collect();
    let batch = batch(&table("orders", REFERENCE_TABLE, &["id"]), &[(RowKind::Insert, &cells)])
        .with_event_time(Some(1_710_469_230_999));
    let mut encoder = CanalEncoder::new(CanalEncoderOptions { time_zone, ..encoder_options(7) });
    assert_eq!(encode(&mut encoder, &batch), [(None, Some(REFERENCE.to_owned()))]);
}
