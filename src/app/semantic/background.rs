//! A server's own embedding: what comes in, and every mailbox while the model changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::embedding::EmbedOptions;
use crate::app::{Error, Postrider, blocking};
use crate::embed::Fingerprint;
use crate::ids::{MailboxNo, Seq};

/// Time between two looks for mail that has no vectors yet.
const LOOK: Duration = Duration::from_millis(250);
/// Time between two tries of what a model refused (Pylota Mail search §6.6: every night).
const RECONCILE: Duration = Duration::from_secs(24 * 3_600);
/// Messages embedded for one mailbox before the others have their turn.
const TURN_MESSAGES: u64 = 512;

/// Up to where mailboxes are complete, and in which spaces.
type Done = HashMap<MailboxNo, (Seq, Vec<Fingerprint>)>;

impl Postrider {
    /// Gives vectors to what comes into open mailboxes, and to every mailbox while a space is being
    /// filled, until the directory is closed.
    pub fn embed_in_background(&self) {
        if self.inner.semantic.is_off() {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let mut done = Done::default();
            let mut reconciled = Instant::now();
            let mut retry = false;
            // What was told last: a fault that lasts is told once.
            let mut told = None;
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(inner) = inner.upgrade() else { return };
                let postrider = Self { inner };
                if reconciled.elapsed() >= RECONCILE {
                    (reconciled, retry) = (Instant::now(), true);
                    done.clear();
                }
                let fault = postrider.embed_pending(&mut done, retry).await.err();
                retry = false;
                let fault = fault.map(|error| error.to_string());
                if let Some(what) = fault.as_ref().filter(|_| fault != told) {
                    tracing::warn!("giving vectors to mail fails: {what}");
                }
                told = fault;
            }
        });
    }

    /// One look. A mailbox that fails does not keep the others from their turn.
    async fn embed_pending(&self, done: &mut Done, retry: bool) -> Result<(), Error> {
        let semantic = &self.inner.semantic;
        if semantic.spaces().building.as_ref().is_some_and(|space| space.vectors.is_none()) {
            // Its model was never loaded; nothing tells what is complete in it.
            let inner = Arc::clone(&self.inner);
            blocking(move || inner.semantic.written(&inner.config, &inner.log)).await??;
        }
        let building = semantic.building();
        let spaces: Vec<Fingerprint> = semantic
            .spaces()
            .written()
            .filter_map(|space| space.vectors.map(|vectors| vectors.fingerprint))
            .collect();
        let open = self.inner.running.open().await?;
        let open: HashMap<MailboxNo, Seq> =
            open.into_iter().map(|(mailbox, handle)| (mailbox, handle.head())).collect();
        let is_done = |mailbox: &MailboxNo, head: Seq, done: &Done| {
            done.get(mailbox).is_some_and(|known| *known == (head, spaces.clone()))
        };
        if building.is_none() && open.iter().all(|(m, head)| is_done(m, *head, done)) {
            return Ok(());
        }
        let mut fault = Ok(());
        for identity in self.identities() {
            let mailbox = identity.mailbox;
            let head = match open.get(&mailbox) {
                Some(head) => *head,
                None if building.is_some_and(|b| !self.is_complete(mailbox, b)) => {
                    match self.handle(&identity).await {
                        Ok(handle) => handle.head(),
                        Err(error) => {
                            fault = Err(error);
                            continue;
                        }
                    }
                }
                None => continue,
            };
            if is_done(&mailbox, head, done)
                && building.is_none_or(|b| self.is_complete(mailbox, b))
            {
                continue;
            }
            let options = EmbedOptions {
                limit: Some(TURN_MESSAGES),
                retry,
                duty_percent: self.inner.config.embedding_duty_percent,
                gated: true,
            };
            match self.embed(&identity.id.to_string(), options, Arc::default()).await {
                Ok(embedded) if embedded.pending == 0 => {
                    done.insert(mailbox, (head, spaces.clone()));
                }
                Ok(_) => {}
                // Erased meanwhile.
                Err(Error::NoSuchMailbox) => {}
                Err(error) => fault = Err(error),
            }
        }
        fault
    }
}
