//! Changing the model: fill another space beside the one that serves, let it serve when it is
//! complete, go back, give up, clear away.
//!
//! Vectors are computed by the same means as ever ([`Postrider::embed`]); here is decided who
//! serves. Whatever was computed is kept in the log, so that nothing is asked twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::spaces::{Shape, Space, Spaces};
use super::{Semantic, lock};
use crate::app::{Error, Postrider, blocking};
use crate::crash_point;
use crate::embed::chunk;
use crate::embed::{Fingerprint, Role};
use crate::ids::{MailboxNo, Seq};
use crate::search::semantic::eligible;

/// Events that may have come to a mailbox since it was complete.
const LATER_EVENTS: u64 = 64;
/// Messages looked at for an estimate.
const SAMPLE_MESSAGES: u64 = 128;
/// Passages computed for an estimate.
const SAMPLE_PASSAGES: usize = 16;

/// Mailboxes that are complete in the space that is being filled.
#[derive(Debug, Default)]
pub(super) struct Complete {
    space: Option<Fingerprint>,
    /// With the position up to which each was.
    mailboxes: HashMap<MailboxNo, Seq>,
}

/// Which models there are vectors of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpacesOut {
    /// What searches read.
    pub active: Option<String>,
    /// What is being filled to serve next.
    pub building: Option<String>,
    /// What served before, kept for going back.
    pub superseded: Option<String>,
}

/// What filling a space takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Name of the model.
    pub model: String,
    /// Messages without vectors of it.
    pub messages: u64,
    /// Passages of them, about.
    pub passages: u64,
    /// Tokens of them, about: what a hosted model is paid for.
    pub tokens: u64,
    /// Time on this machine, about; absent for a model behind an address.
    pub seconds: Option<u64>,
}

/// What a clearing took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// Indexes removed.
    pub indexes: u64,
    /// Messages whose vectors of a model are not kept any more.
    pub messages: u64,
}

impl Semantic {
    /// The space that is being filled, once its model was loaded.
    pub(super) fn building(&self) -> Option<Fingerprint> {
        self.spaces().building.as_ref()?.vectors.map(|shape| shape.fingerprint)
    }
}

impl Postrider {
    /// Whether a mailbox was seen complete in the space that is being filled.
    pub(super) fn is_complete(&self, mailbox: MailboxNo, building: Fingerprint) -> bool {
        let complete = lock(&self.inner.semantic.complete);
        complete.space == Some(building) && complete.mailboxes.contains_key(&mailbox)
    }

