//! The use cases, in process: what the command line and HTTP call, and what a host program embeds.
//!
//! ```no_run
//! # async fn example() -> Result<(), postrider::app::Error> {
//! use postrider::app::Postrider;
//! use postrider::config::Config;
//! use postrider::search::SearchRequest;
//!
//! let config = Config { data_dir: "mail-data".into(), ..Config::default() };
//! let postrider = Postrider::open(config).await?;
//! let account = postrider.import("main", &["inbox.mbox".into()], Default::default()).await?;
//! println!("{} stored, {} already there", account.stored, account.already_there);
//! let request = SearchRequest { q: "from:ada boiler".into(), ..SearchRequest::default() };
//! for hit in postrider.search("main", &request).await?.hits {
//!     println!("{} {}", hit.date, hit.subject.unwrap_or_default());
//! }
//! postrider.close().await;
//! # Ok(())
//! # }
//! ```

mod backup;
mod erase;
mod error;
mod history;
mod holds;
mod import;
mod ingest;
mod labels;
mod model;
mod offline;
mod purge;
mod rebuild;
mod receipts;
mod selection;
mod semantic;
mod show;
mod status;
mod verify;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::oneshot;

pub use backup::{BackedUp, Compacted, ErasureToRepeat, Restored, erasures_of, restore};
pub use erase::{ErasePreview, EraseRequest};
pub use error::{Error, Fault};
pub use history::{EVENTS_MAX, EventOut, LogStats};
pub use holds::{HOLD_REASON_CHARS_MAX, HoldOut};
pub use import::{Account, ImportFailure, ImportOptions, ImportProgress};
pub use ingest::{IngestOutcome, IngestRequest};
pub use labels::{LabelChange, LabelOutcome};
pub use model::{ModelKind, ModelOut, add_model, models};
pub use offline::search_closed;
pub use rebuild::Rebuilt;
pub use receipts::ReceiptOut;
pub use selection::{SELECTED_IDS_MAX, Selection};
pub use semantic::{
    EmbedOptions, EmbedProgress, EmbedStatus, Embedded, Estimate, Pruned, SpaceStatus, SpacesOut,
};
pub use show::{AttachmentOut, ShownMessage};
pub use status::{Health, MailboxStatus, Status};
pub use verify::{Finding, Verified, VerifyProgress};

use crate::actors::{Actors, MailboxHandle, Running, projector};
use crate::clock::{SharedClock, SystemClock};
use crate::config::Config;
use crate::events::event::MailboxConfigured;
use crate::events::registry::{Identity, Registry, Tenant};
use crate::events::{Event, Log, LogOptions};
use crate::ids::{IdentityId, Seq, TenantId};
use crate::projections::view::View;
use crate::search::{MailboxOwner, SearchRequest, SearchResponse};

/// Name of the mailbox that is used when none is named.
pub const MAILBOX_DEFAULT: &str = "main";
/// Longest name of a mailbox, characters.
pub const MAILBOX_NAME_CHARS_MAX: usize = 64;

/// How long closing waits for other owners of the log.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// How long an opening waits for searches of a closed directory.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// An open data directory with its actors. Cheap to clone; close one of the clones to end it.
#[derive(Clone)]
pub struct Postrider {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    clock: SharedClock,
    log: Arc<Log>,
    running: Running,
    registry: RwLock<Registry>,
    log_closed: Mutex<Option<oneshot::Receiver<()>>>,
    purges: purge::Purges,
    semantic: semantic::Semantic,
    /// Held as long as the directory is open.
    lock: File,
}

impl Inner {
    fn truth(&self) -> PathBuf {
        self.config.data_dir.join("truth")
    }
}

/// Takes the data directory for this process alone.
fn lock(data_dir: &Path) -> Result<File, Error> {
    let io = |source| Error::Io { path: data_dir.to_owned(), source };
    if !data_dir.exists() {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::create_dir_all(data_dir).map_err(io)?;
        // Indexes hold mail in clear: nobody else looks in.
        std::fs::set_permissions(data_dir, std::fs::Permissions::from_mode(0o700)).map_err(io)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(data_dir.join("LOCK"))
        .map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => wait_for_searches(data_dir, file),
        Err(std::fs::TryLockError::Error(source)) => Err(io(source)),
    }
}

/// A closed directory is held by searches at most, for milliseconds each; an open one for long.
fn wait_for_searches(data_dir: &Path, file: File) -> Result<File, Error> {
    let in_use = || Error::InUse(data_dir.to_owned());
    if !offline::is_closed(data_dir) {
        return Err(in_use());
    }
    let (give, locked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let taken = file.lock().map(|()| file);
        // Nobody listens any more when it took too long: the lock is let go with the file.
        let _ = give.send(taken);
    });
    match locked.recv_timeout(LOCK_WAIT) {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(source)) => Err(Error::Io { path: data_dir.to_owned(), source }),
        Err(_) => Err(in_use()),
    }
}

