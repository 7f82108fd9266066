//! Threads: which messages belong together, derived from Message-ID, In-Reply-To and References.
//!
//! Never by subject. A message joins every thread that knows one of its identifiers, in either
//! direction: a reply may arrive before its parent, and a parent that joins two threads merges
//! them. A thread's number is its lowest ordinal, so a merge keeps the earlier one. Values of
//! `message_ids` hold the thread as it was when written; [`survivor`] follows merges since.
//!
//! ```text
//! message_ids value = thread u32 BE ‖ holder ordinals u32 BE …   (no holder: only referenced)
//! ```

use std::collections::BTreeSet;

use heed::{RoTxn, RwTxn, WithoutTls};
use roaring::RoaringBitmap;
use sha2::{Digest as _, Sha256};

use super::CatalogError;
use super::tables::{Table, Tables, from_be_u32};
use crate::mail::Message;

/// At most so many References are looked up, newest first.
const REFERENCES_MAX: usize = 50;

/// Key of an identifier: identifiers are longer than an LMDB key may be.
#[must_use]
pub fn id_key(message_id: &str) -> [u8; 16] {
    first_16(&Sha256::digest(message_id).into())
}

/// The part of a SHA-256 that keys and comparisons use.
#[must_use]
pub fn first_16(digest: &[u8; 32]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    key
}

/// Ordinals of the messages that carry a Message-ID.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn holders(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    message_id: &str,
) -> Result<Vec<u32>, CatalogError> {
    holders_by_key(tables, rtxn, &id_key(message_id))
}

/// [`holders`] by the key of the Message-ID.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn holders_by_key(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    key: &[u8; 16],
) -> Result<Vec<u32>, CatalogError> {
    let value = tables.of(Table::MessageIds).get(rtxn, key)?;
    Ok(value.map(|v| parse(v).1).unwrap_or_default())
}

fn parse(value: &[u8]) -> (Option<u32>, Vec<u32>) {
    let mut numbers = value.chunks_exact(4).filter_map(from_be_u32);
    (numbers.next(), numbers.collect())
}

/// The thread that a thread went into, itself when it was never merged.
fn survivor(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    mut thread: u32,
) -> Result<u32, CatalogError> {
    // Each step goes to a lower number, so this ends.
    while let Some(next) =
        tables.of(Table::Merged).get(rtxn, &thread.to_be_bytes())?.and_then(from_be_u32)
    {
        if next >= thread {
            return Err(CatalogError::Damaged("merged threads"));
        }
        thread = next;
    }
    Ok(thread)
}

/// Joins a new message to its thread and keeps what links it.
pub(super) fn add(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    ordinal: u32,
    message: &Message,
) -> Result<(), CatalogError> {
    let own = id_key(&message.message_id);
    let mut links = vec![own];
    for id in message.in_reply_to.iter().chain(message.references.iter().rev().take(REFERENCES_MAX))
    {
        let key = id_key(id);
        if !links.contains(&key) {
            links.push(key);
        }
    }
    tables.of(Table::Links).put(wtxn, &ordinal.to_be_bytes(), links.as_flattened())?;
    join(tables, wtxn, ordinal, &links)
}

/// Takes messages out of their threads. What is left of each is joined anew, in order: it may fall
/// apart where a message that is gone held it together.
pub(super) fn erase(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    gone: &RoaringBitmap,
) -> Result<(), CatalogError> {
    let mut touched = BTreeSet::new();
    for ordinal in gone {
        touched.extend(of_message(tables, wtxn, ordinal)?);
    }
    for thread in touched {
        let members = load(tables, wtxn, thread)?;
        let mut left = Vec::new();
        for member in &members {
            let key = member.to_be_bytes();
            let links = tables.of(Table::Links).get(wtxn, &key)?.unwrap_or_default();
            let links: Vec<[u8; 16]> = links.as_chunks().0.to_vec();
            for link in &links {
                tables.of(Table::MessageIds).delete(wtxn, link)?;
            }
            tables.of(Table::ThreadOf).delete(wtxn, &key)?;
            tables.of(Table::Merged).delete(wtxn, &key)?;
            if gone.contains(member) {
                tables.of(Table::Links).delete(wtxn, &key)?;
            } else {
                left.push((member, links));
            }
        }
        tables.of(Table::Threads).delete(wtxn, &thread.to_be_bytes())?;
        for (member, links) in left {
            join(tables, wtxn, member, &links)?;
        }
    }
    Ok(())
}

