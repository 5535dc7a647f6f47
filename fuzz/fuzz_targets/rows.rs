//! Plain rows as messages (JSON, CSV, bare bytes): the first byte chooses kind, table and options, the rest are messages.
#![no_main]

use std::sync::Arc;

use canalis_formats::{
    json::DecimalForm,
    message::MessageDecoder,
    rows::{RawForm, RawKey, RowsDecoder, RowsEncoder, RowsKind, RowsOptions, UnknownFields, raw_table},
};
use canalis_fuzz::{
    messages::{orders, read_twice, round_trip, split, triples},
    records::every_type,
};
use canalis_types::{TableId, TableSchema};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [choice, input @ ..] = data else { return };
    let unknown = match choice / 4 % 4 {
        0 => UnknownFields::Refuse,
        1 => UnknownFields::Ignore,
        _ => UnknownFields::Evolve,
    };
    let kind = [RowsKind::Json, RowsKind::Csv, RowsKind::Raw, RowsKind::Json][usize::from(choice & 3)];
    let infers = choice & 3 == 3;
    let primary_key = if choice & 64 == 0 { Vec::new() } else { vec!["id".to_owned()] };
    let decimals = if choice & 128 == 0 { DecimalForm::String } else { DecimalForm::Number };
    let options = RowsOptions { unknown, primary_key, decimals, ..RowsOptions::default() };
    let table: Arc<TableSchema> = match (kind, choice / 16 % 4) {
        (RowsKind::Raw, n) => {
            let form = if n & 1 == 0 { RawForm::Bytes } else { RawForm::Text };
            let key = if n & 2 != 0 {
                RawKey::Primary
            } else if choice & 64 == 0 {
                RawKey::Absent
            } else {
                RawKey::Column
            };
            Arc::new(raw_table(TableId::bare("t"), form, key))
        }
        (_, 0) => orders(),
        (_, 1) => triples(),
        _ => every_type(),
    };
    let known = |table: &Arc<TableSchema>| -> Option<Box<dyn MessageDecoder>> {
        Some(Box::new(RowsDecoder::new(kind, options.clone(), table.clone()).ok()?))
    };
    let open = || -> Box<dyn MessageDecoder> {
        if infers {
            return Box::new(RowsDecoder::inferring(options.clone(), None));
        }
        known(&table).expect("messages can hold rows of the table")
    };
    let read = read_twice(&open, &split(input));
    round_trip(&read, &mut RowsEncoder::new(kind, options.clone()), &known);
});
