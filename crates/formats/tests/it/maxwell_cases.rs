//! Owns the cases of maxwell-json: whole messages, sequences of changes, structure.

use std::sync::Arc;

use canalis_batch::{BatchBuilder, ChangeBatch};
use canalis_formats::{
    json::UnknownMembers,
    maxwell::{
        CommitInfo, KeyFormat, MaxwellDecoder, MaxwellDecoderOptions, MaxwellEncoder, MaxwellEncoderOptions,
        Srid,
    },
    message::{Message, MessageDecoder, MessageEncoder, Messages, Step},
    parse_columns,
};
use canalis_types::{
    Column, ColumnPlace, LogicalType as L, NativeType, RowKind, SchemaChangeKind, TableId, TableSchema,
};
use proptest::prelude::*;

use crate::{
    every_type,
    message_support::{decode_values, encode, show, state},
};

fn table(columns: &str, key: &[&str]) -> Arc<TableSchema> {
    let key = key.iter().map(|k| (*k).to_owned()).collect();
    Arc::new(TableSchema::new(TableId::new("shop", "t"), parse_columns(columns).unwrap(), key))
}

fn t() -> Arc<TableSchema> {
    table("id INT NOT NULL, name VARCHAR(20), amt DECIMAL(8,2)", &["id"])
}

fn open(tables: &[&Arc<TableSchema>]) -> MaxwellDecoder {
    let tables = tables.iter().map(|t| (*t).clone()).collect();
    MaxwellDecoder::new(MaxwellDecoderOptions::default(), tables)
}

fn options() -> MaxwellEncoderOptions {
    MaxwellEncoderOptions { clock: || 1_710_469_230_999, first_xid: 9, ..MaxwellEncoderOptions::default() }
}

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

/// The sequence of the specification.
const SEQUENCE: [&str; 4] = [
    r#"{"database":"shop","table":"t","type":"insert","ts":1710469230,"xid":9,"data":{"id":1,"name":"a","amt":1.00}}"#,
    r#"{"database":"shop","table":"t","type":"update","ts":1710469230,"xid":9,"data":{"id":1,"name":"b","amt":1.00},"old":{"name":"a"}}"#,
    r#"{"database":"shop","table":"t","type":"update","ts":1710469230,"xid":9,"data":{"id":2,"name":"b","amt":1.00},"old":{"id":1}}"#,
    r#"{"database":"shop","table":"t","type":"delete","ts":1710469230,"xid":9,"commit":true,"data":{"id":2,"name":"b","amt":1.00}}"#,
];

const SEQUENCE_ROWS: [&str; 6] =
    ["+I 1|a|1.00", "-U 1|a|1.00", "+U 1|b|1.00", "-U 1|b|1.00", "+U 2|b|1.00", "-D 2|b|1.00"];

fn sequence() -> ChangeBatch {
    batch(
        &t(),
        &[
            (RowKind::Insert, &["1", "a", "1.00"]),
            (RowKind::UpdateBefore, &["1", "a", "1.00"]),
            (RowKind::UpdateAfter, &["1", "b", "1.00"]),
            (RowKind::UpdateBefore, &["1", "b", "1.00"]),
            (RowKind::UpdateAfter, &["2", "b", "1.00"]),
            (RowKind::Delete, &["2", "b", "1.00"]),
        ],
    )
}