/// Joins a message to its thread by its own identifier and those it refers to, merging threads
/// that it connects.
fn join(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    ordinal: u32,
    links: &[[u8; 16]],
) -> Result<(), CatalogError> {
    let (own, others) = links.split_first().ok_or(CatalogError::Damaged("links"))?;
    let ids = tables.of(Table::MessageIds);
    let mut thread = ordinal;
    let mut connected: Vec<u32> = Vec::new();
    for key in links {
        if let Some(known) = ids.get(wtxn, key)?.and_then(|v| parse(v).0) {
            let known = survivor(tables, wtxn, known)?;
            if !connected.contains(&known) {
                connected.push(known);
            }
            thread = thread.min(known);
        }
    }
    let mut members = load(tables, wtxn, thread)?;
    members.insert(ordinal);
    for other in connected.into_iter().filter(|t| *t != thread) {
        let moved = load(tables, wtxn, other)?;
        for member in &moved {
            put_u32(tables, wtxn, Table::ThreadOf, member, thread)?;
        }
        tables.of(Table::Threads).delete(wtxn, &other.to_be_bytes())?;
        put_u32(tables, wtxn, Table::Merged, other, thread)?;
        members |= moved;
    }
    store(tables, wtxn, thread, &members)?;
    put_u32(tables, wtxn, Table::ThreadOf, ordinal, thread)?;
    let (_, mut carriers) = ids.get(wtxn, own)?.map(parse).unwrap_or_default();
    carriers.push(ordinal);
    put_id(tables, wtxn, own, thread, &carriers)?;
    for key in others {
        if ids.get(wtxn, key)?.is_none() {
            put_id(tables, wtxn, key, thread, &[])?;
        }
    }
    Ok(())
}

fn put_id(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    key: &[u8; 16],
    thread: u32,
    carriers: &[u32],
) -> Result<(), CatalogError> {
    let mut value = thread.to_be_bytes().to_vec();
    for ordinal in carriers {
        value.extend_from_slice(&ordinal.to_be_bytes());
    }
    Ok(tables.of(Table::MessageIds).put(wtxn, key, &value)?)
}

fn put_u32(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    table: Table,
    key: u32,
    value: u32,
) -> Result<(), CatalogError> {
    Ok(tables.of(table).put(wtxn, &key.to_be_bytes(), &value.to_be_bytes())?)
}

fn load(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    thread: u32,
) -> Result<RoaringBitmap, CatalogError> {
    match tables.of(Table::Threads).get(rtxn, &thread.to_be_bytes())? {
        Some(bytes) => {
            RoaringBitmap::deserialize_from(bytes).map_err(|_| CatalogError::Damaged("thread"))
        }
        None => Ok(RoaringBitmap::new()),
    }
}

fn store(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    thread: u32,
    members: &RoaringBitmap,
) -> Result<(), CatalogError> {
    let mut bytes = Vec::with_capacity(members.serialized_size());
    members.serialize_into(&mut bytes).map_err(|_| CatalogError::Damaged("thread"))?;
    Ok(tables.of(Table::Threads).put(wtxn, &thread.to_be_bytes(), &bytes)?)
}

/// Number of the thread of a message.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn of_message(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    ordinal: u32,
) -> Result<Option<u32>, CatalogError> {
    Ok(tables.of(Table::ThreadOf).get(rtxn, &ordinal.to_be_bytes())?.and_then(from_be_u32))
}

/// Messages of a thread.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn members(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    thread: u32,
) -> Result<RoaringBitmap, CatalogError> {
    load(tables, rtxn, survivor(tables, rtxn, thread)?)
}
