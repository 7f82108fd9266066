//! Bytes of one message → [`Message`]: the order in which the readers of this folder are asked.
//!
//! Never fails, never panics, never gives up a whole message; time is linear in the bytes, memory
//! bounded by a small multiple of them. What was wrong is in `defects`.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use sha2::{Digest as _, Sha256};

use super::address::{self, ADDRESSES_MAX};
use super::charset;
use super::charset_guess;
use super::collect::{self, Collected};
use super::compose;
use super::defects::Defects;
use super::encoded_word::{self, cut_chars};
use super::header::{self, Headers};
use super::language;
use super::list;
use super::message::{Address, DefectKind, Digest, Message, ReadHints};
use super::message_id::{self, message_id_normal};
use super::structure::{self, Tree};
use super::timeline;

/// Longest subject, characters.
const SUBJECT_CHARS_MAX: usize = 998;

/// Reads one message.
#[must_use]
pub fn read(raw: &[u8], hints: &ReadHints) -> Message {
    let raw_digest: Digest = Sha256::digest(raw).into();
    let bytes = with_line_feeds(raw);
    let (headers, body_from) = header::split(&bytes, 0, true, |_| false);
    let mut defects = Defects::default();
    if headers.is_empty() && !bytes.trim_ascii().is_empty() {
        defects.push(DefectKind::NoHeaders, "");
    }
    if headers.truncated {
        defects.push(DefectKind::Truncated, "");
    }
    let times = timeline::settle(&headers, hints, &mut defects);
    let tree = structure::walk(&bytes, headers, body_from);
    // The defects of the headers come first, as they were discovered.
    let mut collected = Collected { defects, ..Collected::default() };
    collect::collect(&tree, 0, &mut collected);
    let composed = compose::compose(&mut collected);

    let headers = &tree.parts[0].headers;
    let hint = header_charset(&tree, &bytes, body_from);
    let mut message = Message {
        raw_bytes: raw.len() as u64,
        raw_digest,
        sent_ms: times.sent,
        received_ms: times.received,
        date_ms: times.date,
        text: composed.text,
        text_from_html: composed.from_html,
        new_ranges: composed.new_ranges,
        attachments: std::mem::take(&mut collected.attachments),
        ..Message::default()
    };
    let mut defects = std::mem::take(&mut collected.defects);
    people(&mut message, headers, hint, &mut defects);
    message.subject =
        headers.get("Subject").map(|raw| encoded_word::text(raw, hint)).unwrap_or_default();
    if cut_chars(&mut message.subject, SUBJECT_CHARS_MAX) {
        defects.push(DefectKind::Truncated, "Subject");
    }
    identifiers(&mut message, headers, &mut defects);
    message.list_id = list::list_id(headers);
    message.kind =
        list::kind(headers, &tree, collected.flags, message.list_id.is_some(), &message.subject);
    message.content_digest = content_digest(&message.subject, &collected.digests);
    message.language = language_of(&message);
    message.flags = collected.flags;
    message.defects = defects.into_vec();
    message
}

/// Lines that end in CR alone become lines (old Macintosh mail); everything else is left as it is.
fn with_line_feeds(raw: &[u8]) -> Cow<'_, [u8]> {
    let lone = memchr2(b'\r', b'\n', raw)
        .is_some_and(|i| raw[i] == b'\r' && raw.get(i + 1) != Some(&b'\n'));
    if !lone {
        return Cow::Borrowed(raw);
    }
    let crs = memchr::memchr_iter(b'\r', raw).count();
    let feeds = memchr::memchr_iter(b'\n', raw).count();
    if crs <= feeds {
        return Cow::Borrowed(raw);
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(i) = memchr(b'\r', &raw[at..]) {
        bytes.extend_from_slice(&raw[at..at + i]);
        bytes.push(b'\n');
        at += i + 1;
        at += usize::from(raw.get(at) == Some(&b'\n'));
    }
    bytes.extend_from_slice(&raw[at..]);
    Cow::Owned(bytes)
}

