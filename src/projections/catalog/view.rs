//! Reading the catalog at one commit.
//!
//! An LMDB read transaction belongs to one thread at a time, so a view keeps a pool of them, all
//! at the same commit: new ones are opened while that commit is still the newest, afterwards
//! callers take turns. Bitmaps that were decoded once stay with the view.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use heed::{Env, RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::bitmaps::{self, Facet, value_key};
use super::blocks::BlockReader;
use super::people::{self, PeopleText};
use super::prepared::Prepared;
use super::tables::{Table, Tables, from_be_u32, from_by_date_key};
use super::{CatalogError, Counters, ranges, threads};
use crate::events::event::{HoldSet, Placement};
use crate::ids::{MessageId, Ordinal, Seq};

type Txn = RoTxn<'static, WithoutTls>;

/// The catalog at one commit.
pub struct CatalogView {
    env: Env<WithoutTls>,
    tables: Tables,
    people: Arc<PeopleText>,
    counters: Counters,
    commit: usize,
    idle: Mutex<Vec<Txn>>,
    returned: Condvar,
    decoded: Mutex<HashMap<Vec<u8>, Arc<RoaringBitmap>>>,
    placements: OnceLock<Vec<(Placement, RoaringBitmap)>>,
    labels: OnceLock<Vec<(String, RoaringBitmap)>>,
    languages: OnceLock<Vec<String>>,
}

impl CatalogView {
    pub(super) fn new(
        env: &Env<WithoutTls>,
        tables: Tables,
        people: Arc<PeopleText>,
        counters: Counters,
    ) -> Result<Self, CatalogError> {
        let first = env.clone().static_read_txn()?;
        Ok(Self {
            env: env.clone(),
            tables,
            people,
            counters,
            commit: first.id(),
            idle: Mutex::new(vec![first]),
            returned: Condvar::new(),
            decoded: Mutex::default(),
            placements: OnceLock::new(),
            labels: OnceLock::new(),
            languages: OnceLock::new(),
        })
    }

    fn read<R>(
        &self,
        run: impl FnOnce(&Tables, &Txn) -> Result<R, CatalogError>,
    ) -> Result<R, CatalogError> {
        let txn = self.take()?;
        let result = run(&self.tables, &txn);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(txn);
        self.returned.notify_one();
        result
    }

