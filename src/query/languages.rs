//! Languages of `lang:`, as ISO 639-1 codes.
//!
//! The table is the code list of ISO 639-1 (183 codes, deprecated ones left out) with English names,
//! which serve only to suggest a code.

use std::fmt;

/// Code and English name of each language, in the order of the codes.
const TABLE: &str = "\
    aa afar, ab abkhazian, ae avestan, af afrikaans, ak akan, am amharic, an aragonese, \
    ar arabic, as assamese, av avaric, ay aymara, az azerbaijani, ba bashkir, be belarusian, \
    bg bulgarian, bi bislama, bm bambara, bn bengali, bo tibetan, br breton, bs bosnian, \
    ca catalan, ce chechen, ch chamorro, co corsican, cr cree, cs czech, cu church-slavic, \
    cv chuvash, cy welsh, da danish, de german, dv divehi, dz dzongkha, ee ewe, el greek, \
    en english, eo esperanto, es spanish, et estonian, eu basque, fa persian, ff fulah, \
    fi finnish, fj fijian, fo faroese, fr french, fy western-frisian, ga irish, gd gaelic, \
    gl galician, gn guarani, gu gujarati, gv manx, ha hausa, he hebrew, hi hindi, \
    ho hiri-motu, hr croatian, ht haitian, hu hungarian, hy armenian, hz herero, \
    ia interlingua, id indonesian, ie interlingue, ig igbo, ii sichuan-yi, ik inupiaq, \
    io ido, is icelandic, it italian, iu inuktitut, ja japanese, jv javanese, ka georgian, \
    kg kongo, ki kikuyu, kj kuanyama, kk kazakh, kl kalaallisut, km khmer, kn kannada, \
    ko korean, kr kanuri, ks kashmiri, ku kurdish, kv komi, kw cornish, ky kirghiz, la latin, \
    lb luxembourgish, lg ganda, li limburgish, ln lingala, lo lao, lt lithuanian, \
    lu luba-katanga, lv latvian, mg malagasy, mh marshallese, mi maori, mk macedonian, \
    ml malayalam, mn mongolian, mr marathi, ms malay, mt maltese, my burmese, na nauru, \
    nb norwegian-bokmal, nd north-ndebele, ne nepali, ng ndonga, nl dutch, \
    nn norwegian-nynorsk, no norwegian, nr south-ndebele, nv navajo, ny chichewa, oc occitan, \
    oj ojibwa, om oromo, or oriya, os ossetian, pa punjabi, pi pali, pl polish, ps pashto, \
    pt portuguese, qu quechua, rm romansh, rn rundi, ro romanian, ru russian, rw kinyarwanda, \
    sa sanskrit, sc sardinian, sd sindhi, se northern-sami, sg sango, si sinhala, sk slovak, \
    sl slovenian, sm samoan, sn shona, so somali, sq albanian, sr serbian, ss swati, \
    st southern-sotho, su sundanese, sv swedish, sw swahili, ta tamil, te telugu, tg tajik, \
    th thai, ti tigrinya, tk turkmen, tl tagalog, tn tswana, to tonga, tr turkish, ts tsonga, \
    tt tatar, tw twi, ty tahitian, ug uighur, uk ukrainian, ur urdu, uz uzbek, ve venda, \
    vi vietnamese, vo volapuk, wa walloon, wo wolof, xh xhosa, yi yiddish, yo yoruba, \
    za zhuang, zh chinese, zu zulu";

/// A two-letter code of ISO 639-1, lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang(&'static str);

impl Lang {
    /// The language of a lower-case code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        entries().find(|(known, _)| *known == code).map(|(known, _)| Self(known))
    }

    /// The language of a lower-case English name.
    pub(super) fn from_english_name(name: &str) -> Option<Self> {
        entries().find(|(_, known)| *known == name).map(|(code, _)| Self(code))
    }

    /// The code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.0
    }
}

fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.split(", ").filter_map(|entry| entry.split_once(' '))
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_in_order() {
        let codes: Vec<_> = entries().map(|(code, _)| code).collect();
        assert_eq!(codes.len(), 183);
        assert!(codes.is_sorted());
        assert!(codes.iter().all(|code| code.len() == 2));
    }

    #[test]
    fn codes_are_known_and_names_only_suggest() {
        assert_eq!(Lang::from_code("de").map(Lang::code), Some("de"));
        assert_eq!(Lang::from_code("german"), None);
        assert_eq!(Lang::from_english_name("german"), Lang::from_code("de"));
        assert_eq!(Lang::from_code("xx"), None);
    }
}