    /// Takes note that a mailbox is complete in a space. When that is the one being filled and every
    /// mailbox is, it serves from now on: by one rename of one file.
    pub(super) async fn completed(&self, mailbox: MailboxNo, shape: Shape) -> Result<(), Error> {
        let semantic = &self.inner.semantic;
        let space = shape.fingerprint;
        if semantic.building() != Some(space) {
            return Ok(());
        }
        let identities = self.identities();
        let inner = Arc::clone(&self.inner);
        let numbers: Vec<MailboxNo> = identities.iter().map(|i| i.mailbox).collect();
        let heads = blocking(move || {
            let head = |number: MailboxNo| Ok::<_, Error>((number, inner.log.head(number)?));
            numbers.into_iter().map(head).collect::<Result<HashMap<_, _>, _>>()
        });
        let heads = heads.await??;
        {
            let mut complete = lock(&semantic.complete);
            if complete.space != Some(space) {
                *complete = Complete { space: Some(space), mailboxes: HashMap::new() };
            }
            complete.mailboxes.insert(mailbox, heads.get(&mailbox).copied().unwrap_or_default());
            // What came since must be little: new mail has its vectors a moment later anyway.
            complete.mailboxes.retain(|mailbox, at| {
                heads.get(mailbox).is_some_and(|head| head.0 - at.0.min(head.0) <= LATER_EVENTS)
            });
            let is_complete = |mailbox| complete.mailboxes.contains_key(&mailbox);
            if !identities.iter().all(|i| is_complete(i.mailbox) || semantic.is_banned(i)) {
                return Ok(());
            }
        }
        crash_point::reach("embedding complete");
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.semantic.change(&inner.config, |spaces| {
                // Cancelled meanwhile?
                if spaces.building.as_ref().and_then(|b| b.vectors) == Some(shape) {
                    spaces.swap();
                }
            })
        })
        .await??;
        crash_point::reach("embedding swapped");
        let serves = self.spaces().active.unwrap_or_default();
        tracing::info!(model = serves, "searches by meaning read the vectors of another model now");
        Ok(())
    }

    /// Which models there are vectors of.
    #[must_use]
    pub fn spaces(&self) -> SpacesOut {
        let spaces = self.inner.semantic.spaces();
        let name = |space: &Option<Space>| space.as_ref().map(|space| space.model.name());
        SpacesOut {
            active: name(&spaces.active),
            building: name(&spaces.building),
            superseded: name(&spaces.superseded),
        }
    }

    /// Begins to fill the space of the model that the settings name, also after that was cancelled
    /// or gone back from. A change of the settings does so by itself.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is turned off; otherwise what the stores say.
    pub async fn begin_reembed(&self) -> Result<SpacesOut, Error> {
        let Some(wanted) = self.inner.semantic.wanted.clone() else {
            return Err(Error::Invalid {
                path: "embedding",
                message: "is `off` in the configuration; set it to the model that shall serve"
                    .into(),
            });
        };
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            let kept = inner.log.spaces()?;
            inner.semantic.change(&inner.config, |spaces| {
                spaces.begin(&wanted, |space| kept.contains(&space.0));
            })
        })
        .await??;
        Ok(self.spaces())
    }

    /// Stops filling a space; what served goes on to serve. What was computed stays in the log.
    ///
    /// # Errors
    /// [`Error::Invalid`] when none is being filled; otherwise what the stores say.
    pub async fn cancel_reembed(&self) -> Result<SpacesOut, Error> {
        self.change_spaces(Spaces::cancel, "has nothing to cancel: no model is being changed").await
    }

    /// Lets the model serve again that served before the last swap. Mail that came since gets its
    /// vectors from it as new mail does.
    ///
    /// # Errors
    /// [`Error::Invalid`] when nothing is kept; otherwise what the stores say.
    pub async fn roll_back_reembed(&self) -> Result<SpacesOut, Error> {
        let nothing = "has nothing to go back to: no model served before";
        self.change_spaces(Spaces::roll_back, nothing).await
    }

    /// A change that is refused when it has nothing to change.
    async fn change_spaces(
        &self,
        change: fn(&mut Spaces) -> bool,
        nothing: &str,
    ) -> Result<SpacesOut, Error> {
        let inner = Arc::clone(&self.inner);
        let changed = blocking(move || inner.semantic.change(&inner.config, change));
        if !changed.await?? {
            return Err(Error::Invalid { path: "embed", message: nothing.into() });
        }
        Ok(self.spaces())
    }

    /// Removes the vectors of models that neither serve, nor are going to, nor served before, and
    /// those with `superseded` too: there is no going back then.
    ///
    /// # Errors
    /// What the stores say.
    pub async fn prune_embeddings(&self, superseded: bool) -> Result<Pruned, Error> {
        let _at_work = self.inner.purges.at_work().await;
        let inner = Arc::clone(&self.inner);
        let given_up = blocking(move || {
            // What is being filled is known by its model alone until that was loaded.
            let (_, fault) = inner.semantic.written(&inner.config, &inner.log)?;
            if let (Some(fault), false) = (fault, inner.semantic.is_off()) {
                return Err(fault);
            }
            inner.semantic.change(&inner.config, |spaces| {
                if superseded {
                    spaces.superseded = None;
                }
            })
        });
        given_up.await??;
        let mut pruned = Pruned::default();
        for identity in self.identities() {
            let one = self.inner.purges.of(identity.mailbox);
            let _one = one.lock().await;
            let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(&identity));
            let removed = blocking(move || {
                // Of this moment: a space may have been begun meanwhile.
                let kept = inner.semantic.spaces().kept();
                inner.semantic.indexes.keep_only(identity.mailbox, &dir, &kept)
            });
            pruned.indexes += removed.await??;
        }
        let inner = Arc::clone(&self.inner);
        let dropped = blocking(move || {
            let mut dropped = 0;
            for space in inner.log.spaces()? {
                let kept = inner.semantic.spaces().kept();
                if !kept.iter().any(|shape| shape.fingerprint.0 == space) {
                    dropped += inner.log.drop_space(space)?;
                }
            }
            inner.log.compact_embeddings()?;
            Ok::<_, Error>(dropped)
        });
        pruned.messages = dropped.await??;
        Ok(pruned)
    }

    /// What filling the space of the next model takes, or of the one that serves; judged by a
    /// sample of the messages that have no vectors of it. `None` when it is turned off.
    ///
    /// # Errors
    /// What the model or the stores say.
    pub async fn estimate_embedding(&self) -> Result<Option<Estimate>, Error> {
        if self.inner.semantic.is_off() {
            return Ok(None);
        }
        let inner = Arc::clone(&self.inner);
        let (spaces, fault) =
            blocking(move || inner.semantic.written(&inner.config, &inner.log)).await??;
        let Some(space) = spaces.into_iter().next_back() else {
            return fault.map_or(Ok(None), Err);
        };
        let mut sum = Sample::default();
        let model = space.model.name();
        for identity in self.identities() {
            if self.inner.semantic.is_banned(&identity) {
                continue;
            }
            let view = self.view(&self.handle(&identity).await?).await?;
            let (inner, dir, space) =
                (Arc::clone(&self.inner), self.dir_of(&identity), space.clone());
            let one = blocking(move || {
                let (model, shape) = inner.semantic.model_of(&space)?;
                let mut pending = eligible(&view.catalog, &inner.semantic.never)?;
                if inner.semantic.indexes.exists(identity.mailbox, &dir, shape) {
                    let index = inner.semantic.indexes.get(identity.mailbox, &dir, shape)?;
                    pending -= index.covered();
                }
                let step = (pending.len() / SAMPLE_MESSAGES).max(1) as usize;
                let sampled: Vec<_> =
                    pending.iter().step_by(step).map(crate::ids::Ordinal).collect();
                let mut sample = Sample { messages: pending.len(), ..Sample::default() };
                let mut texts = Vec::new();
                let limits = model.profile().limits();
                for message in view.catalog.prepared(sampled)? {
                    let text = message.new_text();
                    sample.looked_at += 1;
                    for one in chunk::chunks(&message.subject, &text, limits) {
                        let passage = chunk::passage(&message.subject, &text, &one, limits);
                        sample.passages += 1;
                        sample.tokens += chunk::tokens(&passage);
                        texts.push(passage);
                    }
                }
                if !model.is_remote() {
                    texts.truncate(SAMPLE_PASSAGES);
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let began = Instant::now();
                    let _ = model.embed(Role::Passage, &texts);
                    let threads = std::thread::available_parallelism().map_or(1, usize::from);
                    sample.timed += texts.len() as u64;
                    sample.seconds += began.elapsed().as_secs_f64() / threads as f64;
                }
                Ok::<_, Error>(sample)
            });
            sum.add(&one.await??);
        }
        Ok(Some(sum.estimate(model)))
    }
}

