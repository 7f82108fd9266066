//! The key store: one random key per mailbox and per message, in an LMDB environment of its own.
//!
//! A key is durable before the event that needs it, so a crash in between leaves at most a key
//! nobody uses. Losing a key is erasure. Layout in [`super::keys`].

use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, WithoutTls};

use super::seal::SealingKey;
use super::{LogError, keys};
use crate::ids::{MailboxNo, Ordinal};

/// Address space reserved for the key store: about 300 million keys. The file grows as needed.
const MAP_BYTES: usize = 16 << 30;

/// Keys of mailboxes and messages.
#[derive(Clone)]
pub struct KeyStore {
    env: Env<WithoutTls>,
    keys: Database<'static, Bytes, Bytes>,
}

impl KeyStore {
    /// Opens or creates the store in `dir`.
    ///
    /// # Errors
    /// [`LogError::Io`] or [`LogError::Keys`].
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        std::fs::create_dir_all(dir)
            .map_err(|source| LogError::Io { path: dir.to_owned(), source })?;
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_dbs(1);
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps others out")]
        let env = unsafe { options.open(dir)? };
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

    /// Stores a mailbox's key durably.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn put_mailbox(&self, mailbox: MailboxNo, key: &SealingKey) -> Result<(), LogError> {
        let mut wtxn = self.env.write_txn()?;
        self.keys.put(&mut wtxn, &keys::mailbox(mailbox), key.as_stored())?;
        Ok(wtxn.commit()?)
    }

    /// Stores the keys of messages durably, all or none.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn put_messages<'k>(
        &self,
        entries: impl Iterator<Item = (MailboxNo, Ordinal, &'k SealingKey)>,
    ) -> Result<(), LogError> {
        let mut wtxn = self.env.write_txn()?;
        for (mailbox, ordinal, key) in entries {
            self.keys.put(&mut wtxn, &keys::message(mailbox, ordinal), key.as_stored())?;
        }
        Ok(wtxn.commit()?)
    }

    /// Key of a mailbox.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`] or [`LogError::Keys`].
    pub fn mailbox(&self, mailbox: MailboxNo) -> Result<SealingKey, LogError> {
        let rtxn = self.env.read_txn()?;
        self.keys
            .get(&rtxn, &keys::mailbox(mailbox))?
            .and_then(SealingKey::from_stored)
            .ok_or(LogError::MailboxKeyGone(mailbox))
    }

    /// Key of a message.
    ///
    /// # Errors
    /// [`LogError::Erased`] or [`LogError::Keys`].
    pub fn message(&self, mailbox: MailboxNo, ordinal: Ordinal) -> Result<SealingKey, LogError> {
        let rtxn = self.env.read_txn()?;
        self.keys
            .get(&rtxn, &keys::message(mailbox, ordinal))?
            .and_then(SealingKey::from_stored)
            .ok_or(LogError::Erased { mailbox, ordinal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_reopening_and_missing_ones_say_erased() {
        let dir = tempfile::tempdir().expect("temp dir");
        let key = SealingKey::random().expect("random");
        {
            let store = KeyStore::open(dir.path()).expect("opens");
            store.put_mailbox(MailboxNo(1), &key).expect("stored");
            store.put_messages([(MailboxNo(1), Ordinal(4), &key)].into_iter()).expect("stored");
            store.env.prepare_for_closing().wait();
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
