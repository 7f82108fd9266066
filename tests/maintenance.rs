//! Verifying, backing up, restoring and compacting, through the library.

mod world;

use std::path::Path;
use std::sync::Arc;

use postrider::app::{
    EraseRequest, Error, ImportOptions, Postrider, Selection, Verified, erasures_of, restore,
};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::ids::Ordinal;
use postrider::projections::build::{Compared, Parts};
use postrider::projections::set::ProjectionSet;
use postrider::projections::text::TextIndex;
use postrider::search::SearchRequest;
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

const NOW_MS: i64 = 1_788_264_000_000;

fn config(dir: &Path) -> Config {
    Config { data_dir: dir.to_owned(), time_zone: "Europe/London".into(), ..Config::default() }
}

async fn open(dir: &Path) -> Postrider {
    Postrider::open_with_clock(config(dir), ManualClock::at(NOW_MS)).await.expect("opens")
}

async fn with_samples(dir: &Path) -> Postrider {
    let postrider = open(dir).await;
    let account =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imported");
    assert_eq!(account.read, SAMPLES_READ);
    postrider
}

async fn verify(postrider: &Postrider, repair: bool) -> Verified {
    postrider.verify("main", repair, Arc::default()).await.expect("verifies")
}

async fn dump(postrider: &Postrider) -> String {
    let out = tempfile::NamedTempFile::new().expect("temp file");
    postrider.dump("main", out.reopen().expect("reopens")).await.expect("dumps");
    std::fs::read_to_string(out.path()).expect("text")
}

