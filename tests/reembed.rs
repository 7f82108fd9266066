//! A change of the model: the old one answers until the new one is complete, then the new one at
//! once; going back, giving up, clearing away, erasing meanwhile.

#[path = "world/models.rs"]
mod models;
mod world;

use std::sync::Arc;

use models::other_model;
use postrider::app::{
    EmbedOptions, EmbedStatus, EraseRequest, Error, ImportOptions, Postrider, Pruned, Selection,
    SpacesOut,
};
use postrider::clock::ManualClock;
use postrider::config::{Config, Embedding};
use postrider::search::request::Mode;
use postrider::search::{SearchRequest, SearchResponse};
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

const NOW_MS: i64 = 1_788_264_000_000;
const QUESTION: &str = "heating stopped working";

fn config(world: &World, embedding: Embedding) -> Config {
    let time_zone = "Europe/London".into();
    Config {
        data_dir: world.data_dir(),
        time_zone,
        embedding,
        embedding_folder: Some(other_model(&world.data_dir())),
        ..Config::default()
    }
}

async fn open(world: &World, embedding: Embedding) -> Postrider {
    let clock = ManualClock::at(NOW_MS);
    Postrider::open_with_clock(config(world, embedding), clock).await.expect("opens")
}

/// The sample mail in `main` and one letter in `second`, with vectors of the static model.
async fn with_vectors(world: &World) -> Postrider {
    let postrider = open(world, Embedding::Static128).await;
    let options = ImportOptions::default();
    let account = postrider.import("main", &samples(), options.clone()).await.expect("imported");
    assert_eq!(account.read, SAMPLES_READ);
    let paths = [world.file("one.eml", &letter("one"))];
    postrider.import("second", &paths, options).await.expect("imported");
    embed(&postrider, "main", None).await;
    embed(&postrider, "second", None).await;
    postrider
}

async fn embed(postrider: &Postrider, mailbox: &str, limit: Option<u64>) -> (u64, u64, u64) {
    let options = EmbedOptions { limit, ..EmbedOptions::default() };
    let done = postrider.embed(mailbox, options, Arc::default()).await.expect("embeds");
    (done.computed + done.empty, done.kept, done.pending)
}

async fn ask(postrider: &Postrider) -> SearchResponse {
    let request =
        SearchRequest { q: QUESTION.into(), mode: Mode::Semantic, ..SearchRequest::default() };
    postrider.search("main", &request).await.expect("answers")
}

fn model(answer: &SearchResponse) -> &str {
    &answer.semantic.as_ref().expect("told").model
}

fn spaces(active: &str, building: Option<&str>, superseded: Option<&str>) -> SpacesOut {
    SpacesOut {
        active: Some(active.into()),
        building: building.map(str::to_owned),
        superseded: superseded.map(str::to_owned),
    }
}

fn embedded(status: &EmbedStatus) -> (u64, Option<u64>) {
    let count = |space: &postrider::app::SpaceStatus| space.embedded;
    (status.active.as_ref().map_or(0, count), status.building.as_ref().map(count))
}

const STATIC: &str = "static-128";
const OTHER: &str = "other-model";

