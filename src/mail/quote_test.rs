//! Replies, forwards and signatures as people write them.

use super::*;

fn new(text: &str) -> String {
    new_ranges(text, &[], false).into_iter().map(|r| &text[r]).collect()
}

#[test]
fn top_posting_is_cut_at_the_attribution() {
    assert_eq!(new("Yes.\n\nOn 22 Aug 2002, Ann wrote:\n\nold text\nmore\n"), "Yes.\n\n");
    assert_eq!(
        new("Yes.\n\nOn Thu, 22 Aug 2002 at 10:00, Ann Lee\n<a@x> wrote:\n> old\n"),
        "Yes.\n\n"
    );
    assert_eq!(new("Ok\n-----Original Message-----\nFrom: x\nold\n"), "Ok\n");
    assert_eq!(
        new("Ok\n____________________\nFrom: Ann\nSent: today\nTo: Bo\nSubject: x\n\nold\n"),
        "Ok\n"
    );
}

#[test]
fn a_reply_below_the_quote_is_not_lost() {
    assert_eq!(
        new(
            "Hi,\n\nOn 22 Aug 2002, Ann wrote:\n> old\n> old\n\nMy answer.\n\n> more\n\nAnd this.\n"
        ),
        "Hi,\n\n\nMy answer.\n\n\nAnd this.\n"
    );
    assert_eq!(new("Ann wrote:\n> old\n\nNo.\n"), "\nNo.\n");
}

#[test]
fn prose_that_looks_like_an_attribution_is_kept() {
    assert_eq!(new("As Ann wrote:\nthis is it\n"), "As Ann wrote:\nthis is it\n");
    assert_eq!(
        new("On 22 Aug 2002 Ann wrote:\nall of it, unquoted\n"),
        "On 22 Aug 2002 Ann wrote:\nall of it, unquoted\n"
    );
}

#[test]
fn signatures_and_footers_go() {
    assert_eq!(new("Text\n-- \nAnn\n"), "Text\n");
    assert_eq!(new("Text\n\nSent from my iPhone\n"), "Text\n\n");
    assert_eq!(
        new("Text\n_______________________\ndev mailing list\nhttp://x/listinfo\n"),
        "Text\n"
    );
    let long: String = (0..30).map(|i| format!("line {i}\n")).collect();
    assert_eq!(new(&format!("a\n--\n{long}")), format!("a\n--\n{long}"));
}

#[test]
fn a_bare_forward_keeps_the_forwarded_text() {
    let text = "---------- Forwarded message ---------\nFrom: Ann\n\nnews\n";
    assert_eq!(new(text), text);
    assert_eq!(new("> all\n> quoted\n"), "> all\n> quoted\n");
    assert_eq!(new("-- \nAnn\n"), "-- \nAnn\n");
}

#[test]
fn armour_is_never_new_text() {
    let text = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nHello\n-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----\n";
    assert_eq!(new(text), "Hello\n");
    assert_eq!(new("-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----\n"), "");
}

#[test]
fn marks_of_html_come_first() {
    let text = "new\nOn 22 Aug 2002 Ann wrote:\n> old\nOn 1 Jan 2001 my reply wrote:\nis here\n";
    let start = text.find("> old").unwrap_or(0);
    let ranges = new_ranges(text, std::slice::from_ref(&(start..start + 6)), false);
    let kept: String = ranges.into_iter().map(|r| &text[r]).collect();
    assert_eq!(kept, "new\nOn 1 Jan 2001 my reply wrote:\nis here\n");
}

#[test]
fn notes_of_an_archiver_are_not_the_authors_words() {
    let text = "My text.\nName: kept\n-------------- next part --------------\nA non-text attachment was scrubbed...\nName: x.patch\nType: text/x-patch\nSize: 1 bytes\nDesc: not available\nUrl : http://x\nafter\n";
    assert_eq!(new(text), "My text.\nName: kept\nafter\n");
}
