//! What a snippet shows.

use super::*;
use crate::ids::{MessageId, Ordinal};
use crate::mail::Message;

fn cut(message: &Prepared, patterns: &[Pattern], chars_max: usize) -> Snippet {
    super::cut(message, patterns, None, chars_max)
}

#[test]
fn a_passage_is_shown_where_no_word_stands() {
    let text = "The beginning of it.\n\nThe heating has failed again.";
    let message = message("s", text);
    let passage = Some((22, 51));
    let meant = super::cut(&message, &patterns(&["boiler"]), passage, 60);
    assert_eq!(meant.text, "The heating has failed again.");
    let worded = super::cut(&message, &patterns(&["beginning"]), passage, 60);
    assert!(worded.text.starts_with("The beginning"), "{worded:?}");
    let torn = super::cut(&message, &[], Some((22, 5_000)), 60);
    assert!(torn.text.starts_with("The beginning"), "a range that is none: {torn:?}");
}

fn message(subject: &str, text: &str) -> Prepared {
    let message = Message {
        subject: subject.into(),
        text: text.into(),
        new_ranges: std::iter::once(0..u32::try_from(text.len()).expect("short")).collect(),
        language: Some("en"),
        ..Message::default()
    };
    Prepared::new(Ordinal(0), MessageId::from_parts(0, 0), false, &message)
}

fn patterns(words: &[&str]) -> Vec<Pattern> {
    words.iter().map(|w| Pattern::new(w, false, 0).expect("has tokens")).collect()
}

fn marked(snippet: &Snippet) -> Vec<String> {
    let chars: Vec<char> = snippet.text.chars().collect();
    let piece = |(start, end): &(u32, u32)| chars[*start as usize..*end as usize].iter().collect();
    snippet.highlights.iter().map(piece).collect()
}

#[test]
fn window_goes_where_most_words_are() {
    let filler = "nothing to see here ".repeat(40);
    let text = format!("boiler {filler} the boiler in the cellar is cold {filler}");
    let snippet = cut(&message("s", &text), &patterns(&["boiler", "cellar"]), 80);
    assert_eq!(marked(&snippet), ["boiler", "cellar"]);
    assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'), "{}", snippet.text);
    assert!(snippet.text.chars().count() <= 80);
}

#[test]
fn places_survive_folding_collapsing_and_wide_characters() {
    let snippet =
        cut(&message("s", "日本  \n\t Große\u{200b}r   Kessel"), &patterns(&["kessel"]), 60);
    assert_eq!(snippet.text, "日本 Großer Kessel");
    assert_eq!(marked(&snippet), ["Kessel"]);
    let folded = cut(&message("s", "Die STRASSE und die Straße"), &patterns(&["strasse"]), 60);
    assert_eq!(marked(&folded), ["STRASSE", "Straße"]);
}

#[test]
fn inflected_words_phrases_and_pairs_are_marked() {
    let inflected = cut(&message("s", "Two invoices came."), &patterns(&["invoice"]), 60);
    assert_eq!(marked(&inflected), ["invoices"]);
    let phrase =
        cut(&message("s", "a cold day, cold radiators"), &patterns(&["cold radiators"]), 60);
    assert_eq!(marked(&phrase), ["cold radiators"]);
    let pair = cut(&message("s", "今日は暖房が故障"), &patterns(&["暖房"]), 60);
    assert_eq!(marked(&pair), ["暖房"]);
}

#[test]
fn without_a_match_in_the_text_the_subject_or_the_start_is_shown() {
    let subject = cut(&message("Boiler news", "Nothing."), &patterns(&["boiler"]), 60);
    assert_eq!(subject.text, "Boiler news");
    let start = cut(&message("s", "The beginning of it."), &[], 60);
    assert_eq!(start, Snippet { text: "The beginning of it.".into(), highlights: vec![] });
}

#[test]
fn forged_control_characters_never_get_through() {
    let snippet = cut(&message("s", "a\u{2}boiler\u{3}\u{202e}b\0"), &patterns(&["boiler"]), 60);
    assert!(!snippet.text.chars().any(char::is_control), "{:?}", snippet.text);
}
