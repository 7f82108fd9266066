//! Walks the corpora below `POSTRIDER_CORPORA` and holds them to independent counts.
//!
//! Without the variable it says so and passes; with it, a corpus that is absent is named, and a
//! run that saw no mail at all fails.
#![expect(clippy::print_stdout, reason = "figures and absent corpora are shown with --nocapture")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use postrider::mail::sources::{Failure, Item, Kind, Options, Plan, plan};

#[derive(Default)]
struct Tally {
    entries: u64,
    raw_bytes: u64,
    undated: u64,
    folders: BTreeMap<String, u64>,
    labels: BTreeMap<String, u64>,
    failures: Vec<Failure>,
}

impl Tally {
    fn below(&self, folder: &str) -> u64 {
        let prefix = format!("{folder}/");
        self.folders.iter().filter(|(f, _)| f.starts_with(&prefix)).map(|(_, n)| n).sum()
    }
}

fn corpus(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("POSTRIDER_CORPORA") else {
        println!("POSTRIDER_CORPORA is not set: {name} was not walked");
        return None;
    };
    let path = Path::new(&root).join(name);
    if !path.is_dir() {
        println!("{} is absent: not walked", path.display());
        return None;
    }
    Some(path)
}

fn walk(plan: Plan) -> Tally {
    let started = Instant::now();
    let total = plan.bytes_total();
    let mut reader = plan.read();
    let mut tally = Tally::default();
    for item in &mut reader {
        match item {
            Item::Entry(entry) => {
                assert!(!entry.raw.is_empty(), "{}", entry.place);
                assert!(!entry.folder.is_empty(), "{}", entry.place);
                tally.entries += 1;
                tally.raw_bytes += entry.raw.len() as u64;
                tally.undated += u64::from(entry.separator_ms.is_none());
                *tally.folders.entry(entry.folder).or_default() += 1;
                for label in entry.labels {
                    *tally.labels.entry(label).or_default() += 1;
                }
            }
            Item::Failure(failure) => tally.failures.push(failure),
        }
    }
    assert_eq!(reader.bytes_done(), total);
    assert_ne!(tally.entries, 0, "no mail was seen");
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} entries, {} failures, {total} bytes on disk in {seconds:.3} s, {:.0} MB/s; labels {:?}",
        tally.entries,
        tally.failures.len(),
        total as f64 / 1e6 / seconds,
        tally.labels,
    );
    tally
}

/// 88,820 entries have an asctime separator line; 478 more of 1999–2001 have one in RFC 822 style
/// (`From jk@host Mon, 2 Aug 1999 18:55:09 -0400 (EDT)`, then `Date:`), which that count left out.
#[test]
fn twisted_pipermail_holds_every_entry() {
    let Some(path) = corpus("twisted-pipermail") else { return };
    let plan = plan(&path, &Options::default()).unwrap();
    assert!(plan.parts.iter().all(|part| part.kind == Kind::Mbox));
    let tally = walk(plan);
    for (list, asctime, rfc822) in [
        ("twisted-python", 65_706, 0),
        ("twisted-web", 5_374, 0),
        ("inheritance", 15_911, 3),
        ("divunal-list", 1_667, 33),
        ("reality", 126, 105),
        ("divunal-author", 36, 230),
        ("divunal-devel", 0, 107),
    ] {
        assert_eq!(tally.below(list), asctime + rfc822, "{list}");
    }
    assert_eq!(tally.entries, 88_820 + 478);
    assert_eq!(tally.undated, 0);
    assert_eq!(tally.failures, []);
}

#[test]
fn spamassassin_is_one_message_per_file() {
    let Some(path) = corpus("spamassassin") else { return };
    let plan = plan(&path, &Options::default()).unwrap();
    assert!(plan.parts.iter().all(|part| part.kind == Kind::EmlFolder));
    let tally = walk(plan);
    for (folder, count) in [
        ("easy-ham-1", 2_500),
        ("easy-ham-2", 1_400),
        ("hard-ham-1", 250),
        ("spam-1", 500),
        ("spam-2", 1_396),
    ] {
        assert_eq!(tally.folders[folder], count, "{folder}");
    }
    assert_eq!(tally.failures, []);
}

/// Every file is read or listed as skipped. No mail: 16 TNEF files, two of the set itself, and of
/// `eml/` one Outlook `.msg` and two texts without any header. Entries of mboxes as counted in their
/// bytes; for `content-length` MimeKit's summary has one entry each.
#[test]
fn torture_set_loses_nothing_silently() {
    let Some(path) = corpus("torture-permissive") else { return };
    let plan = plan(&path, &Options::default()).unwrap();
    let files: u64 = plan.parts.iter().map(|part| part.files).sum();
    for skipped in &plan.skipped {
        println!("skipped {}: {}", skipped.path.display(), skipped.reason);
    }
    assert_eq!((files, plan.skipped_count), (1_950, 21));
    let tally = walk(plan);
    assert_eq!(tally.failures, []);
    for (part, count) in [
        ("mimekit__mbox_content-length.mbox.txt", 29),
        ("mimekit__mbox_content-length-summary.txt", 29),
        ("mimekit__mbox_jwz-summary.txt", 152),
        ("mimekit__mbox_issue1189.mbox.txt", 4),
        ("mimekit__mbox_unmunged.mbox.txt", 2),
        ("james-mime4j__mbox_src_test_resources_test-1_mbox.rlug", 5),
        ("kde-mimetreeparser__autotests_testdata_combined", 3),
        ("sisimai-set-of-emails__mailbox_mbox-0", 37),
    ] {
        assert_eq!(tally.folders[&format!("mbox/{part}")], count, "{part}");
    }
}
