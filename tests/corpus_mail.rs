//! Real mail, read whole: every corpus found under `POSTRIDER_CORPORA`.
//!
//! The corpora are never part of the repository. Without the variable the test says that it saw none;
//! with it, seeing no file is a failure. Each message must keep its text or an attachment, and
//! `meta.tsv` (an independent reading by Python's `email`) must agree but for the kinds listed here.

#![expect(clippy::print_stdout, reason = "a corpus test reports what it saw")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use postrider::mail::{Message, ReadHints, address_normal, message_id_normal, read};

/// Disagreements with `meta.tsv` that are explained, by kind: how many of 6,046 messages may show
/// them. Ours to mend if a number is exceeded.
const EXPLAINED: [(&str, usize); 10] = [
    // Raw 8-bit bytes, which the oracle replaces and we read by the charset of the body, by what they
    // look like, as windows-1252, or as UTF-8.
    ("subject differs, raw bytes", 35),
    // A word with a raw `_` in Big5 and a windows-1252 byte under a Latin-1 label: ours decodes.
    ("subject differs", 2),
    // PM and AM, `GMT+1`, `+-0500`, `01800`: the oracle leaves out what it does not know.
    ("date differs", 26),
    // More than a day after the receipt (wrong clocks, spam): not believed.
    ("date not believed", 24),
    // `2002/09/14 Sat 02:29:32 CDT`: the oracle reads no date.
    ("date only ours", 2),
    // Raw Big5 bytes in the local part, replaced by the oracle.
    ("from differs", 5),
    // Two signs in one address: the oracle gives the address up.
    ("from only ours", 5),
    // RFC 822 prose with an address in `<>` before the identifier: the oracle takes the address.
    ("in-reply-to differs", 82),
    // The same with a comment in between, and an identifier without `<>`.
    ("in-reply-to only ours", 2),
    // X.400 names and spam: quoted or odd identifiers that the oracle gives up.
    ("message id only ours", 17),
];
/// Attachments where the oracle's names and our facts differ, by kind.
const ATTACHMENTS_EXPLAINED: [(&str, usize); 9] = [
    // Three uuencoded files in a text, and a nested message, whose name the oracle does not ask for.
    ("name only ours", 4),
    // A signature inside a nested message (a line of its text with us), and a body with a file name.
    ("name only theirs", 2),
    // OpenPGP signatures sent as inline.
    ("named, by neither", 5),
    // 43 pictures of multipart/related, 4 signatures.
    ("named, not by class", 47),
    // Patches and pictures to be shown in the text.
    ("named, not by disposition", 6),
    // Nested messages, headers of bounced ones, TNEF.
    ("nameless, by both", 6),
    // Nested messages sent as inline.
    ("nameless, by class", 2),
    // OpenPGP signatures.
    ("nameless, by disposition", 62),
    // 34 inline OpenPGP signatures, 10 HTML bodies that show no text.
    ("nameless, by neither", 44),
];
/// Messages whose parts are all empty on purpose: nothing in, nothing out.
const EMPTY_ON_PURPOSE: [&str; 7] = [
    "cpython__Lib_test_test_email_data_msg_08",
    "cpython__Lib_test_test_email_data_msg_09",
    "cpython__Lib_test_test_email_data_msg_12",
    "cpython__Lib_test_test_email_data_msg_24",
    "testmsgs_multipartemptypart",
    "testmsgs_multipartnestedemptyparts",
    "stalwart-mail-parser__eml_malformed_000",
];

