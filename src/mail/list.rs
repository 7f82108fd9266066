//! Which mailing list a message came through, and what sort of mail it is.
//!
//! Headers only; no list is guessed from a subject or a footer.

use super::address::address_normal;
use super::encoded_word;
use super::header::{Headers, unfold};
use super::message::{Flags, Kind};
use super::structure::Tree;

/// Longest list identifier, characters (RFC 2919 allows 255).
const LIST_ID_CHARS_MAX: usize = 255;

/// The list identifier: of List-Id (RFC 2919), else derived from the posting address in List-Post,
/// X-Mailing-List, Mailing-List or X-BeenThere, with a dot for the sign.
pub(super) fn list_id(headers: &Headers<'_>) -> Option<String> {
    let declared = headers.get("List-Id").and_then(|raw| {
        let text = encoded_word::text(raw, None);
        let inside = text.rfind('<').map_or(text.as_str(), |open| {
            let rest = &text[open + 1..];
            rest.split('>').next().unwrap_or(rest)
        });
        let id = inside.trim().trim_matches('"').to_lowercase();
        let usable = !id.is_empty()
            && !id.contains(char::is_whitespace)
            && id.chars().count() <= LIST_ID_CHARS_MAX;
        usable.then(|| id.replace('@', "."))
    });
    declared.or_else(|| {
        ["List-Post", "X-Mailing-List", "Mailing-List", "X-BeenThere"].iter().find_map(|name| {
            let text = encoded_word::text(headers.get(name)?, None);
            posting_address(&text).map(|a| a.replace('@', "."))
        })
    })
}

/// The first address in `<mailto:a@b?x>`, `list a@b; contact …`, `<a@b> archive/123`.
fn posting_address(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ';' | ',' | '?'))
        .filter(|word| word.contains('@'))
        .find_map(address_normal)
}

/// Sort of mail, first match in the order of [`Kind`].
pub(super) fn kind(
    headers: &Headers<'_>,
    tree: &Tree<'_>,
    flags: Flags,
    is_list: bool,
    subject: &str,
) -> Kind {
    let word = |name: &str| {
        headers.get(name).map(|v| String::from_utf8_lossy(&unfold(v)).to_ascii_lowercase())
    };
    let root = tree.parts.first().map(|p| &p.content_type);
    let report = root
        .filter(|t| t.value == "multipart/report")
        .and_then(|t| t.param("report-type"))
        .map(str::to_ascii_lowercase);
    let has = |kind: &str| tree.parts.iter().any(|p| p.content_type.value == kind);
    if report.as_deref() == Some("delivery-status")
        || has("message/delivery-status")
        || is_old_bounce(headers, subject)
    {
        return Kind::Dsn;
    }
    if report.as_deref() == Some("disposition-notification")
        || has("message/disposition-notification")
    {
        return Kind::Mdn;
    }
    let precedence = word("Precedence").unwrap_or_default();
    if is_list || precedence.starts_with("list") {
        return Kind::List;
    }
    let automatic = word("Auto-Submitted").is_some_and(|v| !v.is_empty() && !v.starts_with("no"));
    if automatic
        || ["bulk", "junk", "auto_reply", "auto-reply"].iter().any(|p| precedence.starts_with(p))
    {
        return Kind::Automated;
    }
    if flags.has_invite { Kind::Calendar } else { Kind::Normal }
}

/// A bounce from before RFC 3464: a mailer daemon writes, and the subject says so.
fn is_old_bounce(headers: &Headers<'_>, subject: &str) -> bool {
    if headers.get("X-Failed-Recipients").is_some() {
        return true;
    }
    let from =
        headers.get("From").map(|v| v[..v.len().min(512)].to_ascii_lowercase()).unwrap_or_default();
    let daemon = [&b"mailer-daemon"[..], b"postmaster", b"mail delivery sub", b"mailerdaemon"]
        .iter()
        .any(|name| memchr::memmem::find(&from, name).is_some());
    let empty_path = headers.get("Return-Path").is_some_and(|v| v.trim_ascii() == b"<>");
    if !daemon && !empty_path {
        return false;
    }
    let subject = subject.to_lowercase();
    [
        "undeliver",
        "returned mail",
        "delivery status",
        "delivery failure",
        "failure notice",
        "mail delivery",
        "delivery report",
        "non-delivery",
        "nondeliverable",
        "unzustellbar",
        "delivery notification",
        "message status",
        "mail system error",
        "could not be delivered",
        "delivery error",
    ]
    .iter()
    .any(|phrase| subject.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::super::header::split;
    use super::*;

    fn id(raw: &str) -> Option<String> {
        list_id(&split(raw.as_bytes(), 0, true, |_| false).0)
    }

    #[test]
    fn list_ids_declared_and_derived() {
        assert_eq!(
            id("List-Id: My =?utf-8?q?List?= <Dev.Example.ORG>\n\n").as_deref(),
            Some("dev.example.org")
        );
        assert_eq!(
            id("List-Post: <mailto:dev@example.org?subject=x>\n\n").as_deref(),
            Some("dev.example.org")
        );
        assert_eq!(
            id("Mailing-List: list fork@groups.example; contact owner@groups.example\n\n")
                .as_deref(),
            Some("fork.groups.example")
        );
        assert_eq!(id("Subject: [dev] x\n\n"), None);
    }
}
