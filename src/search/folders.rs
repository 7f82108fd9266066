//! What a folder is for, told by its name: which are left out of a search unless asked for, and
//! which hold outgoing mail.

/// Role of a folder (RFC 6154 special uses, as far as search cares).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Unwanted mail.
    Junk,
    /// Thrown away.
    Trash,
    /// Sent by the owner.
    Sent,
    /// Anything else.
    Other,
}

const JUNK: [&str; 12] = [
    "junk",
    "spam",
    "junk e-mail",
    "junk email",
    "junk mail",
    "bulk mail",
    "unerwünscht",
    "junk-e-mail",
    "indésirables",
    "courrier indésirable",
    "correo no deseado",
    "posta indesiderata",
];
const TRASH: [&str; 13] = [
    "trash",
    "deleted",
    "deleted items",
    "deleted messages",
    "bin",
    "papierkorb",
    "gelöschte elemente",
    "gelöschte objekte",
    "corbeille",
    "papelera",
    "cestino",
    "lixeira",
    "prullenbak",
];
const SENT: [&str; 12] = [
    "sent",
    "sent items",
    "sent mail",
    "sent messages",
    "gesendet",
    "gesendete elemente",
    "gesendete objekte",
    "envoyés",
    "éléments envoyés",
    "enviados",
    "posta inviata",
    "verzonden items",
];

/// Role of a folder by the last part of its name, without regard to case.
#[must_use]
pub fn role(folder: &str) -> Role {
    let name = folder.rsplit('/').next().unwrap_or(folder).to_lowercase();
    let is = |names: &[&str]| names.contains(&name.as_str());
    if is(&JUNK) {
        Role::Junk
    } else if is(&TRASH) {
        Role::Trash
    } else if is(&SENT) {
        Role::Sent
    } else {
        Role::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_go_by_the_last_part_of_the_name() {
        assert_eq!(role("[Gmail]/Spam"), Role::Junk);
        assert_eq!(role("INBOX/Papierkorb"), Role::Trash);
        assert_eq!(role("Sent Items"), Role::Sent);
        assert_eq!(role("Junkyard"), Role::Other);
    }
}
