//! Owns the cases of plain rows as messages.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_formats::{
    csv::CsvDialect,
    message::{Message, MessageDecoder, MessageEncoder, Messages, Step},
    parse_columns,
    rows::{RawForm, RawKey, RowsDecoder, RowsEncoder, RowsKind, RowsOptions, UnknownFields, raw_table},
};
use canalis_types::{LogicalType, RowKind, SchemaChangeKind, TableId, TableSchema};
use proptest::prelude::*;

use crate::{
    every_type,
    message_support::{decode, decode_pairs, decode_values, encode, show},
};

fn table(columns: &str, key: &[&str]) -> Arc<TableSchema> {
    let key = key.iter().map(|k| (*k).to_owned()).collect();
    Arc::new(TableSchema::new(TableId::new("d", "t"), parse_columns(columns).unwrap(), key))
}

fn open(kind: RowsKind, columns: &str, key: &[&str]) -> RowsDecoder {
    RowsDecoder::new(kind, RowsOptions::default(), table(columns, key)).unwrap()
}

fn with_unknown(unknown: UnknownFields) -> RowsOptions {
    RowsOptions { unknown, ..RowsOptions::default() }
}

/// Rows from texts; `NULL` is NULL.
fn batch(schema: &Arc<TableSchema>, rows: &[(RowKind, &[&str])]) -> ChangeBatch {
    let mut builder = BatchBuilder::new(schema.clone(), rows.len());
    for (kind, cells) in rows {
        for (index, cell) in cells.iter().enumerate() {
            match *cell {
                "NULL" => builder.column(index).append_null(),
                "~" => builder.append_unchanged(index),
                text => builder.column(index).append_text(text.as_bytes()).unwrap(),
            }
        }
        builder.end_row(*kind, 0);
    }
    builder.finish().unwrap()
}

