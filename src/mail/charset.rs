//! Bytes of a text and its declared charset → Unicode.
//!
//! Every label of the WHATWG Encoding Standard, the legacy ones mail still shows (UTF-7,
//! ISO-2022-KR, HZ, IBM 850), misspelt labels, and wrong labels: text that is valid UTF-8 is read as
//! UTF-8 whatever a Latin label says; without a usable label the bytes may tell (`charset_guess`).
//! Never fails; what no charset explains becomes U+FFFD.

use std::borrow::Cow;

use encoding_rs::{EUC_KR, Encoding, GBK, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use mail_parser::decoders::charsets::{DecoderFnc, map::charset_decoder};
use memchr::{memchr, memmem};

use super::charset_guess;

/// What came of decoding.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    /// The text; borrowed when it was ASCII or UTF-8 already.
    pub(super) text: Cow<'a, str>,
    /// The declared charset was unknown or wrong and another one was used.
    pub(super) mended: bool,
    /// Some bytes were replaced.
    pub(super) replaced: bool,
}

/// A charset we can decode.
#[derive(Clone, Copy)]
enum Charset {
    /// By the WHATWG standard.
    Whatwg(&'static Encoding),
    /// RFC 2152.
    Utf7,
    /// RFC 1557: EUC-KR behind shift codes.
    Iso2022Kr,
    /// RFC 1843: GB 2312 behind tildes.
    Hz,
    /// A table of `mail-parser`.
    Table(DecoderFnc),
}

/// Decodes `bytes` by `label`, by what the bytes themselves show, or by `hint` (the charset of a
/// neighbouring part, for headers with raw 8-bit bytes).
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    label: Option<&[u8]>,
    hint: Option<&[u8]>,
) -> Decoded<'a> {
    let declared = label.and_then(find);
    let unknown = label.is_some_and(|l| !l.trim_ascii().is_empty()) && declared.is_none();
    if bytes.is_ascii() {
        return ascii(bytes, declared, unknown);
    }
    match declared.filter(|_| label.is_some_and(is_usable)) {
        Some(Charset::Whatwg(e)) if e == UTF_8 => utf8_or_latin(bytes, false),
        None => match hint.filter(|h| is_usable(h)).and_then(find) {
            Some(Charset::Whatwg(e)) if std::str::from_utf8(bytes).is_err() && e != UTF_8 => {
                whatwg(bytes, e, true)
            }
            _ => utf8_or_latin(bytes, true),
        },
        Some(Charset::Whatwg(e)) if e == WINDOWS_1252 => match std::str::from_utf8(bytes) {
            Ok(text) => Decoded { text: Cow::Borrowed(text), mended: true, replaced: false },
            Err(_) => whatwg(bytes, e, false),
        },
        Some(Charset::Whatwg(e)) => whatwg(bytes, e, false),
        Some(other) => match std::str::from_utf8(bytes) {
            // 7-bit charsets with high bytes in them are mislabelled.
            Ok(text) if !matches!(other, Charset::Table(_)) => {
                Decoded { text: Cow::Borrowed(text), mended: true, replaced: false }
            }
            _ => special(bytes, other),
        },
    }
}

/// ASCII bytes stand for themselves unless the charset hides letters behind escapes.
fn ascii(bytes: &[u8], declared: Option<Charset>, unknown: bool) -> Decoded<'_> {
    let escaped = match declared {
        Some(Charset::Whatwg(e)) if e == UTF_16LE || e == UTF_16BE => {
            memchr(0, bytes).map(|_| Charset::Whatwg(e))
        }
        Some(Charset::Utf7 | Charset::Iso2022Kr | Charset::Hz) => declared,
        _ if memchr(0x1B, bytes).is_some() => {
            let has = |needle: &[u8]| memmem::find(bytes, needle).is_some();
            if has(b"\x1b$)C") {
                Some(Charset::Iso2022Kr)
            } else if has(b"\x1b$") || has(b"\x1b(J") || has(b"\x1b(I") {
                Some(Charset::Whatwg(ISO_2022_JP))
            } else {
                None
            }
        }
        _ => None,
    };
    match escaped {
        Some(charset) => special(bytes, charset),
        None => Decoded { text: String::from_utf8_lossy(bytes), mended: unknown, replaced: false },
    }
}

