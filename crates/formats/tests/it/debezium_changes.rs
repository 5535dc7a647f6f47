//! Owns change sequences of debezium-json: operations, tombstones, keys that change, messages that are none.

use std::{collections::BTreeMap, sync::Arc};

use canalis_formats::{
    debezium::{DebeziumDecoderOptions, DebeziumEncoderOptions},
    message::{MessageDecoder, MessageEncoder, Messages},
};
use canalis_types::{LogicalType as L, RowKind, SchemaChangeKind, TableId, TableSchema};
use serde_json::Value;

use crate::debezium_support::{Pair, Reader, apply, batch, column, encode, encoder, table};

fn t() -> Arc<TableSchema> {
    let name = column("name", L::Varchar { length: 20 }, true);
    let amount = column("amt", L::Decimal { precision: 8, scale: 2 }, true);
    table("t", vec![column("id", L::Int32, false), name, amount], &["id"])
}

fn reader() -> Reader {
    Reader::new(DebeziumDecoderOptions::default(), vec![t()])
}

const INSERT: &str =
    r#"{"before":null,"after":{"id":1,"name":"a","amt":"ZA=="},"op":"c","transaction":null}"#;
const UPDATE: &str = r#"{"before":{"id":1,"name":"a","amt":"ZA=="},"after":{"id":1,"name":"b","amt":"ZA=="},"op":"u","transaction":null}"#;
const DELETE_1: &str =
    r#"{"before":{"id":1,"name":"b","amt":"ZA=="},"after":null,"op":"d","transaction":null}"#;
const CREATE_2: &str =
    r#"{"before":null,"after":{"id":2,"name":"b","amt":"ZA=="},"op":"c","transaction":null}"#;
const DELETE_2: &str =
    r#"{"before":{"id":2,"name":"b","amt":"ZA=="},"after":null,"op":"d","transaction":null}"#;
const TRUNCATE: &str = r#"{"before":null,"after":null,"op":"t"}"#;

