//! Dialects and faults of mbox, each at block sizes that cut it everywhere, and the property that
//! what is written in a dialect reads back equal.

use proptest::prelude::*;

use super::super::failure::FailureReason;
use super::{Found, Scanner};

const SEP: &str = "From jk at host  Tue Apr  1 12:00:00 2003\n";
const SEP_MS: i64 = 1_049_198_400_000;

/// Everything found, equal at every block size.
fn found(mbox: &[u8], message_bytes_max: usize) -> Vec<Found> {
    let at = |block| {
        let mut scanner = Scanner::new(mbox, block, message_bytes_max);
        std::iter::from_fn(|| scanner.next()).collect::<Vec<_>>()
    };
    let whole = at(1 << 20);
    for block in [1, 2, 3, 5, 64, 777] {
        assert_eq!(at(block), whole, "block of {block}");
    }
    whole
}

/// Raw messages as text; failures in brackets.
fn texts(mbox: impl AsRef<[u8]>) -> Vec<String> {
    let text = |found: Found| match found {
        Found::Entry { offset, raw, .. } => {
            let at = usize::try_from(offset).unwrap();
            assert!(mbox.as_ref()[at..].starts_with(b"From "), "offset {offset}");
            String::from_utf8_lossy(&raw).into_owned()
        }
        Found::Failure { reason, .. } => format!("[{reason:?}]"),
    };
    found(mbox.as_ref(), 1 << 20).into_iter().map(text).collect()
}

#[test]
fn quoting_of_mboxo_and_mboxrd_is_undone() {
    let mbox = format!("{SEP}Subject: a\n\n>From here\n>>From there\n\n{SEP}Subject: b\n\nx\n\n");
    assert_eq!(texts(mbox), ["Subject: a\n\nFrom here\n>From there\n", "Subject: b\n\nx\n"]);
}

#[test]
fn line_ends_of_all_systems() {
    let mbox = format!("{SEP}Subject: a\n\n>From x\n\n{SEP}Subject: b\n\ny\n\n");
    let want = ["Subject: a\n\nFrom x\n", "Subject: b\n\ny\n"];
    assert_eq!(texts(mbox.replace('\n', "\r\n")), want.map(|m| m.replace('\n', "\r\n")));
    assert_eq!(texts(mbox.replace('\n', "\r")), want.map(|m| m.replace('\n', "\r")));
}

#[test]
fn body_lines_that_begin_with_from_are_no_separators() {
    let body = "Subject: a\n\nFrom here on\n\nFrom Monday, 12:00, it is 2003\nx: y\n\n\
        From jk Tue Apr  1 12:00:00 2003\nplain text\n";
    assert_eq!(texts(format!("{SEP}{body}\n")), [body]);
}

#[test]
fn pipermail_writes_no_blank_line_behind_a_scrubbed_attachment() {
    let mbox = format!("{SEP}From: a\n\nURL: <x>\n{SEP}From: b\n\ny\n\n");
    assert_eq!(texts(mbox), ["From: a\n\nURL: <x>\n", "From: b\n\ny\n"]);
}

#[test]
fn separator_dates() {
    let mbox = "From a@b Tue, 1 Apr 1999 08:00:00 -0400 (EDT)\nDate: x\n\nx\n\n\
        From a Tue Apr  1 12:00:00 2003\nDate: x\n\ny\n\nFrom a Feb 31 12:00 2003\nDate: x\n\n";
    let dates: Vec<_> = found(mbox.as_bytes(), 1_000)
        .into_iter()
        .map(|found| match found {
            Found::Entry { separator_ms, .. } => separator_ms,
            Found::Failure { reason, .. } => panic!("{reason}"),
        })
        .collect();
    assert_eq!(dates, [Some(922_968_000_000), Some(SEP_MS), None]);
}

#[test]
fn content_length_is_trusted_only_where_a_separator_or_the_end_stands() {
    let body = "one\n\nFrom jk Tue Apr  1 12:00:00 2003\nSubject: not one\n\n>From kept\n";
    let message = |length: usize| format!("Subject: a\nContent-Length: {length}\n\n{body}");
    let next = format!("\n{SEP}Subject: b\n\ny\n\n");
    let right = message(body.len());
    assert_eq!(texts(format!("{SEP}{right}{next}")), [&right, "Subject: b\n\ny\n"]);
    assert_eq!(texts(format!("{SEP}{right}")), [right.as_str()]);
    // One less would be a body without its last line end, which mboxcl allows.
    for wrong in [0, 1, body.len() - 2, body.len() + 9, 1 << 40] {
        let got = texts(format!("{SEP}{}{next}", message(wrong)));
        assert_eq!(got.len(), 3, "{wrong}: {got:?}");
        assert_eq!(got[1], "Subject: not one\n\nFrom kept\n");
    }
}

