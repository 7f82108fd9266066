//! How the server and its mailboxes are.

use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::actors::directory::mailbox_dir;
use crate::events::registry::Identity;
use crate::ids::IdentityId;
use crate::projections::generation::{Generations, disk_bytes};
use crate::projections::set::ProjectionSet;
use crate::search::request::Capability;

/// The server and every mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether mail can be taken in and found.
    pub health: Health,
    /// Mailboxes in order of their names.
    pub mailboxes: Vec<MailboxStatus>,
    /// Bytes of the event log and the sealed content on disk.
    pub log_bytes: u64,
    /// Bytes of the key store on disk.
    pub key_bytes: u64,
}

/// Health of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Durable writing works.
    pub writing: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// Searches by meaning; whatever it is, mail is taken in and found by its words.
    pub semantic: Capability,
}

/// One mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxStatus {
    /// Its owner.
    pub identity_id: IdentityId,
    /// Its name.
    pub name: String,
    /// Messages in it.
    pub messages: u64,
    /// Position of the last acknowledged event.
    pub head_seq: u64,
    /// Position of the catalog in the current view.
    pub catalog_seq: u64,
    /// Messages in the text index of the current view.
    pub text_messages: u64,
    /// Bytes of its projections on disk.
    pub projection_bytes: u64,
}

impl Postrider {
    /// Health alone: cheap.
    #[must_use]
    pub fn health(&self) -> Health {
        let reason = self.inner.running.health.write_failure();
        Health { writing: reason.is_none(), reason, semantic: self.inner.semantic.capability() }
    }

    /// Status of one mailbox as it is, without waiting for the index to catch up.
    ///
    /// # Errors
    /// [`Error::NoSuchMailbox`].
    pub async fn mailbox_status(&self, mailbox: &str) -> Result<MailboxStatus, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = handle.published.borrow().clone();
        let dir = mailbox_dir(&self.inner.config.data_dir.join("mailboxes"), identity.mailbox);
        let head_seq = handle.head().0;
        blocking(move || {
            use crate::projections::catalog::bitmaps::Facet;
            let (mut messages, mut catalog_seq, mut text_messages) = (0, 0, 0);
            if let Some(view) = view {
                messages = view.catalog.with(Facet::All, b"")?.len();
                catalog_seq = view.seq().0;
                text_messages = view.text.messages();
            }
            Ok(MailboxStatus {
                identity_id: identity.id,
                name: identity.name,
                messages,
                head_seq,
                catalog_seq,
                text_messages,
                projection_bytes: disk_bytes(&dir),
            })
        })
        .await?
    }

    /// Status of a mailbox that is not open, from what lies on disk. Its indexes count only when they
    /// were closed well.
    async fn asleep(&self, identity: Identity) -> Result<MailboxStatus, Error> {
        let dir = mailbox_dir(&self.inner.config.data_dir.join("mailboxes"), identity.mailbox);
        let log = std::sync::Arc::clone(&self.inner.log);
        blocking(move || {
            let head_seq = log.head(identity.mailbox)?.0;
            let messages = log.keyed_ordinals(identity.mailbox)?.len();
            let (catalogs, texts) = ProjectionSet::generations(&dir);
            let checkpoint = |generations: &Generations| -> Result<u64, Error> {
                Ok(match generations.current()? {
                    Some(path) => generations.trust(&path)?.1.0,
                    None => 0,
                })
            };
            let (catalog_seq, text_seq) = (checkpoint(&catalogs)?, checkpoint(&texts)?);
            Ok(MailboxStatus {
                identity_id: identity.id,
                name: identity.name,
                messages,
                head_seq,
                catalog_seq,
                text_messages: if text_seq == head_seq { messages } else { 0 },
                projection_bytes: disk_bytes(&dir),
            })
        })
        .await?
    }

    /// Status of everything. Wakes no mailbox.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub async fn status(&self) -> Result<Status, Error> {
        let mut mailboxes = Vec::new();
        for identity in self.identities() {
            mailboxes.push(match self.inner.running.peek(identity.mailbox).await? {
                Some(_) => self.mailbox_status(&identity.id.to_string()).await?,
                None => self.asleep(identity).await?,
            });
        }
        mailboxes.sort_by(|a, b| a.name.cmp(&b.name));
        let log = std::sync::Arc::clone(&self.inner.log);
        let dir = log.dir().to_owned();
        let (log_bytes, key_bytes) =
            blocking(move || (disk_bytes(&dir.join("log")), disk_bytes(&dir.join("keys")))).await?;
        Ok(Status { health: self.health(), mailboxes, log_bytes, key_bytes })
    }
}
