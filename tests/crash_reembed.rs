//! Dying while the model changes: searches answer from one model or the other, never from both;
//! the change goes on where it was, and no model is asked again about what is kept.
//!
//! The test starts itself as a child that changes the model and ends at a place of
//! [`postrider::crash_point::EMBEDDING`]. `POSTRIDER_REEMBED_KILLS` sets how often one is killed at
//! a random moment besides.

#[path = "world/models.rs"]
mod models;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use models::other_model;
use postrider::app::{EmbedOptions, Embedded, ImportOptions, Postrider};
use postrider::config::{Config, Embedding};
use postrider::crash_point;
use postrider::search::request::Mode;
use postrider::search::{SearchRequest, SearchResponse};
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

const CHILD: &str = "POSTRIDER_REEMBED_CHILD";

async fn open(dir: &Path, embedding: Embedding) -> Postrider {
    let config = Config {
        data_dir: dir.to_owned(),
        embedding,
        embedding_folder: Some(other_model(dir)),
        ..Config::default()
    };
    Postrider::open(config).await.expect("opens")
}

async fn embed_all(postrider: &Postrider) -> Embedded {
    let mut all = Embedded::default();
    for mailbox in ["main", "second"] {
        let options = EmbedOptions::default();
        let done = postrider.embed(mailbox, options, Arc::default()).await.expect("embeds");
        all.computed += done.computed;
        all.empty += done.empty;
        all.kept += done.kept;
        all.pending += done.pending;
    }
    all
}

async fn ask(postrider: &Postrider) -> SearchResponse {
    let q = "heating stopped working".into();
    let request = SearchRequest { q, mode: Mode::Semantic, ..SearchRequest::default() };
    postrider.search("main", &request).await.expect("answers")
}

/// What was found, and how near; identifiers differ from directory to directory.
fn found(answer: &SearchResponse) -> Vec<(Option<String>, Vec<String>)> {
    answer.hits.iter().map(|hit| (hit.subject.clone(), hit.why.clone())).collect()
}

/// The child: changes the model of the directory it is told.
#[test]
fn child_that_changes_the_model_when_told_to() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(async {
        let postrider = open(Path::new(&dir), Embedding::Folder).await;
        embed_all(&postrider).await;
        postrider.close().await;
    });
}

fn change_and_die(dir: &Path, at: &str, killed_after: Option<Duration>) -> bool {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", "child_that_changes_the_model_when_told_to", "--nocapture"])
        .env(CHILD, dir)
        .env("POSTRIDER_CRASH_AT", at)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    if let Some(after) = killed_after {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("runtime").block_on(async { tokio::time::sleep(after).await });
        // Fails when it has ended by itself.
        let _ = child.kill();
    }
    child.wait().expect("reaped").code().is_none()
}

/// A directory whose mail has vectors of the static model.
async fn prepared(world: &World) -> BTreeMap<String, SearchResponse> {
    let dir = world.data_dir();
    let postrider = open(&dir, Embedding::Static128).await;
    let options = ImportOptions::default();
    let account = postrider.import("main", &samples(), options.clone()).await.expect("imported");
    assert_eq!(account.read, SAMPLES_READ);
    let paths = [world.file("one.eml", &letter("one"))];
    postrider.import("second", &paths, options).await.expect("imported");
    embed_all(&postrider).await;
    let mut right = BTreeMap::new();
    right.insert("static-128".to_owned(), ask(&postrider).await);
    postrider.close().await;
    right
}

#[test]
fn a_change_of_the_model_that_dies_anywhere_goes_on_where_it_was() {
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let world = World::new();
    let dir = world.data_dir();
    let mut right = runtime.block_on(prepared(&world));
    // What the other model says, and how long a change takes, from a directory of its own.
    let other = World::new();
    runtime.block_on(prepared(&other));
    let began = std::time::Instant::now();
    assert!(!change_and_die(&other.data_dir(), "", None), "ends by itself");
    let takes = began.elapsed();
    runtime.block_on(async {
        let postrider = open(&other.data_dir(), Embedding::Folder).await;
        right.insert("other-model".into(), ask(&postrider).await);
        postrider.close().await;
    });
    let kills: u32 = std::env::var("POSTRIDER_REEMBED_KILLS")
        .ok()
        .map_or(3, |n| n.parse().expect("POSTRIDER_REEMBED_KILLS must be a number"));
    let named = crash_point::EMBEDDING.iter().flat_map(|name| [1, 2].map(|n| (*name, n)));
    let mut deaths: Vec<(String, Option<Duration>)> =
        named.map(|(name, n)| (format!("{name}:{n}"), None)).collect();
    deaths.extend((0..kills).map(|n| (String::new(), Some(takes * n / kills))));
    let (mut died, mut compared) = (0, 0);
    for (at, after) in &deaths {
        if after.is_some() {
            // Back to the first model, as if there had never been another.
            runtime.block_on(async {
                let postrider = open(&dir, Embedding::Static128).await;
                embed_all(&postrider).await;
                postrider.prune_embeddings(true).await.expect("prunes");
                postrider.close().await;
            });
        }
        died += u32::from(change_and_die(&dir, at, *after));
        runtime.block_on(async {
            let postrider = open(&dir, Embedding::Folder).await;
            let answer = ask(&postrider).await;
            // After a death its index may be on its way back; then it goes by words.
            if answer.query.mode == Mode::Semantic {
                let state = answer.semantic.as_ref().expect("told");
                let right = &right[&state.model];
                if state.coverage > 0.9995 {
                    assert_eq!(found(&answer), found(right), "after {at:?} {after:?}");
                    compared += 1;
                }
            }
            postrider.close().await;
        });
    }
    runtime.block_on(async {
        let postrider = open(&dir, Embedding::Folder).await;
        let done = embed_all(&postrider).await;
        assert_eq!(done.pending, 0);
        assert!(done.kept <= 2 * (SAMPLES_DISTINCT + 1), "of both models");
        let spaces = postrider.spaces();
        assert_eq!((spaces.active.as_deref(), spaces.building), (Some("other-model"), None));
        assert_eq!(found(&ask(&postrider).await), found(&right["other-model"]));
        let again = embed_all(&postrider).await;
        assert_eq!((again.computed, again.kept), (0, 0));
        postrider.close().await;
    });
    println!("{died} of {} changes ended before their time", deaths.len());
    assert!(compared * 2 >= deaths.len(), "hardly any answer was by meaning: {compared}");
    assert!(died >= 5, "the places are hardly ever passed: {died}");
}
