//! Building projections anew from the log while the old ones serve.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{Error, Postrider};
use crate::actors::directory::mailbox_dir;
use crate::actors::{MailboxHandle, projector};
use crate::events::Log;
use crate::events::registry::Identity;
use crate::ids::MailboxNo;
use crate::projections::ProjectionError;
use crate::projections::build::{self, Build, Compared, Control, Parts};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::view::View;

/// How often a comparison is tried again because messages were erased meanwhile.
const COMPARISONS_MAX: usize = 3;

/// A build that is so many events behind is swapped in.
const NEAR_EVENTS: u64 = 512;
/// How often it is brought nearer before that; while mail pours in it may never get nearer.
const APPROACHES_MAX: usize = 20;

/// What a rebuild did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// Name of the mailbox.
    pub mailbox: String,
    /// Events replayed, those of an interrupted rebuild included.
    pub events: u64,
    /// Messages it holds.
    pub messages: u64,
    /// How the new content compares with what served before.
    pub compared: Compared,
}

impl Postrider {
    pub(super) fn dir_of(&self, identity: &Identity) -> PathBuf {
        mailbox_dir(&self.inner.config.data_dir.join("mailboxes"), identity.mailbox)
    }

    /// Builds projections of a mailbox from zero beside those that serve, compares them, and lets
    /// them serve. One that was interrupted goes on where it was. What served before is kept until
    /// the next rebuild ([`Postrider::roll_back`]) or purge.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when `control` said so; [`Error::Rebuild`]. The old generation then
    /// still serves.
    pub async fn rebuild(
        &self,
        mailbox: &str,
        parts: Parts,
        control: Arc<Control>,
    ) -> Result<Rebuilt, Error> {
        let identity = self.identity(mailbox)?;
        let _at_work = self.inner.purges.at_work().await;
        self.inner.purges.watch(&control);
        let one = self.inner.purges.of(identity.mailbox);
        let _one = one.lock().await;
        let handle = self.handle(&identity).await?;
        // Keeps the mailbox open meanwhile.
        let _place =
            Arc::clone(&handle.admission).acquire_owned().await.map_err(|_| Error::Gone)?;
        let (log, dir) = (Arc::clone(&self.inner.log), self.dir_of(&identity));
        let (number, steer) = (identity.mailbox, Arc::clone(&control));
        let build = unhurried(move || {
            let mut build = Build::begin(&dir, &log, number, parts)?;
            match build.advance(&log, log.head(number)?, &steer) {
                Ok(()) => Ok(build),
                Err(ProjectionError::Cancelled) => {
                    build.discard()?;
                    Err(Error::Cancelled)
                }
                Err(other) => Err(other.into()),
            }
        })
        .await??;
        let (build, compared) = self.compare(&handle, build, &control).await?;
        let build = self.approach(number, build, &control).await?;
        let events = build.checkpoint().0;
        let (reply, swapped) = oneshot::channel();
        handle
            .projector
            .cast(projector::Request::Swap(Box::new(build), reply))
            .map_err(|_| Error::Gone)?;
        swapped.await.map_err(|_| Error::Gone)?.map_err(Error::Rebuild)?;
        let status = self.mailbox_status(mailbox).await?;
        let (mailbox, messages) = (identity.name, status.messages);
        Ok(Rebuilt { mailbox, events, messages, compared })
    }

    async fn compare(
        &self,
        handle: &MailboxHandle,
        mut build: Build,
        control: &Arc<Control>,
    ) -> Result<(Build, Compared), Error> {
        let mut compared = Compared::Skipped;
        // What a reader met damage in must not be read whole.
        if control.unverified || handle.distrusted.load(Ordering::SeqCst) {
            return Ok((build, compared));
        }
        for _ in 0..COMPARISONS_MAX {
            // At least as far as the build has come: every event of it was acknowledged.
            let view = self.view(handle).await?;
            let (log, steer) = (Arc::clone(&self.inner.log), Arc::clone(control));
            (build, compared) =
                unhurried(move || compare_with(&log, build, &view, &steer)).await??;
            if compared != Compared::Skipped {
                break;
            }
        }
        Ok((build, compared))
    }

    /// Replays what came while it compared, so that little is left to do when it is swapped in.
    async fn approach(
        &self,
        mailbox: MailboxNo,
        mut build: Build,
        control: &Arc<Control>,
    ) -> Result<Build, Error> {
        let (log, steer) = (Arc::clone(&self.inner.log), Arc::clone(control));
        unhurried(move || {
            for _ in 0..APPROACHES_MAX {
                let head = log.head(mailbox)?;
                if head.0.saturating_sub(build.checkpoint().0) < NEAR_EVENTS {
                    break;
                }
                match build.advance(&log, head, &steer) {
                    Ok(()) => {}
                    Err(ProjectionError::Cancelled) => {
                        build.discard()?;
                        return Err(Error::Cancelled);
                    }
                    Err(other) => return Err(other.into()),
                }
            }
            Ok(build)
        })
        .await?
    }

    /// Lets the projections from before the last rebuild serve again, brought up to date; tells
    /// whether any of these parts were kept.
    ///
    /// # Errors
    /// [`Error::Rebuild`] when they cannot be brought back.
    pub async fn roll_back(&self, mailbox: &str, parts: Parts) -> Result<bool, Error> {
        let identity = self.identity(mailbox)?;
        let one = self.inner.purges.of(identity.mailbox);
        let _one = one.lock().await;
        let handle = self.handle(&identity).await?;
        let (reply, rolled) = oneshot::channel();
        handle
            .projector
            .cast(projector::Request::RollBack(parts, reply))
            .map_err(|_| Error::Gone)?;
        rolled.await.map_err(|_| Error::Gone)?.map_err(Error::Rebuild)
    }
}

fn compare_with(
    log: &Log,
    mut build: Build,
    view: &View,
    control: &Control,
) -> Result<(Build, Compared), Error> {
    match build.advance(log, view.seq(), control) {
        Ok(()) => {}
        Err(ProjectionError::Cancelled) => {
            build.discard()?;
            return Err(Error::Cancelled);
        }
        Err(other) => return Err(other.into()),
    }
    let compared = build.compare(view, control);
    if control.cancel.load(Ordering::SeqCst) {
        build.discard()?;
        return Err(Error::Cancelled);
    }
    let mut compared = compared?;
    // Messages erased since the view was made are still in it, and no longer in the build.
    if compared == Compared::Different
        && !view.catalog.with(Facet::All, b"")?.is_subset(&log.keyed_ordinals(build.mailbox())?)
    {
        compared = Compared::Skipped;
    }
    Ok((build, compared))
}

/// Runs the work of a build where it gives way to others.
async fn unhurried<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let done =
        build::unhurried(work).map_err(|source| Error::Io { path: "a thread".into(), source })?;
    done.await.map_err(|_| Error::Gone)
}
