//! Any text is read or refused; what is read prints, reads the same again, and resolves.

#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use postrider::query::{ParseOptions, leaves, parse, resolve};

const NOW_MS: i64 = 1_780_000_000_000;

fuzz_target!(|text: &str| {
    let options = ParseOptions::default();
    let query = match parse(text, &options) {
        Ok(query) => query,
        Err(error) => {
            assert!(error.position as usize <= text.chars().count());
            let _ = (error.to_string(), error.redacted().to_string());
            return;
        }
    };
    let printed = query.to_string();
    let resolved = resolve(&query, &TimeZone::UTC, NOW_MS);
    assert_eq!(resolved.to_string(), printed);
    let _ = (leaves::semantic_text(&resolved), leaves::named(&resolved));
    // Normal forms can be longer than what was typed, and then too long to be read.
    if printed.chars().count() <= postrider::query::parse::QUERY_CHARS_MAX {
        let again = parse(&printed, &options).expect("canonical text is a query");
        assert_eq!(again.to_string(), printed);
        assert_eq!(again.without_spans(), query.without_spans());
    }
});
