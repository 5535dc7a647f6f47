//! debezium-json with the schema in the messages or without: the first bytes choose tables and modes, the rest are messages.
#![no_main]

use canalis_formats::{
    debezium::{
        BigintUnsignedMode, BinaryMode, DebeziumDecoder, DebeziumDecoderOptions, DebeziumEncoder,
        DebeziumEncoderOptions, DecimalMode, TimeMode,
    },
    message::MessageDecoder,
};
use canalis_fuzz::messages::{orders, read_twice, round_trip, split, triples};
use libfuzzer_sys::fuzz_target;

const BINARY: [BinaryMode; 4] =
    [BinaryMode::Bytes, BinaryMode::Base64, BinaryMode::Base64UrlSafe, BinaryMode::Hex];
const TIME: [TimeMode; 6] = [
    TimeMode::AdaptiveMicros,
    TimeMode::Adaptive,
    TimeMode::Connect,
    TimeMode::IsoString,
    TimeMode::Micros,
    TimeMode::Nanos,
];

fuzz_target!(|data: &[u8]| {
    let [choice, modes, input @ ..] = data else { return };
    let declared = match choice & 3 {
        0 => vec![orders()],
        1 => vec![triples()],
        _ => Vec::new(),
    };
    let options = DebeziumDecoderOptions {
        decimal_mode: if choice & 16 == 0 { DecimalMode::Precise } else { DecimalMode::String },
        bigint_unsigned: if choice & 32 == 0 {
            BigintUnsignedMode::Precise
        } else {
            BigintUnsignedMode::Long
        },
        binary_mode: BINARY[usize::from(modes & 3)],
        time_mode: TIME[usize::from(modes / 4 % 6)],
        unwrapped: choice & 4 != 0,
        ..DebeziumDecoderOptions::default()
    };
    let open =
        || -> Box<dyn MessageDecoder> { Box::new(DebeziumDecoder::new(options.clone(), declared.clone())) };
    let read = read_twice(&open, &split(input));
    let enveloped = DebeziumDecoderOptions { unwrapped: false, ..options.clone() };
    for schema in [false, true] {
        let mut encoder = DebeziumEncoder::new(DebeziumEncoderOptions {
            schema,
            decimal_mode: options.decimal_mode,
            bigint_unsigned: options.bigint_unsigned,
            binary_mode: options.binary_mode,
            time_mode: options.time_mode,
            tombstones: choice & 8 != 0,
            ..DebeziumEncoderOptions::default()
        });
        round_trip(&read, &mut encoder, &|table| {
            Some(Box::new(DebeziumDecoder::new(enveloped.clone(), vec![table.clone()])))
        });
    }
});
