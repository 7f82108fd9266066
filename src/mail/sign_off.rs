//! Lines below what an author wrote: signatures, telephone lines, list footers, archivers' notes.
//!
//! Each test looks at one line and allocates only for candidates; where a sign-off begins and ends is
//! decided in `quote`.

/// `-- ` or `--` alone (RFC 3676 §4.3), dash-escaped inside an OpenPGP signed text as well.
pub(super) fn signature(line: &str) -> bool {
    matches!(line.trim_end(), "--" | "- --")
}

/// A line that a telephone or a mail program adds below the text.
pub(super) fn mobile_signature(line: &str) -> bool {
    const PHRASES: [&str; 20] = [
        "Sent from my ",
        "Sent from Mail for ",
        "Sent from Outlook",
        "Sent from Yahoo",
        "Sent via ",
        "Get Outlook for ",
        "Sent with Proton",
        "Gesendet von ",
        "Von meinem ",
        "Diese Nachricht wurde von meinem ",
        "Envoyé de mon ",
        "Envoyé depuis ",
        "Enviado desde ",
        "Enviado do meu ",
        "Inviato da ",
        "Verstuurd vanaf ",
        "Skickat från ",
        "Sendt fra ",
        "Отправлено с ",
        "Wysłano z ",
    ];
    let line = line.trim();
    line.len() <= 120
        && (PHRASES.iter().any(|p| line.starts_with(p)) || line.ends_with("iPhoneから送信"))
}

/// A rule of underscores, dashes or equal signs, as list software draws before its footer.
pub(super) fn rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 20
        && line.starts_with(['_', '-', '='])
        && line.bytes().all(|b| b == line.as_bytes()[0])
}

/// Words of a mailing list's footer.
pub(super) fn list_footer(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["mailing list", "unsubscribe", "mailman/listinfo", "list-", "to post to"]
        .iter()
        .any(|w| lower.contains(w))
}

/// The first line of a note that Mailman's archiver leaves in place of an attachment.
pub(super) fn scrub_note(line: &str) -> bool {
    const STARTS: [&str; 6] = [
        "-------------- next part ----",
        "Skipped content of type ",
        "A non-text attachment was scrubbed",
        "An HTML attachment was scrubbed",
        "An embedded and charset-unspecified text was scrubbed",
        "An embedded message was scrubbed",
    ];
    matches!(line.as_bytes().first(), Some(b'-' | b'S' | b'A'))
        && STARTS.iter().any(|s| line.starts_with(s))
}

/// A line that goes on such a note.
pub(super) fn scrub_field(line: &str) -> bool {
    scrub_note(line)
        || ["Name: ", "Type: ", "Size: ", "Desc: ", "URL: ", "Url: ", "Url :"]
            .iter()
            .any(|f| line.starts_with(f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks() {
        assert!(signature("-- ") && signature("--") && signature("- -- ") && !signature("---"));
        assert!(
            mobile_signature("Sent from my iPhone")
                && !mobile_signature("Sent from my heart, always: ".repeat(9).as_str())
        );
        assert!(rule("______________________") && !rule("____") && !rule("_________ x __________"));
        assert!(list_footer("To Unsubscribe, write to") && !list_footer("the list"));
        assert!(
            scrub_note("An HTML attachment was scrubbed...")
                && scrub_field("URL: http://x")
                && !scrub_note("URL: http://x")
        );
    }
}
