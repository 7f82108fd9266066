//! The log: appends that are durable when they return, and reading them back.
//!
//! Called by the log writer (appends) and by anyone (reads); all calls block. Appends of many
//! mailboxes go down as one batch with one sync: fjall has no group commit of its own. After one
//! failed write the store is poisoned and every further write fails until a restart.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _,
};

use roaring::RoaringBitmap;
use tokio::sync::oneshot;

use super::codec::{self, ChainDigest, Recorded};
use super::key_store::KeyStore;
use super::receipt::Receipt;
use super::registry::{self, Identity, Registry, Tenant};
use super::seal::SealingKey;
use super::{Event, LogError, keys};
use crate::compress;
use crate::crash_point;
use crate::ids::{MailboxNo, Ordinal, Seq};

/// How long a closing waits for memtables to be written down.
const SETTLE_WAIT: Duration = Duration::from_secs(5);
/// Version byte in front of sealed content.
const CONTENT_VERSION: u8 = 1;
/// No message is larger; the doors refuse earlier.
pub const MESSAGE_BYTES_MAX: usize = 128 << 20;

/// Sizes of the store's buffers.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Block cache, bytes.
    pub cache_bytes: u64,
    /// Memtable of each keyspace before it is flushed, bytes.
    pub memtable_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { cache_bytes: 8 << 20, memtable_bytes: 8 << 20 }
    }
}

/// The event log, the content store and the keys of one data directory.
pub struct Log {
    db: Database,
    events: Keyspace,
    content: Keyspace,
    embeddings: Keyspace,
    registry: Keyspace,
    keys: KeyStore,
    dir: PathBuf,
    /// Dropped after the stores: whoever waits at the other end may open the directory again.
    _closed: Option<oneshot::Sender<()>>,
}

/// Everything one mailbox appends at once: all of it becomes durable, or none.
#[derive(Debug, Default)]
pub struct SealedAppend {
    keys: Vec<(MailboxNo, Ordinal, SealingKey)>,
    events: Vec<([u8; 12], Vec<u8>)>,
    contents: Vec<([u8; 8], Vec<u8>)>,
    /// Records of the registry that belong to the events.
    records: Vec<(Vec<u8>, Vec<u8>)>,
    /// Messages whose keys go.
    lost: Vec<(MailboxNo, RoaringBitmap)>,
}

impl SealedAppend {
    /// Adds a receipt: with it the keys of its messages go. An entry of the
    /// suppression list is added for each digest.
    pub fn erase(&mut self, receipt: &Receipt, suppressed: &[[u8; 16]]) {
        self.records.push(registry::receipt_record(receipt));
        for digest in suppressed {
            self.records.push(registry::suppressed_record(receipt.mailbox, digest));
        }
        self.lost.push((receipt.mailbox, receipt.ordinals.clone()));
    }
}

/// The writing end of one mailbox's stream: knows the head and the chain.
#[derive(Debug)]
pub struct Sealer {
    mailbox: MailboxNo,
    key: SealingKey,
    head: Seq,
    chain: ChainDigest,
}

impl Sealer {
    /// Position of the last event sealed.
    #[must_use]
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Adds an event to `append` and returns its position.
    ///
    /// # Errors
    /// [`LogError::NoRandomness`].
    pub fn event(
        &mut self,
        append: &mut SealedAppend,
        time_ms: i64,
        event: &Event,
    ) -> Result<Seq, LogError> {
        let seq = self.head.next();
        let envelope =
            codec::to_envelope(&self.key, self.mailbox, seq, time_ms, &self.chain, event)?;
        self.chain = codec::chain_digest(self.mailbox, seq, &envelope);
        self.head = seq;
        append.events.push((keys::event(self.mailbox, seq), envelope));
        Ok(seq)
    }

    /// Keyed digest of what identifies content, for the suppression list.
    #[must_use]
    pub fn suppression(&self, identifying: &[u8; 16]) -> [u8; 16] {
        self.key.digest(identifying)
    }

    /// Adds a message's raw bytes, already compressed by [`compress::compress`], to `append`.
    ///
    /// # Errors
    /// [`LogError::NoRandomness`].
    pub fn content(
        &self,
        append: &mut SealedAppend,
        ordinal: Ordinal,
        compressed: &[u8],
    ) -> Result<(), LogError> {
        let key = SealingKey::random()?;
        let place = content_place(self.mailbox, ordinal);
        let mut value = vec![CONTENT_VERSION];
        value.extend_from_slice(&key.seal(compressed, &place)?);
        append.contents.push((keys::message(self.mailbox, ordinal), value));
        append.keys.push((self.mailbox, ordinal, key));
        Ok(())
    }
}

