//! Bitmaps over ordinals: one per value of a facet, split into chunks of 65,536 ordinals so that
//! a change of one message rewrites at most 8 KB.
//!
//! Changes gather in memory and go down once per commit; reads join the chunks of a value.

use std::collections::BTreeMap;

use heed::{RoTxn, RwTxn, WithoutTls};
use roaring::RoaringBitmap;
use sha2::{Digest as _, Sha256};

use super::CatalogError;
use super::tables::{Table, Tables};

/// What a bitmap is about. The number is stored; never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Facet {
    /// Every message.
    All = 1,
    /// Label name.
    Label = 2,
    /// Status number.
    Status = 3,
    /// Folder ‖ 0 ‖ source.
    Placement = 4,
    /// Person number: author.
    From = 5,
    /// Person number: To.
    To = 6,
    /// Person number: Cc.
    Cc = 7,
    /// Person number: Bcc.
    Bcc = 8,
    /// Address of Delivered-To.
    DeliveredTo = 9,
    /// Reversed labels of an author's domain (`org.example`).
    FromDomain = 10,
    /// Reversed labels of a domain in To, Cc, Bcc or Delivered-To.
    ToDomain = 11,
    /// List-Id.
    List = 12,
    /// Flag bit number, or `attachment`.
    Flag = 13,
    /// Attachment class name.
    AttachmentClass = 14,
    /// Effective MIME type of an attachment.
    AttachmentType = 15,
    /// ISO 639-1 code.
    Language = 16,
    /// Kind name.
    Kind = 17,
    /// Days since 1970-01-01 of the message date (UTC), i32 with the sign flipped.
    Day = 18,
    /// Months since 1970-01 of the message date (UTC), i32 with the sign flipped.
    Month = 19,
    /// File name of an attachment, lower case.
    Filename = 20,
    /// Size class, u32: 16 classes between neighbouring powers of two ([`super::ranges`]).
    SizeClass = 21,
    /// Person number: Reply-To.
    ReplyTo = 22,
}

/// Bytes of a value before the rest becomes a digest: LMDB keys end at 511 bytes.
const VALUE_BYTES_MAX: usize = 400;

/// Key of a value without the chunk.
#[must_use]
pub fn value_key(facet: Facet, value: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(value.len().min(VALUE_BYTES_MAX) + 1);
    key.push(facet as u8);
    if value.len() <= VALUE_BYTES_MAX {
        key.extend_from_slice(value);
    } else {
        key.extend_from_slice(&value[..VALUE_BYTES_MAX]);
        key.extend_from_slice(&Sha256::digest(value));
    }
    // Ends the value, so that `a` is no prefix of `ab`.
    key.push(0);
    key
}

/// Changes of one commit.
#[derive(Debug, Default)]
pub(super) struct Changes {
    added: BTreeMap<Vec<u8>, RoaringBitmap>,
    removed: BTreeMap<Vec<u8>, RoaringBitmap>,
}

impl Changes {
    /// Adds one message to a value.
    pub(super) fn add(&mut self, facet: Facet, value: &[u8], ordinal: u32) {
        let key = value_key(facet, value);
        if let Some(removed) = self.removed.get_mut(&key) {
            removed.remove(ordinal);
        }
        self.added.entry(key).or_default().insert(ordinal);
    }

    /// Adds many messages to a value.
    pub(super) fn add_all(&mut self, facet: Facet, value: &[u8], ordinals: &RoaringBitmap) {
        let key = value_key(facet, value);
        if let Some(removed) = self.removed.get_mut(&key) {
            *removed -= ordinals;
        }
        *self.added.entry(key).or_default() |= ordinals;
    }

    /// Removes many messages from a value.
    pub(super) fn remove_all(&mut self, facet: Facet, value: &[u8], ordinals: &RoaringBitmap) {
        self.remove_from(value_key(facet, value), ordinals);
    }

    /// Removes many messages from the value with this key ([`keys`]).
    pub(super) fn remove_from(&mut self, key: Vec<u8>, ordinals: &RoaringBitmap) {
        if let Some(added) = self.added.get_mut(&key) {
            *added -= ordinals;
        }
        *self.removed.entry(key).or_default() |= ordinals;
    }

    /// Writes everything down and forgets it.
    pub(super) fn flush(
        &mut self,
        tables: &Tables,
        wtxn: &mut RwTxn<'_>,
    ) -> Result<(), CatalogError> {
        for (key, ordinals) in std::mem::take(&mut self.removed) {
            merge(tables, wtxn, key, &ordinals, |held, change| *held -= change)?;
        }
        for (key, ordinals) in std::mem::take(&mut self.added) {
            merge(tables, wtxn, key, &ordinals, |held, change| *held |= change)?;
        }
        Ok(())
    }
}