#[test]
fn every_message_of_the_corpora_is_read() {
    let Some(root) = std::env::var_os("POSTRIDER_CORPORA").map(PathBuf::from) else {
        println!("no corpus was read: POSTRIDER_CORPORA is not set");
        return;
    };
    let mut files = Vec::new();
    walk(&root, &mut files);
    let mut seen = Seen::default();
    for file in &files {
        let bytes = fs::read(file).unwrap();
        let name = file.display().to_string();
        match file.extension().and_then(|e| e.to_str()) {
            Some("eml") => seen.message(&name, &bytes),
            Some("mbox" | "txt") => {
                for (i, message) in entries(&bytes).into_iter().enumerate() {
                    seen.message(&format!("{name}#{i}"), message);
                }
            }
            _ => {}
        }
    }
    seen.report();
    assert!(seen.messages > 0, "POSTRIDER_CORPORA is set, but no message was found in it");
    assert!(seen.emptied.is_empty(), "reduced to nothing: {:#?}", seen.emptied);
}

#[test]
fn the_oracle_agrees() {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let rows = oracle(|file, columns, message| {
        for (kind, detail) in disagreements(message, columns) {
            found.entry(kind).or_default().push(format!("{file}: {detail}"));
        }
    });
    judge(&found, &EXPLAINED, rows);
}

/// Hands each row of `meta.tsv` and our reading of its file to `compare`; how many there were.
fn oracle(mut compare: impl FnMut(&str, &[&str], &Message)) -> usize {
    let Some(root) = std::env::var_os("POSTRIDER_CORPORA").map(PathBuf::from) else {
        println!("no oracle was read: POSTRIDER_CORPORA is not set");
        return 0;
    };
    let base = root.join("spamassassin");
    let Ok(meta) = fs::read(base.join("meta.tsv")) else {
        println!("no oracle was read: there is no spamassassin/meta.tsv");
        return 0;
    };
    let meta = String::from_utf8_lossy(&meta).into_owned();
    let mut rows = 0;
    for line in meta.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [file, _, _, _, _, _, _, _, _, _] = columns.as_slice() else { continue };
        let Ok(bytes) = fs::read(base.join(file)) else { continue };
        rows += 1;
        compare(file, &columns, &read(&bytes, &ReadHints::default()));
    }
    assert!(rows > 0, "meta.tsv names no file that exists");
    rows
}

/// Prints the disagreements and fails when a kind is more frequent than explained.
fn judge(found: &BTreeMap<&str, Vec<String>>, explained: &[(&str, usize)], rows: usize) {
    let mut exceeded = Vec::new();
    for (kind, examples) in found {
        let allowed = explained.iter().find(|(k, _)| k == kind).map_or(0, |(_, n)| *n);
        println!("{kind}: {} in {rows} messages (explained: {allowed})", examples.len());
        if std::env::var_os("POSTRIDER_CORPORA_VERBOSE").is_some() {
            examples.iter().for_each(|e| println!("    {e}"));
        }
        if examples.len() > allowed {
            exceeded.push((kind, examples.iter().take(5).collect::<Vec<_>>()));
        }
    }
    assert!(exceeded.is_empty(), "more disagreements than explained: {exceeded:#?}");
}

/// Attachment names against `meta.tsv` (whatever the oracle finds a file name on), and what the two
/// facts say about them. Its `parts` counts multiparts too, which a [`Message`] does not keep.
#[test]
fn the_attachments_agree() {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let mut same = 0;
    let rows = oracle(|file, columns, message| {
        let mut theirs: Vec<&str> = columns[8].split('|').filter(|n| !n.is_empty()).collect();
        let mut kind = |kind, detail: String| {
            found.entry(kind).or_default().push(format!("{file}: {detail}"));
        };
        for ours in &message.attachments {
            let base = |name: &str| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            let known = theirs.iter().position(|t| base(t) == ours.filename);
            let named = known.map(|at| theirs.remove(at)).is_some();
            let detail = format!("{:?} {}", ours.filename, ours.content_type);
            match (named, ours.by_disposition, ours.by_mime_class) {
                (true, true, true) => same += 1,
                (true, false, true) => kind("named, not by disposition", detail),
                (true, true, false) => kind("named, not by class", detail),
                (true, false, false) => kind("named, by neither", detail),
                (false, ..) if !ours.filename.is_empty() => kind("name only ours", detail),
                (false, true, true) => kind("nameless, by both", detail),
                (false, true, false) => kind("nameless, by disposition", detail),
                (false, false, true) => kind("nameless, by class", detail),
                (false, false, false) => kind("nameless, by neither", detail),
            }
        }
        theirs.iter().for_each(|name| kind("name only theirs", (*name).to_owned()));
    });
    println!("attachments by name, disposition and class: {same}");
    judge(&found, &ATTACHMENTS_EXPLAINED, rows);
}

