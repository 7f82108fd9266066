//! What the analysis promises, by example and by property.

use proptest::prelude::*;

use super::*;

fn texts(source: &str) -> Vec<String> {
    tokens(source).into_iter().map(|t| t.text).collect()
}

#[test]
fn words_are_folded_and_cut_at_everything_that_is_no_letter_or_digit() {
    assert_eq!(texts("The Über-cool Łódź café!"), ["the", "uber", "cool", "lodz", "cafe"]);
    assert_eq!(texts("jo.rivera@mail.example.org"), ["jo", "rivera", "mail", "example", "org"]);
    assert_eq!(texts("report_final-v2.PDF"), ["report", "final", "v2", "pdf"]);
    assert_eq!(texts("straße ﬁle ＡＢＣ１２"), ["strasse", "file", "abc12"]);
    assert_eq!(texts("İstanbul ısı"), ["istanbul", "isi"]);
    assert_eq!(texts("мой ёлка Ελλάς"), ["мой", "елка", "ελλασ"]);
    assert_eq!(texts("כִּתָּה كِتَاب"), ["כתה", "كتاب"]);
    assert_eq!(texts("e\u{301}te\u{301} co\u{ad}op"), ["ete", "coop"]);
    assert_eq!(texts("paraĿel ½"), ["paralel", "12"]);
}

#[test]
fn spaceless_scripts_give_characters_and_pairs_also_glued_to_latin() {
    let got: Vec<(String, usize)> =
        tokens("ABC日本語x").into_iter().map(|t| (t.text, t.position)).collect();
    let want = [("abc", 0), ("日", 1), ("日本", 1), ("本", 2), ("本語", 2), ("語", 3), ("x", 4)];
    assert_eq!(got, want.map(|(t, p)| (t.to_owned(), p)));
    assert_eq!(texts("서울"), ["서", "서울", "울"]);
    assert_eq!(texts("ไทย"), ["ไ", "ไท", "ท", "ทย", "ย"]);
    assert_eq!(texts("ｶﾞｽ"), ["ガ", "ガス", "ス"]);
}

#[test]
fn long_token_is_cut_with_a_digest_and_stays_distinct() {
    let long = "x".repeat(5_000);
    let (a, b) = (texts(&format!("{long}a")), texts(&format!("{long}b")));
    assert_eq!((a.len(), b.len()), (1, 1));
    assert_ne!(a, b);
    assert!(a[0].len() <= TOKEN_BYTES_MAX && a[0].starts_with(&"x".repeat(40)));
}

proptest! {
    #[test]
    fn offsets_lie_on_boundaries_and_positions_never_fall(source in "\\PC{0,80}") {
        let mut position = 0;
        for token in tokens(&source) {
            prop_assert!(source.is_char_boundary(token.start) && source.is_char_boundary(token.end));
            prop_assert!(token.start < token.end);
            prop_assert!(token.position >= position && token.position <= position + 1);
            prop_assert!(token.text.len() <= TOKEN_BYTES_MAX);
            position = token.position;
        }
    }

    #[test]
    fn folding_twice_changes_nothing(source in "[a-zA-Zà-žА-яÀ-Ź 日本가-힣ｱ-ﾝ]{0,40}") {
        let once = fold(&source);
        prop_assert_eq!(fold(&once), once);
    }

    #[test]
    fn tokens_of_folded_words_are_the_same(source in "[a-zA-Zà-žА-я ]{0,40}") {
        let direct = texts(&source);
        prop_assert_eq!(texts(&fold(&source)), direct);
    }
}
