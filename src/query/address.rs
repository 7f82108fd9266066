//! The value of an address operator → whole address, domain, or words.
//!
//! Only the spelling decides; nothing is looked up. What is neither an address nor a domain is not
//! refused but looked for as part of a name or address.

use idna::AsciiDenyList;

use super::tree::AddrMatch;

/// Longest domain in presentation form (RFC 1035 §2.3.4, without the final dot).
const DOMAIN_CHARS_MAX: usize = 253;

/// Classifies a value; `None` when nothing is left of it.
pub(super) fn classify(value: &str) -> Option<AddrMatch> {
    let lower = value.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let text = words.join(" ");
    let text = inside_angles(&text);
    if text.is_empty() {
        return None;
    }
    let known = match text.rsplit_once('@') {
        Some(("", domain)) => a_label(domain).map(AddrMatch::Domain),
        Some((local, domain)) if !local.contains(char::is_whitespace) => {
            a_label(domain).map(|domain| AddrMatch::Exact(format!("{local}@{domain}")))
        }
        Some(_) => None,
        None => a_label(text).filter(|domain| looks_like_domain(domain)).map(AddrMatch::Domain),
    };
    Some(known.unwrap_or_else(|| AddrMatch::Fuzzy(text.to_owned())))
}

/// `<x>` and `words <x>` → `x`; anything else as it is. Trimmed.
pub(super) fn inside_angles(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_suffix('>')
        .and_then(|rest| rest.rfind('<').map(|open| &rest[open + 1..]))
        .unwrap_or(text);
    inner.trim()
}

/// The domain in lower-case A-labels (IDNA, UTS 46), or `None` for what no domain can be.
fn a_label(domain: &str) -> Option<String> {
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let ascii = idna::domain_to_ascii_cow(domain.as_bytes(), AsciiDenyList::URL).ok()?;
    let fits = ascii.len() <= DOMAIN_CHARS_MAX && ascii.split('.').all(|label| !label.is_empty());
    fits.then(|| ascii.into_owned())
}

/// Whether a bare word is a domain rather than a name: it has a dot, and its last label is one that
/// a top-level domain can be. `domain` is in A-labels.
pub(super) fn looks_like_domain(domain: &str) -> bool {
    let Some((_, top)) = domain.rsplit_once('.') else { return false };
    let is_label_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    domain.chars().all(is_label_char)
        && (top.starts_with("xn--")
            || top.len() >= 2 && top.chars().all(|c| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Option<AddrMatch> {
        Some(AddrMatch::Exact(text.into()))
    }

    fn domain(text: &str) -> Option<AddrMatch> {
        Some(AddrMatch::Domain(text.into()))
    }

    fn fuzzy(text: &str) -> Option<AddrMatch> {
        Some(AddrMatch::Fuzzy(text.into()))
    }

    #[test]
    fn spelling_decides() {
        for (value, expected) in [
            ("Jo@Example.NET", exact("jo@example.net")),
            ("<jo@example.net>", exact("jo@example.net")),
            ("Jo Rivera <jo@example.net>", exact("jo@example.net")),
            ("j.r+tag@example.net", exact("j.r+tag@example.net")),
            ("jo@bücher.example", exact("jo@xn--bcher-kva.example")),
            ("jo@localhost", exact("jo@localhost")),
            ("@Brightwell.example", domain("brightwell.example")),
            ("@localhost", domain("localhost")),
            ("brightwell.example", domain("brightwell.example")),
            ("BÜCHER.example", domain("xn--bcher-kva.example")),
            ("mail.example.com.", domain("mail.example.com")),
            ("Rivera", fuzzy("rivera")),
            ("Jo  Rivera", fuzzy("jo rivera")),
            ("J. Rivera", fuzzy("j. rivera")),
            ("3.14", fuzzy("3.14")),
            ("a..example", fuzzy("a..example")),
            ("@", fuzzy("@")),
            ("jo@", fuzzy("jo@")),
            ("jo rivera@example.net", fuzzy("jo rivera@example.net")),
            ("<>", None),
            (" ", None),
        ] {
            assert_eq!(classify(value), expected, "{value}");
        }
    }
}
