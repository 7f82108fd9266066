//! Dying at named places, in the middle of a random history: what was acknowledged is there, what was
//! erased is nowhere, no erasure is left half done, and the projections equal those rebuilt.
//!
//! The test starts itself as a child that lives a history aloud and ends at a place of
//! [`postrider::crash_point`]. `POSTRIDER_CRASHES` sets how often, `POSTRIDER_SEED` where the random
//! numbers begin. `POSTRIDER_KILL=1` kills at random moments instead.

#[path = "world/story.rs"]
mod story;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use postrider::clock::ManualClock;
use postrider::crash_point;
use postrider::events::receipt::{ErasureState, Probe};
use postrider::projections::build::{Compared, Parts};
use postrider::search::SearchRequest;
use story::{Model, NOW_MS, Random, open, step};

const CHILD: &str = "POSTRIDER_CRASH_CHILD";

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The child: lives a history in the directory it is told.
#[test]
fn child_that_lives_a_history_when_told_to() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    runtime.block_on(async {
        let mut random = Random(setting("POSTRIDER_CHILD_SEED", 1));
        let clock = ManualClock::at(NOW_MS);
        let mut postrider = open(Path::new(&dir), &clock).await;
        let mut model = Model::default();
        model.aloud = true;
        for _ in 0..30 {
            step(&postrider, &mut random, &mut model).await;
            clock.advance_ms(1_000);
            if random.below(12) == 0 {
                postrider.close().await;
                postrider = open(Path::new(&dir), &clock).await;
            }
        }
        postrider.close().await;
    });
}

/// What a child said before it died.
#[derive(Debug, Default)]
struct Told {
    stored: BTreeSet<String>,
    erased: BTreeSet<String>,
    /// A message whose fate was not told.
    storing: Option<String>,
    /// An erasure whose outcome was not told.
    erasing: bool,
    /// It was ended by a signal.
    died: bool,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let (verb, words) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "storing" => self.storing = Some(words.to_owned()),
            "stored" => {
                self.storing = None;
                self.stored.insert(words.to_owned());
                self.erased.remove(words);
            }
            "erasing" => self.erasing = true,
            "erased" => {
                self.erasing = false;
                for word in words.split_whitespace() {
                    self.erased.insert(word.to_owned());
                    self.stored.remove(word);
                }
            }
            _ => {}
        }
    }
}

fn live_and_die(dir: &Path, seed: u64, at: &str, kill_after_lines: Option<u64>) -> Told {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", "child_that_lives_a_history_when_told_to", "--nocapture"])
        .env(CHILD, dir)
        .env("POSTRIDER_CHILD_SEED", seed.to_string())
        .env("POSTRIDER_CRASH_AT", at)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut told = Told::default();
    let output = BufReader::new(child.stdout.take().expect("piped"));
    for (number, line) in output.lines().map_while(Result::ok).enumerate() {
        told.hear(&line);
        if kill_after_lines == Some(number as u64) {
            // Fails when it has ended by itself.
            let _ = child.kill();
        }
    }
    told.died = child.wait().expect("reaped").code().is_none();
    told
}

async fn check(dir: &Path, told: &Told, history: &str) {
    let postrider = open(dir, &ManualClock::at(NOW_MS + 3_600_000)).await;
    let total = async |word: &str| {
        // Whatever its status: a rebuild, not a search, tells what is stored.
        let request = SearchRequest {
            q: format!("{word} in:anywhere"),
            include_quarantined: true,
            ..SearchRequest::default()
        };
        postrider.search("main", &request).await.expect("answers").total
    };
    for word in &told.erased {
        if told.storing.as_ref() != Some(word) {
            assert_eq!(total(word).await, 0, "{history}: {word} is back");
        }
    }
    let dump = story::dump(&postrider).await;
    if !told.erasing {
        for word in &told.stored {
            assert!(dump.contains(word.as_str()), "{history}: {word} is lost");
        }
    }
    for receipt in postrider.erasures().await.expect("lists") {
        let receipt = postrider.purged(receipt.receipt_id).await.expect("purged");
        assert!(receipt.probe.as_ref().is_some_and(Probe::is_clean), "{history}: {receipt:?}");
        assert_ne!(receipt.status, ErasureState::Failed, "{history}");
    }
    let rebuilt = postrider.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilt");
    assert_eq!(rebuilt.compared, Compared::Equal, "{history}");
    postrider.close().await;
}

#[test]
fn a_history_that_ends_anywhere_is_whole_again_after_a_start() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("runtime");
    let first = setting("POSTRIDER_SEED", 1);
    let by_kill = setting("POSTRIDER_KILL", 0) == 1;
    let histories = setting("POSTRIDER_CRASHES", 160);
    let mut died = 0;
    for seed in first..first + histories {
        let mut random = Random(seed.wrapping_mul(0x9e37));
        let dir = tempfile::tempdir().expect("temp dir");
        // Each name in turn, so that few histories pass them all.
        let names = crash_point::NAMES;
        let name = names[usize::try_from(seed).expect("small") % names.len()];
        let at = format!("{name}:{}", 1 + random.below(3));
        let lines = by_kill.then(|| random.below(40));
        let told = live_and_die(dir.path(), seed, if by_kill { "" } else { &at }, lines);
        let history = format!("seed {seed} at {at:?}, kill after {lines:?}");
        runtime.block_on(check(dir.path(), &told, &history));
        died += u64::from(told.died);
    }
    println!("{died} of {histories} histories ended before their time");
    assert!(died * 3 >= histories, "the places are hardly ever passed: {died} of {histories}");
}
