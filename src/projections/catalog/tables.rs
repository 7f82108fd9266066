//! Layout of the catalog's LMDB environment. Integers in keys are big-endian.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | checkpoint, counters, configuration ([`super::state`]) |
//! | `blocks` | first ordinal u32 | zstd of up to 16 consecutive prepared messages ([`super::blocks`]) |
//! | `bitmaps` | facet u8 ‖ value ‖ chunk u16 | roaring bitmap of `ordinal & 0xffff` ([`super::bitmaps`]) |
//! | `message_ids` | SHA-256\[..16\] of a Message-ID | thread and holders ([`super::threads`]) |
//! | `raw_digests` | SHA-256\[..16\] of raw bytes | ordinal u32 |
//! | `identities` | ordinal u32 | ULID u128 ‖ SHA-256\[..16\] of the content ‖ of the raw bytes |
//! | `ids` | ULID u128 | ordinal u32 |
//! | `threads` | thread number u32 | roaring bitmap of its messages |
//! | `thread_of` | ordinal u32 | thread number u32 |
//! | `links` | ordinal u32 | keys in `message_ids`: of its own identifier, then of those it refers to |
//! | `merged` | thread number u32 | the thread it went into, u32 |
//! | `dates` | ordinal u32 | message date i64 |
//! | `by_date` | message date i64 (sign flipped) ‖ ordinal u32 | nothing |
//! | `by_size` | raw size u32 ‖ ordinal u32 | nothing |
//! | `people` | address ‖ 0 ‖ name (cut at 480 bytes with a digest) | person number u32 |
//! | `person_texts` | person number u32 | folded address ‖ 0 ‖ folded name |
//! | `holds` | hold ULID u128 | the messages it names and its reason ([`super::holds`]) |
//!
//! A thread's number is the lowest ordinal in it. A person is one pair of name and address.

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, WithoutTls};

/// The tables, in the order of [`Tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the module's table says what each holds")]
pub enum Table {
    Meta,
    Blocks,
    Bitmaps,
    MessageIds,
    RawDigests,
    Identities,
    Ids,
    Threads,
    ThreadOf,
    Merged,
    Dates,
    ByDate,
    BySize,
    People,
    PersonTexts,
    Links,
    Holds,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 17] = [
        Self::Meta,
        Self::Blocks,
        Self::Bitmaps,
        Self::MessageIds,
        Self::RawDigests,
        Self::Identities,
        Self::Ids,
        Self::Threads,
        Self::ThreadOf,
        Self::Merged,
        Self::Dates,
        Self::ByDate,
        Self::BySize,
        Self::People,
        Self::PersonTexts,
        Self::Links,
        Self::Holds,
    ];

    /// Name in the environment and in dumps.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Blocks => "blocks",
            Self::Bitmaps => "bitmaps",
            Self::MessageIds => "message_ids",
            Self::RawDigests => "raw_digests",
            Self::Identities => "identities",
            Self::Ids => "ids",
            Self::Threads => "threads",
            Self::ThreadOf => "thread_of",
            Self::Merged => "merged",
            Self::Dates => "dates",
            Self::ByDate => "by_date",
            Self::BySize => "by_size",
            Self::People => "people",
            Self::PersonTexts => "person_texts",
            Self::Links => "links",
            Self::Holds => "holds",
        }
    }
}

/// Handles of all tables of one environment.
#[derive(Clone, Copy)]
pub struct Tables([Database<'static, Bytes, Bytes>; Table::ALL.len()]);

impl Tables {
    /// Opens or creates all tables.
    pub(super) fn create(env: &Env<WithoutTls>) -> heed::Result<Self> {
        let wtxn = env.write_txn()?;
        env.clone()
            .create_databases_and_commit(wtxn, |opener, wtxn| {
                let mut handles = Vec::with_capacity(Table::ALL.len());
                for table in Table::ALL {
                    handles.push(opener.create_database::<Bytes, Bytes>(wtxn, Some(table.name()))?);
                }
                let handles: [_; Table::ALL.len()] = handles
                    .try_into()
                    .map_err(|_| heed::Error::Io(std::io::Error::other("table count")))?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(handles))
            })
            .map(|done| Self(done.unwrap_commit()))
    }

    /// Opens all tables of an environment that is only read.
    pub(super) fn open(env: &Env<WithoutTls>) -> heed::Result<Self> {
        let rtxn = env.read_txn()?;
        env.clone()
            .open_databases_and_commit(rtxn, |opener, rtxn| {
                let mut handles = Vec::with_capacity(Table::ALL.len());
                for table in Table::ALL {
                    let name = table.name();
                    handles.push(
                        opener.open_database::<Bytes, Bytes>(rtxn, Some(name))?.ok_or_else(
                            || heed::Error::Io(std::io::Error::other("a table is missing")),
                        )?,
                    );
                }
                let handles: [_; Table::ALL.len()] = handles
                    .try_into()
                    .map_err(|_| heed::Error::Io(std::io::Error::other("table count")))?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(handles))
            })
            .map(|done| Self(done.unwrap_commit()))
    }

    /// One table.
    #[must_use]
    pub fn of(&self, table: Table) -> Database<'static, Bytes, Bytes> {
        self.0[table as usize]
    }
}

/// Key of `by_date`: ascending bytes are ascending dates, then ordinals.
#[must_use]
pub fn by_date_key(date_ms: i64, ordinal: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&((date_ms as u64) ^ (1 << 63)).to_be_bytes());
    key[8..].copy_from_slice(&ordinal.to_be_bytes());
    key
}

/// Date and ordinal of a `by_date` key.
#[must_use]
pub fn from_by_date_key(key: &[u8]) -> Option<(i64, u32)> {
    let (date, rest) = key.split_first_chunk::<8>()?;
    let ordinal = u32::from_be_bytes(rest.try_into().ok()?);
    Some(((u64::from_be_bytes(*date) ^ (1 << 63)) as i64, ordinal))
}

/// A u32 as stored in keys and values.
#[must_use]
pub fn from_be_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_keys_order_negative_dates_before_positive_ones() {
        let keys = [(-5, 1), (-1, 0), (0, 9), (0, 10), (7, 0)].map(|(d, o)| by_date_key(d, o));
        assert!(keys.is_sorted());
        assert_eq!(from_by_date_key(&keys[0]), Some((-5, 1)));
    }

    #[test]
    fn table_positions_match_their_order() {
        for (at, table) in Table::ALL.iter().enumerate() {
            assert_eq!(*table as usize, at);
        }
    }
}
