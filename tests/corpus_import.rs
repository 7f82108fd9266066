//! Whole corpora, imported: broken mail of many test suites and a damaged list archive. The account
//! adds up, nothing panics, and live projections equal those rebuilt from zero.

#![expect(clippy::print_stdout, reason = "a corpus test reports what it saw")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use postrider::app::{Account, Postrider};
use postrider::mail::message::DefectKind;
use postrider::mail::sources::{Item, Options, plan};
use postrider::mail::{ReadHints, read};
use postrider::projections::build::Parts;

/// Fewest messages that must be found, with the whole archive and of its list `divunal-list`.
const TORTURE_MIN: u64 = 2_200;
const ARCHIVE_MIN: u64 = 88_000;
const LISTS_MIN: u64 = 1_700;

async fn dump(postrider: &Postrider) -> Vec<u8> {
    let out = tempfile::NamedTempFile::new().expect("temp file");
    postrider.dump("main", out.reopen().expect("reopens")).await.expect("dumps");
    std::fs::read(out.path()).expect("reads")
}

/// Imports, reports, imports again, rebuilds.
async fn check(name: &str, path: PathBuf) -> Account {
    let dir = tempfile::tempdir().expect("temp dir");
    let (postrider, account) = support::imported(dir.path(), path.clone()).await;
    report(name, &account, &path);
    let live = dump(&postrider).await;
    postrider.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilt");
    assert!(dump(&postrider).await == live, "{name}: live and rebuilt differ");
    let again = postrider.import("main", &[path], Default::default()).await.expect("imports");
    assert_eq!((again.read, again.stored, again.failed), (account.read, 0, account.failed));
    assert_eq!(again.placed, 0, "{name}: the same import places nothing new");
    assert!(dump(&postrider).await == live, "{name}: a second import changed something");
    postrider.close().await;
    account
}

fn report(name: &str, account: &Account, path: &Path) {
    println!(
        "{name}: {} read, {} stored, {} already there ({} placed), {} failed, {} files skipped",
        account.read,
        account.stored,
        account.already_there,
        account.placed,
        account.failed,
        account.skipped_files
    );
    for (what, list) in [("failed", &account.failures), ("skipped", &account.skipped)] {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        list.iter().for_each(|one| *kinds.entry(&one.reason).or_default() += 1);
        kinds.iter().for_each(|(kind, n)| println!("    {what}: {n} {kind}"));
    }
    let mut defects: BTreeMap<String, usize> = BTreeMap::new();
    let mut degraded = 0;
    for item in plan(path, &Options::default()).expect("readable").read() {
        let Item::Entry(entry) = item else { continue };
        let message = read(&entry.raw, &ReadHints::default());
        degraded += usize::from(message.flags.parse_degraded);
        for defect in &message.defects {
            assert!(defect.kind != DefectKind::Unreadable, "{:?}", entry.place);
            *defects.entry(format!("{:?}", defect.kind)).or_default() += 1;
        }
    }
    println!("    degraded: {degraded}; defects: {defects:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_mail_is_imported_and_rebuilt() {
    let Some(base) = support::corpus("torture-permissive") else { return };
    let account = check("torture-permissive", base).await;
    assert!(account.read >= TORTURE_MIN, "only {} messages were found", account.read);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_archive_is_imported_and_rebuilt() {
    let Some(base) = support::corpus("twisted-pipermail") else { return };
    if std::env::var_os("POSTRIDER_CORPORA_FULL").is_some() {
        let account = check("twisted-pipermail", base).await;
        assert!(account.read >= ARCHIVE_MIN, "only {} messages were found", account.read);
        return;
    }
    println!("of twisted-pipermail one list is read: POSTRIDER_CORPORA_FULL is not set");
    let account = check("twisted-pipermail, divunal-list", base.join("divunal-list")).await;
    assert!(account.read >= LISTS_MIN, "only {} messages were found", account.read);
}
