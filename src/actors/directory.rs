//! The directory: finds a mailbox or wakes it, and lets the longest unused go.
//!
//! Wakes when a door wants a mailbox, when an opening is done, and when an actor of a mailbox
//! dies. Openings may take long (a replay) and run beside each other; callers of the same mailbox
//! wait together. Holds handles only, no mail.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use roaring::RoaringBitmap;
use tokio::sync::{Semaphore, oneshot, watch};

use super::admission::MAILBOX_REQUESTS_MAX;
use super::log_writer;
use super::mailbox::{self, MailboxActor};
use super::projector::{self, Projector, Published, WriterPool, report};
use crate::clock::SharedClock;
use crate::events::Log;
use crate::events::event::HoldSet;
use crate::events::log::SealedAppend;
use crate::ids::{HoldId, MailboxNo, Seq};
use crate::projections::set::ProjectionSet;

/// What a door needs to use a mailbox.
#[derive(Clone)]
pub struct MailboxHandle {
    /// Whose.
    pub mailbox: MailboxNo,
    /// Its actor.
    pub actor: ActorRef<mailbox::Request>,
    /// Its projector.
    pub projector: ActorRef<projector::Request>,
    /// Its views.
    pub published: Published,
    /// Position of the last acknowledged event.
    pub acknowledged: Arc<AtomicU64>,
    /// Places in its queue.
    pub admission: Arc<Semaphore>,
    /// Set when a reader met damage: the projections are then checked when they are opened next.
    pub distrusted: Arc<AtomicBool>,
}

impl MailboxHandle {
    /// Position of the last acknowledged event.
    #[must_use]
    pub fn head(&self) -> Seq {
        Seq(self.acknowledged.load(Ordering::SeqCst))
    }
}

/// Why a mailbox could not be woken; plain text, shared by all who waited.
#[derive(Debug, Clone, thiserror::Error)]
#[error("mailbox cannot be opened: {0}")]
pub struct OpenError(pub String);

type Opened = Result<MailboxHandle, OpenError>;

/// Requests to the directory.
pub enum Request {
    /// Give me this mailbox.
    Open(MailboxNo, oneshot::Sender<Opened>),
    /// Give me this mailbox when it is open already.
    Peek(MailboxNo, oneshot::Sender<Option<MailboxHandle>>),
    /// Give me every mailbox that is open.
    List(oneshot::Sender<Vec<(MailboxNo, MailboxHandle)>>),
    /// An opening is done.
    Ready(MailboxNo, Box<Result<Opening, OpenError>>),
    /// Close this mailbox and open it no more: it is going to be erased whole.
    Close(MailboxNo, oneshot::Sender<()>),
    /// Remove the projections of a mailbox that was erased whole.
    Remove(MailboxNo, oneshot::Sender<std::io::Result<()>>),
    /// What was closed to be erased may be opened again: it was not erased.
    Reopen(MailboxNo),
    /// Close every mailbox, then answer.
    CloseAll(oneshot::Sender<()>),
}

/// What an opening brought.
pub struct Opening {
    set: ProjectionSet,
    sealer: crate::events::log::Sealer,
    next_ordinal: crate::ids::Ordinal,
    erased: RoaringBitmap,
    holds: BTreeMap<HoldId, HoldSet>,
    suppressed: HashSet<[u8; 16]>,
}

/// See the module.
pub struct Directory;

/// What the directory is started with.
#[derive(Clone)]
pub struct Arguments {
    /// The truth.
    pub log: Arc<Log>,
    /// Where mailboxes have their directories.
    pub mailboxes_dir: PathBuf,
    /// Where appends go.
    pub log_writer: ActorRef<log_writer::Request>,
    /// Time and randomness.
    pub clock: SharedClock,
    /// Mailboxes kept open.
    pub open_max: usize,
    /// Text writers open at once.
    pub writers_max: usize,
}

/// State of the actor.
pub struct State {
    arguments: Arguments,
    writers: Arc<WriterPool>,
    open: HashMap<MailboxNo, (MailboxHandle, u64)>,
    waiting: HashMap<MailboxNo, Vec<oneshot::Sender<Opened>>>,
    /// Closed for good, with those who wait for an opening to end before that.
    closed: HashMap<MailboxNo, Vec<oneshot::Sender<()>>>,
    uses: u64,
}

