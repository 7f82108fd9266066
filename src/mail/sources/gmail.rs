//! `X-Gmail-Labels` of a Takeout mbox → folders and labels.
//!
//! ```text
//! value = label *("," label)          after unfolding and decoding of encoded words
//! label = name | <"> name <">         a comma between quotes belongs to the name
//! ```
//! System labels, in any language of [`super::gmail_names`], become folders or states; the rest
//! are user labels. Folders come in the order Inbox, Sent, Drafts, Junk, Trash; a message in none
//! is in `Archive`.

use unicode_normalization::UnicodeNormalization;

use super::encoded_word;
use super::gmail_names::{CATEGORIES, CATEGORY, SYSTEM, System};
use super::labels::{self, Labels};

/// Folder of a message that is in none of Gmail's own.
pub(super) const ARCHIVE: &str = "Archive";

/// Folders of an entry, the first one first; labels are added to `labels`.
pub(super) fn read(value: &[u8], labels: &mut Labels) -> Vec<&'static str> {
    let mut found = [false; 5];
    for name in split(&encoded_word::decode(value)) {
        let plain = normal(&name);
        if let Some(system) = system_of(&plain) {
            match system {
                System::Inbox => found[0] = true,
                System::Sent => found[1] = true,
                System::Drafts => found[2] = true,
                System::Junk => found[3] = true,
                System::Trash => found[4] = true,
                System::Unread => labels.add("unread"),
                System::Starred => labels.add("starred"),
                System::Important => labels.add("important"),
                System::Muted => labels.add("muted"),
                System::Opened | System::Archived => {}
            }
        } else if let Some(category) = category_of(&plain) {
            labels.add(&category);
        } else if let Some(keyword) = name.strip_prefix("IMAP_") {
            labels.add_keyword(keyword);
        } else {
            labels.add_name(&name);
        }
    }
    let mut folders: Vec<&'static str> = ["INBOX", "Sent", "Drafts", "Junk", "Trash"]
        .into_iter()
        .zip(found)
        .filter_map(|(folder, found)| found.then_some(folder))
        .collect();
    if folders.is_empty() {
        folders.push(ARCHIVE);
    }
    folders
}

/// value = label *("," label)
fn split(value: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut quoted = false;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if quoted => name.extend(characters.next()),
            '"' => {
                quoted = !quoted;
                name.push('"');
            }
            ',' if !quoted => names.push(std::mem::take(&mut name)),
            other => name.push(other),
        }
    }
    names.push(name);
    if quoted {
        // A quote that is never closed delimits nothing.
        return value.split(',').map(str::trim).filter(|n| !n.is_empty()).map(Into::into).collect();
    }
    names.iter().map(|name| unquoted(name.trim()).to_owned()).filter(|n| !n.is_empty()).collect()
}

fn unquoted(name: &str) -> &str {
    let inner = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).unwrap_or(name).trim()
}

fn normal(name: &str) -> String {
    let lower: String = name.to_lowercase().nfc().collect();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn system_of(name: &str) -> Option<System> {
    SYSTEM.iter().find(|(_, names)| names.contains(&name)).map(|(system, _)| *system)
}

/// `category x`, `Kategorie: "x"`, `Catégorie : x` → `category_x`; an unknown x only in English.
fn category_of(name: &str) -> Option<String> {
    let (word, rest) =
        CATEGORY.iter().find_map(|word| name.strip_prefix(word).map(|rest| (*word, rest)))?;
    let marks = |c: char| c.is_whitespace() || ":：\"'„“”«»「」".contains(c);
    if !rest.starts_with(marks) && word != "カテゴリ" {
        return None;
    }
    let rest = rest.trim_matches(marks);
    if let Some((ending, _)) = CATEGORIES.iter().find(|(_, names)| names.contains(&rest)) {
        return Some(format!("category_{ending}"));
    }
    let label = format!("category_{}", labels::slug(rest));
    (word == "category" && !rest.is_empty() && labels::fits(&label)).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> (Vec<&'static str>, Vec<String>) {
        let mut labels = Labels::default();
        let folders = read(value.as_bytes(), &mut labels);
        (folders, labels.into_vec())
    }

    #[test]
    fn folders_and_states() {
        for (value, folders, labels) in [
            ("Inbox,Unread,Starred", &["INBOX"][..], &["unread", "starred"][..]),
            (
                "Archived,Important,Opened,Category Updates",
                &["Archive"],
                &["important", "category_updates"],
            ),
            ("Sent,Inbox,Work/Project X", &["INBOX", "Sent"], &["work:project-x"]),
            ("Spam,\"a, b\",c", &["Junk"], &["a-b", "c"]),
            ("Trash,IMAP_$Forwarded,IMAP_NonJunk", &["Trash"], &["forwarded"]),
            ("Drafts,Category Night Life", &["Drafts"], &["category_night-life"]),
            ("x\"y,Inbox", &["INBOX"], &["x-y"]),
            ("", &["Archive"], &[]),
        ] {
            let got = parse(value);
            assert_eq!(got.0, folders, "{value}");
            assert_eq!(got.1, labels, "{value}");
        }
    }

    #[test]
    fn encoded_words_are_decoded_before_the_split() {
        let got = parse(concat!(
            "=?UTF-8?Q?Wichtig,Posteingang,Kategorie:_=22Werbung=22,B=C3?= ",
            "=?UTF-8?Q?=BCcher?=",
        ));
        assert_eq!(got.0, ["INBOX"]);
        assert_eq!(got.1, ["important", "category_promotions", "xn--bcher-kva"]);
        let got = parse(concat!(
            "=?UTF-8?Q?Archiv=C3=A9s,Non_lus,Cat=C3=A9gorie=C2=A0:_R=C3=A9seaux?= ",
            "=?UTF-8?Q?_sociaux,=22Jardin,_potager=22?=",
        ));
        assert_eq!(got.0, ["Archive"]);
        assert_eq!(got.1, ["unread", "category_social", "jardin-potager"]);
    }

    #[test]
    fn every_language_knows_inbox_and_unread() {
        for value in [
            "Posteingang,Ungelesen",
            "Boîte de réception,Non lus",
            "Recibidos,No leídos",
            "Posta in arrivo,Da leggere",
            "Caixa de entrada,Não lidos",
            "Postvak IN,Ongelezen",
            "Odebrane,Nieprzeczytane",
            "受信トレイ,未読",
        ] {
            assert_eq!(parse(value), (vec!["INBOX"], vec!["unread".to_owned()]), "{value}");
        }
    }

    #[test]
    fn no_name_means_two_things() {
        let mut seen = std::collections::HashMap::new();
        for (system, names) in SYSTEM {
            for name in *names {
                assert_eq!(normal(name), *name);
                assert_eq!(seen.insert(name, system), None, "{name}");
            }
        }
    }
}