fn content_place(mailbox: MailboxNo, ordinal: Ordinal) -> [u8; 9] {
    let mut place = [CONTENT_VERSION; 9];
    place[1..].copy_from_slice(&keys::message(mailbox, ordinal));
    place
}

impl Log {
    /// Opens or creates the truth below `dir`.
    ///
    /// # Errors
    /// [`LogError::InUse`] when another process holds it; otherwise what the stores say.
    pub fn open(dir: &Path, options: LogOptions) -> Result<Self, LogError> {
        let log_dir = dir.join("log");
        std::fs::create_dir_all(&log_dir)
            .map_err(|source| LogError::Io { path: log_dir.clone(), source })?;
        let keys = KeyStore::open(&dir.join("keys"))?;
        let db = Database::builder(&log_dir)
            .cache_size(options.cache_bytes)
            .worker_threads(1)
            .open()
            .map_err(|e| match e {
                fjall::Error::Locked => LogError::InUse(log_dir.clone()),
                other => other.into(),
            })?;
        let small = || {
            KeyspaceCreateOptions::default()
                .data_block_size_policy(BlockSizePolicy::all(16 << 10))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
                .max_memtable_size(options.memtable_bytes)
        };
        // Content is compressed and sealed before it gets here: compressing noise costs time only.
        let sealed =
            || small().data_block_compression_policy(CompressionPolicy::all(CompressionType::None));
        let events = db.keyspace("events", small)?;
        let content = db.keyspace("content", sealed)?;
        let embeddings = db.keyspace("embeddings", sealed)?;
        let registry = db.keyspace("registry", small)?;
        let dir = dir.to_owned();
        let log = Self { db, events, content, embeddings, registry, keys, dir, _closed: None };
        log.finish_losing()?;
        Ok(log)
    }

    /// Resolves (to an error) when the last owner has let go and the stores are closed.
    pub fn closed(&mut self) -> oneshot::Receiver<()> {
        let (closing, closed) = oneshot::channel();
        self._closed = Some(closing);
        closed
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes all of `appends` durable in one batch: keys first, then events and content.
    ///
    /// # Errors
    /// What the stores say; after an error nothing of the batch may be acknowledged and no
    /// further append may be tried.
    pub fn append(&self, appends: &[SealedAppend]) -> Result<(), LogError> {
        if appends.iter().all(|a| a.events.is_empty() && a.records.is_empty()) {
            return Ok(());
        }
        if appends.iter().any(|a| !a.keys.is_empty()) {
            self.keys.put_messages(
                appends.iter().flat_map(|a| a.keys.iter().map(|(m, o, k)| (*m, *o, k))),
            )?;
        }
        crash_point::reach("append keys stored");
        crash_point::write()
            .map_err(|source| LogError::Io { path: self.dir.join("log"), source })?;
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for append in appends {
            for (key, value) in &append.contents {
                batch.insert(&self.content, &key[..], &value[..]);
            }
            for (key, value) in &append.events {
                batch.insert(&self.events, &key[..], &value[..]);
            }
            for (key, value) in &append.records {
                batch.insert(&self.registry, &key[..], &value[..]);
            }
        }
        batch.commit()?;
        crash_point::reach("append batch written");
        for (mailbox, ordinals) in appends.iter().flat_map(|a| &a.lost) {
            // Between the batch and this a crash may come: the next opening loses them.
            self.keys.lose(*mailbox, ordinals)?;
            crash_point::reach("append keys lost");
        }
        Ok(())
    }

    /// Position of the last event; [`Seq::ZERO`] when there is none.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn head(&self, mailbox: MailboxNo) -> Result<Seq, LogError> {
        match self.events.prefix(keys::mailbox(mailbox)).next_back() {
            Some(guard) => Ok(keys::seq_of(&guard.key()?).unwrap_or_default()),
            None => Ok(Seq::ZERO),
        }
    }

    /// The writing end of a mailbox, standing at the head. There must be only one.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`] or [`LogError::Store`].
    pub fn sealer(&self, mailbox: MailboxNo) -> Result<Sealer, LogError> {
        let key = self.keys.mailbox(mailbox)?;
        let (head, chain) = match self.events.prefix(keys::mailbox(mailbox)).next_back() {
            Some(guard) => {
                let (at, envelope) = guard.into_inner()?;
                let seq = keys::seq_of(&at).unwrap_or_default();
                (seq, codec::chain_digest(mailbox, seq, &envelope))
            }
            None => (Seq::ZERO, ChainDigest::default()),
        };
        Ok(Sealer { mailbox, key, head, chain })
    }

