//! Message identifiers: normal form, and the lists in In-Reply-To and References.
//!
//! Normal form (digest §1.10, RFC 5322 §3.6.4): what stands inside `<>`, without comments and white
//! space, the domain lower-cased; the local part is kept as written.

/// Longest identifier, characters.
const ID_CHARS_MAX: usize = 998;
/// Most identifiers kept of one References header; the newest stay.
pub(super) const REFERENCES_MAX: usize = 200;

/// Normal form of one Message-ID value; `None` without `@` or over 998 characters.
#[must_use]
pub fn message_id_normal(text: &str) -> Option<String> {
    let inner = match (text.find('<'), text.rfind('>')) {
        (Some(open), Some(close)) if open < close => {
            let rest = &text[open + 1..];
            // The first closed pair; a stray `<` inside begins it anew.
            let end = rest.find('>').unwrap_or(close - open - 1);
            let inside = &rest[..end];
            inside.rsplit('<').next().unwrap_or(inside).to_owned()
        }
        _ => without_comments(text),
    };
    let mut id: String = inner.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    if !id.contains('@') && inner.contains(" at ") {
        // Archives mask the sign (Mailman's pipermail).
        id = inner.replacen(" at ", "@", 1).chars().filter(|c| !c.is_whitespace()).collect();
    }
    let id = id.trim_matches(|c| matches!(c, '<' | '>'));
    let (local, domain) = id.rsplit_once('@')?;
    if local.is_empty() || id.chars().count() > ID_CHARS_MAX {
        return None;
    }
    Some(format!("{local}@{}", domain.to_lowercase()))
}

/// RFC 5322 comments out; unbalanced brackets stay.
fn without_comments(text: &str) -> String {
    if !text.contains('(') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut depth = 0u32;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// What an identifier header holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IdList {
    /// Normal forms in order, without repeats.
    pub(super) ids: Vec<String>,
    /// Older ones beyond the cap were dropped.
    pub(super) truncated: bool,
}

/// All identifiers of a References header, oldest first, the newest 200.
pub(super) fn references(text: &str) -> IdList {
    let pieces = bracketed(text);
    let all: Vec<&str> = if pieces.is_empty() {
        text.split(|c: char| c.is_whitespace() || c == ',').filter(|t| t.contains('@')).collect()
    } else {
        pieces
    };
    let truncated = all.len() > REFERENCES_MAX;
    let newest = &all[all.len().saturating_sub(REFERENCES_MAX)..];
    IdList { ids: unique(newest), truncated }
}

/// Identifiers of an In-Reply-To header. In free text (RFC 822 allowed phrases there) an address may
/// stand in `<>` as well: of several, the last is taken.
pub(super) fn in_reply_to(text: &str) -> IdList {
    let pieces = bracketed(text);
    if pieces.is_empty() {
        let bare = text.trim();
        let is_id = bare.contains('@') && !bare.contains(char::is_whitespace);
        return IdList { ids: if is_id { unique(&[bare]) } else { Vec::new() }, truncated: false };
    }
    let letters_outside =
        text.len() - pieces.iter().map(|p| p.len()).sum::<usize>() > pieces.len() * 4 + 4;
    let chosen = if letters_outside { &pieces[pieces.len() - 1..] } else { pieces.as_slice() };
    let chosen = &chosen[chosen.len().saturating_sub(REFERENCES_MAX)..];
    IdList { ids: unique(chosen), truncated: false }
}

/// Contents of all `<…>` pairs.
fn bracketed(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        let Some(close) = rest.find('>') else { break };
        let inside = &rest[..close];
        out.push(inside.rsplit('<').next().unwrap_or(inside));
        rest = &rest[close + 1..];
    }
    out
}

fn unique(pieces: &[&str]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if let Some(id) = message_id_normal(piece)
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        assert_eq!(
            message_id_normal(" <Ab.1@Example.ORG> (comment)").as_deref(),
            Some("Ab.1@example.org")
        );
        assert_eq!(message_id_normal("(x) a@B").as_deref(), Some("a@b"));
        assert_eq!(message_id_normal("<a\r\n b@c>").as_deref(), Some("ab@c"));
        assert_eq!(message_id_normal("<1234 at host.org>").as_deref(), Some("1234@host.org"));
        assert_eq!(message_id_normal("<nothing>"), None);
        assert_eq!(message_id_normal(&format!("<{}@x>", "a".repeat(998))), None);
    }

    #[test]
    fn in_reply_to_as_prose_takes_the_identifier_not_the_address() {
        assert_eq!(
            in_reply_to("Message from Ann <ann@x> of \"Thu, 22 Aug\" <id1@x>").ids,
            ["id1@x"]
        );
        assert_eq!(in_reply_to("Your message of Thu. <id1@x>").ids, ["id1@x"]);
        assert_eq!(in_reply_to("<a@x> <b@x>").ids, ["a@x", "b@x"]);
        assert!(in_reply_to("Message from ann@x of Thu").ids.is_empty());
    }

    #[test]
    fn the_newest_references_stay() {
        let text: String = (0..300).map(|i| format!("<{i}@x>")).collect();
        let list = references(&text);
        assert!(list.truncated);
        assert_eq!((list.ids.len(), list.ids[199].as_str()), (200, "299@x"));
        assert_eq!(references("a@x b@y").ids, ["a@x", "b@y"]);
    }
}
