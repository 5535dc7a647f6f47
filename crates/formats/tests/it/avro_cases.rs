//! Owns the cases of Avro: bytes of the specification and of another writer, schemas that change, headers, envelopes.

use std::sync::Arc;

use canalis_formats::{
    avro::{AvroDecoder, AvroKind, SubjectNames},
    message::{Message, MessageDecoder, Step},
};
use canalis_types::{ColumnPlace, LogicalType as L, RowKind, SchemaChangeKind};
use serde_json::Value;

use crate::{
    avro_support::{Registry, Stored, decoder, encode, encoder, framed, from_hex, message, reading},
    debezium_support::{batch, column, table},
    message_support::{Outcome, decode},
    support,
};

const SPEC: &str =
    r#"{"type":"record","name":"test","fields":[{"name":"a","type":"long"},{"name":"b","type":"string"}]}"#;

fn values(decoder: &mut dyn MessageDecoder, values: &[Vec<u8>]) -> Outcome {
    let stored: Vec<Stored> = values.iter().map(|value| (None, Some(value.clone()))).collect();
    decode(decoder, &stored.iter().map(message).collect::<Vec<_>>())
}

#[test]
fn the_record_of_the_specification() {
    // "Complex Types", records: a is 27, b is "foo".
    let datum = from_hex("3606666f6f");
    let mut bare = AvroDecoder::new(reading(AvroKind::Rows, None, Some(SPEC)), Vec::new());
    let outcome = values(&mut bare, std::slice::from_ref(&datum));
    assert_eq!((outcome.rows, outcome.undecodable), (vec!["+I 27|foo".to_owned()], vec![]));
    let columns = &outcome.structures[0].after.columns;
    assert_eq!([&columns[0].ty, &columns[1].ty], [&L::Int64, &L::Text]);
    for wrong in ["3606666f", "3606666f6f00", "36", "", "3605666f6f"] {
        let outcome = values(&mut bare, &[from_hex(wrong)]);
        assert_eq!((outcome.rows.len(), outcome.undecodable.len()), (0, 1), "{wrong}");
    }
}

#[test]
fn messages_of_another_writer() {
    let file = include_str!("../golden/avro/messages.json");
    let cases: Vec<Value> = serde_json::from_str(file).unwrap();
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let mut decoder =
            AvroDecoder::new(reading(AvroKind::Rows, None, Some(&case["schema"].to_string())), Vec::new());
        let messages = case["messages"].as_array().unwrap();
        let text = |message: &Value, key: &str| message[key].as_str().unwrap().to_owned();
        let data: Vec<Vec<u8>> = messages.iter().map(|m| from_hex(&text(m, "hex"))).collect();
        let expected: Vec<String> = messages.iter().map(|m| format!("+I {}", text(m, "row"))).collect();
        let outcome = values(&mut decoder, &data);
        assert_eq!((outcome.rows, outcome.undecodable), (expected, vec![]), "{}", case["name"]);
    }
}

#[test]
fn a_schema_with_more_fields_adds_columns_and_older_messages_have_its_default() {
    let registry = Arc::new(Registry::default());
    let first = registry.put(SPEC);
    let second = registry.put(
        r#"{"type":"record","name":"test","fields":[{"name":"a","type":"long"},{"name":"n","type":["null","int"],
        "default":null},{"name":"b","type":"string"},{"name":"c","type":"string","default":"x"}]}"#,
    );
    let third = registry.put(r#"{"type":"record","name":"test","fields":[{"name":"a","type":"int"}]}"#);
    let mut decoder = decoder(AvroKind::Rows, &registry, Vec::new());
    let outcome = values(
        &mut decoder,
        &[
            framed(first, &from_hex("3606666f6f")),
            framed(second, &from_hex("02020406626172026e")),
            framed(first, &from_hex("0406666f6f")),
        ],
    );
    assert_eq!(outcome.rows, ["+I 27|foo", "+I 1|bar|2|n", "+I 2|foo|NULL|x"]);
    assert_eq!(outcome.structures.len(), 2);
    let SchemaChangeKind::AddColumns(added) = &outcome.structures[1].kind else { panic!() };
    let places: Vec<(&str, &ColumnPlace)> = added.iter().map(|(c, p)| (c.name.as_str(), p)).collect();
    assert_eq!(places, [("n", &ColumnPlace::Last), ("c", &ColumnPlace::Last)]);
    assert!(added.iter().all(|(column, _)| column.nullable));
    // `b` was NOT NULL and has no default: it can be NULL from here on, and numbers of 32 bits fit 64.
    let outcome = values(&mut decoder, &[framed(third, &[0x0a])]);
    assert_eq!(outcome.rows, ["+I 5|NULL|NULL|x"]);
    assert_eq!(outcome.structures[0].kind, SchemaChangeKind::Other("alter.column.type".into()));
    assert_eq!(outcome.structures[0].after.columns[0].ty, L::Int64);
}

