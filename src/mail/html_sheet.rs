//! `<style>` elements → the declarations that rules with simple selectors give to an element.
//!
//! Read are `tag`, `.class`, `#id`, `tag.class`, `tag#id` and lists of them. Rules that hang on the
//! medium (`@media`) or on other elements are not; where one of those changes sizes or colours, what
//! the simple rules say about sizes or colours is not believed, because text that a reader sees must
//! not be lost. Linear in the text; what exceeds the bounds is left out.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr2};

use super::html_style::Style;

/// Most style text that is read in one document, bytes.
pub(super) const SHEET_BYTES_MAX: usize = 64 * 1024;
/// Most simple selectors kept.
const SELECTORS_MAX: usize = 512;
/// Longest selector kept, bytes.
const SELECTOR_BYTES_MAX: usize = 128;
/// Most classes of one element that are looked up.
const CLASSES_MAX: usize = 16;

/// The rules of a document.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// By selector, lower-cased.
    rules: HashMap<String, Style>,
    selectors: u16,
    /// Some rule that is not read sets sizes of text.
    unsure_size: bool,
    /// Some rule that is not read sets colours.
    unsure_paint: bool,
}

impl Sheet {
    /// Adds the rules of one `<style>` element; `true` when there were some.
    pub(super) fn read(&mut self, text: &str) -> bool {
        let text = without_comments(text);
        let (before, mut rest) = (self.selectors, &*text);
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ';'));
            if let Some(after) = rest.strip_prefix("<!--").or_else(|| rest.strip_prefix("-->")) {
                rest = after;
                continue;
            }
            let end = if rest.starts_with('@') {
                memchr2(b'{', b';', rest.as_bytes())
            } else {
                memchr(b'{', rest.as_bytes())
            };
            let Some(end) = end else { break };
            let (head, tail) = rest.split_at(end);
            if let Some(after) = tail.strip_prefix(';') {
                rest = after;
                continue;
            }
            let Some((body, after)) = block(tail) else { break };
            rest = after;
            if !head.starts_with('@') && !body.contains('{') {
                self.rule(head, body);
            }
        }
        self.selectors > before || self.unsure_size || self.unsure_paint
    }

    fn rule(&mut self, selectors: &str, body: &str) {
        let style = Style::read(body);
        for selector in selectors.split(',') {
            let selector = selector.trim();
            if let Some(specificity) = specificity(selector) {
                if usize::from(self.selectors) < SELECTORS_MAX {
                    self.selectors += 1;
                    let weight = specificity << 10 | self.selectors;
                    let key = selector.to_ascii_lowercase();
                    self.rules.entry(key).or_default().add(&style, weight);
                }
            } else if !selector.contains(':') {
                self.unsure_size |= style.sets_size();
                self.unsure_paint |= style.sets_paint();
            }
        }
    }

    /// What the rules say about an element; `None` when nothing.
    pub(super) fn style(&self, tag: &str, class: &str, id: &str) -> Option<Style> {
        if self.rules.is_empty() && !self.unsure_paint {
            return None;
        }
        let mut found = None;
        let mut key = String::new();
        let mut look_up = |tag: &str, sign: &str, name: &str| {
            if tag.len() + name.len() < SELECTOR_BYTES_MAX {
                key.clear();
                key.extend([tag, sign, name]);
                key.make_ascii_lowercase();
                if let Some(style) = self.rules.get(&key) {
                    found.get_or_insert_with(Style::default).add(style, 0);
                }
            }
        };
        look_up(tag, "", "");
        for class in class.split_ascii_whitespace().take(CLASSES_MAX) {
            look_up("", ".", class);
            look_up(tag, ".", class);
        }
        if !id.is_empty() {
            look_up("", "#", id);
            look_up(tag, "#", id);
        }
        if self.unsure_size
            && let Some(style) = &mut found
        {
            style.forget_size();
        }
        let has_name = !class.is_empty() || !id.is_empty();
        if self.unsure_paint && (has_name || found.is_some()) {
            found.get_or_insert_default().forget_paint();
        }
        found
    }
}

/// How much a simple selector weighs; `None` for any other.
fn specificity(selector: &str) -> Option<u16> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-') || b >= 0x80)
    };
    if selector.len() > SELECTOR_BYTES_MAX {
        return None;
    }
    let (tag, name, weight) = match selector.find(['.', '#']) {
        None => return is_name(selector).then_some(0),
        Some(at) if selector[at..].starts_with('.') => (&selector[..at], &selector[at + 1..], 1),
        Some(at) => (&selector[..at], &selector[at + 1..], 3),
    };
    match tag {
        "" | "*" if !is_name(name) => None,
        "" => Some(weight),
        _ => (is_name(tag) && is_name(name)).then_some(weight + 1),
    }
}

/// The inside of the block that `text` begins with, and what follows it.
fn block(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for at in memchr::memchr2_iter(b'{', b'}', text.as_bytes()) {
        if text.as_bytes()[at] == b'{' {
            depth += 1;
        } else {
            depth -= 1;
            if depth == 0 {
                return Some((&text[1..at], &text[at + 1..]));
            }
        }
    }
    None
}

fn without_comments(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find("/*") else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_owned();
    let mut rest = &text[first..];
    while let Some(from) = rest.find("/*") {
        out.push_str(&rest[..from]);
        out.push(' ');
        match rest[from + 2..].find("*/") {
            Some(to) => rest = &rest[from + 2 + to + 2..],
            None => rest = "",
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}
