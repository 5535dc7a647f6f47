//! Owns the cases of canal-json writing: worked sequences, keys and lanes, statements, refusals.

use canalis_formats::{
    canal::{CanalEncoder, CanalEncoderOptions, KeyChanges, Zone},
    message::{MessageEncoder, Messages, StructureChange},
};
use canalis_types::{Column, ColumnPlace, LogicalType, RowKind, SchemaChangeKind};

use crate::{
    canal_cases::{SEQUENCE, sequence_table},
    canal_support::{batch, decoder, encoder_options, table},
    message_support::{decode_values, encode},
};

/// A message without the fields that the worked examples leave out.
fn shorten(message: &str, left_out: &[&str]) -> String {
    let mut value: serde_json::Value = serde_json::from_str(message).unwrap();
    for field in left_out {
        value.as_object_mut().unwrap().shift_remove(*field).unwrap();
    }
    value.to_string()
}

fn structure(encoder: &mut CanalEncoder, change: &StructureChange) -> String {
    let mut messages = Messages::default();
    encoder.encode_structure(change, &mut messages).unwrap();
    let message = messages.iter().next().unwrap();
    assert_eq!((messages.len(), message.key, message.lane), (1, None, None));
    String::from_utf8(message.value.unwrap().to_vec()).unwrap()
}

fn change(kind: SchemaChangeKind, statement: &str) -> StructureChange {
    let after = sequence_table();
    StructureChange { kind, before: Some(after.clone()), after, statement: statement.into(), alone: true }
}

#[test]
fn the_worked_sequence_is_written_as_it_is_printed() {
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
    let (a, b, moved) = (
        [Some("1"), Some("a"), Some("1.00")],
        [Some("1"), Some("b"), Some("1.00")],
        [Some("2"), Some("b"), Some("1.00")],
    );
    let rows: [(RowKind, &[Option<&str>]); 6] = [
        (Insert, &a),
        (UpdateBefore, &a),
        (UpdateAfter, &b),
        (UpdateBefore, &b),
        (UpdateAfter, &moved),
        (Delete, &moved),
    ];
    let mut encoder = CanalEncoder::new(encoder_options(20));
    let messages = encode(&mut encoder, &batch(&sequence_table(), &rows));
    let short = ["mysqlType", "sqlType", "es", "ts", "gtid"];
    let written: Vec<String> =
        messages.iter().map(|(_, value)| shorten(value.as_deref().unwrap(), &short)).collect();
    assert_eq!(written, SEQUENCE[..4]);
    let truncate = change(SchemaChangeKind::Other("truncate.table".into()), "TRUNCATE t");
    assert_eq!(shorten(&structure(&mut encoder, &truncate), &short[2..]), SEQUENCE[4]);
}

#[test]
fn updates_show_what_has_changed() {
    use RowKind::{UpdateAfter, UpdateBefore};
    let schema = table("t", &[("id", "int"), ("amount", "decimal(10,2)")], &["id"]);
    let rows: [(RowKind, &[Option<&str>]); 6] = [
        (UpdateBefore, &[Some("1"), Some("1.00")]),
        (UpdateAfter, &[Some("1"), Some("2.00")]),
        (UpdateBefore, &[Some("2"), None]),
        (UpdateAfter, &[Some("2"), Some("3.00")]),
        (UpdateBefore, &[Some("3"), None]),
        (UpdateAfter, &[Some("3"), Some("~")]),
    ];
    let messages = encode(&mut CanalEncoder::new(encoder_options(1)), &batch(&schema, &rows));
    for ((_, message), expect) in messages.iter().zip([
        r#"{"data":[{"id":"1","amount":"2.00"}],"old":[{"amount":"1.00"}],"type":"UPDATE"}"#,
        r#"{"data":[{"id":"2","amount":"3.00"}],"old":[{"amount":null}],"type":"UPDATE"}"#,
        // Unchanged: in neither.
        r#"{"data":[{"id":"3"}],"old":[{}],"type":"UPDATE"}"#,
    ]) {
        let rest = [
            "database",
            "es",
            "gtid",
            "id",
            "isDdl",
            "mysqlType",
            "pkNames",
            "sql",
            "sqlType",
            "table",
            "ts",
        ];
        assert_eq!(shorten(message.as_deref().unwrap(), &rest), expect);
    }
    let texts: Vec<&str> = messages.iter().map(|(_, m)| m.as_deref().unwrap()).collect();
    let outcome = decode_values(&mut decoder(&[&schema]), &texts);
    assert_eq!(outcome.rows, ["-U 1|1.00", "+U 1|2.00", "-U 2|NULL", "+U 2|3.00", "-U 3|~", "+U 3|~"]);
}

