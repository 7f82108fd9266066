//! The key store: one random key per mailbox and per message, in an LMDB environment of its own.
//!
//! A key is durable before the event that needs it, so a crash in between leaves at most a key
//! nobody uses. Losing a key is erasure. Layout in [`super::keys`].

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, WithoutTls};
use roaring::RoaringBitmap;

use super::seal::SealingKey;
use super::{LogError, keys};
use crate::crash_point;
use crate::ids::{MailboxNo, Ordinal};

/// Address space reserved for the key store: about 300 million keys. The file grows as needed.
const MAP_BYTES: usize = 16 << 30;

/// Name of the copy that takes the place of the store.
const COPY: &str = "data.mdb.copy";

/// Keys of mailboxes and messages.
pub struct KeyStore {
    dir: PathBuf,
    /// `None` for the moment in which a copy takes the store's place.
    open: RwLock<Option<Store>>,
}

struct Store {
    env: Env<WithoutTls>,
    keys: Database<'static, Bytes, Bytes>,
}

fn options() -> EnvOpenOptions<WithoutTls> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_BYTES).max_dbs(1);
    options
}

impl Store {
    fn open(path: &Path, flags: EnvFlags) -> Result<Self, LogError> {
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps others out")]
        let env = unsafe { options().flags(flags).open(path)? };
        let wtxn = env.write_txn()?;
        let keys = env
            .clone()
            .create_databases_and_commit(wtxn, |opener, wtxn| {
                opener
                    .create_database::<Bytes, Bytes>(wtxn, None)
                    .map(CommitOrAbort::<_, ()>::Commit)
            })
            .map(CommitOrAbort::unwrap_commit)?;
        Ok(Self { env, keys })
    }
}

impl KeyStore {
    /// Opens or creates the store in `dir`.
    ///
    /// # Errors
    /// [`LogError::Io`] or [`LogError::Keys`].
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        let io = |source| LogError::Io { path: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(io)?;
        // Left behind when a compaction was interrupted: it may hold keys that are erased since.
        match std::fs::remove_file(dir.join(COPY)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
            _ => {}
        }
        let store = Store::open(dir, EnvFlags::empty())?;
        Ok(Self { dir: dir.to_owned(), open: RwLock::new(Some(store)) })
    }

    fn read<R>(&self, work: impl FnOnce(&Store) -> Result<R, LogError>) -> Result<R, LogError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        work(open.as_ref().ok_or(LogError::KeysClosed)?)
    }

    /// Stores a mailbox's key durably.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn put_mailbox(&self, mailbox: MailboxNo, key: &SealingKey) -> Result<(), LogError> {
        self.read(|store| {
            let mut wtxn = store.env.write_txn()?;
            store.keys.put(&mut wtxn, &keys::mailbox(mailbox), key.as_stored())?;
            Ok(wtxn.commit()?)
        })
    }

    /// Stores the keys of messages durably, all or none.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn put_messages<'k>(
        &self,
        entries: impl Iterator<Item = (MailboxNo, Ordinal, &'k SealingKey)>,
    ) -> Result<(), LogError> {
        self.read(|store| {
            let mut wtxn = store.env.write_txn()?;
            for (mailbox, ordinal, key) in entries {
                store.keys.put(&mut wtxn, &keys::message(mailbox, ordinal), key.as_stored())?;
            }
            Ok(wtxn.commit()?)
        })
    }

    /// Lets go of the keys of messages, durably, and tells how many there were. Their bytes stay in
    /// free pages until [`KeyStore::compact`].
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn lose(
        &self,
        mailbox: MailboxNo,
        ordinals: impl IntoIterator<Item = u32>,
    ) -> Result<u64, LogError> {
        self.read(|store| {
            let mut wtxn = store.env.write_txn()?;
            let mut lost = 0;
            for ordinal in ordinals {
                let key = keys::message(mailbox, Ordinal(ordinal));
                lost += u64::from(store.keys.delete(&mut wtxn, &key)?);
            }
            wtxn.commit()?;
            Ok(lost)
        })
    }

    /// Lets go of a mailbox's key and of all keys of its messages.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn lose_mailbox(&self, mailbox: MailboxNo) -> Result<(), LogError> {
        self.read(|store| {
            let mut wtxn = store.env.write_txn()?;
            let first = keys::mailbox(mailbox);
            // The mailbox's own key is the prefix itself; its messages' keys follow.
            let last = [&first[..], &[0xff; 4]].concat();
            let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
            store.keys.delete_range(&mut wtxn, &range)?;
            Ok(wtxn.commit()?)
        })
    }

    /// Rewrites the store without what was let go: a copy, made entry by entry, takes its place.
    /// LMDB leaves deleted bytes in free pages and in the unused middle of others, and its own
    /// compacting copy keeps the latter.
    ///
    /// # Errors
    /// [`LogError::Keys`] or [`LogError::Io`]; the store is then as it was.
    pub fn compact(&self) -> Result<(), LogError> {
        let copy = self.dir.join(COPY);
        let place = self.dir.join("data.mdb");
        let io = |source| LogError::Io { path: self.dir.clone(), source };
        // Nobody may write meanwhile: what came after the copy would be lost.
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let store = open.as_ref().ok_or(LogError::KeysClosed)?;
        match std::fs::remove_file(&copy) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
            _ => {}
        }
        {
            let target = Store::open(&copy, EnvFlags::NO_SUB_DIR)?;
            let rtxn = store.env.read_txn()?;
            let mut wtxn = target.env.write_txn()?;
            for item in store.keys.iter(&rtxn)? {
                let (key, value) = item?;
                target.keys.put_with_flags(&mut wtxn, PutFlags::APPEND, key, value)?;
            }
            wtxn.commit()?;
            target.env.prepare_for_closing().wait();
        }
        let lock = self.dir.join(format!("{COPY}-lock"));
        match std::fs::remove_file(&lock) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
            _ => {}
        }
        crash_point::reach("purge keys copied");
        if let Some(store) = open.take() {
            store.env.prepare_for_closing().wait();
        }
        let renamed = std::fs::rename(&copy, &place).and_then(|()| sync_dir(&self.dir));
        crash_point::reach("purge keys renamed");
        // Whatever became of the rename, one whole store lies in its place.
        *open = Some(Store::open(&self.dir, EnvFlags::empty())?);
        renamed.map_err(io)
    }

    /// Makes another store hold the same keys and no other, also in its free pages.
    ///
    /// # Errors
    /// [`LogError::Keys`] or [`LogError::Io`].
    pub fn copy_to(&self, target: &Self) -> Result<(), LogError> {
        self.read(|store| {
            target.read(|copy| {
                let rtxn = store.env.read_txn()?;
                let mut wtxn = copy.env.write_txn()?;
                copy.keys.clear(&mut wtxn)?;
                for item in store.keys.iter(&rtxn)? {
                    let (key, value) = item?;
                    copy.keys.put_with_flags(&mut wtxn, PutFlags::APPEND, key, value)?;
                }
                Ok(wtxn.commit()?)
            })
        })?;
        target.compact()
    }

    /// Ordinals of a mailbox that have a key.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn ordinals(&self, mailbox: MailboxNo) -> Result<RoaringBitmap, LogError> {
        self.read(|store| {
            let rtxn = store.env.read_txn()?;
            let mut ordinals = RoaringBitmap::new();
            for item in store.keys.prefix_iter(&rtxn, &keys::mailbox(mailbox))? {
                let (key, _) = item?;
                let ordinal = key.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
                ordinals.extend(ordinal);
            }
            Ok(ordinals)
        })
    }

    /// Key of a mailbox.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`] or [`LogError::Keys`].
    pub fn mailbox(&self, mailbox: MailboxNo) -> Result<SealingKey, LogError> {
        self.get(&keys::mailbox(mailbox))?.ok_or(LogError::MailboxKeyGone(mailbox))
    }

    /// Key of a message.
    ///
    /// # Errors
    /// [`LogError::Erased`] or [`LogError::Keys`].
    pub fn message(&self, mailbox: MailboxNo, ordinal: Ordinal) -> Result<SealingKey, LogError> {
        self.get(&keys::message(mailbox, ordinal))?.ok_or(LogError::Erased { mailbox, ordinal })
    }

    fn get(&self, key: &[u8]) -> Result<Option<SealingKey>, LogError> {
        self.read(|store| {
            let rtxn = store.env.read_txn()?;
            Ok(store.keys.get(&rtxn, key)?.and_then(SealingKey::from_stored))
        })
    }
}