/// Directory of a mailbox's projections.
#[must_use]
pub fn mailbox_dir(mailboxes_dir: &std::path::Path, mailbox: MailboxNo) -> PathBuf {
    mailboxes_dir.join(format!("{:08}", mailbox.0))
}

fn open(arguments: &Arguments, mailbox: MailboxNo) -> Result<Opening, OpenError> {
    let text = |e: &dyn std::error::Error| OpenError(e.to_string());
    let dir = mailbox_dir(&arguments.mailboxes_dir, mailbox);
    let (mut set, aside) =
        ProjectionSet::open(&dir, &arguments.log, mailbox).map_err(|e| text(&e))?;
    report(mailbox, &aside);
    let sealer = arguments.log.sealer(mailbox).map_err(|e| text(&e))?;
    let view = set.view().map_err(|e| text(&e))?;
    let next_ordinal = view.catalog.next_ordinal();
    let erased = view.catalog.erased().clone();
    let holds = view.catalog.holds().map_err(|e| text(&e))?;
    let holds = holds.into_iter().map(|(hold, _)| (hold.hold, hold)).collect();
    let suppressed = arguments.log.suppressed(mailbox).map_err(|e| text(&e))?;
    Ok(Opening { set, sealer, next_ordinal, erased, holds, suppressed })
}

impl State {
    async fn start(
        &self,
        myself: &ActorRef<Request>,
        mailbox: MailboxNo,
        opening: Opening,
    ) -> Opened {
        let text = |e: ractor::SpawnErr| OpenError(e.to_string());
        let (publish, published) = watch::channel(None);
        let acknowledged = Arc::new(AtomicU64::new(opening.sealer.head().0));
        let distrusted = Arc::new(AtomicBool::new(false));
        let (projector, _) = Projector::spawn_linked(
            None,
            Projector,
            projector::Arguments {
                mailbox,
                dir: mailbox_dir(&self.arguments.mailboxes_dir, mailbox),
                log: Arc::clone(&self.arguments.log),
                set: opening.set,
                publish,
                writers: Arc::clone(&self.writers),
                distrusted: Arc::clone(&distrusted),
            },
            myself.get_cell(),
        )
        .await
        .map_err(text)?;
        let (actor, _) = MailboxActor::spawn_linked(
            None,
            MailboxActor,
            mailbox::Arguments {
                sealer: opening.sealer,
                next_ordinal: opening.next_ordinal,
                erased: opening.erased,
                holds: opening.holds,
                suppressed: opening.suppressed,
                published: published.clone(),
                acknowledged: Arc::clone(&acknowledged),
                log_writer: self.arguments.log_writer.clone(),
                projector: projector.clone(),
                clock: Arc::clone(&self.arguments.clock),
            },
            myself.get_cell(),
        )
        .await
        .map_err(text)?;
        let admission = Arc::new(Semaphore::new(MAILBOX_REQUESTS_MAX));
        Ok(MailboxHandle {
            mailbox,
            actor,
            projector,
            published,
            acknowledged,
            admission,
            distrusted,
        })
    }

    /// Lets the longest unused mailbox go when too many are open.
    async fn make_room(&mut self) {
        while self.open.len() >= self.arguments.open_max.max(1) {
            // One that has requests on the way stays.
            let idle = self
                .open
                .iter()
                .filter(|(_, (h, _))| h.admission.available_permits() == MAILBOX_REQUESTS_MAX)
                .min_by_key(|(_, (_, used))| *used)
                .map(|(mailbox, _)| *mailbox);
            let Some(mailbox) = idle else { return };
            if let Some((handle, _)) = self.open.remove(&mailbox) {
                close(handle, &self.arguments.log_writer).await;
            }
        }
    }
}

/// Stops a mailbox's actors in order: no more appends, those on their way durable or failed, then
/// everything applied and closed. Opened before that, it would give out positions again.
async fn close(handle: MailboxHandle, log_writer: &ActorRef<log_writer::Request>) {
    let _ = handle.actor.drain_and_wait(None).await;
    let (reply, written) = oneshot::channel();
    let done: log_writer::Done = Box::new(move |_| {
        let _ = reply.send(());
    });
    if log_writer.cast(log_writer::Request::Append(SealedAppend::default(), done)).is_ok() {
        let _ = written.await;
    }
    let (reply, closed) = oneshot::channel();
    if handle.projector.cast(projector::Request::Close(reply)).is_ok() {
        let _ = closed.await;
    }
    let _ = handle.projector.stop_and_wait(None, None).await;
}

