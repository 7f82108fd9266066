//! An erasure drill on real mail: messages vanish one by one while mail is imported, searches run and
//! the indexes are rebuilt; from the moment each call returns nothing finds them, and after the purge
//! no file holds a word of theirs.
//!
//! Needs the SpamAssassin corpus, see `docs/development.md`. `POSTRIDER_ERASURES` and
//! `POSTRIDER_PROBES` set how many.

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use postrider::app::{EraseRequest, Error, ImportOptions, Postrider, Selection};
use postrider::events::receipt::ErasureState;
use postrider::ids::MessageId;
use postrider::projections::build::{Compared, Parts};
use postrider::search::SearchRequest;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn pick<T: Clone>(list: &[T], state: &mut u64) -> T {
    list[usize::try_from(random(state) % list.len() as u64).expect("small")].clone()
}

/// A message that was erased: its identifier and its Message-ID.
type Gone = Arc<RwLock<Vec<(MessageId, String)>>>;

async fn ids(postrider: &Postrider) -> Vec<MessageId> {
    let events = postrider.events("main", Some(0), 10_000).await.expect("lists");
    events.into_iter().filter_map(|event| event.message_id).collect()
}

async fn probe(postrider: &Postrider, gone: &Gone, state: &mut u64) -> bool {
    let (id, message_id) = {
        let gone = gone.read().expect("not poisoned");
        if gone.is_empty() {
            return false;
        }
        pick(&gone, state)
    };
    match random(state) % 3 {
        0 => {
            let shown = postrider.show("main", id).await;
            assert!(matches!(shown, Err(Error::NoSuchMessage)), "{id} is shown");
        }
        1 => {
            let raw = postrider.raw("main", id).await;
            assert!(matches!(raw, Err(Error::NoSuchMessage)), "{id} has bytes");
        }
        _ => {
            let q = format!("rfc822msgid:\"{message_id}\" in:anywhere");
            let request = SearchRequest { q, limit: 50, ..SearchRequest::default() };
            let found = postrider.search("main", &request).await.expect("answers");
            assert!(found.hits.iter().all(|hit| hit.message_id != id), "{id} is found");
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_mail_is_nowhere_from_the_moment_the_call_returns() {
    let Some(corpus) = support::corpus("spamassassin") else { return };
    let dir = tempfile::tempdir().expect("temp dir");
    let (postrider, _) = support::imported(dir.path(), corpus.join("easy-ham-1")).await;
    let part = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(|n| corpus.join(n)).collect() };
    let rest = part(&["spam-1", "easy-ham-2", "hard-ham-1", "spam-2"]);
    let (erasures, probes) =
        (setting("POSTRIDER_ERASURES", 40), setting("POSTRIDER_PROBES", 2_000));

    let gone = Gone::default();
    let over = Arc::new(AtomicBool::new(false));
    let probed = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for seed in 0..4 {
        let (postrider, gone) = (postrider.clone(), Arc::clone(&gone));
        let (over, probed) = (Arc::clone(&over), Arc::clone(&probed));
        tasks.push(tokio::spawn(async move {
            let mut state = seed;
            while !over.load(Ordering::SeqCst) || probed.load(Ordering::SeqCst) < probes {
                if probe(&postrider, &gone, &mut state).await {
                    probed.fetch_add(1, Ordering::SeqCst);
                } else {
                    tokio::task::yield_now().await;
                }
            }
        }));
    }
    let importing = {
        let postrider = postrider.clone();
        tokio::spawn(async move {
            postrider.import("main", &rest, ImportOptions::default()).await.expect("imports")
        })
    };
    let rebuilding = {
        let (postrider, over) = (postrider.clone(), Arc::clone(&over));
        tokio::spawn(async move {
            let mut rebuilds = 0;
            while !over.load(Ordering::SeqCst) {
                let rebuilt = postrider.rebuild("main", Parts::All, Arc::default()).await;
                // While messages vanish there is nothing at rest to compare with.
                assert_ne!(rebuilt.expect("rebuilds").compared, Compared::Different);
                rebuilds += 1;
            }
            rebuilds
        })
    };
    let mut state = 77;
    let mut receipts = Vec::new();
    for _ in 0..erasures {
        let id = pick(&ids(&postrider).await, &mut state);
        let Ok(shown) = postrider.show("main", id).await else { continue };
        let select = Selection::Messages(vec![id]);
        let request = EraseRequest { select, remember: false, as_of_seq: None };
        let receipt = postrider.erase("main", request).await.expect("erases");
        assert_eq!(receipt.messages_deleted, 1);
        receipts.push(receipt.receipt_id);
        gone.write().expect("not poisoned").push((id, shown.rfc822_message_id));
    }
    let account = importing.await.expect("imported");
    assert_eq!(account.failed, 0);
    over.store(true, Ordering::SeqCst);
    let rebuilds = rebuilding.await.expect("rebuilt");
    for task in tasks {
        task.await.expect("probed");
    }
    let (mut words, mut bytes) = (0, 0);
    for receipt in &receipts {
        let proven = postrider.purged(*receipt).await.expect("purged");
        assert_eq!(proven.status, ErasureState::Completed, "{proven:?}");
        let probe = proven.probe.expect("probed");
        words += probe.byte_tokens;
        bytes += probe.bytes;
    }
    assert!(words > receipts.len() as u64, "hardly a word to look for: {words}");
    let verified = postrider.verify("main", false, Arc::default()).await.expect("verifies");
    assert!(verified.is_clean(), "{verified:?}");
    assert_eq!(verified.erased, receipts.len() as u64);
    println!(
        "{} erased, {} probes, {rebuilds} rebuilds, {words} words looked for in {bytes} bytes",
        receipts.len(),
        probed.load(Ordering::SeqCst)
    );
    postrider.close().await;
}
