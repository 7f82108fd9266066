//! Rules and properties of passages.

use proptest::prelude::*;

use super::*;

fn texts<'t>(text: &'t str, chunks: &[Chunk]) -> Vec<&'t str> {
    chunks.iter().map(|c| &text[c.start as usize..c.end as usize]).collect()
}

fn limits(tokens_max: u32) -> Limits {
    Limits::of_model(tokens_max)
}

#[test]
fn sizes_follow_the_model() {
    assert_eq!(limits(512), Limits { target: 480, max: 500, overlap: 64 });
    assert_eq!(limits(8_192), limits(512));
    assert_eq!(limits(256), Limits { target: 240, max: 250, overlap: 32 });
}

#[test]
fn short_messages_are_one_passage_with_their_subject() {
    let text = "The boiler is cold again.\n\nCan you come on Friday?";
    let cut = chunks("Boiler", text, limits(256));
    assert_eq!(texts(text, &cut), [text]);
    assert_eq!(passage("Boiler", text, &cut[0], limits(256)), format!("Subject: Boiler\n\n{text}"));
    assert_eq!(chunks(" ", "\n \n", limits(256)), []);
    let only = chunks("Boiler", "", limits(256));
    assert_eq!(passage("Boiler", "", &only[0], limits(256)), "Subject: Boiler\n\n");
}

#[test]
fn cuts_prefer_blank_lines_then_sentences_and_repeat_the_end() {
    // 62 estimated tokens at most, 8 of them repeated.
    let paragraph = "The pump in the cellar hums at night and stops by noon. ";
    let text = format!("{paragraph}{paragraph}\n\n{}", paragraph.repeat(5));
    let cut = chunks("", &text, limits(64));
    let cut = texts(&text, &cut);
    assert_eq!(cut[0], format!("{paragraph}{paragraph}\n\n{paragraph}{paragraph}").trim_end());
    assert_eq!(cut[1], format!("at night and stops by noon. {}", paragraph.repeat(3)));
    assert_eq!(cut.len(), 2);
}

#[test]
fn a_long_word_is_cut_between_characters() {
    let text = "x".repeat(5_000);
    let cut = chunks("", &text, limits(256));
    assert!(cut.len() > 5, "{}", cut.len());
    assert_eq!(cut[cut.len() - 1].end, 5_000);
}

#[test]
fn a_huge_message_has_at_most_64() {
    let text = "Garden pump radiators. ".repeat(20_000);
    assert_eq!(chunks("", &text, limits(256)).len(), CHUNKS_MAX);
}

#[test]
fn digests_depend_on_everything() {
    let all = [
        digest("a", "b", limits(256)),
        digest("ab", "", limits(256)),
        digest("a", "c", limits(256)),
        digest("a", "b", limits(128)),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one));
    }
    assert_eq!(all[0], digest("a", "b", limits(256)));
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_is_too_large(
        subject in "\\PC{0,80}",
        text in "([a-zß暖房🙂]{1,12}[ .?!\n]{1,3}|\\PC{0,300}){0,40}",
        tokens_max in MODEL_TOKENS_MIN..600,
    ) {
        let limits = limits(tokens_max);
        let cut = chunks(&subject, &text, limits);
        let mut reached = 0;
        for chunk in &cut {
            let (start, end) = (chunk.start as usize, chunk.end as usize);
            // Panics when it does not lie on the bounds of characters.
            let own = &text[start..end];
            prop_assert!(start <= reached, "a gap before {start}");
            prop_assert!(end > reached || text.trim().is_empty());
            reached = end;
            let given = passage(&subject, &text, chunk, limits);
            prop_assert!(given.ends_with(own));
            prop_assert!(Estimate::of(&given) <= Estimate::tokens(limits.max));
        }
        if !text.trim().is_empty() && cut.len() < CHUNKS_MAX {
            prop_assert_eq!(reached, text.len());
        }
    }
}