/// What raw 8-bit bytes in headers are likely to be in: the charset of the first text part, or what
/// the message as a whole looks like.
fn header_charset<'t>(tree: &'t Tree<'_>, bytes: &[u8], body_from: usize) -> Option<&'t [u8]> {
    let part = tree.parts.iter().find(|p| p.content_type.value.starts_with("text/"));
    let declared = part.and_then(|p| p.content_type.param("charset")).map(str::as_bytes);
    if declared.is_some_and(charset::is_usable) || bytes[..body_from].is_ascii() {
        return declared;
    }
    charset_guess::guess(bytes).map(|encoding| encoding.name().as_bytes()).or(declared)
}

fn people(
    message: &mut Message,
    headers: &Headers<'_>,
    hint: Option<&[u8]>,
    defects: &mut Defects,
) {
    let mut all = |name: &str, one_author: bool| -> Vec<Address> {
        let mut entries: Vec<Address> = Vec::new();
        for raw in headers.all(name) {
            let list = address::list(raw, hint, one_author);
            if list.truncated || entries.len() + list.entries.len() > ADDRESSES_MAX {
                defects.push(DefectKind::Truncated, name);
            }
            if list.unreadable {
                defects.push(DefectKind::AddressUnreadable, name);
            }
            entries.extend(list.entries);
            entries.truncate(ADDRESSES_MAX);
            if entries.len() >= ADDRESSES_MAX {
                break;
            }
        }
        entries
    };
    message.from = all("From", true);
    message.sender = all("Sender", true).into_iter().next();
    message.reply_to = all("Reply-To", true);
    message.to = all("To", false);
    message.cc = all("Cc", false);
    message.bcc = all("Bcc", false);
    for name in ["Delivered-To", "X-Original-To"] {
        for entry in all(name, false) {
            if !entry.address.is_empty() && !message.delivered_to.contains(&entry.address) {
                message.delivered_to.push(entry.address);
            }
        }
    }
    message.delivered_to.truncate(ADDRESSES_MAX);
}

fn identifiers(message: &mut Message, headers: &Headers<'_>, defects: &mut Defects) {
    let text = |name: &str| headers.get(name).map(charset_text);
    let declared = text("Message-ID").and_then(|t| message_id_normal(&t));
    message.message_id_synthetic = declared.is_none();
    message.message_id = declared.unwrap_or_else(|| {
        defects.push(DefectKind::MessageIdUnusable, "Message-ID");
        let hex = message.raw_digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
            for nibble in [byte >> 4, byte & 0xF] {
                hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
            hex
        });
        format!("{hex}@synthetic.invalid")
    });
    if let Some(text) = text("In-Reply-To") {
        message.in_reply_to = message_id::in_reply_to(&text).ids;
    }
    if let Some(text) = text("References") {
        let list = message_id::references(&text);
        if list.truncated {
            defects.push(DefectKind::Truncated, "References");
        }
        message.references = list.ids;
    }
}

/// An identifier header as text; identifiers are ASCII, so no encoded words.
fn charset_text(raw: &[u8]) -> String {
    let raw = &raw[..raw.len().min(256 * 1024)];
    String::from_utf8_lossy(&header::unfold(raw)).into_owned()
}

/// Over the subject and the leaves, blind to transport.
fn content_digest(subject: &str, leaves: &[Digest]) -> Digest {
    let mut hash = Sha256::new();
    hash.update((subject.len() as u64).to_le_bytes());
    hash.update(subject);
    for leaf in leaves {
        hash.update(leaf);
    }
    hash.finalize().into()
}

/// Language of the new text, from its first ranges.
fn language_of(message: &Message) -> Option<&'static str> {
    let mut sample = String::new();
    for range in &message.new_ranges {
        if sample.len() > 2048 {
            break;
        }
        sample.push_str(&message.text[range.start as usize..range.end as usize]);
        if message.new_ranges.len() == 1 {
            return language::detect(&message.text[range.start as usize..range.end as usize]);
        }
    }
    language::detect(&sample)
}

#[cfg(test)]
#[path = "read_test.rs"]
mod read_test;
