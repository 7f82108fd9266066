//! Killing a server under load, as `kill -9` or a power cut would: no acknowledged event is lost
//! and no interrupted erasure is left half done.
//!
//! Clients post messages, label and erase over HTTP and note what was answered; the server is
//! killed after a random time, and its directory is checked by the library.
//! `POSTRIDER_SERVER_KILLS` sets how often, `POSTRIDER_SEED` where the random numbers begin.

#[path = "world/door.rs"]
#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod door;
#[path = "world/serving.rs"]
mod serving;
#[path = "world/settings.rs"]
mod settings;
#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod world;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use postrider::app::{Error, Postrider};
use postrider::events::receipt::ErasureState;
use postrider::ids::MessageId;
use postrider::projections::build::{Compared, Parts};
use postrider::search::SearchRequest;
use serde_json::json;
use serving::Serving;
use world::{World, letter};

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

/// What clients sent and what was answered, over all lives of the server.
#[derive(Debug, Clone, Default)]
struct Account {
    /// Number in the subject of each acknowledged message.
    stored: HashMap<MessageId, u64>,
    /// Labels acknowledged.
    labelled: HashSet<MessageId>,
    /// Erasures sent.
    erasing: HashSet<MessageId>,
    /// Erasures acknowledged.
    erased: HashSet<MessageId>,
}

type Shared = Arc<Mutex<Account>>;
/// The server was killed.
type Over = Arc<AtomicBool>;

/// Posts messages until the server is gone; `n` runs through the numbers of this client alone.
async fn post(address: SocketAddr, shared: Shared, mut n: u64) {
    loop {
        let raw = letter(&format!("load {n}"));
        let path = "/v1/identities/main/messages?label=unread";
        let Some(answer) = door::try_send(address, "POST", path, &[], raw).await else { return };
        if answer.status == 202 {
            let id = answer.json()["message_id"].as_str().expect("an id").parse().expect("an id");
            shared.lock().expect("held").stored.insert(id, n);
        }
        n += 1;
    }
}

fn pick(shared: &Shared, state: &mut u64) -> Option<MessageId> {
    let account = shared.lock().expect("held");
    let left: Vec<_> =
        account.stored.keys().filter(|id| !account.erasing.contains(id)).copied().collect();
    (left.len() > 3).then(|| left[random(state) as usize % left.len()])
}

async fn label(address: SocketAddr, shared: Shared, over: Over, mut state: u64) {
    loop {
        let Some(id) = pick(&shared, &mut state) else {
            // It may die before there is anything to pick.
            if over.load(Ordering::SeqCst) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        };
        let body = json!({ "messages": [id.to_string()], "add": ["seen"] }).to_string();
        let path = "/v1/identities/main/labels";
        let headers = [("content-type", "application/json")];
        let Some(answer) = door::try_send(address, "POST", path, &headers, body).await else {
            return;
        };
        if answer.status == 200 {
            shared.lock().expect("held").labelled.insert(id);
        }
    }
}

async fn erase(address: SocketAddr, token: String, shared: Shared, over: Over, mut state: u64) {
    loop {
        let Some(id) = pick(&shared, &mut state) else {
            // It may die before there is anything to pick.
            if over.load(Ordering::SeqCst) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        };
        shared.lock().expect("held").erasing.insert(id);
        let body = json!({ "messages": [id.to_string()] }).to_string();
        let path = "/v1/identities/main/erasures";
        let bearer = format!("Bearer {token}");
        let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
        let Some(answer) = door::try_send(address, "POST", path, &headers, body).await else {
            return;
        };
        assert!((200..300).contains(&answer.status), "{answer:?}");
        shared.lock().expect("held").erased.insert(id);
        let shown = format!("/v1/identities/main/messages/{id}");
        let Some(answer) = door::try_send(address, "GET", &shown, &[], "").await else { return };
        assert_eq!(answer.status, 404, "an erased message is shown");
        tokio::time::sleep(Duration::from_millis(random(&mut state) % 20)).await;
    }
}

async fn live_and_die(world: &World, shared: &Shared, state: &mut u64) {
    let mut serving = Serving::start(world, &[]);
    let address = serving.address;
    let over = Over::default();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..3 {
        clients.spawn(post(address, Arc::clone(shared), random(state) >> 1));
    }
    clients.spawn(label(address, Arc::clone(shared), Arc::clone(&over), random(state)));
    clients.spawn(erase(
        address,
        serving.token.clone(),
        Arc::clone(shared),
        Arc::clone(&over),
        random(state),
    ));
    tokio::time::sleep(Duration::from_millis(20 + random(state) % 600)).await;
    serving.kill();
    over.store(true, Ordering::SeqCst);
    while let Some(ended) = clients.join_next().await {
        ended.expect("no client met a wrong answer");
    }
}

async fn check(world: &World, shared: &Shared, whole: bool) {
    let postrider = Postrider::open(world.config()).await.expect("opens after a kill");
    let account = shared.lock().expect("held").clone();
    for (id, number) in &account.stored {
        let shown = postrider.show("main", *id).await;
        match shown {
            Ok(message) => {
                assert!(!account.erased.contains(id), "an erased message is back");
                assert_eq!(message.subject, Some(format!("load {number}")));
                if account.labelled.contains(id) {
                    assert!(message.labels.iter().any(|l| l == "seen"), "a label is lost");
                }
            }
            Err(Error::NoSuchMessage) => {
                assert!(account.erasing.contains(id), "an acknowledged message is lost");
            }
            Err(other) => panic!("{other}"),
        }
    }
    for receipt in postrider.erasures().await.expect("listed") {
        let proven = postrider.purged(receipt.receipt_id).await.expect("purged");
        assert_eq!(proven.status, ErasureState::Completed, "{proven:?}");
        assert_eq!(proven.messages_deleted, 1);
    }
    if whole {
        let verified = postrider.verify("main", false, Arc::default()).await.expect("verifies");
        assert!(verified.is_clean(), "{verified:?}");
        let rebuilt = postrider.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilt");
        assert_eq!(rebuilt.compared, Compared::Equal);
        let all = SearchRequest { q: "subject:load".into(), ..SearchRequest::default() };
        let found = postrider.search("main", &all).await.expect("answers").total;
        let sure = account.stored.keys().filter(|id| !account.erasing.contains(id)).count();
        assert!(found >= sure as u64, "{found} < {sure}");
    }
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_and_leaves_no_erasure_half_done() {
    let kills = setting("POSTRIDER_SERVER_KILLS", 6);
    let mut state = setting("POSTRIDER_SEED", 1);
    let (mut stored, mut erased) = (0, 0);
    let mut world = World::new();
    let mut shared = Shared::default();
    for round in 0..kills {
        // A mailbox that never ends growing would only make the checks slow.
        if round % 20 == 0 {
            world = World::new();
            shared = Shared::default();
            let postrider = Postrider::open(world.config()).await.expect("opens");
            postrider.ensure_identity("main").await.expect("made");
            postrider.close().await;
        }
        println!("round {round}, state {state}");
        live_and_die(&world, &shared, &mut state).await;
        check(&world, &shared, round % 5 == 4).await;
        if round % 20 == 19 || round + 1 == kills {
            let account = shared.lock().expect("held");
            stored += account.stored.len();
            erased += account.erased.len();
        }
    }
    assert!(stored > 0 && erased > 0, "else this test shows nothing");
    println!("{kills} kills, {stored} messages and {erased} erasures acknowledged");
}
