//! Rebuilding one mailbox or all, one after the other.

use std::sync::{Arc, Mutex, PoisonError};

use super::wire::{JobProgress, RebuildRequest, Rebuilt};
use crate::app::{Error, Postrider};
use crate::ids::Seq;

/// Rebuilds what is asked for; `progress` is kept up to date.
///
/// # Errors
/// [`Error::NoSuchMailbox`], and what a rebuild says; mailboxes already done stay done.
pub async fn rebuild_mailboxes(
    postrider: &Postrider,
    request: &RebuildRequest,
    progress: Arc<Mutex<JobProgress>>,
) -> Result<Vec<Rebuilt>, Error> {
    let mut names: Vec<String> = match &request.mailbox {
        Some(mailbox) if !request.all => vec![postrider.identity(mailbox)?.name],
        _ => postrider.identities().into_iter().map(|identity| identity.name).collect(),
    };
    names.sort();
    let mut rebuilt = Vec::new();
    for mailbox in names {
        let events_total = postrider.mailbox_status(&mailbox).await?.head_seq;
        let (name, shared) = (mailbox.clone(), Arc::clone(&progress));
        let hear = move |seq: Seq| {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = JobProgress::Rebuild {
                mailbox: name.clone(),
                events_done: seq.0,
                events_total: events_total.max(seq.0),
            };
        };
        hear(Seq::ZERO);
        postrider.rebuild(&mailbox, Arc::new(hear)).await?;
        let status = postrider.mailbox_status(&mailbox).await?;
        rebuilt.push(Rebuilt { mailbox, events: status.catalog_seq, messages: status.messages });
    }
    Ok(rebuilt)
}
