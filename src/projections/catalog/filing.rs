//! Under which values of which facets a message is filed: what ingest adds and erasure takes away.

use super::bitmaps::Facet;
use super::prepared::{Person, Prepared};
use super::ranges;
use crate::mail::AttachmentClass;

/// A domain with its labels reversed, so that subdomains share a prefix: `org.example.mail`.
pub(super) fn reversed_domain(address: &str) -> Option<String> {
    let (_, domain) = address.rsplit_once('@')?;
    Some(domain.rsplit('.').collect::<Vec<_>>().join("."))
}

/// People of a message by facet; their numbers are the facet's values.
pub(super) fn people(prepared: &Prepared) -> impl Iterator<Item = (Facet, &Person)> {
    [
        (Facet::From, &prepared.from),
        (Facet::To, &prepared.to),
        (Facet::Cc, &prepared.cc),
        (Facet::Bcc, &prepared.bcc),
        (Facet::ReplyTo, &prepared.reply_to),
    ]
    .into_iter()
    .flat_map(|(facet, list)| list.iter().map(move |person| (facet, person)))
}

/// Everything that follows from the message itself, people aside.
pub(super) fn values(prepared: &Prepared) -> Vec<(Facet, Vec<u8>)> {
    let mut values = vec![(Facet::All, Vec::new())];
    for (facet, person) in people(prepared) {
        let domains = match facet {
            Facet::From => Facet::FromDomain,
            Facet::ReplyTo => continue,
            _ => Facet::ToDomain,
        };
        values.extend(reversed_domain(&person.address).map(|d| (domains, d.into_bytes())));
    }
    for address in &prepared.delivered_to {
        values.push((Facet::DeliveredTo, address.as_bytes().to_vec()));
        values.extend(reversed_domain(address).map(|d| (Facet::ToDomain, d.into_bytes())));
    }
    for bit in (0..16).filter(|bit| prepared.flags & (1 << bit) != 0) {
        values.push((Facet::Flag, vec![bit]));
    }
    for attachment in &prepared.attachments {
        if attachment.by_disposition {
            values.push((Facet::Flag, b"attachment".to_vec()));
        }
        if attachment.by_mime_class {
            values.push((Facet::Flag, b"attachment_by_class".to_vec()));
        }
        let class = AttachmentClass::of_mime(&attachment.effective_type);
        values.push((Facet::AttachmentClass, class.name().as_bytes().to_vec()));
        values.push((Facet::AttachmentType, attachment.effective_type.as_bytes().to_vec()));
        if !attachment.filename.is_empty() {
            let name = crate::query::fold_name(&attachment.filename);
            values.push((Facet::Filename, name.into_bytes()));
        }
    }
    values.extend(prepared.list_id.as_ref().map(|list| (Facet::List, list.as_bytes().to_vec())));
    values.extend(prepared.language.as_ref().map(|l| (Facet::Language, l.as_bytes().to_vec())));
    values.push((Facet::Kind, vec![prepared.kind as u8]));
    values.extend(ranges::values(prepared.date_ms, prepared.raw_bytes));
    values
}
