//! Owns the two documents of the contract for debezium-json, byte for byte.

use std::sync::Arc;

use canalis_formats::debezium::{BigintUnsignedMode, DebeziumDecoderOptions, DebeziumEncoderOptions};
use canalis_formats::message::MessageDecoder;
use canalis_types::{LogicalType as L, RowKind, TableId, TableSchema};

use crate::debezium_support::{Reader, batch, column, encode, native, table, texts};

/// What a batch does not carry, as the documents have it and as we write it.
const NOT_CARRIED: [(&str, &str); 2] = [
    (
        r#""server_id":223344,"gtid":null,"file":"mysql-bin.000003","pos":1234,"row":0,"thread":7,"query":null"#,
        r#""server_id":0,"gtid":null,"file":"","pos":0,"row":0,"thread":null,"query":null"#,
    ),
    ("\n", ""),
];

fn as_we_write(document: &str) -> String {
    let lines: Vec<&str> = document.lines().map(str::trim_start).collect();
    NOT_CARRIED.iter().fold(lines.concat(), |text, (theirs, ours)| text.replace(theirs, ours))
}

fn options(schema: bool) -> DebeziumEncoderOptions {
    DebeziumEncoderOptions {
        schema,
        bigint_unsigned: BigintUnsignedMode::Long,
        server_name: "dbserver1".into(),
        version: "3.0.0.Final".into(),
        ..DebeziumEncoderOptions::default()
    }
}

