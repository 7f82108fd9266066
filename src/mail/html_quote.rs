//! Elements that mailers wrap quoted mail in, and the places they make in the text.

use std::ops::Range;

use html5ever::tokenizer::Tag;

/// The value of an attribute.
pub(super) fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|a| &*a.name.local == name).map(|a| &*a.value)
}

/// The inside of the element is quoted mail.
pub(super) fn is_cut(name: &str, tag: &Tag) -> bool {
    let class = attribute(tag, "class").unwrap_or_default();
    let has = |wanted: &str| class.split_ascii_whitespace().any(|c| c == wanted);
    match name {
        "blockquote" => {
            attribute(tag, "type").is_some_and(|t| t.eq_ignore_ascii_case("cite"))
                || has("protonmail_quote")
                || has("gmail_quote")
        }
        "div" => {
            has("gmail_quote")
                || has("yahoo_quoted")
                || has("protonmail_quote")
                || has("moz-cite-prefix")
                || attribute(tag, "id")
                    .is_some_and(|id| id == "mail-editor-reference-message-container")
        }
        _ => {
            has("yahoo_quoted")
                || attribute(tag, "id") == Some("mail-editor-reference-message-container")
        }
    }
}

/// Everything from the element on is quoted mail.
pub(super) fn cuts_rest(name: &str, tag: &Tag) -> bool {
    match attribute(tag, "id") {
        Some("divRplyFwdMsg" | "appendonsend") => true,
        Some("stopSpelling") => name == "hr",
        _ => false,
    }
}

/// Sorted, joined, within the text.
pub(super) fn merged(mut cuts: Vec<Range<usize>>, end: usize) -> Vec<Range<usize>> {
    cuts.sort_by_key(|c| c.start);
    let mut out: Vec<Range<usize>> = Vec::with_capacity(cuts.len());
    for cut in cuts {
        let cut = cut.start.min(end)..cut.end.min(end);
        match out.last_mut() {
            Some(last) if cut.start <= last.end => last.end = last.end.max(cut.end),
            _ if cut.is_empty() => {}
            _ => out.push(cut),
        }
    }
    out
}
