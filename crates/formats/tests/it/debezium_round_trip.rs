//! Owns the property of debezium-json: what is written reads back as the same rows, for all types in all modes.

use std::sync::Arc;

use canalis_formats::{
    debezium::{
        BigintUnsignedMode, BinaryMode, DebeziumDecoderOptions, DebeziumEncoderOptions, DecimalMode, TimeMode,
    },
    message::MessageEncoder,
};
use canalis_types::{LogicalType as L, RowKind, TableSchema};
use proptest::prelude::*;

use crate::debezium_support::{Reader, batch, column, encode, encoder, table, texts};

/// Every type, with texts of values of it.
fn types() -> Vec<(L, BoxedStrategy<String>)> {
    let labels = || vec!["new".to_owned(), "p,d".to_owned(), "ä".to_owned()];
    let set = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let number = |range: std::ops::RangeInclusive<i128>| range.prop_map(|n| n.to_string()).boxed();
    let bytes = |most: usize| {
        "[0-9A-F]{0,40}".prop_map(move |h| h[..h.len().min(most * 2) / 2 * 2].to_owned()).boxed()
    };
    let text = || {
        "[ -~äö漢😀\"\\\\\n\u{1}]{0,20}".prop_filter("stands for itself", |t| t != "NULL" && t != "~").boxed()
    };
    let clock = |precision: usize, most: u32| {
        (0..most, 0..60_u32, 0..60_u32, 0..1_000_000_u32).prop_map(move |(h, m, s, f)| {
            let fraction = format!("{f:06}")[..precision].to_owned();
            let point = if precision > 0 { "." } else { "" };
            format!("{h:02}:{m:02}:{s:02}{point}{fraction}")
        })
    };
    let date =
        || (1..=9999_u32, 1..=12_u32, 1..=28_u32).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
    let datetime = |precision| (date(), clock(precision, 24)).prop_map(|(d, c)| format!("{d} {c}")).boxed();
    let duration = |precision| {
        (any::<bool>(), clock(precision, 838))
            .prop_map(|(n, c)| format!("{}{c}", if n { "-" } else { "" }))
            .boxed()
    };
    let decimal = |whole: usize, scale: usize| {
        proptest::string::string_regex(&format!("-?[1-9][0-9]{{0,{}}}\\.[0-9]{{{scale}}}", whole - 1))
            .unwrap()
            .boxed()
    };
    let mut types = vec![
        (L::Boolean, any::<bool>().prop_map(|b| b.to_string()).boxed()),
        (L::Int8, number(-128..=127)),
        (L::Int16, number(-32768..=32767)),
        (L::Int32, number(i128::from(i32::MIN)..=i128::from(i32::MAX))),
        (L::Int64, number(i128::from(i64::MIN)..=i128::from(i64::MAX))),
        (L::UInt8, number(0..=255)),
        (L::UInt16, number(0..=65535)),
        (L::UInt32, number(0..=i128::from(u32::MAX))),
        (L::UInt64, number(0..=i128::from(u64::MAX))),
        (L::Float32, any::<f32>().prop_map(|f| format!("{f:e}")).boxed()),
        (L::Float64, any::<f64>().prop_map(|f| format!("{f:e}")).boxed()),
        (L::Decimal { precision: 15, scale: 4 }, decimal(11, 4)),
        (L::Date, date().boxed()),
        (L::Year, number(1901..=2155)),
        (L::Char { length: 20 }, text()),
        (L::Varchar { length: 20 }, text()),
        (L::Text, text()),
        (L::Binary { length: 4 }, "[0-9A-F]{8}".boxed()),
        (L::Varbinary { length: 9 }, bytes(9)),
        (L::Bytes, bytes(20)),
        (L::Bit { length: 1 }, number(0..=1)),
        (L::Bit { length: 13 }, number(0..=8191)),
        (L::Bit { length: 64 }, number(0..=i128::from(u64::MAX))),
        (L::Json, text().prop_map(|t| serde_json::json!({ "k": [t, 1.5, null] }).to_string()).boxed()),
        (L::Enum { labels: labels() }, prop::sample::select(labels()).boxed()),
        (L::Set { labels: set() }, prop::sample::subsequence(set(), 0..=3).prop_map(|s| s.join(",")).boxed()),
        (L::Geometry, "(00000000|E6100000)[0-9A-F]{2}".boxed()),
        (L::Uuid, "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".boxed()),
    ];
    for precision in [0, 3, 6] {
        let digits = usize::from(precision);
        types.push((L::Time { precision }, duration(digits)));
        types.push((L::Timestamp { precision }, datetime(digits)));
        types.push((L::TimestampTz { precision }, datetime(digits)));
    }
    types
}

