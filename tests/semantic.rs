//! Searches by meaning over the sample mail, through the library, with the static model: the whole
//! way from passages to hits, erasure and lost indexes included.

mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use postrider::app::{
    EmbedOptions, EmbedProgress, EmbedStatus, EraseRequest, Error, ImportOptions, LabelChange,
    Postrider, Selection, search_closed,
};
use postrider::clock::{ManualClock, SharedClock, SystemClock};
use postrider::config::{Config, Embedding, NeverEmbed};
use postrider::search::request::{Capability, Mode};
use postrider::search::{SearchRequest, SearchResponse};
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

const NOW_MS: i64 = 1_788_264_000_000;

fn config(world: &World, embedding: Embedding) -> Config {
    let time_zone = "Europe/London".into();
    Config { data_dir: world.data_dir(), time_zone, embedding, ..Config::default() }
}

async fn open(world: &World) -> Postrider {
    let config = config(world, Embedding::Static128);
    Postrider::open_with_clock(config, ManualClock::at(NOW_MS)).await.expect("opens")
}

async fn with_samples(world: &World) -> Postrider {
    let postrider = open(world).await;
    let account =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imported");
    assert_eq!(account.read, SAMPLES_READ);
    postrider
}

fn request(q: &str, mode: Mode) -> SearchRequest {
    SearchRequest { q: q.into(), mode, ..SearchRequest::default() }
}

async fn ask(postrider: &Postrider, q: &str, mode: Mode) -> SearchResponse {
    postrider.search("main", &request(q, mode)).await.expect("answers")
}

fn limited(limit: u64) -> EmbedOptions {
    EmbedOptions { limit: Some(limit), ..EmbedOptions::default() }
}

fn indexes(world: &World) -> Vec<PathBuf> {
    let mailbox = world.data_dir().join("mailboxes/00000001");
    let entries = std::fs::read_dir(mailbox).expect("there").map(|e| e.expect("reads").path());
    entries
        .filter(|path| path.is_dir())
        .filter(|path| path.file_name().expect("a name").to_string_lossy().starts_with("vectors-"))
        .collect()
}

fn count(status: &EmbedStatus) -> u64 {
    status.active.as_ref().map_or(0, |space| space.embedded)
}