const BARE: &str = r#"{"before":null,
 "after":{"id":-1,"amount":"MDk=","qty":4294967295,"flag":true,"bits":"AQI=","st":"paid","tags":"a,c","d":19797,"t6":37230123456,"dt":1710498030000,"dt6":1710498030123456,"ts":"2024-03-15T02:20:30Z","y":2024,"doc":"{\"k\":1}","bin":"AAH+/w==","txt":"héllo","g":{"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null},"ok":1,"f":0.1,"db":1.0E10},
 "source":{"version":"3.0.0.Final","connector":"mysql","name":"dbserver1","ts_ms":1710469230000,"snapshot":"false","db":"shop","sequence":null,"ts_us":1710469230000000,"ts_ns":1710469230000000000,"table":"orders","server_id":223344,"gtid":null,"file":"mysql-bin.000003","pos":1234,"row":0,"thread":7,"query":null},
 "transaction":null,"op":"c","ts_ms":1710469230456,"ts_us":1710469230456789,"ts_ns":1710469230456789000}"#;

fn orders() -> Arc<TableSchema> {
    let labels = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    table(
        "orders",
        vec![
            native(column("id", L::UInt64, false), "bigint unsigned"),
            column("amount", L::Decimal { precision: 10, scale: 2 }, true),
            column("qty", L::UInt32, true),
            column("flag", L::Bit { length: 1 }, true),
            column("bits", L::Bit { length: 10 }, true),
            column("st", L::Enum { labels: labels("new,paid,done") }, true),
            column("tags", L::Set { labels: labels("a,b,c") }, true),
            column("d", L::Date, true),
            column("t6", L::Time { precision: 6 }, true),
            column("dt", L::Timestamp { precision: 0 }, true),
            column("dt6", L::Timestamp { precision: 6 }, true),
            column("ts", L::TimestampTz { precision: 0 }, true),
            column("y", L::Year, true),
            column("doc", L::Json, true),
            column("bin", L::Varbinary { length: 8 }, true),
            column("txt", L::Text, true),
            native(column("g", L::Geometry, true), "geometry"),
            native(column("ok", L::Int8, true), "tinyint(1)"),
            column("f", L::Float32, true),
            column("db", L::Float64, true),
        ],
        &["id"],
    )
}

#[rustfmt::skip]
const ROW: [&str; 20] = [
    "18446744073709551615", "123.45", "4294967295", "1", "513", "paid", "a,c", "2024-03-15", "10:20:30.123456",
    "2024-03-15 10:20:30", "2024-03-15 10:20:30.123456", "2024-03-15 02:20:30", "2024", r#"{"k": 1}"#, "0001FEFF", "héllo",
    "000000000101000000000000000000F03F0000000000000040", "1", "0.1", "1e10",
];

#[test]
fn the_document_without_schema_is_written_and_read() {
    let schema = orders();
    let rows = batch(&schema, &[(RowKind::Insert, &ROW)]);
    let pairs = encode(&options(false), &rows);
    assert_eq!(pairs.len(), 1);
    assert_eq!(pairs[0].0.as_deref(), Some(r#"{"id":-1}"#));
    assert_eq!(pairs[0].1.as_deref(), Some(as_we_write(BARE).as_str()));

    let mut reader = Reader::new(DebeziumDecoderOptions::default(), vec![schema]);
    reader.take(Some(r#"{"id":-1}"#), Some(BARE)).unwrap();
    let batches = reader.decoder.take().unwrap();
    assert_eq!(batches[0].event_time_ms, Some(1_710_469_230_000));
    let expect = texts(&rows)[0].replace(r#"{"k": 1}"#, r#"{"k":1}"#);
    assert_eq!(texts(&batches[0]), [expect]);
}

const WRAPPED: &str = r#"{"schema":{"type":"struct","fields":[
  {"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},
     {"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"amount"}],
   "optional":true,"name":"dbserver1.shop.t.Value","field":"before"},
  {"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},
     {"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"amount"}],
   "optional":true,"name":"dbserver1.shop.t.Value","field":"after"},
  {"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},
     {"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","field":"snapshot"},
     {"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"},
     {"type":"string","optional":true,"field":"table"},{"type":"int64","optional":false,"field":"server_id"},{"type":"string","optional":true,"field":"gtid"},{"type":"string","optional":false,"field":"file"},{"type":"int64","optional":false,"field":"pos"},{"type":"int32","optional":false,"field":"row"},{"type":"int64","optional":true,"field":"thread"},{"type":"string","optional":true,"field":"query"}],
   "optional":false,"name":"io.debezium.connector.mysql.Source","version":1,"field":"source"},
  {"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":false,"field":"total_order"},{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block","version":1,"field":"transaction"},
  {"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"},{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"}],
 "optional":false,"name":"dbserver1.shop.t.Envelope","version":2},
 "payload":{"before":null,"after":{"id":1,"amount":"MDk="},"source":{"version":"3.0.0.Final","connector":"mysql","name":"dbserver1","ts_ms":1710469230000,"snapshot":"false","db":"shop","sequence":null,"ts_us":1710469230000000,"ts_ns":1710469230000000000,"table":"t","server_id":223344,"gtid":null,"file":"mysql-bin.000003","pos":1234,"row":0,"thread":7,"query":null},"transaction":null,"op":"c","ts_ms":1710469230456,"ts_us":1710469230456789,"ts_ns":1710469230456789000}}"#;

const KEY: &str = r#"{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false,"name":"dbserver1.shop.t.Key"},"payload":{"id":1}}"#;

#[test]
fn the_document_with_schema_is_written_and_read() {
    let amount = column("amount", L::Decimal { precision: 10, scale: 2 }, true);
    let schema = table("t", vec![column("id", L::Int64, false), amount], &["id"]);
    let rows = batch(&schema, &[(RowKind::Insert, &["1", "123.45"])]);
    let pairs = encode(&options(true), &rows);
    assert_eq!(pairs[0].0.as_deref(), Some(KEY));
    assert_eq!(pairs[0].1.as_deref(), Some(as_we_write(WRAPPED).as_str()));

    // Twice: the second time the schema is known by its bytes.
    let pair = (Some(KEY.to_owned()), Some(WRAPPED.to_owned()));
    let read = Reader::new(DebeziumDecoderOptions::default(), vec![]).all(&[pair.clone(), pair]);
    assert_eq!(read.rows, ["+I 1|123.45", "+I 1|123.45"]);
    assert_eq!(read.changes.len(), 1);
    let made = &read.tables[0];
    assert_eq!(made.id, TableId::new("shop", "t"));
    assert_eq!((&made.columns, &made.primary_key), (&schema.columns, &schema.primary_key));
}

#[test]
fn a_schema_may_stand_behind_its_payload() {
    let (schema, payload) = WRAPPED.split_once("\"payload\":").unwrap();
    let schema = schema.trim().trim_start_matches("{\"schema\":").trim_end_matches(',');
    let payload = payload.strip_suffix('}').unwrap();
    let turned = format!("{{\"payload\":{payload},\"schema\":{schema}}}");
    let read =
        Reader::new(DebeziumDecoderOptions::default(), vec![]).all(&[(Some(KEY.into()), Some(turned))]);
    assert_eq!(read.rows, ["+I 1|123.45"]);
}

#[test]
fn a_schema_that_changes_is_a_change_of_structure() {
    let id = || column("id", L::Int64, false);
    let old = table("t", vec![id()], &["id"]);
    let new = table("t", vec![id(), column("n", L::Varchar { length: 9 }, true)], &["id"]);
    let mut pairs = encode(&options(true), &batch(&old, &[(RowKind::Insert, &["1"])]));
    pairs.extend(encode(&options(true), &batch(&new, &[(RowKind::Insert, &["2", "x"])])));
    pairs.extend(encode(&options(true), &batch(&new, &[(RowKind::Delete, &["2", "x"])])));
    let read = Reader::new(DebeziumDecoderOptions::default(), vec![]).all(&pairs);
    assert_eq!(read.rows, ["+I 1", "+I 2|x", "-D 2|x"]);
    assert_eq!(read.ignored, 1, "the tombstone");
    let tags: Vec<String> = read.changes.iter().map(|c| c.statement.clone()).collect();
    assert_eq!(tags.len(), 2);
    assert!(tags[1].contains("new columns: `n`"), "{tags:?}");
    assert_eq!(read.changes[1].after.version, 1);
}
