//! The whole way to vectors (passages, model, sealing, log, index) beside the bare model.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use postrider::app::{EmbedOptions, ImportOptions, Postrider};
use postrider::config::{Config, Embedding};
use postrider::embed::chunk;
use postrider::embed::{Builtin, Role};

use crate::Fallible;
use crate::corpus::{self, Seen};
use crate::results::{Figures, rounded};

/// Imports a source, gives its messages their vectors, and lets the bare model compute the same
/// passages on as many threads.
pub(crate) fn run(source: &Path, scratch: &Path, model: &str) -> Fallible<Figures> {
    let (embedding, builtin) = match model {
        "static-128" => (Embedding::Static128, Builtin::Static128),
        "minilm-l6" => (Embedding::MinilmL6, Builtin::MinilmL6),
        other => return Err(format!("no model {other}").into()),
    };
    let model = builtin.model()?;
    let limits = model.profile().limits();
    let mut texts: Vec<String> = Vec::new();
    let mut seen = Seen::default();
    corpus::each(source, |entry| {
        let message = corpus::message(&entry);
        if seen.is_new(&message) {
            let text = message.new_text();
            for one in chunk::chunks(&message.subject, &text, limits) {
                texts.push(chunk::passage(&message.subject, &text, &one, limits));
            }
        }
        Ok(true)
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (seconds, passages) = runtime.block_on(async {
        let config = Config { data_dir: scratch.to_owned(), embedding, ..Config::default() };
        let postrider = Postrider::open(config).await?;
        postrider.import("main", &[source.to_owned()], ImportOptions::default()).await?;
        let began = Instant::now();
        postrider.embed("main", EmbedOptions::default(), Arc::default()).await?;
        let seconds = began.elapsed().as_secs_f64();
        let status = postrider.embed_status("main").await?;
        postrider.close().await;
        Ok::<_, Box<dyn std::error::Error>>((seconds, status.active.map_or(0, |a| a.passages)))
    })?;
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = parts.len().div_ceil(threads).max(1);
    let began = Instant::now();
    let computed: usize = std::thread::scope(|scope| {
        let model = &model;
        let part = |texts| scope.spawn(move || model.embed(Role::Passage, texts).len());
        let running: Vec<_> = parts.chunks(share).map(part).collect();
        running.into_iter().map(|thread| thread.join().expect("the model died")).sum()
    });
    let bare = began.elapsed().as_secs_f64();
    let mut figures = Figures::new();
    figures.insert("passages".into(), passages.into());
    figures.insert("bare_passages".into(), computed.into());
    figures.insert("per_second".into(), rounded(passages as f64 / seconds).into());
    figures.insert("bare_per_second".into(), rounded(computed as f64 / bare).into());
    let ratio = (passages as f64 / seconds) / (computed as f64 / bare);
    figures.insert("ratio".into(), rounded(ratio).into());
    Ok(figures)
}
