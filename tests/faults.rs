//! Broken surroundings: writes that fail, damaged stores, a clock that jumps back, two processes.

#[path = "world/door.rs"]
#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod door;
#[path = "world/serving.rs"]
#[expect(dead_code, reason = "not all that other tests need is needed here")]
mod serving;
#[path = "world/settings.rs"]
mod settings;
mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use postrider::app::{Error, ImportOptions, IngestRequest, Postrider};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::search::SearchRequest;
use serving::Serving;
use settings::words_only;
use world::{SAMPLES_DISTINCT, SAMPLES_READ, World, letter, samples};

const NOW_MS: i64 = 1_788_264_000_000;

fn config(dir: &Path) -> Config {
    Config { data_dir: dir.to_owned(), time_zone: "UTC".into(), ..Config::default() }
}

async fn with_samples(dir: &Path) -> Postrider {
    let postrider = Postrider::open(config(dir)).await.expect("opens");
    let account =
        postrider.import("main", &samples(), ImportOptions::default()).await.expect("imports");
    assert_eq!((account.read, account.failed), (SAMPLES_READ, 0));
    postrider
}

fn program(world: &World, arguments: &[&str], fail_at: Option<u64>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command
        .args(arguments)
        .args(samples())
        .env("POSTRIDER_DATA", world.data_dir())
        .env("POSTRIDER_CONFIG", words_only(world))
        .stdin(Stdio::null());
    if let Some(nth) = fail_at {
        command.env("POSTRIDER_FAIL_AT", nth.to_string());
    }
    command.output().expect("runs")
}

fn letters(from: u64, count: u64) -> Vec<u8> {
    let mut mbox = Vec::new();
    for n in from..from + count {
        mbox.extend_from_slice(b"From ada@example.org Mon Mar  3 10:00:00 2025\n");
        let plain = String::from_utf8(letter(&format!("number {n}"))).expect("text");
        mbox.extend_from_slice(plain.replace('\r', "").as_bytes());
        mbox.push(b'\n');
    }
    mbox
}

#[test]
fn a_failed_write_stops_writing_says_so_and_loses_nothing_acknowledged() {
    let world = World::new();
    // Several chunks, so that something is acknowledged before.
    let many = world.file("many.mbox", &letters(0, 1_200));
    let many = many.to_str().expect("text");
    let failed = program(&world, &["import", many], Some(3));
    let told = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(3), "{told}");
    assert!(told.contains("writing has stopped"), "{told}");
    let again = program(&world, &["--json", "import", many], None);
    assert_eq!(again.status.code(), Some(0), "{}", String::from_utf8_lossy(&again.stderr));
    let account: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    let (stored, there) = (&account["stored"], &account["already_there"]);
    assert_eq!(
        stored.as_u64().expect("count") + there.as_u64().expect("count"),
        1_200 + SAMPLES_READ
    );
    assert!(there.as_u64().expect("count") >= 256, "what was acknowledged is there: {account}");
    let verified = Command::new(env!("CARGO_BIN_EXE_postrider"))
        .args(["--json", "verify"])
        .env("POSTRIDER_DATA", world.data_dir())
        .output()
        .expect("runs");
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_back_harms_nothing() {
    let world = World::new();
    let clock = ManualClock::at(NOW_MS);
    let shared: Arc<ManualClock> = Arc::clone(&clock);
    let postrider =
        Postrider::open_with_clock(config(&world.data_dir()), shared).await.expect("opens");
    postrider.ensure_identity("main").await.expect("made");
    let mut seqs = Vec::new();
    for (n, jump) in [0, -86_400_000 * 365, 5_000, -1].into_iter().enumerate() {
        clock.advance_ms(jump);
        let request = IngestRequest {
            raw: letter(&format!("after jump {n}")),
            folder: "INBOX".into(),
            labels: Vec::new(),
            source: "test".into(),
        };
        postrider.ingest("main", request).await.expect("taken in");
        seqs.push(postrider.mailbox_status("main").await.expect("status").head_seq);
    }
    assert_eq!(seqs, [1, 2, 3, 4]);
    let found = SearchRequest { q: "jump".into(), ..SearchRequest::default() };
    assert_eq!(postrider.search("main", &found).await.expect("answers").total, 4);
    let verified = postrider.verify("main", false, Arc::default()).await.expect("verifies");
    assert!(verified.is_clean(), "{verified:?}");
    postrider.close().await;
}