impl Postrider {
    /// Opens or creates a data directory.
    ///
    /// # Errors
    /// [`Error::InUse`] when another process holds it; otherwise what its stores say.
    pub async fn open(config: Config) -> Result<Self, Error> {
        Self::open_with_clock(config, Arc::new(SystemClock)).await
    }

    /// [`Postrider::open`] with time and randomness of the caller's.
    ///
    /// # Errors
    /// As [`Postrider::open`].
    pub async fn open_with_clock(config: Config, clock: SharedClock) -> Result<Self, Error> {
        config.validate()?;
        let (dir, settings) = (config.data_dir.clone(), config.clone());
        let (held, log, registry, receipts, closed, semantic) = blocking(move || {
            let held = lock(&dir)?;
            offline::forget(&dir)?;
            let mut log = Log::open(&dir.join("truth"), LogOptions::default())?;
            let registry = log.registry()?;
            let receipts = log.receipts()?;
            let closed = log.closed();
            let semantic = semantic::Semantic::new(&settings, &log)?;
            Ok::<_, Error>((held, log, registry, receipts, closed, semantic))
        })
        .await??;
        let log = Arc::new(log);
        let running = Actors {
            log: Arc::clone(&log),
            mailboxes_dir: config.data_dir.join("mailboxes"),
            clock: Arc::clone(&clock),
            open_max: config.open_mailboxes_max,
            writers_max: config.text_writers_max,
            budget_bytes: config.ingest_budget_bytes,
        }
        .start()
        .await?;
        let registry = RwLock::new(registry);
        let log_closed = Mutex::new(Some(closed));
        let purges = purge::Purges::default();
        let inner = Inner {
            config,
            clock,
            log,
            running,
            registry,
            log_closed,
            purges,
            semantic,
            lock: held,
        };
        let postrider = Self { inner: Arc::new(inner) };
        postrider.purge_unfinished(&receipts);
        Ok(postrider)
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Stops everything in order; what was acknowledged is durable, what was applied is committed.
    ///
    /// Other clones must be gone or idle: the directory is free for another process when the last
    /// of them is, or after ten seconds at the latest this returns and leaves them to it.
    pub async fn close(self) {
        let inner = self.inner;
        inner.semantic.stop();
        inner.purges.settle().await;
        inner.running.clone().stop().await;
        let closed = inner.log_closed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let truth = inner.truth();
        let lock = inner.lock.try_clone();
        let noted = blocking(move || {
            inner.semantic.close();
            offline::remember(&inner)
        });
        let noted = noted.await;
        let noted = matches!(noted, Ok(Ok(())));
        if !noted {
            tracing::warn!("the next one-shot search will open the whole directory");
        }
        let Some(closed) = closed else { return };
        // The sender says nothing; that it is gone says that the log is closed.
        let closed = tokio::time::timeout(CLOSE_WAIT, closed).await.is_ok();
        if let (true, true, Ok(lock)) = (noted, closed, lock) {
            let retired = blocking(move || {
                let retired = Log::retire_journal(&truth);
                drop(lock);
                retired
            });
            if !matches!(retired.await, Ok(Ok(_))) {
                tracing::warn!("the journal stays until the next closing");
            }
        }
    }

    fn registry(&self) -> Registry {
        self.inner.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a mailbox out of what doors find.
    fn forget(&self, identity: &Identity) {
        let mut registry = self.inner.registry.write().unwrap_or_else(PoisonError::into_inner);
        registry.identities.retain(|known| known.id != identity.id);
        registry.erased.push(identity.mailbox);
    }

    /// All mailboxes, in order of their identifiers.
    #[must_use]
    pub fn identities(&self) -> Vec<Identity> {
        self.registry().identities
    }

    /// A mailbox by identity or name.
    ///
    /// # Errors
    /// [`Error::NoSuchMailbox`].
    pub fn identity(&self, id_or_name: &str) -> Result<Identity, Error> {
        self.registry().identity(id_or_name).cloned().ok_or(Error::NoSuchMailbox)
    }

    /// A mailbox by name, made when it does not exist yet, with a tenant on first use.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that cannot be one; otherwise what the store says.
    pub async fn ensure_identity(&self, name: &str) -> Result<Identity, Error> {
        if let Ok(known) = self.identity(name) {
            return Ok(known);
        }
        let chars = name.chars().count();
        let steers = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let plain = !name.chars().any(|c| c.is_control() || steers(c) || c == '/' || c == '\\');
        if !(1..=MAILBOX_NAME_CHARS_MAX).contains(&chars)
            || !plain
            || name.starts_with("idn_")
            || name.chars().all(|c| c == '.')
            || name.trim() != name
        {
            return Err(Error::Invalid {
                path: "mailbox",
                message: format!(
                    "must be 1 to {MAILBOX_NAME_CHARS_MAX} characters without slashes, controls, \
                     marks of writing direction or blanks around it, not dots alone, and not \
                     begin with idn_"
                ),
            });
        }
        let inner = Arc::clone(&self.inner);
        let name = name.to_owned();
        blocking(move || {
            let mut registry = inner.registry.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = registry.identity(&name) {
                return Ok(known.clone());
            }
            let created_ms = inner.clock.now_ms();
            let millis = u64::try_from(created_ms).unwrap_or(0);
            let tenant = match registry.tenants.first() {
                Some(tenant) => tenant.id,
                None => {
                    let tenant = Tenant {
                        id: TenantId::from_parts(millis, inner.clock.random_bits()),
                        name: "default".into(),
                        time_zone: inner.config.time_zone.clone(),
                        created_ms,
                    };
                    inner.log.put_tenant(&tenant)?;
                    registry.tenants.push(tenant.clone());
                    tenant.id
                }
            };
            let identity = Identity {
                id: IdentityId::from_parts(millis, inner.clock.random_bits()),
                tenant,
                name,
                mailbox: registry.next_mailbox(),
                created_ms,
            };
            inner.log.put_identity(&identity)?;
            registry.identities.push(identity.clone());
            registry.identities.sort_by_key(|i| i.id);
            Ok(identity)
        })
        .await?
    }

    /// Declares the owner's addresses: mail from them counts as outbound.
    ///
    /// # Errors
    /// [`Error::Invalid`] for something that is no address; otherwise what the mailbox says.
    pub async fn configure(&self, mailbox: &str, own: &[String]) -> Result<Seq, Error> {
        let own_addresses = own
            .iter()
            .map(|address| crate::mail::address_normal(address))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::Invalid {
                path: "address",
                message: "must be an address like ada@example.org".into(),
            })?;
        let event = Event::MailboxConfigured(MailboxConfigured { own_addresses });
        self.record(mailbox, event).await
    }

    fn time_zone(&self, identity: &Identity) -> jiff::tz::TimeZone {
        let registry = self.registry();
        let name = registry.tenant_of(identity).map_or("UTC", |t| t.time_zone.as_str());
        jiff::tz::TimeZone::get(name).unwrap_or(jiff::tz::TimeZone::UTC)
    }

    async fn handle(&self, identity: &Identity) -> Result<MailboxHandle, Error> {
        Ok(self.inner.running.mailbox(identity.mailbox).await?)
    }

    /// A view that holds everything acknowledged before this call.
    async fn view(&self, handle: &MailboxHandle) -> Result<Arc<View>, Error> {
        let head = handle.head();
        let mut published = handle.published.clone();
        let current = |view: &Option<Arc<View>>| view.as_ref().is_some_and(|v| v.seq() >= head);
        if !current(&published.borrow()) {
            handle.projector.cast(projector::Request::Flush).map_err(|_| Error::Gone)?;
        }
        let waited_ms = self.inner.config.view_wait_ms;
        let view =
            tokio::time::timeout(Duration::from_millis(waited_ms), published.wait_for(current))
                .await
                .map_err(|_| Error::Timeout { waited_ms })?
                .map_err(|_| Error::Gone)?
                .clone();
        view.ok_or(Error::Gone)
    }

    /// Searches a mailbox; sees everything acknowledged before the call.
    ///
    /// # Errors
    /// [`Error::Query`] and [`Error::Invalid`] for what was asked, [`Error::Timeout`] when the
    /// index does not catch up.
    pub async fn search(
        &self,
        mailbox: &str,
        request: &SearchRequest,
    ) -> Result<SearchResponse, Error> {
        request.validate()?;
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let zone = self.time_zone(&identity);
        let now_ms = self.inner.clock.now_ms();
        let owner = MailboxOwner { identity: identity.id };
        let request = request.clone();
        let aids = self.aids(&identity, &request).await?;
        let answer =
            blocking(move || crate::search::search(&view, &owner, &request, &zone, now_ms, &aids));
        let answer = answer.await?.map_err(Error::from);
        if matches!(answer, Err(Error::Projection(_))) {
            handle.distrusted.store(true, std::sync::atomic::Ordering::SeqCst);
        }
        answer
    }

    /// Writes canonical text of both projections of a mailbox: equal for equal content.
    ///
    /// # Errors
    /// [`Error::Output`] when the writer fails.
    pub async fn dump(&self, mailbox: &str, out: impl Write + Send + 'static) -> Result<(), Error> {
        let handle = self.handle(&self.identity(mailbox)?).await?;
        let view = self.view(&handle).await?;
        blocking(move || {
            let mut out = Receiving { out, failed: None };
            let dumped = view.catalog.dump(&mut out).map_err(Error::from).and_then(|()| {
                view.text.dump(&mut out).map_err(crate::projections::ProjectionError::from)?;
                out.flush().map_err(Error::Output)
            });
            // The dumps report a failed writer as their own failure.
            out.failed.map_or(dumped, |failed| Err(Error::Output(failed)))
        })
        .await?
    }
}

/// A writer that remembers that it failed, and how.
struct Receiving<W> {
    out: W,
    failed: Option<std::io::Error>,
}

impl<W> Receiving<W> {
    fn note<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for Receiving<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.out.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.out.flush();
        self.note(done)
    }
}

/// Runs what may block where it may.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Gone)
}
