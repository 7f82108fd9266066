//! The mailbox actor: the only writer of its stream.
//!
//! Wakes when a door hands it messages or a change. It decides (by [`super::decide`], from the
//! view and from what is acknowledged but not in the view yet), assigns positions, seals, and hands
//! the append to the log writer; the answer goes out when that is durable, and the events then go
//! to the projector. It does nothing heavier: reading and compressing happen before, applying
//! after. Callers are admitted before they send ([`super::admission`]).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use roaring::RoaringBitmap;
use tokio::sync::oneshot;

use super::admission::BytePermit;
use super::decide::{Arrival, Decision, Facts, LABELS_MAX, Recent, decide};
use super::erasure::Order;
use super::projector::Published;
use super::{log_writer, projector};
use crate::clock::SharedClock;
use crate::events::event::{HoldSet, MessageIngested, MessagePlaced, Placement};
use crate::events::log::{SealedAppend, Sealer};
use crate::events::{Event, LogError, Receipt, Status};
use crate::ids::{HoldId, MessageId, Ordinal, Seq};
use crate::mail::Message;
use crate::mail::message::ReadHints;
use crate::projections::Applicable;
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::{CatalogError, CatalogView};

/// A message on its way in.
pub struct Incoming {
    /// What identifies it and where it stands.
    pub arrival: Arrival,
    /// Raw bytes, compressed; empty when the message is believed to be known.
    pub compressed: Vec<u8>,
    /// The message, read.
    pub message: Option<Arc<Message>>,
    /// What was known besides the bytes.
    pub hints: ReadHints,
    /// Its part of the byte budget.
    pub permit: Option<BytePermit>,
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Stored and durable.
    Stored {
        /// Its identifier.
        id: MessageId,
        /// Its event.
        seq: Seq,
    },
    /// Already there.
    Duplicate {
        /// The identifier of the one that is there.
        id: MessageId,
        /// The event that added folders or labels, if any were new.
        placed: Option<Seq>,
    },
    /// Believed to be known by its bytes, and is not: read it and send it again.
    NotRead,
    /// Erased before, and asked to be refused when it comes again.
    Suppressed,
}

/// Answer of a mailbox.
pub type Reply<T> = oneshot::Sender<Result<T, MailboxError>>;

/// Why a mailbox did not do it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MailboxError {
    /// Durable writing has failed; nothing is accepted.
    #[error("writing has stopped: {0}; look at the disk and restart")]
    WritesStopped(String),
    /// A store could not be read or a key could not be made.
    #[error("{0}")]
    Store(String),
    /// The change names a message that the mailbox does not hold.
    #[error("no such message in this mailbox")]
    NoSuchMessage,
    /// The change ends a hold that is not set.
    #[error("no such hold in this mailbox")]
    NoSuchHold,
    /// It is being erased, or its projections are being opened again.
    #[error("the mailbox takes nothing in just now; try again in a moment")]
    Unready,
}

impl From<LogError> for MailboxError {
    fn from(error: LogError) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<CatalogError> for MailboxError {
    fn from(error: CatalogError) -> Self {
        Self::Store(error.to_string())
    }
}

/// Requests to a mailbox.
pub enum Request {
    /// Take these messages in, in this order.
    Ingest(Vec<Incoming>, Reply<Vec<Outcome>>),
    /// Record this fact about messages that are there.
    Record(Event, Reply<Seq>),
    /// Take nothing in any more: the mailbox is going to be erased whole. False when a hold forbids
    /// it; then nothing changes.
    Seal(Reply<bool>),
    /// Erase these messages but those under a hold.
    Erase(Box<Order>, Reply<Receipt>),
}

/// See the module.
pub struct MailboxActor;

/// What a mailbox is started with.
pub struct Arguments {
    /// The writing end of its stream.
    pub sealer: Sealer,
    /// The ordinal of its next message.
    pub next_ordinal: Ordinal,
    /// Messages that were erased.
    pub erased: RoaringBitmap,
    /// Holds in force.
    pub holds: BTreeMap<HoldId, HoldSet>,
    /// Keyed digests of content that is refused when it comes again.
    pub suppressed: HashSet<[u8; 16]>,
    /// Views of its projections.
    pub published: Published,
    /// Position of the last acknowledged event, shared with readers.
    pub acknowledged: Arc<AtomicU64>,
    /// Where appends go.
    pub log_writer: ActorRef<log_writer::Request>,
    /// Where durable events go.
    pub projector: ActorRef<projector::Request>,
    /// Time and randomness.
    pub clock: SharedClock,
}

/// State of the actor.
pub struct State {
    core: Option<Core>,
    published: Published,
    sealed: bool,
    acknowledged: Arc<AtomicU64>,
    log_writer: ActorRef<log_writer::Request>,
    projector: ActorRef<projector::Request>,
}

/// What a decision needs; moves to a blocking thread and back.
pub(super) struct Core {
    pub(super) sealer: Sealer,
    pub(super) next_ordinal: u32,
    pub(super) published: Published,
    pub(super) recent: Recent,
    pub(super) erased: RoaringBitmap,
    pub(super) holds: BTreeMap<HoldId, HoldSet>,
    pub(super) suppressed: HashSet<[u8; 16]>,
    pub(super) clock: SharedClock,
}

/// Everything one request leads to.
#[derive(Default)]
pub(super) struct Decided {
    pub(super) append: SealedAppend,
    pub(super) applicable: Vec<Applicable>,
    pub(super) permits: Vec<BytePermit>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) receipt: Option<Receipt>,
    pub(super) head: Seq,
}

