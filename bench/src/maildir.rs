//! A Maildir of distinct messages, made of mboxes: what notmuch and mu can read.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::results::Figures;
use crate::{Fallible, corpus};

/// Writes `count` messages (0: all) into `out/cur`, each Message-ID once, bytes as they are.
///
/// A file's time is that of receipt, so that messages keep the date they have in the mbox.
pub(crate) fn write(out: &Path, count: usize, sources: &[&str]) -> Fallible<Figures> {
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(out.join(part))?;
    }
    let cur = out.join("cur");
    if fs::read_dir(&cur)?.next().is_some() {
        return Err(format!("{} is not empty", cur.display()).into());
    }
    let mut ids = HashSet::new();
    let (mut written, mut copies, mut bytes) = (0_usize, 0_u64, 0_u64);
    for source in sources {
        corpus::each(Path::new(source), |entry| {
            if count > 0 && written == count {
                return Ok(false);
            }
            let message = corpus::message(&entry);
            if !ids.insert(message.message_id) {
                copies += 1;
                return Ok(true);
            }
            let received_ms = u64::try_from(message.received_ms).unwrap_or(0);
            written += 1;
            let name = format!("{}.M{written:06}P1.bench:2,S", received_ms / 1_000);
            let mut file = File::create_new(cur.join(name))?;
            file.write_all(&entry.raw)?;
            file.set_modified(UNIX_EPOCH + Duration::from_millis(received_ms))?;
            bytes += entry.raw.len() as u64;
            Ok(true)
        })?;
    }
    if written < count {
        return Err(format!("the sources hold {written} distinct messages, not {count}").into());
    }
    let mut figures = Figures::new();
    figures.insert("messages".into(), written.into());
    figures.insert("copies".into(), copies.into());
    figures.insert("bytes".into(), bytes.into());
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_id_becomes_one_file_of_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("list.mbox");
        let one = "From a@x  Mon Jan  1 10:00:00 2001\nFrom: a@x\nSubject: one\n\
                   Message-ID: <1@x>\n\nbody\n\n";
        let two = one.replace("<1@x>", "<2@x>");
        fs::write(&source, format!("{one}{one}{two}")).unwrap();
        let sources = [source.to_str().unwrap()];
        let out = dir.path().join("out");
        let figures = write(&out, 0, &sources).unwrap();
        assert_eq!((&figures["messages"], &figures["copies"]), (&2.into(), &1.into()));
        let mut files: Vec<_> = fs::read_dir(out.join("cur")).unwrap().flatten().collect();
        files.sort_by_key(|f| f.file_name());
        assert_eq!(files[0].file_name().to_str(), Some("978343200.M000001P1.bench:2,S"));
        let text = fs::read_to_string(files[0].path()).unwrap();
        assert!(text.starts_with("From: a@x\n") && text.ends_with("body\n"), "{text:?}");
        assert!(write(&out, 0, &sources).is_err(), "nothing is mixed into what is there");
        assert!(write(&dir.path().join("more"), 3, &sources).is_err(), "too few is an error");
    }
}
