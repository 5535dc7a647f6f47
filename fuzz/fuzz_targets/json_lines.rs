//! JSON lines: the first byte chooses options and table, the second the size of the pieces; the rest is the file.
#![no_main]

use std::sync::{Arc, LazyLock};

use canalis_formats::json::{DecimalForm, JsonDecoderOptions, UnknownMembers, is_valid};
use canalis_fuzz::records::{every_type, read_json, round_trip_json, small};
use canalis_types::{LogicalType, TableSchema};
use libfuzzer_sys::fuzz_target;

static TABLES: LazyLock<[Arc<TableSchema>; 3]> = LazyLock::new(|| {
    [
        small(&[LogicalType::Int32, LogicalType::Json]),
        small(&[LogicalType::UInt64, LogicalType::Text, LogicalType::Decimal { precision: 12, scale: 3 }]),
        every_type(),
    ]
});

fuzz_target!(|data: &[u8]| {
    let [choice, piece, input @ ..] = data else { return };
    let schema = &TABLES[usize::from(choice % 3)];
    let unknown = if choice & 0x40 == 0 { UnknownMembers::Refuse } else { UnknownMembers::Ignore };
    let max_record_bytes = if choice & 0x80 == 0 { 64 << 20 } else { 20 };
    let decimals = if choice & 0x20 == 0 { DecimalForm::String } else { DecimalForm::Number };

    let options = JsonDecoderOptions { unknown, max_record_bytes };
    let whole = read_json(schema, options, input, input.len().max(1));
    assert_eq!(whole.offset, input.len() as u64);
    assert_eq!(read_json(schema, options, input, usize::from(*piece).max(1)), whole, "pieces of {piece}");
    round_trip_json(&whole, decimals);

    // Another parser agrees about what is JSON, but for what it cannot hold: large numbers, escapes of half a character
    // (which the grammar allows), deeper levels.
    let theirs = serde_json::from_slice::<serde_json::Value>(input);
    match (is_valid(input), theirs) {
        (true, Err(error)) => {
            let why = error.to_string();
            let cannot_hold = ["number out of range", "surrogate", "hex escape", "recursion limit"];
            assert!(cannot_hold.iter().any(|reason| why.contains(reason)), "{why}");
        }
        (false, Ok(_)) => panic!("taken by another parser"),
        _ => {}
    }
});