fn wide_decimals() -> Vec<(L, BoxedStrategy<String>)> {
    vec![
        (L::Decimal { precision: 38, scale: 10 }, "-?[1-9][0-9]{0,27}\\.[0-9]{10}".boxed()),
        (L::Decimal { precision: 76, scale: 30 }, "-?[1-9][0-9]{0,45}\\.[0-9]{30}".boxed()),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    writing: DebeziumEncoderOptions,
    reading: DebeziumDecoderOptions,
    schema: Arc<TableSchema>,
    rows: Vec<(RowKind, Vec<String>)>,
}

fn modes() -> impl Strategy<Value = (DebeziumEncoderOptions, DebeziumDecoderOptions)> {
    use TimeMode::*;
    (
        any::<bool>(),
        prop::sample::select(vec![DecimalMode::Precise, DecimalMode::String, DecimalMode::Double]),
        prop::sample::select(vec![BigintUnsignedMode::Long, BigintUnsignedMode::Precise]),
        prop::sample::select(vec![
            BinaryMode::Bytes,
            BinaryMode::Base64,
            BinaryMode::Base64UrlSafe,
            BinaryMode::Hex,
        ]),
        prop::sample::select(vec![Adaptive, AdaptiveMicros, Connect, IsoString, Micros, Nanos]),
    )
        .prop_map(|(schema, decimal_mode, bigint_unsigned, binary_mode, time_mode)| {
            let writing = DebeziumEncoderOptions {
                schema,
                decimal_mode,
                bigint_unsigned,
                binary_mode,
                time_mode,
                ..DebeziumEncoderOptions::default()
            };
            let reading = DebeziumDecoderOptions {
                decimal_mode,
                bigint_unsigned,
                binary_mode,
                time_mode,
                ..DebeziumDecoderOptions::default()
            };
            (writing, reading)
        })
}

fn case() -> impl Strategy<Value = Case> {
    modes().prop_flat_map(|(writing, reading)| {
        let mut types = types();
        // A double has fewer digits than these.
        if writing.decimal_mode != DecimalMode::Double {
            types.extend(wide_decimals());
        }
        let mut columns = vec![column("id", L::Int32, false)];
        for (index, (ty, _)) in types.iter().enumerate() {
            columns.push(column(&format!("c{index}"), ty.clone(), true));
        }
        let schema = table("t", columns, &["id"]);
        let cells: Vec<BoxedStrategy<String>> = types
            .into_iter()
            .map(|(_, values)| prop_oneof![1 => Just("NULL".to_owned()), 6 => values].boxed())
            .collect();
        prop::collection::vec((cells, 0..4_u8), 1..6).prop_map(move |images| {
            let mut rows = Vec::new();
            for (at, (image, kind)) in images.iter().enumerate() {
                let row = |id: usize| [vec![id.to_string()], image.clone()].concat();
                match kind {
                    0 => rows.push((RowKind::Insert, row(at))),
                    1 => rows.push((RowKind::Delete, row(at))),
                    // The last keeps its key.
                    _ => {
                        let before = [vec![at.to_string()], images[0].0.clone()].concat();
                        rows.push((RowKind::UpdateBefore, before));
                        rows.push((RowKind::UpdateAfter, row(if *kind == 2 { at + 100 } else { at })));
                    }
                }
            }
            Case { writing: writing.clone(), reading: reading.clone(), schema: schema.clone(), rows }
        })
    })
}

/// Rows with the cells set to NULL that the modes cannot write: only times, and not in the modes that hold all of them.
fn writable(case: &Case) -> Vec<(RowKind, Vec<String>)> {
    let mut encoder = encoder(case.writing.clone());
    let mut rows = case.rows.clone();
    for (_, cells) in &mut rows {
        loop {
            let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
            let alone = batch(&case.schema, &[(RowKind::Insert, &texts)]);
            let Some(refusal) = encoder.refusal(&alone, 0) else { break };
            let name = refusal.split('`').nth(1).unwrap();
            let index = case.schema.column_index(name).unwrap();
            let ty = &case.schema.columns[index].ty;
            assert!(matches!(ty, L::Time { .. } | L::Timestamp { .. }), "{ty}: {refusal}");
            let holds_all = matches!(case.writing.time_mode, TimeMode::AdaptiveMicros | TimeMode::Micros);
            assert!(!holds_all, "{:?} {ty}: {refusal}", case.writing.time_mode);
            cells[index] = "NULL".into();
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_reads_back(case in case()) {
        let rows = writable(&case);
        let texts_of: Vec<Vec<&str>> = rows.iter().map(|(_, c)| c.iter().map(String::as_str).collect()).collect();
        let refs: Vec<(RowKind, &[&str])> =
            rows.iter().zip(&texts_of).map(|((kind, _), cells)| (*kind, cells.as_slice())).collect();
        let batch = batch(&case.schema, &refs);
        let pairs = encode(&case.writing, &batch);
        let read = Reader::new(case.reading.clone(), vec![case.schema.clone()]).all(&pairs);
        prop_assert!(read.changes.is_empty(), "{:?}", read.changes.first().map(|c| &c.statement));
        // An update that changes the key comes back as a delete and an insert.
        let mut expect = texts(&batch);
        for at in 0..expect.len() {
            let id = |row: &str| row[3..].split('|').next().unwrap().to_owned();
            if expect[at].starts_with("-U") && id(&expect[at]) != id(&expect[at + 1]) {
                expect[at].replace_range(..2, "-D");
                expect[at + 1].replace_range(..2, "+I");
            }
        }
        prop_assert_eq!(read.rows, expect);
    }

    #[test]
    fn foreign_bytes_never_panic(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        schema in any::<bool>(),
    ) {
        let table = table("t", vec![column("id", L::Int32, false), column("d", L::Decimal { precision: 5, scale: 2 }, true)], &["id"]);
        let options = DebeziumEncoderOptions { schema, ..DebeziumEncoderOptions::default() };
        let pairs = encode(&options, &batch(&table, &[(RowKind::Insert, &["1", "1.5"])]));
        let mut value = pairs[0].1.clone().unwrap().into_bytes();
        let mut key = pairs[0].0.clone().unwrap().into_bytes();
        let from = at.index(value.len());
        let end = value.len().min(from + noise.len() % 7);
        value.splice(from..end, noise.iter().copied());
        let from = at.index(key.len());
        key.splice(from.., noise.iter().copied());
        let mut reader = Reader::new(DebeziumDecoderOptions::default(), vec![table]);
        for (key, value) in [(&key, Some(&value)), (&key, None), (&noise, Some(&noise))] {
            use canalis_formats::message::{Message, MessageDecoder};
            let message = Message { topic: "a.shop.t", key: Some(key), value: value.map(Vec::as_slice), timestamp_ms: None };
            // Only that it returns is of interest, and that what was taken makes whole batches.
            let _step = reader.decoder.decode(&message);
            reader.decoder.take().unwrap();
        }
    }
}
