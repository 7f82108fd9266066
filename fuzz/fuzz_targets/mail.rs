//! Any bytes are a message: reading never fails, panics or runs away.

#![no_main]

use libfuzzer_sys::fuzz_target;
use postrider::mail::message::ReadHints;

fuzz_target!(|raw: &[u8]| {
    let message = postrider::mail::read(raw, &ReadHints::default());
    assert_eq!(message.raw_bytes, raw.len() as u64);
});
