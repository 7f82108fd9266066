//! The parts of one entity → drafts of its text, attachments and facts.
//!
//! Decides what is body and what is attachment, decodes each leaf once, opens nested messages (three
//! levels) and opaque signatures. Does not choose between alternatives and does not join texts; that
//! is `compose`. Every leaf ends up as a draft, an attachment, or both.

use super::attachment::{self, transport_digest};
use super::charset;
use super::compose;
use super::defects::Defects;
use super::encoded_word;
use super::header;
use super::invisible::Seen;
use super::message::{Attachment, DefectKind, Digest, Flags};
use super::plain_text::{self, Found};
use super::smime::{self, Container};
use super::sniff;
use super::structure::{self, Part, Tree};
use super::text_part::{self, TEXT_INPUT_BYTES_MAX};
use super::transfer;

/// How deep messages within messages are opened.
const LEVELS_MAX: usize = 3;
/// Longest text of a nested message, bytes.
const NESTED_TEXT_BYTES_MAX: usize = 256 * 1024;
/// Most attachments listed.
const ATTACHMENTS_MAX: usize = 1000;

/// A part that may become text.
pub(super) struct Draft {
    pub(super) content: Content,
    /// The multipart/alternative it is one reading of.
    pub(super) alternative: Option<usize>,
    /// Part path, for defects.
    pub(super) place: String,
}

/// Text, ready or still to be rendered.
pub(super) enum Content {
    /// Clean text.
    Plain(String),
    /// HTML source.
    Html(String),
}

/// Everything the parts of a message gave.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) drafts: Vec<Draft>,
    pub(super) attachments: Vec<Attachment>,
    /// Digests of all leaves, blind to transport, in order.
    pub(super) digests: Vec<Digest>,
    pub(super) flags: Flags,
    pub(super) defects: Defects,
    pub(super) seen: Seen,
}

impl Collected {
    /// Nothing was found that a person could read or open.
    fn is_empty(&self) -> bool {
        self.attachments.is_empty()
            && self.drafts.iter().all(|d| match &d.content {
                Content::Plain(text) | Content::Html(text) => text.trim().is_empty(),
            })
    }
}

/// What a leaf is for.
pub(super) enum Role {
    /// Plain text, shown.
    Text,
    /// HTML, shown.
    Html,
    /// Text with `<formatting>` commands (RFC 1896).
    Enriched,
    /// A nested message, or its headers.
    Message,
    /// An S/MIME container.
    Smime,
    /// Everything else.
    Attachment,
}

/// Collects all leaves of `tree`; `level` counts the messages around it.
pub(super) fn collect(tree: &Tree<'_>, level: usize, out: &mut Collected) {
    if tree.boundary_damaged {
        out.defects.push(DefectKind::BoundaryDamaged, "Content-Type");
        out.flags.parse_degraded = true;
    }
    if tree.limit_met {
        out.defects.push(DefectKind::StructureLimit, "");
        out.flags.parse_degraded = true;
    }
    for (index, part) in tree.parts.iter().enumerate() {
        if part.is_container {
            match part.content_type.value.as_str() {
                "multipart/encrypted" => out.flags.encrypted = true,
                "multipart/signed" => out.flags.signed = true,
                _ => {}
            }
        } else {
            leaf(tree, index, level, out);
        }
    }
    if out.is_empty() {
        rescue(tree, out);
    }
}

/// A structure so broken that all its parts are empty: what stands around them is kept as text.
fn rescue(tree: &Tree<'_>, out: &mut Collected) {
    let body = tree.whole_body;
    let is_multipart = tree.parts.first().is_some_and(|p| p.is_container);
    let says_something = |bytes: &[u8]| bytes.iter().any(u8::is_ascii_alphanumeric);
    let last_delimiter = memchr::memmem::rfind(body, b"\n--").unwrap_or(0);
    let epilogue = &body[header::line_at(body, last_delimiter + 1).1..];
    if is_multipart && (tree.boundary_damaged || says_something(epilogue)) && says_something(body) {
        let input = &body[..body.len().min(TEXT_INPUT_BYTES_MAX)];
        let mut found = Found::default();
        let text = plain_text::clean(charset::decode(input, None, None).text, &mut found);
        out.defects.push(DefectKind::BoundaryDamaged, "0");
        out.flags.parse_degraded = true;
        out.drafts.push(Draft {
            content: Content::Plain(text),
            alternative: None,
            place: "0".to_owned(),
        });
    }
}

fn leaf(tree: &Tree<'_>, index: usize, level: usize, out: &mut Collected) {
    let part = &tree.parts[index];
    let encoding = transfer::encoding_of(part.headers.get("Content-Transfer-Encoding"));
    let decoded = transfer::decode(part.body, encoding);
    if decoded.damaged {
        out.defects.push(DefectKind::EncodingDamaged, &tree.path(index));
    }
    let bytes = decoded.bytes.as_ref();
    let role = role(tree, index, bytes, !out.drafts.is_empty());
    if !bytes.is_empty() {
        out.digests.push(if matches!(role, Role::Attachment | Role::Smime) {
            digest_of(part, bytes)
        } else {
            transport_digest(bytes)
        });
    }
    match part.content_type.value.as_str() {
        "text/calendar" => out.flags.has_invite = true,
        "application/ms-tnef" | "application/vnd.ms-tnef" => out.flags.tnef = true,
        _ => {}
    }
    match role {
        Role::Text | Role::Html | Role::Enriched => {
            text_part::read(tree, index, decoded.bytes, decoded.tail, &role, out);
            if index == 0
                && part.disposition.value == "attachment"
                && !attachment::filename(part).is_empty()
            {
                let body = transfer::decode(part.body, encoding);
                out.attachments.push(attachment::describe(tree, index, &body.bytes));
            }
        }
        Role::Message => {
            let mut found = attachment::describe(tree, index, bytes);
            if level < LEVELS_MAX {
                found.text = nested_text(bytes, level + 1);
            }
            push(out, found);
        }
        Role::Smime => {
            match smime::read(bytes, part.content_type.param("smime-type")) {
                Container::Signed(content) => {
                    out.flags.signed = true;
                    if let Some(content) = content.filter(|_| level < LEVELS_MAX) {
                        entity(&content, level + 1, out);
                    }
                }
                Container::Encrypted => out.flags.encrypted = true,
                Container::Other => {}
            }
            push(out, attachment::describe(tree, index, bytes));
        }
        Role::Attachment => {
            let found = attachment::describe(tree, index, bytes);
            out.flags.tnef |= found.sniffed_type == Some("application/ms-tnef");
            push(out, found);
        }
    }
}

