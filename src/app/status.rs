//! How the server and its mailboxes are.

use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::actors::directory::mailbox_dir;
use crate::ids::IdentityId;
use crate::projections::generation::disk_bytes;

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
        Health { writing: reason.is_none(), reason }
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

    /// Status of everything.
    ///
    /// # Errors
    /// When a mailbox cannot be opened.
    pub async fn status(&self) -> Result<Status, Error> {
        let mut mailboxes = Vec::new();
        for identity in self.identities() {
            mailboxes.push(self.mailbox_status(&identity.id.to_string()).await?);
        }
        mailboxes.sort_by(|a, b| a.name.cmp(&b.name));
        let log = std::sync::Arc::clone(&self.inner.log);
        let dir = log.dir().to_owned();
        let (log_bytes, key_bytes) =
            blocking(move || (disk_bytes(&dir.join("log")), disk_bytes(&dir.join("keys")))).await?;
        Ok(Status { health: self.health(), mailboxes, log_bytes, key_bytes })
    }
}
