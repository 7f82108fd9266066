//! Structure, precedence and every operator, through parsing and canonical text.

use super::tree::{
    AddrMatch, DateBound, DateFilter, Direction, DurUnit, Has, Place, RefMatch, RelDuration, Span,
    State, TypeMatch,
};
use super::*;

fn read(q: &str) -> Query {
    parse(q, &ParseOptions::default()).unwrap_or_else(|error| panic!("{q}: {error}"))
}

fn canonical(q: &str) -> String {
    read(q).to_string()
}

fn filter(q: &str) -> Filter {
    match read(q).root {
        Some(Expr::Filter(filter)) => filter,
        other => panic!("{q}: {other:?}"),
    }
}

fn text(q: &str) -> TextLeaf {
    match read(q).root {
        Some(Expr::Text(leaf)) => leaf,
        other => panic!("{q}: {other:?}"),
    }
}

fn term(text: &str) -> TextKind {
    TextKind::Term { text: text.into(), prefix: false }
}

#[test]
fn an_empty_query_is_every_message() {
    for q in ["", " ", "\t\n\u{3000}"] {
        assert_eq!(read(q).root, None);
    }
    assert_eq!(canonical("  "), "");
    assert_eq!(read("  ").source_chars, 2);
}

#[test]
fn or_binds_tighter_than_side_by_side() {
    assert_eq!(canonical("a b OR c"), "a b OR c");
    let Some(Expr::And(parts)) = read("a b OR c").root else { panic!("conjunction") };
    assert!(
        matches!(parts.as_slice(), [Expr::Text(_), Expr::Or(alternatives)] if alternatives.len() == 2)
    );
    let Some(Expr::Or(parts)) = read("(a b) OR c").root else { panic!("alternative") };
    assert!(matches!(parts.as_slice(), [Expr::And(_), Expr::Text(_)]));
    assert_eq!(canonical("(a b) OR c"), "(a b) OR c");
    assert_eq!(canonical("a   OR  b\tOR\nc"), "a OR b OR c");
}

#[test]
fn needless_brackets_go_and_nesting_is_flat() {
    assert_eq!(canonical("((a))"), "a");
    assert_eq!(canonical("(a (b c)) d"), "a b c d");
    assert_eq!(canonical("(a OR (b OR c)) d"), "a OR b OR c d");
    assert_eq!(canonical("( a OR b )"), "a OR b");
    assert_eq!(canonical("-(a b)"), "-(a b)");
    assert_eq!(canonical("-(a OR b) c"), "-(a OR b) c");
    assert_eq!(canonical("a OR (b -(c d)) OR -e"), "a OR (b -(c d)) OR -e");
}

#[test]
fn a_second_negation_cancels_the_first() {
    assert_eq!(canonical("-(-a)"), "a");
    assert_eq!(canonical("-(-(-a))"), "-a");
    assert_eq!(canonical("x -(-(b c))"), "x b c");
}

#[test]
fn or_is_an_operator_only_alone_and_in_upper_case() {
    assert_eq!(canonical("a or b Or c"), "a or b Or c");
    assert_eq!(canonical("a ORder b"), "a ORder b");
    assert_eq!(canonical("a \"OR\" b"), "a \"OR\" b");
    assert_eq!(text("subject:OR").kind, term("OR"));
}

#[test]
fn tokens_that_only_resemble_operators_are_terms() {
    for q in ["10:30", ":x", "a1:b", "well-known", "x'y", "a*b", "~3", "\\", "C3:x", "é:x", "a.b/c"]
    {
        assert_eq!(text(q).kind, term(q), "{q}");
        assert_eq!(canonical(q), q);
    }
}

