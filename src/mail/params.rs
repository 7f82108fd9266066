//! Content-Type and Content-Disposition (RFC 2045 §5, RFC 2183, RFC 2231) → value and parameters.
//!
//! `value *( ";" name "=" ( token / quoted ) )`. Sections of one parameter (`name*0*`) are joined as
//! bytes before decoding. Missing semicolons, unquoted blanks, unclosed quotes, encoded words and
//! raw 8-bit bytes are understood. Never fails: what makes no sense is left out.

use memchr::memmem;

use super::encoded_word;
use super::header::unfold;
use super::transfer::hex_pair;
use super::{charset, encoded_word::one_line};

/// Most parameters or sections read from one field.
const SECTIONS_MAX: usize = 256;
/// Longest field looked at, bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A field with parameters.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Parameterised {
    /// The value before the first semicolon, lower case, comments and blanks gone.
    pub(super) value: String,
    params: Vec<(String, String)>,
}

impl Parameterised {
    /// A parameter by its lower-case name, decoded; empty ones count as absent.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str())
    }

    /// Reads a raw field value.
    pub(super) fn read(raw: &[u8]) -> Self {
        let raw = &raw[..raw.len().min(VALUE_BYTES_MAX)];
        let bytes = unfold(raw);
        let first_end = bytes.iter().position(|&b| b == b';').unwrap_or(bytes.len());
        let head = bytes[..first_end].trim_ascii();
        // `text/plain charset=x`: the semicolon was forgotten.
        let head_end =
            head.iter().position(|b| b.is_ascii_whitespace() || *b == b'(').unwrap_or(head.len());
        let value: String = head[..head_end]
            .iter()
            .filter(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\''))
            .map(|b| char::from(b.to_ascii_lowercase()))
            .collect();
        let mut sections = Vec::new();
        if memchr::memchr(b'=', &head[head_end..]).is_some() {
            read_sections(&head[head_end..], &mut sections);
        }
        read_sections(bytes.get(first_end + 1..).unwrap_or_default(), &mut sections);
        Self { value, params: join(sections) }
    }
}

/// One `name*section*=value` as it stands.
struct Section {
    name: String,
    /// Place among the sections, `None` for a whole parameter.
    number: Option<u32>,
    /// Percent-encoded, first one with charset and language.
    extended: bool,
    bytes: Vec<u8>,
}

fn read_sections(mut rest: &[u8], sections: &mut Vec<Section>) {
    while sections.len() < SECTIONS_MAX {
        rest = rest.trim_ascii_start();
        while let [b';', tail @ ..] = rest {
            rest = tail.trim_ascii_start();
        }
        let Some(stop) = rest.iter().position(|&b| matches!(b, b'=' | b';')) else { return };
        let name = rest[..stop].trim_ascii();
        if rest[stop] == b';' {
            rest = &rest[stop..];
            continue;
        }
        let name: String = String::from_utf8_lossy(name).to_ascii_lowercase();
        // Words before the name (`foo charset`): only the last one is it.
        let name = name.rsplit(char::is_whitespace).next().unwrap_or_default();
        rest = rest[stop + 1..].trim_ascii_start();
        let is_name = name.starts_with("name") || name.starts_with("filename");
        let bytes;
        (bytes, rest) = read_value(rest, is_name);
        let mut pieces = name.split('*');
        let base = pieces.next().unwrap_or_default().to_owned();
        let (second, third) = (pieces.next(), pieces.next());
        let number = second.and_then(|s| s.parse().ok());
        let extended = third == Some("") || second == Some("");
        sections.push(Section { name: base, number, extended, bytes });
    }
}

/// A quoted string or a token; tokens of file names may hold blanks.
fn read_value(rest: &[u8], is_name: bool) -> (Vec<u8>, &[u8]) {
    if let [b'"', tail @ ..] = rest {
        let mut out = Vec::with_capacity(32);
        let mut at = 0;
        while let Some(&b) = tail.get(at) {
            at += 1;
            match b {
                b'"' => break,
                b'\\' if matches!(tail.get(at), Some(b'"' | b'\\')) => {
                    out.push(tail[at]);
                    at += 1;
                }
                _ => out.push(b),
            }
        }
        return (out, &tail[at..]);
    }
    let mut end = rest.iter().position(|&b| b == b';').unwrap_or(rest.len());
    let next = end;
    if !is_name && let Some(blank) = rest[..end].iter().position(u8::is_ascii_whitespace) {
        end = blank;
        // A forgotten semicolon: the next parameter follows the blank.
        if memchr::memchr(b'=', &rest[blank..next]).is_some() {
            return (rest[..end].to_vec(), &rest[end..]);
        }
    }
    (rest[..end].trim_ascii().to_vec(), &rest[next..])
}

