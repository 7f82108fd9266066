//! Language of a text, when it can be told.
//!
//! English, most of all mail, is told by its small words in a microsecond; everything else goes to
//! whatlang. Looks at the first 2 KiB only, and says nothing about fewer than 20 letters.

use whatlang::Lang;

/// How much text is looked at, bytes.
const LOOK_BYTES: usize = 2048;
/// Fewest letters that are worth a verdict.
const LETTERS_MIN: usize = 20;

/// Code of the language (ISO 639-1 where there is one), `None` when it cannot be told.
pub(super) fn detect(text: &str) -> Option<&'static str> {
    let mut end = text.len().min(LOOK_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    if text.chars().filter(|c| c.is_alphabetic()).take(LETTERS_MIN).count() < LETTERS_MIN {
        return None;
    }
    if is_english(text) {
        return Some("en");
    }
    let info = whatlang::detect(text)?;
    info.is_reliable().then(|| code(info.lang()))
}

/// At least three different and five in all of the commonest English words, and one word in eight.
fn is_english(text: &str) -> bool {
    const WORDS: [&str; 22] = [
        "the", "and", "you", "that", "with", "for", "this", "have", "are", "was", "from", "your",
        "it", "is", "of", "to", "not", "be", "but", "what", "they", "would",
    ];
    let (mut words, mut hits, mut kinds) = (0u32, 0u32, 0u32);
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()) {
        words += 1;
        if word.len() <= 5
            && let Some(i) = WORDS.iter().position(|w| w.eq_ignore_ascii_case(word))
        {
            hits += 1;
            kinds |= 1 << i;
        }
        if words == 160 {
            break;
        }
    }
    hits >= 5 && kinds.count_ones() >= 3 && hits * 8 >= words
}

fn code(lang: Lang) -> &'static str {
    match lang.code() {
        "epo" => "eo",
        "eng" => "en",
        "rus" => "ru",
        "cmn" => "zh",
        "spa" => "es",
        "por" => "pt",
        "ita" => "it",
        "ben" => "bn",
        "fra" => "fr",
        "deu" => "de",
        "ukr" => "uk",
        "kat" => "ka",
        "ara" => "ar",
        "hin" => "hi",
        "jpn" => "ja",
        "heb" => "he",
        "yid" => "yi",
        "pol" => "pl",
        "amh" => "am",
        "jav" => "jv",
        "kor" => "ko",
        "nob" => "nb",
        "dan" => "da",
        "swe" => "sv",
        "fin" => "fi",
        "tur" => "tr",
        "nld" => "nl",
        "hun" => "hu",
        "ces" => "cs",
        "ell" => "el",
        "bul" => "bg",
        "bel" => "be",
        "mar" => "mr",
        "kan" => "kn",
        "ron" => "ro",
        "slv" => "sl",
        "hrv" => "hr",
        "srp" => "sr",
        "mkd" => "mk",
        "lit" => "lt",
        "lav" => "lv",
        "est" => "et",
        "tam" => "ta",
        "vie" => "vi",
        "urd" => "ur",
        "tha" => "th",
        "guj" => "gu",
        "uzb" => "uz",
        "pan" => "pa",
        "aze" => "az",
        "ind" => "id",
        "tel" => "te",
        "pes" => "fa",
        "mal" => "ml",
        "ori" => "or",
        "mya" => "my",
        "nep" => "ne",
        "sin" => "si",
        "khm" => "km",
        "tuk" => "tk",
        "aka" => "ak",
        "zul" => "zu",
        "sna" => "sn",
        "afr" => "af",
        "lat" => "la",
        "slk" => "sk",
        "cat" => "ca",
        "tgl" => "tl",
        "hye" => "hy",
        "cym" => "cy",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages() {
        assert_eq!(
            detect("I have sent the papers to you and they are with the bank, but it is not done."),
            Some("en")
        );
        assert_eq!(
            detect(
                "Sehr geehrte Damen und Herren, anbei erhalten Sie die gewünschten Unterlagen für den Umbau unserer Werkstatt."
            ),
            Some("de")
        );
        assert_eq!(
            detect(
                "Это письмо о нашей встрече в следующую пятницу. Мы собираемся в большом зале, чтобы обсудить план работы на весну; приходите все, кому это интересно, и возьмите с собой документы."
            ),
            Some("ru")
        );
        assert_eq!(detect("ok"), None);
    }
}
