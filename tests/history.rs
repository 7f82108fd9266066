//! Random histories: whatever was ingested, placed, labelled and changed, in whatever order and
//! with whatever crashes in between, the live projections equal those rebuilt from zero.

use std::path::Path;
use std::sync::Arc;

use postrider::app::{IngestOutcome, IngestRequest, Postrider};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::events::event::{LabelsChanged, MessageUnplaced, Placement, StatusChanged};
use postrider::events::{Event, Status};
use postrider::ids::Ordinal;
use postrider::search::SearchRequest;

const NOW_MS: i64 = 1_788_000_000_000;

/// A small generator with a printed seed: the same seed gives the same history.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[usize::try_from(self.below(list.len() as u64)).expect("small")]
    }
}

const FOLDERS: [&str; 4] = ["INBOX", "Archive", "Junk", "Lists/garden"];
const LABELS: [&str; 4] = ["unread", "starred", "garden", "project:x"];
const WORDS: [&str; 8] =
    ["boiler", "radiators", "暖房が故障", "rechnung", "счёт", "garden", "pump", "école"];

fn config(dir: &Path) -> Config {
    Config { data_dir: dir.to_owned(), time_zone: "UTC".into(), ..Config::default() }
}

async fn open(dir: &Path, clock: &Arc<ManualClock>) -> Postrider {
    let clock: Arc<ManualClock> = Arc::clone(clock);
    let postrider = Postrider::open_with_clock(config(dir), clock).await.expect("opens");
    postrider.ensure_identity("main").await.expect("made");
    postrider
}

/// A message of number `n`, answering an earlier or a later one now and then.
fn message(n: u64, answers: Option<u64>, random: &mut Random) -> Vec<u8> {
    let reply = answers.map_or(String::new(), |other| {
        format!("In-Reply-To: <m{other}@x.test>\r\nReferences: <m{other}@x.test>\r\n")
    });
    let words: Vec<&str> = (0..5).map(|_| *random.pick(&WORDS)).collect();
    format!(
        "From: Ada {} <ada{}@mail.x.test>\r\nTo: bo@y.test\r\nSubject: {} {n}\r\n\
         Message-ID: <m{n}@x.test>\r\nDate: Tue, {} Mar 2025 10:00:00 +0000\r\n{reply}\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{}\r\n> quoted {}\r\n",
        n % 3,
        n % 3,
        random.pick(&WORDS),
        1 + n % 28,
        words.join(" "),
        random.pick(&WORDS),
    )
    .into_bytes()
}

async fn dump(postrider: &Postrider) -> String {
    let out = tempfile::NamedTempFile::new().expect("temp file");
    postrider.dump("main", out.reopen().expect("reopens")).await.expect("dumps");
    std::fs::read_to_string(out.path()).expect("text")
}

async fn step(
    postrider: &Postrider,
    random: &mut Random,
    next: &mut u64,
    raws: &mut Vec<Vec<u8>>,
    stored: &mut u32,
) {
    let mailbox = "main";
    match random.below(10) {
        0..=4 => {
            let again = !raws.is_empty() && random.below(4) == 0;
            let raw = if again {
                random.pick(raws).clone()
            } else {
                let answers = (random.below(2) == 0).then(|| random.below(*next + 3));
                let raw = message(*next, answers, random);
                *next += 1;
                raws.push(raw.clone());
                raw
            };
            let labels = vec![(*random.pick(&LABELS)).to_owned()];
            let folder = (*random.pick(&FOLDERS)).to_owned();
            let request = IngestRequest { raw, folder, labels, source: "test".into() };
            match postrider.ingest(mailbox, request).await.expect("taken in") {
                IngestOutcome::Stored { .. } => {
                    assert!(!again, "known bytes were stored again");
                    *stored += 1;
                }
                IngestOutcome::Duplicate { .. } => {
                    assert!(again, "a new message was taken for a copy");
                }
            }
        }
        5 | 6 if *stored > 0 => {
            let ordinals = (0..*stored).filter(|_| random.below(3) == 0).collect();
            let (added, removed) = (random.pick(&LABELS), random.pick(&LABELS));
            let event = Event::LabelsChanged(LabelsChanged {
                ordinals,
                added: vec![(*added).to_owned()],
                removed: vec![(*removed).to_owned()],
            });
            postrider.record(mailbox, event).await.expect("recorded");
        }
        7 if *stored > 0 => {
            let ordinals = (0..*stored).filter(|_| random.below(5) == 0).collect();
            let status = *random.pick(&Status::ALL);
            let event = Event::StatusChanged(StatusChanged { ordinals, status });
            postrider.record(mailbox, event).await.expect("recorded");
        }
        8 if *stored > 0 => {
            let ordinal = Ordinal(u32::try_from(random.below(u64::from(*stored))).expect("small"));
            let folder = (*random.pick(&FOLDERS)).to_owned();
            let placement = Placement { folder, source: "test".into() };
            let event = Event::MessageUnplaced(MessageUnplaced { ordinal, placement });
            postrider.record(mailbox, event).await.expect("recorded");
        }
        _ => {
            let request = SearchRequest { q: (*random.pick(&WORDS)).into(), ..Default::default() };
            let answer = postrider.search(mailbox, &request).await.expect("answers");
            assert!(answer.hits.len() as u64 <= answer.total);
        }
    }
}

async fn run(seed: u64) {
    let mut random = Random(seed);
    let dir = tempfile::tempdir().expect("temp dir");
    let clock = ManualClock::at(NOW_MS);
    let mut postrider = open(dir.path(), &clock).await;
    let (mut next, mut raws, mut stored) = (0, Vec::new(), 0);
    for _ in 0..random.below(40) + 10 {
        step(&postrider, &mut random, &mut next, &mut raws, &mut stored).await;
        clock.advance_ms(1_000);
        if random.below(12) == 0 {
            postrider.close().await;
            postrider = open(dir.path(), &clock).await;
        }
    }
    let live = dump(&postrider).await;
    let status = postrider.mailbox_status("main").await.expect("status");
    assert_eq!(status.messages, u64::from(stored), "seed {seed}");
    postrider.rebuild("main", Arc::new(|_| ())).await.expect("rebuilt");
    let rebuilt = dump(&postrider).await;
    assert!(live == rebuilt, "seed {seed}: live and rebuilt differ");
    postrider.close().await;
    std::fs::remove_dir_all(dir.path().join("mailboxes")).expect("removed");
    let postrider = open(dir.path(), &clock).await;
    assert!(dump(&postrider).await == live, "seed {seed}: replay into nothing differs");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_equals_rebuilt_for_random_histories() {
    let first = std::env::var("POSTRIDER_SEED").ok().and_then(|s| s.parse().ok());
    let histories = std::env::var("POSTRIDER_HISTORIES").ok().and_then(|s| s.parse().ok());
    let first: u64 = first.unwrap_or(1);
    for seed in first..first + histories.unwrap_or(12) {
        run(seed).await;
    }
}
