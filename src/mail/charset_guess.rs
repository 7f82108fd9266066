//! Bytes that are not UTF-8 and that nobody declared → the charset they are likely to be in.
//!
//! `chardetng` compares; this file decides when it is to be asked and believed. Only charsets of
//! other scripts than Latin are answered: there the bytes leave little doubt, while one Latin charset
//! looks much like another and windows-1252 is right most often. Bounded to the first 64 KiB.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_8859_5, ISO_8859_6, ISO_8859_7,
    ISO_8859_8, KOI8_R, KOI8_U, SHIFT_JIS, WINDOWS_874, WINDOWS_1251, WINDOWS_1253, WINDOWS_1255,
    WINDOWS_1256,
};

/// Most bytes that are looked at.
const BYTES_MAX: usize = 64 * 1024;
/// Fewest bytes outside ASCII that can tell a charset.
const HIGH_BYTES_MIN: usize = 8;
/// Charsets that are believed.
const BELIEVED: [&Encoding; 19] = [
    BIG5,
    EUC_JP,
    EUC_KR,
    GB18030,
    GBK,
    IBM866,
    ISO_8859_5,
    ISO_8859_6,
    ISO_8859_7,
    ISO_8859_8,
    KOI8_R,
    KOI8_U,
    SHIFT_JIS,
    WINDOWS_874,
    WINDOWS_1251,
    WINDOWS_1253,
    WINDOWS_1255,
    WINDOWS_1256,
    encoding_rs::X_MAC_CYRILLIC,
];

/// The charset that `bytes` are likely to be in; `None` when too few of them tell, when they are
/// UTF-8, or when it is a Latin one.
pub(super) fn guess(bytes: &[u8]) -> Option<&'static Encoding> {
    let looked_at = &bytes[..bytes.len().min(BYTES_MAX)];
    if !is_other_script(looked_at) || is_utf8(looked_at) {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(looked_at, looked_at.len() == bytes.len());
    let found = detector.guess(None, Utf8Detection::Deny);
    BELIEVED.contains(&found).then_some(found)
}

/// Letters of other scripts come in runs; accents of Latin text stand alone among ASCII letters, and
/// lines drawn by one byte over and over are no letters.
fn is_other_script(bytes: &[u8]) -> bool {
    let (mut high, mut neighbours, mut before) = (0, 0, 0u8);
    for &byte in bytes {
        if byte == before {
            continue;
        }
        high += usize::from(!byte.is_ascii());
        neighbours += usize::from(!byte.is_ascii() && !before.is_ascii());
        before = byte;
    }
    high >= HIGH_BYTES_MIN && neighbours * 3 >= high
}

/// UTF-8, perhaps cut inside a character.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|e| e.error_len().is_none(), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{UTF_8, WINDOWS_1250, WINDOWS_1252};

    /// Sentences made for these tests, and the charset each is written in.
    const WRITTEN: [(&Encoding, &str); 10] = [
        (BIG5, "明天上午十點在會議室討論鍋爐的維修計畫，請準時出席並帶上報價單。"),
        (GBK, "明天上午十点在会议室讨论锅炉的维修计划，请准时出席并带上报价单。"),
        (EUC_KR, "내일 오전 열 시에 회의실에서 보일러 수리 계획을 논의하겠습니다."),
        (SHIFT_JIS, "明日の午前十時に会議室でボイラーの修理について話し合います。"),
        (EUC_JP, "明日の午前十時に会議室でボイラーの修理について話し合います。"),
        (KOI8_R, "Завтра в десять утра обсудим ремонт котла, возьмите с собой смету."),
        (WINDOWS_1251, "Завтра в десять утра обсудим ремонт котла, возьмите с собой смету."),
        (WINDOWS_1253, "Αύριο στις δέκα το πρωί συζητάμε την επισκευή του λέβητα."),
        (WINDOWS_1255, "מחר בעשר בבוקר נדון בתיקון הדוד בחדר הישיבות"),
        (WINDOWS_874, "พรุ่งนี้สิบโมงเช้าเราจะประชุมเรื่องการซ่อมหม้อไอน้ำ"),
    ];

    #[test]
    fn sentences_tell_their_charset() {
        for (encoding, text) in WRITTEN {
            let (bytes, _, failed) = encoding.encode(text);
            assert!(!failed, "{}", encoding.name());
            let with_ascii = [b"Hello, see below.\r\n\r\n", &*bytes, b"\r\n-- \r\nbo"].concat();
            for bytes in [&*bytes, &with_ascii] {
                let found = guess(bytes).unwrap();
                // KOI8-U holds all of KOI8-R that is Russian.
                let read = found.decode_without_bom_handling(bytes).0;
                assert!(read.contains(text), "{}: {}", encoding.name(), found.name());
            }
        }
    }

    #[test]
    fn latin_short_and_declared_by_themselves_are_not_guessed() {
        let french = "Le chauffe-eau est réparé : là-bas, l'été a été très agréable, hélas.";
        let finnish = "Huomenna päätämme lämmityskattilan korjauksesta; älä myöhästy.";
        let polish = "Zażółć gęślą jaźń, a jutro o dziesiątej omówimy naprawę kotła.";
        for (encoding, text) in [
            (WINDOWS_1252, french),
            (WINDOWS_1252, finnish),
            (WINDOWS_1252, "ÄÖÜ"),
            (WINDOWS_1252, "ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ 1\nÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ 2"),
            (WINDOWS_1250, polish),
            (UTF_8, "明天上午十點在會議室討論"),
            (GBK, "会议"),
        ] {
            let (bytes, _, _) = encoding.encode(text);
            assert_eq!(guess(&bytes).map(Encoding::name), None, "{text}");
        }
    }

    #[test]
    fn only_the_beginning_is_looked_at() {
        let (bytes, _, _) = GBK.encode("锅炉的维修计划，请准时出席。");
        let long = bytes.repeat(BYTES_MAX / bytes.len() * 3);
        assert_eq!(guess(&long), Some(GBK));
        let late = [&vec![b'a'; BYTES_MAX][..], &bytes].concat();
        assert_eq!(guess(&late), None);
    }
}