impl Actor for Directory {
    type Msg = Request;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _: ActorRef<Request>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let writers = WriterPool::new(arguments.writers_max.max(1));
        let (open, waiting, closed) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(State { arguments, writers, open, waiting, closed, uses: 0 })
    }

    async fn handle(
        &self,
        myself: ActorRef<Request>,
        request: Request,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match request {
            Request::Open(mailbox, reply) => {
                if state.closed.contains_key(&mailbox) {
                    let _ = reply.send(Err(OpenError("it is being erased".into())));
                    return Ok(());
                }
                state.uses += 1;
                let now = state.uses;
                if let Some((handle, used)) = state.open.get_mut(&mailbox) {
                    *used = now;
                    let _ = reply.send(Ok(handle.clone()));
                    return Ok(());
                }
                let waiting = state.waiting.entry(mailbox).or_default();
                waiting.push(reply);
                if waiting.len() == 1 {
                    state.make_room().await;
                    let arguments = state.arguments.clone();
                    tokio::task::spawn_blocking(move || {
                        let opened = Box::new(open(&arguments, mailbox));
                        let _ = myself.cast(Request::Ready(mailbox, opened));
                    });
                }
            }
            Request::List(reply) => {
                let open =
                    state.open.iter().map(|(mailbox, (handle, _))| (*mailbox, handle.clone()));
                // Nobody listens any more when the caller has gone.
                let _ = reply.send(open.collect());
            }
            Request::Peek(mailbox, reply) => {
                let _ = reply.send(state.open.get(&mailbox).map(|(handle, _)| handle.clone()));
            }
            Request::Ready(mailbox, opening) => {
                let opened = match *opening {
                    Ok(opening) => state.start(&myself, mailbox, opening).await,
                    Err(error) => Err(error),
                };
                if let Some(closers) = state.closed.get_mut(&mailbox) {
                    for reply in state.waiting.remove(&mailbox).unwrap_or_default() {
                        let _ = reply.send(Err(OpenError("it is being erased".into())));
                    }
                    let closers = std::mem::take(closers);
                    if let Ok(handle) = opened {
                        close(handle, &state.arguments.log_writer).await;
                    }
                    for reply in closers {
                        let _ = reply.send(());
                    }
                    return Ok(());
                }
                if let Ok(handle) = &opened {
                    state.open.insert(mailbox, (handle.clone(), state.uses));
                }
                for reply in state.waiting.remove(&mailbox).unwrap_or_default() {
                    let _ = reply.send(opened.clone());
                }
            }
            Request::Close(mailbox, reply) => {
                state.closed.entry(mailbox).or_default();
                if let Some((handle, _)) = state.open.remove(&mailbox) {
                    close(handle, &state.arguments.log_writer).await;
                }
                if state.waiting.contains_key(&mailbox) {
                    state.closed.entry(mailbox).or_default().push(reply);
                } else {
                    let _ = reply.send(());
                }
            }
            Request::Reopen(mailbox) => drop(state.closed.remove(&mailbox)),
            Request::Remove(mailbox, reply) => {
                let dir = mailbox_dir(&state.arguments.mailboxes_dir, mailbox);
                tokio::task::spawn_blocking(move || {
                    let removed = match std::fs::remove_dir_all(dir) {
                        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
                        other => other,
                    };
                    let _ = reply.send(removed);
                });
            }
            Request::CloseAll(reply) => {
                for (_, (handle, _)) in std::mem::take(&mut state.open) {
                    close(handle, &state.arguments.log_writer).await;
                }
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Request>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let dead = match &event {
            SupervisionEvent::ActorFailed(cell, error) => {
                tracing::error!(
                    "an actor of a mailbox failed, it is opened anew when used: {error}"
                );
                cell.get_id()
            }
            SupervisionEvent::ActorTerminated(cell, ..) => cell.get_id(),
            _ => return Ok(()),
        };
        let owner = state
            .open
            .iter()
            .find(|(_, (h, _))| h.actor.get_id() == dead || h.projector.get_id() == dead)
            .map(|(mailbox, _)| *mailbox);
        if let Some((handle, _)) = owner.and_then(|mailbox| state.open.remove(&mailbox)) {
            // What the other one still holds is durable; opening anew catches up from the log.
            close(handle, &state.arguments.log_writer).await;
        }
        Ok(())
    }
}
