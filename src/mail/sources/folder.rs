//! Folder names from paths.
//!
//! ```text
//! folder = level *("/" level)         levels are the directories below the root, then the file
//! ```
//! Dropped or rewritten on the way: endings of mail files, Thunderbird's `.sbd`, KMail's
//! `.NAME.directory`, Apple Mail's `NAME.mbox` directories with their `Messages` and `Data`, the
//! dots and the modified UTF-7 of Maildir++. The first level `Inbox` in any case is `INBOX`. Roles
//! (what is junk, what is sent) are decided elsewhere.

use std::ffi::OsStr;
use std::path::Path;

use super::utf7;

/// Endings that are no part of a folder's name.
const ENDINGS: [&str; 13] = [
    "mbox", "mbx", "mbs", "mboxrd", "mboxo", "mboxcl", "mboxcl2", "txt", "eml", "emlx", "msg",
    "mail", "mbox_rd",
];

/// Level that an ordinary directory adds; `None` adds none.
pub(super) fn directory_level(name: &OsStr) -> Option<String> {
    let name = name.to_string_lossy();
    if let Some(kmail) = name.strip_prefix('.').and_then(|n| n.strip_suffix(".directory")) {
        return Some(kmail.to_owned());
    }
    if let Some(stem) = strip_ending(&name, &["sbd", "mbox"]) {
        return Some(stem.to_owned());
    }
    let uuid = name.len() == 36 && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let apple = name == "Messages" || uuid || (name == "Data");
    (!apple).then(|| name.into_owned())
}

/// Levels of a Maildir++ directory: `.Lists.rust` → `Lists`, `rust`.
pub(super) fn maildir_levels(name: &OsStr) -> Vec<String> {
    let name = name.to_string_lossy();
    let Some(dotted) = name.strip_prefix('.') else {
        return vec![decoded(&name)];
    };
    dotted.split('.').filter(|level| !level.is_empty()).map(decoded).collect()
}

fn decoded(level: &str) -> String {
    // A slash within a level would part it in two.
    utf7::decode(level).unwrap_or_else(|| level.to_owned()).replace('/', "-")
}

/// Level that an mbox file adds; `None` when its directory already names the folder.
pub(super) fn file_level(name: &OsStr) -> Option<String> {
    let name = name.to_string_lossy();
    if name == "mbox" {
        return None;
    }
    let unpacked = strip_ending(&name, &["gz"]).unwrap_or(&name);
    Some(strip_ending(unpacked, &ENDINGS).unwrap_or(unpacked).to_owned())
}

fn strip_ending<'n>(name: &'n str, endings: &[&str]) -> Option<&'n str> {
    let (stem, ending) = name.rsplit_once('.')?;
    let known = endings.iter().any(|known| ending.eq_ignore_ascii_case(known));
    (known && !stem.is_empty()).then_some(stem)
}

/// Does the name claim to be one message?
pub(super) fn names_one_message(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let unpacked = strip_ending(&name, &["gz"]).unwrap_or(&name);
    strip_ending(unpacked, &["eml", "emlx", "msg"]).is_some()
}

/// The folder's name; `otherwise` when no level is left.
pub(super) fn join(levels: &[String], otherwise: &str) -> String {
    if levels.is_empty() {
        return otherwise.to_owned();
    }
    let mut name = levels.join("/");
    let first = levels[0].len();
    if levels[0].eq_ignore_ascii_case("inbox") {
        name.replace_range(..first, "INBOX");
    }
    name
}

/// Name of a directory or file given as root.
pub(super) fn root_name(path: &Path) -> String {
    let named = path.file_name().map(OsStr::to_os_string).or_else(|| {
        path.canonicalize().ok().and_then(|whole| whole.file_name().map(OsStr::to_os_string))
    });
    let level = named.as_deref().and_then(directory_level);
    level.unwrap_or_else(|| super::gmail::ARCHIVE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        let file = |name: &str| file_level(OsStr::new(name));
        assert_eq!(file("2003-April.txt.gz").as_deref(), Some("2003-April"));
        assert_eq!(file("comp.lang.rust").as_deref(), Some("comp.lang.rust"));
        assert_eq!(file("Sent Items.MBOX").as_deref(), Some("Sent Items"));
        assert_eq!(file(".mbox").as_deref(), Some(".mbox"));
        assert_eq!(file("mbox"), None);
        let directory = |name: &str| directory_level(OsStr::new(name));
        assert_eq!(directory("Lists.sbd").as_deref(), Some("Lists"));
        assert_eq!(directory(".Work.directory").as_deref(), Some("Work"));
        assert_eq!(directory("Archive.mbox").as_deref(), Some("Archive"));
        assert_eq!(directory("Messages"), None);
        assert_eq!(directory("0F2DB1E6-83A5-4B4A-9D4C-111111111111"), None);
        assert_eq!(maildir_levels(OsStr::new(".Lists.rust")), ["Lists", "rust"]);
        assert_eq!(maildir_levels(OsStr::new(".Entw&APw-rfe")), ["Entwürfe"]);
        assert_eq!(maildir_levels(OsStr::new("R&D")), ["R&D"]);
    }

    #[test]
    fn names() {
        let levels = |l: &[&str]| l.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(join(&levels(&["inbox", "Sub"]), "x"), "INBOX/Sub");
        assert_eq!(join(&levels(&["[Gmail]", "Spam"]), "x"), "[Gmail]/Spam");
        assert_eq!(join(&[], "INBOX"), "INBOX");
        assert_eq!(root_name(Path::new("/a/easy-ham")), "easy-ham");
    }
}