#[test]
fn columns_of_a_declared_table_are_matched_by_name() {
    let registry = Arc::new(Registry::default());
    let id = registry.put(SPEC);
    let schema = support::schema("b VARCHAR(3), a INT NOT NULL, z INT");
    let mut decoder = decoder(AvroKind::Rows, &registry, vec![schema]);
    let long = [0xfe, 0xff, 0xff, 0xff, 0x1f, 0x00];
    let outcome = values(
        &mut decoder,
        &[
            framed(id, &from_hex("3606666f6f")),
            framed(id, &from_hex("3608666f6f6f")),
            framed(id, &long),
            framed(id, &from_hex("3800")),
        ],
    );
    assert_eq!(outcome.rows, ["+I foo|27|NULL", "+I |28|NULL"]);
    let reasons: Vec<&str> = outcome.undecodable.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        reasons,
        ["column `b`: text is longer than 3 characters", "column `a`: number is out of the column's range"]
    );
    assert!(outcome.structures.is_empty());
}

#[test]
fn headers_are_checked_and_an_unreachable_registry_is_no_dead_letter() {
    let registry = Arc::new(Registry::default());
    let id = registry.put(SPEC);
    registry.put("{");
    let mut decoder = decoder(AvroKind::Rows, &registry, Vec::new());
    let datum = from_hex("3606666f6f");
    let outcome = values(
        &mut decoder,
        &[
            vec![],
            vec![0, 0, 0],
            [&[1, 0, 0, 0, 1][..], &datum].concat(),
            framed(9, &datum),
            framed(2, &datum),
        ],
    );
    let reasons: Vec<&str> = outcome.undecodable.iter().map(|(_, why)| why.as_str()).collect();
    let header = "the message's value does not begin with the header of a schema registry";
    assert_eq!(reasons[..4], [header, header, header, "schema 9 is not known"]);
    assert!(reasons[4].starts_with("schema 2: the schema is not JSON"), "{}", reasons[4]);

    *registry.down.lock().unwrap() = true;
    let mut decoder = crate::avro_support::decoder(AvroKind::Rows, &registry, Vec::new());
    let value = framed(id, &datum);
    let message = Message { topic: "t", key: None, value: Some(&value), timestamp_ms: None };
    assert!(matches!(decoder.decode(&message), Ok(Step::Failed(_))));
    *registry.down.lock().unwrap() = false;
    assert!(matches!(decoder.decode(&message), Ok(Step::Structure(_))));
}

#[test]
fn kf_01_a_tombstone_alone_deletes_by_key() {
    let registry = Arc::new(Registry::default());
    let value = registry.put(SPEC);
    let key = registry.put(r#"{"type":"record","name":"k","fields":[{"name":"a","type":"long"}]}"#);
    let stored = [
        (Some(framed(key, &[0x02])), None),
        (Some(framed(key, &[0x36])), Some(framed(value, &from_hex("3606666f6f")))),
        (Some(framed(key, &[0x36])), None),
        (Some(b"strange".to_vec()), None),
        (None, None),
    ];
    let mut decoder = decoder(AvroKind::Rows, &registry, Vec::new());
    let outcome = decode(&mut decoder, &stored.iter().map(message).collect::<Vec<_>>());
    // Of a table that has no row yet nothing can be deleted.
    assert_eq!((outcome.rows, outcome.ignored), (vec!["+I 27|foo".to_owned(), "-D 27|~".to_owned()], 3));
    assert_eq!(outcome.structures[0].after.primary_key, ["a"]);
}

#[test]
fn without_a_registry_a_topic_holds_one_structure() {
    let one = table("t", vec![column("id", L::Int32, false), column("v", L::Text, true)], &["id"]);
    let two = table("t", vec![column("id", L::Int32, false)], &["id"]);
    let mut encoder = encoder(AvroKind::Rows, None);
    let rows = [(RowKind::Insert, &["1", "a"][..]), (RowKind::Delete, &["1", "a"][..])];
    let (messages, refused) = encode(&mut encoder, &batch(&one, &rows));
    assert_eq!(refused, []);
    assert_eq!(messages, [(Some(vec![0x02]), Some(vec![0x02, 0x02, 0x02, b'a'])), (Some(vec![0x02]), None)]);
    // A delete is understood by a reader that has seen no row yet.
    let schema = r#"{"type":"record","name":"r","fields":[{"name":"id","type":"int"},{"name":"v","type":["null","string"]}]}"#;
    let declared = support::schema("id INT NOT NULL, v STRING");
    let declared = canalis_types::TableSchema {
        primary_key: vec!["id".into()],
        ..canalis_types::TableSchema::clone(&declared)
    };
    let mut decoder = AvroDecoder::new(reading(AvroKind::Rows, None, Some(schema)), vec![Arc::new(declared)]);
    let outcome = decode(&mut decoder, &[message(&messages[1]), message(&messages[0])]);
    assert_eq!(outcome.rows, ["-D 1|~", "+I 1|a"]);

    let (messages, refused) = encode(&mut encoder, &batch(&two, &[(RowKind::Insert, &["1"])]));
    assert!(messages.is_empty());
    assert!(refused[0].1.contains("its structure has changed"), "{}", refused[0].1);
}

#[test]
fn subjects_have_the_names_of_their_strategy() {
    for (strategy, expected) in [
        (SubjectNames::Topic, "t-value"),
        (SubjectNames::Record, "shop.t.Value"),
        (SubjectNames::TopicRecord, "t-shop.t.Value"),
    ] {
        assert_eq!(strategy.subject("t", "value", "shop.t.Value"), expected);
    }
}

/// The envelope as the connector for PostgreSQL writes it: another source block, fields in another order.
const POSTGRES: &str = r#"{"type":"record","name":"Envelope","namespace":"p.public.t","fields":[
 {"name":"op","type":"string"},
 {"name":"before","type":["null",{"type":"record","name":"Value","fields":[
   {"name":"id","type":"int"},
   {"name":"at","type":["null",{"type":"long","connect.version":1,"connect.name":"io.debezium.time.MicroTimestamp"}],"default":null},
   {"name":"tz","type":["null",{"type":"string","connect.version":1,"connect.name":"io.debezium.time.ZonedTimestamp"}],"default":null},
   {"name":"n","type":["null",{"type":"record","name":"VariableScaleDecimal","namespace":"io.debezium.data","fields":[
     {"name":"scale","type":"int"},{"name":"value","type":"bytes"}],"connect.name":"io.debezium.data.VariableScaleDecimal"}],"default":null},
   {"name":"doc","type":["null","string"],"default":null}]}],"default":null},
 {"name":"after","type":["null","Value"],"default":null},
 {"name":"source","type":{"type":"record","name":"Source","namespace":"io.debezium.connector.postgresql","fields":[
   {"name":"connector","type":"string"},{"name":"ts_ms","type":"long"},{"name":"db","type":"string"},
   {"name":"lsn","type":["null","long"]},{"name":"schema","type":"string"},{"name":"table","type":"string"}]}}]}"#;