fn special(bytes: &[u8], charset: Charset) -> Decoded<'_> {
    let text = match charset {
        Charset::Whatwg(e) => return whatwg(bytes, e, false),
        Charset::Utf7 => utf7(bytes),
        Charset::Iso2022Kr => return owned(whatwg(&shifted(bytes, &Shift::KR), EUC_KR, false)),
        Charset::Hz => return owned(whatwg(&shifted(bytes, &Shift::HZ), GBK, false)),
        Charset::Table(decoder) => decoder(bytes),
    };
    let replaced = text.contains('\u{FFFD}');
    Decoded { text: Cow::Owned(text), mended: false, replaced }
}

fn owned(d: Decoded<'_>) -> Decoded<'static> {
    Decoded { text: Cow::Owned(d.text.into_owned()), mended: d.mended, replaced: d.replaced }
}

fn whatwg<'a>(bytes: &'a [u8], encoding: &'static Encoding, mended: bool) -> Decoded<'a> {
    if encoding == ISO_2022_JP && bytes.is_ascii() {
        return iso_2022_jp(bytes, mended);
    }
    let (text, bad) = encoding.decode_with_bom_removal(bytes);
    if bad && let Ok(text) = std::str::from_utf8(bytes) {
        return Decoded { text: Cow::Borrowed(text), mended: true, replaced: false };
    }
    Decoded { text, mended, replaced: bad }
}

/// The standard's decoder takes an escape right after another one for an attack; joined encoded
/// words have them at every seam, so all but the last of a run go.
fn iso_2022_jp(bytes: &[u8], mended: bool) -> Decoded<'_> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape =
            |i: usize| bytes.get(i) == Some(&0x1B) && matches!(bytes.get(i + 1), Some(b'(' | b'$'));
        if !(escape(at) && escape(at + 3)) {
            clean.extend_from_slice(&bytes[at..=at]);
            at += 1;
            continue;
        }
        at += 3;
    }
    let (text, bad) = ISO_2022_JP.decode_without_bom_handling(&clean);
    Decoded { text: Cow::Owned(text.into_owned()), mended, replaced: bad }
}

/// UTF-8 if it is; else, when hardly any of it is UTF-8, what the bytes of an undeclared text tell or
/// windows-1252; else UTF-8 with holes.
fn utf8_or_latin(bytes: &[u8], undeclared: bool) -> Decoded<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Decoded {
            text: Cow::Borrowed(text.trim_start_matches('\u{FEFF}')),
            mended: false,
            replaced: false,
        },
        Err(_) => {
            let good = bytes
                .utf8_chunks()
                .map(|c| c.valid().chars().filter(|c| !c.is_ascii()).count())
                .sum::<usize>();
            let bad = bytes.utf8_chunks().filter(|c| !c.invalid().is_empty()).count();
            if good > bad {
                let text = String::from_utf8_lossy(bytes);
                return Decoded { text, mended: false, replaced: true };
            }
            if undeclared && let Some(guessed) = charset_guess::guess(bytes) {
                return whatwg(bytes, guessed, true);
            }
            let mut d = whatwg(bytes, WINDOWS_1252, true);
            d.mended = !undeclared || d.mended;
            d
        }
    }
}

/// Is the label one we know, and more than ASCII? Bytes outside ASCII are then in that charset.
pub(super) fn is_usable(label: &[u8]) -> bool {
    let ascii = ["us-ascii", "ascii", "ansi_x3", "iso646", "iso_646"];
    let label = label.trim_ascii();
    let is_ascii = ascii.iter().any(|a| {
        label.get(..a.len()).is_some_and(|start| start.eq_ignore_ascii_case(a.as_bytes()))
    });
    !is_ascii && find(label).is_some()
}

