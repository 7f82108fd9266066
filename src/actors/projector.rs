//! The projector of one mailbox: applies events to its projections, commits, publishes views.
//!
//! Wakes when its mailbox hands over durable events, when a reader waits for the head, and on a
//! timer while something is uncommitted. It commits when enough gathered, when a reader asks, and
//! when nothing arrived for a moment. After a failure it opens the projections again and catches
//! up from the log. Never decides anything and never blocks a reader.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::admission::BytePermit;
use crate::events::Log;
use crate::ids::MailboxNo;
use crate::projections::build::{Build, Parts};
use crate::projections::set::{ProjectionSet, Purged, SetAside};
use crate::projections::view::View;
use crate::projections::{Applicable, ProjectionError};

/// Pause in arrivals after which what was applied is committed.
const IDLE_COMMIT: Duration = Duration::from_millis(50);
/// Ticks without work after which the text writer is closed.
const IDLE_TICKS_MAX: u32 = 20;

/// At most so many text writers are open at once; each has threads and memory.
#[derive(Debug)]
pub struct WriterPool {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl WriterPool {
    /// A pool of `places`.
    #[must_use]
    pub fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(places)), waiting: AtomicUsize::new(0) })
    }

    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        place
    }

    fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// What is published to readers.
pub type Published = watch::Receiver<Option<Arc<View>>>;

/// Requests to a projector.
pub enum Request {
    /// These events are durable; the permits are given back when they have been applied.
    Apply(Vec<Applicable>, Vec<BytePermit>),
    /// A reader waits for everything handed over so far.
    Flush,
    /// Time passed.
    Tick,
    /// Let a build serve; the sender hears the result.
    Swap(Box<Build>, oneshot::Sender<Result<(), String>>),
    /// Let what served before the last swap serve again; the sender hears whether anything of
    /// these parts was kept.
    RollBack(Parts, oneshot::Sender<Result<bool, String>>),
    /// Take the bytes of erased messages off the disk; the sender hears the result, and of the views
    /// whose readers still keep files.
    Purge(oneshot::Sender<Result<Purge, String>>),
    /// Remove files of the text index that nobody reads any more; the sender hears how many old
    /// segments somebody still does.
    CollectGarbage(oneshot::Sender<Result<u64, String>>),
    /// Commit, close and answer; nothing may be sent afterwards.
    Close(oneshot::Sender<()>),
}

/// What a purge took, and the views from before it.
pub type Purge = (Purged, Vec<Weak<View>>);

/// See the module.
pub struct Projector;

/// What a projector is started with.
pub struct Arguments {
    /// Whose.
    pub mailbox: MailboxNo,
    /// The mailbox's directory.
    pub dir: PathBuf,
    /// The truth.
    pub log: Arc<Log>,
    /// Opened projections.
    pub set: ProjectionSet,
    /// Where views are published.
    pub publish: watch::Sender<Option<Arc<View>>>,
    /// Places for text writers.
    pub writers: Arc<WriterPool>,
    /// Set by readers who met damage.
    pub distrusted: Arc<AtomicBool>,
}

/// State of the actor.
pub struct State {
    arguments: Shared,
    writers: Arc<WriterPool>,
    distrusted: Arc<AtomicBool>,
    place: Option<OwnedSemaphorePermit>,
    /// Views that were published; whoever still reads one keeps files from going.
    views: Vec<Weak<View>>,
    ticking: bool,
    arrived: bool,
    idle_ticks: u32,
}

#[derive(Clone)]
struct Shared {
    mailbox: MailboxNo,
    dir: PathBuf,
    log: Arc<Log>,
    set: Arc<Mutex<Option<ProjectionSet>>>,
    publish: watch::Sender<Option<Arc<View>>>,
}

impl Shared {
    /// Runs `work` on the projections on a thread that may block. When it fails, the projections
    /// are opened again, which catches up, and `work` is given up.
    async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ProjectionSet) -> Result<R, ProjectionError> + Send + 'static,
    ) -> Result<R, ActorProcessingErr> {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut slot = shared.set.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(set) = slot.as_mut() else {
                return Err(ActorProcessingErr::from("projections are closed"));
            };
            match work(set) {
                Ok(result) => Ok(result),
                Err(error) => {
                    tracing::warn!(mailbox = shared.mailbox.0, "projection failed: {error}");
                    drop(slot.take());
                    // An environment opens again only when no view holds it any more.
                    shared.publish.send_replace(None);
                    let (fresh, aside) =
                        ProjectionSet::open(&shared.dir, &shared.log, shared.mailbox)?;
                    report(shared.mailbox, &aside);
                    *slot = Some(fresh);
                    Err(error.into())
                }
            }
        })
        .await?
    }
}

/// Says in the traces that a projection was set aside.
pub fn report(mailbox: MailboxNo, aside: &[SetAside]) {
    for SetAside { projection, reason } in aside {
        tracing::warn!(
            mailbox = mailbox.0,
            "{projection} was set aside and is rebuilt from the log: {reason}"
        );
    }
}

impl State {
    async fn publish(&mut self) -> Result<(), ActorProcessingErr> {
        let view = self.arguments.run(ProjectionSet::view).await?;
        self.views.retain(|view| view.strong_count() > 0);
        self.views.push(Arc::downgrade(&view));
        self.arguments.publish.send_replace(Some(view));
        Ok(())
    }

