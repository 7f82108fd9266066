//! Rebuilding one mailbox or all, one after the other.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use super::wire::{JobProgress, RebuildRequest};
use crate::app::{Error, Postrider, Rebuilt};
use crate::ids::Seq;
use crate::projections::ProjectionError;
use crate::projections::build::{Control, Parts};

/// A rebuild as its watchers see it, and the means to hold it up or end it.
pub struct RebuildWatch {
    /// How far it is.
    pub progress: Mutex<JobProgress>,
    control: Mutex<Option<Arc<Control>>>,
    asked: Mutex<Asked>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    cancel: bool,
    pause: bool,
}

impl Default for RebuildWatch {
    fn default() -> Self {
        let nothing =
            JobProgress::Rebuild { mailbox: String::new(), events_done: 0, events_total: 0 };
        Self { progress: Mutex::new(nothing), control: Mutex::default(), asked: Mutex::default() }
    }
}

impl RebuildWatch {
    /// How far it is.
    #[must_use]
    pub fn look(&self) -> JobProgress {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it; mailboxes that are done stay done.
    pub fn cancel(&self) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).cancel = true;
        self.steer();
    }

    /// Holds it up, or lets it go on.
    pub fn pause(&self, pause: bool) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).pause = pause;
        self.steer();
    }

    /// Whether it is held up.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).pause
    }

    fn steer(&self) {
        use std::sync::atomic::Ordering::SeqCst;
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(control) = &*self.control.lock().unwrap_or_else(PoisonError::into_inner) {
            control.cancel.store(asked.cancel, SeqCst);
            control.pause.store(asked.pause, SeqCst);
        }
    }
}

/// Rebuilds what is asked for, or goes back to what served before.
///
/// # Errors
/// [`Error::NoSuchMailbox`], and what a rebuild says; mailboxes already done stay done.
pub async fn rebuild_mailboxes(
    postrider: &Postrider,
    request: &RebuildRequest,
    watch: &Arc<RebuildWatch>,
) -> Result<Vec<Rebuilt>, Error> {
    let mut names: Vec<String> = match &request.mailbox {
        Some(mailbox) if !request.all => vec![postrider.identity(mailbox)?.name],
        _ => postrider.identities().into_iter().map(|identity| identity.name).collect(),
    };
    names.sort();
    if request.roll_back {
        return roll_back(postrider, &names, request.parts).await;
    }
    // Of all mailboxes together, so that the percentage is that of the whole job.
    let mut events_total = 0;
    for mailbox in &names {
        events_total += postrider.mailbox_status(mailbox).await?.head_seq;
    }
    let mut events_before = 0;
    let mut rebuilt = Vec::new();
    for mailbox in names {
        let (name, shared) = (mailbox.clone(), Arc::clone(watch));
        let hear = move |seq: Seq| {
            *shared.progress.lock().unwrap_or_else(PoisonError::into_inner) =
                JobProgress::Rebuild {
                    mailbox: name.clone(),
                    events_done: events_before + seq.0,
                    events_total: events_total.max(events_before + seq.0),
                };
        };
        hear(Seq::ZERO);
        let control = Arc::new(Control {
            rate_max: AtomicU32::new(request.rate_max),
            unverified: request.unverified,
            hear: Some(Arc::new(hear)),
            ..Control::default()
        });
        *watch.control.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&control));
        watch.steer();
        let done = postrider.rebuild(&mailbox, request.parts, control).await?;
        events_before += done.events;
        rebuilt.push(done);
    }
    Ok(rebuilt)
}

/// Goes back in every mailbox that has something to go back to.
async fn roll_back(
    postrider: &Postrider,
    names: &[String],
    parts: Parts,
) -> Result<Vec<Rebuilt>, Error> {
    let mut rolled = 0;
    for mailbox in names {
        rolled += u64::from(postrider.roll_back(mailbox, parts).await?);
    }
    if rolled == 0 {
        return Err(Error::Rebuild(ProjectionError::NothingToRollBack.to_string()));
    }
    Ok(Vec::new())
}
