//! Drafts of text → the one text of a message, with what in it is new.
//!
//! Of alternatives the plain one wins unless it only says "see the HTML"; inline parts of a
//! multipart/mixed follow each other in order (bodies split by attachments, list footers). Bounded by
//! the cap on text; never loses a draft silently.

use std::ops::Range;

use super::attachment;
use super::collect::{Collected, Content, Draft};
use super::html;
use super::message::DefectKind;
use super::plain_text;
use super::quote;

/// Longest text of a message, bytes.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// A plain alternative with fewer letters and digits than this may be a mere pointer to the HTML.
const MEAGRE_LETTERS: usize = 120;

/// The joined text.
#[derive(Debug, Default)]
pub(super) struct Composed {
    pub(super) text: String,
    pub(super) from_html: bool,
    pub(super) new_ranges: Vec<Range<u32>>,
}

/// Joins the drafts of a message, in order.
pub(super) fn compose(collected: &mut Collected) -> Composed {
    let drafts = std::mem::take(&mut collected.drafts);
    let mut out = Composed::default();
    let mut first_source = None;
    // Which reading each multipart/alternative is taken in: decided once, at its first draft.
    let mut decided: Vec<(usize, bool)> = Vec::new();
    for draft in &drafts {
        let chosen = draft.alternative.is_none_or(|group| {
            let known = decided.iter().find(|(g, _)| *g == group).map(|(_, plain)| *plain);
            let plain = known.unwrap_or_else(|| {
                let plain = plain_is_usable(&drafts, group);
                decided.push((group, plain));
                plain
            });
            plain == matches!(draft.content, Content::Plain(_))
        });
        match &draft.content {
            Content::Plain(text) if chosen => {
                if append(&mut out, text, &[], collected, &draft.place) {
                    first_source.get_or_insert(false);
                }
            }
            Content::Html(source) => {
                let rendered = html::to_text(source);
                collected.flags.hidden_text |= rendered.hidden_text;
                collected.flags.has_link |= rendered.has_link;
                if !chosen
                    || (draft.alternative.is_none() && says_the_same(&out.text, &rendered.text))
                {
                    continue;
                }
                if rendered.truncated {
                    collected.flags.body_truncated = true;
                    collected.defects.push(DefectKind::Truncated, &draft.place);
                }
                if append(&mut out, &rendered.text, &rendered.cuts, collected, &draft.place) {
                    first_source.get_or_insert(true);
                } else if source.bytes().any(|b| b.is_ascii_alphanumeric()) {
                    // Pictures or scripts only: no text, but nothing is thrown away.
                    collected.attachments.push(attachment::silent_html(source));
                }
            }
            Content::Plain(_) => {}
        }
    }
    out.from_html = first_source == Some(true);
    collected.flags.has_link |= plain_text::has_link(&out.text);
    collected.flags.hidden_text |= collected.seen.is_hiding();
    out
}

/// Is the plain reading of an alternative the one to take?
fn plain_is_usable(drafts: &[Draft], group: usize) -> bool {
    let siblings = || drafts.iter().filter(move |d| d.alternative == Some(group));
    let has_html =
        siblings().any(|d| matches!(&d.content, Content::Html(s) if !s.trim().is_empty()));
    if !has_html {
        return true;
    }
    let letters: usize = siblings()
        .map(|d| match &d.content {
            Content::Plain(text) => letters_of(text).take(MEAGRE_LETTERS).count(),
            Content::Html(_) => 0,
        })
        .sum();
    letters >= MEAGRE_LETTERS || (letters > 0 && !html_says_more(siblings(), letters))
}

/// Bytes of letters and digits.
fn letters_of(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.bytes().filter(|b| b.is_ascii_alphanumeric() || *b >= 0x80)
}

/// A meagre plain text stands beside HTML that says much more, or points to it.
fn html_says_more<'a>(siblings: impl Iterator<Item = &'a Draft>, plain_letters: usize) -> bool {
    let mut html_letters = 0;
    let mut points_to_it = false;
    for draft in siblings {
        match &draft.content {
            Content::Html(source) => {
                html_letters += letters_of(&html::to_text(source).text).count();
            }
            Content::Plain(text) => points_to_it |= text.to_ascii_lowercase().contains("html"),
        }
    }
    html_letters > plain_letters * if points_to_it { 1 } else { 3 }
}

/// An inline HTML part that only repeats the plain text before it.
fn says_the_same(text: &str, rendered: &str) -> bool {
    fn letters(s: &str) -> impl Iterator<Item = char> + '_ {
        s.chars().filter(|c| c.is_alphanumeric())
    }
    !text.is_empty() && letters(text).eq(letters(rendered))
}

/// Adds one text with its new ranges; tells whether it said anything.
fn append(
    out: &mut Composed,
    text: &str,
    cuts: &[Range<usize>],
    collected: &mut Collected,
    place: &str,
) -> bool {
    if text.trim().is_empty() {
        return false;
    }
    if !out.text.is_empty() && !out.text.ends_with('\n') {
        out.text.push('\n');
    }
    let room = TEXT_BYTES_MAX.saturating_sub(out.text.len());
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() {
        collected.flags.body_truncated = true;
        collected.defects.push(DefectKind::Truncated, place);
    }
    let text = &text[..end];
    let base = out.text.len();
    let ranges = quote::new_ranges(text, cuts, !out.new_ranges.is_empty());
    for range in ranges {
        // The cap keeps every offset within u32.
        let (start, end) = ((base + range.start) as u32, (base + range.end) as u32);
        match out.new_ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => out.new_ranges.push(start..end),
        }
    }
    out.text.push_str(text);
    true
}

/// Cuts a text at a cap, on a character boundary.
pub(super) fn cut(text: &mut String, bytes_max: usize) -> bool {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = end < text.len();
    text.truncate(end);
    cut
}