struct Known<'k> {
    recent: &'k Recent,
    catalog: Option<&'k CatalogView>,
    erased: &'k RoaringBitmap,
}

impl Facts for Known<'_> {
    type Error = CatalogError;

    fn by_raw(&self, raw: &[u8; 16]) -> Result<Option<Ordinal>, CatalogError> {
        match (self.recent.by_raw(raw), self.catalog) {
            (Some(ordinal), _) => Ok(Some(ordinal)),
            // A view may be older than an erasure.
            (None, Some(catalog)) => {
                Ok(catalog.by_raw_key(raw)?.filter(|known| !self.erased.contains(known.0)))
            }
            (None, None) => Ok(None),
        }
    }

    fn by_message_id(&self, id: &[u8; 16]) -> Result<Vec<(Ordinal, [u8; 16])>, CatalogError> {
        let mut found = Vec::new();
        if let Some(catalog) = self.catalog {
            for ordinal in catalog.by_message_id_key(id)? {
                if self.erased.contains(ordinal) {
                    continue;
                }
                if let Some(content) = catalog.content_digest(Ordinal(ordinal))? {
                    found.push((Ordinal(ordinal), content));
                }
            }
        }
        found.extend_from_slice(self.recent.by_message_id(id));
        Ok(found)
    }

    fn is_placed(&self, ordinal: Ordinal, placement: &Placement) -> Result<bool, CatalogError> {
        if self.recent.is_placed(ordinal, placement) {
            return Ok(true);
        }
        self.catalog.map_or(Ok(false), |catalog| catalog.is_placed(ordinal, placement))
    }

    fn has_label(&self, ordinal: Ordinal, label: &str) -> Result<bool, CatalogError> {
        if self.recent.has_label(ordinal, label) {
            return Ok(true);
        }
        match self.catalog {
            Some(catalog) => Ok(catalog.with(Facet::Label, label.as_bytes())?.contains(ordinal.0)),
            None => Ok(false),
        }
    }
}

impl Core {
    fn ingest(&mut self, incoming: Vec<Incoming>) -> Result<Decided, MailboxError> {
        let view = self.published.borrow().clone();
        let seen = view.as_ref().map_or(Seq::ZERO, |v| v.seq());
        self.recent.forget_through(seen);
        let now_ms = self.clock.now_ms();
        let mut decided = Decided { head: self.sealer.head(), ..Decided::default() };
        for one in incoming {
            if self.is_suppressed(&one.arrival) {
                decided.outcomes.push(Outcome::Suppressed);
                continue;
            }
            let catalog = view.as_ref().map(|v| &v.catalog);
            let known = Known { recent: &self.recent, catalog, erased: &self.erased };
            let outcome = match decide(&known, &one.arrival)? {
                Decision::NotRead => Outcome::NotRead,
                Decision::Known { ordinal } => {
                    Outcome::Duplicate { id: self.id_of(catalog, ordinal)?, placed: None }
                }
                Decision::Place { ordinal, placements, labels } => {
                    let id = self.id_of(catalog, ordinal)?;
                    let event = Event::MessagePlaced(MessagePlaced { ordinal, placements, labels });
                    let seq = self.record(&mut decided, now_ms, event, None)?;
                    self.recent.add(seq, ordinal, one.arrival, None);
                    Outcome::Duplicate { id, placed: Some(seq) }
                }
                Decision::Store { message_id_conflict } => {
                    self.store(&mut decided, now_ms, one, message_id_conflict)?
                }
            };
            decided.outcomes.push(outcome);
        }
        decided.head = self.sealer.head();
        Ok(decided)
    }

    fn store(
        &mut self,
        decided: &mut Decided,
        now_ms: i64,
        one: Incoming,
        message_id_conflict: bool,
    ) -> Result<Outcome, MailboxError> {
        let ordinal = Ordinal(self.next_ordinal);
        let millis = u64::try_from(now_ms).unwrap_or(0);
        let id = MessageId::from_parts(millis, self.clock.random_bits());
        let mut labels = one.arrival.labels.clone();
        labels.truncate(LABELS_MAX);
        self.sealer.content(&mut decided.append, ordinal, &one.compressed)?;
        let event = Event::MessageIngested(MessageIngested {
            ordinal,
            id,
            placements: one.arrival.placements.clone(),
            labels,
            status: Status::Received,
            message_id_conflict,
            separator_ms: one.hints.separator_ms,
            file_ms: one.hints.file_ms,
            arrived_ms: one.hints.arrived_ms,
        });
        let seq = self.record(decided, now_ms, event, one.message)?;
        self.next_ordinal += 1;
        self.recent.add(seq, ordinal, one.arrival, Some(id));
        decided.permits.extend(one.permit);
        Ok(Outcome::Stored { id, seq })
    }

