//! Address headers (RFC 5322 §3.4, §4.4) → names and addresses in normal form.
//!
//! `list = ( mailbox / group ) *( "," … )`, `mailbox = [phrase] "<" addr ">" / addr ["(" name ")"]`,
//! `group = phrase ":" list ";"`. Routes, comments, encoded words, quotes that never close, masked
//! `user at host` and bare names are understood; what is no address is kept as a name.

use std::borrow::Cow;

use super::encoded_word::{self, cut_chars};
use super::header::unfold;
use super::message::Address;

/// Longest display name, characters.
const NAME_CHARS_MAX: usize = 256;
/// Most addresses of one header.
pub(super) const ADDRESSES_MAX: usize = 200;
/// Longest header value looked at, bytes.
const VALUE_BYTES_MAX: usize = 256 * 1024;
/// Longest address, bytes (RFC 5321 allows 254; some gateways write X.400 names).
const ADDRESS_BYTES_MAX: usize = 512;

/// What one address header holds.
#[derive(Debug, Default)]
pub(super) struct AddressList {
    pub(super) entries: Vec<Address>,
    /// More than the cap, or a name was cut.
    pub(super) truncated: bool,
    /// Something could not be read as an address and was kept as a name.
    pub(super) unreadable: bool,
}

/// Normal form of one address: lower case, domain as A-label (IDNA 2008), dots of the local part
/// kept, no brackets. `None` when it is no address.
#[must_use]
pub fn address_normal(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches('<').trim_end_matches('>').trim();
    let head = text.get(..7).filter(|h| h.eq_ignore_ascii_case("mailto:"));
    let text = if head.is_some() { &text[7..] } else { text };
    // A source route: `@relay,@relay:user@host`.
    let text = match text.strip_prefix('@').and_then(|t| t.split_once(':')) {
        Some((_, user)) => user,
        None => text,
    };
    let (local, domain) = text.rsplit_once('@')?;
    let (local, domain) = (local.trim(), domain.trim().trim_end_matches(['.', ',', ';']));
    if local.is_empty() || domain.is_empty() || text.len() > ADDRESS_BYTES_MAX {
        return None;
    }
    if domain.contains(|c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '(' | ')' | ',')
    }) {
        return None;
    }
    let unquoted =
        local.strip_prefix('"').and_then(|l| l.strip_suffix('"')).filter(|l| is_dot_atom(l));
    let local = unquoted.unwrap_or(local);
    if !local.starts_with('"')
        && local.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>'))
    {
        return None;
    }
    let plain =
        domain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    let domain: Cow<'_, str> = if plain || domain.is_ascii() {
        Cow::Owned(domain.to_ascii_lowercase())
    } else {
        Cow::Owned(idna::domain_to_ascii(domain).unwrap_or_else(|_| domain.to_lowercase()))
    };
    let mut out = if local.is_ascii() { local.to_ascii_lowercase() } else { local.to_lowercase() };
    out.push('@');
    out.push_str(&domain);
    Some(out)
}

fn is_dot_atom(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&b))
}

/// Reads a whole address header, raw. `one_author` tells that a comma inside an unquoted name is
/// likelier than a second entry (From, Sender, Reply-To).
pub(super) fn list(raw: &[u8], hint: Option<&[u8]>, one_author: bool) -> AddressList {
    let raw = unfold(&raw[..raw.len().min(VALUE_BYTES_MAX)]);
    let mut reader = Reader {
        bytes: &raw,
        at: 0,
        hint,
        out: AddressList::default(),
        one_author,
        mailbox: Mailbox::default(),
    };
    reader.run();
    reader.out
}

/// One mailbox while it is being read.
#[derive(Default)]
struct Mailbox {
    /// Words outside `<>` and comments, quotes removed.
    phrase: Vec<u8>,
    comment: Vec<u8>,
    angle: Option<Vec<u8>>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    hint: Option<&'a [u8]>,
    out: AddressList,
    one_author: bool,
    mailbox: Mailbox,
}

