//! Queries over the shipped mailbox: each finds exactly the messages that `samples/queries.tsv`
//! names, and its whole answer is a snapshot under `snapshots/query/`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use postrider::app::{Error, ImportOptions, Postrider};
use postrider::clock::ManualClock;
use postrider::config::Config;
use postrider::search::{Hit, SearchRequest, SearchResponse};

/// 2026-09-01T12:00:00Z: the reference time of the samples.
const NOW_MS: i64 = 1_788_264_000_000;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

async fn opened(dir: &Path) -> Postrider {
    let config =
        Config { data_dir: dir.to_owned(), time_zone: "Europe/London".into(), ..Config::default() };
    Postrider::open_with_clock(config, ManualClock::at(NOW_MS)).await.expect("opens")
}

async fn imported(dir: &Path) -> Postrider {
    let postrider = opened(dir).await;
    let paths: Vec<PathBuf> = ["archive.mbox", "maildir", "takeout.mbox.gz", "eml"]
        .iter()
        .map(|name| samples().join(name))
        .collect();
    let account =
        postrider.import("main", &paths, ImportOptions::default()).await.expect("imports");
    assert_eq!((account.read, account.stored, account.already_there), (92, 89, 3));
    assert_eq!(account.failed, 0, "{:?}", account.failures);
    let own = ["office@hallowmere-heat.example".to_owned()];
    postrider.configure("main", &own).await.expect("configured");
    postrider
}

fn all(q: &str) -> SearchRequest {
    SearchRequest { q: q.into(), limit: 1_000, highlight: true, ..SearchRequest::default() }
}

async fn message_id(postrider: &Postrider, hit: &Hit) -> String {
    postrider.show("main", hit.message_id).await.expect("shown").rfc822_message_id
}

async fn thread_of(postrider: &Postrider, message_id: &str) -> String {
    let found = postrider
        .search("main", &all(&format!("rfc822msgid:{message_id} in:anywhere")))
        .await
        .expect("answers");
    found.hits.first().expect("the message is there").thread_id.to_string()
}

fn render(query: &str, answer: &SearchResponse, ids: &[String]) -> String {
    let mut text = String::new();
    let SearchResponse {
        query: echo,
        hits,
        total,
        total_is_exact,
        notes,
        as_of_seq: _,
        semantic: _,
        rerank: _,
        degraded: _,
    } = answer;
    let _ = writeln!(text, "query:  {query}\nparsed: {}\nsort:   {:?}", echo.parsed, echo.sort);
    let _ = writeln!(text, "total:  {total} exact={total_is_exact}");
    for note in notes {
        let _ = writeln!(text, "note:   {note}");
    }
    for (hit, id) in hits.iter().zip(ids) {
        let Hit {
            message_id: _,
            thread_id: _,
            identity_id: _,
            date,
            direction,
            from,
            subject,
            snippet,
            highlights,
            score,
            folders,
            labels,
            attachments,
            quarantined,
            why: _,
        } = hit;
        let _ = writeln!(text, "\n{score:.3} {date} {id} {direction:?}");
        let _ = writeln!(text, "  from {:?} <{}>", from.name, from.address);
        let _ = writeln!(text, "  subject {subject:?}");
        let _ = writeln!(text, "  snippet {snippet:?}");
        let _ = writeln!(text, "  marks {:?}", highlights.clone().unwrap_or_default());
        let _ = writeln!(
            text,
            "  folders={folders:?} labels={labels:?} attachments={attachments} \
             quarantined={quarantined}"
        );
    }
    text
}

fn slug(number: usize, query: &str) -> String {
    let mut slug = format!("{number:03}");
    for part in query.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty()) {
        if slug.len() + part.len() > 60 {
            break;
        }
        slug.push('-');
        slug.push_str(&part.to_ascii_lowercase());
    }
    slug
}

fn snapshots(area: &str) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(area));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_samples_finds_what_it_must_and_answers_as_before() {
    let dir = tempfile::tempdir().expect("temp dir");
    let postrider = imported(dir.path()).await;
    let listed = std::fs::read_to_string(samples().join("queries.tsv")).expect("readable");
    let mut wrong = Vec::new();
    let mut ran = 0;
    let settings = snapshots("query");
    for line in listed.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let mut columns = line.split('\t');
        let query = columns.next().unwrap_or_default();
        let expected: BTreeSet<String> = columns
            .next()
            .unwrap_or_default()
            .split(',')
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect();
        let asked =
            match query.split_once("thread:{").and_then(|(a, b)| Some((a, b.split_once('}')?))) {
                Some((before, (id, after))) => {
                    format!("{before}thread:{}{after}", thread_of(&postrider, id).await)
                }
                None => query.to_owned(),
            };
        let answer = match postrider.search("main", &all(&asked)).await {
            Ok(answer) => answer,
            Err(error) => {
                wrong.push(format!("{query}: {error}"));
                continue;
            }
        };
        let mut ids = Vec::new();
        for hit in &answer.hits {
            ids.push(message_id(&postrider, hit).await);
        }
        let found: BTreeSet<String> = ids.iter().cloned().collect();
        if found != expected {
            let missing: Vec<_> = expected.difference(&found).collect();
            let surplus: Vec<_> = found.difference(&expected).collect();
            wrong.push(format!("{query}: missing {missing:?}, surplus {surplus:?}"));
        }
        let text = render(query, &answer, &ids).replace(&asked, query);
        settings.bind(|| insta::assert_snapshot!(slug(ran, query), text));
        ran += 1;
    }
    assert!(wrong.is_empty(), "{} of {ran}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran >= 60, "only {ran} queries were run");
    postrider.close().await;
}