impl std::fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyStore(…)")
    }
}

/// Makes a rename in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl KeyStore {
        fn close(self) {
            let open = self.open.into_inner().expect("not poisoned");
            open.expect("open").env.prepare_for_closing().wait();
        }
    }

    fn holds(dir: &Path, key: &SealingKey) -> bool {
        let bytes = std::fs::read(dir.join("data.mdb")).expect("readable");
        memchr::memmem::find(&bytes, key.as_stored()).is_some()
    }

    #[test]
    fn bytes_of_a_lost_key_stay_until_the_store_is_compacted() {
        let dir = tempfile::tempdir().expect("temp dir");
        let store = KeyStore::open(dir.path()).expect("opens");
        let keys: Vec<_> = (0..500).map(|_| SealingKey::random().expect("random")).collect();
        let entries = keys.iter().enumerate();
        let entries = entries.map(|(at, key)| (MailboxNo(1), Ordinal(at as u32), key));
        store.put_messages(entries).expect("stored");
        assert_eq!(store.lose(MailboxNo(1), [7, 8, 9_999]).expect("lost"), 2);
        assert!(holds(dir.path(), &keys[7]), "else this test could not fail");
        store.compact().expect("compacts");
        assert!(!holds(dir.path(), &keys[7]) && !holds(dir.path(), &keys[8]));
        assert_eq!(store.message(MailboxNo(1), Ordinal(9)).expect("kept"), keys[9]);
        store.lose_mailbox(MailboxNo(1)).expect("lost");
        store.compact().expect("compacts");
        assert!(keys.iter().all(|key| !holds(dir.path(), key)));
    }

    #[test]
    fn keys_survive_reopening_and_missing_ones_say_erased() {
        let dir = tempfile::tempdir().expect("temp dir");
        let key = SealingKey::random().expect("random");
        {
            let store = KeyStore::open(dir.path()).expect("opens");
            store.put_mailbox(MailboxNo(1), &key).expect("stored");
            store.put_messages([(MailboxNo(1), Ordinal(4), &key)].into_iter()).expect("stored");
            store.close();
        }
        let store = KeyStore::open(dir.path()).expect("opens again");
        assert_eq!(store.mailbox(MailboxNo(1)).expect("there"), key);
        assert_eq!(store.message(MailboxNo(1), Ordinal(4)).expect("there"), key);
        assert!(matches!(
            store.message(MailboxNo(1), Ordinal(5)),
            Err(LogError::Erased { ordinal: Ordinal(5), .. })
        ));
        assert!(matches!(store.mailbox(MailboxNo(2)), Err(LogError::MailboxKeyGone(_))));
    }
}
