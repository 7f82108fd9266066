//! Labels, holds and erasure over the sample mail, through the library.

mod world;

use std::sync::Arc;

use postrider::app::{
    EraseRequest, Error, ImportOptions, IngestRequest, LabelChange, Postrider, ReceiptOut,
    Selection,
};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::events::event::MessagesErased;
use postrider::events::receipt::{ErasureState, Probe, ScopeKind};
use postrider::events::{Event, Log, LogOptions, Status};
use postrider::ids::ReceiptId;
use postrider::mail::message::ReadHints;
use postrider::projections::Applicable;
use postrider::projections::build::{Compared, Control, Parts};
use postrider::projections::probe::{self, Tokens};
use postrider::projections::set::ProjectionSet;
use postrider::search::request::PersonOut;
use postrider::search::{Hit, SearchRequest};
use roaring::RoaringBitmap;
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

const NOW_MS: i64 = 1_788_264_000_000;

fn config(world: &World) -> Config {
    Config { data_dir: world.data_dir(), time_zone: "Europe/London".into(), ..Config::default() }
}

async fn open(world: &World) -> Postrider {
    Postrider::open_with_clock(config(world), ManualClock::at(NOW_MS)).await.expect("opens")
}

async fn with_samples(world: &World) -> Postrider {
    let postrider = open(world).await;
    let account =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imported");
    assert_eq!((account.read, account.failed), (SAMPLES_READ, 0));
    postrider
}

async fn total(postrider: &Postrider, q: &str) -> u64 {
    let request = SearchRequest { q: q.into(), ..SearchRequest::default() };
    postrider.search("main", &request).await.expect("answers").total
}

fn change(q: &str) -> LabelChange {
    LabelChange {
        select: Selection::Query(q.into()),
        add: Vec::new(),
        remove: Vec::new(),
        status: None,
        as_of_seq: None,
        dry_run: false,
    }
}

fn erase(select: Selection) -> EraseRequest {
    EraseRequest { select, remember: false, as_of_seq: None }
}