/// The charset behind a label as mail writes it, misspellings included.
fn find(label: &[u8]) -> Option<Charset> {
    let label = label.trim_ascii();
    // Everything from a blank or semicolon on is not the label (`utf-8 format=flowed`).
    let end = label
        .iter()
        .position(|b| b.is_ascii_whitespace() || matches!(b, b';' | b',' | b'"' | b'\''));
    let label = match end {
        Some(0) => label.get(1..)?.split(|b| matches!(b, b'"' | b'\'' | b';')).next()?,
        Some(n) => &label[..n],
        None => label,
    };
    if label.is_empty() || label.len() > 64 {
        return None;
    }
    let lower: String = label.iter().map(|b| char::from(b.to_ascii_lowercase())).collect();
    let name = lower.trim_matches(|c: char| !c.is_ascii_alphanumeric()).replace('_', "-");
    if name.contains("utf-7") || name.contains("utf7") {
        return Some(Charset::Utf7);
    }
    match name.as_str() {
        "iso-2022-kr" | "csiso2022kr" => return Some(Charset::Iso2022Kr),
        "hz-gb-2312" | "hz" => return Some(Charset::Hz),
        // UTF-16 labels on mail text; a byte order mark settles the order when there is one.
        "unicode" | "utf-16" => return Some(Charset::Whatwg(UTF_16LE)),
        _ => {}
    }
    if ["utf-8", "utf8", "uft-8", "uft8", "utf 8", "u8"].iter().any(|p| name.starts_with(p)) {
        return Some(Charset::Whatwg(UTF_8));
    }
    let by_label = |l: &str| Encoding::for_label_no_replacement(l.as_bytes()).map(Charset::Whatwg);
    if let Some(found) = by_label(&lower).or_else(|| by_label(&name)) {
        return Some(found);
    }
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let respelt = if (name.starts_with("win") || name.starts_with("cp") || name.starts_with("x-cp"))
        && digits.starts_with("125")
    {
        by_label(&format!("windows-{digits}"))
    } else if name.starts_with("iso") && digits.starts_with("8859") && digits.len() > 4 {
        by_label(&format!("iso-8859-{}", &digits[4..]))
    } else if name.starts_with("ansi") || name.starts_with("ascii") || name.starts_with("us-ascii")
    {
        Some(Charset::Whatwg(WINDOWS_1252))
    } else if matches!(name.as_str(), "cp932" | "ms932") {
        by_label("shift_jis")
    } else if matches!(name.as_str(), "cp936" | "ms936") {
        by_label("gbk")
    } else if matches!(name.as_str(), "cp949" | "ms949" | "ks-c-5601" | "uhc") {
        by_label("euc-kr")
    } else {
        None
    };
    respelt.or_else(|| charset_decoder(name.as_bytes()).map(Charset::Table))
}

/// RFC 2152, tolerant: a run that is no base64 stays as it stands.
fn utf7(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        at += 1;
        if b != b'+' {
            out.push(char::from(b));
            continue;
        }
        let run = bytes[at..]
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
            .count();
        if run == 0 {
            out.push('+');
            at += usize::from(bytes.get(at) == Some(&b'-'));
            continue;
        }
        let (mut bits, mut held) = (0u32, 0u32);
        let mut units = Vec::with_capacity(run / 2);
        for &c in &bytes[at..at + run] {
            let value = match c {
                b'A'..=b'Z' => c - b'A',
                b'a'..=b'z' => c - b'a' + 26,
                b'0'..=b'9' => c - b'0' + 52,
                b'+' => 62,
                _ => 63,
            };
            bits = bits << 6 | u32::from(value);
            held += 6;
            if held >= 16 {
                held -= 16;
                units.push((bits >> held & 0xFFFF) as u16);
                bits &= (1 << held) - 1;
            }
        }
        if held >= 6 || bits != 0 || units.is_empty() {
            out.push('+');
            out.extend(bytes[at..at + run].iter().map(|&b| char::from(b)));
            at += run;
            continue;
        }
        out.extend(char::decode_utf16(units).map(|r| r.unwrap_or('\u{FFFD}')));
        at += run;
        at += usize::from(bytes.get(at) == Some(&b'-'));
    }
    out
}

