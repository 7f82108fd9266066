//! What holds for every text and every tree.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::string::string_regex;

use super::error::FOUND_CHARS_MAX;
use super::operators::Op;
use super::parse::{DEPTH_MAX, LEAVES_MAX, QUERY_CHARS_MAX};
use super::tree::Span;
use super::*;

/// Texts in the neighbourhood of the language: parts of it in any order, and any characters.
fn near_queries() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = Op::ALL.iter().map(|op| op.name()).collect();
    let pieces = prop_oneof![
        3 => Just(" ".to_owned()),
        1 => proptest::sample::select(names).prop_map(|name| format!("{name}:")),
        1 => proptest::sample::select(vec![
            "(", ")", "\"", "-", "*", "OR", " OR ", "~", "\\", "\\\"", ":", "~3", "@", "<", ">",
            "unread", "junk", "inbound", "attachment", "pdf", "a/b", "2026-09-01", "7d", "10m",
            "2026-09-01T10:00:00Z", "jo@example.net", "@bücher.example", "example.org", "de",
            "billing", "thr_01J9Z3K8V4QW7X2M5N6P8R0T1V", "<a@b>", "İ", "ΑΣ", "ｆ", "\u{fdfa}",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z]{1,4}",
    ];
    proptest::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// One leaf that can be typed, from a text that the parser takes.
fn leaf() -> impl Strategy<Value = String> {
    let word = || string_regex("[\\p{L}\\p{N}][\\p{L}\\p{N}'./+-]{0,7}").expect("pattern");
    let words = || string_regex("[\\p{L}\\p{N}\"\\\\() -]{0,7}\\p{L}").expect("pattern");
    let quoted = move || words().prop_map(|text| print::quoted(&text));
    let value = move || prop_oneof![word(), quoted()];
    let addressed = proptest::sample::select(vec![
        "from",
        "to",
        "participant",
        "cc",
        "bcc",
        "deliveredto",
        "filename",
        "folder",
        "source",
        "list",
        "ref",
        "subject",
    ]);
    let closed = proptest::sample::select(vec![
        "is:unread",
        "is:read",
        "is:needs_reply",
        "has:link",
        "in:spam",
        "in:anywhere",
        "in:outbound",
        "type:word",
        "type:image/png",
        "category:billing",
        "lang:de",
        "after:2026-01-31",
        "before:2026/01/31",
        "after:2026-01-31T00:00:00.25+01:00",
        "newer_than:3w",
        "older_than:1y",
        "size:3k",
        "smaller:1g",
        "rfc822msgid:<A.b@C>",
        "label:x:y",
        "from:@localhost",
        "to:jo@bücher.example",
        "inv*",
        "subject:inv*",
        "\"a b\"~4",
        "thread:thr_01J9Z3K8V4QW7X2M5N6P8R0T1V",
    ]);
    prop_oneof![
        word().prop_filter("not the operator", |text| text != "OR"),
        quoted(),
        (addressed, value()).prop_map(|(op, value)| format!("{op}:{value}")),
        closed.prop_map(str::to_owned),
    ]
}

/// A tree of such leaves, bounded like a query.
fn tree() -> impl Strategy<Value = Expr> {
    let leaf = leaf().prop_filter_map("a leaf", |text| {
        parse(&text, &ParseOptions::default()).ok().and_then(|query| query.root)
    });
    let depth = u32::try_from(DEPTH_MAX).expect("small");
    leaf.prop_recursive(depth, 24, 4, |inner| {
        let several = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several().prop_filter_map("operands", Expr::and),
            several().prop_filter_map("operands", Expr::or),
            inner.clone().prop_map(Expr::negate),
        ]
    })
}

/// Reads, prints and reads again.
fn check(q: &str) -> Result<(), TestCaseError> {
    let options = ParseOptions::default();
    match parse(q, &options) {
        Ok(query) => {
            let zone = TimeZone::get("Europe/Berlin").expect("zone");
            let printed = query.to_string();
            prop_assert_eq!(&resolve(&query, &zone, 1_780_000_000_000).to_string(), &printed);
            if printed.chars().count() <= QUERY_CHARS_MAX {
                let again = parse(&printed, &options)
                    .map_err(|error| TestCaseError::fail(format!("{printed}: {error}")))?;
                prop_assert_eq!(again.to_string(), printed);
                prop_assert_eq!(again.without_spans(), query.without_spans());
            }
        }
        Err(error) => {
            let length = q.chars().count();
            prop_assert!(error.position as usize <= length);
            let found = error.found.as_deref().unwrap_or_default();
            prop_assert!(found.chars().count() <= FOUND_CHARS_MAX);
            let rest: String = q.chars().skip(error.position as usize).collect();
            prop_assert!(rest.starts_with(found), "{} in {}", found, q);
            prop_assert_eq!(error.found.is_none(), rest.is_empty());
            let redacted = error.redacted().to_string();
            prop_assert!(error.to_string().starts_with(&redacted));
        }
    }
    Ok(())
}

fn leaves_of(expr: &Expr) -> usize {
    match expr {
        Expr::And(children) | Expr::Or(children) => children.iter().map(leaves_of).sum(),
        Expr::Not(inner) => leaves_of(inner),
        Expr::Text(_) | Expr::Filter(_) => 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn any_text_is_read_or_refused(q in any::<String>()) {
        check(&q)?;
    }

    #[test]
    fn any_text_near_the_language_is_read_or_refused(q in near_queries()) {
        check(&q)?;
    }

    #[test]
    fn any_value_of_any_operator_is_read_or_refused(
        op in proptest::sample::select(Op::ALL.to_vec()),
        value in any::<String>(),
    ) {
        check(&format!("{}:{value}", op.name()))?;
        check(&format!("{}:{}", op.name(), print::quoted(&value)))?;
    }

    #[test]
    fn what_is_printed_reads_as_the_same_tree(root in tree()) {
        let query = Query { root: Some(root), source_chars: 0 }.without_spans();
        let printed = query.to_string();
        prop_assume!(query.root.as_ref().map_or(0, leaves_of) <= LEAVES_MAX);
        prop_assume!(printed.chars().count() <= QUERY_CHARS_MAX);
        match parse(&printed, &ParseOptions::default()) {
            Ok(again) => {
                prop_assert_eq!(again.to_string(), printed);
                prop_assert_eq!(again.without_spans(), query);
            }
            // A tree may be deeper than a text may nest.
            Err(error) => prop_assert_eq!(error.fault, Fault::TooLarge, "{}", printed),
        }
    }

    #[test]
    fn spans_lie_in_the_text_and_in_order(q in near_queries()) {
        if let Ok(query) = parse(&q, &ParseOptions::default()) {
            let spans: Vec<Span> =
                leaves::positive_text(&query).iter().map(|leaf| leaf.span).collect();
            prop_assert!(spans.iter().all(|span| span.start < span.end));
            prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(spans.last().is_none_or(|span| span.end <= query.source_chars));
        }
    }

    #[test]
    fn folding_twice_changes_nothing(name in any::<String>()) {
        let folded = fold_name(&name);
        prop_assert_eq!(fold_name(&folded), folded);
    }
}