impl Reader<'_> {
    fn run(&mut self) {
        // Closing marks are looked for once from each opening one; when none is left, none ever is.
        let (last_quote, last_bracket, last_angle) = (
            memchr::memrchr(b'"', self.bytes),
            memchr::memrchr(b')', self.bytes),
            memchr::memrchr(b'>', self.bytes),
        );
        while let Some(&b) = self.bytes.get(self.at) {
            if self.out.entries.len() >= ADDRESSES_MAX {
                self.out.truncated |= !self.bytes[self.at..].trim_ascii().is_empty();
                return;
            }
            let closes_later = |last: Option<usize>| last.is_some_and(|l| l > self.at);
            match b {
                b'"' if closes_later(last_quote) => self.quoted(),
                b'(' if closes_later(last_bracket) => self.comment(),
                b'<' if closes_later(last_angle) => self.angle(),
                b',' | b';' => {
                    self.at += 1;
                    self.finish(b == b',');
                }
                b':' if self.mailbox.angle.is_none() && !self.mailbox.phrase.contains(&b'@') => {
                    // A group name, or `mailto:`: neither names a person.
                    self.at += 1;
                    self.mailbox = Mailbox::default();
                }
                _ => {
                    self.at += 1;
                    if b != b'<' && b != b'>' {
                        self.mailbox.phrase.push(b);
                    }
                }
            }
        }
        self.finish(false);
    }

    fn quoted(&mut self) {
        self.at += 1;
        // A quoted local part keeps its quotes: the address needs them.
        let start = self.mailbox.phrase.len();
        while let Some(&b) = self.bytes.get(self.at) {
            self.at += 1;
            match b {
                b'"' => break,
                b'\\' if self.at < self.bytes.len() => {
                    self.mailbox.phrase.push(self.bytes[self.at]);
                    self.at += 1;
                }
                _ => self.mailbox.phrase.push(b),
            }
        }
        let inside = String::from_utf8_lossy(&self.mailbox.phrase[start..]);
        if self.bytes.get(self.at) == Some(&b'@') && !is_dot_atom(&inside) {
            self.mailbox.phrase.insert(start, b'"');
            self.mailbox.phrase.push(b'"');
        }
    }

    fn comment(&mut self) {
        let mut depth = 0u32;
        if !self.mailbox.comment.is_empty() {
            self.mailbox.comment.push(b' ');
        }
        while let Some(&b) = self.bytes.get(self.at) {
            self.at += 1;
            match b {
                b'(' => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                b'\\' if self.at < self.bytes.len() => {
                    self.mailbox.comment.push(self.bytes[self.at]);
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            self.mailbox.comment.push(b);
        }
    }

    fn angle(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        let inside = &rest[..end];
        self.at += end + 2;
        // `<<a@b>` and `name <not an address> <a@b>`: the last one with a sign counts.
        let inside = inside.rsplit(|&b| b == b'<').next().unwrap_or(inside);
        if let Some(before) = self.mailbox.angle.take_if(|a| !a.contains(&b'@')) {
            self.mailbox.phrase.extend_from_slice(&before);
        }
        self.mailbox.angle.get_or_insert_with(|| inside.to_vec());
    }

    /// Ends a mailbox at a comma, a semicolon or the end.
    fn finish(&mut self, at_comma: bool) {
        let Mailbox { phrase, comment, angle } = std::mem::take(&mut self.mailbox);
        let words = encoded_word::text(&phrase, self.hint);
        if self.one_author
            && at_comma
            && angle.is_none()
            && !words.is_empty()
            && !words.contains('@')
            && self.angle_follows()
        {
            self.mailbox.phrase = phrase;
            self.mailbox.phrase.push(b',');
            self.mailbox.comment = comment;
            return;
        }
        let remark = || encoded_word::text(&comment, self.hint);
        if let Some(inside) = angle {
            let inside = encoded_word::text(&inside, self.hint);
            let address = address_normal(&without_comment(&inside)).or_else(|| unmasked(&inside));
            let name = if words.is_empty() { remark() } else { words };
            match address {
                Some(address) => self.push(name, address),
                None if name.is_empty() => self.push_unreadable(inside),
                None if inside.is_empty() => self.push_unreadable(name),
                None => self.push_unreadable(format!("{name} <{inside}>")),
            }
            return;
        }
        if words.is_empty() {
            let remark = remark();
            if !remark.is_empty() {
                self.push_unreadable(remark);
            }
        } else if let Some(address) = address_normal(&words).or_else(|| unmasked(&words)) {
            self.push(remark(), address);
        } else if words.contains('@') {
            self.read_words(&words, &remark());
        } else {
            let remark = remark();
            self.push_unreadable(if remark.is_empty() {
                words
            } else {
                format!("{words} ({remark})")
            });
        }
    }

    /// Words with an address among them: `Ann ann@x`, `a@x b@y`, `user @ host`.
    fn read_words(&mut self, words: &str, remark: &str) {
        let glued = words.replace(" @", "@").replace("@ ", "@");
        let mut name = String::new();
        let mut found = Vec::new();
        for word in glued.split(' ') {
            match address_normal(
                word.trim_matches(|c| matches!(c, '[' | ']' | '\'' | '"' | '<' | '>')),
            ) {
                Some(address) => found.push(address),
                None => {
                    if !name.is_empty() {
                        name.push(' ');
                    }
                    name.push_str(word);
                }
            }
        }
        if name.is_empty() {
            remark.clone_into(&mut name);
        }
        if found.is_empty() {
            self.push_unreadable(words.to_owned());
        }
        for address in found {
            self.push(std::mem::take(&mut name), address);
        }
    }

    /// The text up to the next comma holds `<`: a comma before it belongs to the name.
    fn angle_follows(&self) -> bool {
        let rest = &self.bytes[self.at..];
        memchr::memchr3(b'<', b',', b';', rest).is_some_and(|i| rest[i] == b'<')
    }

    fn push_unreadable(&mut self, name: String) {
        if !name.is_empty() {
            self.out.unreadable = true;
            self.push(name, String::new());
        }
    }

    fn push(&mut self, name: String, address: String) {
        let bare = name.strip_prefix('\'').and_then(|n| n.strip_suffix('\'')).map(str::trim);
        let mut name = bare.map(str::to_owned).unwrap_or(name);
        self.out.truncated |= cut_chars(&mut name, NAME_CHARS_MAX);
        self.out.entries.push(Address { name, address });
    }
}

fn without_comment(inside: &str) -> Cow<'_, str> {
    match (inside.find('('), inside.rfind(')')) {
        (Some(open), Some(close)) if open < close => {
            Cow::Owned(format!("{}{}", &inside[..open], &inside[close + 1..]))
        }
        _ => Cow::Borrowed(inside),
    }
}

/// `user at host` as mailing-list archives mask addresses; nothing else may stand beside it.
fn unmasked(words: &str) -> Option<String> {
    let mut pieces = words.split(' ');
    let (user, at, host) = (pieces.next()?, pieces.next()?, pieces.next()?);
    if !at.eq_ignore_ascii_case("at") && !matches!(at, "[at]" | "(at)") {
        return None;
    }
    let mut host = host.to_owned();
    while let Some(word) = pieces.next() {
        if !word.eq_ignore_ascii_case("dot") {
            return None;
        }
        host.push('.');
        host.push_str(pieces.next()?);
    }
    let hostlike = host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_') || b >= 0x80);
    if hostlike { address_normal(&format!("{user}@{host}")) } else { None }
}

#[cfg(test)]
#[path = "address_test.rs"]
mod address_test;
