//! The text of one operator's value → filter, or what was expected instead.
//!
//! Every value is brought into normal form here, so that two spellings of one thing give the same
//! tree. `subject:` is not here: its value is words. Texts come trimmed.

use std::borrow::Cow;

use super::languages::Lang;
use super::operators::Op;
use super::tree::{Direction, Filter, Has, Place, RefMatch, State, TypeMatch};
use super::{Fault, ParseOptions, address, date_values, fold_name, print, suggest};
use crate::attachment_class::AttachmentClass;

/// Greatest length of a label.
const LABEL_CHARS_MAX: usize = 64;

/// Why a value is not one; the parser adds the place.
pub(super) struct Refused {
    pub(super) fault: Fault,
    pub(super) expected: Cow<'static, str>,
    /// Replaces operator and value.
    pub(super) suggestion: Option<String>,
}

const EMPTY: Refused = Refused {
    fault: Fault::EmptyValue,
    expected: Cow::Borrowed("operator value"),
    suggestion: None,
};

fn bad(expected: impl Into<Cow<'static, str>>, suggestion: Option<String>) -> Refused {
    Refused { fault: Fault::BadValue, expected: expected.into(), suggestion }
}

/// Reads the value of `op`.
pub(super) fn filter(op: Op, text: &str, options: &ParseOptions) -> Result<Filter, Refused> {
    if text.is_empty() {
        return Err(EMPTY);
    }
    let address = || address::classify(text).ok_or(EMPTY);
    match op {
        Op::From => address().map(Filter::From),
        Op::To => address().map(Filter::To),
        Op::Participant => address().map(Filter::Participant),
        Op::Cc => address().map(Filter::Cc),
        Op::Bcc => address().map(Filter::Bcc),
        Op::DeliveredTo => address().map(Filter::DeliveredTo),
        Op::Ref => reference(text),
        Op::Label => label(text),
        Op::Has => one_of(op, text, &HAS).map_err(|refused| has_remedy(text, refused)),
        Op::In => one_of(op, text, &IN),
        Op::Is => one_of(op, text, &IS),
        Op::Filename => name(text).map(Filter::Filename),
        Op::Folder => name(text).map(Filter::Folder),
        Op::Source => name(text).map(Filter::Source),
        Op::Type => attachment_type(text),
        Op::After | Op::Before | Op::NewerThan | Op::OlderThan => date_values::filter(op, text),
        Op::Thread => text.parse().map(Filter::Thread).map_err(|_| bad("thread ID (thr_…)", None)),
        Op::Category => category(text, &options.categories),
        Op::List => list(text),
        Op::Size | Op::Larger => size(op, text).map(Filter::Larger),
        Op::Smaller => size(op, text).map(Filter::Smaller),
        Op::Rfc822MsgId => message_id(text),
        Op::Lang => lang(text),
        // The parser reads it as words; as a filter it would not be one.
        Op::Subject => Err(EMPTY),
    }
}

