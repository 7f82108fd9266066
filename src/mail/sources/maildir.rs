//! One folder of a Maildir: its files, their states, its keywords.
//!
//! ```text
//! folder/cur/UNIQUE[":2," flags]      flags: P R S T D F, a–z      also ";2," and "!2,"
//! folder/new/UNIQUE                   delivered, not seen by a mail program: unread
//! folder/tmp/…                        deliveries under way: never looked at
//! folder/dovecot-keywords             lines "0 NAME": what the flags a–z mean
//! ```
//! Sources: cr.yp.to/proto/maildir.html; Dovecot's description of its keywords. Each file is asked
//! for its size and time once; only names and those numbers are kept. Never renames, so that a file
//! in `new` stays there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::failure::{SkipReason, Skipped};
use super::labels::Labels;

/// Largest dovecot-keywords file read, bytes.
const KEYWORDS_BYTES_MAX: u64 = 64 << 10;

/// A message file.
#[derive(Debug, Clone)]
pub(super) struct MaildirFile {
    pub(super) name: OsString,
    pub(super) in_new: bool,
    pub(super) bytes: u64,
    pub(super) modified_ms: Option<i64>,
}

impl MaildirFile {
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(if self.in_new { "new" } else { "cur" }).join(&self.name)
    }

    /// Adds the labels that place and flags tell.
    pub(super) fn add_labels(&self, keywords: &[String], labels: &mut Labels) {
        let flags = flags(&self.name);
        if self.in_new || !flags.contains(&b'S') {
            labels.add("unread");
        }
        for flag in flags {
            match flag {
                b'F' => labels.add("starred"),
                b'R' => labels.add("replied"),
                b'P' => labels.add("forwarded"),
                b'D' => labels.add("draft"),
                b'T' => labels.add("trashed"),
                b'a'..=b'z' => {
                    if let Some(keyword) = keywords.get(usize::from(flag - b'a')) {
                        labels.add_keyword(keyword);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The flags behind `:2,`; other systems write `;2,` or `!2,` because `:` is not theirs to use.
fn flags(name: &OsStr) -> &[u8] {
    let name = name.as_encoded_bytes();
    let info = name.windows(3).rposition(|w| matches!(w, [b':' | b';' | b'!', b'2', b',']));
    let flags = info.map_or(&[][..], |at| &name[at + 3..]);
    // Some programs append fields of their own behind a comma.
    flags.split(|b| *b == b',').next().unwrap_or_default()
}

/// Message files of a folder, sorted by name.
pub(super) fn list(folder: &Path, skipped: &mut impl FnMut(Skipped)) -> Vec<MaildirFile> {
    let mut files = Vec::new();
    for (sub, in_new) in [("cur", false), ("new", true)] {
        let path = folder.join(sub);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // Either may be missing in a copy of a Maildir.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                skipped(Skipped { path, reason: SkipReason::Unreadable(error.to_string()) });
                continue;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) if kind.is_file() => match entry.metadata() {
                    Ok(metadata) => files.push(MaildirFile {
                        name: entry.file_name(),
                        in_new,
                        bytes: metadata.len(),
                        modified_ms: metadata.modified().ok().and_then(unix_ms),
                    }),
                    Err(error) => skipped(Skipped {
                        path: entry.path(),
                        reason: SkipReason::Unreadable(error.to_string()),
                    }),
                },
                Ok((kind, entry)) => {
                    let reason = if kind.is_symlink() {
                        SkipReason::SymbolicLink
                    } else if kind.is_dir() {
                        SkipReason::NotMail
                    } else {
                        SkipReason::SpecialFile
                    };
                    skipped(Skipped { path: entry.path(), reason });
                }
                Err(error) => skipped(Skipped {
                    path: path.clone(),
                    reason: SkipReason::Unreadable(error.to_string()),
                }),
            }
        }
    }
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name).then(a.in_new.cmp(&b.in_new)));
    files
}

fn unix_ms(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).ok(),
        Err(before) => i64::try_from(before.duration().as_millis()).ok().map(|ms| -ms),
    }
}

/// Names of the flags a–z; empty without the file.
pub(super) fn keywords(folder: &Path) -> Vec<String> {
    let path = folder.join("dovecot-keywords");
    let regular = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
    let mut text = Vec::new();
    if regular && let Ok(file) = fs::File::open(&path) {
        // What cannot be read tells nothing; the messages themselves are not concerned.
        let _ = file.take(KEYWORDS_BYTES_MAX).read_to_end(&mut text);
    }
    let mut names = vec![String::new(); 26];
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some((index, name)) = line.split_once(' ')
            && let Some(slot) = index.parse::<usize>().ok().and_then(|n| names.get_mut(n))
        {
            name.trim().clone_into(slot);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str, in_new: bool) -> Vec<String> {
        let file = MaildirFile { name: name.into(), in_new, bytes: 0, modified_ms: None };
        let mut labels = Labels::default();
        file.add_labels(&["Work".to_owned(), "$Forwarded".to_owned()], &mut labels);
        labels.into_vec()
    }

    #[test]
    fn flags_become_labels() {
        for (name, want) in [
            ("1.a:2,S", &[][..]),
            ("1.a:2,", &["unread"]),
            ("1.a", &["unread"]),
            ("1.a;2,FS", &["starred"]),
            ("1.a!2,DPRST", &["draft", "forwarded", "replied", "trashed"]),
            ("1.a,S=12:2,Sab", &["work", "forwarded"]),
            ("1.a:2,Sz", &[]),
            ("1.a:2,F:2,S", &[]),
        ] {
            assert_eq!(labels(name, false), want, "{name}");
        }
        assert_eq!(labels("1.a:2,S", true), ["unread"]);
    }
}