#[test]
fn the_worked_sequence_is_written_bit_by_bit() {
    let written = encode(&mut MaxwellEncoder::new(options()), &sequence());
    let values: Vec<&str> = written.iter().map(|(_, v)| v.as_deref().unwrap()).collect();
    assert_eq!(values, SEQUENCE);
    let keys: Vec<&str> = written.iter().map(|(k, _)| k.as_deref().unwrap()).collect();
    let key = |id: u8| format!(r#"{{"database":"shop","table":"t","pk.id":{id}}}"#);
    assert_eq!(keys, [key(1), key(1), key(2), key(2)]);
    let array = MaxwellEncoderOptions { key_format: KeyFormat::Array, ..options() };
    let written = encode(&mut MaxwellEncoder::new(array), &sequence());
    assert_eq!(written[2].0.as_deref(), Some(r#"["shop","t",[{"id":2}]]"#));
}

#[test]
fn the_worked_sequence_is_read() {
    let outcome = decode_values(&mut open(&[&t()]), &SEQUENCE);
    assert_eq!(outcome.rows, SEQUENCE_ROWS);
    assert_eq!(outcome.event_time_ms, Some(1_710_469_230_000));
    assert!(state(&outcome.rows).is_empty());
}

#[test]
fn a_prefix_that_is_replayed_leads_to_the_same_rows() {
    for end in 0..=SEQUENCE.len() {
        let (prefix, rest) = SEQUENCE.split_at(end);
        let rows = |messages: &[&str]| state(&decode_values(&mut open(&[&t()]), messages).rows);
        assert_eq!(rows(&[prefix, prefix].concat()), rows(prefix), "{end} messages twice");
        assert!(rows(&[prefix, prefix, rest].concat()).is_empty(), "{end} messages twice, then the others");
    }
}

/// The table of the specification and its row.
fn orders() -> Arc<TableSchema> {
    table(
        "id BIGINT UNSIGNED NOT NULL, amount DECIMAL(10,2), qty INT UNSIGNED, flag BIT(1), bits BIT(10), \
         st ENUM('new','paid','done'), tags SET('a','b','c'), d DATE, t6 TIME(6), dt TIMESTAMP(0), dt6 TIMESTAMP(6), \
         ts TIMESTAMP_LTZ(0), y YEAR, doc JSON, bin VARBINARY(8), txt STRING, g GEOMETRY, ok TINYINT, f FLOAT, db DOUBLE",
        &["id"],
    )
}

const ORDER: &str = r#"{"database":"shop","table":"t","type":"insert","ts":1710469230,"xid":8042,"commit":true,"data":{"id":18446744073709551615,"amount":123.45,"qty":4294967295,"flag":1,"bits":513,"st":"paid","tags":["a","c"],"d":"2024-03-15","t6":"10:20:30.123456","dt":"2024-03-15 10:20:30","dt6":"2024-03-15 10:20:30.123456","ts":"2024-03-15 02:20:30","y":2024,"doc":{"k":1},"bin":"AAH+/w==","txt":"héllo","g":"POINT (1 2)","ok":1,"f":0.1,"db":1.0E10}}"#;

#[test]
fn the_reference_row_reads_and_writes() {
    let mut decoder = open(&[&orders()]);
    let message = Message { topic: "m", key: None, value: Some(ORDER.as_bytes()), timestamp_ms: None };
    assert!(matches!(decoder.decode(&message), Ok(Step::Taken)));
    let read = decoder.take().unwrap().remove(0);
    assert_eq!(
        show(&read),
        [
            "+I 18446744073709551615|123.45|4294967295|1|513|paid|a,c|2024-03-15|10:20:30.123456|2024-03-15 10:20:30|\
          2024-03-15 10:20:30.123456|2024-03-15 02:20:30|2024|{\"k\":1}|0001FEFF|héllo|\
          000000000101000000000000000000F03F0000000000000040|1|0.1|10000000000.0"
        ]
    );
    let written =
        encode(&mut MaxwellEncoder::new(MaxwellEncoderOptions { first_xid: 8042, ..options() }), &read);
    assert_eq!(written[0].1.as_deref(), Some(ORDER));
}

#[test]
fn kf_04_a_poison_message_leaves_the_others_alone() {
    let message =
        |id: &str| format!(r#"{{"database":"shop","table":"t","type":"insert","data":{{"id":{id}}}}}"#);
    let broken = &message("2")[..40];
    let outcome =
        decode_values(&mut open(&[&t()]), &[&message("1"), broken, &message("\"abc\""), &message("3")]);
    assert_eq!(outcome.rows, ["+I 1|NULL|NULL", "+I 3|NULL|NULL"]);
    let failed: Vec<usize> = outcome.undecodable.iter().map(|(at, _)| *at).collect();
    assert_eq!(failed, [1, 2]);
    assert_eq!(outcome.undecodable[1].1, "column `id`: text is not a whole number of 64 bits");
}

#[test]
fn messages_are_read_tolerantly() {
    let outcome = decode_values(
        &mut open(&[&t()]),
        &[
            r#"{"data":{"amt":"2.5","x":0,"id":1,"id":"7"},"type":"INSERT","table":"t","database":"shop"}"#,
            r#"{"database":"shop","table":"t","type":"bootstrap-insert","ts":1,"unknown":{"a":[1]},"data":{"id":2}}"#,
            r#"{"database":"shop","table":"t","type":"update","data":{"id":2,"name":"n"}}"#,
            r#"{"database":"shop","table":"t","type":"update","data":{"id":2},"old":{"name":null,"amt":1}}"#,
            r#"{"database":"shop","table":"t","type":"bootstrap-start","ts":1,"data":{}}"#,
            r#"{"database":"shop","table":"t","type":"bootstrap-complete","ts":1,"data":{}}"#,
            r#"{"database":"shop","type":"database-create","charset":"utf8mb4"}"#,
            r#"{"type":"later"}"#,
        ],
    );
    assert_eq!(outcome.undecodable, [(0, "member `x` is no column".to_owned())]);
    assert_eq!(
        outcome.rows,
        ["+I 2|NULL|NULL", "-U 2|n|NULL", "+U 2|n|NULL", "-U 2|NULL|1.00", "+U 2|NULL|NULL"]
    );
    assert_eq!(outcome.ignored, 4);
    let lenient =
        MaxwellDecoderOptions { unknown: UnknownMembers::Ignore, ..MaxwellDecoderOptions::default() };
    let outcome = decode_values(
        &mut MaxwellDecoder::new(lenient, vec![t()]),
        &[r#"{"data":{"amt":"2.5","x":0,"id":1,"id":"7"},"type":"INSERT","table":"t","database":"shop"}"#],
    );
    assert_eq!(outcome.rows, ["+I 7|NULL|2.50"]);
}

#[test]
fn wrong_messages_say_why() {
    for (message, expect) in [
        ("[]", "message is not a JSON object"),
        (r#"{"data":{"id":1},"table":"t"}"#, "`type` is missing"),
        (r#"{"database":"shop","type":"insert","data":{"id":1}}"#, "message does not name its table"),
        (r#"{"database":"shop","table":"t","type":"insert"}"#, "`data` is missing"),
        (
            r#"{"database":"shop","table":"t","type":"insert","encrypted":{"iv":"","bytes":""}}"#,
            "`data` is encrypted",
        ),
        (r#"{"database":"shop","table":"t","type":"insert","data":[]}"#, "`data` is not an object"),
        (
            r#"{"database":"shop","table":"t","type":"delete","data":{"name":"a"}}"#,
            "key column `id` is missing",
        ),
        (
            r#"{"database":"shop","table":"t","type":"insert","data":{"name":"a"}}"#,
            "column `id`: NULL in a column that is NOT NULL",
        ),
        (
            r#"{"database":"shop","table":"u","type":"insert","data":{"id":1}}"#,
            "the structure of shop.u is not known, and maxwell-json does not tell types; declare its columns, or read the topic \
             of its DDL messages first",
        ),
    ] {
        let outcome = decode_values(&mut open(&[&t()]), &[message]);
        assert_eq!(outcome.undecodable, [(0, expect.to_owned())], "{message}");
    }
}

const CREATE: &str = r#"{"type":"table-create","database":"shop","table":"n","def":{"database":"shop","charset":"utf8mb4","table":"n","columns":[{"type":"bigint","name":"id","signed":false},{"type":"varchar","name":"n","charset":"utf8mb4"},{"type":"datetime","name":"dt6","column-length":6},{"type":"enum","name":"st","enum-values":["new","it's","done"]},{"type":"decimal","name":"amt"},{"type":"varbinary","name":"b"},{"type":"timestamp","name":"at","column-length":0}],"primary-key":["id"]},"ts":1710469231000,"sql":"CREATE TABLE n (…)"}"#;

#[test]
fn messages_of_new_tables_give_their_structure() {
    let mut decoder = open(&[]);
    let row = r#"{"database":"shop","table":"n","type":"insert","ts":1,"data":{"id":18446744073709551615,"n":"x","dt6":"2024-03-15 10:20:30.000001","st":"it's","amt":1.50,"b":"AA==","at":"2024-03-15 10:20:30"}}"#;
    let alter = CREATE.replace("table-create", "table-alter").replace(
        r#"{"type":"varbinary","name":"b"}"#,
        r#"{"type":"int","name":"q","signed":true},{"type":"varbinary","name":"b"}"#,
    );
    let retype = alter.replace(r#""type":"int""#, r#""type":"bigint""#);
    let drop = r#"{"type":"table-drop","database":"shop","table":"n","ts":1,"sql":"DROP TABLE n"}"#;
    let outcome = decode_values(
        &mut decoder,
        &[
            CREATE,
            row,
            &alter,
            &alter,
            r#"{"database":"shop","table":"n","type":"delete","data":{"id":1,"q":5}}"#,
            &retype,
            drop,
        ],
    );
    assert_eq!(outcome.undecodable, []);
    assert_eq!(
        outcome.rows,
        [
            "+I 18446744073709551615|x|2024-03-15 10:20:30.000001|it's|1.500000000000000000000000000000|00|2024-03-15 10:20:30",
            "-D 1|NULL|NULL|NULL|NULL|5|NULL|NULL",
        ]
    );
    let kinds: Vec<&SchemaChangeKind> = outcome.structures.iter().map(|s| &s.kind).collect();
    let native = NativeType {
        dialect: "mysql".into(),
        sql: "int".into(),
        charset: None,
        collation: None,
        auto_increment: false,
        generated: None,
    };
    let q = Column { native: Some(native), ..Column::new("q", L::Int32, true) };
    assert_eq!(
        kinds,
        [
            &SchemaChangeKind::CreateTable,
            &SchemaChangeKind::AddColumns(vec![(q, ColumnPlace::After("amt".into()))]),
            &SchemaChangeKind::Other("alter.column.type".into()),
            &SchemaChangeKind::Other("drop.table".into()),
        ]
    );
    assert!(outcome.structures.iter().all(|s| s.alone));
    let created = &outcome.structures[0];
    assert_eq!((created.statement.as_str(), created.before.is_none()), ("CREATE TABLE n (…)", true));
    assert_eq!(created.after.primary_key, ["id"]);
    let labels = vec!["new".to_owned(), "it's".to_owned(), "done".to_owned()];
    let types: Vec<&L> = created.after.columns.iter().map(|c| &c.ty).collect();
    assert_eq!(
        types,
        [
            &L::UInt64,
            &L::Text,
            &L::Timestamp { precision: 6 },
            &L::Enum { labels },
            &L::Decimal { precision: 65, scale: 30 },
            &L::Bytes,
            &L::TimestampTz { precision: 0 },
        ]
    );
    let native: Vec<Option<&str>> =
        created.after.columns.iter().map(|c| c.native.as_ref().map(|n| n.sql.as_str())).collect();
    let expect = [
        Some("bigint unsigned"),
        None,
        Some("datetime(6)"),
        Some("enum('new','it''s','done')"),
        None,
        None,
        Some("timestamp"),
    ];
    assert_eq!(native, expect);
}

#[test]
fn declared_types_stay_when_a_definition_tells_less() {
    let declared = table("id BIGINT UNSIGNED NOT NULL, n VARCHAR(20), amt DECIMAL(8,2)", &["id"]);
    let alter = r#"{"type":"table-alter","database":"shop","table":"t","old":{},"def":{"columns":[{"type":"bigint","name":"id","signed":false},{"type":"varchar","name":"n"},{"type":"decimal","name":"amt"},{"type":"json","name":"j"}],"primary-key":["id"]},"ts":1}"#;
    let outcome = decode_values(&mut open(&[&declared]), &[alter]);
    let after = &outcome.structures[0].after;
    assert_eq!(after.columns[..3], declared.columns[..]);
    assert_eq!((after.columns.len(), after.version), (4, 1));
}

#[test]
fn options_change_what_is_written() {
    let schema = table("Id INT NOT NULL, b INT NOT NULL, v STRING", &["Id", "b"]);
    let rows = batch(
        &schema,
        &[
            (RowKind::UpdateBefore, &["1", "2", "NULL"]),
            (RowKind::UpdateAfter, &["1", "2", "x\u{1f}"]),
            (RowKind::UpdateBefore, &["1", "2", "x"]),
            (RowKind::UpdateAfter, &["1", "2", "NULL"]),
            (RowKind::UpdateBefore, &["1", "2", "x"]),
            (RowKind::UpdateAfter, &["1", "2", "x"]),
        ],
    );
    let chosen = MaxwellEncoderOptions {
        commit_info: CommitInfo::Absent,
        output_nulls: false,
        output_primary_keys: true,
        ..options()
    };
    let head = r#"{"database":"shop","table":"t","type":"update","ts":1710469230,"primary_key":[1,2],"primary_key_columns":["Id","b"],"data":"#;
    let written = encode(&mut MaxwellEncoder::new(chosen), &rows);
    let values: Vec<&str> = written.iter().map(|(_, v)| v.as_deref().unwrap()).collect();
    assert_eq!(
        values,
        [
            format!(r#"{head}{{"Id":1,"b":2,"v":"x\u001F"}},"old":{{"v":null}}}}"#),
            format!(r#"{head}{{"Id":1,"b":2}},"old":{{"v":"x"}}}}"#),
            format!(r#"{head}{{"Id":1,"b":2,"v":"x"}}}}"#),
        ]
    );
    assert_eq!(written[0].0.as_deref(), Some(r#"{"database":"shop","table":"t","pk.id":1,"pk.b":2}"#));
    let array = MaxwellEncoderOptions { key_format: KeyFormat::Array, ..chosen };
    let written = encode(&mut MaxwellEncoder::new(array), &rows);
    assert_eq!(written[0].0.as_deref(), Some(r#"["shop","t",[{"Id":1},{"b":2}]]"#));
}

#[test]
fn every_batch_has_its_own_number_and_end() {
    let schema = t();
    let insert =
        |id| batch(&schema, &[(RowKind::Insert, &[id, "a", "NULL"]), (RowKind::Insert, &["9", "a", "NULL"])]);
    let mut encoder = MaxwellEncoder::new(options());
    let mut messages = Messages::default();
    encoder.encode(&insert("1"), &[1], &mut messages).unwrap();
    encoder.encode(&insert("2"), &[0, 1], &mut messages).unwrap();
    encoder.encode(&insert("3").with_event_time(Some(5_999)), &[], &mut messages).unwrap();
    let text = |m: &[u8]| String::from_utf8(m.to_vec()).unwrap();
    let heads: Vec<String> = messages
        .iter()
        .map(|m| {
            text(m.value.unwrap())
                .split("\"data\"")
                .next()
                .unwrap()
                .split_once("\"ts\"")
                .unwrap()
                .1
                .to_owned()
        })
        .collect();
    assert_eq!(
        heads,
        [":1710469230,\"xid\":9,\"commit\":true,", ":5,\"xid\":10,", ":5,\"xid\":10,\"commit\":true,"]
    );
}

#[test]
fn unknown_values_are_refused() {
    let rows = batch(
        &t(),
        &[(RowKind::UpdateBefore, &["1", "NULL", "1.00"]), (RowKind::UpdateAfter, &["1", "~", "2.00"])],
    );
    let refusal = MaxwellEncoder::new(options()).refusal(&rows, 0);
    assert!(refusal.is_some_and(|why| why.starts_with("column `name`: it was left unchanged")));
}

fn seeds() -> impl Strategy<Value = Vec<Vec<every_type::Seed>>> {
    let row = proptest::collection::vec(
        (any::<u8>(), any::<u64>(), any::<u64>(), any::<String>()),
        every_type::types().len(),
    );
    proptest::collection::vec(row, 1..4)
}

/// Rows without the values that the format has no form for, JSON without blanks, ENUM's error value as NULL.
fn writable(batch: &ChangeBatch) -> Option<ChangeBatch> {
    let schema = batch.schema();
    let mut builder = BatchBuilder::new(schema.clone(), batch.num_rows());
    for row in 0..batch.num_rows() {
        for (index, column) in schema.columns.iter().enumerate() {
            let array = batch.rows().column(index);
            let text = canalis_batch::cell_to_text(array, &column.ty, row);
            let bytes = |text: String| hex(&text);
            match (&column.ty, text) {
                (_, None) => builder.column(index).append_null(),
                (L::Geometry, _) => builder.column(index).append_null(),
                (L::Float32 | L::Float64, Some(text)) if text.contains(['N', 'n']) => {
                    builder.column(index).append_null()
                }
                (L::Enum { .. }, Some(text)) if text.is_empty() => builder.column(index).append_null(),
                (L::Json, Some(text)) => match serde_json::from_str::<serde_json::Value>(&text) {
                    Ok(serde_json::Value::Null) => builder.column(index).append_null(),
                    Ok(value) => builder.column(index).append_text(value.to_string().as_bytes()).unwrap(),
                    Err(_) => builder.column(index).append_text(b"[1e400]").unwrap(),
                },
                (ty, Some(text)) if ty.is_binary() => {
                    builder.column(index).append_text(&bytes(text)).unwrap()
                }
                // The builder takes dates of four digits only.
                (L::Date | L::Timestamp { .. } | L::TimestampTz { .. }, Some(text)) => {
                    if builder.column(index).append_text(text.as_bytes()).is_err() {
                        builder.column(index).append_null();
                    }
                }
                (_, Some(text)) => builder.column(index).append_text(text.as_bytes()).unwrap(),
            }
        }
        builder.end_row(RowKind::Insert, 0);
    }
    builder.finish().ok()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn rows_read_back_as_they_were(seeds in seeds(), nulls in any::<bool>()) {
        let batch = writable(&every_type::batch(&seeds)).unwrap();
        let chosen = MaxwellEncoderOptions { output_nulls: nulls, srid: Srid::Drop, ..options() };
        let written = encode(&mut MaxwellEncoder::new(chosen), &batch);
        let values: Vec<&str> = written.iter().map(|(_, v)| v.as_deref().unwrap()).collect();
        let mut decoder = MaxwellDecoder::new(MaxwellDecoderOptions::default(), vec![batch.schema().clone()]);
        let read = decode_values(&mut decoder, &values);
        prop_assert_eq!(read.undecodable, Vec::new());
        prop_assert_eq!(read.rows, show(&batch));
    }

    #[test]
    fn any_bytes_are_rows_or_a_reason(value in "[\\[\\]{}\",:a1\\\\n -]{0,60}", data in "[\\[\\]{}\",:a1\\\\n -]{0,40}") {
        let mut decoder = open(&[&t()]);
        let inside = format!(r#"{{"database":"shop","table":"t","type":"update","data":{{"id":1,{data}}},"old":{{{data}}}}}"#);
        let definition = format!(r#"{{"database":"shop","table":"t","type":"table-alter","def":{{"columns":[{data}]}}}}"#);
        for value in [&value, &inside, &definition] {
            let message = Message { topic: "t", key: None, value: Some(value.as_bytes()), timestamp_ms: None };
            let before = decoder.rows();
            if let Ok(Step::Taken) = decoder.decode(&message) {
                prop_assert!(decoder.rows() > before);
            }
        }
        decoder.take().unwrap();
    }
}