fn join(mut sections: Vec<Section>) -> Vec<(String, String)> {
    let mut params: Vec<(String, String)> = Vec::new();
    // Stable: sections of one name in their order, whole ones first.
    sections.sort_by(|a, b| a.name.cmp(&b.name).then(a.number.cmp(&b.number)));
    for group in sections.chunk_by(|a, b| a.name == b.name) {
        let sectioned: Vec<&Section> = group.iter().filter(|s| s.number.is_some()).collect();
        let extended = group.iter().find(|s| s.number.is_none() && s.extended);
        let whole = group.iter().find(|s| s.number.is_none());
        let value = if !sectioned.is_empty() {
            decode_sections(&sectioned)
        } else if let Some(section) = extended {
            decode_sections(&[section])
        } else if let Some(section) = whole {
            decode_plain(&section.bytes)
        } else {
            continue;
        };
        params.push((group[0].name.clone(), value));
    }
    params
}

fn decode_sections(sections: &[&Section]) -> String {
    let mut bytes = Vec::new();
    let mut label: Option<Vec<u8>> = None;
    for (i, section) in sections.iter().enumerate() {
        let mut value = section.bytes.as_slice();
        if section.extended {
            if i == 0 {
                let mut pieces = value.splitn(3, |&b| b == b'\'');
                if let (Some(l), Some(_), Some(v)) = (pieces.next(), pieces.next(), pieces.next()) {
                    label = Some(l.to_vec());
                    value = v;
                }
            }
            let mut at = 0;
            while let Some(&b) = value.get(at) {
                at += 1;
                match (b, hex_pair(&value[at..])) {
                    (b'%', Some(byte)) => {
                        bytes.push(byte);
                        at += 2;
                    }
                    _ => bytes.push(b),
                }
            }
        } else {
            bytes.extend_from_slice(value);
        }
    }
    match label {
        Some(label) => charset::decode(&bytes, Some(&label), None).text.into_owned(),
        None => decode_plain(&bytes),
    }
}

/// A value outside RFC 2231: encoded words are not allowed there and yet common.
fn decode_plain(bytes: &[u8]) -> String {
    if memmem::find(bytes, b"=?").is_some() {
        return one_line(&encoded_word::decode(bytes, None));
    }
    charset::decode(bytes, None, None).text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(raw: &str, name: &str) -> String {
        Parameterised::read(raw.as_bytes()).param(name).unwrap_or_default().to_owned()
    }

    #[test]
    fn sections_cut_inside_a_character_are_joined_first() {
        let raw = "attachment; filename*1*=%BC.txt; filename*0*=utf-8''a%C5;\r\n x=1";
        assert_eq!(param(raw, "filename"), "aż.txt");
        assert_eq!(param("a/b; name*0=\"ab\"; name*1=cd", "name"), "abcd");
        assert_eq!(param("a/b; filename=plain.txt; filename*=utf-8''%C5%BC", "filename"), "ż");
    }

    #[test]
    fn encoded_words_in_parameters() {
        assert_eq!(param("a/b; name=\"=?utf-8?Q?=C5?=\r\n =?utf-8?Q?=BC.pdf?=\"", "name"), "ż.pdf");
    }

    #[test]
    fn forgotten_semicolons_and_quotes() {
        let p = Parameterised::read(b"Text/Plain charset=utf-8 format=flowed");
        assert_eq!(
            (p.value.as_str(), p.param("charset"), p.param("format")),
            ("text/plain", Some("utf-8"), Some("flowed"))
        );
        assert_eq!(param("a/b; filename=two words.txt; x=y", "filename"), "two words.txt");
        assert_eq!(param("a/b; boundary=\"open", "boundary"), "open");
        assert_eq!(param("a/b; charset=us-ascii (Plain text)", "charset"), "us-ascii");
    }
}
