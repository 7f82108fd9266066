//! What the tests over whole corpora share: where they are, and a mailbox to import them into.

use std::path::{Path, PathBuf};

use postrider::app::{Account, ImportOptions, Postrider};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::search::SearchRequest;

/// 2026-09-01T12:00:00Z.
const NOW_MS: i64 = 1_788_264_000_000;

/// The folder of a corpus, or a line that says why there is none.
#[expect(clippy::print_stdout, reason = "a corpus test reports what it saw")]
pub(crate) fn corpus(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("POSTRIDER_CORPORA") else {
        println!("{name} was not read: POSTRIDER_CORPORA is not set");
        return None;
    };
    let base = Path::new(&root).join(name);
    if !base.is_dir() {
        println!("{name} was not read: there is no {}", base.display());
        return None;
    }
    Some(base)
}

/// A new mailbox `main` in `dir` with everything at `path`; the account adds up.
pub(crate) async fn imported(dir: &Path, path: PathBuf) -> (Postrider, Account) {
    let config = Config { data_dir: dir.to_owned(), time_zone: "UTC".into(), ..Config::default() };
    let postrider =
        Postrider::open_with_clock(config, ManualClock::at(NOW_MS)).await.expect("opens");
    let account =
        postrider.import("main", &[path], ImportOptions::default()).await.expect("imports");
    assert_eq!(account.read, account.stored + account.already_there + account.failed);
    assert!(!account.interrupted);
    // A search waits for the index; the status does not.
    postrider.search("main", &SearchRequest::default()).await.expect("answers");
    let status = postrider.mailbox_status("main").await.expect("status");
    assert_eq!(status.messages, account.stored);
    (postrider, account)
}
