//! Random histories over one mailbox, step by step, with a model of what the mailbox must hold.
//!
//! Every step says what it is about to do and what was acknowledged ([`Model::say`]), so that a
//! process which dies in the middle leaves an account of what must be there.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use postrider::actors::mailbox::MailboxError;
use postrider::app::{EraseRequest, Error, IngestOutcome, IngestRequest, Postrider, Selection};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::events::event::{LabelsChanged, MessageUnplaced, Placement, StatusChanged};
use postrider::events::receipt::Probe;
use postrider::events::{Event, Status};
use postrider::ids::{HoldId, MessageId, Ordinal, ReceiptId};
use postrider::projections::build::{Compared, Parts};
use postrider::search::SearchRequest;
use roaring::RoaringBitmap;

pub(crate) const NOW_MS: i64 = 1_788_000_000_000;

/// A small generator with a printed seed: the same seed gives the same history.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[usize::try_from(self.below(list.len() as u64)).expect("small")]
    }
}

const FOLDERS: [&str; 4] = ["INBOX", "Archive", "Junk", "Lists/garden"];
const LABELS: [&str; 4] = ["unread", "starred", "garden", "project:x"];
const WORDS: [&str; 8] =
    ["boiler", "radiators", "暖房が故障", "rechnung", "счёт", "garden", "pump", "école"];

pub(crate) fn config(dir: &Path) -> Config {
    Config { data_dir: dir.to_owned(), time_zone: "UTC".into(), ..Config::default() }
}

pub(crate) async fn open(dir: &Path, clock: &Arc<ManualClock>) -> Postrider {
    let clock: Arc<ManualClock> = Arc::clone(clock);
    let postrider = Postrider::open_with_clock(config(dir), clock).await.expect("opens");
    postrider.ensure_identity("main").await.expect("made");
    postrider
}

/// A message of number `n`, answering an earlier or a later one now and then.
fn message(n: u64, answers: Option<u64>, random: &mut Random) -> (Vec<u8>, String) {
    let word = format!("distinct{n}word");
    let reply = answers.map_or(String::new(), |other| {
        format!("In-Reply-To: <m{other}@x.test>\r\nReferences: <m{other}@x.test>\r\n")
    });
    let words: Vec<&str> = (0..5).map(|_| *random.pick(&WORDS)).collect();
    let raw = format!(
        "From: Ada {} <ada{}@mail.x.test>\r\nTo: bo@y.test\r\nSubject: {} {n}\r\n\
         Message-ID: <m{n}@x.test>\r\nDate: Tue, {} Mar 2025 10:00:00 +0000\r\n{reply}\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{word} {}\r\n> quoted {}\r\n",
        n % 3,
        n % 3,
        random.pick(&WORDS),
        1 + n % 28,
        words.join(" "),
        random.pick(&WORDS),
    );
    (raw.into_bytes(), word)
}

pub(crate) async fn dump(postrider: &Postrider) -> String {
    let out = tempfile::NamedTempFile::new().expect("temp file");
    postrider.dump("main", out.reopen().expect("reopens")).await.expect("dumps");
    std::fs::read_to_string(out.path()).expect("text")
}

/// A message that was stored, as the test remembers it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) id: MessageId,
    /// A word that no other message holds.
    pub(crate) word: String,
    raw: Vec<u8>,
    erased: bool,
}

/// What the mailbox must hold.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Number of the next message.
    next: u64,
    /// By ordinal.
    pub(crate) stored: Vec<Stored>,
    holds: Vec<HoldId>,
    pub(crate) receipts: Vec<ReceiptId>,
    /// Raw bytes that are refused for ever.
    remembered: HashSet<Vec<u8>>,
    /// Tells on standard output what happens.
    pub(crate) aloud: bool,
}

impl Model {
    /// Tells what is about to happen, or what was acknowledged.
    fn say(&self, line: &str) {
        if self.aloud {
            use std::io::Write as _;
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}").and_then(|()| out.flush()).expect("told");
        }
    }

    pub(crate) fn living(&self) -> Vec<usize> {
        (0..self.stored.len()).filter(|at| !self.stored[*at].erased).collect()
    }

    fn some(&self, random: &mut Random, one_in: u64) -> RoaringBitmap {
        let all = 0..u32::try_from(self.stored.len()).expect("small");
        all.filter(|_| random.below(one_in) == 0).collect()
    }
}

pub(crate) async fn step(postrider: &Postrider, random: &mut Random, model: &mut Model) {
    let mailbox = "main";
    match random.below(15) {
        0..=4 => ingest(postrider, random, model).await,
        5 | 6 => {
            let ordinals = model.some(random, 3);
            let (added, removed) = (random.pick(&LABELS), random.pick(&LABELS));
            let event = Event::LabelsChanged(LabelsChanged {
                ordinals,
                added: vec![(*added).to_owned()],
                removed: vec![(*removed).to_owned()],
            });
            record(postrider, event).await;
        }
        7 => {
            let status = *random.pick(&Status::ALL);
            let ordinals = model.some(random, 5);
            record(postrider, Event::StatusChanged(StatusChanged { ordinals, status })).await;
        }
        8 if !model.stored.is_empty() => {
            let at = random.below(model.stored.len() as u64);
            let ordinal = Ordinal(u32::try_from(at).expect("small"));
            let folder = (*random.pick(&FOLDERS)).to_owned();
            let placement = Placement { folder, source: "test".into() };
            let event = Event::MessageUnplaced(MessageUnplaced { ordinal, placement });
            record(postrider, event).await;
        }
        9 | 10 => erase(postrider, random, model).await,
        11 => hold(postrider, random, model).await,
        12 => rebuild(postrider, random, model).await,
        _ => {
            let request = SearchRequest { q: (*random.pick(&WORDS)).into(), ..Default::default() };
            let answer = postrider.search(mailbox, &request).await.expect("answers");
            assert!(answer.hits.len() as u64 <= answer.total);
        }
    }
}