async fn erased(postrider: &Postrider, request: EraseRequest) -> ReceiptOut {
    let receipt = postrider.erase("main", request).await.expect("erases");
    let expected =
        if receipt.messages_deleted > 0 { ErasureState::Erased } else { ErasureState::Completed };
    assert_eq!(receipt.status, expected);
    postrider.purged(receipt.receipt_id).await.expect("purged")
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_counted_first_changed_and_taken_back() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let found = total(&postrider, "boiler").await;
    assert!(found > 2, "else this test shows nothing");
    let before = total(&postrider, "label:warm").await;
    let dry = LabelChange { add: vec!["warm".into()], dry_run: true, ..change("boiler") };
    let counted = postrider.label("main", dry.clone()).await.expect("counts");
    assert_eq!((counted.matched, counted.changed), (found, found));
    assert_eq!(total(&postrider, "label:warm").await, before);
    let real = LabelChange { dry_run: false, as_of_seq: Some(counted.as_of_seq), ..dry };
    let done = postrider.label("main", real.clone()).await.expect("labels");
    assert_eq!((done.changed, done.events.len()), (found, 1));
    assert_eq!(total(&postrider, "label:warm").await, found);
    let again = postrider.label("main", real).await.expect("labels");
    assert_eq!((again.changed, again.events.len()), (0, 0), "nothing is recorded twice");
    postrider.undo("main", done.events[0]).await.expect("undone");
    assert_eq!(total(&postrider, "label:warm").await, before);
    let none = LabelChange { as_of_seq: Some(0), add: vec!["warm".into()], ..change("boiler") };
    assert_eq!(postrider.label("main", none).await.expect("labels").matched, 0);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_tells_what_is_in_it_and_follows_every_change() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let request = SearchRequest { q: String::new(), limit: 1_000, ..SearchRequest::default() };
    let hits = postrider.search("main", &request).await.expect("answers").hits;
    let mut sizes = std::collections::BTreeMap::new();
    for hit in &hits {
        *sizes.entry(hit.thread_id).or_insert(0_u64) += 1;
    }
    for (id, size) in &sizes {
        let thread = postrider.thread("main", *id).await.expect("there");
        let mut members: Vec<&Hit> = hits.iter().filter(|hit| hit.thread_id == *id).collect();
        members.sort_by(|a, b| a.date.cmp(&b.date));
        assert_eq!((thread.thread_id, thread.message_count), (*id, *size));
        let unread = |hit: &&&Hit| hit.labels.iter().any(|label| label == "unread");
        assert_eq!(thread.unread_count, members.iter().filter(unread).count() as u64);
        assert_eq!(thread.messages.len() as u64, *size);
        let listed: std::collections::BTreeSet<_> =
            thread.messages.iter().map(|m| m.message_id).collect();
        assert_eq!(listed, members.iter().map(|hit| hit.message_id).collect());
        assert!(thread.messages.is_sorted_by_key(|m| m.date.clone()));
        assert_eq!(thread.first_at, thread.messages[0].date);
        assert_eq!(thread.last_at, thread.messages[thread.messages.len() - 1].date);
        // Nobody has said yet which addresses are the owner's: every author takes part.
        for hit in members.iter().filter(|hit| !hit.from.address.is_empty()) {
            let takes_part = |p: &PersonOut| p.address == hit.from.address;
            assert!(thread.participants.iter().any(takes_part), "{id}");
        }
    }
    let (largest, size) = sizes.iter().max_by_key(|(_, size)| **size).expect("some");
    let (largest, size) = (*largest, *size);
    assert!(size > 2, "else this test shows nothing");
    let before = postrider.thread("main", largest).await.expect("there");
    let inside =
        |add: &str| LabelChange { add: vec![add.into()], ..change(&format!("thread:{largest}")) };
    postrider.label("main", inside("unread")).await.expect("labels");
    assert_eq!(postrider.thread("main", largest).await.expect("there").unread_count, size);
    let author = before.messages[0].from.address.clone();
    postrider.configure("main", std::slice::from_ref(&author)).await.expect("configured");
    let own = postrider.thread("main", largest).await.expect("there");
    assert!(own.participants.iter().all(|p| p.address != author), "the owner is no participant");
    let gone = before.messages[before.messages.len() - 1].message_id;
    erased(&postrider, erase(Selection::Messages(vec![gone]))).await;
    let after = postrider.thread("main", largest).await.expect("there");
    assert_eq!((after.message_count, after.unread_count), (size - 1, size - 1));
    assert!(after.messages.iter().all(|m| m.message_id != gone));
    erased(&postrider, erase(Selection::Query(format!("thread:{largest} in:anywhere")))).await;
    let none = postrider.thread("main", largest).await;
    assert!(matches!(none, Err(Error::NoSuchThread)), "{none:?}");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_64_labels_and_bad_names_are_refused() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let first: Vec<String> = (0..60).map(|n| format!("l{n}")).collect();
    postrider.label("main", LabelChange { add: first, ..change("boiler") }).await.expect("fits");
    let more: Vec<String> = (60..70).map(|n| format!("l{n}")).collect();
    let refused = postrider.label("main", LabelChange { add: more, ..change("boiler") }).await;
    assert!(matches!(refused, Err(Error::Invalid { path: "add", .. })), "{refused:?}");
    for bad in ["", "Garden", "-x", "a b"] {
        let asked = LabelChange { add: vec![bad.into()], ..change("boiler") };
        assert!(
            matches!(postrider.label("main", asked).await, Err(Error::Invalid { .. })),
            "{bad}"
        );
    }
    assert!(matches!(postrider.label("main", change("boiler")).await, Err(Error::Invalid { .. })));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_mail_is_not_found_until_it_is_received_again() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let found = total(&postrider, "boiler").await;
    let hide = LabelChange { status: Some(Status::Hidden), ..change("boiler") };
    let hidden = postrider.label("main", hide).await.expect("hides");
    assert_eq!((hidden.changed, total(&postrider, "boiler").await), (found, 0));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counterparty_vanishes_and_the_receipt_proves_it() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let address = "idris.pemberley@example.org";
    let from = total(&postrider, &format!("from:{address} in:anywhere")).await;
    let any = total(&postrider, &format!("participant:{address} in:anywhere")).await;
    assert!(from > 0 && any >= from, "else this test shows nothing: {from} {any}");
    let request = erase(Selection::Counterparty(address.into()));
    let preview = postrider.erase_preview("main", request.clone()).await.expect("counts");
    assert!(preview.messages >= any);
    let receipt = erased(&postrider, request.clone()).await;
    assert_eq!(receipt.messages_deleted, preview.messages);
    assert_eq!(receipt.status, ErasureState::Completed);
    assert_eq!(total(&postrider, &format!("participant:{address} in:anywhere")).await, 0);
    let probe = receipt.probe.clone().expect("probed");
    assert!(probe.is_clean() && probe.byte_tokens > 0 && probe.files > 5, "{probe:?}");
    let mut shown = serde_json::to_value(&receipt).expect("plain");
    for name in ["receipt_id", "identity_id"] {
        shown[name] = "[differs]".into();
    }
    for name in ["files", "bytes"] {
        shown["probe"][name] = "[differs]".into();
    }
    insta::with_settings!({ snapshot_path => "../snapshots/receipt", prepend_module_to_snapshot => false }, {
        insta::assert_json_snapshot!("counterparty", shown);
    });
    let again = erased(&postrider, request).await;
    assert_eq!((again.messages_deleted, again.status), (0, ErasureState::Completed));
    assert_eq!(postrider.erasures().await.expect("lists").len(), 2);
    postrider.close().await;
    // Nothing but the truth is needed to come to the same state.
    std::fs::remove_dir_all(world.data_dir().join("mailboxes")).expect("removed");
    let postrider = open(&world).await;
    assert_eq!(total(&postrider, &format!("participant:{address} in:anywhere")).await, 0);
    let status = postrider.mailbox_status("main").await.expect("status");
    assert_eq!(status.messages, SAMPLES_DISTINCT - preview.messages);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_of_an_address_is_not_mail_from_it() {
    let world = World::new();
    let postrider = open(&world).await;
    let mention = String::from_utf8(letter("mention")).expect("text") + "Ask zed@example.org.\r\n";
    let answered = String::from_utf8(letter("answered")).expect("text");
    let answered = answered.replacen("Subject:", "Reply-To: Zed <ZED@example.org>\r\nSubject:", 1);
    let paths = [
        world.file("mention.eml", mention.as_bytes()),
        world.file("answered.eml", answered.as_bytes()),
    ];
    postrider.import("main", &paths, ImportOptions::default()).await.expect("imports");
    let request = erase(Selection::Counterparty("zed@example.org".into()));
    assert_eq!(erased(&postrider, request).await.messages_deleted, 1);
    assert_eq!(total(&postrider, "mention").await, 1);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_keeps_its_thread_and_the_receipt_says_so() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let request = SearchRequest { q: "boiler".into(), ..SearchRequest::default() };
    let hit = postrider.search("main", &request).await.expect("answers").hits.remove(0);
    let select = Selection::Messages(vec![hit.message_id]);
    let hold = postrider.set_hold("main", select, "case 12/2026").await.expect("set");
    assert!(hold.messages >= 1);
    let all = Selection::Query("in:anywhere".into());
    let preview = postrider.erase_preview("main", erase(all.clone())).await.expect("counts");
    assert_eq!(preview.held, hold.messages);
    let receipt = erased(&postrider, erase(all)).await;
    assert_eq!(receipt.status, ErasureState::CompletedWithHolds);
    assert_eq!(receipt.messages_deleted, preview.messages - preview.held);
    assert_eq!(receipt.held[0].reason, "case 12/2026");
    assert_eq!(total(&postrider, "in:anywhere").await, hold.messages);
    let whole = postrider.erase_identity("main", ScopeKind::Identity).await.expect("erases");
    assert_eq!((whole.messages_deleted, whole.held[0].messages), (0, hold.messages));
    postrider.release_hold("main", hold.hold_id).await.expect("released");
    let unknown = postrider.release_hold("main", hold.hold_id).await;
    assert!(unknown.is_err_and(|e| e.code() == "hold_not_found"));
    let rest = erased(&postrider, erase(Selection::Query("in:anywhere".into()))).await;
    assert_eq!((rest.messages_deleted, rest.status), (hold.messages, ErasureState::Completed));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_message_is_new_when_it_comes_again_unless_it_is_remembered() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let all = || Selection::Query("boiler in:anywhere".into());
    let gone = erased(&postrider, erase(all())).await.messages_deleted;
    assert!(gone > 0);
    let account =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imports");
    assert_eq!((account.stored, account.suppressed), (gone, 0));
    let remember = EraseRequest { remember: true, ..erase(all()) };
    assert_eq!(erased(&postrider, remember).await.messages_deleted, gone);
    let again =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imports");
    assert_eq!(again.stored, 0);
    assert!(again.suppressed >= gone, "copies count too");
    assert_eq!(again.read, again.stored + again.already_there + again.failed);
    postrider.close().await;
    let postrider = open(&world).await;
    let after =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imports");
    assert_eq!((after.stored, after.suppressed), (0, again.suppressed), "after a restart too");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_and_a_tenant_vanish_whole() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    postrider.import("other", &samples(), ImportOptions::default()).await.expect("imports");
    let number = postrider.identity("main").expect("there").mailbox;
    let receipt = postrider.erase_identity("main", ScopeKind::Identity).await.expect("erases");
    assert_eq!(receipt.messages_deleted, SAMPLES_DISTINCT);
    assert!(matches!(postrider.identity("main"), Err(Error::NoSuchMailbox)));
    let receipt = postrider.purged(receipt.receipt_id).await.expect("purged");
    assert_eq!(receipt.status, ErasureState::Completed);
    let dir = world.data_dir().join(format!("mailboxes/{:08}", number.0));
    assert!(!dir.exists());
    let fresh = postrider.ensure_identity("main").await.expect("made");
    assert_ne!(fresh.mailbox, number, "numbers are never used again");
    let receipts = postrider.erase_tenant("default").await.expect("erases");
    assert_eq!(receipts.len(), 2);
    for receipt in receipts {
        let receipt = postrider.purged(receipt.receipt_id).await.expect("purged");
        assert_eq!((receipt.scope, receipt.status), (ScopeKind::Tenant, ErasureState::Completed));
    }
    postrider.close().await;
    let postrider = open(&world).await;
    assert!(postrider.identities().is_empty());
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_is_held_up_cancelled_and_leaves_nothing() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let (tell, told) = std::sync::mpsc::channel();
    let control = Arc::new(Control {
        pause: true.into(),
        hear: Some(Arc::new(move |seq| {
            let _ = tell.send(seq);
        })),
        ..Control::default()
    });
    let rebuilding = {
        let (postrider, control) = (postrider.clone(), Arc::clone(&control));
        tokio::spawn(async move { postrider.rebuild("main", Parts::All, control).await })
    };
    // Something was applied and is not committed: that is what cancelling has to let go of.
    let reached = tokio::task::spawn_blocking(move || told.recv()).await.expect("hears");
    assert!(reached.is_ok_and(|seq| seq.0 > 0));
    assert!(total(&postrider, "boiler").await > 0, "searches go on");
    control.cancel.store(true, std::sync::atomic::Ordering::SeqCst);
    let cancelled = rebuilding.await.expect("ends");
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    let names = std::fs::read_dir(world.data_dir().join("mailboxes/00000001")).expect("there");
    let names: Vec<_> = names.map(|e| e.expect("reads").file_name()).collect();
    assert!(names.iter().all(|n| !n.to_string_lossy().contains("building")), "{names:?}");
    let rebuilt = postrider.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilds");
    assert_eq!(rebuilt.compared, Compared::Equal);
    for (parts, kept) in [
        (Parts::Text, true),
        (Parts::Text, false),
        (Parts::All, true),
        (Parts::Catalog, false),
        (Parts::All, false),
    ] {
        assert_eq!(
            postrider.roll_back("main", parts).await.expect("rolls back"),
            kept,
            "{parts:?}"
        );
    }
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_folder_and_source_are_found_and_longer_ones_refused() {
    let world = World::new();
    let postrider = open(&world).await;
    postrider.ensure_identity("main").await.expect("made");
    let request = |folder: usize, source: usize| IngestRequest {
        raw: letter(&format!("at {folder} {source}")),
        folder: "f".repeat(folder),
        labels: Vec::new(),
        source: "s".repeat(source),
    };
    postrider.ingest("main", request(255, 64)).await.expect("taken in");
    assert_eq!(total(&postrider, "letter OR text").await, 1);
    for (folder, source, path) in [(256, 1, "folder"), (1, 65, "source"), (0, 1, "folder")] {
        let refused = postrider.ingest("main", request(folder, source)).await;
        assert!(matches!(refused, Err(Error::Invalid { path: at, .. }) if at == path));
    }
    postrider.close().await;
}

/// The probe must be able to fail: the same words are found before the purge, and keys that were
/// not taken away are counted.
#[tokio::test(flavor = "multi_thread")]
async fn without_purge_the_probe_finds_the_bytes() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let identity = postrider.identity("main").expect("there");
    let request = SearchRequest { q: "boiler".into(), limit: 50, ..SearchRequest::default() };
    let hits = postrider.search("main", &request).await.expect("answers").hits;
    let mut candidates = Tokens::new();
    for hit in &hits {
        let raw = postrider.raw("main", hit.message_id).await.expect("there");
        let message = postrider::mail::read_guarded(&raw, &ReadHints::default());
        candidates.extend(probe::candidates(&message));
    }
    postrider.close().await;

    let log =
        Arc::new(Log::open(&world.data_dir().join("truth"), LogOptions::default()).expect("opens"));
    let dir = world.data_dir().join(format!("mailboxes/{:08}", identity.mailbox.0));
    let (mut set, aside) = ProjectionSet::open(&dir, &log, identity.mailbox).expect("opens");
    assert_eq!(aside, []);
    let view = set.view().expect("view");
    let ordinal =
        |hit: &Hit| view.catalog.ordinal(hit.message_id).expect("reads").expect("there").0;
    let ordinals: RoaringBitmap = hits.iter().map(ordinal).collect();
    drop(view);
    let keys = log.keys_left(identity.mailbox, &ordinals).expect("reads");
    assert_eq!(keys, ordinals.len(), "keys that were not taken away are counted");
    let event = Event::MessagesErased(MessagesErased {
        ordinals: ordinals.clone(),
        receipt: ReceiptId::from_bits(7),
    });
    let seq = log.head(identity.mailbox).expect("head").next();
    set.apply(vec![Applicable { seq, event, message: None }]).expect("applies");
    set.commit().expect("commits");
    let view = set.view().expect("view");
    let tokens = probe::distinctive(&view, candidates).expect("reads");
    assert!(!tokens.is_empty(), "a sample with no word of its own");
    let before = probe::walk(&dir, &[], &tokens).expect("walks");
    let in_dictionary = probe::dictionaries(&view.text, &tokens).expect("reads");
    assert!(before.hits > 0, "deleted bytes stay in LMDB's pages");
    assert!(in_dictionary > 0, "deleted words stay in the dictionaries");
    set.purge().expect("purges");
    assert_eq!(set.collect_garbage().expect("collects"), 0, "no old segment is left");
    drop(view);
    let view = set.view().expect("view");
    assert_eq!(probe::walk(&dir, &[], &tokens).expect("walks").hits, 0);
    assert_eq!(probe::dictionaries(&view.text, &tokens).expect("reads"), 0);
    assert!(!Probe { key_hits: 1, ..Probe::default() }.is_clean());
}