    pub(super) fn record(
        &mut self,
        decided: &mut Decided,
        now_ms: i64,
        event: Event,
        message: Option<Arc<Message>>,
    ) -> Result<Seq, MailboxError> {
        let seq = self.sealer.event(&mut decided.append, now_ms, &event)?;
        decided.applicable.push(Applicable { seq, event, message });
        Ok(seq)
    }

    fn id_of(
        &self,
        catalog: Option<&CatalogView>,
        ordinal: Ordinal,
    ) -> Result<MessageId, MailboxError> {
        if let Some(id) = self.recent.id(ordinal) {
            return Ok(id);
        }
        let id = catalog.map_or(Ok(None), |catalog| catalog.id(ordinal))?;
        id.ok_or(MailboxError::NoSuchMessage)
    }
}

/// How long a decision waits for projections that are being opened again.
const VIEW_WAIT: Duration = Duration::from_secs(60);

impl State {
    /// Whether something can be decided: without a view, known mail would be taken for new.
    async fn is_ready(&mut self) -> bool {
        if self.sealed {
            return false;
        }
        let seen = self.published.wait_for(Option::is_some);
        tokio::time::timeout(VIEW_WAIT, seen).await.is_ok_and(|seen| seen.is_ok())
    }

    /// Runs a decision where it may block, then hands its append on.
    async fn decide_with<T: Send + 'static>(
        &mut self,
        decide: impl FnOnce(&mut Core) -> Result<Decided, MailboxError> + Send + 'static,
        answer: impl FnOnce(&mut Decided) -> T,
        reply: Reply<T>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(mut core) = self.core.take() else {
            return Err("the decision before this one panicked".into());
        };
        let (core, decided) = tokio::task::spawn_blocking(move || {
            let decided = decide(&mut core);
            (core, decided)
        })
        .await?;
        let mut decided = match decided {
            Ok(decided) => decided,
            Err(error) => {
                let _ = reply.send(Err(error.clone()));
                if matches!(error, MailboxError::NoSuchMessage | MailboxError::NoSuchHold) {
                    self.core = Some(core);
                    return Ok(());
                }
                // Positions may have been given to events that will never be written: start over.
                return Err(error.into());
            }
        };
        self.core = Some(core);
        let answer = answer(&mut decided);
        let Decided { append, applicable, permits, head, .. } = decided;
        let acknowledged = Arc::clone(&self.acknowledged);
        let projector = self.projector.clone();
        let done: log_writer::Done = Box::new(move |result| match result {
            Ok(()) => {
                acknowledged.fetch_max(head.0, Ordering::SeqCst);
                if !applicable.is_empty() {
                    // A projector that is gone catches up from the log when it is started again.
                    let _ = projector.cast(projector::Request::Apply(applicable, permits));
                }
                let _ = reply.send(Ok(answer));
            }
            Err(why) => drop(reply.send(Err(MailboxError::WritesStopped(why)))),
        });
        Ok(self.log_writer.cast(log_writer::Request::Append(append, done))?)
    }
}

impl Actor for MailboxActor {
    type Msg = Request;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        _: ActorRef<Request>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let Arguments {
            sealer,
            next_ordinal,
            erased,
            holds,
            suppressed,
            published,
            acknowledged,
            log_writer,
            projector,
            clock,
        } = arguments;
        acknowledged.fetch_max(sealer.head().0, Ordering::SeqCst);
        let core = Core {
            sealer,
            next_ordinal: next_ordinal.0,
            published,
            recent: Recent::default(),
            erased,
            holds,
            suppressed,
            clock,
        };
        let published = core.published.clone();
        Ok(State {
            core: Some(core),
            published,
            sealed: false,
            acknowledged,
            log_writer,
            projector,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Request>,
        request: Request,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let Request::Seal(reply) = request {
            state.sealed = state.core.as_ref().is_some_and(|core| core.holds.is_empty());
            let _ = reply.send(Ok(state.sealed));
            return Ok(());
        }
        if !state.is_ready().await {
            match request {
                Request::Ingest(_, reply) => drop(reply.send(Err(MailboxError::Unready))),
                Request::Record(_, reply) => drop(reply.send(Err(MailboxError::Unready))),
                Request::Erase(_, reply) => drop(reply.send(Err(MailboxError::Unready))),
                Request::Seal(_) => {}
            }
            return Ok(());
        }
        match request {
            Request::Ingest(incoming, reply) => {
                let decide = move |core: &mut Core| core.ingest(incoming);
                state.decide_with(decide, |d| std::mem::take(&mut d.outcomes), reply).await
            }
            Request::Record(event, reply) => {
                state.decide_with(move |core| core.fact(event), |d| d.head, reply).await
            }
            Request::Seal(_) => Ok(()),
            Request::Erase(order, reply) => {
                let receipt = order.receipt.clone();
                let answer = |d: &mut Decided| d.receipt.take().unwrap_or(receipt);
                state.decide_with(move |core| core.erase(*order), answer, reply).await
            }
        }
    }
}