/// Languages against `lang.tsv` (another detector): of the messages where both name one, at least 98
/// in 100 agree; at least 90 in 100 get a language at all where the other is sure.
#[test]
fn the_languages_agree() {
    let Some(root) = std::env::var_os("POSTRIDER_CORPORA").map(PathBuf::from) else {
        println!("no languages were read: POSTRIDER_CORPORA is not set");
        return;
    };
    let base = root.join("spamassassin");
    let Ok(table) = fs::read_to_string(base.join("lang.tsv")) else {
        println!("no languages were read: there is no spamassassin/lang.tsv");
        return;
    };
    let (mut same, mut other, mut none) = (0, 0, 0);
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [file, theirs, sure, ..] = columns.as_slice() else { continue };
        let Ok(bytes) = fs::read(base.join(file)) else { continue };
        if *theirs == "-" || sure.parse::<f32>().is_ok_and(|s| s < 0.9) {
            continue;
        }
        match read(&bytes, &ReadHints::default()).language {
            Some(ours) if ours == *theirs => same += 1,
            Some(ours) => {
                other += 1;
                if std::env::var_os("POSTRIDER_CORPORA_VERBOSE").is_some() {
                    println!("    {file}: {ours}, not {theirs}");
                }
            }
            None => none += 1,
        }
    }
    println!("languages: {same} agree, {other} differ, {none} without one");
    assert!(same > 0, "lang.tsv names no file that exists");
    assert!(other * 50 <= same, "{other} of {same} languages differ");
    assert!(none * 10 <= same, "{none} messages without a language");
}

/// Where our reading differs from the oracle's, by kind.
fn disagreements(m: &Message, columns: &[&str]) -> Vec<(&'static str, String)> {
    let [_, _, date, from, subject, id, reply, ..] = *columns else { return Vec::new() };
    let mut out = Vec::new();
    let oracle_ms = instant(date);
    match (m.sent_ms, oracle_ms) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            out.push(("date differs", format!("{ours} {date}")));
        }
        (None, Some(_)) => out.push(("date not believed", date.to_owned())),
        (Some(ours), None) => out.push(("date only ours", format!("{ours} {date}"))),
        _ => {}
    }
    let ours = m.from.first().map(|a| a.address.clone()).unwrap_or_default();
    if ours != address_normal(from).unwrap_or_default() {
        let kind = if from.is_empty() { "from only ours" } else { "from differs" };
        out.push((kind, format!("{ours:?} {from:?}")));
    }
    let collapse = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    if collapse(&m.subject) != collapse(subject) {
        let kind = if subject.contains('\u{FFFD}') {
            "subject differs, raw bytes"
        } else {
            "subject differs"
        };
        out.push((kind, format!("{:?} {subject:?}", m.subject)));
    }
    let theirs = message_id_normal(id);
    if !m.message_id_synthetic && theirs.is_none() {
        out.push(("message id only ours", format!("{:?} {id:?}", m.message_id)));
    } else if m.message_id_synthetic && theirs.is_some() {
        out.push(("message id only theirs", id.to_owned()));
    } else if let Some(theirs) = theirs
        && theirs != m.message_id
    {
        out.push(("message id differs", format!("{:?} {id:?}", m.message_id)));
    }
    let theirs = message_id_normal(reply);
    match (m.in_reply_to.first(), &theirs) {
        (None, None) => {}
        (Some(ours), Some(theirs)) if ours == theirs => {}
        (Some(ours), None) => out.push(("in-reply-to only ours", format!("{ours:?} {reply:?}"))),
        (None, Some(_)) => out.push(("in-reply-to only theirs", reply.to_owned())),
        (Some(ours), Some(theirs)) => {
            out.push(("in-reply-to differs", format!("{ours:?} {theirs:?}")));
        }
    }
    out
}

