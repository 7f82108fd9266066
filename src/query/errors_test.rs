//! Every row of the error table: place, expectation, what was found, remedy.

use super::*;

const NAMES: &str = "operator name (from, to, participant, subject, ref, label, has, filename, \
    type, after, before, newer_than, older_than, in, thread, is, category, cc, bcc, deliveredto, \
    list, size, larger, smaller, rfc822msgid, folder, source, lang) or quoted text";
const DATE: &str = "date as YYYY-MM-DD, YYYY/MM/DD or RFC 3339";
const DURATION: &str = "duration as <n>h, <n>d, <n>w, <n>m or <n>y";
const SHORTER: &str = "shorter query (max 1024 characters, 32 terms, depth 8)";
const SIZE: &str = "size as <n>, <n>k, <n>m or <n>g";

fn refuse(q: &str) -> QueryError {
    match parse(q, &ParseOptions::default()) {
        Err(error) => error,
        Ok(query) => panic!("{q} was read as {query}"),
    }
}

type Row<'a> = (&'a str, Fault, u32, &'a str, Option<&'a str>, Option<&'a str>);

fn check(rows: &[Row<'_>]) {
    for &(q, fault, position, expected, found, suggestion) in rows {
        let error = refuse(q);
        assert_eq!(error.fault, fault, "{q}");
        assert_eq!(error.position, position, "{q}");
        assert_eq!(error.expected, expected, "{q}");
        assert_eq!(error.found.as_deref(), found, "{q}");
        assert_eq!(error.suggestion.as_deref(), suggestion, "{q}");
    }
}

#[test]
fn quote_not_closed() {
    let fault = Fault::OpenQuote;
    check(&[
        ("a \"b c", fault, 2, "closing '\"'", Some("\"b c"), Some("\"b c\"")),
        ("\"a\\\"", fault, 0, "closing '\"'", Some("\"a\\\""), Some("\"a\\\"\"")),
        ("from:\"jo", fault, 5, "closing '\"'", Some("\"jo"), Some("\"jo\"")),
        ("\"", fault, 0, "closing '\"'", Some("\""), None),
    ]);
}

#[test]
fn unknown_operator() {
    let fault = Fault::UnknownOperator;
    check(&[
        ("x frm:jo", fault, 2, NAMES, Some("frm:jo"), Some("from:jo")),
        ("-Sender:jo", fault, 1, NAMES, Some("Sender:jo"), Some("from:jo")),
        (
            "https://a.example",
            fault,
            0,
            NAMES,
            Some("https://a.example"),
            Some("\"https://a.example\""),
        ),
        ("header:X=1", fault, 0, NAMES, Some("header:X=1"), Some("\"header:X=1\"")),
        ("Re: hello", fault, 0, NAMES, Some("Re:"), Some("\"Re:\"")),
        ("(foo_bar:\"a b\")", fault, 1, NAMES, Some("foo_bar:\"a"), Some("\"foo_bar:a b\"")),
    ]);
}

#[test]
fn empty_value() {
    let fault = Fault::EmptyValue;
    let value = "operator value";
    check(&[
        ("from:", fault, 5, value, None, None),
        ("from: jo", fault, 5, value, Some(" jo"), Some("from:jo")),
        ("a subject:", fault, 10, value, None, None),
        ("subject:\"\"", fault, 8, value, Some("\"\""), None),
        ("folder:\" \"", fault, 7, value, Some("\" \""), None),
        ("from:(a OR b)", fault, 5, value, Some("(a"), Some("(from:a OR from:b)")),
        ("(from:)", fault, 6, value, Some(")"), None),
        ("ref:--", fault, 4, value, Some("--"), None),
        ("from:<>", fault, 5, value, Some("<>"), None),
    ]);
}

#[test]
fn bad_enumeration() {
    let fault = Fault::BadValue;
    let places = "inbound, outbound, anywhere, junk, trash or spam";
    let states = "unread, read, needs_reply, quarantined, starred, encrypted, signed or list";
    let has = "attachment, link or invite";
    check(&[
        ("in:inbuond", fault, 3, places, Some("inbuond"), Some("in:inbound")),
        ("in:inbox", fault, 3, places, Some("inbox"), Some("folder:inbox")),
        ("in:zzz", fault, 3, places, Some("zzz"), None),
        ("is:unred", fault, 3, states, Some("unred"), Some("is:unread")),
        ("is:needs-reply", fault, 3, states, Some("needs-reply"), Some("is:needs_reply")),
        ("is:flagged", fault, 3, states, Some("flagged"), Some("is:starred")),
        ("has:attachments", fault, 4, has, Some("attachments"), Some("has:attachment")),
        ("has:pdf", fault, 4, has, Some("pdf"), Some("type:pdf")),
    ]);
    let types = "attachment type (pdf, doc, sheet, slides, image, archive, ics, eml, text, html, \
        audio, video, other) or MIME type";
    check(&[
        ("type:pfd", fault, 5, types, Some("pfd"), Some("type:pdf")),
        ("type:image/*", fault, 5, types, Some("image/*"), Some("type:image")),
        ("type:.docx", fault, 5, types, Some(".docx"), Some("type:docx")),
        ("type:a/b/c", fault, 5, types, Some("a/b/c"), None),
    ]);
}

#[test]
fn bad_date_and_bad_duration() {
    let fault = Fault::BadValue;
    check(&[
        ("after:01/02/2026", fault, 6, DATE, Some("01/02/2026"), None),
        ("after:2026-02-30", fault, 6, DATE, Some("2026-02-30"), None),
        ("before:2026-9-1", fault, 7, DATE, Some("2026-9-1"), Some("before:2026-09-01")),
        ("after:7d", fault, 6, DATE, Some("7d"), Some("newer_than:7d")),
        ("after:2026-09-01T10:00", fault, 6, DATE, Some("2026-09-01T10:00"), None),
        ("after:\"next week\"", fault, 6, DATE, Some("\"next week\""), None),
        ("newer_than:soon", fault, 11, DURATION, Some("soon"), None),
        ("newer_than:0d", fault, 11, DURATION, Some("0d"), None),
        ("newer_than:-1d", fault, 11, DURATION, Some("-1d"), None),
        ("newer_than:87601h", fault, 11, DURATION, Some("87601h"), Some("newer_than:87600h")),
        ("newer_than:3651d", fault, 11, DURATION, Some("3651d"), Some("newer_than:3650d")),
        ("older_than:521w", fault, 11, DURATION, Some("521w"), Some("older_than:520w")),
        ("older_than:121m", fault, 11, DURATION, Some("121m"), Some("older_than:120m")),
        ("older_than:11y", fault, 11, DURATION, Some("11y"), Some("older_than:10y")),
        (
            "older_than:2026-01-01",
            fault,
            11,
            DURATION,
            Some("2026-01-01"),
            Some("before:2026-01-01"),
        ),
    ]);
}

#[test]
fn bad_thread_category_label_and_message_id() {
    let fault = Fault::BadValue;
    let categories = "category: one of customer_request, vendor, billing, legal_compliance, \
        verification, notification, newsletter, marketing, auto_reply, personal, spam, other";
    let label = "label of letters, digits, '_', ':' and '-' (at most 64)";
    let id = "Message-ID (local@domain)";
    check(&[
        (
            "thread:msg_01J9Z3K8V4QW7X2M5N6P8R0T1V",
            fault,
            7,
            "thread ID (thr_…)",
            Some("msg_01J9Z3K8V4QW7X2M5N6P8R0T1V"),
            None,
        ),
        ("thread:thr_1", fault, 7, "thread ID (thr_…)", Some("thr_1"), None),
        ("category:biling", fault, 9, categories, Some("biling"), Some("category:billing")),
        ("category:travel", fault, 9, categories, Some("travel"), None),
        ("label:\"Big Deal\"", fault, 6, label, Some("\"Big Deal\""), Some("label:big-deal")),
        ("label:_x", fault, 6, label, Some("_x"), None),
        ("rfc822msgid:abc", fault, 12, id, Some("abc"), None),
    ]);
    assert_eq!(refuse(&format!("label:{}", "x".repeat(65))).found, Some("x".repeat(32)));
}

#[test]
fn bad_size_and_language() {
    let fault = Fault::BadValue;
    let lang = "two-letter language code (ISO 639-1)";
    check(&[
        ("larger:10MB", fault, 7, SIZE, Some("10MB"), Some("larger:10m")),
        ("size:\"5 mib\"", fault, 5, SIZE, Some("\"5 mib\""), Some("size:5m")),
        ("smaller:big", fault, 8, SIZE, Some("big"), None),
        ("smaller:1.5m", fault, 8, SIZE, Some("1.5m"), None),
        ("larger:99999999999999999999", fault, 7, SIZE, Some("99999999999999999999"), None),
        ("larger:99999999999g", fault, 7, SIZE, Some("99999999999g"), None),
        ("lang:german", fault, 5, lang, Some("german"), Some("lang:de")),
        ("lang:de-AT", fault, 5, lang, Some("de-AT"), Some("lang:de")),
        ("lang:xx", fault, 5, lang, Some("xx"), None),
    ]);
}

#[test]
fn bracket_not_balanced() {
    check(&[
        ("(a b", Fault::Bracket, 4, "')'", None, None),
        ("((a) ", Fault::Bracket, 5, "')'", None, None),
        ("a)", Fault::Bracket, 1, "term", Some(")"), None),
        (") a", Fault::NoTerm, 0, "term", Some(")"), None),
        ("()", Fault::NoTerm, 1, "term", Some(")"), None),
        ("(", Fault::NoTerm, 1, "term", None, None),
    ]);
}

#[test]
fn dangling_or_and_minus() {
    let fault = Fault::NoTerm;
    check(&[
        ("a OR", fault, 4, "term", None, None),
        ("a OR ", fault, 5, "term", None, None),
        ("OR a", fault, 0, "term", Some("OR"), None),
        ("OR", fault, 0, "term", Some("OR"), None),
        ("a OR OR b", fault, 5, "term", Some("OR"), None),
        ("(a OR )", fault, 6, "term", Some(")"), None),
        ("a -", fault, 3, "term", None, None),
        ("- a", fault, 1, "term", Some(" a"), None),
        ("--a", fault, 1, "term", Some("-a"), None),
        ("-OR", fault, 1, "term", Some("OR"), None),
        ("a \"\"", fault, 2, "term", Some("\"\""), None),
    ]);
}

#[test]
fn parts_that_touch() {
    let fault = Fault::NoSpace;
    check(&[
        ("a\"b\"", fault, 1, "space", Some("\"b\""), Some("\"a\\\"b\\\"\"")),
        ("x main()", fault, 6, "space", Some("()"), Some("\"main()\"")),
        ("-main()", fault, 5, "space", Some("()"), Some("-\"main()\"")),
        ("folder:Sent(2)", fault, 11, "space", Some("(2)"), Some("folder:\"Sent(2)\"")),
        ("\"a\"b", fault, 3, "space", Some("b"), None),
        ("(a)(b)", fault, 3, "space", Some("(b)"), None),
        ("a OR(b)", fault, 4, "space", Some("(b)"), Some("\"OR(b)\"")),
        ("from:\"jo\"~2", fault, 9, "space", Some("~2"), None),
    ]);
}

#[test]
fn short_prefix_and_bad_distance() {
    let prefix = "at least 2 characters before '*'";
    let distance = "distance as ~<n> (0 to 100)";
    check(&[
        ("*", Fault::ShortPrefix, 0, prefix, Some("*"), None),
        ("b a*", Fault::ShortPrefix, 2, prefix, Some("a*"), Some("a")),
        ("subject:a*", Fault::ShortPrefix, 8, prefix, Some("a*"), Some("subject:a")),
        ("\"a b\"~", Fault::BadDistance, 6, distance, None, None),
        ("\"a b\"~x", Fault::BadDistance, 6, distance, Some("x"), None),
        ("\"a b\"~101", Fault::BadDistance, 6, distance, Some("101"), Some("100")),
        ("\"a b\"~99999999999", Fault::BadDistance, 6, distance, Some("99999999999"), Some("100")),
    ]);
}

#[test]
fn over_the_limits() {
    let fault = Fault::TooLarge;
    let long = "é".repeat(1_025);
    let many = "a ".repeat(33);
    let deep = format!("{}a{}", "(".repeat(9), ")".repeat(9));
    check(&[
        (&long, fault, 1_024, SHORTER, Some("é"), None),
        (&many, fault, 64, SHORTER, Some("a"), None),
        (&deep, fault, 8, SHORTER, Some("(a)))))))))"), None),
    ]);
    assert_eq!(refuse(&"x".repeat(100_000)).found, Some("x".repeat(32)));
}

#[test]
fn semantic_without_free_text() {
    let error = QueryError::no_free_text();
    assert_eq!((error.position, error.found.clone()), (0, None));
    assert_eq!(
        error.to_string(),
        "no free text at position 0: expected free text for semantic search"
    );
}

#[test]
fn the_message_names_place_and_remedy_and_the_redacted_one_nothing_typed() {
    let error = refuse("is:unred");
    assert_eq!(
        error.to_string(),
        "value not understood at position 3: expected unread, read, needs_reply, quarantined, \
         starred, encrypted, signed or list, found unred; try is:unread"
    );
    assert_eq!(
        error.redacted().to_string(),
        "value not understood at position 3: expected unread, read, needs_reply, quarantined, \
         starred, encrypted, signed or list"
    );
    assert!(refuse("is:\u{1b}[31m").to_string().contains("found \u{fffd}[31m"));
    assert!(refuse("(a").to_string().ends_with("found the end of the query"));
}
