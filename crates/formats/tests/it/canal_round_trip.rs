//! Owns the property that changes written as canal-json read back as they were, for every type.

use canalis_batch::ChangeBatch;
use canalis_formats::{
    canal::{
        CanalDecoder, CanalDecoderOptions, CanalEncoder, CanalEncoderOptions, EnumMode, KeyChanges, Zone,
    },
    message::{Message, MessageEncoder, Messages},
};
use canalis_types::RowKind;
use proptest::prelude::*;

use crate::{
    canal_vectors::REFERENCE,
    every_type::{Seed, batch, types},
    message_support::{decode, decode_values, show},
};

fn rows() -> impl Strategy<Value = Vec<Vec<Seed>>> {
    let row =
        proptest::collection::vec((any::<u8>(), any::<u64>(), any::<u64>(), any::<String>()), types().len());
    proptest::collection::vec(row, 1..6)
}

/// The same rows as inserts, deletes and updates.
fn with_kinds(batch: &ChangeBatch, choice: u8) -> ChangeBatch {
    let mut kinds = Vec::new();
    while kinds.len() < batch.num_rows() {
        match (choice as usize + kinds.len()) % 3 {
            0 if kinds.len() + 1 < batch.num_rows() => {
                kinds.extend([RowKind::UpdateBefore, RowKind::UpdateAfter]);
            }
            1 => kinds.push(RowKind::Delete),
            _ => kinds.push(RowKind::Insert),
        }
    }
    ChangeBatch::new(batch.schema().clone(), batch.rows().clone(), kinds).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn changes_read_back_as_they_were(seeds in rows(), choice in any::<u8>()) {
        let batch = with_kinds(&batch(&seeds), choice);
        for (enum_mode, zone) in
            [(EnumMode::Index, "UTC"), (EnumMode::Label, "+08:00"), (EnumMode::Index, "Europe/Paris")]
        {
            let time_zone = Zone::parse(zone).unwrap();
            let options = CanalEncoderOptions {
                enum_mode, time_zone, key_changes: KeyChanges::DeleteInsert, ..CanalEncoderOptions::default()
            };
            let mut encoder = CanalEncoder::new(options);
            let starts: Vec<usize> =
                (0..batch.num_rows()).filter(|row| batch.kinds()[*row] != RowKind::UpdateAfter).collect();
            let skip: Vec<usize> =
                starts.into_iter().filter(|row| encoder.refusal(&batch, *row).is_some()).collect();
            prop_assert!(zone == "Europe/Paris" || skip.is_empty());
            let mut messages = Messages::default();
            encoder.encode(&batch, &skip, &mut messages).unwrap();
            let texts: Vec<String> =
                messages.iter().map(|m| String::from_utf8(m.value.unwrap().to_vec()).unwrap()).collect();
            for text in &texts {
                prop_assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{}", text);
            }
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let options = CanalDecoderOptions { time_zone };
            let mut decoder = CanalDecoder::new(options, vec![batch.schema().clone()]);
            let outcome = decode_values(&mut decoder, &texts);
            prop_assert_eq!(outcome.undecodable, Vec::<(usize, String)>::new());
            let mut kept = show(&batch);
            for row in skip.iter().rev() {
                let rows = if batch.kinds()[*row] == RowKind::UpdateBefore { 2 } else { 1 };
                kept.drain(*row..*row + rows);
            }
            prop_assert_eq!(outcome.rows, kept);
        }
    }
}

/// Pieces that change the meaning of a message wherever they are put.
const PIECES: &[&str] = &[
    "",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "null",
    "\\u0000",
    "\\ud800",
    "(",
    ")",
    "'",
    "decimal(255,255)",
    "bit(99)",
    "-",
    "1e999999999",
    "é",
    "UPDATE",
    "DELETE",
    "\"old\":[{}],",
    "\"data\":[{}],",
    "\"pkNames\":[\"g\"],",
    "\u{0}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn foreign_bytes_neither_panic_nor_tear_rows(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..30_usize, 0..PIECES.len()), 1..5)
    ) {
        let mut bytes = REFERENCE.as_bytes().to_vec();
        for (at, length, piece) in edits {
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + length);
            bytes.splice(at..end, PIECES[piece].bytes());
        }
        let mut decoder = CanalDecoder::new(CanalDecoderOptions::default(), Vec::new());
        let message = |value| Message { topic: "t", key: None, value: Some(value), timestamp_ms: None };
        let outcome = decode(&mut decoder, &[message(REFERENCE.as_bytes()), message(&bytes), message(REFERENCE.as_bytes())]);
        prop_assert!(outcome.rows.len() >= 2, "{:?}", outcome.rows);
        prop_assert!(outcome.undecodable.iter().all(|(at, _)| *at > 0));
    }
}