#[test]
fn prefixes_phrases_and_distances() {
    assert_eq!(text("inv*").kind, TextKind::Term { text: "inv".into(), prefix: true });
    assert_eq!(canonical("OR*"), "OR*", "was printed as a phrase");
    assert_eq!(text("ab**").kind, TextKind::Term { text: "ab*".into(), prefix: true });
    assert_eq!(text(r#""a \"b\" \\ \c ""#).kind, TextKind::Phrase(r#"a "b" \ \c "#.into()));
    assert_eq!(canonical(r#""\c""#), r#""\\c""#);
    assert_eq!(text("\"a b\"~5").kind, TextKind::Near { text: "a b".into(), distance: 5 });
    assert_eq!(canonical("\"a b\"~005"), "\"a b\"~5");
    assert_eq!(canonical("\"a b\"~0"), "\"a b\"");
    assert_eq!(canonical("\"a b\"~100"), "\"a b\"~100");
    assert_eq!(canonical("\"a b\" ~5"), "\"a b\" ~5");
}

#[test]
fn subject_takes_every_kind_of_text() {
    for (q, kind) in [
        ("subject:invoice", term("invoice")),
        ("SUBJECT:-x", term("-x")),
        ("subject:inv*", TextKind::Term { text: "inv".into(), prefix: true }),
        ("subject:\"late delivery\"", TextKind::Phrase("late delivery".into())),
        ("subject:\"a b\"~2", TextKind::Near { text: "a b".into(), distance: 2 }),
        ("subject:re:x", term("re:x")),
    ] {
        let leaf = text(q);
        assert_eq!((leaf.kind, leaf.field), (kind, TextField::Subject), "{q}");
        assert_eq!(canonical(q), q.replace("SUBJECT", "subject"));
    }
}

#[test]
fn spans_are_characters_and_cover_the_operator() {
    let query = read("é subject:\"b c\"  de*");
    let spans: Vec<Span> = leaves::positive_text(&query).iter().map(|leaf| leaf.span).collect();
    let span = |start, end| Span { start, end };
    assert_eq!(spans, [span(0, 1), span(2, 15), span(17, 20)]);
    assert_eq!(query.source_chars, 20);
}

#[test]
fn address_operators() {
    let domain = AddrMatch::Domain("brightwell.example".into());
    let exact = AddrMatch::Exact("jo@example.net".into());
    let fuzzy = AddrMatch::Fuzzy("jo rivera".into());
    assert_eq!(filter("FROM:Brightwell.example"), Filter::From(domain.clone()));
    assert_eq!(filter("to:@brightwell.example"), Filter::To(domain.clone()));
    assert_eq!(filter("participant:Jo@Example.net"), Filter::Participant(exact.clone()));
    assert_eq!(filter("cc:\"Jo Rivera\""), Filter::Cc(fuzzy));
    assert_eq!(filter("bcc:jo@example.net"), Filter::Bcc(exact.clone()));
    assert_eq!(filter("deliveredto:jo@example.net"), Filter::DeliveredTo(exact));
    assert_eq!(canonical("from:@Brightwell.Example"), "from:brightwell.example");
    assert_eq!(canonical("from:@localhost"), "from:@localhost");
    assert_eq!(canonical("from:\"Jo  Rivera\""), "from:\"jo rivera\"");
}

#[test]
fn enumerations() {
    for (q, expected, printed) in [
        ("has:Attachment", Filter::Has(Has::Attachment), "has:attachment"),
        ("has:link", Filter::Has(Has::Link), "has:link"),
        ("has:invite", Filter::Has(Has::Invite), "has:invite"),
        ("in:inbound", Filter::Direction(Direction::Inbound), "in:inbound"),
        ("in:OUTBOUND", Filter::Direction(Direction::Outbound), "in:outbound"),
        ("in:anywhere", Filter::Place(Place::Anywhere), "in:anywhere"),
        ("in:junk", Filter::Place(Place::Junk), "in:junk"),
        ("in:spam", Filter::Place(Place::Junk), "in:junk"),
        ("in:trash", Filter::Place(Place::Trash), "in:trash"),
        ("is:unread", Filter::Is(State::Unread), "is:unread"),
        ("is:read", Filter::Is(State::Read), "is:read"),
        ("is:needs_reply", Filter::Is(State::NeedsReply), "is:needs_reply"),
        ("is:quarantined", Filter::Is(State::Quarantined), "is:quarantined"),
        ("is:starred", Filter::Is(State::Starred), "is:starred"),
        ("is:encrypted", Filter::Is(State::Encrypted), "is:encrypted"),
        ("is:signed", Filter::Is(State::Signed), "is:signed"),
        ("is:\"list\"", Filter::Is(State::List), "is:list"),
        ("category:Billing", Filter::Category("billing".into()), "category:billing"),
        ("type:DOCX", Filter::Type(TypeMatch::Class(AttachmentClass::Doc)), "type:doc"),
        ("type:Image/PNG", Filter::Type(TypeMatch::Mime("image/png".into())), "type:image/png"),
    ] {
        assert_eq!(filter(q), expected, "{q}");
        assert_eq!(canonical(q), printed, "{q}");
    }
    assert!(matches!(filter("lang:DE"), Filter::Lang(lang) if lang.code() == "de"));
}

#[test]
fn categories_are_those_of_the_tenant() {
    let options = ParseOptions { categories: vec!["Night Shift".into()] };
    let query = parse("category:\"night shift\"", &options).expect("known");
    assert_eq!(query.to_string(), "category:\"Night Shift\"");
    assert!(parse("category:billing", &options).is_err());
}

#[test]
fn names_references_and_identifiers() {
    let reference = |raw: &str, fallback: &str| {
        Filter::Ref(RefMatch { raw: raw.into(), fallback: fallback.into() })
    };
    assert_eq!(filter("ref:\"ab12 c.d-e\""), reference("ab12 c.d-e", "AB12CDE"));
    assert_eq!(canonical("ref:\" ab12 cde \""), "ref:\"ab12 cde\"");
    assert_eq!(filter("label:Work:urgent_1"), Filter::Label("work:urgent_1".into()));
    assert_eq!(filter("filename:ＲＥＰＯＲＴ.Pdf"), Filter::Filename("report.pdf".into()));
    assert_eq!(filter("folder:\"Sent (2024)\""), Filter::Folder("sent (2024)".into()));
    assert_eq!(filter("source:Takeout"), Filter::Source("takeout".into()));
    assert_eq!(
        filter("list:<Dev.Lists.Example.org>"),
        Filter::List("dev.lists.example.org".into())
    );
    assert_eq!(
        filter("rfc822msgid:<Ab.1@Mail.EXAMPLE>"),
        Filter::MessageId("Ab.1@mail.example".into())
    );
    assert_eq!(filter("rfc822msgid:<Ab.1@>"), Filter::MessageId("Ab.1@".into()));
    let id = "thr_01J9Z3K8V4QW7X2M5N6P8R0T1V";
    assert_eq!(canonical(&format!("thread:{id}")), format!("thread:{id}"));
}

#[test]
fn sizes_count_in_1024() {
    for (q, bytes, printed) in [
        ("larger:10m", 10 << 20, "larger:10m"),
        ("size:2048", 2_048, "larger:2k"),
        ("size:1000", 1_000, "larger:1000"),
        ("larger:1024K", 1 << 20, "larger:1m"),
        ("larger:0", 0, "larger:0"),
        ("larger:1g", 1 << 30, "larger:1g"),
    ] {
        assert_eq!(filter(q), Filter::Larger(bytes), "{q}");
        assert_eq!(canonical(q), printed);
    }
    assert_eq!(filter("smaller:1k"), Filter::Smaller(1_024));
}

#[test]
fn dates_and_durations() {
    let day = |y, m, d| DateBound::Day(jiff::civil::date(y, m, d));
    let duration = |n, unit| RelDuration { n, unit };
    for (q, expected, printed) in [
        ("after:2026-09-01", DateFilter::After(day(2026, 9, 1)), "after:2026-09-01"),
        ("before:2026/09/01", DateFilter::Before(day(2026, 9, 1)), "before:2026-09-01"),
        (
            "after:2026-09-01T10:00:00+02:00",
            DateFilter::After(DateBound::Instant(1_788_249_600_000)),
            "after:2026-09-01T08:00:00Z",
        ),
        (
            "before:2026-09-01t08:00:00.5z",
            DateFilter::Before(DateBound::Instant(1_788_249_600_500)),
            "before:2026-09-01T08:00:00.5Z",
        ),
        ("newer_than:24h", DateFilter::NewerThan(duration(24, DurUnit::Hour)), "newer_than:24h"),
        ("newer_than:07D", DateFilter::NewerThan(duration(7, DurUnit::Day)), "newer_than:7d"),
        ("older_than:2w", DateFilter::OlderThan(duration(2, DurUnit::Week)), "older_than:2w"),
        ("older_than:1m", DateFilter::OlderThan(duration(1, DurUnit::Month)), "older_than:1m"),
        ("older_than:10y", DateFilter::OlderThan(duration(10, DurUnit::Year)), "older_than:10y"),
    ] {
        assert_eq!(filter(q), Filter::Date(expected), "{q}");
        assert_eq!(canonical(q), printed);
    }
}

#[test]
fn f1_engine_syntax_is_only_text() {
    for q in ["NEAR/3", "a^2", "{subject}", "[1 TO 2]", "a&&b", "a||b", "+x", "body\\:x", "'a'"] {
        assert!(leaves::positive_filters(&read(q)).is_empty(), "{q}");
        assert_eq!(canonical(q), q);
    }
}

#[test]
fn the_limits_are_inclusive() {
    assert!(parse(&"x".repeat(1_024), &ParseOptions::default()).is_ok());
    assert!(parse(&"é ".repeat(16), &ParseOptions::default()).is_ok());
    assert!(parse(&"a ".repeat(32), &ParseOptions::default()).is_ok());
    let deep = format!("{}a{}", "(".repeat(8), ")".repeat(8));
    assert_eq!(canonical(&deep), "a");
    assert!(parse(&"(a) ".repeat(32), &ParseOptions::default()).is_ok());
}

#[test]
fn leaves_in_order_and_only_positive_ones() {
    let query = read("late -soon \"a b\" (x OR subject:y) -(z from:jo) is:unread in:junk folder:A");
    let texts: Vec<&str> =
        leaves::positive_text(&query).iter().map(|leaf| leaf.kind.text()).collect();
    assert_eq!(texts, ["late", "a b", "x", "y"]);
    assert_eq!(leaves::semantic_text(&query), "late a b x");
    assert_eq!(leaves::why_filters(&query, |_| true), ["is:unread", "in:junk", "folder:a"]);
    assert_eq!(leaves::why_filters(&query, |it| matches!(it, Filter::Is(_))), ["is:unread"]);
    let named = leaves::named(&query);
    assert_eq!((named.junk, named.trash, named.anywhere), (true, false, false));
    assert_eq!(named.folders, ["a"]);
    assert_eq!(leaves::semantic_text(&read("subject:x from:y -z")), "");
}

#[test]
fn conjuncts_and_what_they_are_made_of() {
    use leaves::Composition::{Filter, Mixed, Text};
    let query = read("a (b OR -c) is:read (d OR in:junk) -(e is:list)");
    let made: Vec<_> = query.conjuncts().iter().map(Expr::composition).collect();
    assert_eq!(made, [Text, Text, Filter, Mixed, Mixed]);
    assert_eq!(read("a").conjuncts().len(), 1);
    assert_eq!(read("a OR b").conjuncts().len(), 1);
    assert!(read("").conjuncts().is_empty());
}

#[test]
fn untypable_terms_of_other_dialects_print_as_phrases() {
    for text in ["from:x", "a b", "-x", "OR", "(", "x*", "", "to:"] {
        let leaf = TextLeaf { kind: term(text), field: TextField::Any, span: Span::default() };
        assert_eq!(leaf.to_string(), format!("\"{text}\""), "{text}");
    }
}
