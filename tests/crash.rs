//! Killing an import at random moments, as `kill -9` or a power cut would: everything that was
//! acknowledged is there, nothing is half there, and running it again finishes the work.
//!
//! The test starts itself as a child that imports and prints how many messages were answered for;
//! the parent kills it after a random time. `POSTRIDER_KILLS` sets how often, `POSTRIDER_SEED`
//! where the random numbers begin.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use postrider::app::{ImportOptions, ImportProgress, Postrider};
use postrider::config::Config;
use postrider::projections::build::Parts;
use postrider::search::SearchRequest;

const CHILD: &str = "POSTRIDER_CRASH_CHILD";
const MESSAGES: u64 = 3_000;

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

fn config(dir: &Path) -> Config {
    Config { data_dir: dir.to_owned(), time_zone: "UTC".into(), ..Config::default() }
}

fn write_mbox(path: &Path) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).expect("created"));
    let mut state = 7;
    for n in 0..MESSAGES {
        let parent = random(&mut state) % (n + 1);
        let body: String =
            (0..60).map(|_| format!("word{} ", random(&mut state) % 5_000)).collect();
        write!(
            out,
            "From ada@x.test Tue Mar 11 10:00:00 2025\nFrom: Ada <ada{}@x.test>\n\
             Subject: message {n}\nMessage-ID: <m{n}@x.test>\nReferences: <m{parent}@x.test>\n\
             Date: Tue, 11 Mar 2025 10:00:00 +0000\n\n{body}\n\n",
            n % 50
        )
        .expect("written");
    }
    out.flush().expect("written");
}

/// The child: imports and says how many messages were answered for.
#[test]
fn child_that_imports_when_told_to() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    runtime.block_on(async {
        let postrider =
            Postrider::open(config(&Path::new(&dir).join("data"))).await.expect("opens");
        let progress = Arc::new(ImportProgress::default());
        let options = ImportOptions { progress: Arc::clone(&progress), ..Default::default() };
        let paths = [Path::new(&dir).join("all.mbox")];
        let owner = postrider.clone();
        let mut importing = Box::pin(async move { owner.import("main", &paths, options).await });
        let mut told = 0;
        let mut out = std::io::stdout();
        loop {
            let mut step = tokio::time::interval(Duration::from_millis(2));
            tokio::select! {
                account = &mut importing => {
                    writeln!(out, "acked {}", account.expect("imports").read).expect("told");
                    break;
                }
                _ = step.tick() => {
                    let messages = progress.messages.load(Ordering::SeqCst);
                    if messages != told {
                        told = messages;
                        writeln!(out, "acked {told}").and_then(|()| out.flush()).expect("told");
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
        drop(importing);
        postrider.close().await;
    });
}

/// Runs the child and kills it after `lifetime`; gives what it had acknowledged.
fn import_and_kill(dir: &Path, lifetime: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", "child_that_imports_when_told_to", "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let output = child.stdout.take().expect("piped");
    let (tell, told) = channel();
    let reading = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(count) = line.strip_prefix("acked ").and_then(|n| n.parse::<u64>().ok()) {
                let _ = tell.send(count);
            }
        }
    });
    let deadline = std::time::Instant::now() + lifetime;
    let mut acknowledged = 0;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        match told.recv_timeout(left) {
            Ok(count) => acknowledged = count,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    reading.join().expect("read to the end");
    // Lines written before the kill and read after it count too.
    told.try_iter().fold(acknowledged, u64::max)
}

async fn dump(postrider: &Postrider) -> String {
    let out = tempfile::NamedTempFile::new().expect("temp file");
    postrider.dump("main", out.reopen().expect("reopens")).await.expect("dumps");
    std::fs::read_to_string(out.path()).expect("text")
}

async fn check(dir: &Path, acknowledged: u64, round: u64) -> u64 {
    let postrider = Postrider::open(config(&dir.join("data"))).await.expect("opens after a kill");
    postrider.ensure_identity("main").await.expect("there");
    let everything = SearchRequest { limit: 1, ..SearchRequest::default() };
    let found = postrider.search("main", &everything).await.expect("answers");
    let status = postrider.mailbox_status("main").await.expect("status");
    assert!(found.total >= acknowledged, "round {round}: {} < {acknowledged}", found.total);
    assert_eq!(status.catalog_seq, status.head_seq, "round {round}");
    assert_eq!(status.messages, status.head_seq, "round {round}: one event a message");
    assert_eq!(status.text_messages, status.messages, "round {round}");
    let newest = format!("rfc822msgid:m{}@x.test", found.total.saturating_sub(1));
    if found.total > 0 {
        let request = SearchRequest { q: newest, ..SearchRequest::default() };
        let hit = postrider.search("main", &request).await.expect("answers");
        let id = hit.hits.first().expect("the last message is there").message_id;
        let raw = postrider.raw("main", id).await.expect("its bytes are there");
        assert!(raw.starts_with(b"From: Ada"), "round {round}");
    }
    let live = dump(&postrider).await;
    postrider.rebuild("main", Parts::All, Arc::default()).await.expect("rebuilt");
    assert!(dump(&postrider).await == live, "round {round}: live and rebuilt differ");
    postrider.close().await;
    found.total
}

#[test]
fn killed_imports_lose_nothing_acknowledged() {
    let kills = setting("POSTRIDER_KILLS", 5);
    let mut state = setting("POSTRIDER_SEED", 1);
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let dir = tempfile::tempdir().expect("temp dir");
    write_mbox(&dir.path().join("all.mbox"));
    let mut with_some_acknowledged = 0;
    for round in 0..kills {
        // Each import begins where the one before was killed; a finished one begins anew.
        let longest = setting("POSTRIDER_KILL_MS", 1_500);
        let lifetime = Duration::from_millis(random(&mut state) % longest);
        let acknowledged = import_and_kill(dir.path(), lifetime);
        with_some_acknowledged += u64::from(acknowledged > 0);
        let stored = runtime.block_on(check(dir.path(), acknowledged, round));
        if stored == MESSAGES {
            std::fs::remove_dir_all(dir.path().join("data")).expect("removed");
        }
    }
    let options = ImportOptions::default();
    let paths: [PathBuf; 1] = [dir.path().join("all.mbox")];
    let account = runtime.block_on(async {
        let postrider = Postrider::open(config(&dir.path().join("data"))).await.expect("opens");
        let account = postrider.import("main", &paths, options).await.expect("imports");
        postrider.close().await;
        account
    });
    assert_eq!(account.read, MESSAGES);
    assert_eq!(account.stored + account.already_there, MESSAGES, "{account:?}");
    runtime.block_on(check(dir.path(), MESSAGES, kills));
    println!("{with_some_acknowledged} of {kills} kills came after something was acknowledged");
}
