//! The vectors of one mailbox: how they stand, letting go of them, purging them.

use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::spaces::{Shape, Space};
use crate::app::{Error, Postrider, blocking};
use crate::events::SpaceName;
use crate::events::registry::Identity;
use crate::projections::generation::disk_bytes;
use crate::search::semantic::eligible;

/// How the vectors of a mailbox stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedStatus {
    /// Name of the mailbox.
    pub mailbox: String,
    /// Messages that should have vectors.
    pub eligible: u64,
    /// The space that searches read; absent when searches by meaning are turned off.
    pub active: Option<SpaceStatus>,
    /// The space that is being filled to serve next.
    pub building: Option<SpaceStatus>,
}

/// How far a mailbox is in a space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceStatus {
    /// Name of the model.
    pub model: String,
    /// Messages that have all their vectors.
    pub embedded: u64,
    /// Messages that have none yet.
    pub pending: u64,
    /// Messages with a passage that the model refused; tried again once a day.
    pub failed: u64,
    /// Messages that should have no vectors any more and lose them at the next embedding.
    pub deleting: u64,
    /// Passages.
    pub passages: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
}

impl Postrider {
    /// How the vectors of a mailbox stand.
    ///
    /// # Errors
    /// [`Error::NoSuchMailbox`]; otherwise what the stores say.
    pub async fn embed_status(&self, mailbox: &str) -> Result<EmbedStatus, Error> {
        let identity = self.identity(mailbox)?;
        let view = self.view(&self.handle(&identity).await?).await?;
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(&identity));
        blocking(move || {
            let semantic = &inner.semantic;
            let eligible = eligible(&view.catalog, &semantic.never)?;
            let never = semantic.never.messages(&view.catalog)?;
            let status = |space: &Space| {
                let mut status = SpaceStatus {
                    model: space.model.name(),
                    embedded: 0,
                    pending: eligible.len(),
                    failed: 0,
                    deleting: 0,
                    passages: 0,
                    index_bytes: 0,
                };
                let mailbox = identity.mailbox;
                let there = |shape: &Shape| semantic.indexes.exists(mailbox, &dir, *shape);
                if let Some(shape) = space.vectors.filter(there) {
                    let index = semantic.indexes.get(mailbox, &dir, shape)?;
                    let (covered, failed) = (index.covered(), index.failed());
                    status.failed = eligible.intersection_len(&failed);
                    status.embedded = eligible.intersection_len(&covered) - status.failed;
                    status.pending = (&eligible - &covered).len();
                    status.deleting = covered.intersection_len(&never);
                    status.passages = u64::from(index.passages());
                    status.index_bytes = disk_bytes(index.dir());
                }
                Ok::<_, Error>(status)
            };
            let spaces = semantic.spaces();
            let (mut active, mut building) = (None, None);
            if !semantic.is_off() && !semantic.is_banned(&identity) {
                active = spaces.active.as_ref().map(&status).transpose()?;
                building = spaces.building.as_ref().map(&status).transpose()?;
            }
            let eligible = eligible.len();
            Ok(EmbedStatus { mailbox: identity.name.clone(), eligible, active, building })
        })
        .await?
    }

    /// Lets go of every vector of a mailbox: no model may be given anything of it any more.
    pub(super) async fn forget_vectors(&self, identity: &Identity) -> Result<(), Error> {
        let _at_work = self.inner.purges.at_work().await;
        let one = self.inner.purges.of(identity.mailbox);
        let _one = one.lock().await;
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            inner.semantic.indexes.keep_only(mailbox, &dir, &[])?;
            for space in inner.log.spaces()? {
                let embedded = inner.log.embedded(space, mailbox)?;
                inner.log.drop_embeddings(&[space], mailbox, &embedded)?;
            }
            Ok(())
        })
        .await?
    }

    /// Takes erased messages out of the vectors of every space that is kept; those of others go.
    /// Tells how many of the messages they still hold. Called by the purge, which holds the
    /// mailbox's place.
    pub(in crate::app) async fn purge_vectors(
        &self,
        identity: &Identity,
        gone: RoaringBitmap,
    ) -> Result<u64, Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            let spaces: Vec<SpaceName> = inner.log.spaces()?;
            inner.log.drop_embeddings(&spaces, mailbox, &gone)?;
            let indexes = &inner.semantic.indexes;
            let kept = inner.semantic.spaces().kept();
            indexes.keep_only(mailbox, &dir, &kept)?;
            let mut left = 0;
            for shape in kept {
                left += indexes.purge(&inner.log, mailbox, &dir, shape, &gone)?;
            }
            Ok(left)
        })
        .await?
    }
}
