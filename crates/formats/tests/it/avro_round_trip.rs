//! Owns the property of Avro: what is written reads back as the same rows, for all types, and foreign bytes never panic.

use std::sync::Arc;

use canalis_formats::{
    avro::{AvroDecoder, AvroKind},
    message::{Message, MessageDecoder, Step},
};
use canalis_types::{LogicalType, RowKind, TableSchema};
use proptest::prelude::*;

use crate::{
    avro_support::{Registry, decoder, encode, encoder, message, reading},
    every_type::{self, Seed},
    message_support::{decode, show},
};

fn seeds() -> impl Strategy<Value = Vec<Vec<Seed>>> {
    let count = every_type::types().len();
    let seed = (any::<u8>(), any::<u64>(), any::<u64>(), "[ -~äö漢😀]{0,20}");
    prop::collection::vec(prop::collection::vec(seed, count), 1..4)
}

/// Rows of a decoder that knows the columns, and how many rows were written.
fn there_and_back(kind: AvroKind, rows: &[Vec<Seed>]) -> (Vec<String>, Vec<String>, Vec<usize>) {
    let registry = Arc::new(Registry::default());
    let batch = every_type::batch(rows);
    let (messages, refused) = encode(&mut encoder(kind, Some(&registry)), &batch);
    let schema: Arc<TableSchema> = batch.schema().clone();
    let mut decoder = decoder(kind, &registry, vec![schema]);
    let stored: Vec<Message<'_>> = messages.iter().map(message).collect();
    let outcome = decode(&mut decoder, &stored);
    assert_eq!(outcome.undecodable, []);
    let written = show(&batch);
    let kept = (0..rows.len()).filter(|row| !refused.iter().any(|(r, _)| r == row));
    (outcome.rows, kept.map(|row| written[row].clone()).collect(), refused.iter().map(|(r, _)| *r).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_reads_back(rows in seeds(), is_plain in any::<bool>()) {
        let kind = if is_plain { AvroKind::Rows } else { AvroKind::Debezium };
        let (read, written, _) = there_and_back(kind, &rows);
        prop_assert_eq!(read, written);
    }

    #[test]
    fn each_type_alone_reads_back(at in 0..every_type::types().len(), seed in any::<(u64, u64)>()) {
        // All other cells are NULL, so that one refused value does not hide the rest.
        let cell = |index: usize| {
            let form = if index == at { 200 } else { 0 };
            (form, seed.0, seed.1, "text äö".to_owned())
        };
        let row: Vec<Seed> = (0..every_type::types().len()).map(cell).collect();
        for kind in [AvroKind::Rows, AvroKind::Debezium] {
            let (read, written, refused) = there_and_back(kind, std::slice::from_ref(&row));
            prop_assert_eq!(&read, &written);
            // Only these have values that Avro has no place for.
            let may_be_refused = matches!(
                every_type::types()[at],
                LogicalType::Date | LogicalType::Time { .. } | LogicalType::Timestamp { .. }
                    | LogicalType::TimestampTz { .. } | LogicalType::Geometry
            );
            prop_assert!(refused.is_empty() || may_be_refused);
        }
    }

    #[test]
    fn the_structure_that_is_told_holds_all_values(rows in seeds()) {
        let registry = Arc::new(Registry::default());
        let batch = every_type::batch(&rows);
        let (messages, _) = encode(&mut encoder(AvroKind::Rows, Some(&registry)), &batch);
        let stored: Vec<Message<'_>> = messages.iter().map(message).collect();
        let outcome = decode(&mut decoder(AvroKind::Rows, &registry, Vec::new()), &stored);
        prop_assert_eq!(outcome.undecodable, vec![]);
        prop_assert_eq!(outcome.rows.len(), stored.len());
        if let Some(change) = outcome.structures.first() {
            let names = |schema: &TableSchema| -> Vec<String> {
                schema.columns.iter().map(|c| c.name.clone()).collect()
            };
            prop_assert_eq!(names(&change.after), names(batch.schema()));
        }
    }

    #[test]
    fn foreign_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in any::<prop::sample::Index>(),
        turned in any::<(prop::sample::Index, u8)>(),
        rows in seeds(),
    ) {
        for kind in [AvroKind::Rows, AvroKind::Debezium] {
            let registry = Arc::new(Registry::default());
            let (messages, _) = encode(&mut encoder(kind, Some(&registry)), &every_type::batch(&rows));
            let mut decoder = decoder(kind, &registry, Vec::new());
            let mut foreign = vec![bytes.clone(), [&[0, 0, 0, 0, 1][..], &bytes].concat()];
            for (_, value) in messages {
                let mut value = value.unwrap();
                foreign.push(value[..cut.index(value.len())].to_vec());
                let at = turned.0.index(value.len());
                value[at] ^= turned.1;
                foreign.push(value);
            }
            for value in &foreign {
                let message = Message { topic: "t", key: None, value: Some(value), timestamp_ms: None };
                while let Ok(Step::Structure(change)) = decoder.decode(&message) {
                    decoder.take().unwrap();
                    decoder.apply(&change);
                    if change.alone {
                        break;
                    }
                }
            }
            decoder.take().unwrap();
        }
    }

    #[test]
    fn any_text_is_a_schema_or_is_refused(text in "[\\[\\]{}\",:a-z ]{0,80}") {
        let options = reading(AvroKind::Rows, None, Some(&text));
        let mut decoder = AvroDecoder::new(options, Vec::new());
        let message = Message { topic: "t", key: None, value: Some(b"\x02\x04"), timestamp_ms: None };
        prop_assert!(decoder.decode(&message).is_err());
    }
}

#[test]
fn kinds_of_changes_come_back_in_order() {
    use crate::debezium_support::{batch, column, table};
    let columns = || {
        vec![column("id", LogicalType::Int32, false), column("v", LogicalType::Varchar { length: 9 }, true)]
    };
    let schema = table("t", columns(), &["id"]);
    let rows = batch(
        &schema,
        &[
            (RowKind::Insert, &["1", "a"]),
            (RowKind::UpdateBefore, &["1", "a"]),
            (RowKind::UpdateAfter, &["1", "NULL"]),
            (RowKind::UpdateBefore, &["1", "NULL"]),
            (RowKind::UpdateAfter, &["2", "b"]),
            (RowKind::Delete, &["2", "b"]),
        ],
    );
    for (kind, expected, ignored) in [
        (AvroKind::Rows, &["+I 1|a", "+I 1|NULL", "-D 1|~", "+I 2|b", "-D 2|~"][..], 0),
        (
            AvroKind::Debezium,
            &["+I 1|a", "-U 1|a", "+U 1|NULL", "-D 1|NULL", "+I 2|b", "-D 2|b"],
            // The tombstones of both deletes.
            2,
        ),
    ] {
        let registry = Arc::new(Registry::default());
        let (messages, refused) = encode(&mut encoder(kind, Some(&registry)), &rows);
        assert_eq!(refused, []);
        let stored: Vec<Message<'_>> = messages.iter().map(message).collect();
        let outcome = decode(&mut decoder(kind, &registry, Vec::new()), &stored);
        assert_eq!(
            (outcome.rows.as_slice(), outcome.ignored),
            (&expected.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>()[..], ignored)
        );
        assert_eq!(outcome.structures[0].after.primary_key, ["id"]);
        let subjects: Vec<String> =
            registry.schemas.lock().unwrap().iter().map(|(subject, _)| subject.clone()).collect();
        let topic = schema.id.to_string();
        assert_eq!(subjects, [format!("{topic}-value"), format!("{topic}-key")]);
    }
}