#[test]
fn content_length_of_a_quoted_body_and_of_one_without_line_end() {
    let mbox =
        format!("{SEP}Content-Length: 8\n\n>From x\n\n{SEP}Content-Length: 1\n\ny\n{SEP}A: b\n");
    assert_eq!(texts(mbox), ["Content-Length: 8\n\nFrom x\n", "Content-Length: 1\n\ny", "A: b\n"]);
}

#[test]
fn preamble_is_reported_unless_blank() {
    let mbox = format!("{SEP}A: b\n\n");
    assert_eq!(texts(format!("\n\n{mbox}")), ["A: b\n"]);
    assert_eq!(texts(format!("\u{feff}{mbox}")), ["A: b\n"]);
    assert_eq!(texts(format!("words\n\n{mbox}")), ["[Preamble { bytes: 6 }]", "A: b\n"]);
    assert_eq!(texts("words only\n"), ["[Preamble { bytes: 11 }]"]);
    assert!(texts("").is_empty());
    let long = format!("{}\n{mbox}", "x\n".repeat(5_000));
    let got = found(long.as_bytes(), 100);
    assert!(matches!(
        got[0],
        Found::Failure { offset: 0, reason: FailureReason::Preamble { bytes: 10_000 } }
    ));
    assert_eq!(got.len(), 2);
}

#[test]
fn truncated_empty_and_binary_entries() {
    assert_eq!(texts(format!("{SEP}A: b\n\ncut he")), ["A: b\n\ncut he"]);
    assert_eq!(texts(format!("{SEP}A: b")), ["A: b"]);
    assert_eq!(texts(SEP), ["[EmptyEntry]"]);
    let mbox = format!("{SEP}\n{SEP}\n\n{SEP}A: \0b\n\n\0\0\n\n");
    assert_eq!(texts(mbox), ["[EmptyEntry]", "[EmptyEntry]", "A: \0b\n\n\0\0\n"]);
}

#[test]
fn dateless_separators_of_netscape_and_takeout() {
    let mbox = "From - \nFrom: a\n\nFrom Russia\n\nFrom -\nnothing\n\nFrom -\nFrom: b\n\nx\n\n";
    assert_eq!(texts(mbox), ["From: a\n\nFrom Russia\n\nFrom -\nnothing\n", "From: b\n\nx\n"]);
    let mbox = "From 1844347792267117879@xxx\nA: a\n\nx\n\n\
        From 1844347792267117880@xxx Tue Apr 01 12:00:00 +0000 2003\nA: b\n\ny\n\n";
    assert_eq!(texts(mbox), ["A: a\n\nx\n", "A: b\n\ny\n"]);
}

#[test]
fn a_message_above_the_cap_is_named_and_the_walk_goes_on() {
    let large = format!("Subject: a\n\n{}", "many words\n".repeat(400));
    let mbox = format!("{SEP}A: b\n\n{SEP}{large}\n{SEP}{large}\n{SEP}A: c\n\n");
    let got = found(mbox.as_bytes(), 1_000);
    let bytes = large.len() as u64;
    assert_eq!(got.len(), 4);
    assert!(matches!(&got[0], Found::Entry { raw, .. } if raw == b"A: b\n"));
    for found in &got[1..3] {
        let Found::Failure { reason, .. } = found else { panic!("{found:?}") };
        assert_eq!(*reason, FailureReason::TooLarge { bytes, bytes_max: 1_000 });
    }
    assert!(matches!(&got[3], Found::Entry { raw, .. } if raw == b"A: c\n"));
}

#[test]
fn memory_is_bounded_by_cap_and_block_not_by_the_stream() {
    use std::io::Read;

    let head = format!("{SEP}A: b\n\n");
    let stream = head.as_bytes().chain(std::io::repeat(b'x').take(64 << 20));
    let mut scanner = Scanner::new(stream, 64 << 10, 1 << 20);
    assert!(matches!(
        scanner.next(),
        Some(Found::Failure { reason: FailureReason::TooLarge { bytes: 67_108_870, .. }, .. })
    ));
    assert!(scanner.next().is_none());
    assert!(scanner.window.capacity() < 3 << 20, "{}", scanner.window.capacity());
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Dialect {
    Mboxo,
    Mboxrd,
    Mboxcl,
    Mboxcl2,
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        3 => "[ -~]{0,30}",
        2 => Just(String::new()),
        1 => Just("From here".to_owned()),
        1 => Just(">From there".to_owned()),
        1 => Just(">>From far".to_owned()),
        1 => Just(SEP.trim_end().to_owned()),
        1 => Just("From: jk".to_owned()),
        1 => Just("\0\u{1}ü".to_owned()),
    ];
    prop::collection::vec(line, 0..12)
}