/// The largest file below a directory whose path holds `part`.
fn largest(dir: &Path, part: &str) -> PathBuf {
    let mut waiting = vec![dir.to_owned()];
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).expect("reads") {
            let entry = entry.expect("reads");
            let meta = entry.metadata().expect("there");
            if meta.is_dir() {
                waiting.push(entry.path());
            } else if entry.path().to_string_lossy().contains(part) {
                found.push((meta.len(), entry.path()));
            }
        }
    }
    found.into_iter().max().expect("a file").1
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_content_is_named_and_the_rest_stays_readable() {
    let world = World::new();
    let dir = world.data_dir();
    with_samples(&dir).await.close().await;
    // The journal holds everything too; without it the tables are all there is.
    let table = largest(&dir.join("truth/log/keyspaces"), "tables");
    let mut bytes = std::fs::read(&table).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xa5);
    std::fs::write(&table, bytes).expect("written");
    match Postrider::open(config(&dir)).await {
        // Whoever cannot read the truth says so; it does not go on without.
        Err(error) => assert!(error.to_string().contains("event log"), "{error}"),
        Ok(postrider) => {
            let request = SearchRequest { q: "boiler".into(), ..SearchRequest::default() };
            let found = postrider.search("main", &request).await.expect("answers");
            assert!(found.total > 0, "searches read the indexes");
            let verified = postrider.verify("main", false, Arc::default()).await;
            match verified {
                Ok(verified) => {
                    assert!(!verified.is_clean(), "{verified:?}");
                    let stores: Vec<&str> =
                        verified.findings.iter().map(|f| f.store.as_str()).collect();
                    assert!(stores.iter().all(|s| *s == "content" || *s == "log"), "{verified:?}");
                }
                Err(error) => assert!(error.to_string().contains("event log"), "{error}"),
            }
            postrider.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_store_that_is_none_refuses_to_open_and_says_which() {
    let world = World::new();
    let dir = world.data_dir();
    with_samples(&dir).await.close().await;
    std::fs::write(dir.join("truth/keys/data.mdb"), vec![0x5a; 1 << 16]).expect("written");
    let refused = Postrider::open(config(&dir)).await.err().expect("refused");
    assert!(refused.to_string().contains("key store"), "{refused}");
    assert_eq!(refused.code(), "internal_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opening_is_refused_and_the_first_goes_on() {
    let world = World::new();
    let dir = world.data_dir();
    let first = with_samples(&dir).await;
    assert!(matches!(Postrider::open(config(&dir)).await, Err(Error::InUse(_))));
    let other = program(&world, &["import"], None);
    assert_eq!(other.status.code(), Some(3), "{}", String::from_utf8_lossy(&other.stderr));
    let status = first.mailbox_status("main").await.expect("status");
    assert_eq!(status.messages, SAMPLES_DISTINCT);
    first.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_disk_fails_says_so_and_goes_on_reading() {
    let world = World::new();
    let postrider = Postrider::open(config(&world.data_dir())).await.expect("opens");
    postrider.ensure_identity("main").await.expect("made");
    postrider.close().await;
    let mut serving = Serving::start(&world, &[("POSTRIDER_FAIL_AT", "2")]);
    let address = serving.address;
    let post = async |subject: &str| {
        door::send(address, "POST", "/v1/identities/main/messages", &[], letter(subject)).await
    };
    assert_eq!(door::get(address, "/readyz").await.status, 200);
    let first = post("before").await;
    assert_eq!(first.status, 202);
    for subject in ["during", "after"] {
        let refused = post(subject).await;
        assert_eq!(refused.status, 503, "{}", refused.json());
        assert_eq!(refused.json()["error"]["code"], "unavailable");
    }
    let ready = door::get(address, "/readyz").await;
    assert_eq!(ready.status, 503);
    let message = ready.json()["error"]["message"].as_str().expect("text").to_owned();
    assert!(message.contains("writing has stopped"), "{message}");
    let alive = door::get(address, "/healthz").await;
    assert_eq!((alive.status, &alive.json()["writing"]), (200, &serde_json::json!(false)));
    let body = r#"{"q":"before OR during OR after"}"#;
    let path = "/v1/identities/main/search";
    let found = door::send(address, "POST", path, &[], body).await.json();
    assert_eq!(found["total"], 1, "what was refused is not there, what was acknowledged is");
    serving.kill();
    let postrider = Postrider::open(config(&world.data_dir())).await.expect("opens again");
    let id = first.json()["message_id"].as_str().expect("an id").parse().expect("an id");
    postrider.show("main", id).await.expect("what was acknowledged is there");
    let verified = postrider.verify("main", false, Arc::default()).await.expect("verifies");
    assert!(verified.is_clean(), "{verified:?}");
    postrider.close().await;
}

/// Runs the program where its data directory cannot be written: root is stopped by no permission,
/// so the directory is mounted read-only in a namespace of its own. `None` where that is not
/// allowed.
fn read_only(world: &World, arguments: &str) -> Option<Output> {
    let script = format!(
        "mount --bind \"$D\" \"$D\" && mount -o remount,bind,ro \"$D\" || exit 99\n\
         exec \"$P\" {arguments}"
    );
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .env("D", world.data_dir())
        .env("P", env!("CARGO_BIN_EXE_postrider"))
        .env("POSTRIDER_DATA", world.data_dir())
        .env("POSTRIDER_CONFIG", words_only(world))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let allowed = output.status.code() != Some(99) && !told.starts_with("unshare:");
    allowed.then_some(output)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_written_is_named_and_stays_as_it_is() {
    let world = World::new();
    with_samples(&world.data_dir()).await.close().await;
    for arguments in ["status", "import /dev/null", "label add x -- boiler", "rebuild", "serve"] {
        let Some(output) = read_only(&world, arguments) else {
            println!("not tried: no name space of mounts here");
            return;
        };
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{arguments}: {told}");
        let dir = world.data_dir().display().to_string();
        assert!(told.contains(&dir) && told.contains("Read-only"), "{arguments}: {told}");
    }
    let postrider = Postrider::open(config(&world.data_dir())).await.expect("opens");
    let verified = postrider.verify("main", false, Arc::default()).await.expect("verifies");
    assert!(verified.is_clean(), "{verified:?}");
    assert_eq!(verified.messages, SAMPLES_DISTINCT);
    postrider.close().await;
}