/// The values of one operator: what each is called, what it means.
struct Enumeration<const N: usize> {
    expected: &'static str,
    values: [(&'static str, Filter); N],
    /// What people also write, and the operator and value that say it here.
    remedies: &'static [(&'static str, &'static str)],
}

const HAS: Enumeration<3> = Enumeration {
    expected: "attachment, link or invite",
    values: [
        ("attachment", Filter::Has(Has::Attachment)),
        ("link", Filter::Has(Has::Link)),
        ("invite", Filter::Has(Has::Invite)),
    ],
    remedies: &[
        ("file", "has:attachment"),
        ("url", "has:link"),
        ("calendar", "has:invite"),
        ("star", "is:starred"),
    ],
};

const IN: Enumeration<6> = Enumeration {
    expected: "inbound, outbound, anywhere, junk, trash or spam",
    values: [
        ("inbound", Filter::Direction(Direction::Inbound)),
        ("outbound", Filter::Direction(Direction::Outbound)),
        ("anywhere", Filter::Place(Place::Anywhere)),
        ("junk", Filter::Place(Place::Junk)),
        ("trash", Filter::Place(Place::Trash)),
        // Another word for junk, and printed as such.
        ("spam", Filter::Place(Place::Junk)),
    ],
    remedies: &[
        ("inbox", "folder:inbox"),
        ("archive", "folder:archive"),
        ("drafts", "folder:drafts"),
        ("sent", "in:outbound"),
        ("received", "in:inbound"),
        ("all", "in:anywhere"),
        ("bin", "in:trash"),
    ],
};

const IS: Enumeration<8> = Enumeration {
    expected: "unread, read, needs_reply, quarantined, starred, encrypted, signed or list",
    values: [
        ("unread", Filter::Is(State::Unread)),
        ("read", Filter::Is(State::Read)),
        ("needs_reply", Filter::Is(State::NeedsReply)),
        ("quarantined", Filter::Is(State::Quarantined)),
        ("starred", Filter::Is(State::Starred)),
        ("encrypted", Filter::Is(State::Encrypted)),
        ("signed", Filter::Is(State::Signed)),
        ("list", Filter::Is(State::List)),
    ],
    remedies: &[
        ("flagged", "is:starred"),
        ("seen", "is:read"),
        ("unseen", "is:unread"),
        ("new", "is:unread"),
        ("spam", "in:spam"),
        ("junk", "in:junk"),
        ("sent", "in:outbound"),
    ],
};

fn one_of<const N: usize>(
    op: Op,
    text: &str,
    enumeration: &Enumeration<N>,
) -> Result<Filter, Refused> {
    let lower = text.to_lowercase();
    if let Some((_, filter)) = enumeration.values.iter().find(|(name, _)| *name == lower) {
        return Ok(filter.clone());
    }
    let remedy = enumeration
        .remedies
        .iter()
        .find(|(name, _)| *name == lower)
        .map(|(_, remedy)| (*remedy).to_owned())
        .or_else(|| {
            suggest::nearest(&lower, enumeration.values.iter().map(|(name, _)| *name))
                .map(|name| format!("{}:{name}", op.name()))
        });
    Err(bad(enumeration.expected, remedy))
}

/// `has:pdf` wants `type:pdf`.
fn has_remedy(text: &str, mut refused: Refused) -> Refused {
    if let Some(class) = AttachmentClass::from_name(&text.to_lowercase()) {
        refused.suggestion.get_or_insert_with(|| format!("{}:{class}", Op::Type.name()));
    }
    refused
}

fn reference(text: &str) -> Result<Filter, Refused> {
    let dropped = |c: &char| !(c.is_whitespace() || matches!(c, '.' | '-'));
    let fallback: String = text.chars().filter(dropped).flat_map(char::to_uppercase).collect();
    if fallback.is_empty() {
        return Err(EMPTY);
    }
    Ok(Filter::Ref(RefMatch { raw: text.to_owned(), fallback }))
}

fn label(text: &str) -> Result<Filter, Refused> {
    let lower = text.to_lowercase();
    let is_first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_next = |c: char| is_first(c) || matches!(c, '_' | ':' | '-');
    if lower.starts_with(is_first) && lower.chars().all(is_next) && lower.len() <= LABEL_CHARS_MAX {
        return Ok(Filter::Label(lower));
    }
    let joined = lower.split_whitespace().collect::<Vec<_>>().join("-");
    let remedy = (joined != lower && label(&joined).is_ok())
        .then(|| format!("{}:{joined}", Op::Label.name()));
    Err(bad("label of letters, digits, '_', ':' and '-' (at most 64)", remedy))
}

fn name(text: &str) -> Result<String, Refused> {
    let folded = fold_name(text);
    let trimmed = folded.trim();
    if trimmed.is_empty() { Err(EMPTY) } else { Ok(trimmed.to_owned()) }
}

fn attachment_type(text: &str) -> Result<Filter, Refused> {
    let lower = text.to_lowercase();
    let is_token = |part: &str| {
        let is_token_char = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
        !part.is_empty() && part.bytes().all(is_token_char)
    };
    let (found, meant) = match lower.split_once('/') {
        Some((family, subtype)) => {
            let mime = is_token(family) && is_token(subtype);
            let class = AttachmentClass::from_name(family).map(AttachmentClass::name);
            (mime.then(|| TypeMatch::Mime(lower.clone())), class.filter(|_| subtype == "*"))
        }
        None => (
            AttachmentClass::from_name(&lower).map(TypeMatch::Class),
            suggest::nearest(lower.trim_start_matches('.'), AttachmentClass::all_names()),
        ),
    };
    found.map(Filter::Type).ok_or_else(|| {
        let names = AttachmentClass::ALL.map(AttachmentClass::name).join(", ");
        bad(
            format!("attachment type ({names}) or MIME type"),
            meant.map(|name| format!("{}:{name}", Op::Type.name())),
        )
    })
}

fn category(text: &str, categories: &[String]) -> Result<Filter, Refused> {
    let lower = text.to_lowercase();
    if let Some(known) = categories.iter().find(|known| known.to_lowercase() == lower) {
        return Ok(Filter::Category(known.clone()));
    }
    let nearest = suggest::nearest(&lower, categories.iter().map(String::as_str));
    Err(bad(
        format!("category: one of {}", categories.join(", ")),
        nearest.map(|name| format!("{}:{}", Op::Category.name(), print::value(name))),
    ))
}

fn list(text: &str) -> Result<Filter, Refused> {
    let lower = text.to_lowercase();
    let inner = address::inside_angles(&lower);
    if inner.is_empty() { Err(EMPTY) } else { Ok(Filter::List(inner.to_owned())) }
}

fn message_id(text: &str) -> Result<Filter, Refused> {
    let id: String = address::inside_angles(text).split_whitespace().collect();
    match id.rsplit_once('@') {
        // Broken programs leave the domain empty; what a message carries can be asked for.
        Some((local, domain)) if !local.is_empty() => {
            Ok(Filter::MessageId(format!("{local}@{}", domain.to_lowercase())))
        }
        _ => Err(bad("Message-ID (local@domain)", None)),
    }
}

/// Units of a size: the letter, and how far it shifts (1,024-based).
const SIZE_UNITS: [(char, u32); 3] = [('g', 30), ('m', 20), ('k', 10)];

fn size(op: Op, text: &str) -> Result<u64, Refused> {
    let lower = text.to_lowercase();
    size_bytes(&lower).ok_or_else(|| {
        // `10 MB`, `10mb`, `10mib`
        let compact: String = lower.split_whitespace().collect();
        let bare = compact.strip_suffix('b').unwrap_or(&compact);
        let bare = bare.strip_suffix('i').unwrap_or(bare);
        let remedy = size_bytes(bare).map(|bytes| format!("{}:{}", op.name(), size_text(bytes)));
        bad("size as <n>, <n>k, <n>m or <n>g", remedy)
    })
}

fn size_bytes(lower: &str) -> Option<u64> {
    let unit = SIZE_UNITS.into_iter().find(|(letter, _)| lower.ends_with(*letter));
    let (digits, shift) = match unit {
        Some((letter, shift)) => (lower.strip_suffix(letter)?, shift),
        None => (lower, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A size in the greatest unit that divides it.
pub(super) fn size_text(bytes: u64) -> String {
    let divides = |(_, shift): &(char, u32)| bytes != 0 && bytes.trailing_zeros() >= *shift;
    match SIZE_UNITS.into_iter().find(divides) {
        Some((letter, shift)) => format!("{}{letter}", bytes >> shift),
        None => bytes.to_string(),
    }
}

fn lang(text: &str) -> Result<Filter, Refused> {
    let lower = text.to_lowercase();
    Lang::from_code(&lower).map(Filter::Lang).ok_or_else(|| {
        // `de-AT`, `german`
        let primary = lower.split(['-', '_']).next().unwrap_or_default();
        let meant = Lang::from_code(primary).or_else(|| Lang::from_english_name(&lower));
        bad(
            "two-letter language code (ISO 639-1)",
            meant.map(|lang| format!("{}:{lang}", Op::Lang.name())),
        )
    })
}
