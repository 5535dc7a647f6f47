//! Owns the cases of canal-json reading: worked sequences, structure, what is tolerated and what is refused.

use std::sync::Arc;

use canalis_formats::{
    canal::{CanalDecoder, CanalDecoderOptions, Zone},
    message::{MessageDecoder, StructureChange},
};
use canalis_types::{Column, ColumnPlace, LogicalType, SchemaChangeKind, TableId, TableSchema};

use crate::{
    canal_support::{decoder, message, table},
    message_support::{Outcome, decode_pairs, decode_values, state},
};

/// One transaction of `shop.t`, and a TRUNCATE.
pub const SEQUENCE: [&str; 5] = [
    r#"{"data":[{"id":"1","name":"a","amt":"1.00"}],"database":"shop","id":20,"isDdl":false,"old":null,"pkNames":["id"],"sql":"","table":"t","type":"INSERT"}"#,
    r#"{"data":[{"id":"1","name":"b","amt":"1.00"}],"database":"shop","id":20,"isDdl":false,"old":[{"name":"a"}],"pkNames":["id"],"sql":"","table":"t","type":"UPDATE"}"#,
    r#"{"data":[{"id":"2","name":"b","amt":"1.00"}],"database":"shop","id":20,"isDdl":false,"old":[{"id":"1"}],"pkNames":["id"],"sql":"","table":"t","type":"UPDATE"}"#,
    r#"{"data":[{"id":"2","name":"b","amt":"1.00"}],"database":"shop","id":20,"isDdl":false,"old":null,"pkNames":["id"],"sql":"","table":"t","type":"DELETE"}"#,
    r#"{"data":null,"database":"shop","id":21,"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,"sql":"TRUNCATE t","sqlType":null,"table":"t","type":"TRUNCATE"}"#,
];

pub fn sequence_table() -> Arc<TableSchema> {
    table("t", &[("id", "int"), ("name", "varchar(20)"), ("amt", "decimal(8,2)")], &["id"])
}

fn tag(change: &StructureChange) -> &str {
    match &change.kind {
        SchemaChangeKind::CreateTable => "create.table",
        SchemaChangeKind::AddColumns(_) => "add.column",
        SchemaChangeKind::Other(tag) => tag,
    }
}

fn tags(outcome: &Outcome) -> Vec<&str> {
    outcome.structures.iter().map(tag).collect()
}

#[test]
fn the_worked_sequence_is_read_as_it_happened() {
    let outcome = decode_values(&mut decoder(&[&sequence_table()]), &SEQUENCE);
    assert_eq!(outcome.undecodable, []);
    assert_eq!(
        outcome.rows,
        ["+I 1|a|1.00", "-U 1|a|1.00", "+U 1|b|1.00", "-U 1|b|1.00", "+U 2|b|1.00", "-D 2|b|1.00"]
    );
    assert_eq!(tags(&outcome), ["truncate.table"]);
    assert!(outcome.structures[0].alone);
    assert_eq!(outcome.structures[0].statement, "TRUNCATE t");
}

#[test]
fn any_prefix_may_be_replayed() {
    for length in 0..=4 {
        let mut messages = SEQUENCE[..length].to_vec();
        messages.extend(&SEQUENCE[..length]);
        messages.extend(&SEQUENCE[..4]);
        let outcome = decode_values(&mut decoder(&[&sequence_table()]), &messages);
        assert_eq!(outcome.undecodable, []);
        assert!(state(&outcome.rows).is_empty(), "after {length} messages twice: {:?}", outcome.rows);
    }
    let three = decode_values(&mut decoder(&[&sequence_table()]), &SEQUENCE[..3]);
    assert_eq!(state(&three.rows).into_values().collect::<Vec<_>>(), ["2|b|1.00"]);
}

const TYPES: &str = r#"{"id":"int","amount":"decimal(10,2)"}"#;

