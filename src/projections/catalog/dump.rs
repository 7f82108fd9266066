//! Canonical text of the catalog: equal for equal content, whatever the pages look like.

use std::collections::HashMap;
use std::io::Write;

use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::CatalogError;
use super::blocks::BlockReader;
use super::erase::OF_PEOPLE;
use super::prepared::Prepared;
use super::tables::{Table, Tables, from_be_u32};
use crate::ids::Ordinal;

/// Writes every table, one entry a line.
pub(super) fn write(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    out: &mut dyn Write,
) -> Result<(), CatalogError> {
    for table in Table::ALL {
        match table {
            Table::Blocks => messages(tables, rtxn, out)?,
            Table::Bitmaps => bitmaps(tables, rtxn, out)?,
            // Numbers of people depend on messages that are erased since: names stand for them.
            Table::PersonTexts => {}
            Table::People => {
                for item in tables.of(table).iter(rtxn)? {
                    writeln!(out, "people {}", item?.0.escape_ascii())?;
                }
            }
            Table::Meta => {
                for item in tables.of(table).iter(rtxn)? {
                    let (key, value) = item?;
                    if key != b"next_person" {
                        writeln!(out, "meta {} {}", key.escape_ascii(), value.escape_ascii())?;
                    }
                }
            }
            Table::Threads => {
                for item in tables.of(table).iter(rtxn)? {
                    let (key, value) = item?;
                    let bitmap = RoaringBitmap::deserialize_from(value)
                        .map_err(|_| CatalogError::Damaged("bitmap"))?;
                    write!(out, "{} {}", table.name(), key.escape_ascii())?;
                    for ordinal in bitmap {
                        write!(out, " {ordinal}")?;
                    }
                    writeln!(out)?;
                }
            }
            _ => {
                for item in tables.of(table).iter(rtxn)? {
                    let (key, value) = item?;
                    let name = table.name();
                    writeln!(out, "{name} {} {}", key.escape_ascii(), value.escape_ascii())?;
                }
            }
        }
    }
    Ok(())
}

/// Bitmaps, those of people under the people's names.
fn bitmaps(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    out: &mut dyn Write,
) -> Result<(), CatalogError> {
    let mut people = HashMap::new();
    for item in tables.of(Table::People).iter(rtxn)? {
        let (person, number) = item?;
        people.insert(number.to_vec(), person.escape_ascii().to_string());
    }
    let mut of_people = Vec::new();
    for item in tables.of(Table::Bitmaps).iter(rtxn)? {
        let (key, value) = item?;
        let bitmap =
            RoaringBitmap::deserialize_from(value).map_err(|_| CatalogError::Damaged("bitmap"))?;
        let mut line = String::new();
        for ordinal in bitmap {
            line.push_str(&format!(" {ordinal}"));
        }
        let number = key.get(1..5).filter(|_| OF_PEOPLE.iter().any(|f| *f as u8 == key[0]));
        match number {
            Some(number) => {
                let person = people.get(number).ok_or(CatalogError::Damaged("person"))?;
                let (facet, chunk) = (key[0], key[5..].escape_ascii());
                of_people.push(format!("bitmaps of person {facet} {person} {chunk}{line}"));
            }
            None => writeln!(out, "bitmaps {}{line}", key.escape_ascii())?,
        }
    }
    of_people.sort();
    for line in of_people {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Where blocks end depends on how commits fell, so messages are written, not blocks.
fn messages(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    out: &mut dyn Write,
) -> Result<(), CatalogError> {
    let mut blocks = BlockReader::default();
    for item in tables.of(Table::Dates).iter(rtxn)? {
        let ordinal = from_be_u32(item?.0).ok_or(CatalogError::Damaged("ordinal"))?;
        let prepared = blocks
            .get(tables, rtxn, Ordinal(ordinal))?
            .ok_or(CatalogError::Damaged("a message is missing"))?;
        message(&prepared, out)?;
    }
    Ok(())
}

/// Writes everything a message's row holds.
pub(in crate::projections) fn message(
    prepared: &Prepared,
    out: &mut dyn Write,
) -> Result<(), CatalogError> {
    // Taken apart whole: a new field does not compile until someone decides about it here.
    let Prepared {
        ordinal,
        id,
        message_id,
        in_reply_to,
        subject,
        from,
        reply_to,
        to,
        cc,
        bcc,
        delivered_to,
        sent_ms,
        received_ms,
        date_ms,
        list_id,
        kind,
        language,
        flags,
        raw_bytes,
        attachments,
        defects,
        text,
        new_ranges,
    } = prepared;
    writeln!(out, "message {ordinal} {id} message_id={message_id:?} in_reply_to={in_reply_to:?}")?;
    writeln!(out, "  subject={subject:?} from={from:?} reply_to={reply_to:?} to={to:?}")?;
    writeln!(out, "  cc={cc:?} bcc={bcc:?} delivered_to={delivered_to:?}")?;
    writeln!(out, "  sent={sent_ms:?} received={received_ms} date={date_ms} bytes={raw_bytes}")?;
    writeln!(out, "  list={list_id:?} kind={kind:?} language={language:?} flags={flags:#x}")?;
    writeln!(out, "  attachments={attachments:?} defects={defects:?}")?;
    writeln!(out, "  text={text:?} new={new_ranges:?}")?;
    Ok(())
}