    fn take(&self) -> Result<Txn, CatalogError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(txn) = idle.pop() {
                return Ok(txn);
            }
            let fresh = self.env.clone().static_read_txn()?;
            if fresh.id() == self.commit {
                return Ok(fresh);
            }
            idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Position of the last event in it.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.counters.checkpoint
    }

    /// The ordinal that the next message will get.
    #[must_use]
    pub fn next_ordinal(&self) -> Ordinal {
        Ordinal(self.counters.next_ordinal)
    }

    /// Ordinals of messages that were erased.
    #[must_use]
    pub fn erased(&self) -> &RoaringBitmap {
        &self.counters.erased
    }

    /// All holds, oldest first, each with the messages of the threads it covers.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn holds(&self) -> Result<Vec<(HoldSet, RoaringBitmap)>, CatalogError> {
        self.read(super::holds::all)
    }

    /// The owner's addresses.
    #[must_use]
    pub fn own_addresses(&self) -> &[String] {
        &self.counters.own_addresses
    }

    fn cached(
        &self,
        key: Vec<u8>,
        load: impl FnOnce(&Tables, &Txn) -> Result<RoaringBitmap, CatalogError>,
    ) -> Result<Arc<RoaringBitmap>, CatalogError> {
        if let Some(known) = self.decoded.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let loaded = Arc::new(self.read(load)?);
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        decoded.insert(key, Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Messages with a value of a facet.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn with(&self, facet: Facet, value: &[u8]) -> Result<Arc<RoaringBitmap>, CatalogError> {
        self.cached(value_key(facet, value), |tables, txn| {
            bitmaps::of_value(tables, txn, facet, value)
        })
    }

    /// Values of a facet that start with `prefix`, with their messages, in order of value.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn values(
        &self,
        facet: Facet,
        prefix: &[u8],
    ) -> Result<Vec<(Vec<u8>, RoaringBitmap)>, CatalogError> {
        self.read(|tables, txn| bitmaps::of_prefix(tables, txn, facet, prefix))
    }

    /// Every placement with its messages, in order of folder and source.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn placements(&self) -> Result<&[(Placement, RoaringBitmap)], CatalogError> {
        if let Some(known) = self.placements.get() {
            return Ok(known);
        }
        let loaded = self
            .values(Facet::Placement, b"")?
            .into_iter()
            .filter_map(|(value, messages)| {
                let text = String::from_utf8(value).ok()?;
                let (folder, source) = text.split_once('\0')?;
                let placement = Placement { folder: folder.into(), source: source.into() };
                Some((placement, messages))
            })
            .collect();
        Ok(self.placements.get_or_init(|| loaded))
    }

    /// Every label with its messages, in order of label.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn labels(&self) -> Result<&[(String, RoaringBitmap)], CatalogError> {
        if let Some(known) = self.labels.get() {
            return Ok(known);
        }
        let values = self.values(Facet::Label, b"")?;
        let loaded = values
            .into_iter()
            .filter_map(|(label, messages)| Some((String::from_utf8(label).ok()?, messages)))
            .collect();
        Ok(self.labels.get_or_init(|| loaded))
    }

    /// Languages of the mailbox's messages, ISO 639-1 codes in order.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn languages(&self) -> Result<&[String], CatalogError> {
        if let Some(known) = self.languages.get() {
            return Ok(known);
        }
        let values = self.values(Facet::Language, b"")?;
        let loaded = values.into_iter().filter_map(|(code, _)| String::from_utf8(code).ok());
        let loaded = loaded.collect();
        Ok(self.languages.get_or_init(|| loaded))
    }

    /// Messages dated in `[start, end)`, unix ms.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn dated(
        &self,
        start_ms: Option<i64>,
        end_ms: Option<i64>,
    ) -> Result<RoaringBitmap, CatalogError> {
        self.read(|tables, txn| ranges::dates(tables, txn, start_ms, end_ms))
    }

    /// Messages whose raw size lies in `[start, end)` bytes.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn sized(&self, start: u64, end: u64) -> Result<RoaringBitmap, CatalogError> {
        self.read(|tables, txn| {
            ranges::sizes(tables, txn, ranges::clamp(start)..ranges::clamp(end))
        })
    }

    /// Messages whose person in one of `facets` has this address.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_address(
        &self,
        facets: &[Facet],
        address: &str,
    ) -> Result<RoaringBitmap, CatalogError> {
        self.read(|tables, txn| {
            let numbers = people::with_address(tables, txn, address)?;
            of_people(tables, txn, facets, &numbers)
        })
    }

    /// Messages whose person in one of `facets` has a name or address that holds `folded`.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_name(&self, facets: &[Facet], folded: &str) -> Result<RoaringBitmap, CatalogError> {
        self.read(|tables, txn| {
            let count = self.counters.next_person;
            let numbers = self.people.holding(tables, txn, count, folded)?;
            of_people(tables, txn, facets, &numbers)
        })
    }

    /// Messages of a domain and its subdomains in one of `facets` ([`Facet::FromDomain`],
    /// [`Facet::ToDomain`]).
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_domain(&self, facet: Facet, domain: &str) -> Result<RoaringBitmap, CatalogError> {
        let reversed = domain.rsplit('.').collect::<Vec<_>>().join(".");
        let mut found = self.with(facet, reversed.as_bytes())?.as_ref().clone();
        for (_, messages) in self.values(facet, format!("{reversed}.").as_bytes())? {
            found |= messages;
        }
        Ok(found)
    }

    /// Messages that carry a Message-ID (normal form).
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_message_id(&self, message_id: &str) -> Result<Vec<u32>, CatalogError> {
        self.read(|tables, txn| threads::holders(tables, txn, message_id))
    }

    /// Ordinals of the messages whose Message-ID has this key ([`threads::id_key`]).
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_message_id_key(&self, key: &[u8; 16]) -> Result<Vec<u32>, CatalogError> {
        self.read(|tables, txn| threads::holders_by_key(tables, txn, key))
    }

    /// Whether a message stands in a place.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn is_placed(&self, ordinal: Ordinal, at: &Placement) -> Result<bool, CatalogError> {
        let value = super::apply::placement_value(at);
        Ok(self.with(Facet::Placement, &value)?.contains(ordinal.0))
    }

    /// The message whose raw bytes have this digest, first half.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn by_raw_key(&self, key: &[u8; 16]) -> Result<Option<Ordinal>, CatalogError> {
        self.read(|tables, txn| {
            let value = tables.of(Table::RawDigests).get(txn, key)?;
            Ok(value.and_then(from_be_u32).map(Ordinal))
        })
    }

    /// First halves of the digests of a message's content and of its raw bytes.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn digests(&self, ordinal: Ordinal) -> Result<Option<[[u8; 16]; 2]>, CatalogError> {
        self.read(|tables, txn| {
            let value = tables.of(Table::Identities).get(txn, &ordinal.0.to_be_bytes())?;
            Ok(value.and_then(|v| match v.as_chunks::<16>() {
                ([_, content, raw], []) => Some([*content, *raw]),
                _ => None,
            }))
        })
    }

    /// First half of a message's content digest.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn content_digest(&self, ordinal: Ordinal) -> Result<Option<[u8; 16]>, CatalogError> {
        self.read(|tables, txn| Ok(identity(tables, txn, ordinal)?.map(|(_, content)| content)))
    }

    /// Public identifier of a message.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn id(&self, ordinal: Ordinal) -> Result<Option<MessageId>, CatalogError> {
        self.read(|tables, txn| Ok(identity(tables, txn, ordinal)?.map(|(id, _)| id)))
    }

    /// Ordinal of a message by its public identifier.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn ordinal(&self, id: MessageId) -> Result<Option<Ordinal>, CatalogError> {
        self.read(|tables, txn| {
            let value = tables.of(Table::Ids).get(txn, &id.0.0.to_be_bytes())?;
            Ok(value.and_then(from_be_u32).map(Ordinal))
        })
    }

    /// Messages as they were prepared, in the order asked for; missing ones are left out.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn prepared(
        &self,
        ordinals: impl IntoIterator<Item = Ordinal>,
    ) -> Result<Vec<Prepared>, CatalogError> {
        self.read(|tables, txn| {
            let mut blocks = BlockReader::default();
            let mut found = Vec::new();
            for ordinal in ordinals {
                found.extend(blocks.get(tables, txn, ordinal)?);
            }
            Ok(found)
        })
    }

    /// Number of a message's thread: the lowest ordinal in it.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn thread_of(&self, ordinal: Ordinal) -> Result<Option<u32>, CatalogError> {
        self.read(|tables, txn| threads::of_message(tables, txn, ordinal.0))
    }

    /// Messages of a thread by its number.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn thread(&self, number: u32) -> Result<RoaringBitmap, CatalogError> {
        self.read(|tables, txn| threads::members(tables, txn, number))
    }

    /// Offers the date and ordinal of messages in `among` to `take`, newest first (or oldest
    /// first), until it says no. Small sets are looked up and sorted, large ones found by walking
    /// the dates.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn in_date_order(
        &self,
        among: &RoaringBitmap,
        newest_first: bool,
        mut take: impl FnMut(i64, Ordinal) -> bool,
    ) -> Result<(), CatalogError> {
        /// Below this many, looking dates up is cheaper than walking past other messages.
        const LOOKED_UP_MAX: u64 = 2_048;
        self.read(|tables, txn| {
            if among.len() <= LOOKED_UP_MAX {
                let mut dated = Vec::with_capacity(among.len() as usize);
                for ordinal in among {
                    if let Some(date) = date(tables, txn, ordinal)? {
                        dated.push((date, ordinal));
                    }
                }
                dated.sort_unstable();
                if newest_first {
                    dated.reverse();
                }
                dated.into_iter().all(|(date, ordinal)| take(date, Ordinal(ordinal)));
                return Ok(());
            }
            let table = tables.of(Table::ByDate);
            let mut offer = |key: &[u8]| match from_by_date_key(key) {
                Some((date, ordinal)) if among.contains(ordinal) => take(date, Ordinal(ordinal)),
                _ => true,
            };
            if newest_first {
                for item in table.rev_iter(txn)? {
                    if !offer(item?.0) {
                        break;
                    }
                }
            } else {
                for item in table.iter(txn)? {
                    if !offer(item?.0) {
                        break;
                    }
                }
            }
            Ok(())
        })
    }
}