/// How a 7-bit charset marks its two-byte letters.
struct Shift {
    enter: &'static [u8],
    leave: &'static [u8],
    designator: &'static [u8],
}

impl Shift {
    const KR: Self = Self { enter: b"\x0e", leave: b"\x0f", designator: b"\x1b$)C" };
    const HZ: Self = Self { enter: b"~{", leave: b"~}", designator: b"~\n" };
}

/// Sets the high bit between the shift codes, which turns the text into its 8-bit sibling.
fn shifted(bytes: &[u8], shift: &Shift) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut wide) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(shift.designator) {
            at += shift.designator.len();
        } else if rest.starts_with(shift.enter) {
            wide = true;
            at += shift.enter.len();
        } else if rest.starts_with(shift.leave) {
            wide = false;
            at += shift.leave.len();
        } else {
            // A line end always leaves the wide state (both RFCs).
            wide &= rest[0] != b'\n';
            out.push(if wide && rest[0] > 0x20 { rest[0] | 0x80 } else { rest[0] });
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], label: &str) -> String {
        decode(bytes, (!label.is_empty()).then_some(label.as_bytes()), None).text.into_owned()
    }

    #[test]
    fn utf8_wins_over_a_wrong_latin_label() {
        for label in ["", "us-ascii", "iso-8859-1", "x-unknown", "default_charset"] {
            assert_eq!(text("żółw".as_bytes(), label), "żółw", "{label}");
        }
        assert_eq!(text(b"caf\xe9", "us-ascii"), "café");
        assert_eq!(text(b"caf\xe9", "utf-8"), "café");
    }

    #[test]
    fn misspelt_labels_are_understood() {
        for label in ["uft-8", "UTF8", "utf-8-base64", "\"utf-8\"", "utf_8", "utf-8return-path: 1"]
        {
            assert_eq!(text("ż".as_bytes(), label), "ż", "{label}");
        }
        assert_eq!(text(b"\xcf\xf0\xe8", "cp-1251"), "При");
        assert_eq!(text(b"\x1b$B%O\x1b(B", "_iso-2022-jp"), "ハ");
        assert_eq!(text(b"\x1b$B%O\x1b(B", ""), "ハ");
    }

    #[test]
    fn japanese_words_joined_at_their_escapes_were_given_up() {
        assert_eq!(text(b"\x1b$B%O\x1b(B\x1b$B%O\x1b(B", "iso-2022-jp"), "ハハ");
    }

    #[test]
    fn undeclared_text_of_other_scripts_is_told_by_its_bytes() {
        let (cyrillic, _, _) = encoding_rs::KOI8_R.encode("Завтра обсудим ремонт котла в школе");
        for label in ["", "us-ascii", "x-unknown"] {
            assert_eq!(text(&cyrillic, label), "Завтра обсудим ремонт котла в школе", "{label}");
        }
        assert_ne!(text(&cyrillic, "iso-8859-1"), "Завтра обсудим ремонт котла в школе");
        let hinted = decode(b"\xf0\xd2\xc9", None, Some(b"us-ascii")).text;
        assert_eq!(hinted, "ðÒÉ");
    }

    #[test]
    fn shift_charsets() {
        assert_eq!(text(b"\x1b$)C\x0e>H3g\x0f a", "iso-2022-kr"), "안녕 a");
        assert_eq!(text(b"~{VPND~} a", "hz-gb-2312"), "中文 a");
    }

    #[test]
    fn utf7_runs_cut_at_the_end_or_escaped() {
        assert_eq!(text(b"1 +- 1 +AOk-t+AOk", "utf-7"), "1 + 1 été");
        assert_eq!(text(b"a+b c", "unicode-1-1-utf-7"), "a+b c");
    }
}