/// One query for each row of the error table.
const FAULTS: [(&str, &str); 16] = [
    ("open-quote", "boiler \"cold radiator"),
    ("unknown-operator", "form:ada boiler"),
    ("url-is-an-unknown-operator", "https://x.test/"),
    ("empty-value", "from: boiler"),
    ("bad-enumeration", "in:sideways"),
    ("bad-date", "after:2026-13-01"),
    ("bad-duration", "newer_than:5q"),
    ("bad-thread", "thread:abc"),
    ("unknown-category", "category:bilings"),
    ("bracket-not-closed", "(boiler OR pump"),
    ("bracket-not-opened", "boiler)"),
    ("dangling-or", "boiler OR"),
    ("dangling-minus", "boiler - pump"),
    ("too-many-terms", "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7"),
    ("too-deep", "((((((((( boiler )))))))))"),
    ("prefix-too-short", "b*"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_the_error_table_answers_as_before() {
    let dir = tempfile::tempdir().expect("temp dir");
    let postrider = opened(dir.path()).await;
    postrider.ensure_identity("main").await.expect("made");
    let long = "a".repeat(1_025);
    let faults = FAULTS.into_iter().chain([("too-long", long.as_str())]);
    let settings = snapshots("query_error");
    for (name, query) in faults {
        let error = postrider.search("main", &all(query)).await.expect_err(name);
        let Error::Query(fault) = &error else { panic!("{name}: {error}") };
        let shown: String = query.chars().take(60).collect();
        let text = format!(
            "query:      {shown}\ncode:       {}\nposition:   {}\nexpected:   {}\nfound:      {:?}\n\
             suggestion: {:?}\nredacted:   {error}\n",
            error.code(),
            fault.position,
            fault.expected,
            fault.found,
            fault.suggestion,
        );
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
    postrider.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_survive_loss_and_damage_of_projections() {
    let dir = tempfile::tempdir().expect("temp dir");
    let postrider = imported(dir.path()).await;
    let queries =
        ["boiler", "from:nora OR subject:invoice", "has:attachment", "-in:inbound", "暖房"];
    let answers = |postrider: Postrider| async move {
        let mut all_of_them = Vec::new();
        for q in queries {
            let answer = postrider.search("main", &all(q)).await.expect("answers");
            all_of_them.push(serde_json::to_string(&answer).expect("json"));
        }
        all_of_them
    };
    let before = answers(postrider.clone()).await;
    postrider.close().await;
    let mailbox = dir.path().join("mailboxes/00000001");
    std::fs::remove_dir_all(dir.path().join("mailboxes")).expect("removed");
    let postrider = opened(dir.path()).await;
    assert_eq!(answers(postrider.clone()).await, before, "after losing every projection");
    postrider.close().await;

    let files = |dir: &Path| -> Vec<PathBuf> {
        let mut found = Vec::new();
        for generation in std::fs::read_dir(dir).expect("mailbox").flatten() {
            if generation.path().is_dir()
                && !generation.file_name().to_string_lossy().starts_with("set-aside")
            {
                let inside = std::fs::read_dir(generation.path()).expect("generation").flatten();
                found.extend(inside.map(|e| e.path()).filter(|p| {
                    !p.to_string_lossy().ends_with("lock.mdb")
                        && !p.to_string_lossy().ends_with(".lock")
                }));
            }
        }
        found.sort();
        found
    };
    let count = files(&mailbox).len();
    for at in 0..count {
        let Some(victim) = files(&mailbox).get(at).cloned() else { continue };
        let length =
            usize::try_from(std::fs::metadata(&victim).expect("there").len()).expect("small");
        std::fs::write(&victim, vec![0xa5; length.max(64)]).expect("overwritten");
        let postrider = opened(dir.path()).await;
        assert_eq!(
            answers(postrider.clone()).await,
            before,
            "after damage to {}",
            victim.display()
        );
        postrider.close().await;
    }
    assert!(count >= 3, "only {count} files were damaged");

    // A check that ended the process, as damage under a memory map can, is not tried again.
    for kind in ["catalog", "text"] {
        let generation = std::fs::read_dir(&mailbox)
            .expect("mailbox")
            .flatten()
            .map(|entry| entry.path())
            .find(|path| {
                path.is_dir()
                    && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(kind))
            })
            .expect("a generation serves");
        std::fs::remove_file(generation.with_extension("clean")).expect("was marked");
        std::fs::write(generation.with_extension("checking"), []).expect("written");
        std::fs::write(generation.join("data.mdb"), b"not read").expect("written");
        let postrider = opened(dir.path()).await;
        assert_eq!(answers(postrider.clone()).await, before, "{kind} after its check died");
        assert!(!generation.with_extension("checking").exists());
        postrider.close().await;
    }
}
