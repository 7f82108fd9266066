//! Labels at scale, searches while a rebuild runs, and many mailboxes in one process.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use postrider::app::{ImportOptions, LabelChange, Postrider, Selection};
use postrider::config::Config;
use postrider::projections::build::{Control, Parts};
use postrider::search::SearchRequest;

use crate::Fallible;
use crate::queries::{self, Column};
use crate::results::{Figures, peak_rss_bytes, rounded};

fn config(data_dir: &Path) -> Config {
    Config { data_dir: data_dir.to_owned(), ..Config::default() }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Value at a percentile, nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or(f64::NAN)
}

fn put(figures: &mut Figures, name: &str, mut millis: Vec<f64>) {
    millis.sort_by(f64::total_cmp);
    for percent in [50, 95, 100] {
        figures
            .insert(format!("{name}_p{percent}_ms"), rounded(percentile(&millis, percent)).into());
    }
}

/// Adding a label to every message and taking it off again, until both can be searched.
pub(crate) fn labels(data_dir: &Path, mailbox: &str) -> Fallible<Figures> {
    runtime()?.block_on(async {
        let postrider = Postrider::open(config(data_dir)).await?;
        let mut figures = Figures::new();
        let messages = postrider.mailbox_status(mailbox).await?.messages;
        let search =
            SearchRequest { q: "label:bench-all in:anywhere".into(), ..Default::default() };
        for (name, add) in [("add", true), ("remove", false)] {
            let label = vec!["bench-all".to_owned()];
            let change = LabelChange {
                select: Selection::Query("in:anywhere".into()),
                add: if add { label.clone() } else { Vec::new() },
                remove: if add { Vec::new() } else { label },
                status: None,
                as_of_seq: None,
                dry_run: false,
            };
            let began = Instant::now();
            let changed = postrider.label(mailbox, change).await?.changed;
            let recorded = began.elapsed();
            let found = postrider.search(mailbox, &search).await?.total;
            let seconds = began.elapsed().as_secs_f64();
            if changed != messages || found != if add { messages } else { 0 } {
                return Err(format!("{changed} of {messages} changed, {found} found").into());
            }
            figures.insert(
                format!("{name}_recorded_ms"),
                rounded(recorded.as_secs_f64() * 1e3).into(),
            );
            figures.insert(format!("{name}_ms"), rounded(seconds * 1e3).into());
        }
        postrider.close().await;
        figures.insert("messages".into(), messages.into());
        Ok(figures)
    })
}

async fn ask(
    postrider: &Postrider,
    mailbox: &str,
    until: impl Fn(usize) -> bool,
) -> Fallible<Vec<f64>> {
    let queries = queries::of(Column::Native)?;
    let mut millis = Vec::new();
    while !until(millis.len()) {
        let q = queries[millis.len() % queries.len()].to_owned();
        let request = SearchRequest { q, ..SearchRequest::default() };
        let began = Instant::now();
        postrider.search(mailbox, &request).await?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(millis)
}

/// The queries, one after the other, alone and while the mailbox is rebuilt.
pub(crate) fn search_during_rebuild(data_dir: &Path, mailbox: &str) -> Fallible<Figures> {
    runtime()?.block_on(async {
        let postrider = Postrider::open(config(data_dir)).await?;
        let mut figures = Figures::new();
        ask(&postrider, mailbox, |done| done >= 90).await?;
        put(&mut figures, "idle", ask(&postrider, mailbox, |done| done >= 600).await?);
        let over = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let rebuilding = {
            let (postrider, over, mailbox) =
                (postrider.clone(), Arc::clone(&over), mailbox.to_owned());
            tokio::spawn(async move {
                let control = Arc::new(Control { unverified: true, ..Control::default() });
                let done = postrider.rebuild(&mailbox, Parts::All, control).await;
                over.store(true, Ordering::SeqCst);
                done.map(|_| began.elapsed())
            })
        };
        let millis = ask(&postrider, mailbox, |_| over.load(Ordering::SeqCst)).await?;
        figures.insert("searches_during_rebuild".into(), millis.len().into());
        put(&mut figures, "rebuilding", millis);
        figures.insert("rebuild_seconds".into(), rounded(rebuilding.await??.as_secs_f64()).into());
        postrider.close().await;
        Ok(figures)
    })
}

fn mbox(mailbox: usize, messages: usize) -> String {
    let mut text = String::new();
    for n in 0..messages {
        let word = (mailbox * 7_919 + n * 104_729) % 50_000;
        let day = 1 + n % 28;
        let _ = write!(
            text,
            "From ada@x.test Tue Mar {day:2} 10:00:00 2025\nFrom: Ada <ada{}@x.test>\n\
             To: bo{mailbox}@y.test\nSubject: note {n} about word{word}\n\
             Message-ID: <m{n}.{mailbox}@x.test>\nDate: Tue, {day} Mar 2025 10:00:00 +0000\n\n\
             The text of note {n} in mailbox {mailbox} speaks of word{word} and of word{}.\n\n",
            n % 20,
            (word * 31) % 50_000
        );
    }
    text
}

/// Makes mailboxes `m0`, `m1`, … of so many synthetic messages each.
pub(crate) fn many(data_dir: &Path, mailboxes: usize, messages: usize) -> Fallible<Figures> {
    runtime()?.block_on(async {
        let postrider = Postrider::open(config(data_dir)).await?;
        let scratch = data_dir.with_extension("mbox");
        std::fs::create_dir_all(&scratch)?;
        let began = Instant::now();
        for number in 0..mailboxes {
            let path = scratch.join("one.mbox");
            std::fs::write(&path, mbox(number, messages))?;
            let options = ImportOptions::default();
            let account = postrider.import(&format!("m{number}"), &[path], options).await?;
            if account.stored != messages as u64 {
                return Err(format!("{account:?}").into());
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        postrider.close().await;
        std::fs::remove_dir_all(scratch)?;
        let mut figures = Figures::new();
        figures.insert("mailboxes".into(), mailboxes.into());
        figures.insert("messages".into(), (mailboxes * messages).into());
        figures.insert("seconds".into(), rounded(seconds).into());
        figures.insert("peak_rss_bytes".into(), peak_rss_bytes()?.into());
        Ok(figures)
    })
}

/// Opening a directory of many mailboxes, and the first search in `asked` of them.
pub(crate) fn cold(data_dir: &Path, asked: usize) -> Fallible<Figures> {
    runtime()?.block_on(async {
        let began = Instant::now();
        let postrider = Postrider::open(config(data_dir)).await?;
        let ready = began.elapsed().as_secs_f64();
        let mut figures = Figures::new();
        figures.insert("ready_ms".into(), rounded(ready * 1e3).into());
        figures.insert("ready_rss_bytes".into(), peak_rss_bytes()?.into());
        let count = postrider.identities().len();
        figures.insert("mailboxes".into(), count.into());
        let mut millis = Vec::new();
        for at in 0..asked {
            let mailbox = format!("m{}", (at * 7_919) % count);
            let request = SearchRequest { q: "note".into(), ..SearchRequest::default() };
            let began = Instant::now();
            let found = postrider.search(&mailbox, &request).await?.total;
            millis.push(began.elapsed().as_secs_f64() * 1e3);
            if found == 0 {
                return Err(format!("{mailbox} is empty").into());
            }
        }
        put(&mut figures, "first_search", millis);
        figures.insert("searched_rss_bytes".into(), peak_rss_bytes()?.into());
        let began = Instant::now();
        postrider.close().await;
        figures.insert("close_ms".into(), rounded(began.elapsed().as_secs_f64() * 1e3).into());
        Ok(figures)
    })
}