#[test]
fn key_changes_can_be_two_messages_each_in_its_lane() {
    use RowKind::{Insert, UpdateAfter, UpdateBefore};
    let schema = table("t", &[("a", "int"), ("b", "varchar(9)"), ("v", "text")], &["b", "a"]);
    let rows: [(RowKind, &[Option<&str>]); 5] = [
        (Insert, &[Some("1"), Some("x"), Some("v")]),
        (UpdateBefore, &[Some("1"), Some("x"), Some("v")]),
        (UpdateAfter, &[Some("1"), Some("\""), Some("~")]),
        (UpdateBefore, &[Some("1"), Some("y"), Some("v")]),
        (UpdateAfter, &[Some("~"), Some("y"), Some("w")]),
    ];
    let batch = batch(&schema, &rows);
    let run = |options: CanalEncoderOptions| -> Vec<(Option<String>, String, usize, String)> {
        let mut messages = Messages::default();
        CanalEncoder::new(options).encode(&batch, &[], &mut messages).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let each = messages.iter().map(|m| {
            let value: serde_json::Value = serde_json::from_slice(m.value.unwrap()).unwrap();
            let shown = format!("{} {}", value["type"].as_str().unwrap(), value["data"][0]);
            (m.key.map(text), text(m.lane.unwrap()), m.row, shown)
        });
        each.collect()
    };
    let (x, quote, y) = (r#"{"b":"x","a":"1"}"#, r#"{"b":"\"","a":"1"}"#, r#"{"b":"y","a":"1"}"#);
    let expect = |lane: &str, row, shown: &str| (None, lane.to_owned(), row, shown.to_owned());
    assert_eq!(
        run(encoder_options(1)),
        [
            expect(x, 0, r#"INSERT {"a":"1","b":"x","v":"v"}"#),
            expect(quote, 1, r#"UPDATE {"a":"1","b":"\""}"#),
            expect(y, 3, r#"UPDATE {"b":"y","v":"w"}"#),
        ]
    );
    let options =
        CanalEncoderOptions { key_changes: KeyChanges::DeleteInsert, key: true, ..encoder_options(1) };
    let expect =
        |lane: &str, row, shown: &str| (Some(lane.to_owned()), lane.to_owned(), row, shown.to_owned());
    assert_eq!(
        run(options),
        [
            expect(x, 0, r#"INSERT {"a":"1","b":"x","v":"v"}"#),
            expect(x, 1, r#"DELETE {"a":"1","b":"x","v":"v"}"#),
            // What the new image left out is what the old one has.
            expect(quote, 1, r#"INSERT {"a":"1","b":"\"","v":"v"}"#),
            expect(y, 3, r#"UPDATE {"b":"y","v":"w"}"#),
        ]
    );
}

#[test]
fn statements_are_messages() {
    let options = CanalEncoderOptions { clock: || 1_710_469_231_010, ..encoder_options(8) };
    let mut alter = change(
        SchemaChangeKind::Other("alter.table".into()),
        "ALTER TABLE orders ADD COLUMN note VARCHAR(10)",
    );
    alter.after = table("orders", &[("id", "int")], &["id"]);
    assert_eq!(
        structure(&mut CanalEncoder::new(options), &alter),
        r#"{"data":null,"database":"shop","es":1710469231000,"gtid":"","id":8,"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,"sql":"ALTER TABLE orders ADD COLUMN note VARCHAR(10)","sqlType":null,"table":"orders","ts":1710469231010,"type":"ALTER"}"#
    );
    let added = Column::new("n`o", LogicalType::Timestamp { precision: 3 }, true);
    let added = vec![(added, ColumnPlace::After("id".into()))];
    for (kind, said, expect) in [
        (SchemaChangeKind::Other("drop.table".into()), "DROP TABLE t", ("ERASE", "DROP TABLE t")),
        (
            SchemaChangeKind::Other("rename.table".into()),
            "RENAME TABLE t TO u",
            ("RENAME", "RENAME TABLE t TO u"),
        ),
        // Words that are no statement become one.
        (
            SchemaChangeKind::CreateTable,
            "table appeared",
            (
                "CREATE",
                "CREATE TABLE `shop`.`t` (`id` int NOT NULL, `name` varchar(20) NULL, `amt` decimal(8,2) NULL, PRIMARY KEY (`id`))",
            ),
        ),
        (
            SchemaChangeKind::AddColumns(added),
            "",
            ("ALTER", "ALTER TABLE `shop`.`t` ADD COLUMN `n``o` datetime(3) NULL AFTER `id`"),
        ),
    ] {
        let message = structure(&mut CanalEncoder::new(options), &change(kind, said));
        let value: serde_json::Value = serde_json::from_str(&message).unwrap();
        assert_eq!((value["type"].as_str().unwrap(), value["sql"].as_str().unwrap()), expect);
    }
}

#[test]
fn what_would_not_read_back_is_refused() {
    let options =
        CanalEncoderOptions { time_zone: Zone::parse("Europe/Paris").unwrap(), ..encoder_options(1) };
    let mut encoder = CanalEncoder::new(options);
    let schema = table("t", &[("ts", "timestamp"), ("st", "enum('a')"), ("tags", "set('a','b')")], &[]);
    let refusal = |encoder: &mut CanalEncoder, ts: &str, st: &str, tags: &str| {
        let batch = batch(&schema, &[(RowKind::Insert, &[Some(ts), Some(st), Some(tags)])]);
        encoder.refusal(&batch, 0)
    };
    // Clocks show 02:30 twice: at 00:30 and at 01:30 UTC.
    assert_eq!(refusal(&mut encoder, "2024-10-27 00:30:00", "a", "b"), None);
    let twice = refusal(&mut encoder, "2024-10-27 01:30:00", "a", "b").unwrap();
    assert!(twice.starts_with("column `ts`: "), "{twice}");
    assert!(refusal(&mut encoder, "2024-01-01 00:00:00", "b", "").unwrap().contains("`st`"));
    assert!(refusal(&mut encoder, "2024-01-01 00:00:00", "", "a,c").unwrap().contains("`tags`"));
    // What is skipped is not written.
    let batch = batch(
        &schema,
        &[(RowKind::Insert, &[None, Some("b"), None]), (RowKind::Insert, &[None, Some("a"), None])],
    );
    let mut messages = Messages::default();
    encoder.encode(&batch, &[0], &mut messages).unwrap();
    assert_eq!(messages.iter().map(|m| m.row).collect::<Vec<_>>(), [1]);
    assert!(encoder.encode(&batch, &[], &mut messages).is_err());
}

#[test]
fn another_structure_is_another_template() {
    let narrow = table("t", &[("id", "int")], &["id"]);
    let wide = table("t", &[("id", "int"), ("v", "int unsigned")], &["id"]);
    let mut encoder = CanalEncoder::new(encoder_options(1));
    let mut types = |batch| {
        let message = encode(&mut encoder, &batch).remove(0).1.unwrap();
        let value: serde_json::Value = serde_json::from_str(&message).unwrap();
        (value["mysqlType"].to_string(), value["sqlType"].to_string(), value["id"].as_u64().unwrap())
    };
    let one = (r#"{"id":"int"}"#.to_owned(), r#"{"id":4}"#.to_owned());
    let two = (r#"{"id":"int","v":"int unsigned"}"#.to_owned(), r#"{"id":4,"v":-5}"#.to_owned());
    assert_eq!(types(batch(&narrow, &[(RowKind::Insert, &[Some("1")])])), (one.0.clone(), one.1.clone(), 1));
    assert_eq!(
        types(batch(&wide, &[(RowKind::Insert, &[Some("1"), Some("4294967295")])])),
        (two.0, two.1, 2)
    );
    assert_eq!(types(batch(&narrow, &[(RowKind::Delete, &[Some("1")])])), (one.0, one.1, 3));
}