#[tokio::test(flavor = "multi_thread")]
async fn the_old_model_answers_until_the_new_one_is_complete_everywhere() {
    let world = World::new();
    let postrider = with_vectors(&world).await;
    let before = ask(&postrider).await;
    assert_eq!((model(&before), before.hits.len()), (STATIC, 10));
    postrider.close().await;

    let postrider = open(&world, Embedding::Folder).await;
    assert_eq!(postrider.spaces(), spaces(STATIC, Some(OTHER), None));
    assert_eq!(ask(&postrider).await, before);
    let (done, kept, pending) = embed(&postrider, "main", Some(40)).await;
    assert_eq!((done, kept, pending), (40, 0, SAMPLES_DISTINCT - 40));
    assert_eq!(ask(&postrider).await, before, "half of it is not asked");
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!(embedded(&status), (SAMPLES_DISTINCT, Some(40)));
    let estimate = postrider.estimate_embedding().await.expect("judged").expect("turned on");
    assert_eq!((estimate.model.as_str(), estimate.messages), (OTHER, SAMPLES_DISTINCT - 40 + 1));
    assert!(estimate.passages >= estimate.messages && estimate.tokens > estimate.passages);
    assert!(estimate.seconds.is_some());

    // New mail is given to both.
    let paths = [world.file("new.eml", &letter("new"))];
    postrider.import("main", &paths, ImportOptions::default()).await.expect("imported");
    let (done, _, pending) = embed(&postrider, "main", None).await;
    assert_eq!((done, pending), (SAMPLES_DISTINCT - 40 + 2, 0));
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!(embedded(&status), (SAMPLES_DISTINCT + 1, Some(SAMPLES_DISTINCT + 1)));
    assert_eq!(postrider.spaces(), spaces(STATIC, Some(OTHER), None), "another mailbox is not");
    assert_eq!(model(&ask(&postrider).await), STATIC);

    let (done, _, _) = embed(&postrider, "second", None).await;
    assert_eq!(done, 1);
    assert_eq!(postrider.spaces(), spaces(OTHER, None, Some(STATIC)));
    let after = ask(&postrider).await;
    assert_eq!(model(&after), OTHER);
    assert_ne!(after.hits[0].why, before.hits[0].why, "other vectors give other cosines");
    let again = embed(&postrider, "main", None).await;
    assert_eq!(again, (0, 0, 0), "no model is asked twice");
    postrider.close().await;

    let postrider = open(&world, Embedding::Folder).await;
    assert_eq!(postrider.spaces(), spaces(OTHER, None, Some(STATIC)), "it is on disk");
    assert_eq!(ask(&postrider).await.hits, after.hits);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_and_forth_asks_no_model_twice() {
    let world = World::new();
    let postrider = with_vectors(&world).await;
    let before = ask(&postrider).await;
    for refused in [postrider.cancel_reembed().await, postrider.roll_back_reembed().await] {
        assert!(matches!(refused, Err(Error::Invalid { path: "embed", .. })), "{refused:?}");
    }
    postrider.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    embed(&postrider, "main", None).await;
    embed(&postrider, "second", None).await;
    let changed = ask(&postrider).await;
    assert_eq!(model(&changed), OTHER);
    // What comes now is given to the new model alone.
    let paths = [world.file("late.eml", &letter("late"))];
    postrider.import("main", &paths, ImportOptions::default()).await.expect("imported");
    assert_eq!(embed(&postrider, "main", None).await, (1, 0, 0));

    let back = postrider.roll_back_reembed().await.expect("goes back");
    assert_eq!(back, spaces(STATIC, None, Some(OTHER)));
    assert_eq!(ask(&postrider).await.hits, before.hits);
    assert_eq!(embed(&postrider, "main", None).await, (1, 0, 0), "what it had missed");
    postrider.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    assert_eq!(postrider.spaces(), back, "the same settings change nothing");
    let begun = postrider.begin_reembed().await.expect("begins");
    assert_eq!(begun, spaces(STATIC, Some(OTHER), None));
    assert_eq!(embed(&postrider, "main", None).await, (0, 0, 0));
    assert_eq!(embed(&postrider, "second", None).await, (0, 0, 0));
    assert_eq!(postrider.spaces(), spaces(OTHER, None, Some(STATIC)));
    assert_eq!(ask(&postrider).await.hits, changed.hits);
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_cancelled_and_cleared_away() {
    let world = World::new();
    let postrider = with_vectors(&world).await;
    let before = ask(&postrider).await;
    postrider.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    embed(&postrider, "main", Some(10)).await;
    let nothing = postrider.prune_embeddings(true).await.expect("prunes");
    assert_eq!(nothing, Pruned::default(), "what is being filled is kept");
    assert_eq!(postrider.cancel_reembed().await.expect("cancels"), spaces(STATIC, None, None));
    postrider.begin_reembed().await.expect("begins");
    let nothing = postrider.prune_embeddings(true).await.expect("prunes");
    assert_eq!(nothing, Pruned::default(), "also before its model was loaded");
    assert_eq!(postrider.cancel_reembed().await.expect("cancels"), spaces(STATIC, None, None));
    assert_eq!(ask(&postrider).await, before);
    let pruned = postrider.prune_embeddings(false).await.expect("prunes");
    assert_eq!(pruned, Pruned { indexes: 1, messages: 10 });
    assert_eq!(embed(&postrider, "main", None).await, (0, 0, 0));
    assert_eq!(ask(&postrider).await, before);
    postrider.close().await;
    // Naming the old model, then the new one, begins again.
    open(&world, Embedding::Static128).await.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    assert_eq!(postrider.spaces(), spaces(STATIC, Some(OTHER), None));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_reaches_the_vectors_of_every_model() {
    let world = World::new();
    let postrider = with_vectors(&world).await;
    postrider.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    embed(&postrider, "main", None).await;
    let select = Selection::Query("boiler".into());
    let request = EraseRequest { select, remember: false, as_of_seq: None };
    let receipt = postrider.erase("main", request).await.expect("erases");
    let proven = postrider.purged(receipt.receipt_id).await.expect("purged");
    assert!(proven.messages_deleted > 3);
    assert_eq!(proven.probe.expect("probed").semantic_hits, 0);
    let left = SAMPLES_DISTINCT - proven.messages_deleted;
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!(embedded(&status), (left, Some(left)));
    let passages = |space: &Option<postrider::app::SpaceStatus>| {
        space.as_ref().map_or(0, |space| space.passages)
    };
    assert_eq!(passages(&status.active), passages(&status.building), "both were written anew");
    embed(&postrider, "second", None).await;
    assert_eq!(postrider.spaces(), spaces(OTHER, None, Some(STATIC)));

    let select = Selection::Query("invoice".into());
    let request = EraseRequest { select, remember: false, as_of_seq: None };
    let receipt = postrider.erase("main", request).await.expect("erases");
    let proven = postrider.purged(receipt.receipt_id).await.expect("purged");
    assert!(proven.messages_deleted > 0);
    postrider.roll_back_reembed().await.expect("goes back");
    let status = postrider.embed_status("main").await.expect("status");
    assert_eq!(embedded(&status), (left - proven.messages_deleted, None));
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_was_replaced_in_its_folder_is_another_space() {
    let world = World::new();
    let postrider = open(&world, Embedding::Folder).await;
    postrider.import("main", &samples(), ImportOptions::default()).await.expect("imported");
    embed(&postrider, "main", None).await;
    let before = ask(&postrider).await;
    postrider.close().await;
    let prompts = r#"{"prompts": {"query": "quite another question: "}}"#;
    let file = other_model(&world.data_dir()).join("config_sentence_transformers.json");
    std::fs::write(file, prompts).expect("written");
    let postrider = open(&world, Embedding::Folder).await;
    let words = ask(&postrider).await;
    assert_eq!(words.query.mode, Mode::Keyword, "its vectors cannot be asked any more");
    assert!(words.semantic.expect("told").degraded);
    assert_eq!(embed(&postrider, "main", None).await, (SAMPLES_DISTINCT, 0, 0));
    let after = ask(&postrider).await;
    assert_eq!(after.query.mode, Mode::Semantic);
    assert_ne!(after.hits[0].why, before.hits[0].why);
    postrider.close().await;

    let gone = config(&world, Embedding::Folder);
    std::fs::remove_dir_all(world.data_dir().with_file_name("other-model")).expect("removed");
    let postrider = Postrider::open(gone).await.expect("opens without its model");
    assert!(ask(&postrider).await.semantic.expect("told").degraded);
    let refused = postrider.embed("main", EmbedOptions::default(), Arc::default()).await;
    assert!(matches!(refused, Err(Error::Model(_))), "{refused:?}");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_changes_the_model_by_itself_also_of_mailboxes_that_are_closed() {
    let world = World::new();
    with_vectors(&world).await.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    postrider.embed_in_background();
    // Nothing tells when it has happened, and nobody opens a mailbox meanwhile.
    for _ in 0..1_200 {
        if postrider.spaces() == spaces(OTHER, None, Some(STATIC)) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(model(&ask(&postrider).await), OTHER);
    // What comes now is not given to the model that served before, until it serves again.
    let paths = [world.file("late.eml", &letter("late"))];
    postrider.import("main", &paths, ImportOptions::default()).await.expect("imported");
    let all_embedded = async || {
        for _ in 0..1_200 {
            let status = postrider.embed_status("main").await.expect("status");
            if embedded(&status) == (SAMPLES_DISTINCT + 1, None) {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        false
    };
    assert!(all_embedded().await);
    postrider.roll_back_reembed().await.expect("goes back");
    assert!(all_embedded().await, "no new mail is needed for that");
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_cancelled_and_cleared_away_begins_from_nothing() {
    let world = World::new();
    with_vectors(&world).await.close().await;
    let postrider = open(&world, Embedding::Folder).await;
    embed(&postrider, "main", None).await;
    postrider.cancel_reembed().await.expect("cancels");
    postrider.prune_embeddings(false).await.expect("prunes");
    postrider.begin_reembed().await.expect("begins");
    embed(&postrider, "second", None).await;
    assert_eq!(postrider.spaces(), spaces(STATIC, Some(OTHER), None), "main has none any more");
    let (done, kept, pending) = embed(&postrider, "main", None).await;
    assert_eq!((done, kept, pending), (SAMPLES_DISTINCT, 0, 0));
    assert_eq!(postrider.spaces(), spaces(OTHER, None, Some(STATIC)));
    postrider.close().await;
}
