//! Judged questions (a set in the layout of BEIR): how well each mode answers them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use postrider::app::{EmbedOptions, IngestRequest, Postrider};
use postrider::config::{Config, Embedding};
use postrider::search::SearchRequest;
use postrider::search::request::Mode;
use serde_json::Value;

use crate::Fallible;
use crate::results::{Figures, rounded};

/// Hits that count.
const DEPTH: usize = 10;

fn lines(path: &Path) -> Fallible<Vec<Value>> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Takes every document in as a message, and asks every question in every mode. A question is asked
/// as alternatives of its words: people do not phrase questions so that every word stands in the
/// answer.
pub(crate) fn run(set: &Path, scratch: &Path, model: &str) -> Fallible<Figures> {
    let embedding = match model {
        "static-128" => Embedding::Static128,
        "minilm-l6" => Embedding::MinilmL6,
        _ => Embedding::Folder,
    };
    let folder = (embedding == Embedding::Folder).then(|| model.into());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = Config {
            data_dir: scratch.to_owned(),
            embedding,
            embedding_folder: folder,
            ..Config::default()
        };
        let postrider = Postrider::open(config).await?;
        postrider.ensure_identity("main").await?;
        for document in lines(&set.join("corpus.jsonl"))? {
            let (id, title) = (text(&document, "_id"), text(&document, "title"));
            let raw = format!(
                "From: Judge <judge@example.org>\r\nSubject: {}\r\nMessage-ID: <{id}@judged.example>\r\n\
                 Date: Mon, 03 Mar 2025 10:00:00 +0000\r\nMIME-Version: 1.0\r\n\
                 Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{}\r\n",
                title.replace(['\r', '\n'], " "),
                text(&document, "text")
            );
            let request = IngestRequest {
                raw: raw.into_bytes(),
                folder: "INBOX".into(),
                labels: Vec::new(),
                source: "judged".into(),
            };
            postrider.ingest("main", request).await?;
        }
        let embedded = postrider.embed("main", EmbedOptions::default(), Arc::default()).await?;
        let mut right: HashMap<String, String> = HashMap::new();
        let judged = std::fs::read_to_string(set.join("qrels/test.tsv"))?;
        for line in judged.lines().skip(1) {
            let mut parts = line.split('\t');
            if let (Some(question), Some(document)) = (parts.next(), parts.next()) {
                right.insert(question.to_owned(), document.to_owned());
            }
        }
        let questions = lines(&set.join("queries.jsonl"))?;
        let mut figures = Figures::new();
        figures.insert("documents".into(), embedded.computed.into());
        figures.insert("questions".into(), questions.len().into());
        for (name, mode) in
            [("keyword", Mode::Keyword), ("semantic", Mode::Semantic), ("hybrid", Mode::Hybrid)]
        {
            let (mut found, mut reciprocal, mut gain) = (0_usize, 0.0, 0.0);
            for question in &questions {
                let Some(wanted) = right.get(text(question, "_id")) else { continue };
                let q = alternatives(text(question, "text"));
                let limit = DEPTH as u32;
                let request = SearchRequest { q, mode, limit, ..SearchRequest::default() };
                let hits = postrider.search("main", &request).await?.hits;
                let wanted = format!("{wanted}@judged.example");
                for (rank, hit) in hits.iter().enumerate() {
                    let shown = postrider.show("main", hit.message_id).await?;
                    if shown.rfc822_message_id == wanted {
                        found += 1;
                        reciprocal += 1.0 / (rank as f64 + 1.0);
                        gain += 1.0 / (rank as f64 + 2.0).log2();
                        break;
                    }
                }
            }
            let share = |sum: f64| rounded(sum / questions.len() as f64);
            figures.insert(
                name.into(),
                serde_json::json!({
                    "recall_at_10": share(found as f64),
                    "mrr_at_10": share(reciprocal),
                    "ndcg_at_10": share(gain),
                }),
            );
        }
        postrider.close().await;
        Ok(figures)
    })
}

/// The words of a question, one or the other, at most as many as a query may have.
fn alternatives(question: &str) -> String {
    let words: Vec<&str> = question
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !matches!(*word, "OR" | "AND" | "NOT"))
        .take(30)
        .collect();
    words.join(" OR ")
}
