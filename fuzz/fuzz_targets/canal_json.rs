//! canal-json: the first byte chooses tables and options, the rest are messages.
#![no_main]

use canalis_formats::{
    canal::{CanalDecoder, CanalDecoderOptions, CanalEncoder, CanalEncoderOptions, EnumMode, Zone},
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
    let zone = if choice & 4 == 0 { "UTC" } else { "Europe/Paris" };
    let time_zone = Zone::parse(zone).expect("a zone");
    let enum_mode = if choice & 8 == 0 { EnumMode::Index } else { EnumMode::Label };
    let options = CanalDecoderOptions { time_zone };
    let open = || -> Box<dyn MessageDecoder> { Box::new(CanalDecoder::new(options, declared.clone())) };
    let read = read_twice(&open, &split(input));
    let mut encoder = CanalEncoder::new(CanalEncoderOptions {
        time_zone,
        enum_mode,
        key: choice & 16 != 0,
        ..CanalEncoderOptions::default()
    });
    round_trip(&read, &mut encoder, &|table| Some(Box::new(CanalDecoder::new(options, vec![table.clone()]))));
});
