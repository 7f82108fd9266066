//! Postrider inside another program: import the sample mail, search it, print what is found.
//!
//! `cargo run --example embedded`

use std::io::{self, Write as _};
use std::path::Path;

use postrider::app::{ImportOptions, Postrider};
use postrider::config::Config;
use postrider::search::SearchRequest;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data_dir = tempfile::tempdir()?;
    let config = Config { data_dir: data_dir.path().join("data"), ..Config::default() };
    let postrider = Postrider::open(config).await?;

    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let sources = ["archive.mbox", "maildir", "takeout.mbox.gz", "eml"].map(|s| samples.join(s));
    let account = postrider.import("main", &sources, ImportOptions::default()).await?;
    let mut out = io::stdout().lock();
    writeln!(out, "{} read, {} stored", account.read, account.stored)?;

    let request = SearchRequest { q: "boiler from:garrity".into(), ..SearchRequest::default() };
    let answer = postrider.search("main", &request).await?;
    writeln!(out, "{} found for {}", answer.total, answer.query.parsed)?;
    for hit in answer.hits {
        writeln!(out, "{}  {}", hit.date, hit.subject.unwrap_or_default())?;
    }

    postrider.close().await;
    Ok(())
}