/// `2002-08-22T11:26:25Z` → unix ms.
fn instant(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

#[derive(Default)]
struct Seen {
    messages: usize,
    bytes: u64,
    nanos: u128,
    /// Messages without HTML: how many, and their time.
    plain: (u128, u128),
    slowest: (u128, String),
    emptied: Vec<String>,
    defects: BTreeMap<String, usize>,
    with_new_text: usize,
    languages: BTreeMap<&'static str, usize>,
}

impl Seen {
    fn message(&mut self, name: &str, raw: &[u8]) {
        // Best of several when figures are wanted: other processes must not count.
        let times = if std::env::var_os("POSTRIDER_CORPORA_VERBOSE").is_some() { 5 } else { 1 };
        let mut nanos = u128::MAX;
        let mut message = Message::default();
        for _ in 0..times {
            let started = Instant::now();
            message = read(raw, &ReadHints::default());
            nanos = nanos.min(started.elapsed().as_nanos());
        }
        self.messages += 1;
        self.bytes += raw.len() as u64;
        self.nanos += nanos;
        if !message.text_from_html && message.attachments.is_empty() {
            self.plain = (self.plain.0 + 1, self.plain.1 + nanos);
        }
        if nanos > self.slowest.0 {
            self.slowest = (nanos, format!("{name} ({} bytes)", raw.len()));
        }
        for defect in &message.defects {
            *self.defects.entry(format!("{:?}", defect.kind)).or_default() += 1;
        }
        let mut end = 0;
        for range in &message.new_ranges {
            assert!(range.start >= end && range.start < range.end, "{name}: ranges out of order");
            assert!(
                message.text.get(range.start as usize..range.end as usize).is_some(),
                "{name}: range off"
            );
            end = range.end;
        }
        self.with_new_text += usize::from(message.new_text().chars().any(char::is_alphanumeric));
        *self.languages.entry(message.language.unwrap_or("-")).or_default() += 1;
        let nothing = message.text.trim().is_empty() && message.attachments.is_empty();
        let on_purpose = EMPTY_ON_PURPOSE.iter().any(|n| name.contains(n));
        if nothing && !on_purpose && body_of(raw).iter().any(u8::is_ascii_alphanumeric) {
            self.emptied.push(name.to_owned());
        }
    }

    fn report(&self) {
        let messages = self.messages.max(1) as u128;
        println!(
            "{} messages, {} MB, {} µs each ({} plain ones: {} µs each), slowest {} µs: {}",
            self.messages,
            self.bytes / 1_000_000,
            self.nanos / 1000 / messages,
            self.plain.0,
            self.plain.1 / 1000 / self.plain.0.max(1),
            self.slowest.0 / 1000,
            self.slowest.1
        );
        println!(
            "with new text: {}; defects: {:?}; languages: {:?}",
            self.with_new_text, self.defects, self.languages
        );
    }
}

/// What follows the first empty line.
fn body_of(raw: &[u8]) -> &[u8] {
    let text_at = |needle: &[u8]| {
        raw.windows(needle.len()).position(|w| w == needle).map(|i| i + needle.len())
    };
    let at = [text_at(b"\n\n"), text_at(b"\r\n\r\n"), text_at(b"\r\r")].into_iter().flatten().min();
    at.map_or(&[], |at| &raw[at..])
}

/// A simple cut of an mbox at its separator lines; `sources` has the real one.
fn entries(bytes: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        if line.starts_with(b"From ") && line.iter().filter(|b| **b == b':').count() >= 2 {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(bytes.len());
    starts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}