#[test]
fn fm_04_updates_of_many_rows_keep_order_and_overlay_old() {
    let update = message("UPDATE", r#"[{"id":"1","amount":"2.00"},{"id":"2","amount":"3.00"}]"#, TYPES)
        .replace("\"old\":null", r#""old":[{"amount":"1.00"},{"amount":null}]"#);
    let outcome = decode_values(&mut decoder(&[]), &[&update]);
    assert_eq!(outcome.rows, ["-U 1|1.00", "+U 1|2.00", "-U 2|NULL", "+U 2|3.00"]);
    assert_eq!(outcome.event_time_ms, Some(1_710_469_230_000));
}

#[test]
fn fm_04_details() {
    // pkNames null: the table has no key, all columns allow NULL.
    let update = r#"{"data":[{"id":"1","v":null}],"database":"shop","es":1710469230000,"isDdl":false,
        "mysqlType":{"id":"int(11)","v":"varchar(5)"},"old":[{"v":"x"}],"pkNames":null,"table":"t","type":"UPDATE"}"#;
    let delete = message(
        "DELETE",
        r#"[{"id":"1","v":"y"},{"id":"2","v":null}]"#,
        r#"{"id":"int(11)","v":"varchar(5)"}"#,
    )
    .replace(r#"["id"]"#, "null");
    let alter = r#"{"data":null,"database":"shop","es":1710469231000,"gtid":"","id":8,"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,"sql":"ALTER TABLE orders ADD COLUMN note VARCHAR(10)","sqlType":null,"table":"orders","ts":1710469231010,"type":"ALTER"}"#;
    let outcome = decode_values(&mut decoder(&[]), &[update, alter, &delete]);
    assert_eq!(outcome.undecodable, []);
    assert_eq!(outcome.rows, ["-U 1|x", "+U 1|NULL", "-D 1|y", "-D 2|NULL"]);
    assert_eq!((tags(&outcome), outcome.ignored), (vec!["create.table"], 1));
    assert!(!outcome.structures[0].after.has_key());
    // With a declared key, it stays.
    let declared = table("t", &[("id", "int"), ("v", "varchar(5)")], &["id"]);
    let mut decoder = decoder(&[&declared]);
    let outcome = decode_values(&mut decoder, &[update, &delete]);
    assert_eq!(outcome.rows.len(), 4);
    assert_eq!(decoder.tables(), [declared]);
}

#[test]
fn kf_04_a_message_that_cannot_be_read_does_not_touch_the_others() {
    let rows = [r#"{"id":"1"}"#, r#"{"id":"#, r#"{"id":"abc"}"#, r#"{"id":"3"}"#];
    let messages: Vec<String> =
        rows.iter().map(|row| message("INSERT", &format!("[{row}]"), r#"{"id":"int"}"#)).collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let outcome = decode_values(&mut decoder(&[]), &messages);
    assert_eq!(outcome.rows, ["+I 1", "+I 3"]);
    let at: Vec<usize> = outcome.undecodable.iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [1, 2]);
    assert_eq!(outcome.undecodable[1].1, "column `id`: text is not a whole number of 64 bits");
}

#[test]
fn a_bad_row_takes_back_its_whole_message() {
    for bad in [
        r#"{"id":"x"}"#,
        r#"{"id":"3","amount":"1.001"}"#,
        "{}",
        r#"{"id":null}"#,
        r#"{"id":"3","more":"1"}"#,
    ] {
        let torn = message("INSERT", &format!(r#"[{{"id":"2"}},{bad},{{"id":"4"}}]"#), TYPES);
        let good = message("UPDATE", r#"[{"id":"5","amount":"1.00"}]"#, TYPES);
        let outcome = decode_values(&mut decoder(&[]), &[&good, &torn, &good]);
        assert_eq!(outcome.undecodable.len(), 1, "{bad}");
        assert_eq!(outcome.rows, ["-U 5|1.00", "+U 5|1.00", "-U 5|1.00", "+U 5|1.00"], "{bad}");
    }
}

#[test]
fn structure_follows_from_messages() {
    let first = message("INSERT", r#"[{"id":"1"}]"#, r#"{"id":"int"}"#);
    let wider = message("INSERT", r#"[{"a":"x","id":"2","b":"7"}]"#, r#"{"a":"text","id":"int","b":"int"}"#);
    let retyped =
        message("INSERT", r#"[{"a":"x","id":"3","b":"7"}]"#, r#"{"a":"text","id":"int","b":"bigint"}"#);
    let narrower = message("INSERT", r#"[{"id":"4","b":"8"}]"#, r#"{"id":"int","b":"bigint"}"#);
    let outcome = decode_values(&mut decoder(&[]), &[&first, &wider, &first, &retyped, &narrower]);
    assert_eq!(outcome.undecodable, []);
    assert_eq!(tags(&outcome), ["create.table", "add.column", "alter.column.type"]);
    let SchemaChangeKind::AddColumns(added) = &outcome.structures[1].kind else { panic!() };
    let added: Vec<(&str, &ColumnPlace)> = added.iter().map(|(c, p)| (c.name.as_str(), p)).collect();
    assert_eq!(added, [("a", &ColumnPlace::First), ("b", &ColumnPlace::Last)]);
    let before = outcome.structures[1].before.as_ref().unwrap();
    assert_eq!((before.columns.len(), outcome.structures[1].after.columns.len()), (1, 3));
    let key = &outcome.structures[0].after.columns[0];
    assert_eq!((key.nullable, &key.ty), (false, &LogicalType::Int32));
    assert_eq!(key.native.as_ref().unwrap().sql, "int");
    assert_eq!(outcome.rows, ["+I 1", "+I x|2|7", "+I NULL|1|NULL", "+I x|3|7", "+I NULL|4|8"]);
}

#[test]
fn partial_images_are_unchanged_in_updates_and_need_the_key() {
    let types = r#"{"id":"int","a":"text","b":"text"}"#;
    let full = message("INSERT", r#"[{"id":"1","a":"x","b":"y"}]"#, types);
    let partial = message("UPDATE", r#"[{"id":"1","b":"z"}]"#, r#"{"id":"int","b":"text"}"#)
        .replace("\"old\":null", r#""old":[{"b":"y"}]"#);
    let delete = message("DELETE", r#"[{"id":"1"}]"#, r#"{"id":"int"}"#);
    let keyless = message("DELETE", r#"[{"b":"z"}]"#, r#"{"b":"text"}"#);
    let outcome = decode_values(&mut decoder(&[]), &[&full, &partial, &delete, &keyless]);
    assert_eq!(outcome.rows, ["+I 1|x|y", "-U 1|~|y", "+U 1|~|z", "-D 1|NULL|NULL"]);
    assert_eq!(outcome.undecodable, [(3, "key column `id` is missing".to_owned())]);
    // Without a key the row could not be found.
    let no_key = |message: &str| message.replace(r#"["id"]"#, "null");
    let outcome = decode_values(&mut decoder(&[]), &[&no_key(&full), &no_key(&delete)]);
    assert_eq!((outcome.rows.len(), outcome.undecodable.len()), (1, 1));
}

#[test]
fn declared_tables_stand() {
    let mut id = Column::new("id", LogicalType::Int64, false);
    id.native = None;
    let columns = vec![
        id,
        Column::new("st", LogicalType::Text, true),
        Column::new("bin", LogicalType::Varbinary { length: 4 }, true),
    ];
    let declared = Arc::new(TableSchema::new(TableId::new("shop", "t"), columns, vec!["id".into()]));
    let insert = message(
        "INSERT",
        r#"[{"id":"1","st":"2","bin":"ÿ","left out":"1"}]"#,
        r#"{"id":"int","st":"enum('new','paid')","bin":"blob","left out":"hyperloglog"}"#,
    );
    let outcome = decode_values(&mut decoder(&[&declared]), &[&insert]);
    assert_eq!(outcome.rows, ["+I 1|paid|FF"]);
    assert_eq!(tags(&outcome), [""; 0]);
    // Without type texts: the declaration, and `sqlType` for bytes.
    let bare = r#"{"data":[{"id":1,"st":"x","bin":"ÿ"}],"database":"shop","table":"t","type":"insert"}"#;
    assert_eq!(decode_values(&mut decoder(&[&declared]), &[bare]).rows, ["+I 1|x|FF"]);
    let text = bare.replace("\"table\"", "\"sqlType\":{\"bin\":12},\"table\"");
    assert_eq!(decode_values(&mut decoder(&[&declared]), &[&text]).rows, ["+I 1|x|C3BF"]);
    // A writer that names no table has one.
    let flink = r#"{"data":[{"id":1,"st":null,"bin":null}],"type":"DELETE"}"#;
    assert_eq!(decode_values(&mut decoder(&[&declared]), &[flink]).rows, ["-D 1|NULL|NULL"]);
}

#[test]
fn statements_are_changes_or_nothing() {
    let ddl = |kind: &str, table: &str| {
        format!(
            "{{\"data\":null,\"database\":\"shop\",\"isDdl\":true,\"sql\":\"S\",\"table\":\"{table}\",\"type\":\"{kind}\"}}"
        )
    };
    let insert = message("INSERT", r#"[{"id":"1"}]"#, r#"{"id":"int"}"#);
    for (kind, table, tag) in [
        ("TRUNCATE", "t", Some("truncate.table")),
        ("erase", "t", Some("drop.table")),
        ("RENAME", "t", Some("rename.table")),
        ("TRUNCATE", "", None),
        ("CREATE", "t", None),
        ("ALTER", "t", None),
        ("CINDEX", "t", None),
        ("DINDEX", "t", None),
        ("QUERY", "", None),
        ("XACOMMIT", "t", None),
    ] {
        for known in [true, false] {
            let messages = [insert.as_str(), &ddl(kind, table)];
            let outcome = decode_values(&mut decoder(&[]), &messages[usize::from(!known)..]);
            assert_eq!(outcome.undecodable, [], "{kind}");
            let found = outcome.structures.iter().find(|c| c.alone);
            assert_eq!(found.map(crate::canal_cases::tag), tag, "{kind}");
            assert_eq!(outcome.ignored, usize::from(tag.is_none()));
            if let Some(change) = found {
                assert_eq!((change.statement.as_str(), change.before.is_some()), ("S", known));
                assert_eq!(change.after.id, TableId::new("shop", "t"));
            }
        }
    }
    // A dropped table is a new one when it comes back.
    let other = message("INSERT", r#"[{"id":"x"}]"#, r#"{"id":"text"}"#);
    let outcome = decode_values(&mut decoder(&[]), &[&insert, &ddl("ERASE", "t"), &other]);
    assert_eq!(tags(&outcome), ["create.table", "drop.table", "create.table"]);
    assert_eq!(outcome.rows, ["+I 1", "+I x"]);
}

#[test]
fn what_other_tools_write_is_read() {
    let schema = table(
        "t",
        &[
            ("id", "bigint unsigned"),
            ("n", "decimal(10,2)"),
            ("b", "bit(1)"),
            ("ok", "tinyint(1)"),
            ("v", "varchar(9)"),
            ("j", "json"),
        ],
        &["id"],
    );
    for (data, expect) in [
        // Scalars that are no strings.
        (
            r#"{"id":18446744073709551615,"n":1.5,"b":true,"ok":false,"v":7,"j":{"a":[1]}}"#,
            "18446744073709551615|1.50|1|0|7|{\"a\":[1]}",
        ),
        (r#"{"id":1e3,"n":125e-2,"v":true,"j":null}"#, "1000|1.25|NULL|NULL|true|NULL"),
        (r#"{"id":"1","n":"0E-10"}"#, "1|0.00|NULL|NULL|NULL|NULL"),
        // Of names that stand twice the last counts; names may be escaped and in any order.
        (r#"{"n":"3","id":"1","\u006e":"4","id":"2"}"#, "2|4.00|NULL|NULL|NULL|NULL"),
        (r#"{"id":"1","v":"a\u0000\ud83d\ude00"}"#, "1|NULL|NULL|NULL|a\0😀|NULL"),
    ] {
        let text = format!(
            " {{\"_tidb\":{{\"commitTs\":1}},\"type\":\"UPDATE\",\"table\":\"x\",\"data\":[{data}],\"es\":\"5\",\
             \"ts\":null,\"type\":\"insert\",\"database\":\"shop\",\"\\u0074able\":\"t\"}}\n"
        );
        let outcome = decode_values(&mut decoder(&[&schema]), &[&text]);
        assert_eq!(outcome.undecodable, [], "{data}");
        assert_eq!(outcome.rows, [format!("+I {expect}")], "{data}");
        assert_eq!(outcome.event_time_ms, Some(5));
    }
    let watermark = r#"{"type":"TIDB_WATERMARK","_tidb":{"watermarkTs":429918007904436226}}"#;
    let outcome = decode_pairs(&mut decoder(&[]), &[(None, Some(watermark)), (Some("k"), None)]);
    assert_eq!((outcome.ignored, outcome.rows.len()), (2, 0));
}

#[test]
fn malformed_messages_are_refused_with_a_reason() {
    let schema = table(
        "t",
        &[
            ("id", "int"),
            ("n", "decimal(4,1)"),
            ("bin", "binary(2)"),
            ("st", "enum('a')"),
            ("u", "tinyint unsigned"),
            ("ts", "timestamp"),
        ],
        &["id"],
    );
    let row = |data: &str| {
        format!("{{\"data\":[{data}],\"database\":\"shop\",\"table\":\"t\",\"type\":\"INSERT\"}}")
    };
    let field = |field: &str| row(r#"{"id":"1"}"#).replace("\"type\"", &format!("{field},\"type\""));
    for message in [
        String::new(),
        "[]".into(),
        "{} {}".into(),
        "{\"type\":\"INSERT\"".into(),
        row("1"),
        row(r#"{"id":"1"},null"#),
        row(r#"{"id":""}"#),
        row(r#"{"id":"1.5"}"#),
        row(r#"{"id":1.5}"#),
        row(r#"{"id":"2147483648"}"#),
        row(r#"{"id":{}}"#),
        row(r#"{"n":"1"}"#),
        row(r#"{"id":"1","n":"1e"}"#),
        row(r#"{"id":"1","n":"e5"}"#),
        row(r#"{"id":"1","n":"1.25"}"#),
        row(r#"{"id":"1","bin":"ab\u0100"}"#),
        row(r#"{"id":"1","bin":"abc"}"#),
        row(r#"{"id":"1","st":"2"}"#),
        row(r#"{"id":"1","st":"b"}"#),
        row(r#"{"id":"1","u":"-1"}"#),
        row(r#"{"id":"1","u":true,"ts":"2024-02-30"}"#),
        row(r#"{"id":"1","ts":"2024-01-01 00:00:00.5"}"#),
        row(r#"{"id":"1","ts":"\ud800"}"#),
        field("\"isDdl\":1"),
        field("\"isDdl\":true"),
        field("\"es\":\"soon\""),
        field("\"mysqlType\":[]"),
        field("\"mysqlType\":{\"id\":\"enum('\"}"),
        field("\"data\":null"),
        field("\"data\":{}"),
        field("\"type\":null").replace(",\"type\":\"INSERT\"", ""),
        field("\"table\":5"),
        field("\"table\":\"unknown\""),
        row(r#"{"id":"1"}"#).replace("INSERT", "UPDATE").replace("\"type\"", "\"old\":[{},{}],\"type\""),
    ] {
        let outcome = decode_values(&mut decoder(&[&schema]), &[&message]);
        assert_eq!(outcome.undecodable.len(), 1, "{message}");
        assert_eq!((outcome.rows.len(), outcome.ignored), (0, 0), "{message}");
    }
    let unnamed = decode_values(&mut decoder(&[]), &[&row(r#"{"id":"1"}"#).replace("\"shop\"", "\"\"")]);
    assert!(unnamed.undecodable[0].1.contains("declare the table"), "{:?}", unnamed.undecodable);
}

#[test]
fn timestamps_are_of_the_zone() {
    let read = |zone: &str, text: &str| {
        let options = CanalDecoderOptions { time_zone: Zone::parse(zone).unwrap() };
        let insert = message("INSERT", &format!(r#"[{{"id":"{text}"}}]"#), r#"{"id":"timestamp(3)"}"#);
        let outcome = decode_values(&mut CanalDecoder::new(options, Vec::new()), &[&insert]);
        outcome.rows.first().cloned().unwrap_or_else(|| outcome.undecodable[0].1.clone())
    };
    for (zone, text, expect) in [
        ("UTC", "2024-03-15 02:20:30.120", "+I 2024-03-15 02:20:30.120"),
        ("+08:00", "2024-03-15 10:20:30.120", "+I 2024-03-15 02:20:30.120"),
        ("+08:00", "2024-03-15 10:20:30", "+I 2024-03-15 02:20:30.000"),
        ("+08:00", "0000-00-00 00:00:00.000", "+I 0000-00-00 00:00:00.000"),
        // With an offset of its own, the zone does not matter.
        ("+08:00", "2024-03-15T02:20:30Z", "+I 2024-03-15 02:20:30.000"),
        ("Europe/Paris", "2024-07-01 02:00:00.000", "+I 2024-07-01 00:00:00.000"),
        ("Europe/Paris", "2024-10-27 02:30:00.000", "+I 2024-10-27 00:30:00.000"),
        (
            "Europe/Paris",
            "2024-03-31 02:30:00.000",
            "column `id`: time does not exist in the time zone: clocks skip it",
        ),
    ] {
        assert_eq!(read(zone, text), expect, "{zone} {text}");
    }
}

#[test]
fn bits_that_change_the_sql_type_do_not_change_the_structure() {
    let with = |value: &str, sql_type: i32| {
        message("INSERT", &format!(r#"[{{"id":"{value}"}}]"#), r#"{"id":"bigint unsigned"}"#)
            .replace("\"table\"", &format!("\"sqlType\":{{\"id\":{sql_type}}},\"table\""))
    };
    let messages = [with("1", -5), with("18446744073709551615", 3), with("2", -5)];
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let outcome = decode_values(&mut decoder(&[]), &messages);
    assert_eq!(outcome.rows, ["+I 1", "+I 18446744073709551615", "+I 2"]);
    assert_eq!(tags(&outcome), ["create.table"]);
}
