//! maxwell-json: the first byte chooses tables and options, the rest are messages.
#![no_main]

use canalis_formats::{
    json::UnknownMembers,
    maxwell::{
        CommitInfo, KeyFormat, MaxwellDecoder, MaxwellDecoderOptions, MaxwellEncoder, MaxwellEncoderOptions,
    },
    message::MessageDecoder,
};
use canalis_fuzz::messages::{orders, read_twice, round_trip, split, triples};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [choice, input @ ..] = data else { return };
    let declared = match choice & 3 {
        0 => vec![orders()],
        1 => vec![triples()],
        _ => Vec::new(),
    };
    let unknown = if choice & 4 == 0 { UnknownMembers::Refuse } else { UnknownMembers::Ignore };
    let options = MaxwellDecoderOptions { unknown, ..MaxwellDecoderOptions::default() };
    let open = || -> Box<dyn MessageDecoder> { Box::new(MaxwellDecoder::new(options, declared.clone())) };
    let read = read_twice(&open, &split(input));
    let mut encoder = MaxwellEncoder::new(MaxwellEncoderOptions {
        key_format: if choice & 8 == 0 { KeyFormat::Hash } else { KeyFormat::Array },
        commit_info: if choice & 16 == 0 { CommitInfo::Batch } else { CommitInfo::Absent },
        output_nulls: choice & 32 == 0,
        output_primary_keys: choice & 64 != 0,
        ..MaxwellEncoderOptions::default()
    });
    round_trip(&read, &mut encoder, &|table| {
        Some(Box::new(MaxwellDecoder::new(options, vec![table.clone()])))
    });
});
