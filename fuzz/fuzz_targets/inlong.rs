//! CSV and key-value bodies of InLong: the first byte chooses the body and its characters, the rest are messages. Nothing
//! writes such bodies; what was read is written as plain rows instead.
#![no_main]

use canalis_formats::{
    Charset,
    inlong::{InlongBody, InlongDecoder, InlongOptions},
    json::UnknownMembers,
    message::MessageDecoder,
    rows::{RowsDecoder, RowsEncoder, RowsKind, RowsOptions},
};
use canalis_fuzz::{
    messages::{orders, read_twice, round_trip, split, triples},
    records::every_type,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [choice, charset, input @ ..] = data else { return };
    let body = if choice & 1 == 0 {
        InlongBody::Csv { separator: b'|' }
    } else {
        InlongBody::KeyValue { entry_separator: b'&', kv_separator: b'=' }
    };
    let table = match choice / 2 % 3 {
        0 => orders(),
        1 => triples(),
        _ => every_type(),
    };
    let label = ["utf-8", "gbk", "utf-16le", "shift_jis", "windows-1252"][usize::from(charset % 5)];
    let options = InlongOptions {
        escape: (choice & 8 != 0).then_some(b'\\'),
        quote: (choice & 16 != 0).then_some(b'"'),
        line_separator: (choice & 32 != 0).then_some(b'\n'),
        null_literal: (choice & 64 != 0).then(|| b"NULL".to_vec()),
        unknown: if choice & 128 == 0 { UnknownMembers::Refuse } else { UnknownMembers::Ignore },
        charset: Charset::parse(label).expect("a label of the standard"),
        ..InlongOptions::new(body)
    };
    let open = || -> Box<dyn MessageDecoder> { Box::new(InlongDecoder::new(options.clone(), table.clone())) };
    let read = read_twice(&open, &split(input));
    let rows = RowsOptions::default();
    round_trip(&read, &mut RowsEncoder::new(RowsKind::Json, rows.clone()), &|table| {
        let decoder = RowsDecoder::new(RowsKind::Json, rows.clone(), table.clone());
        Some(Box::new(decoder.expect("JSON holds every table")))
    });
});