/// Lists an attachment, up to the cap.
pub(super) fn push(out: &mut Collected, attachment: Attachment) {
    if out.attachments.len() < ATTACHMENTS_MAX {
        out.attachments.push(attachment);
    } else {
        out.defects.push(DefectKind::StructureLimit, "");
        out.flags.parse_degraded = true;
    }
}

/// Attached texts and messages travel with either line end; other bytes are what they are.
fn digest_of(part: &Part<'_>, bytes: &[u8]) -> Digest {
    let value = &part.content_type.value;
    if value.starts_with("text/") || value.starts_with("message/") {
        return transport_digest(bytes);
    }
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}

fn role(tree: &Tree<'_>, index: usize, bytes: &[u8], has_text: bool) -> Role {
    let part = &tree.parts[index];
    if part.is_remainder {
        return Role::Attachment;
    }
    let attached = part.disposition.value == "attachment";
    let value = part.content_type.value.as_str();
    match value {
        "message/rfc822"
        | "message/global"
        | "message/news"
        | "text/rfc822-headers"
        | "message/rfc822-headers" => Role::Message,
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => Role::Smime,
        "message/delivery-status"
        | "message/global-delivery-status"
        | "message/disposition-notification"
        | "message/feedback-report"
        | "message/partial" => Role::Text,
        // A multipart whose boundary never came.
        _ if value.starts_with("multipart/") => Role::Text,
        "text/plain" | "text/html" | "text/enriched" | "text/richtext" | "application/pgp" => {
            let named = !attachment::filename(part).is_empty();
            if index != 0 && (attached || (named && has_text) || is_related_resource(tree, index)) {
                return Role::Attachment;
            }
            match sniff::sniff(bytes) {
                Some("text/html") => Role::Html,
                Some("application/rtf") | None if value == "text/html" => Role::Html,
                None if matches!(value, "text/enriched" | "text/richtext") => Role::Enriched,
                None => Role::Text,
                // A file under a text label.
                Some(_) => Role::Attachment,
            }
        }
        "text/calendar" | "text/vcard" | "text/x-vcard" | "text/directory" | "text/css"
        | "text/csv" | "text/rtf" | "text/xml" => Role::Attachment,
        // RFC 2046 §4.1.4: unknown text is shown as plain text.
        _ if value.starts_with("text/")
            && !attached
            && attachment::filename(part).is_empty()
            && !in_alternative(tree, index) =>
        {
            Role::Text
        }
        _ => Role::Attachment,
    }
}

/// A text part of multipart/related that the root refers to.
fn is_related_resource(tree: &Tree<'_>, index: usize) -> bool {
    let part = &tree.parts[index];
    let related =
        part.parent.is_some_and(|p| tree.parts[p].content_type.value == "multipart/related");
    related
        && part.nth > 1
        && part.headers.get("Content-ID").or_else(|| part.headers.get("Content-Location")).is_some()
}

fn in_alternative(tree: &Tree<'_>, index: usize) -> bool {
    alternative_of(tree, index).is_some()
}

/// The nearest multipart/alternative around a part.
pub(super) fn alternative_of(tree: &Tree<'_>, index: usize) -> Option<usize> {
    let mut at = tree.parts[index].parent;
    while let Some(parent) = at {
        if tree.parts[parent].content_type.value == "multipart/alternative" {
            return Some(parent);
        }
        at = tree.parts[parent].parent;
    }
    None
}

/// Reads an entity that was packed inside a part (the content of an opaque signature).
fn entity(bytes: &[u8], level: usize, out: &mut Collected) {
    let (headers, body_from) = header::split(bytes, 0, true, |_| false);
    let tree = structure::walk(bytes, headers, body_from);
    collect(&tree, level, out);
}

/// Subject, sender, file names and text of a nested message.
fn nested_text(bytes: &[u8], level: usize) -> String {
    let (headers, body_from) = header::split(bytes, 0, true, |_| false);
    let mut text = String::new();
    for name in ["Subject", "From"] {
        if let Some(value) = headers.get(name) {
            text.push_str(&encoded_word::text(value, None));
            text.push('\n');
        }
    }
    let tree = structure::walk(bytes, headers, body_from);
    let mut inner = Collected::default();
    collect(&tree, level, &mut inner);
    for attachment in &inner.attachments {
        if !attachment.filename.is_empty() {
            text.push_str(&attachment.filename);
            text.push('\n');
        }
    }
    let composed = compose::compose(&mut inner);
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&composed.text);
    for attachment in inner.attachments.iter().filter(|a| !a.text.is_empty()) {
        text.push('\n');
        text.push_str(&attachment.text);
    }
    compose::cut(&mut text, NESTED_TEXT_BYTES_MAX);
    text
}