#[path = "view_whole.rs"]
mod view_whole;

impl std::fmt::Debug for CatalogView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CatalogView(at {})", self.counters.checkpoint)
    }
}

fn identity(
    tables: &Tables,
    txn: &Txn,
    ordinal: Ordinal,
) -> Result<Option<(MessageId, [u8; 16])>, CatalogError> {
    let value = tables.of(Table::Identities).get(txn, &ordinal.0.to_be_bytes())?;
    Ok(value.and_then(|bytes| {
        let (id, rest) = bytes.split_first_chunk::<16>()?;
        let id = MessageId::from_bits(u128::from_be_bytes(*id));
        Some((id, *rest.first_chunk()?))
    }))
}

fn date(tables: &Tables, txn: &Txn, ordinal: u32) -> Result<Option<i64>, CatalogError> {
    let value = tables.of(Table::Dates).get(txn, &ordinal.to_be_bytes())?;
    Ok(value.and_then(|v| v.try_into().ok()).map(i64::from_be_bytes))
}

fn of_people(
    tables: &Tables,
    txn: &Txn,
    facets: &[Facet],
    numbers: &[u32],
) -> Result<RoaringBitmap, CatalogError> {
    let mut found = RoaringBitmap::new();
    for facet in facets {
        for number in numbers {
            found |= bitmaps::of_value(tables, txn, *facet, &number.to_be_bytes())?;
        }
    }
    Ok(found)
}