fn source() -> String {
    // "postgresql", 1000 ms, "db", no lsn, "public", "t".
    format!("14{}d00f04{}00{:02x}{}02{}", hex("postgresql"), hex("db"), 12, hex("public"), hex("t"))
}

fn hex(text: &str) -> String {
    text.bytes().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn envelopes_of_postgres_with_keys_only_and_values_that_were_not_logged() {
    let registry = Arc::new(Registry::default());
    let value = registry.put(POSTGRES);
    let key = registry.put(r#"{"type":"record","name":"Key","fields":[{"name":"id","type":"int"}]}"#);
    let text = |text: &str| format!("02{:02x}{}", text.len() * 2, hex(text));
    let unavailable = text("__debezium_unavailable_value");
    // 2018-06-20 15:13:16.945104 as microseconds, zigzag: 1529507596945104 * 2.
    let at = "02a09bfacf87c5b705";
    let whole = format!("0202{at}{}02{:02x}043039{}", text("2024-03-15T02:20:30.1Z"), 4, text("{\"a\": 1}"));
    let short = format!("0202{at}{}00{unavailable}", text("2024-03-15T02:20:30Z"));
    let source = source();
    let event = |op: char, before: &str, after: &str| {
        let text = format!("02{:02x}{before}{after}{source}", u32::from(op));
        (Some(framed(key, &[0x02])), Some(framed(value, &from_hex(&text))))
    };
    let stored = [
        event('c', "00", &whole),
        event('u', "00", &short),
        event('d', "020200000000", "00"),
        (Some(framed(key, &[0x02])), None),
        event('t', "00", "00"),
        event('m', "00", "00"),
        event('x', "00", "00"),
        event('u', "00", "00"),
    ];
    let mut decoder = decoder(AvroKind::Debezium, &registry, Vec::new());
    let outcome = decode(&mut decoder, &stored.iter().map(message).collect::<Vec<_>>());
    assert_eq!(
        outcome.rows,
        [
            "+I 1|2018-06-20 15:13:16.945104|2024-03-15 02:20:30.100000|123.45|{\"a\": 1}",
            "-U 1|~|~|~|~",
            "+U 1|2018-06-20 15:13:16.945104|2024-03-15 02:20:30.000000|NULL|~",
            "-D 1|~|~|~|~",
        ]
    );
    assert_eq!((outcome.ignored, outcome.event_time_ms), (2, Some(1000)));
    assert_eq!(outcome.structures[0].after.id.to_string(), "public.t");
    assert_eq!(outcome.structures[0].after.primary_key, ["id"]);
    assert_eq!(outcome.structures[1].kind, SchemaChangeKind::Other("truncate.table".into()));
    let reasons: Vec<&str> = outcome.undecodable.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(reasons, ["the envelope: `op` is none that Debezium has", "`after` is null"]);
}