async fn erase(postrider: &Postrider, q: &str) -> u64 {
    let select = Selection::Query(q.into());
    let request = EraseRequest { select, remember: false, as_of_seq: None };
    let receipt = postrider.erase("main", request).await.expect("erases");
    postrider.purged(receipt.receipt_id).await.expect("purged").messages_deleted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_mailbox_verifies_and_counts_what_it_looked_at() {
    let world = World::new();
    let postrider = with_samples(&world.data_dir()).await;
    let gone = erase(&postrider, "boiler").await;
    let verified = verify(&postrider, false).await;
    assert!(verified.is_clean(), "{verified:?}");
    assert_eq!((verified.messages, verified.erased), (SAMPLES_DISTINCT - gone, gone));
    let head = postrider.mailbox_status("main").await.expect("status").head_seq;
    assert_eq!(verified.events, head);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_bad_event_is_named() {
    let world = World::new();
    let dir = world.data_dir();
    with_samples(&dir).await.close().await;
    {
        let db = fjall::Database::builder(dir.join("truth/log")).open().expect("opens");
        let events = db.keyspace("events", fjall::KeyspaceCreateOptions::default).expect("there");
        let key = [&1_u32.to_be_bytes()[..], &17_u64.to_be_bytes()].concat();
        let mut envelope = events.get(&key).expect("reads").expect("there").to_vec();
        let last = envelope.len() - 1;
        envelope[last] ^= 1;
        events.insert(&key, envelope).expect("written");
        db.persist(fjall::PersistMode::SyncAll).expect("durable");
    }
    let postrider = open(&dir).await;
    let verified = verify(&postrider, true).await;
    assert_eq!(verified.findings_total, 1, "{verified:?}");
    let finding = &verified.findings[0];
    assert_eq!((finding.store.as_str(), finding.place.as_str()), ("log", "seq 17"));
    assert_eq!((verified.events, verified.repaired), (16, false), "a log is not repaired");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_indexes_are_found_and_repaired() {
    let world = World::new();
    let dir = world.data_dir();
    with_samples(&dir).await.close().await;
    let mailbox = dir.join("mailboxes/00000001");
    let (catalogs, texts) = ProjectionSet::generations(&mailbox);
    let path = texts.current().expect("reads").expect("there");
    {
        let mut text = TextIndex::open(&path, false).expect("opens");
        let checkpoint = text.checkpoint();
        text.erase(&[3, 4].into_iter().collect()).expect("erases");
        text.commit(checkpoint).expect("commits");
        text.close_writer().expect("closes");
    }
    // As after a crash: what opens is believed until somebody verifies.
    texts.unmark(&path).expect("unmarked");
    catalogs.unmark(&catalogs.current().expect("reads").expect("there")).expect("unmarked");
    let postrider = open(&dir).await;
    let verified = verify(&postrider, false).await;
    let places: Vec<&str> = verified.findings.iter().map(|f| f.place.as_str()).collect();
    assert_eq!(places, ["ordinal 3", "ordinal 4"], "{verified:?}");
    assert!(verify(&postrider, true).await.repaired);
    assert!(verify(&postrider, false).await.is_clean());
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_grows_and_restores_to_the_same() {
    let world = World::new();
    let (dir, backup) = (world.data_dir(), world.data_dir().with_file_name("backup"));
    let postrider = open(&dir).await;
    postrider.ensure_identity("main").await.expect("made");
    let paths = samples();
    let (account, first) = tokio::join!(
        postrider.import("main", &paths, ImportOptions::default()),
        postrider.back_up(&backup)
    );
    let (stored, first) = (account.expect("imports").stored, first.expect("backs up"));
    let second = postrider.back_up(&backup).await.expect("backs up");
    assert_eq!(first.messages + second.messages, stored, "{first:?} {second:?}");
    let third = postrider.back_up(&backup).await.expect("backs up");
    assert_eq!((third.events, third.messages), (0, 0), "only what is new is copied");
    let live = dump(&postrider).await;
    let fresh = dir.with_file_name("fresh");
    let restored = restore(config(&fresh), backup.clone(), Vec::new()).await.expect("restores");
    assert_eq!((restored.messages, restored.mailboxes), (stored, 1));
    let copy = open(&fresh).await;
    assert!(verify(&copy, false).await.is_clean());
    assert!(dump(&copy).await == live, "restored and live differ");
    for q in ["boiler", "has:attachment", "暖房"] {
        let request = SearchRequest { q: q.into(), ..SearchRequest::default() };
        let here = postrider.search("main", &request).await.expect("answers");
        assert_eq!(here, copy.search("main", &request).await.expect("answers"), "{q}");
        assert!(here.total > 0, "{q}");
    }
    copy.close().await;
    let occupied = restore(config(&fresh), backup.clone(), Vec::new()).await;
    assert!(matches!(occupied, Err(Error::Invalid { path: "data_dir", .. })));
    postrider.close().await;
    // Another data directory must not be mixed into it.
    let other = with_samples(&dir.with_file_name("other")).await;
    assert!(other.back_up(&backup).await.is_err());
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_backup_does_not_bring_erased_mail_back() {
    let world = World::new();
    let (dir, backup) = (world.data_dir(), world.data_dir().with_file_name("backup"));
    let postrider = with_samples(&dir).await;
    postrider.back_up(&backup).await.expect("backs up");
    let gone = erase(&postrider, "boiler").await;
    assert!(gone > 0);
    postrider.close().await;
    let fresh = dir.with_file_name("fresh");
    let erasures = erasures_of(&dir).expect("reads");
    let restored = restore(config(&fresh), backup.clone(), erasures).await.expect("restores");
    assert_eq!((restored.erasures_repeated, restored.messages_erased), (1, gone));
    assert_eq!(restored.messages, SAMPLES_DISTINCT - gone);
    // A backup that is brought up to date loses the keys too.
    let postrider = open(&dir).await;
    postrider.back_up(&backup).await.expect("backs up");
    postrider.close().await;
    let log = postrider::events::Log::open(&backup.join("truth"), Default::default());
    let log = log.expect("opens");
    let keyed = log.keyed_ordinals(postrider::ids::MailboxNo(1)).expect("reads");
    assert_eq!(keyed.len(), SAMPLES_DISTINCT - gone);
    let erased = (0..SAMPLES_DISTINCT as u32).find(|o| !keyed.contains(*o)).expect("one");
    assert!(log.raw(postrider::ids::MailboxNo(1), Ordinal(erased)).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_events_and_nothing_that_people_wrote() {
    let world = World::new();
    let postrider = open(&world.data_dir()).await;
    let path = world.file("secret.eml", &letter("secret"));
    let options = ImportOptions {
        folder: Some("Confidential".into()),
        labels: vec!["salary".into()],
        ..ImportOptions::default()
    };
    postrider.import("main", &[path], options).await.expect("imports");
    postrider.configure("main", &["ada@example.org".into()]).await.expect("recorded");
    let events = postrider.events("main", None, 10).await.expect("lists");
    let names: Vec<&str> = events.iter().map(|e| e.event.as_str()).collect();
    assert_eq!(names, ["message_ingested", "mailbox_configured"]);
    let text = serde_json::to_string(&events).expect("plain");
    for written in ["secret", "Confidential", "salary", "ada@", "unread"] {
        assert!(!text.contains(written), "{written} in {text}");
    }
    let last = postrider.events("main", Some(1), 10).await.expect("lists");
    assert_eq!(last, events[1..]);
    let stats = postrider.log_stats("main").await.expect("counts");
    assert_eq!((stats.events, stats.by_event["message_ingested"]), (2, 1));
    assert!(matches!(postrider.events("main", None, 0).await, Err(Error::Invalid { .. })));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compacting_changes_nothing_but_the_size() {
    let world = World::new();
    let postrider = with_samples(&world.data_dir()).await;
    let before = dump(&postrider).await;
    let compacted = postrider.compact().await.expect("compacts");
    assert!(compacted.bytes_after > 0 && compacted.bytes_before > 0);
    assert!(dump(&postrider).await == before);
    assert!(verify(&postrider, false).await.is_clean());
    postrider.close().await;
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("reads") {
        let entry = entry.expect("reads");
        let target = to.join(entry.file_name());
        if entry.metadata().expect("there").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

async fn subjects(postrider: &Postrider, q: &str) -> Vec<(String, Option<String>, Vec<String>)> {
    let request = SearchRequest { q: q.into(), limit: 1_000, ..SearchRequest::default() };
    let hits = postrider.search("main", &request).await.expect("answers").hits;
    hits.into_iter().map(|hit| (hit.date, hit.subject, hit.folders)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_of_earlier_releases_open_and_hold_everything() {
    let releases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases");
    let mut seen = 0;
    for release in std::fs::read_dir(releases).expect("there") {
        let release = release.expect("reads").path();
        if !release.is_dir() {
            continue;
        }
        seen += 1;
        let world = World::new();
        copy(&release, &world.data_dir());
        let fresh = World::new();
        let (old, new) = (open(&world.data_dir()).await, with_samples(&fresh.data_dir()).await);
        let labelled = postrider::app::LabelChange {
            select: Selection::Query("boiler".into()),
            add: vec!["kept".into()],
            remove: Vec::new(),
            status: None,
            as_of_seq: None,
            dry_run: false,
        };
        new.label("main", labelled).await.expect("labelled");
        let gone = erase(&new, "chimney").await;
        let verified = verify(&old, false).await;
        assert!(verified.is_clean(), "{}: {verified:?}", release.display());
        assert_eq!((verified.messages, verified.erased), (SAMPLES_DISTINCT - gone, gone));
        for q in ["", "boiler", "label:kept", "from:ada OR to:ada", "in:anywhere has:attachment"] {
            assert_eq!(subjects(&old, q).await, subjects(&new, q).await, "{q}");
        }
        assert_eq!(subjects(&old, "chimney in:anywhere").await, []);
        assert_eq!(old.erasures().await.expect("receipts").len(), 1);
        let rebuilt = old.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilds");
        assert_ne!(rebuilt.compared, Compared::Different);
        let more = world.file("more.eml", &letter("later"));
        let account = old.import("main", &[more], ImportOptions::default()).await.expect("imports");
        assert_eq!(account.stored, 1, "it takes in what comes later");
        old.close().await;
        new.close().await;
    }
    assert!(seen > 0, "else this test shows nothing");
}
