//! Owns the property that what is written reads back as it was, for every type.

use canalis_formats::{
    BatchLimits, ChangeColumn, InputEnd, Place, RowEncoder,
    csv::{CsvDecoder, CsvDialect, CsvEncoder, read_header},
    json::{DecimalForm, JsonDecoder, JsonDecoderOptions, JsonEncoder, JsonEncoderOptions},
};
use proptest::prelude::*;

use crate::{
    every_type::{Seed, batch, types},
    support::{cells, drive},
};

fn rows() -> impl Strategy<Value = Vec<Vec<Seed>>> {
    let text = prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            prop::sample::select(vec![',', '"', '\\', '\n', '\r', ' ', 'a', '\t', 'N', ';']),
            0..8
        )
        .prop_map(|characters| characters.into_iter().collect()),
    ];
    let row = proptest::collection::vec((any::<u8>(), any::<u64>(), any::<u64>(), text), types().len());
    proptest::collection::vec(row, 1..6)
}

fn dialects() -> [CsvDialect; 5] {
    let plain = CsvDialect::default();
    [
        plain.clone(),
        CsvDialect { header: false, null_literal: b"\\N".to_vec(), ..plain.clone() },
        CsvDialect { delimiter: b'\t', escape: Some(b'\\'), null_literal: b"\\N".to_vec(), ..plain.clone() },
        CsvDialect { delimiter: b'-', quote: b'\'', null_literal: b"0".to_vec(), ..plain.clone() },
        CsvDialect {
            delimiter: b':',
            quote: b'.',
            escape: Some(b' '),
            null_literal: b"true".to_vec(),
            ..plain
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn csv_reads_back_as_it_was(seeds in rows(), piece in 1_usize..200) {
        let batch = batch(&seeds);
        for dialect in dialects() {
            dialect.validate().unwrap();
            let encoder = CsvEncoder::new(batch.schema(), &dialect, &ChangeColumn::Absent);
            let mut out = Vec::new();
            encoder.write_head(&mut out);
            encoder.write_rows(&batch, &mut (0..batch.num_rows()), &mut out).unwrap();
            let header = dialect.header.then(|| read_header(&out, &dialect, InputEnd::Last).unwrap().unwrap());
            let start = header.as_ref().map_or(Place::START, |h| h.end);
            let names = header.map(|h| h.names);
            let mut decoder = CsvDecoder::new(
                batch.schema().clone(), &dialect, names.as_deref(), start, BatchLimits::default(),
            ).unwrap();
            let read = drive(&mut decoder, &out, piece);
            prop_assert_eq!(read.reasons(), Vec::<&str>::new());
            prop_assert_eq!(read.rows, cells(&batch));
        }
    }

    #[test]
    fn json_reads_back_as_it_was(seeds in rows(), piece in 1_usize..200) {
        let batch = batch(&seeds);
        for decimals in [DecimalForm::String, DecimalForm::Number] {
            let options = JsonEncoderOptions { decimals, changes: ChangeColumn::Absent };
            let mut out = Vec::new();
            JsonEncoder::new(batch.schema(), &options)
                .write_rows(&batch, &mut (0..batch.num_rows()), &mut out)
                .unwrap();
            for line in out.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                // Another reader agrees that it is JSON (one that keeps no number exactly may refuse 1e400).
                let text = String::from_utf8_lossy(line).replace("1e400", "1e40");
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
            let mut decoder = JsonDecoder::new(
                batch.schema().clone(), JsonDecoderOptions::default(), Place::START, BatchLimits::default(),
            );
            let read = drive(&mut decoder, &out, piece);
            prop_assert_eq!(read.reasons(), Vec::<&str>::new());
            prop_assert_eq!(read.rows, cells(&batch));
        }
    }
}