fn merge(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    mut key: Vec<u8>,
    ordinals: &RoaringBitmap,
    apply: impl Fn(&mut RoaringBitmap, &RoaringBitmap),
) -> Result<(), CatalogError> {
    let db = tables.of(Table::Bitmaps);
    let value_bytes = key.len();
    let mut rest = ordinals.iter().peekable();
    while let Some(first) = rest.peek() {
        let chunk = (first >> 16) as u16;
        let mut part = RoaringBitmap::new();
        while let Some(ordinal) = rest.next_if(|o| (o >> 16) as u16 == chunk) {
            part.insert(ordinal & 0xffff);
        }
        key.truncate(value_bytes);
        key.extend_from_slice(&chunk.to_be_bytes());
        let mut held = match db.get(wtxn, &key)? {
            Some(bytes) => decode(bytes)?,
            None => RoaringBitmap::new(),
        };
        apply(&mut held, &part);
        if held.is_empty() {
            db.delete(wtxn, &key)?;
        } else {
            let mut bytes = Vec::with_capacity(held.serialized_size());
            held.serialize_into(&mut bytes).map_err(|_| CatalogError::Damaged("bitmap"))?;
            db.put(wtxn, &key, &bytes)?;
        }
    }
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<RoaringBitmap, CatalogError> {
    RoaringBitmap::deserialize_from(bytes).map_err(|_| CatalogError::Damaged("bitmap"))
}

/// Keys of all values of a facet, without the chunk.
pub(super) fn keys(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    facet: Facet,
) -> Result<Vec<Vec<u8>>, CatalogError> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for item in tables.of(Table::Bitmaps).prefix_iter(rtxn, &[facet as u8])? {
        let (at, _) = item?;
        let key = &at[..at.len().saturating_sub(2)];
        if keys.last().is_none_or(|last| last != key) {
            keys.push(key.to_vec());
        }
    }
    Ok(keys)
}

/// All messages with a value.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn of_value(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    facet: Facet,
    value: &[u8],
) -> Result<RoaringBitmap, CatalogError> {
    of_key(tables, rtxn, &value_key(facet, value))
}

/// All messages of the value with this key ([`value_key`]).
pub(super) fn of_key(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    key: &[u8],
) -> Result<RoaringBitmap, CatalogError> {
    let mut joined = RoaringBitmap::new();
    for item in tables.of(Table::Bitmaps).prefix_iter(rtxn, key)? {
        let (at, bytes) = item?;
        if at.len() == key.len() + 2 {
            join(&mut joined, &at[key.len()..], bytes)?;
        }
    }
    Ok(joined)
}

/// Every value of a facet whose bytes start with `prefix`, with its messages, in order of value.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn of_prefix(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    facet: Facet,
    prefix: &[u8],
) -> Result<Vec<(Vec<u8>, RoaringBitmap)>, CatalogError> {
    let mut start = vec![facet as u8];
    start.extend_from_slice(prefix);
    let mut values: Vec<(Vec<u8>, RoaringBitmap)> = Vec::new();
    for item in tables.of(Table::Bitmaps).prefix_iter(rtxn, &start)? {
        let (at, bytes) = item?;
        let Some((value, chunk)) = at.len().checked_sub(3).map(|n| (&at[1..n], &at[n + 1..]))
        else {
            return Err(CatalogError::Damaged("bitmap key"));
        };
        if values.last().is_none_or(|(last, _)| last != value) {
            values.push((value.to_vec(), RoaringBitmap::new()));
        }
        if let Some((_, joined)) = values.last_mut() {
            join(joined, chunk, bytes)?;
        }
    }
    Ok(values)
}

/// Messages of every value between two keys of a fixed-width facet, both ends included.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn of_range(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    facet: Facet,
    first: [u8; 4],
    last: [u8; 4],
) -> Result<RoaringBitmap, CatalogError> {
    let mut joined = RoaringBitmap::new();
    let start = value_key(facet, &first);
    let mut end = value_key(facet, &last);
    end.extend_from_slice(&[0xff; 2]);
    let range =
        (std::ops::Bound::Included(start.as_slice()), std::ops::Bound::Included(end.as_slice()));
    for item in tables.of(Table::Bitmaps).range(rtxn, &range)? {
        let (at, bytes) = item?;
        join(&mut joined, &at[at.len().saturating_sub(2)..], bytes)?;
    }
    Ok(joined)
}

fn join(joined: &mut RoaringBitmap, chunk: &[u8], bytes: &[u8]) -> Result<(), CatalogError> {
    let chunk: [u8; 2] = chunk.try_into().map_err(|_| CatalogError::Damaged("bitmap key"))?;
    let base = u32::from(u16::from_be_bytes(chunk)) << 16;
    let part = decode(bytes)?;
    if base == 0 {
        *joined |= part;
    } else {
        joined.extend(part.into_iter().map(|o| base | o));
    }
    Ok(())
}

/// An i32 whose byte order is its numeric order.
#[must_use]
pub fn ordered_i32(value: i32) -> [u8; 4] {
    ((value as u32) ^ (1 << 31)).to_be_bytes()
}
