//! The supervisor: starts the log writer, then the directory; stops them in reverse order.
//!
//! When the log writer dies, requests on their way to the disk are lost and mailboxes have given
//! out positions that will never be written: writing stops, health says so, searches go on. When
//! the directory dies the process can no longer find mailboxes: that too shows in health.

use std::path::PathBuf;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

use super::admission::ByteBudget;
use super::directory::{self, Directory, MailboxHandle, OpenError};
use super::health::Health;
use super::log_writer::{self, LogWriter};
use crate::clock::SharedClock;
use crate::events::Log;
use crate::ids::MailboxNo;

/// What the actors need.
#[derive(Clone)]
pub struct Actors {
    /// The truth.
    pub log: Arc<Log>,
    /// Where mailboxes have their directories.
    pub mailboxes_dir: PathBuf,
    /// Time and randomness.
    pub clock: SharedClock,
    /// Mailboxes kept open.
    pub open_max: usize,
    /// Text writers open at once.
    pub writers_max: usize,
    /// Bytes of mail on the way at once.
    pub budget_bytes: usize,
}

/// Running actors.
#[derive(Clone)]
pub struct Running {
    supervisor: ActorRef<Never>,
    directory: ActorRef<directory::Request>,
    log_writer: ActorRef<log_writer::Request>,
    /// Health, shared.
    pub health: Arc<Health>,
    /// The byte budget, shared.
    pub budget: ByteBudget,
}

/// The supervisor takes no requests.
pub enum Never {}

struct Supervisor;

struct State {
    health: Arc<Health>,
    directory: ActorRef<directory::Request>,
    log_writer: ActorRef<log_writer::Request>,
}

impl Actor for Supervisor {
    type Msg = Never;
    type State = State;
    type Arguments = (Actors, Arc<Health>, oneshot::Sender<Children>);

    async fn pre_start(
        &self,
        myself: ActorRef<Never>,
        (actors, health, started): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let arguments = (Arc::clone(&actors.log), Arc::clone(&health));
        let (log_writer, _) =
            LogWriter::spawn_linked(None, LogWriter, arguments, myself.get_cell()).await?;
        let arguments = directory::Arguments {
            log: actors.log,
            mailboxes_dir: actors.mailboxes_dir,
            log_writer: log_writer.clone(),
            clock: actors.clock,
            open_max: actors.open_max,
            writers_max: actors.writers_max,
        };
        let (directory, _) =
            Directory::spawn_linked(None, Directory, arguments, myself.get_cell()).await?;
        let _ = started.send((directory.clone(), log_writer.clone()));
        Ok(State { health, directory, log_writer })
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Never>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(cell, _) = event {
            let who = if cell.get_id() == state.log_writer.get_id() {
                "the log writer"
            } else if cell.get_id() == state.directory.get_id() {
                "the directory"
            } else {
                return Ok(());
            };
            tracing::error!("{who} died");
            state.health.fail_writes(&format!("{who} died"));
        }
        Ok(())
    }
}

type Children = (ActorRef<directory::Request>, ActorRef<log_writer::Request>);

impl Actors {
    /// Starts everything.
    ///
    /// # Errors
    /// When an actor cannot be started.
    pub async fn start(self) -> Result<Running, OpenError> {
        let health = Arc::<Health>::default();
        let budget = ByteBudget::new(self.budget_bytes);
        let (started, children) = oneshot::channel();
        let arguments = (self, Arc::clone(&health), started);
        let (supervisor, _) = Supervisor::spawn(None, Supervisor, arguments)
            .await
            .map_err(|e| OpenError(e.to_string()))?;
        let (directory, log_writer) =
            children.await.map_err(|_| OpenError("no children".into()))?;
        Ok(Running { supervisor, directory, log_writer, health, budget })
    }
}

impl Running {
    /// A mailbox, woken if need be.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn mailbox(&self, mailbox: MailboxNo) -> Result<MailboxHandle, OpenError> {
        let gone = || OpenError("the directory is gone; restart".into());
        let (reply, opened) = oneshot::channel();
        self.directory.cast(directory::Request::Open(mailbox, reply)).map_err(|_| gone())?;
        opened.await.map_err(|_| gone())?
    }

    /// A mailbox that is open already; asking wakes none and counts as no use.
    ///
    /// # Errors
    /// [`OpenError`] when the directory is gone.
    pub async fn peek(&self, mailbox: MailboxNo) -> Result<Option<MailboxHandle>, OpenError> {
        let gone = || OpenError("the directory is gone; restart".into());
        let (reply, found) = oneshot::channel();
        self.directory.cast(directory::Request::Peek(mailbox, reply)).map_err(|_| gone())?;
        found.await.map_err(|_| gone())
    }

    /// Every mailbox that is open.
    ///
    /// # Errors
    /// [`OpenError`] when the directory is gone.
    pub async fn open(&self) -> Result<Vec<(MailboxNo, MailboxHandle)>, OpenError> {
        let gone = || OpenError("the directory is gone; restart".into());
        let (reply, open) = oneshot::channel();
        self.directory.cast(directory::Request::List(reply)).map_err(|_| gone())?;
        open.await.map_err(|_| gone())
    }

    /// Closes a mailbox and opens it no more.
    ///
    /// # Errors
    /// [`OpenError`] when the directory is gone.
    pub async fn close(&self, mailbox: MailboxNo) -> Result<(), OpenError> {
        let gone = || OpenError("the directory is gone; restart".into());
        let (reply, closed) = oneshot::channel();
        self.directory.cast(directory::Request::Close(mailbox, reply)).map_err(|_| gone())?;
        closed.await.map_err(|_| gone())
    }

    /// Takes [`Running::close`] back: the mailbox was not erased.
    pub fn reopen(&self, mailbox: MailboxNo) {
        // Without a directory nothing is opened anyway.
        let _ = self.directory.cast(directory::Request::Reopen(mailbox));
    }

    /// Removes the projections of a mailbox that was erased whole.
    ///
    /// # Errors
    /// [`OpenError`] when they cannot be removed.
    pub async fn remove(&self, mailbox: MailboxNo) -> Result<(), OpenError> {
        let gone = || OpenError("the directory is gone; restart".into());
        let (reply, removed) = oneshot::channel();
        self.directory.cast(directory::Request::Remove(mailbox, reply)).map_err(|_| gone())?;
        removed.await.map_err(|_| gone())?.map_err(|e| OpenError(e.to_string()))
    }

    /// Stops everything: what was handed in becomes durable and is applied first.
    pub async fn stop(self) {
        let (reply, drained) = oneshot::channel();
        if self.log_writer.cast(log_writer::Request::Drain(reply)).is_ok() {
            let _ = drained.await;
        }
        let (reply, closed) = oneshot::channel();
        if self.directory.cast(directory::Request::CloseAll(reply)).is_ok() {
            let _ = closed.await;
        }
        let _ = self.supervisor.stop_children_and_wait(None, None).await;
        let _ = self.supervisor.stop_and_wait(None, None).await;
    }
}