/// Records a fact; one about erased messages alone is refused, which changes nothing.
async fn record(postrider: &Postrider, event: Event) {
    match postrider.record("main", event).await {
        Ok(_) | Err(Error::Mailbox(MailboxError::NoSuchMessage)) => {}
        Err(other) => panic!("not recorded: {other}"),
    }
}

pub(crate) async fn ingest(postrider: &Postrider, random: &mut Random, model: &mut Model) {
    let again = !model.stored.is_empty() && random.below(4) == 0;
    let (raw, word) = if again {
        let known = random.pick(&model.stored);
        (known.raw.clone(), known.word.clone())
    } else {
        let answers = (random.below(2) == 0).then(|| random.below(model.next + 3));
        let made = message(model.next, answers, random);
        model.next += 1;
        made
    };
    let known = model.stored.iter().any(|s| s.raw == raw && !s.erased);
    let refused = model.remembered.contains(&raw) && !known;
    let labels = vec![(*random.pick(&LABELS)).to_owned()];
    let folder = (*random.pick(&FOLDERS)).to_owned();
    let request = IngestRequest { raw: raw.clone(), folder, labels, source: "test".into() };
    model.say(&format!("storing {word}"));
    match postrider.ingest("main", request).await.expect("taken in") {
        IngestOutcome::Stored { id, .. } => {
            model.say(&format!("stored {word}"));
            assert!(!known && !refused, "known bytes were stored again");
            model.stored.push(Stored { id, word, raw, erased: false });
        }
        IngestOutcome::Duplicate { .. } => {
            assert!(known && !refused, "a new message was taken for a copy");
        }
        IngestOutcome::Suppressed => assert!(refused, "a message was refused for nothing"),
    }
}

pub(crate) async fn erase(postrider: &Postrider, random: &mut Random, model: &mut Model) {
    let living = model.living();
    if living.is_empty() {
        return;
    }
    let select = match random.below(3) {
        0 => {
            let sender = random.below(3);
            Selection::Query(format!("from:ada{sender}@mail.x.test in:anywhere"))
        }
        _ => Selection::Messages(vec![model.stored[*random.pick(&living)].id]),
    };
    let remember = random.below(4) == 0;
    let request = EraseRequest { select, remember, as_of_seq: None };
    let preview = postrider.erase_preview("main", request.clone()).await.expect("counts");
    model.say("erasing");
    let receipt = postrider.erase("main", request).await.expect("erases");
    assert_eq!(receipt.messages_deleted, preview.messages - preview.held);
    assert_eq!(receipt.held.iter().map(|h| h.messages).sum::<u64>(), preview.held);
    let gone = postrider.erased_messages(receipt.receipt_id).await.expect("there");
    model.receipts.push(receipt.receipt_id);
    let words = model.stored.iter().filter(|s| gone.contains(&s.id)).map(|s| s.word.as_str());
    model.say(&format!("erased {}", words.collect::<Vec<_>>().join(" ")));
    for stored in model.stored.iter_mut().filter(|s| gone.contains(&s.id)) {
        assert!(!stored.erased, "erased twice");
        stored.erased = true;
        if remember {
            model.remembered.insert(stored.raw.clone());
        }
        let request = SearchRequest {
            q: format!("{} in:anywhere", stored.word),
            include_quarantined: true,
            ..SearchRequest::default()
        };
        assert_eq!(postrider.search("main", &request).await.expect("answers").total, 0);
        assert!(matches!(postrider.show("main", stored.id).await, Err(Error::NoSuchMessage)));
        assert!(matches!(postrider.raw("main", stored.id).await, Err(Error::NoSuchMessage)));
    }
    if random.below(2) == 0 {
        let purged = postrider.purged(receipt.receipt_id).await.expect("purged");
        assert!(purged.probe.as_ref().is_some_and(Probe::is_clean), "{purged:?}");
    }
}

/// A rebuild, with arrivals and erasures meanwhile, and now and then the way back.
async fn rebuild(postrider: &Postrider, random: &mut Random, model: &mut Model) {
    let parts = *random.pick(&[Parts::All, Parts::Catalog, Parts::Text]);
    let meanwhile = async {
        for _ in 0..random.below(4) {
            ingest(postrider, random, model).await;
            if random.below(3) == 0 {
                erase(postrider, random, model).await;
            }
        }
    };
    let (rebuilt, ()) = tokio::join!(postrider.rebuild("main", parts, Arc::default()), meanwhile);
    assert_ne!(rebuilt.expect("rebuilt").compared, Compared::Different);
    if random.below(3) == 0 {
        // A purge in between leaves nothing to go back to.
        let parts = *random.pick(&[Parts::All, Parts::Catalog, Parts::Text]);
        postrider.roll_back("main", parts).await.expect("rolled back, or nothing kept");
    }
}

async fn hold(postrider: &Postrider, random: &mut Random, model: &mut Model) {
    if random.below(2) == 0 && !model.holds.is_empty() {
        let at = usize::try_from(random.below(model.holds.len() as u64)).expect("small");
        postrider.release_hold("main", model.holds.swap_remove(at)).await.expect("released");
        return;
    }
    let living = model.living();
    if !living.is_empty() {
        let select = Selection::Messages(vec![model.stored[*random.pick(&living)].id]);
        let hold = postrider.set_hold("main", select, "case 7").await.expect("set");
        model.holds.push(hold.hold_id);
    }
}