    /// Events after `after` up to `through`, in order, as they stood when the call was made.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`]; each item may fail with [`LogError::DamagedEvent`].
    pub fn read(
        &self,
        mailbox: MailboxNo,
        after: Seq,
        through: Seq,
    ) -> Result<impl Iterator<Item = Result<Recorded, LogError>> + use<>, LogError> {
        let key = self.keys.mailbox(mailbox)?;
        // An empty range, not one that ends before it begins.
        let through = through.max(after.next());
        let range = keys::event(mailbox, after.next())..=keys::event(mailbox, through);
        let mut expected = after;
        Ok(self.db.snapshot().range(&self.events, range).map(move |guard| {
            let (at, envelope) = guard.into_inner()?;
            let seq = keys::seq_of(&at).unwrap_or_default();
            expected = expected.next();
            if seq != expected {
                let what = "an event before it is missing";
                return Err(LogError::DamagedEvent { mailbox, seq, what });
            }
            codec::from_envelope(&key, mailbox, seq, &envelope)
        }))
    }

    /// Raw bytes of a message.
    ///
    /// # Errors
    /// [`LogError::Erased`] when its key is gone, [`LogError::DamagedContent`] when it does not
    /// open.
    pub fn raw(&self, mailbox: MailboxNo, ordinal: Ordinal) -> Result<Vec<u8>, LogError> {
        let damaged = |what| LogError::DamagedContent { mailbox, ordinal, what };
        let key = self.keys.message(mailbox, ordinal)?;
        let value =
            self.content.get(keys::message(mailbox, ordinal))?.ok_or_else(|| damaged("missing"))?;
        let (version, sealed) = value.split_first().ok_or_else(|| damaged("empty"))?;
        if *version != CONTENT_VERSION {
            return Err(damaged("written by a newer version of the program"));
        }
        let compressed = key
            .open(sealed, &content_place(mailbox, ordinal))
            .ok_or_else(|| damaged("seal broken"))?;
        compress::decompress(&compressed, MESSAGE_BYTES_MAX)
            .map_err(|_| damaged("does not decompress"))
    }

    /// All tenants and identities.
    ///
    /// # Errors
    /// [`LogError::Store`] or [`LogError::DamagedRegistry`].
    pub fn registry(&self) -> Result<Registry, LogError> {
        let mut registry = Registry::default();
        for guard in self.registry.iter() {
            let (key, value) = guard.into_inner()?;
            registry.load(&key, &value)?;
        }
        Ok(registry)
    }

    /// Stores a tenant durably.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn put_tenant(&self, tenant: &Tenant) -> Result<(), LogError> {
        self.put_record(registry::tenant_record(tenant))
    }

    /// Stores an identity durably, with a fresh key for its mailbox when it has none yet.
    ///
    /// # Errors
    /// [`LogError::Store`], [`LogError::Keys`] or [`LogError::NoRandomness`].
    pub fn put_identity(&self, identity: &Identity) -> Result<(), LogError> {
        match self.keys.mailbox(identity.mailbox) {
            Err(LogError::MailboxKeyGone(_)) => {
                self.keys.put_mailbox(identity.mailbox, &SealingKey::random()?)?;
            }
            other => {
                other?;
            }
        }
        self.put_record(registry::identity_record(identity))
    }

    fn put_record(&self, (key, value): (Vec<u8>, Vec<u8>)) -> Result<(), LogError> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.registry, key, value);
        Ok(batch.commit()?)
    }

    /// Writes the memtables to their tables, so that the next opening has little to recover and a
    /// full journal is dropped. A convenience, so it waits only so long: on a full disk fjall would
    /// try for ever, and the journal holds everything anyway.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn settle(&self) -> Result<(), LogError> {
        let keyspaces = [&self.registry, &self.events, &self.content, &self.embeddings];
        for keyspace in keyspaces {
            keyspace.rotate_memtable()?;
        }
        let deadline = Instant::now() + SETTLE_WAIT;
        while keyspaces.iter().any(|k| k.sealed_memtable_count() > 0) && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(())
    }
}

#[path = "log_backup.rs"]
mod log_backup;
#[path = "log_check.rs"]
mod log_check;
#[path = "log_embeddings.rs"]
mod log_embeddings;
#[path = "log_erasure.rs"]
mod log_erasure;
#[path = "log_journal.rs"]
mod log_journal;
pub use log_backup::Copied;
pub use log_check::BrokenLink;
pub use log_embeddings::SpaceName;
#[cfg(test)]
#[path = "log_test.rs"]
mod log_test;