/// Header and body of a message in normal form, as it should read back.
fn message(lines: &[String], n: usize, dialect: Dialect) -> (String, String) {
    let bare = lines.iter().any(|line| line.starts_with("From "));
    let quoted =
        |line: &&String| line.trim_start_matches('>').starts_with("From ") && line.starts_with('>');
    let kept = lines.iter().filter(|line| match dialect {
        // What these dialects cannot express.
        Dialect::Mboxo => !quoted(line),
        Dialect::Mboxcl2 => bare || !quoted(line),
        _ => true,
    });
    let body: String = kept.flat_map(|line| [line.as_str(), "\n"]).collect();
    (format!("Subject: message {n}\n"), body)
}

fn quote(body: &str, dialect: Dialect) -> String {
    let must = |line: &str| match dialect {
        Dialect::Mboxo => line.starts_with("From "),
        Dialect::Mboxrd | Dialect::Mboxcl => line.trim_start_matches('>').starts_with("From "),
        Dialect::Mboxcl2 => false,
    };
    body.split_inclusive('\n').flat_map(|line| [if must(line) { ">" } else { "" }, line]).collect()
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        all in prop::collection::vec(lines(), 1..8),
        dialect in prop::sample::select(vec![
            Dialect::Mboxo, Dialect::Mboxrd, Dialect::Mboxcl, Dialect::Mboxcl2,
        ]),
        crlf: bool,
        block in prop_oneof![1usize..40, 40usize..4_000],
    ) {
        let (mut mbox, mut want) = (String::new(), Vec::new());
        for (n, lines) in all.iter().enumerate() {
            let (mut header, body) = message(lines, n, dialect);
            let written = quote(&body, dialect);
            if matches!(dialect, Dialect::Mboxcl | Dialect::Mboxcl2) {
                let ends = if crlf { written.matches('\n').count() } else { 0 };
                header.push_str(&format!("Content-Length: {}\n", written.len() + ends));
            }
            mbox.push_str(&format!("{SEP}{header}\n{written}\n"));
            want.push(format!("{header}\n{body}"));
        }
        if crlf {
            mbox = mbox.replace('\n', "\r\n");
            want.iter_mut().for_each(|m| *m = m.replace('\n', "\r\n"));
        }
        let mut scanner = Scanner::new(mbox.as_bytes(), block, 1 << 20);
        let mut got = Vec::new();
        while let Some(found) = scanner.next() {
            match found {
                Found::Entry { raw, separator_ms, .. } => {
                    prop_assert_eq!(separator_ms, Some(SEP_MS));
                    got.push(String::from_utf8(raw).unwrap());
                }
                Found::Failure { reason, .. } => prop_assert!(false, "{}", reason),
            }
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn a_cap_refuses_exactly_the_larger_messages(
        all in prop::collection::vec(lines(), 1..8),
        cap in 0usize..200,
        block in 1usize..100,
    ) {
        let (mut mbox, mut want) = (String::new(), Vec::new());
        for (n, lines) in all.iter().enumerate() {
            let (header, body) = message(lines, n, Dialect::Mboxrd);
            let written = format!("{header}\n{}", quote(&body, Dialect::Mboxrd));
            mbox.push_str(&format!("{SEP}{written}\n"));
            want.push((written.len() > cap).then_some(written.len() as u64));
        }
        let mut scanner = Scanner::new(mbox.as_bytes(), block, cap);
        let got: Vec<_> = std::iter::from_fn(|| scanner.next())
            .map(|found| match found {
                Found::Failure { reason: FailureReason::TooLarge { bytes, .. }, .. } => Some(bytes),
                _ => None,
            })
            .collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn noise_never_panics_and_loses_no_byte_count(
        noise in prop::collection::vec(prop_oneof![
            Just(SEP.to_owned()), Just("\n".to_owned()), Just("\r\n".to_owned()),
            Just("From ".to_owned()), Just("A: b\n".to_owned()), "\\PC{0,5}",
            Just("Content-Length: 20\n".to_owned()),
        ], 0..40),
        block in 1usize..50,
    ) {
        let mbox = noise.concat();
        let run = |block| {
            let mut scanner = Scanner::new(mbox.as_bytes(), block, 1 << 20);
            std::iter::from_fn(|| scanner.next()).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(block), run(1 << 16));
    }
}