const SEQUENCE: [(&str, Option<&str>); 7] = [
    (r#"{"id":1}"#, Some(INSERT)),
    (r#"{"id":1}"#, Some(UPDATE)),
    (r#"{"id":1}"#, Some(DELETE_1)),
    (r#"{"id":1}"#, None),
    (r#"{"id":2}"#, Some(CREATE_2)),
    (r#"{"id":2}"#, Some(DELETE_2)),
    (r#"{"id":2}"#, None),
];

#[test]
fn the_sequence_is_written_as_the_contract_has_it() {
    use RowKind::*;
    let rows = batch(
        &t(),
        &[
            (Insert, &["1", "a", "1.00"]),
            (UpdateBefore, &["1", "a", "1.00"]),
            (UpdateAfter, &["1", "b", "1.00"]),
            (UpdateBefore, &["1", "b", "1.00"]),
            (UpdateAfter, &["2", "b", "1.00"]),
            (Delete, &["2", "b", "1.00"]),
        ],
    );
    let written = encode(&DebeziumEncoderOptions::default(), &rows);
    assert_eq!(written.len(), SEQUENCE.len());
    for ((key, value), (expected_key, expected)) in written.iter().zip(SEQUENCE) {
        assert_eq!(key.as_deref(), Some(expected_key));
        let Some(expected) = expected else {
            assert_eq!(*value, None);
            continue;
        };
        let mut value: Value = serde_json::from_str(value.as_ref().unwrap()).unwrap();
        let members = value.as_object_mut().unwrap();
        let names: Vec<&String> = members.keys().collect();
        assert_eq!(names, ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]);
        members.retain(|name, _| name != "source" && !name.starts_with("ts_"));
        assert_eq!(value, serde_json::from_str::<Value>(expected).unwrap());
    }
    let quiet = DebeziumEncoderOptions { tombstones: false, ..DebeziumEncoderOptions::default() };
    assert!(encode(&quiet, &rows).iter().all(|(_, value)| value.is_some()));
}

#[test]
fn messages_are_ordered_by_their_key_and_rows_can_be_left_out() {
    use RowKind::*;
    let rows = batch(
        &t(),
        &[
            (Insert, &["7", "a", "NULL"]),
            (UpdateBefore, &["7", "a", "NULL"]),
            (UpdateAfter, &["8", "a", "NULL"]),
            (Insert, &["9", "a", "NULL"]),
        ],
    );
    let mut messages = Messages::default();
    let mut encoder = encoder(DebeziumEncoderOptions::default());
    encoder.encode(&rows, &[0], &mut messages).unwrap();
    let lanes: Vec<(usize, &[u8])> = messages.iter().map(|m| (m.row, m.lane.unwrap())).collect();
    let (seven, eight, nine) = (br#"{"id":7}"#, br#"{"id":8}"#, br#"{"id":9}"#);
    assert_eq!(lanes, [(1, &seven[..]), (1, seven), (1, eight), (3, nine)]);

    let keyless = table("t", vec![column("a", L::Int32, true)], &[]);
    messages.clear();
    encoder.encode(&batch(&keyless, &[(Delete, &["1"])]), &[], &mut messages).unwrap();
    assert_eq!(messages.len(), 1, "nothing would find the row of a tombstone");
    assert!(messages.iter().all(|m| m.key.is_none() && m.lane.is_none()));
}

#[test]
fn rows_of_a_snapshot_are_reads() {
    let rows = batch(&t(), &[(RowKind::Insert, &["1", "a", "NULL"])]).with_event_time(None);
    let value = encode(&DebeziumEncoderOptions::default(), &rows)[0].1.clone().unwrap();
    assert!(value.contains(r#""op":"r""#) && value.contains(r#""snapshot":"true""#), "{value}");
    let mut reader = reader();
    reader.take(Some(r#"{"id":1}"#), Some(&value)).unwrap();
    assert_eq!(reader.decoder.take().unwrap()[0].event_time_ms, None);
}

fn sequence() -> Vec<Pair> {
    SEQUENCE.iter().map(|(key, value)| (Some((*key).to_owned()), value.map(str::to_owned))).collect()
}

#[test]
fn the_sequence_is_read() {
    let mut reader = reader();
    for (key, value) in sequence() {
        reader.take(key.as_deref(), value.as_deref()).unwrap();
    }
    reader.take(None, Some(TRUNCATE)).unwrap();
    let read = reader.end();
    assert_eq!(
        read.rows,
        ["+I 1|a|1.00", "-U 1|a|1.00", "+U 1|b|1.00", "-D 1|b|1.00", "+I 2|b|1.00", "-D 2|b|1.00"]
    );
    assert_eq!(read.ignored, 2);
    let [truncate] = read.changes.as_slice() else { panic!("{:?}", read.changes) };
    assert!(truncate.alone);
    assert_eq!(truncate.kind, SchemaChangeKind::Other("truncate.table".into()));
    assert_eq!(truncate.after.id, TableId::new("shop", "t"));
}

#[test]
fn prefixes_may_be_read_twice() {
    for length in 0..=SEQUENCE.len() {
        let mut pairs = sequence()[..length].to_vec();
        pairs.extend(sequence());
        let mut state = BTreeMap::new();
        apply(&reader().all(&pairs).rows, &mut state);
        assert_eq!(state, BTreeMap::new(), "the first {length} twice");
        let mut state = BTreeMap::new();
        apply(&reader().all(&pairs[..length + 5]).rows, &mut state);
        assert_eq!(state.into_values().collect::<Vec<_>>(), ["2|b|1.00"]);
    }
}

#[test]
fn kf_01_a_delete_and_its_tombstone_are_one_delete() {
    let mut both = reader();
    both.take(Some(r#"{"id":1}"#), Some(DELETE_1)).unwrap();
    both.take(Some(r#"{"id":1}"#), None).unwrap();
    assert_eq!(both.end().rows, ["-D 1|b|1.00"]);

    // Those of several partitions stand between each other.
    let mut mixed = reader();
    mixed.take(Some(r#"{"id":1}"#), Some(DELETE_1)).unwrap();
    mixed.take(Some(r#"{"id":2}"#), Some(DELETE_2)).unwrap();
    mixed.take(Some(r#"{"id":1}"#), None).unwrap();
    mixed.take(Some(r#"{"id":2}"#), None).unwrap();
    assert_eq!(mixed.end().rows, ["-D 1|b|1.00", "-D 2|b|1.00"]);
}

#[test]
fn kf_01_a_tombstone_alone_is_a_delete_by_key() {
    let mut alone = reader();
    alone.take(Some(r#"{"id":5}"#), None).unwrap();
    // A row that came back is deleted by the next tombstone.
    alone.take(Some(r#"{"id":1}"#), Some(DELETE_1)).unwrap();
    alone.take(Some(r#"{"id":1}"#), Some(INSERT)).unwrap();
    alone.take(Some(r#"{"id":1}"#), None).unwrap();
    assert_eq!(alone.end().rows, ["-D 5|~|~", "-D 1|b|1.00", "+I 1|a|1.00", "-D 1|~|~"]);

    let mut passed_over = reader();
    for key in [None, Some("5"), Some("not json"), Some(r#"{"other":1}"#), Some(r#"{"id":null}"#), Some("")] {
        passed_over.take(key, None).unwrap();
    }
    let read = passed_over.end();
    assert_eq!((read.rows.len(), read.ignored), (0, 6));

    let mut bad = reader();
    let refused = bad.take(Some(r#"{"id":"x"}"#), None).unwrap_err();
    assert_eq!(refused.table, Some(TableId::new("shop", "t")));
    assert!(bad.end().rows.is_empty());
}

#[test]
fn fm_06_an_update_without_before_needs_the_key_only() {
    let value = r#"{"before":null,"after":{"id":1,"name":"b","amt":"EAk="},"op":"u"}"#;
    let mut keyed = reader();
    keyed.take(None, Some(value)).unwrap();
    keyed.take(None, Some(&value.replace("\"before\":null,", ""))).unwrap();
    let read = keyed.end();
    assert_eq!(read.rows, ["-U 1|~|~", "+U 1|b|41.05", "-U 1|~|~", "+U 1|b|41.05"]);

    let mut keyless = TableSchema::clone(&t());
    keyless.primary_key.clear();
    let mut reader = Reader::new(DebeziumDecoderOptions::default(), vec![Arc::new(keyless)]);
    let refused = reader.take(None, Some(value)).unwrap_err();
    assert!(refused.reason.contains("has no key to find it by"), "{refused}");
}

#[test]
fn fm_06_a_delete_without_before_takes_the_message_key() {
    let value = r#"{"after":null,"op":"d"}"#;
    let mut keyed = reader();
    keyed.take(Some(r#"{"id":3}"#), Some(value)).unwrap();
    keyed.take(Some(r#"{"id":3}"#), None).unwrap();
    let refused = keyed.take(None, Some(value)).unwrap_err();
    assert!(refused.reason.contains("message key is not that of the table"), "{refused}");
    assert_eq!(keyed.end().rows, ["-D 3|~|~"]);
}

#[test]
fn fm_06_operations_and_spellings() {
    let mut reader = reader();
    for value in [
        r#"{"op":"r","after":{"id":1,"name":"a","amt":1.5},"source":{"snapshot":true,"db":"shop","table":"t"}}"#,
        r#"{"op":"c","after":{"amt":"EAk=","name":null,"id":"2","more":[{}]},"source":{"snapshot":"last","db":"shop","table":"t"}}"#,
        r#"{"op":"c","after":{"id":9,"id":3,"name":"x","amt":1e2},"source":{"snapshot":null,"db":"shop","table":"t"},"op":"c"}"#,
        r#"{"op":"c","after":{"id":4,"name":"\u00e4\ud83d\ude00","amt":"\u0045Ak="},"unknown":{"a":[1]},"source":null}"#,
        r#" { "op" : "c" , "after" : { "\u0069d" : 5.0 , "name" : "y" } } "#,
    ] {
        reader.take(None, Some(value)).unwrap_or_else(|e| panic!("{e}: {value}"));
    }
    let read = reader.end();
    assert_eq!(
        read.rows,
        ["+I 1|a|1.50", "+I 2|NULL|41.05", "+I 3|x|100.00", "+I 4|ä😀|41.05", "+I 5|y|NULL"]
    );
}

#[test]
fn messages_without_rows_are_passed_over() {
    let mut reader = reader();
    for value in [
        r#"{"ts_ms":1710469230000}"#,
        r#"{"status":"BEGIN","id":"x","event_count":null,"data_collections":null,"ts_ms":1}"#,
        r#"{"source":{},"ts_ms":1,"databaseName":"shop","schemaName":null,"ddl":"ALTER TABLE t","tableChanges":[]}"#,
        r#"{"op":"m","source":{"schema":"","table":""},"message":{"prefix":"p","content":"AA=="}}"#,
        "null",
        r#"{"schema":null,"payload":null}"#,
    ] {
        reader.take(None, Some(value)).unwrap_or_else(|e| panic!("{e}: {value}"));
    }
    assert_eq!(reader.end().ignored, 6);
}

#[test]
fn what_is_no_change_is_a_dead_letter_with_its_reason() {
    let mut reader = reader();
    for (value, reason) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "the payload is no object"),
        ("7", "the payload is no object"),
        ("{}", "it has no `op`"),
        (r#"{"id":1,"status":"new"}"#, "option `unwrapped`"),
        (r#"{"op":"x","after":{"id":1}}"#, "none of c, r, u, d, t and m"),
        (r#"{"op":7,"after":{"id":1}}"#, "it has no `op`"),
        (r#"{"op":"c"}"#, "`after` is null or missing"),
        (r#"{"op":"c","after":"{\"id\":1}"}"#, "`after` is no object"),
        (r#"{"op":"u","before":7,"after":{"id":1}}"#, "`before` is no object"),
        (r#"{"op":"c","after":{"name":"a"}}"#, "column `id`: NULL in a column that is NOT NULL"),
        (r#"{"op":"c","after":{"id":3000000000}}"#, "column `id`: number is out of the column's range"),
        (r#"{"op":"c","after":{"id":1.5}}"#, "column `id`: number is not whole"),
        (r#"{"op":"c","after":{"id":{}}}"#, "column `id`: an object or array"),
        (r#"{"op":"c","after":{"id":1,"amt":"1.00"}}"#, "column `amt`: bytes are not Base64"),
        (r#"{"op":"c","after":{"id":1,"amt":"AJiWgAA="}}"#, "column `amt`: decimal has more digits"),
        (r#"{"op":"c","after":{"id":1,"amt":""}}"#, "column `amt`: a decimal has no bytes"),
        (r#"{"op":"c","after":{"id":1,"amt":1.005}}"#, "column `amt`"),
        (r#"{"op":"c","after":{"id":1,"name":"123456789012345678901"}}"#, "column `name`: text is longer"),
        (r#"{"op":"c","after":{"id":1,"name":"\ud800"}}"#, "column `name`"),
        (r#"{"op":"c","after":{"id":1,"name":"__debezium_unavailable_value"}}"#, "an insert needs it"),
        (r#"{"op":"u","before":{"id":1},"after":{"name":"x"}}"#, "column `id`: the key is missing"),
        (r#"{"op":"c","after":{"id":1}} x"#, "not JSON"),
        (r#"{"schema":{},"payload":{"op":"c","after":{"id":1}}}"#, "neither `after` nor `before`"),
    ] {
        let refused = reader.take(None, Some(value)).expect_err(value);
        assert!(refused.reason.contains(reason), "{value}: {refused}");
    }
    // Nothing of them stays behind.
    reader.take(None, Some(INSERT)).unwrap();
    assert_eq!(reader.end().rows, ["+I 1|a|1.00"]);
}

#[test]
fn a_table_that_nothing_tells_the_structure_of_is_refused_with_the_remedy() {
    let mut reader = reader();
    let value = r#"{"op":"c","after":{"id":1},"source":{"db":"shop","table":"other"}}"#;
    let refused = reader.take(None, Some(value)).unwrap_err();
    assert_eq!(refused.table, Some(TableId::new("shop", "other")));
    assert!(refused.reason.contains("schemas.enable=true"), "{refused}");
}

#[test]
fn rows_alone_are_read_where_asked() {
    let options = DebeziumDecoderOptions { unwrapped: true, ..DebeziumDecoderOptions::default() };
    let mut reader = Reader::new(options, vec![t()]);
    for (key, value) in [
        (1, Some(r#"{"id":1,"name":"a","amt":"ZA==","__deleted":"false"}"#)),
        (1, Some(r#"{"id":1,"name":"b","amt":"ZA==","__op":"u","__source_ts_ms":1710469230000}"#)),
        (1, Some(r#"{"id":1,"name":"__debezium_unavailable_value","amt":"ZA=="}"#)),
        (1, Some(r#"{"id":1,"name":"b","amt":"ZA==","__deleted":"true"}"#)),
        (1, None),
        (2, Some(r#"{"id":2,"name":"c","amt":"ZA==","__op":"r"}"#)),
        (2, None),
        (
            3,
            Some(
                r#"{"id":3,"name":"__debezium_unavailable_value","amt":"ZA==","__table":"t","__db":"shop"}"#,
            ),
        ),
    ] {
        reader.take(Some(&format!(r#"{{"id":{key}}}"#)), value).unwrap();
    }
    assert_eq!(
        reader.end().rows,
        [
            "+I 1|a|1.00",
            "-U 1|~|~",
            "+U 1|b|1.00",
            "-U 1|~|~",
            "+U 1|~|1.00",
            "-D 1|b|1.00",
            "+I 2|c|1.00",
            "-D 2|~|~",
            "-U 3|~|~",
            "+U 3|~|1.00",
        ]
    );
}

#[test]
fn rows_that_lack_cells_are_written_as_the_source_sent_them() {
    use RowKind::*;
    let rows = batch(
        &t(),
        &[(UpdateBefore, &["1", "~", "~"]), (UpdateAfter, &["1", "~", "~"]), (Delete, &["1", "~", "~"])],
    );
    let mut writer = encoder(DebeziumEncoderOptions::default());
    assert_eq!(writer.refusal(&rows, 0), None);
    assert_eq!(writer.refusal(&rows, 2), None);
    let pairs = encode(&DebeziumEncoderOptions::default(), &rows);
    let read = reader().all(&pairs);
    // What a delete lacks is null in its message, as PostgreSQL's connector writes it.
    assert_eq!(read.rows, ["-U 1|~|~", "+U 1|~|~", "-D 1|NULL|NULL"]);

    let schema = table("t", vec![column("id", L::Int32, false), column("n", L::Int32, true)], &["id"]);
    let rows = batch(&schema, &[(UpdateBefore, &["1", "2"]), (UpdateAfter, &["1", "~"])]);
    let refusal = writer.refusal(&rows, 0).unwrap();
    assert!(refusal.starts_with("column `n`"), "{refusal}");
}