    async fn purge(&mut self) -> Result<Purge, ActorProcessingErr> {
        if self.place.is_none() {
            self.place = self.writers.take().await;
        }
        let before = std::mem::take(&mut self.views);
        let purged = self.arguments.run(ProjectionSet::purge).await;
        self.place = None;
        // After a failure the projections were opened again: readers must find them.
        self.publish().await?;
        Ok((purged?, before))
    }

    async fn collect_garbage(&mut self) -> Result<u64, ActorProcessingErr> {
        if self.place.is_none() {
            self.place = self.writers.take().await;
        }
        let left = self.arguments.run(ProjectionSet::collect_garbage).await;
        self.place = None;
        self.publish().await?;
        left
    }

    async fn commit(&mut self) -> Result<(), ActorProcessingErr> {
        let committed = self
            .arguments
            .run(|set| {
                let dirty = set.is_dirty();
                set.commit()?;
                Ok(dirty)
            })
            .await;
        let unseen = self.arguments.publish.borrow().is_none();
        if committed.unwrap_or(true) || unseen {
            self.publish().await?;
        }
        if self.writers.is_wanted() {
            self.close_writer().await?;
        }
        Ok(())
    }

    async fn close_writer(&mut self) -> Result<(), ActorProcessingErr> {
        if self.place.is_some() {
            self.arguments.run(ProjectionSet::close_writer).await?;
            self.place = None;
            // Merges may have finished: readers get the merged segments.
            self.publish().await?;
        }
        Ok(())
    }

    fn schedule(&mut self, myself: &ActorRef<Request>) {
        if !self.ticking {
            self.ticking = true;
            myself.send_after(IDLE_COMMIT, || Request::Tick);
        }
    }

    async fn tick(&mut self, myself: &ActorRef<Request>) -> Result<(), ActorProcessingErr> {
        self.ticking = false;
        if std::mem::take(&mut self.arrived) {
            self.idle_ticks = 0;
            self.schedule(myself);
            return Ok(());
        }
        if self.idle_ticks == 0 {
            self.commit().await?;
        }
        self.idle_ticks += 1;
        if self.idle_ticks >= IDLE_TICKS_MAX {
            self.close_writer().await
        } else {
            self.schedule(myself);
            Ok(())
        }
    }
}

impl Actor for Projector {
    type Msg = Request;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _: ActorRef<Request>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let Arguments { mailbox, dir, log, set, publish, writers, distrusted } = arguments;
        let set = Arc::new(Mutex::new(Some(set)));
        let mut state = State {
            arguments: Shared { mailbox, dir, log, set, publish },
            writers,
            distrusted,
            place: None,
            views: Vec::new(),
            ticking: false,
            arrived: false,
            idle_ticks: 0,
        };
        state.publish().await?;
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<Request>,
        request: Request,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match request {
            Request::Apply(events, permits) => {
                if state.place.is_none() {
                    state.place = state.writers.take().await;
                }
                state.arrived = true;
                let applied = state.arguments.run(move |set| set.apply(events)).await;
                drop(permits);
                // After a failure the projections were opened again and hold more than before.
                if applied.unwrap_or(true) {
                    state.publish().await?;
                    // Another mailbox may wait for a writer while this one is kept busy.
                    if state.writers.is_wanted() {
                        state.close_writer().await?;
                    }
                }
                state.idle_ticks = 0;
                state.schedule(&myself);
            }
            Request::Flush => state.commit().await?,
            Request::Tick => state.tick(&myself).await?,
            Request::Swap(build, reply) => {
                let log = Arc::clone(&state.arguments.log);
                let swapped = state.arguments.run(move |set| set.swap(&log, *build)).await;
                state.publish().await?;
                // The caller may have gone.
                let _ = reply.send(swapped.map_err(|e| e.to_string()));
            }
            Request::RollBack(parts, reply) => {
                let log = Arc::clone(&state.arguments.log);
                // Finding nothing to go back to is an answer, not a failure of the projections.
                let rolled = state.arguments.run(move |set| Ok(set.roll_back(&log, parts))).await;
                let rolled = match rolled {
                    Ok(Ok(())) => Ok(true),
                    Ok(Err(ProjectionError::NothingToRollBack)) => Ok(false),
                    Ok(Err(error)) => return Err(error.into()),
                    Err(error) => Err(error.to_string()),
                };
                state.publish().await?;
                let _ = reply.send(rolled);
            }
            Request::Purge(reply) => {
                let purged = state.purge().await.map_err(|e| e.to_string());
                // The caller may have gone.
                let _ = reply.send(purged);
            }
            Request::CollectGarbage(reply) => {
                let collected = state.collect_garbage().await.map_err(|e| e.to_string());
                let _ = reply.send(collected);
            }
            Request::Close(reply) => {
                let shared = state.arguments.clone();
                let distrusted = state.distrusted.load(Ordering::SeqCst);
                shared.publish.send_replace(None);
                state.place = None;
                let closed = tokio::task::spawn_blocking(move || {
                    let mut slot = shared.set.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.take().map_or(Ok(()), |set| set.close(distrusted))
                })
                .await?;
                if let Err(error) = closed {
                    tracing::warn!("closing projections: {error}");
                }
                let _ = reply.send(());
                myself.stop(None);
            }
        }
        Ok(())
    }
}
