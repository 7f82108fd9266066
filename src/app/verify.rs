//! Checking everything that is stored against itself, without changing it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::events::registry::Identity;
use crate::events::{Event, Log, LogError};
use crate::ids::{MailboxNo, Ordinal, Seq};
use crate::projections::build::{Compared, Parts};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::view::View;

/// Findings of one kind that are listed; all are counted.
const LISTED_MAX: usize = 20;

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `log`, `content`, `keys`, `catalog` or `text`.
    pub store: String,
    /// Where: `seq 17`, `ordinal 4`.
    pub place: String,
    /// What does not hold.
    pub what: String,
}

/// What was checked in one mailbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Its name.
    pub mailbox: String,
    /// Events whose chain and seal hold.
    pub events: u64,
    /// Messages whose content opens and is what its digest says.
    pub messages: u64,
    /// Messages that were erased.
    pub erased: u64,
    /// What does not hold, the first of each kind.
    pub findings: Vec<Finding>,
    /// All of it.
    pub findings_total: u64,
    /// Whether derived stores were built anew because of it.
    pub repaired: bool,
}

/// How far a verification is.
#[derive(Debug, Default)]
pub struct VerifyProgress {
    /// Events and messages looked at.
    pub done: AtomicU64,
    /// Events and messages to look at.
    pub total: AtomicU64,
}

impl Verified {
    fn find(&mut self, store: &str, place: String, what: &str) {
        self.findings_total += 1;
        if self.findings.iter().filter(|f| f.store == store).count() < LISTED_MAX {
            let (store, what) = (store.to_owned(), what.to_owned());
            self.findings.push(Finding { store, place, what });
        }
    }

    /// Whether everything holds.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings_total == 0
    }

    /// Whether something is wrong that a rebuild mends.
    fn is_derived_wrong(&self) -> bool {
        self.findings.iter().any(|f| f.store == "catalog" || f.store == "text")
    }
}

impl Postrider {
    /// Checks a mailbox: the chain and the seals of its log, that every message opens and is what
    /// its digest says, that keys are missing only where messages were erased, that catalog and
    /// text index stand at the head and hold every message, and that the counters agree. With
    /// `repair`, wrong indexes are built anew.
    ///
    /// # Errors
    /// When a store cannot be read at all.
    pub async fn verify(
        &self,
        mailbox: &str,
        repair: bool,
        progress: Arc<VerifyProgress>,
    ) -> Result<Verified, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let head = handle.head();
        progress.total.fetch_add(head.0 * 2, Ordering::Relaxed);
        let mut verified = Verified { mailbox: identity.name.clone(), ..Verified::default() };
        let view = match self.view(&handle).await {
            Ok(view) => Some(view),
            Err(error @ (Error::Timeout { .. } | Error::Gone)) => {
                verified.find("catalog", format!("seq {head}"), &error.to_string());
                None
            }
            Err(other) => return Err(other),
        };
        let log = Arc::clone(&self.inner.log);
        let checked = identity.clone();
        let verified = blocking(move || {
            check_truth(&log, &checked, view.as_deref(), &mut verified, &progress)?;
            if let Some(view) = &view {
                check_derived(&log, checked.mailbox, view, &mut verified)?;
            }
            Ok::<_, Error>(verified)
        })
        .await??;
        if repair && verified.is_derived_wrong() {
            return self.repair(mailbox, verified).await;
        }
        Ok(verified)
    }

    async fn repair(&self, mailbox: &str, mut verified: Verified) -> Result<Verified, Error> {
        let rebuilt = self.rebuild(mailbox, Parts::All, Arc::default()).await?;
        verified.repaired = matches!(rebuilt.compared, Compared::Different | Compared::Skipped);
        Ok(verified)
    }
}

fn check_truth(
    log: &Log,
    identity: &Identity,
    view: Option<&View>,
    verified: &mut Verified,
    progress: &VerifyProgress,
) -> Result<(), Error> {
    let mailbox = identity.mailbox;
    let keyed = log.keyed_ordinals(mailbox)?;
    let mut ingested = RoaringBitmap::new();
    let mut erased = RoaringBitmap::new();
    let mut events = 0;
    let broken = log.check_chain(mailbox, |recorded| {
        events += 1;
        progress.done.fetch_add(1, Ordering::Relaxed);
        match &recorded.event {
            Event::MessageIngested(one) => drop(ingested.insert(one.ordinal.0)),
            Event::MessagesErased(these) => erased |= &these.ordinals,
            _ => {}
        }
        Ok(())
    })?;
    verified.events = events;
    verified.erased = erased.len();
    if let Some(link) = broken {
        verified.find("log", format!("seq {}", link.seq), link.what);
        // What comes behind it cannot be judged.
        return Ok(());
    }
    for ordinal in &(&ingested - &erased) - &keyed {
        let what = "its key is gone and nothing erased it";
        verified.find("keys", format!("ordinal {ordinal}"), what);
    }
    for ordinal in &erased & &keyed {
        let what = "it was erased and its key is still there";
        verified.find("keys", format!("ordinal {ordinal}"), what);
    }
    for ordinal in &ingested - &erased {
        progress.done.fetch_add(1, Ordering::Relaxed);
        match log.raw(mailbox, Ordinal(ordinal)) {
            Ok(raw) => {
                let known = match view {
                    Some(view) => view.catalog.by_raw_key(&super::ingest::raw_key(&raw))?,
                    None => Some(Ordinal(ordinal)),
                };
                if known == Some(Ordinal(ordinal)) {
                    verified.messages += 1;
                } else {
                    let what = "its bytes are not those the catalog knows by their digest";
                    verified.find("catalog", format!("ordinal {ordinal}"), what);
                }
            }
            // Erased while this looked.
            Err(LogError::Erased { .. }) => {}
            Err(error) => {
                verified.find("content", format!("ordinal {ordinal}"), &error.to_string());
            }
        }
    }
    Ok(())
}

fn check_derived(
    log: &Log,
    mailbox: MailboxNo,
    view: &View,
    verified: &mut Verified,
) -> Result<(), Error> {
    let head = log.head(mailbox)?;
    if view.seq() > head {
        verified.find("catalog", format!("seq {}", view.seq()), "it is ahead of the log");
    }
    let catalog = &view.catalog;
    let all = catalog.with(Facet::All, b"")?;
    for ordinal in all.iter().filter(|o| catalog.erased().contains(*o)) {
        verified.find("catalog", format!("ordinal {ordinal}"), "it was erased and is listed");
    }
    for wrong in catalog.miscounted()? {
        verified.find("catalog", wrong.place, wrong.what);
    }
    let indexed = view.text.ordinals().map_err(crate::projections::ProjectionError::from)?;
    for ordinal in &*all - &indexed {
        verified.find("text", format!("ordinal {ordinal}"), "it is not in the index");
    }
    for ordinal in &indexed - &*all {
        verified.find("text", format!("ordinal {ordinal}"), "it is in the index and not listed");
    }
    let through = log.next_ordinal_at(mailbox, Seq(view.seq().0))?;
    if catalog.next_ordinal() != through {
        let place = format!("ordinal {}", catalog.next_ordinal());
        verified.find("catalog", place, "the next ordinal is not the one the log gives");
    }
    Ok(())
}
