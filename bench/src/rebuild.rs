//! Rebuilding the projections of a mailbox, in process.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use postrider::app::Postrider;
use postrider::config::Config;
use postrider::projections::build::{Control, Parts};

use crate::Fallible;
use crate::results::{Figures, peak_rss_bytes, rounded};

/// Time from the request to both new projections serving, merges included.
pub(crate) fn run(data_dir: &Path, mailbox: &str) -> Fallible<Figures> {
    if !data_dir.is_dir() {
        return Err(format!("there is no {}", data_dir.display()).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = Config { data_dir: data_dir.to_owned(), ..Config::default() };
        let postrider = Postrider::open(config).await?;
        let before = postrider.mailbox_status(mailbox).await?;
        let began = Instant::now();
        let control = Control { unverified: true, ..Control::default() };
        postrider.rebuild(mailbox, Parts::All, Arc::new(control)).await?;
        let seconds = began.elapsed().as_secs_f64();
        let after = postrider.mailbox_status(mailbox).await?;
        postrider.close().await;
        if after.text_messages != after.messages || after.messages != before.messages {
            return Err(format!("rebuilt {after:?} from {before:?}").into());
        }
        let mut figures = Figures::new();
        figures.insert("messages".into(), after.messages.into());
        figures.insert("events".into(), after.catalog_seq.into());
        figures.insert("seconds".into(), rounded(seconds).into());
        figures.insert("peak_rss_bytes".into(), peak_rss_bytes()?.into());
        Ok(figures)
    })
}
