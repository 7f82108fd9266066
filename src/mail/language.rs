//! Language of a text, when it can be told.
//!
//! The eight languages that most mail is in are told by their small words in microseconds; everything
//! else goes to whatlang, whose profiles cost a few hundred. Looks at the first KiB only, and says nothing about fewer than 20 letters.

use whatlang::Lang;

/// How much text is looked at, bytes.
const LOOK_BYTES: usize = 1024;
/// Fewest letters that are worth a verdict.
const LETTERS_MIN: usize = 20;
/// Fewest letters of a text in plain ASCII that profiles are asked about.
const ASCII_LETTERS_MIN: usize = 40;

/// Code of the language (ISO 639-1 where there is one), `None` when it cannot be told.
pub(super) fn detect(text: &str) -> Option<&'static str> {
    let mut end = text.len().min(LOOK_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let (mut letters, mut marks) = (0usize, 0usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if c.is_alphabetic() {
            letters += 1;
        } else {
            marks += 1;
        }
    }
    if letters < LETTERS_MIN {
        return None;
    }
    if let Some(language) = by_small_words(text) {
        return Some(language);
    }
    // Program text, links, encoded bytes: one mark in four is no prose, and in plain ASCII one in six.
    // A few ASCII words are told wrongly more often than rightly.
    let ascii = text.is_ascii();
    if marks * 3 > letters || (ascii && (marks * 5 > letters || letters < ASCII_LETTERS_MIN)) {
        return None;
    }
    let info = whatlang::detect(text)?;
    info.is_reliable().then(|| code(info.lang()))
}

/// Languages told by their small words, in the order of the bits below.
const FAST: [&str; 8] = ["en", "de", "fr", "es", "it", "nl", "pt", "sv"];

/// The language whose small words make up one word in eight (three different ones, five in all),
/// twice as many as of any other; in a short note in English two and one in seven will do.
fn by_small_words(text: &str) -> Option<&'static str> {
    let mut words = 0u32;
    let mut hits = [0u32; FAST.len()];
    let mut kinds = [0u32; FAST.len()];
    let mut previous = [0u64; FAST.len()];
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()) {
        words += 1;
        if let Some(languages) = small_word(word.as_bytes()) {
            // Different words, counted by a small fingerprint: exact enough for "at least three".
            let print =
                word.bytes().fold(7u32, |h, b| h * 31 + u32::from(b.to_ascii_lowercase())) % 64;
            for (i, hits) in hits.iter_mut().enumerate() {
                if languages & 1 << i != 0 {
                    *hits += 1;
                    kinds[i] += u32::from(previous[i] & 1 << print == 0);
                    previous[i] |= 1 << print;
                }
            }
        }
        if words == 160 {
            break;
        }
    }
    let best = (0..FAST.len()).max_by_key(|&i| hits[i])?;
    let second = (0..FAST.len()).filter(|&i| i != best).map(|i| hits[i]).max()?;
    let (hits, kinds) = (hits[best], kinds[best]);
    let clear = hits >= second * 2;
    let enough = (hits >= 5 && kinds >= 3 && hits * 8 >= words)
        // Prose between lines of program text: fewer in all, but many different ones.
        || (hits >= 7 && kinds >= 5 && hits * 20 >= words);
    let short_english = best == 0 && words <= 40 && kinds >= 2 && hits * 7 >= words;
    (clear && (enough || short_english)).then(|| FAST[best])
}

/// Bits of the languages in which a word is among the commonest.
fn small_word(word: &[u8]) -> Option<u8> {
    const EN: u8 = 1;
    const DE: u8 = 1 << 1;
    const FR: u8 = 1 << 2;
    const ES: u8 = 1 << 3;
    const IT: u8 = 1 << 4;
    const NL: u8 = 1 << 5;
    const PT: u8 = 1 << 6;
    const SV: u8 = 1 << 7;
    let mut lower = [0; 5];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"the" | b"and" | b"you" | b"that" | b"with" | b"this" | b"have" | b"are" | b"from"
        | b"your" | b"it" | b"of" | b"to" | b"not" | b"be" | b"but" | b"what" | b"they"
        | b"would" | b"can" | b"if" | b"there" | b"just" | b"how" | b"when" | b"my" => EN,
        b"for" => EN | SV,
        b"is" => EN | NL,
        b"was" => EN | DE | NL,
        b"will" => EN | DE,
        b"und" | b"das" | b"nicht" | b"ist" | b"ich" | b"sie" | b"mit" | b"ein" | b"auf"
        | b"wir" | b"eine" | b"im" | b"zu" | b"von" => DE,
        [b'f', 0xC3, 0xBC, b'r'] => DE,
        b"der" | b"die" => DE | NL,
        b"den" => DE | SV,
        b"les" | b"est" | b"pas" | b"vous" | b"nous" | b"dans" | b"pour" | b"je" | b"sur"
        | b"avec" | b"et" | b"au" | b"du" | b"ce" | b"qui" => FR,
        b"des" => FR | DE,
        b"une" => FR,
        b"que" => FR | ES | PT,
        b"un" => FR | ES | IT,
        b"la" => FR | ES | IT,
        b"le" => FR | IT,
        b"de" => FR | ES | NL | PT,
        b"los" | b"las" | b"el" | b"del" | b"y" | b"es" | b"su" | b"lo" => ES,
        b"en" => ES | FR | NL | SV,
        b"una" | b"con" => ES | IT,
        b"para" | b"por" | b"se" | b"como" => ES | PT,
        b"che" | b"di" | b"non" | b"per" | b"il" | b"sono" | b"della" | b"gli" | b"ma" | b"al" => {
            IT
        }
        b"het" | b"een" | b"van" | b"niet" | b"dat" | b"ik" | b"voor" | b"zijn" | b"op" | b"te"
        | b"aan" | b"met" => NL,
        b"uma" | b"com" | b"os" | b"em" | b"do" | b"da" | b"ao" | b"mais" => PT,
        [b'n', 0xC3, 0xA3, b'o'] => PT,
        b"och" | b"att" | b"det" | b"som" | b"inte" | b"jag" | b"med" | b"av" | b"till"
        | b"har" => SV,
        [0xC3, 0xA4, b'r'] | [b'p', 0xC3, 0xA5] | [b'f', 0xC3, 0xB6, b'r'] => SV,
        _ => return None,
    })
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
        for (text, language) in [
            (
                "Je vous envoie les papiers pour la réunion et nous sommes dans le bureau avec une amie.",
                "fr",
            ),
            (
                "El informe es para los vecinos y las reuniones del martes, con una copia para el archivo.",
                "es",
            ),
            (
                "Het verslag is voor de vergadering van dinsdag en ik heb een kopie aan het bestuur gegeven.",
                "nl",
            ),
            (
                "Jag har skickat det till dig och hoppas att det inte är för sent, som du vet är det viktigt.",
                "sv",
            ),
        ] {
            assert_eq!(by_small_words(text), Some(language), "{text}");
        }
        assert_eq!(detect("ok"), None);
    }
}
