//! Owns what debezium-json of PostgreSQL and other sources has that MySQL's has not.

use canalis_formats::debezium::DebeziumDecoderOptions;
use canalis_types::{LogicalType as L, TableId};

use crate::debezium_support::{Reader, column, table};

const SOURCE: &str = r#""source":{"connector":"postgresql","db":"shopdb","schema":"public","table":"t"}"#;

fn field(name: &str, rest: &str) -> String {
    format!(r#"{{{rest},"field":"{name}"}}"#)
}

fn message(fields: &[String], after: &str) -> String {
    let row = format!(r#"{{"type":"int32","optional":false,"field":"id"}},{}"#, fields.join(","));
    format!(
        r#"{{"schema":{{"type":"struct","fields":[{{"type":"struct","fields":[{row}],"optional":true,"field":"after"}}]}},"payload":{{"before":null,"after":{after},{SOURCE},"op":"c"}}}}"#
    )
}

const KEY: &str = r#"{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}]},"payload":{"id":1}}"#;

#[test]
fn values_of_postgres_and_of_every_semantic_type() {
    let optional = |rest: &str| format!(r#"{rest},"optional":true"#);
    for (schema, json, ty, expect) in [
        (
            r#""type":"int64","name":"io.debezium.time.MicroTimestamp""#,
            "1529507596945104",
            L::Timestamp { precision: 6 },
            Ok("2018-06-20 15:13:16.945104"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""2024-03-15T02:20:30.000000Z""#,
            L::TimestampTz { precision: 6 },
            Ok("2024-03-15 02:20:30"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""2024-03-15T02:20:30.1Z""#,
            L::TimestampTz { precision: 6 },
            Ok("2024-03-15 02:20:30.1"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""2024-03-15T02:20:30.123456000Z""#,
            L::TimestampTz { precision: 6 },
            Ok("2024-03-15 02:20:30.123456"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""2024-03-15T02:20:30.123456001Z""#,
            L::TimestampTz { precision: 6 },
            Err("finer than a microsecond"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""2024-03-15T10:20:30+08:00""#,
            L::TimestampTz { precision: 6 },
            Ok("2024-03-15 02:20:30"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""+21016-11-04T06:51:30.123456Z""#,
            L::TimestampTz { precision: 6 },
            Ok("21016-11-04 06:51:30.123456"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""infinity""#,
            L::TimestampTz { precision: 6 },
            Err("infinity"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTimestamp""#,
            r#""-infinity""#,
            L::TimestampTz { precision: 6 },
            Err("infinity"),
        ),
        (
            r#""type":"int64","name":"io.debezium.time.MicroTimestamp""#,
            "9223372036825200000",
            L::Timestamp { precision: 6 },
            Err("infinity"),
        ),
        (
            r#""type":"int64","name":"io.debezium.time.MicroTimestamp""#,
            "-9223372036832400000",
            L::Timestamp { precision: 6 },
            Err("out of the column's range"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.ZonedTime""#,
            r#""11:51:30.123789Z""#,
            L::Text,
            Ok("11:51:30.123789Z"),
        ),
        (
            r#""type":"int64","name":"io.debezium.time.MicroDuration""#,
            "2629800000000",
            L::Int64,
            Ok("2629800000000"),
        ),
        (
            r#""type":"int64","name":"io.debezium.time.NanoTimestamp""#,
            "1710498030123456000",
            L::Timestamp { precision: 6 },
            Ok("2024-03-15 10:20:30.123456"),
        ),
        (
            r#""type":"int64","name":"io.debezium.time.NanoTimestamp""#,
            "1710498030123456001",
            L::Timestamp { precision: 6 },
            Err("finer than a microsecond"),
        ),
        (
            r#""type":"int64","name":"org.apache.kafka.connect.data.Timestamp""#,
            "1710498030120",
            L::Timestamp { precision: 3 },
            Ok("2024-03-15 10:20:30.12"),
        ),
        (
            r#""type":"int32","name":"org.apache.kafka.connect.data.Time""#,
            "1",
            L::Time { precision: 3 },
            Ok("00:00:00.001"),
        ),
        (
            r#""type":"int32","name":"io.debezium.time.Date""#,
            "-2147483648",
            L::Date,
            Err("out of the column's range"),
        ),
        (
            r#""type":"string","name":"io.debezium.time.IsoDate""#,
            r#""2024-03-15Z""#,
            L::Date,
            Ok("2024-03-15"),
        ),
        (r#""type":"int32","name":"io.debezium.time.Year""#, "1900", L::Year, Ok("0")),
        (
            r#""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2","connect.decimal.precision":"10"}"#,
            r#""MDk=""#,
            L::Decimal { precision: 10, scale: 2 },
            Ok("123.45"),
        ),
        (
            r#""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}"#,
            r#""EAk=""#,
            L::Decimal { precision: 65, scale: 2 },
            Ok("41.05"),
        ),
        (
            r#""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2","connect.decimal.precision":"10"}"#,
            "41.05",
            L::Decimal { precision: 10, scale: 2 },
            Ok("41.05"),
        ),
        (
            r#""type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"10","connect.decimal.precision":"20"}"#,
            "0E-10",
            L::Decimal { precision: 20, scale: 10 },
            Ok("0.0000000000"),
        ),
        (
            r#""type":"struct","fields":[],"name":"io.debezium.data.VariableScaleDecimal""#,
            r#"{"scale":2,"value":"ATo="}"#,
            L::Text,
            Ok("3.14"),
        ),
        (
            r#""type":"struct","fields":[],"name":"io.debezium.data.VariableScaleDecimal""#,
            r#"{"scale":3,"value":"AfQ="}"#,
            L::Text,
            Ok("0.500"),
        ),
        (
            r#""type":"struct","fields":[],"name":"io.debezium.data.VariableScaleDecimal""#,
            r#"{"scale":-2,"value":"Aw=="}"#,
            L::Text,
            Ok("300"),
        ),
        (r#""type":"boolean""#, "true", L::Boolean, Ok("1")),
        (r#""type":"bytes""#, r#""AAH+/w==""#, L::Bytes, Ok("0001FEFF")),
        (
            r#""type":"string","name":"io.debezium.data.Uuid""#,
            r#""123e4567-e89b-12d3-a456-426614174000""#,
            L::Uuid,
            Ok("123e4567-e89b-12d3-a456-426614174000"),
        ),
        (r#""type":"string","name":"io.debezium.data.Xml""#, r#""<a/>""#, L::Text, Ok("<a/>")),
        (
            r#""type":"array","items":{"type":"string","optional":true}"#,
            r#"["a",null]"#,
            L::Json,
            Ok(r#"["a",null]"#),
        ),
        (
            r#""type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"128"}"#,
            r#""AQI=""#,
            L::Bytes,
            Ok("0102"),
        ),
        (r#""type":"double""#, r#""NaN""#, L::Float64, Ok("NaN")),
        (r#""type":"int32","default":7"#, "null", L::Int32, Ok("NULL")),
    ] {
        let value = message(&[field("v", &optional(schema))], &format!(r#"{{"id":1,"v":{json}}}"#));
        let mut reader = Reader::new(DebeziumDecoderOptions::default(), vec![]);
        let outcome = reader.take(Some(KEY), Some(&value)).map_err(|e| e.reason);
        let read = reader.end();
        match expect {
            Ok(text) => {
                assert_eq!(outcome, Ok(()), "{schema} {json}");
                assert_eq!(read.rows, [format!("+I 1|{text}")], "{schema} {json}");
            }
            Err(reason) => {
                let refused = outcome.expect_err(json);
                assert!(refused.contains(reason), "{json}: {refused}");
                assert!(read.rows.is_empty());
            }
        }
        let made = &read.changes[0].after;
        assert_eq!((&made.id, &made.columns[1].ty), (&TableId::new("public", "t"), &ty), "{schema}");
        assert_eq!(made.primary_key, ["id"]);
    }
}

#[test]
fn values_that_were_not_logged_are_unchanged() {
    let columns = vec![
        column("id", L::Int32, false),
        column("txt", L::Text, false),
        column("bin", L::Bytes, true),
        column("n", L::Int32, true),
        column("arr", L::Json, true),
    ];
    let mut schema = canalis_types::TableSchema::clone(&table("t", columns, &["id"]));
    schema.id = TableId::new("public", "t");
    let mut reader = Reader::new(DebeziumDecoderOptions::default(), vec![schema.into()]);
    let text = "__debezium_unavailable_value";
    let base64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
    let update = format!(
        r#"{{"before":null,"after":{{"id":1,"txt":"{text}","bin":"{base64}","n":5,"arr":["{text}"]}},{SOURCE},"op":"u"}}"#
    );
    reader.take(None, Some(&update)).unwrap();
    // The database logs only the key of a deleted row; the rest is null whatever the columns allow.
    let delete = format!(
        r#"{{"before":{{"id":1,"txt":null,"bin":null,"n":null,"arr":null}},"after":null,{SOURCE},"op":"d"}}"#
    );
    reader.take(None, Some(&delete)).unwrap();
    let moved = format!(
        r#"{{"before":{{"id":1,"txt":null,"bin":null,"n":null,"arr":null}},"after":{{"id":2,"txt":"x","bin":null,"n":null,"arr":null}},{SOURCE},"op":"u"}}"#
    );
    reader.take(None, Some(&moved)).unwrap();
    assert_eq!(
        reader.end().rows,
        ["-U 1|~|~|~|~", "+U 1|~|~|5|~", "-D 1|~|~|~|~", "-U 1|~|~|~|~", "+U 2|x|NULL|NULL|NULL"]
    );
}

#[test]
fn a_schema_that_no_column_can_have_is_refused() {
    for schema in [
        r#""type":"int128","optional":true"#,
        r#""type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal""#,
        r#""type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"-2"}"#,
        r#""type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"80"}"#,
    ] {
        let value = message(&[field("v", schema)], r#"{"id":1,"v":null}"#);
        let mut reader = Reader::new(DebeziumDecoderOptions::default(), vec![]);
        let refused = reader.take(Some(KEY), Some(&value)).expect_err(schema);
        assert!(refused.reason.starts_with("column `v`: "), "{refused}");
        assert_eq!(refused.table, Some(TableId::new("public", "t")));
    }
}