#[test]
fn kf_04_a_poison_message_leaves_the_others_alone() {
    let mut decoder = open(RowsKind::Json, "id INT", &[]);
    let outcome =
        decode_values(&mut decoder, &[r#"{"id":1}"#, r#"{"id":"#, r#"{"id":"abc"}"#, r#"{"id":3}"#]);
    assert_eq!(outcome.rows, ["+I 1", "+I 3"]);
    let reasons: Vec<(usize, &str)> =
        outcome.undecodable.iter().map(|(at, why)| (*at, why.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (1, "message is neither a JSON object nor an array of them: the value is missing"),
            (2, "column `id`: text is not a whole number of 64 bits"),
        ]
    );
}

#[test]
fn kf_01_a_tombstone_deletes_by_key() {
    let mut decoder = open(RowsKind::Json, "id INT NOT NULL, name STRING NOT NULL", &["id"]);
    let outcome = decode_pairs(
        &mut decoder,
        &[
            (Some(r#"{"id":1}"#), Some(r#"{"id":1,"name":"a"}"#)),
            (Some(r#"{"id":1}"#), None),
            (Some("2"), None),
            (None, None),
            (Some("x"), None),
            (Some(r#"{"name":"a"}"#), None),
            (Some(r#"{"id":1"#), None),
        ],
    );
    assert_eq!(outcome.rows, ["+I 1|a", "-D 1|NULL", "-D 2|NULL"]);
    assert_eq!(outcome.ignored, 1);
    let reasons: Vec<&str> = outcome.undecodable.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "key column `id`: text is not a whole number of 64 bits",
            "key column `id` is missing",
            "message key is not a JSON object: expected a comma or a closing brace",
        ]
    );
    // Without a key nothing says which row is meant.
    let outcome = decode_pairs(&mut open(RowsKind::Json, "id INT", &[]), &[(Some("1"), None)]);
    assert_eq!((outcome.rows.len(), outcome.ignored, outcome.undecodable.len()), (0, 1, 0));
}

#[test]
fn an_array_is_many_rows_or_none() {
    let mut decoder = open(RowsKind::Json, "id INT NOT NULL", &[]);
    let outcome = decode_values(
        &mut decoder,
        &[
            "[{\"id\":1},\n {\"id\":2}]",
            "[]",
            r#"[{"id":3},{"id":null}]"#,
            r#"[{"id":4},7]"#,
            r#"[{"id":5}"#,
            r#"{"id":6} {"id":7}"#,
            "\u{feff}{\"id\":8}",
            "",
            "17",
        ],
    );
    assert_eq!(outcome.rows, ["+I 1", "+I 2", "+I 8"]);
    let failed: Vec<usize> = outcome.undecodable.iter().map(|(at, _)| *at).collect();
    assert_eq!((outcome.ignored, failed), (1, vec![2, 3, 4, 5, 7, 8]));
}

#[test]
fn unknown_members_are_refused_or_left_out() {
    let message = r#"{"id":1,"x":null,"y":{"id":2}}"#;
    let open =
        |unknown| RowsDecoder::new(RowsKind::Json, with_unknown(unknown), table("id INT", &[])).unwrap();
    let refused = decode_values(&mut open(UnknownFields::Refuse), &[message]);
    assert_eq!(refused.undecodable, [(0, "member `x` is no column of d.t".to_owned())]);
    let ignored = decode_values(&mut open(UnknownFields::Ignore), &[message]);
    assert_eq!(ignored.rows, ["+I 1"]);
}

#[test]
fn unknown_members_become_columns() {
    let mut decoder =
        RowsDecoder::new(RowsKind::Json, with_unknown(UnknownFields::Evolve), table("id INT", &[])).unwrap();
    let outcome = decode_values(
        &mut decoder,
        &[
            r#"{"id":1}"#,
            r#"{"id":2,"n":null}"#,
            r#"{"id":3,"n":7,"big":9223372036854775808,"d":1.50,"b":true,"s":"x","o":{"a":1},"l":[1]}"#,
            r#"{"n":-8,"d":1e400,"b":false,"s":12.30,"o":[],"l":"[2]"}"#,
            r#"{"n":1.5}"#,
        ],
    );
    assert_eq!(
        outcome.rows,
        [
            "+I 1",
            "+I 2",
            r#"+I 3|7|9223372036854775808|1.50|true|x|{"a":1}|[1]"#,
            "+I NULL|-8|NULL|1e400|false|12.30|[]|[2]",
        ]
    );
    assert_eq!(outcome.undecodable, [(4, "column `n`: number is not whole".to_owned())]);
    assert_eq!(outcome.structures.len(), 1);
    let change = &outcome.structures[0];
    let SchemaChangeKind::AddColumns(added) = &change.kind else { panic!("{change:?}") };
    use LogicalType as L;
    let types: Vec<&L> = added.iter().map(|(column, _)| &column.ty).collect();
    assert_eq!(types, [&L::Int64, &L::Text, &L::Text, &L::Boolean, &L::Text, &L::Json, &L::Json]);
    assert!(added.iter().all(|(column, _)| column.nullable));
    assert_eq!(change.statement, "a message has new members: `n`, `big`, `d`, `b`, `s`, `o`, `l`");
    assert_eq!((change.before.as_ref().unwrap().columns.len(), change.after.columns.len()), (1, 8));
    assert_eq!(decoder.tables()[0].columns.len(), 8);
}

#[test]
fn a_structure_is_inferred_from_the_first_message() {
    let options = RowsOptions { primary_key: vec!["id".into()], ..with_unknown(UnknownFields::Evolve) };
    let mut decoder = RowsDecoder::inferring(options, None);
    let outcome = decode_pairs(
        &mut decoder,
        &[
            (Some("1"), None),
            (None, Some(r#"{"x":1}"#)),
            (None, Some(r#"[{"id":1,"v":1,"later":null},{"id":2,"v":"a"}]"#)),
            (Some("1"), None),
            (None, Some(r#"{"id":3,"later":1}"#)),
        ],
    );
    assert_eq!(outcome.rows, ["+I 1|1", "+I 2|a", "-D 1|NULL", "+I 3|NULL|1"]);
    assert_eq!(outcome.ignored, 1);
    let missing = "the first message of the table lacks the key column `id`";
    assert_eq!(outcome.undecodable, [(1, missing.to_owned())]);
    let created = &outcome.structures[0];
    assert_eq!(created.kind, SchemaChangeKind::CreateTable);
    assert_eq!((created.after.id.to_string().as_str(), created.before.is_none()), ("t", true));
    assert_eq!(created.after.primary_key, ["id"]);
    let columns: Vec<(&str, &LogicalType, bool)> =
        created.after.columns.iter().map(|c| (c.name.as_str(), &c.ty, c.nullable)).collect();
    assert_eq!(columns, [("id", &LogicalType::Int64, false), ("v", &LogicalType::Text, true)]);
}

#[test]
fn every_topic_is_a_table_of_its_own() {
    let mut decoder = RowsDecoder::inferring(RowsOptions::default(), None);
    let message = |topic, value: &'static str| Message {
        topic,
        key: None,
        value: Some(value.as_bytes()),
        timestamp_ms: Some(5),
    };
    let outcome = decode(
        &mut decoder,
        &[
            message("a", r#"{"id":1,"n":null}"#),
            message("b", r#"{"x":true}"#),
            message("a", r#"{"id":2,"n":"z"}"#),
            message("b", r#"{"id":1}"#),
        ],
    );
    assert_eq!(outcome.rows, ["+I 1|NULL", "+I 2|z", "+I true"]);
    assert_eq!(outcome.undecodable, [(3, "member `id` is no column of b".to_owned())]);
    assert_eq!(outcome.event_time_ms, Some(5));
    let one = RowsDecoder::inferring(RowsOptions::default(), Some(TableId::new("d", "all")));
    let mut one = one;
    decode(&mut one, &[message("a", r#"{"id":1}"#), message("b", r#"{"id":2}"#)]);
    assert_eq!(one.tables().len(), 1);
}

#[test]
fn csv_messages_hold_one_or_many_records() {
    let mut decoder = open(RowsKind::Csv, "id INT NOT NULL, name STRING", &["id"]);
    let outcome = decode_pairs(
        &mut decoder,
        &[
            (None, Some("1,a")),
            (None, Some("2,\"b\nb\"\r\n3,\"\"\n4,\n")),
            (None, Some("")),
            (None, Some("5,a\nx,b")),
            (None, Some("6")),
            (None, Some("7,\"a")),
            (Some("8"), None),
        ],
    );
    assert_eq!(outcome.rows, ["+I 1|a", "+I 2|b\nb", "+I 3|", "+I 4|NULL", "-D 8|NULL"]);
    assert_eq!(outcome.ignored, 1);
    let failed: Vec<usize> = outcome.undecodable.iter().map(|(at, _)| *at).collect();
    assert_eq!(failed, [3, 4, 5]);
}

#[test]
fn csv_messages_may_name_their_columns() {
    let options = RowsOptions { csv: CsvDialect::default(), ..RowsOptions::default() };
    let mut decoder = RowsDecoder::new(RowsKind::Csv, options, table("id INT, name STRING", &[])).unwrap();
    let outcome = decode_values(
        &mut decoder,
        &["id,name\n1,a\n", "name,id\nb,2\n", "name,id\nc,3", "id,other\n4,d", "name,id", "id,name\n5,e"],
    );
    assert_eq!(outcome.rows, ["+I 1|a", "+I 2|b", "+I 3|c", "+I 5|e"]);
    assert_eq!((outcome.undecodable.len(), outcome.undecodable[0].0, outcome.ignored), (1, 3, 1));
}

#[test]
fn raw_messages_are_bytes_or_text() {
    let open = |form, key| {
        let table = Arc::new(raw_table(TableId::bare("t"), form, key));
        RowsDecoder::new(RowsKind::Raw, RowsOptions::default(), table).unwrap()
    };
    let message = |key: Option<&'static [u8]>, value: Option<&'static [u8]>| Message {
        topic: "t",
        key,
        value,
        timestamp_ms: None,
    };
    let bytes = [message(None, Some(b"\x00\xff")), message(Some(b"k"), Some(b"")), message(Some(b"k"), None)];
    let outcome = decode(&mut open(RawForm::Bytes, RawKey::Absent), &bytes);
    assert_eq!((outcome.rows, outcome.ignored), (vec!["+I 00FF".to_owned(), "+I ".to_owned()], 1));
    let outcome = decode(&mut open(RawForm::Text, RawKey::Column), &bytes);
    assert_eq!((outcome.rows, outcome.ignored), (vec!["+I k|".to_owned()], 1));
    assert_eq!(outcome.undecodable, [(0, "column `value`: text is not UTF-8".to_owned())]);
    let outcome = decode(&mut open(RawForm::Bytes, RawKey::Primary), &bytes);
    assert_eq!(outcome.rows, ["+I 6B|", "-D 6B|NULL"]);
    let missing = "message has no key: NULL in a column that is NOT NULL";
    assert_eq!(outcome.undecodable, [(0, missing.to_owned())]);
    for columns in ["id INT", "value INT", "value STRING, other STRING"] {
        assert!(RowsDecoder::new(RowsKind::Raw, RowsOptions::default(), table(columns, &[])).is_err());
    }
}

#[test]
fn long_messages_are_refused() {
    let options = RowsOptions { max_message_bytes: 10, ..RowsOptions::default() };
    let mut decoder = RowsDecoder::new(RowsKind::Json, options, table("id INT", &[])).unwrap();
    let outcome = decode_values(&mut decoder, &[r#"{"id":12}"#, r#"{"id":1234}"#]);
    assert_eq!(outcome.rows, ["+I 12"]);
    assert_eq!(outcome.undecodable, [(1, "message is longer than 10 bytes".to_owned())]);
}

const CHANGES: &[(RowKind, &[&str])] = &[
    (RowKind::Insert, &["1", "a", "1.50"]),
    (RowKind::UpdateBefore, &["1", "a", "1.50"]),
    (RowKind::UpdateAfter, &["1", "b", "1.50"]),
    (RowKind::UpdateBefore, &["1", "b", "1.50"]),
    (RowKind::UpdateAfter, &["2", "b", "NULL"]),
    (RowKind::Delete, &["2", "b", "NULL"]),
];

#[test]
fn changes_are_written_as_new_rows_and_tombstones() {
    let schema = table("id INT NOT NULL, name STRING, amt DECIMAL(8,2)", &["id"]);
    let batch = batch(&schema, CHANGES);
    for (kind, expect) in [
        (
            RowsKind::Json,
            [
                (r#"{"id":1}"#, Some(r#"{"id":1,"name":"a","amt":"1.50"}"#)),
                (r#"{"id":1}"#, Some(r#"{"id":1,"name":"b","amt":"1.50"}"#)),
                (r#"{"id":1}"#, None),
                (r#"{"id":2}"#, Some(r#"{"id":2,"name":"b","amt":null}"#)),
                (r#"{"id":2}"#, None),
            ],
        ),
        (
            RowsKind::Csv,
            [("1", Some("1,a,1.50")), ("1", Some("1,b,1.50")), ("1", None), ("2", Some("2,b,")), ("2", None)],
        ),
    ] {
        let written = encode(&mut RowsEncoder::new(kind, RowsOptions::default()), &batch);
        let owned = |text: &str| Some(text.to_owned());
        let expect: Vec<_> = expect.iter().map(|(k, v)| (owned(k), v.and_then(owned))).collect();
        assert_eq!(written, expect);
        let pairs: Vec<_> = written.iter().map(|(k, v)| (k.as_deref(), v.as_deref())).collect();
        let mut decoder = RowsDecoder::new(kind, RowsOptions::default(), schema.clone()).unwrap();
        let read = decode_pairs(&mut decoder, &pairs);
        assert_eq!(
            read.rows,
            ["+I 1|a|1.50", "+I 1|b|1.50", "-D 1|NULL|NULL", "+I 2|b|NULL", "-D 2|NULL|NULL"]
        );
    }
}

#[test]
fn messages_name_the_row_they_begin_with_and_skip_others() {
    let schema = table("id INT NOT NULL, name STRING, amt DECIMAL(8,2)", &["id"]);
    let mut encoder = RowsEncoder::new(RowsKind::Json, RowsOptions::default());
    let mut messages = Messages::default();
    encoder.encode(&batch(&schema, CHANGES), &[0, 1], &mut messages).unwrap();
    let rows: Vec<usize> = messages.iter().map(|m| m.row).collect();
    assert_eq!(rows, [3, 3, 5]);
    assert!(messages.iter().all(|m| m.lane == m.key && m.key.is_some()));
}

#[test]
fn what_a_plain_row_cannot_say_is_refused() {
    let keyless = table("id INT, name STRING", &[]);
    let keyed = table("id INT NOT NULL, name STRING", &["id"]);
    let changes: &[(RowKind, &[&str])] = &[
        (RowKind::Insert, &["1", "a"]),
        (RowKind::UpdateBefore, &["1", "a"]),
        (RowKind::UpdateAfter, &["1", "~"]),
        (RowKind::Delete, &["1", "a"]),
        (RowKind::Delete, &["NULL", "a"]),
    ];
    for (schema, fine) in [(&keyless, [true, false, false, false]), (&keyed, [true, false, true, false])] {
        let batch = batch(schema, changes);
        let mut encoder = RowsEncoder::new(RowsKind::Json, RowsOptions::default());
        for (row, fine) in [0, 1, 3, 4].into_iter().zip(fine) {
            let refusal = encoder.refusal(&batch, row);
            assert_eq!(refusal.is_none(), fine, "row {row} of {:?}: {refusal:?}", schema.primary_key);
        }
    }
}

#[test]
fn raw_rows_are_written_as_they_are() {
    for (key, expect) in [
        (RawKey::Column, vec![(Some("k"), Some("v")), (None, Some(""))]),
        (RawKey::Primary, vec![(Some("k"), Some("v")), (Some("k"), None)]),
    ] {
        let schema = Arc::new(raw_table(TableId::bare("t"), RawForm::Text, key));
        let rows: &[(RowKind, &[&str])] = match key {
            RawKey::Primary => &[(RowKind::Insert, &["k", "v"]), (RowKind::Delete, &["k", "v"])],
            _ => &[(RowKind::Insert, &["k", "v"]), (RowKind::Insert, &["NULL", ""])],
        };
        let written =
            encode(&mut RowsEncoder::new(RowsKind::Raw, RowsOptions::default()), &batch(&schema, rows));
        let written: Vec<_> = written.iter().map(|(k, v)| (k.as_deref(), v.as_deref())).collect();
        assert_eq!(written, expect);
    }
    let schema = Arc::new(raw_table(TableId::bare("t"), RawForm::Text, RawKey::Absent));
    let mut encoder = RowsEncoder::new(RowsKind::Raw, RowsOptions::default());
    let refusal = encoder.refusal(&batch(&schema, &[(RowKind::Insert, &["NULL"])]), 0);
    assert!(refusal.is_some_and(|why| why.contains("is a delete")));
    let other = table("id INT, value STRING", &[]);
    let refusal = encoder.refusal(&batch(&other, &[(RowKind::Insert, &["1", "v"])]), 0);
    assert!(refusal.is_some_and(|why| why.contains("`id`")));
}

fn seeds() -> impl Strategy<Value = Vec<Vec<every_type::Seed>>> {
    let row = proptest::collection::vec(
        (any::<u8>(), any::<u64>(), any::<u64>(), any::<String>()),
        every_type::types().len(),
    );
    proptest::collection::vec(row, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn rows_read_back_as_they_were(seeds in seeds()) {
        let batch = every_type::batch(&seeds);
        for kind in [RowsKind::Json, RowsKind::Csv] {
            let written = encode(&mut RowsEncoder::new(kind, RowsOptions::default()), &batch);
            let pairs: Vec<_> = written.iter().map(|(k, v)| (k.as_deref(), v.as_deref())).collect();
            let mut decoder =
                RowsDecoder::new(kind, RowsOptions::default(), batch.schema().clone()).unwrap();
            let read = decode_pairs(&mut decoder, &pairs);
            prop_assert_eq!(read.undecodable, Vec::new());
            prop_assert_eq!(read.rows, show(&batch));
        }
    }

    #[test]
    fn keys_of_several_columns_read_back(id in any::<i64>(), name in any::<String>()) {
        let schema = table("id BIGINT NOT NULL, v INT, name STRING NOT NULL", &["name", "id"]);
        let mut builder = BatchBuilder::new(schema.clone(), 1);
        builder.column(0).append_i64(id).unwrap();
        builder.column(1).append_null();
        builder.column(2).append_text(name.as_bytes()).unwrap();
        builder.end_row(RowKind::Delete, 0);
        let batch = builder.finish().unwrap();
        for kind in [RowsKind::Json, RowsKind::Csv] {
            let written = encode(&mut RowsEncoder::new(kind, RowsOptions::default()), &batch);
            let mut decoder = RowsDecoder::new(kind, RowsOptions::default(), schema.clone()).unwrap();
            let read = decode_pairs(&mut decoder, &[(written[0].0.as_deref(), None)]);
            prop_assert_eq!(read.undecodable, Vec::new());
            prop_assert_eq!(read.rows, show(&batch));
        }
    }

    #[test]
    fn any_bytes_are_rows_or_a_reason(
        key in proptest::option::of(any::<Vec<u8>>()),
        value in proptest::option::of("[\\[\\]{}\",:a1\\\\n -]{0,40}"),
        junk in any::<Vec<u8>>(),
    ) {
        for kind in [RowsKind::Json, RowsKind::Csv] {
            let options = with_unknown(UnknownFields::Evolve);
            let mut decoder = RowsDecoder::new(kind, options, table("a INT NOT NULL, b JSON", &["a"])).unwrap();
            for value in [value.as_deref().map(str::as_bytes), Some(&junk)] {
                let message = Message { topic: "t", key: key.as_deref(), value, timestamp_ms: None };
                let before = decoder.rows();
                if let Ok(Step::Taken) = decoder.decode(&message) {
                    prop_assert!(decoder.rows() > before);
                }
            }
            decoder.take().unwrap();
        }
    }
}
