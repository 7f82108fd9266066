//! People as they stand in headers: each pair of name and address once, numbered in order of
//! first appearance.
//!
//! Bitmaps of `from:` and `to:` are kept per person, so that an exact address, a domain and a
//! piece of a name all become a small set of numbers first. The folded texts also stand in
//! memory as one string, extended as people are added: a substring search is one scan of it.

use std::sync::RwLock;

use heed::{RoTxn, RwTxn, WithoutTls};
use memchr::memmem;
use sha2::{Digest as _, Sha256};

use super::CatalogError;
use super::prepared::Person;
use super::tables::{Table, Tables, from_be_u32};
use crate::projections::text::analysis::fold;

const KEY_BYTES_MAX: usize = 480;

fn key(person: &Person) -> Vec<u8> {
    let mut key = [person.address.as_bytes(), &[0], person.name.as_bytes()].concat();
    if key.len() > KEY_BYTES_MAX {
        let digest = Sha256::digest(&key);
        key.truncate(KEY_BYTES_MAX - 32);
        key.extend_from_slice(&digest);
    }
    key
}

/// Number of a person, given one now when new. `next` is the number after the last.
pub(super) fn number(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    person: &Person,
    next: &mut u32,
) -> Result<u32, CatalogError> {
    if let Some(known) = known(tables, wtxn, person)? {
        return Ok(known);
    }
    let key = key(person);
    let number = *next;
    *next += 1;
    tables.of(Table::People).put(wtxn, &key, &number.to_be_bytes())?;
    let text = [fold(&person.address).as_bytes(), &[0], fold(&person.name).as_bytes()].concat();
    tables.of(Table::PersonTexts).put(wtxn, &number.to_be_bytes(), &text)?;
    Ok(number)
}

/// Number of a person who has one.
pub(super) fn known(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    person: &Person,
) -> Result<Option<u32>, CatalogError> {
    Ok(tables.of(Table::People).get(rtxn, &key(person))?.and_then(from_be_u32))
}

/// Forgets a person; the number is not used again.
pub(super) fn forget(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    number: u32,
    person: &Person,
) -> Result<(), CatalogError> {
    tables.of(Table::People).delete(wtxn, &key(person))?;
    tables.of(Table::PersonTexts).delete(wtxn, &number.to_be_bytes())?;
    Ok(())
}

/// Numbers of everyone with an address, whatever the name.
///
/// # Errors
/// [`CatalogError`] when the store fails.
pub fn with_address(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    address: &str,
) -> Result<Vec<u32>, CatalogError> {
    let mut prefix = [address.as_bytes(), &[0]].concat();
    prefix.truncate(KEY_BYTES_MAX - 32);
    let mut numbers = Vec::new();
    for item in tables.of(Table::People).prefix_iter(rtxn, &prefix)? {
        numbers.extend(from_be_u32(item?.1));
    }
    Ok(numbers)
}

/// The folded texts of all people in one string, shared by all views of a catalog.
#[derive(Debug, Default)]
pub struct PeopleText(RwLock<Joined>);

#[derive(Debug, Default)]
struct Joined {
    text: Vec<u8>,
    /// End of each person's text; the index is the person's number.
    ends: Vec<usize>,
}

impl Joined {
    fn leave_empty(&mut self, until: u32) {
        let end = self.text.len();
        while self.ends.len() < until as usize {
            self.ends.push(end);
        }
    }
}

impl PeopleText {
    /// Numbers below `count` of everyone whose folded name or address holds `folded`.
    ///
    /// # Errors
    /// [`CatalogError`] when the store fails.
    pub fn holding(
        &self,
        tables: &Tables,
        rtxn: &RoTxn<'_, WithoutTls>,
        count: u32,
        folded: &str,
    ) -> Result<Vec<u32>, CatalogError> {
        self.extend(tables, rtxn, count)?;
        let joined = self.0.read().map_err(|_| CatalogError::Damaged("people in memory"))?;
        let mut numbers = Vec::new();
        let mut at = 0;
        for found in memmem::find_iter(&joined.text, folded.as_bytes()) {
            if found < at {
                continue;
            }
            let number = joined.ends.partition_point(|end| *end <= found);
            let end = joined.ends.get(number).copied().unwrap_or(usize::MAX);
            at = end;
            if number as u32 >= count {
                break;
            }
            numbers.push(number as u32);
        }
        Ok(numbers)
    }

    fn extend(
        &self,
        tables: &Tables,
        rtxn: &RoTxn<'_, WithoutTls>,
        count: u32,
    ) -> Result<(), CatalogError> {
        let poisoned = |_| CatalogError::Damaged("people in memory");
        if self.0.read().map_err(poisoned)?.ends.len() >= count as usize {
            return Ok(());
        }
        let mut joined = self.0.write().map_err(|_| CatalogError::Damaged("people in memory"))?;
        let start = (joined.ends.len() as u32).to_be_bytes();
        let range = (std::ops::Bound::Included(&start[..]), std::ops::Bound::Unbounded);
        for item in tables.of(Table::PersonTexts).range(rtxn, &range)? {
            let (number, text) = item?;
            let number = from_be_u32(number).ok_or(CatalogError::Damaged("person"))?;
            // Numbers of forgotten people keep an empty place.
            joined.leave_empty(number);
            joined.text.extend_from_slice(text);
            // A byte no folded text holds keeps a match from spanning two people.
            joined.text.push(1);
            let end = joined.text.len();
            joined.ends.push(end);
        }
        joined.leave_empty(count);
        Ok(())
    }
}
