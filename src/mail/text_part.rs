//! One text leaf → a draft: files taken out, charset, controls, flowed paragraphs, OpenPGP states.
//!
//! Does not decide whether the leaf is text (that is `collect`), does not render HTML (`compose`).

use std::borrow::Cow;

use super::attachment;
use super::charset;
use super::collect::{Collected, Content, Draft, Role, alternative_of, push};
use super::flowed;
use super::html;
use super::inline_block;
use super::message::{DefectKind, Flags};
use super::plain_text::{self, Found};
use super::structure::Tree;

/// Most bytes of one plain text part that are decoded (four times the cap of the whole text).
pub(super) const TEXT_INPUT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Decodes a text leaf into a draft; files inside it become attachments. `tail` is plain text that
/// followed the encoded body.
pub(super) fn read(
    tree: &Tree<'_>,
    index: usize,
    bytes: Cow<'_, [u8]>,
    tail: &[u8],
    role: &Role,
    out: &mut Collected,
) {
    let part = &tree.parts[index];
    let place = tree.path(index);
    let mut bytes = bytes;
    if !tail.is_empty() {
        let joined = bytes.to_mut();
        joined.extend_from_slice(b"\n");
        joined.extend_from_slice(tail);
    }
    let bytes = without_files(bytes, &place, out);
    let bytes_max =
        if matches!(role, Role::Html) { html::INPUT_BYTES_MAX } else { TEXT_INPUT_BYTES_MAX };
    let cut = bytes.len() > bytes_max;
    let input = &bytes[..bytes.len().min(bytes_max)];
    if cut {
        out.flags.body_truncated = true;
        out.defects.push(DefectKind::Truncated, &place);
    }
    let declared = part.content_type.param("charset").map(str::as_bytes);
    let label = match (declared, role) {
        (None, Role::Html) => meta_charset(input),
        (declared, _) => declared,
    };
    let decoded = charset::decode(input, label, None);
    if decoded.mended {
        out.defects.push(DefectKind::CharsetMended, &place);
    }
    if decoded.replaced {
        out.defects.push(DefectKind::BytesReplaced, &place);
    }
    let content = if matches!(role, Role::Html) {
        Content::Html(decoded.text.into_owned())
    } else {
        let mut found = Found { seen: out.seen, ..Found::default() };
        let mut text = plain_text::clean(decoded.text, &mut found);
        out.seen = found.seen;
        if found.controls {
            out.defects.push(DefectKind::ControlsRemoved, &place);
        }
        if matches!(role, Role::Enriched) {
            text = without_commands(&text);
        }
        let flowed =
            part.content_type.param("format").is_some_and(|f| f.eq_ignore_ascii_case("flowed"));
        if flowed {
            let delsp =
                part.content_type.param("delsp").is_some_and(|d| d.eq_ignore_ascii_case("yes"));
            text = flowed::unflow(&text, delsp);
        }
        pgp_states(&text, &mut out.flags);
        Content::Plain(text)
    };
    out.drafts.push(Draft { content, alternative: alternative_of(tree, index), place });
}

/// Takes uuencoded and yEnc files out of a text.
fn without_files<'a>(bytes: Cow<'a, [u8]>, place: &str, out: &mut Collected) -> Cow<'a, [u8]> {
    let blocks = inline_block::find(&bytes);
    if blocks.is_empty() {
        return bytes;
    }
    let mut rest = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for block in blocks {
        rest.extend_from_slice(&bytes[at..block.range.start]);
        at = block.range.end;
        if block.damaged {
            out.defects.push(DefectKind::EncodingDamaged, place);
        }
        push(out, attachment::inline_file(&block.filename, &block.bytes));
    }
    rest.extend_from_slice(&bytes[at..]);
    Cow::Owned(rest)
}

/// `charset=` in the first kilobyte of HTML (`<meta>`).
fn meta_charset(html: &[u8]) -> Option<&[u8]> {
    let head = &html[..html.len().min(1024)];
    let at = memchr::memmem::find(head, b"charset=")?;
    let value = head[at + 8..].trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':')))?;
    Some(&value[..end]).filter(|v| !v.is_empty())
}

/// OpenPGP states of a text: armour that stands at the start of a line.
fn pgp_states(text: &str, flags: &mut Flags) {
    for (at, _) in text.match_indices("-----BEGIN PGP ") {
        if at > 0 && text.as_bytes()[at - 1] != b'\n' {
            continue;
        }
        let kind = &text[at + 15..];
        flags.encrypted |= kind.starts_with("MESSAGE-----");
        flags.signed |= kind.starts_with("SIGNED MESSAGE-----");
    }
}

/// text/enriched (RFC 1896) without its commands; `<<` is a real `<`.
fn without_commands(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        rest = &rest[open + 1..];
        if let Some(after) = rest.strip_prefix('<') {
            out.push('<');
            rest = after;
        } else if let Some(close) =
            rest.get(..rest.len().min(80)).or(Some(rest)).and_then(|r| r.find('>'))
        {
            rest = &rest[close + 1..];
        } else {
            out.push('<');
        }
    }
    out.push_str(rest);
    out
}
