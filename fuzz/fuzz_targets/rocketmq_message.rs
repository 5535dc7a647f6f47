//! Messages of RocketMQ: the bytes are what a broker delivered, read one message after another with all their parts, and
//! then key and value of a message that is written to a batch.
#![no_main]

use canalis_rocketmq::protocol::message::{decode, encode};
use libfuzzer_sys::fuzz_target;

/// Largest value that is unpacked.
const MOST: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok((message, length)) = decode(rest) {
        assert!(length > 0 && length <= rest.len());
        if let Ok(Some(value)) = message.value(MOST) {
            assert!(value.len() <= MOST);
        }
        let _ = message.key();
        assert!(message.has_tag(&[]));
        let _ = message.has_tag(&["a".to_owned(), String::new()]);
        assert!(message.stored_body().len() < length);
        rest = &rest[length..];
    }

    let (key, value) = data.split_at(data.len() / 2);
    let mut batch = vec![7];
    if encode(&mut batch, Some(key), Some(value), Some("t")) {
        let length = u32::from_be_bytes([batch[1], batch[2], batch[3], batch[4]]);
        assert_eq!(length as usize, batch.len() - 1);
        let body = u32::from_be_bytes([batch[17], batch[18], batch[19], batch[20]]) as usize;
        assert_eq!(&batch[21..21 + body], value);
    } else {
        assert_eq!(batch, [7]);
    }
});
