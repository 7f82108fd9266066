//! Random histories: whatever was ingested, placed, labelled, held and erased, in whatever order and
//! however often it was closed in between, the live projections equal those rebuilt from zero, and
//! what was erased is nowhere.

#[path = "world/story.rs"]
mod story;

use std::sync::Arc;

use postrider::clock::ManualClock;
use postrider::events::receipt::Probe;
use postrider::projections::build::{Compared, Parts};
use story::{Model, NOW_MS, Random, dump, open, step};

async fn run(seed: u64) {
    let mut random = Random(seed);
    let dir = tempfile::tempdir().expect("temp dir");
    let clock = ManualClock::at(NOW_MS);
    let mut postrider = open(dir.path(), &clock).await;
    let mut model = Model::default();
    for _ in 0..random.below(40) + 10 {
        step(&postrider, &mut random, &mut model).await;
        clock.advance_ms(1_000);
        if random.below(12) == 0 {
            postrider.close().await;
            postrider = open(dir.path(), &clock).await;
        }
    }
    let live = dump(&postrider).await;
    let status = postrider.mailbox_status("main").await.expect("status");
    assert_eq!(status.messages, model.living().len() as u64, "seed {seed}");
    for receipt in &model.receipts {
        let purged = postrider.purged(*receipt).await.expect("purged");
        assert!(purged.probe.as_ref().is_some_and(Probe::is_clean), "seed {seed}: {purged:?}");
    }
    assert_same(
        &format!("seed {seed}"),
        "purging changed what is there",
        &live,
        &dump(&postrider).await,
    );
    let rebuilt = postrider.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilt");
    assert_eq!(rebuilt.compared, Compared::Equal, "seed {seed}");
    assert_same(&format!("seed {seed}"), "live and rebuilt differ", &live, &dump(&postrider).await);
    postrider.close().await;
    std::fs::remove_dir_all(dir.path().join("mailboxes")).expect("removed");
    let postrider = open(dir.path(), &clock).await;
    assert_same(
        &format!("seed {seed}"),
        "replay into nothing differs",
        &live,
        &dump(&postrider).await,
    );
    postrider.close().await;
}

/// Fails with the first line that differs.
fn assert_same(history: &str, what: &str, before: &str, after: &str) {
    if before != after {
        let differing = before.lines().zip(after.lines()).find(|(a, b)| a != b);
        panic!("{history}: {what}: {differing:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_equals_rebuilt_for_random_histories() {
    let first = std::env::var("POSTRIDER_SEED").ok().and_then(|s| s.parse().ok());
    let histories = std::env::var("POSTRIDER_HISTORIES").ok().and_then(|s| s.parse().ok());
    let first: u64 = first.unwrap_or(1);
    for seed in first..first + histories.unwrap_or(40) {
        run(seed).await;
    }
}