/// A question that shares no word with the message that answers it.
const PARAPHRASE: &str = "heating stopped working";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_meant_is_found_without_its_words() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let before = ask(&postrider, PARAPHRASE, Mode::Hybrid).await;
    assert_eq!(before.query.mode, Mode::Keyword, "no vectors yet");
    let state = before.semantic.expect("told");
    assert_eq!((state.capability, state.degraded), (Capability::Available, false));
    assert!(state.coverage < 0.001);

    let first = postrider.embed("main", limited(10), Arc::default()).await.expect("embeds");
    assert_eq!(first.computed + first.empty, 10);
    let rest =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((rest.pending, rest.kept), (0, 0));
    let again =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((again.computed, again.kept, again.pending), (0, 0, 0), "nothing is asked twice");
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!((status.building, status.eligible), (None, SAMPLES_DISTINCT));
    let status = status.active.expect("serves");
    assert_eq!((status.embedded, status.pending, status.failed), (SAMPLES_DISTINCT, 0, 0));
    assert!(status.passages >= first.computed + rest.computed);

    let semantic = ask(&postrider, PARAPHRASE, Mode::Semantic).await;
    assert_eq!(semantic.query.mode, Mode::Semantic);
    assert!((semantic.semantic.expect("told").coverage - 1.0).abs() < 1e-9);
    let best = &semantic.hits[0];
    let told = format!("{:?} {}", best.subject, best.snippet).to_lowercase();
    assert!(told.contains("boiler") || told.contains("cold"), "{told}");
    assert!(best.why[0].starts_with("semantic:0."), "{:?}", best.why);
    assert!(semantic.hits.is_sorted_by(|a, b| a.score >= b.score));

    let hybrid = ask(&postrider, "boiler quote", Mode::Hybrid).await;
    let words = ask(&postrider, "boiler quote", Mode::Keyword).await;
    assert_eq!((hybrid.query.mode, words.query.mode), (Mode::Hybrid, Mode::Keyword));
    assert!(hybrid.total > words.total && words.semantic.is_none());
    let same = ask(&postrider, "boiler quote", Mode::Hybrid).await;
    assert_eq!(hybrid, same, "the same view gives the same answer");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_hold_in_every_mode_and_wrong_requests_are_refused() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    let with = request("has:attachment", Mode::Keyword);
    let with = SearchRequest { limit: 1_000, ..with };
    let with = postrider.search("main", &with).await.expect("answers").hits;
    assert!(with.len() > 3, "else this test shows nothing");
    for mode in [Mode::Keyword, Mode::Semantic, Mode::Hybrid] {
        let found = ask(&postrider, &format!("{PARAPHRASE} has:attachment"), mode).await;
        for hit in &found.hits {
            assert!(with.iter().any(|one| one.message_id == hit.message_id), "{mode:?}");
        }
        assert_eq!(found.hits.is_empty(), mode == Mode::Keyword, "{mode:?}");
        let none = ask(&postrider, &format!("{PARAPHRASE} label:nosuchlabel"), mode).await;
        assert!(none.hits.is_empty(), "{mode:?}");
    }
    // What must not stand in a hit does not, however near it lies.
    for (q, not) in [
        ("heating -boiler", "boiler"),
        ("heating -subject:boiler", "subject:boiler"),
        ("heating -(boiler OR invoice)", "boiler OR invoice"),
        ("heating -\"plant room\"", "\"plant room\""),
    ] {
        let unwanted = SearchRequest { limit: 1_000, ..request(not, Mode::Keyword) };
        let unwanted = postrider.search("main", &unwanted).await.expect("answers").hits;
        assert!(unwanted.len() > 1, "else this shows nothing: {not}");
        for mode in [Mode::Keyword, Mode::Semantic, Mode::Hybrid] {
            let wide = SearchRequest { limit: 1_000, ..request(q, mode) };
            for hit in &postrider.search("main", &wide).await.expect("answers").hits {
                let is_in = unwanted.iter().any(|one| one.message_id == hit.message_id);
                assert!(!is_in, "{mode:?}: {q}: {:?}", hit.subject);
            }
        }
    }
    for q in ["has:attachment", "", "-boiler"] {
        let refused = postrider.search("main", &request(q, Mode::Semantic)).await;
        assert!(matches!(refused, Err(Error::Invalid { path: "mode", .. })), "{q}: {refused:?}");
        let words = ask(&postrider, q, Mode::Hybrid).await;
        assert_eq!((words.query.mode, words.semantic), (Mode::Keyword, None), "{q}");
    }
    let odd = ask(&postrider, "qqqzzz", Mode::Semantic).await;
    assert!(odd.hits.len() <= 10);
    postrider.close().await;

    let off = Postrider::open(config(&world, Embedding::Off)).await.expect("opens");
    let hybrid = ask(&off, PARAPHRASE, Mode::Hybrid).await;
    assert_eq!((hybrid.query.mode, hybrid.semantic), (Mode::Keyword, None));
    let refused = off.search("main", &request(PARAPHRASE, Mode::Semantic)).await;
    assert!(matches!(refused, Err(Error::Invalid { path: "mode", .. })), "{refused:?}");
    let refused = off.embed("main", EmbedOptions::default(), Arc::default()).await;
    assert!(matches!(refused, Err(Error::Invalid { path: "embedding", .. })), "{refused:?}");
    off.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_messages_have_no_vectors_left() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    let before = ask(&postrider, PARAPHRASE, Mode::Semantic).await;
    let gone = before.hits[0].message_id;
    let select = Selection::Messages(vec![gone]);
    let request = EraseRequest { select, remember: false, as_of_seq: None };
    let receipt = postrider.erase("main", request).await.expect("erases");
    let after = ask(&postrider, PARAPHRASE, Mode::Semantic).await;
    assert!(after.hits.iter().all(|hit| hit.message_id != gone), "from the answer on");
    let proven = postrider.purged(receipt.receipt_id).await.expect("purged");
    assert_eq!(proven.probe.expect("probed").semantic_hits, 0);
    assert_eq!(indexes(&world).len(), 1, "the old index is gone");
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!((status.eligible, count(&status)), (SAMPLES_DISTINCT - 1, SAMPLES_DISTINCT - 1));
    let purged = ask(&postrider, PARAPHRASE, Mode::Semantic).await;
    assert_eq!(purged.hits, after.hits, "the index that was filled anew says the same");
    let again =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((again.computed, again.kept), (0, 0));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_or_damaged_index_is_filled_without_asking_the_model() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    let before = ask(&postrider, PARAPHRASE, Mode::Hybrid).await;
    postrider.close().await;
    let cut = |data: Vec<u8>| data[..data.len() / 3].to_vec();
    let flipped = |mut data: Vec<u8>| {
        data.iter_mut().skip(8_192).step_by(37).for_each(|byte| *byte ^= 0xff);
        data
    };
    type Damage<'d> = Option<&'d dyn Fn(Vec<u8>) -> Vec<u8>>;
    let damages: [Damage<'_>; 4] =
        [Some(&|_| b"garbage".to_vec()), Some(&cut), Some(&flipped), None];
    for damage in damages {
        for index in indexes(&world) {
            let data = index.join("data.mdb");
            match damage {
                Some(damage) => {
                    let damaged = damage(std::fs::read(&data).expect("reads"));
                    std::fs::write(data, damaged).expect("written");
                }
                None => std::fs::remove_dir_all(index).expect("removed"),
            }
        }
        let closed = search_closed(
            &config(&world, Embedding::Static128),
            &(Arc::new(SystemClock) as SharedClock),
            "main",
            &request(PARAPHRASE, Mode::Hybrid),
        );
        let closed = closed.expect("it was closed well").expect("answers");
        assert_eq!(closed.query.mode, Mode::Keyword, "a damaged index is not read");
        let postrider = open(&world).await;
        let lost = ask(&postrider, PARAPHRASE, Mode::Hybrid).await;
        assert_eq!(lost.query.mode, Mode::Keyword, "it answers by words meanwhile");
        let filled =
            postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
        assert_eq!((filled.computed, filled.pending), (0, 0));
        assert!(filled.kept > 80, "{filled:?}");
        let after = ask(&postrider, PARAPHRASE, Mode::Hybrid).await;
        assert_eq!(after, before);
        postrider.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_reaches_the_vectors_of_every_model() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    postrider.close().await;
    assert_eq!(indexes(&world).len(), 1);
    let off = Postrider::open(config(&world, Embedding::Off)).await.expect("opens");
    let select = Selection::Query("boiler".into());
    let request = EraseRequest { select, remember: false, as_of_seq: None };
    let receipt = off.erase("main", request).await.expect("erases");
    let proven = off.purged(receipt.receipt_id).await.expect("purged");
    assert!(proven.messages_deleted > 3);
    assert_eq!(proven.probe.expect("probed").semantic_hits, 0);
    off.close().await;
    let postrider = open(&world).await;
    let filled =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((filled.computed, filled.pending), (0, 0));
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!(count(&status), SAMPLES_DISTINCT - proven.messages_deleted);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_model_may_have_is_found_by_words_alone() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    let thread = ask(&postrider, "subject:boiler", Mode::Keyword).await.hits[0].thread_id;
    postrider.close().await;
    let never = NeverEmbed {
        folders: vec!["inbox".into()],
        labels: vec!["starred".into()],
        threads: vec![thread.to_string()],
        ..NeverEmbed::default()
    };
    let mut banning = config(&world, Embedding::Static128);
    banning.never_embed = never;
    let postrider = Postrider::open(banning).await.expect("opens");
    let banned = format!("in:anywhere (folder:INBOX OR label:starred OR thread:{thread})");
    let banned = SearchRequest { limit: 1_000, ..request(&banned, Mode::Keyword) };
    let banned = postrider.search("main", &banned).await.expect("answers").hits;
    assert!(banned.len() > 5, "else this test shows nothing");
    let shows = async |when: &str| {
        let q = format!("{PARAPHRASE} in:anywhere");
        let found = SearchRequest { limit: 1_000, ..request(&q, Mode::Semantic) };
        let found = postrider.search("main", &found).await.expect("answers").hits;
        assert!(!found.is_empty());
        for hit in &found {
            assert!(banned.iter().all(|one| one.message_id != hit.message_id), "{when}");
        }
    };
    shows("before they are taken out").await;
    let embedded =
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    assert_eq!((embedded.computed, embedded.kept, embedded.pending), (0, 0, 0));
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!(count(&status), status.eligible);
    assert!(status.eligible <= SAMPLES_DISTINCT - banned.len() as u64);
    shows("afterwards").await;
    assert!(ask(&postrider, "boiler", Mode::Keyword).await.total > 3, "words find them");
    postrider.close().await;

    let mut whole = config(&world, Embedding::Static128);
    whole.never_embed.mailboxes = vec!["main".into()];
    let postrider = Postrider::open(whole).await.expect("opens");
    assert_eq!(ask(&postrider, PARAPHRASE, Mode::Hybrid).await.query.mode, Mode::Keyword);
    postrider
        .embed("main", EmbedOptions::default(), Arc::default())
        .await
        .expect("lets go of them");
    assert_eq!(indexes(&world), Vec::<PathBuf>::new());
    postrider.close().await;
    let mut wrong = config(&world, Embedding::Static128);
    wrong.never_embed.threads = vec!["boiler".into()];
    assert!(matches!(Postrider::open(wrong).await, Err(Error::Invalid { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedding_stops_when_it_is_asked_to() {
    let world = World::new();
    let postrider = with_samples(&world).await;
    let progress = Arc::<EmbedProgress>::default();
    progress.stop.store(true, Ordering::Relaxed);
    let stopped = postrider
        .embed("main", EmbedOptions::default(), Arc::clone(&progress))
        .await
        .expect("embeds");
    assert!(stopped.pending > 0, "one batch and no more: {stopped:?}");
    let refused = postrider.embed("main", limited(0), Arc::default()).await;
    assert!(matches!(refused, Err(Error::Invalid { path: "limit", .. })), "{refused:?}");
    let semantic = ask(&postrider, PARAPHRASE, Mode::Semantic).await;
    assert!(semantic.notes[0].contains("% of the messages have vectors"), "{:?}", semantic.notes);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_is_embedded_by_itself() {
    let world = World::new();
    let postrider = open(&world).await;
    postrider.ensure_identity("main").await.expect("made");
    postrider.embed_in_background();
    let raw = String::from_utf8(letter("a lost cat")).expect("text");
    let raw = raw.replace("The text of", "Our kitten ran away last night:").into_bytes();
    let paths = [world.file("cat.eml", &raw)];
    postrider.import("main", &paths, ImportOptions::default()).await.expect("imported");
    // Nothing tells when it has happened; it looks every two seconds.
    let mut found = 0;
    for _ in 0..600 {
        found = count(&postrider.embed_status("main").await.expect("status"));
        if found == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(found, 1);
    assert_eq!(ask(&postrider, "missing pet", Mode::Semantic).await.hits.len(), 1);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_reaches_the_bytes_of_vectors_that_were_taken_out_before() {
    let world = World::new();
    let mut config = config(&world, Embedding::Static128);
    config.never_embed.labels = vec!["private".into()];
    let postrider = Postrider::open(config).await.expect("opens");
    postrider.import("main", &samples(), ImportOptions::default()).await.expect("imported");
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("embeds");
    let change = LabelChange {
        select: Selection::Query("boiler".into()),
        add: vec!["private".into()],
        remove: Vec::new(),
        status: None,
        as_of_seq: None,
        dry_run: false,
    };
    postrider.label("main", change).await.expect("labelled");
    postrider.embed("main", EmbedOptions::default(), Arc::default()).await.expect("takes out");
    let before = indexes(&world);
    let select = Selection::Query("label:private".into());
    let request = EraseRequest { select, remember: false, as_of_seq: None };
    let receipt = postrider.erase("main", request).await.expect("erases");
    let proven = postrider.purged(receipt.receipt_id).await.expect("purged");
    assert!(proven.messages_deleted > 3);
    let after = indexes(&world);
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_ne!(before, after, "their bytes were still in the file");
    postrider.close().await;
}