#[derive(Default)]
struct Sample {
    messages: u64,
    looked_at: u64,
    passages: u64,
    tokens: u64,
    timed: u64,
    seconds: f64,
}

impl Sample {
    fn add(&mut self, other: &Self) {
        // Each mailbox counts by its own sample.
        let whole = |count: u64| {
            let all = u128::from(count) * u128::from(other.messages);
            u64::try_from(all.div_ceil(u128::from(other.looked_at.max(1)))).unwrap_or(u64::MAX)
        };
        self.messages += other.messages;
        self.looked_at += other.looked_at;
        self.passages += whole(other.passages);
        self.tokens += whole(other.tokens);
        self.timed += other.timed;
        self.seconds += other.seconds;
    }

    fn estimate(&self, model: String) -> Estimate {
        let each = self.seconds / self.timed.max(1) as f64;
        let seconds = (each * self.passages as f64).ceil() as u64;
        Estimate {
            model,
            messages: self.messages,
            passages: self.passages,
            tokens: self.tokens,
            seconds: (self.timed > 0).then_some(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_all() {
        let mut sum = Sample::default();
        // 151 of 301 were looked at, and nothing of an empty mailbox.
        let sample = Sample { messages: 301, looked_at: 151, passages: 302, ..Sample::default() };
        sum.add(&Sample { tokens: 3_020, timed: 16, seconds: 1.6, ..sample });
        sum.add(&Sample::default());
        let estimate = sum.estimate("m".into());
        assert_eq!((estimate.messages, estimate.passages, estimate.tokens), (301, 602, 6_020));
        assert_eq!(estimate.seconds, Some(61), "a tenth of a second each");
    }
}
