//! Filters of a query → bitmaps over ordinals, each by the catalog's own indexes.

use roaring::RoaringBitmap;

use super::folders::{Role, role};
use crate::ids::{MessageId, Ordinal};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::prepared::{FLAG_NAMES, StoredKind};
use crate::projections::catalog::{CatalogError, CatalogView};
use crate::projections::text::analysis::fold;
use crate::projections::text::query::{Pattern, Scope, TextQuery};
use crate::projections::view::View;
use crate::query::dates::ResolvedDate;
use crate::query::fold_name;
use crate::query::tree::{AddrMatch, Direction, Filter, Has, Place, RefMatch, State, TypeMatch};

use super::request::SearchError;

const TO: [Facet; 3] = [Facet::To, Facet::Cc, Facet::Bcc];

/// Messages that satisfy a filter, before visibility.
pub(super) fn messages(
    view: &View,
    filter: &Filter<ResolvedDate>,
) -> Result<RoaringBitmap, SearchError> {
    let catalog = &view.catalog;
    let found = match filter {
        Filter::From(address) => from(catalog, address)?,
        Filter::To(address) => to(catalog, address)?,
        Filter::Participant(address) => from(catalog, address)? | to(catalog, address)?,
        Filter::Cc(address) => people(catalog, &[Facet::Cc], address)?,
        Filter::Bcc(address) => people(catalog, &[Facet::Bcc], address)?,
        Filter::DeliveredTo(address) => delivered_to(catalog, address)?,
        Filter::Ref(reference) => return references(view, reference),
        Filter::Label(label) => with(catalog, Facet::Label, label.as_bytes())?,
        Filter::Has(Has::Attachment) => with(catalog, Facet::Flag, b"attachment")?,
        Filter::Has(Has::Link) => flag(catalog, "has_link")?,
        Filter::Has(Has::Invite) => flag(catalog, "has_invite")?,
        Filter::Filename(part) => holding(catalog, Facet::Filename, |name| name.contains(part))?,
        Filter::Type(TypeMatch::Class(class)) => {
            with(catalog, Facet::AttachmentClass, class.name().as_bytes())?
        }
        Filter::Type(TypeMatch::Mime(mime)) => {
            with(catalog, Facet::AttachmentType, mime.as_bytes())?
        }
        Filter::Date(date) => catalog.dated(date.range.start_ms, date.range.end_ms)?,
        Filter::Direction(Direction::Outbound) => outbound(catalog)?,
        Filter::Direction(Direction::Inbound) => all(catalog)? - outbound(catalog)?,
        Filter::Place(Place::Anywhere) => all(catalog)?,
        Filter::Place(Place::Junk) => placed(catalog, |folder, _| role(folder) == Role::Junk)?,
        Filter::Place(Place::Trash) => placed(catalog, |folder, _| role(folder) == Role::Trash)?,
        Filter::Thread(thread) => match catalog.ordinal(MessageId(thread.0))? {
            Some(first) => match catalog.thread_of(first)? {
                Some(number) => catalog.thread(number)?,
                None => RoaringBitmap::new(),
            },
            None => RoaringBitmap::new(),
        },
        Filter::Is(state) => in_state(catalog, *state)?,
        // No message has a category yet; a negation is satisfied by all of them.
        Filter::Category(_) => RoaringBitmap::new(),
        Filter::List(part) => holding(catalog, Facet::List, |list| list.contains(part))?,
        Filter::Larger(bytes) => catalog.sized(*bytes, u64::MAX)?,
        Filter::Smaller(bytes) => catalog.sized(0, *bytes)?,
        Filter::MessageId(id) => catalog.by_message_id(id)?.into_iter().collect(),
        Filter::Folder(name) => placed(catalog, |folder, _| fold_name(folder) == *name)?,
        Filter::Source(name) => placed(catalog, |_, source| fold_name(source) == *name)?,
        Filter::Lang(lang) => with(catalog, Facet::Language, lang.code().as_bytes())?,
    };
    Ok(found)
}

fn with(catalog: &CatalogView, facet: Facet, value: &[u8]) -> Result<RoaringBitmap, CatalogError> {
    Ok(catalog.with(facet, value)?.as_ref().clone())
}

fn all(catalog: &CatalogView) -> Result<RoaringBitmap, CatalogError> {
    with(catalog, Facet::All, b"")
}

fn flag(catalog: &CatalogView, name: &str) -> Result<RoaringBitmap, CatalogError> {
    match FLAG_NAMES.iter().position(|n| *n == name) {
        Some(bit) => with(catalog, Facet::Flag, &[bit as u8]),
        None => Err(CatalogError::Damaged("no such flag")),
    }
}

fn holding(
    catalog: &CatalogView,
    facet: Facet,
    holds: impl Fn(&str) -> bool,
) -> Result<RoaringBitmap, CatalogError> {
    let mut found = RoaringBitmap::new();
    for (value, messages) in catalog.values(facet, b"")? {
        if std::str::from_utf8(&value).is_ok_and(&holds) {
            found |= messages;
        }
    }
    Ok(found)
}

fn placed(
    catalog: &CatalogView,
    wanted: impl Fn(&str, &str) -> bool,
) -> Result<RoaringBitmap, CatalogError> {
    let mut found = RoaringBitmap::new();
    for (placement, messages) in catalog.placements()? {
        if wanted(&placement.folder, &placement.source) {
            found |= messages;
        }
    }
    Ok(found)
}

fn people(
    catalog: &CatalogView,
    facets: &[Facet],
    address: &AddrMatch,
) -> Result<RoaringBitmap, CatalogError> {
    match address {
        AddrMatch::Exact(address) => catalog.by_address(facets, address),
        // A person's text is `address 0 name`: the end of the domain is part of the needle.
        AddrMatch::Domain(domain) => Ok(catalog.by_name(facets, &format!("@{domain}\0"))?
            | catalog.by_name(facets, &format!(".{domain}\0"))?),
        AddrMatch::Fuzzy(text) => catalog.by_name(facets, &fold(text)),
    }
}

fn from(catalog: &CatalogView, address: &AddrMatch) -> Result<RoaringBitmap, CatalogError> {
    match address {
        AddrMatch::Domain(domain) => catalog.by_domain(Facet::FromDomain, domain),
        _ => people(catalog, &[Facet::From], address),
    }
}

fn to(catalog: &CatalogView, address: &AddrMatch) -> Result<RoaringBitmap, CatalogError> {
    match address {
        AddrMatch::Domain(domain) => catalog.by_domain(Facet::ToDomain, domain),
        _ => Ok(people(catalog, &TO, address)? | delivered_to(catalog, address)?),
    }
}

fn delivered_to(catalog: &CatalogView, address: &AddrMatch) -> Result<RoaringBitmap, CatalogError> {
    match address {
        AddrMatch::Exact(address) => with(catalog, Facet::DeliveredTo, address.as_bytes()),
        AddrMatch::Domain(domain) => holding(catalog, Facet::DeliveredTo, |held| {
            held.rsplit_once('@')
                .and_then(|(_, host)| host.strip_suffix(domain.as_str()))
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        }),
        AddrMatch::Fuzzy(text) => {
            let folded = fold(text);
            holding(catalog, Facet::DeliveredTo, |held| fold(held).contains(&folded))
        }
    }
}

/// Mail from the owner's addresses or in a folder of sent mail.
pub(super) fn outbound(catalog: &CatalogView) -> Result<RoaringBitmap, CatalogError> {
    let mut found = placed(catalog, |folder, _| role(folder) == Role::Sent)?;
    for address in catalog.own_addresses() {
        found |= catalog.by_address(&[Facet::From], address)?;
    }
    Ok(found)
}

fn in_state(catalog: &CatalogView, state: State) -> Result<RoaringBitmap, CatalogError> {
    match state {
        State::Unread => with(catalog, Facet::Label, b"unread"),
        State::Read => Ok(all(catalog)? - with(catalog, Facet::Label, b"unread")?),
        State::NeedsReply => with(catalog, Facet::Label, b"needs_reply"),
        State::Starred => with(catalog, Facet::Label, b"starred"),
        State::Quarantined => {
            with(catalog, Facet::Status, &[crate::events::Status::Quarantined as u8])
        }
        State::Encrypted => flag(catalog, "encrypted"),
        State::Signed => flag(catalog, "signed"),
        State::List => Ok(holding(catalog, Facet::List, |_| true)?
            | with(catalog, Facet::Kind, &[StoredKind::List as u8])?),
    }
}

/// References are not extracted yet: a reference is found in subject, new text and attachments, as
/// it is written or with its separators left out.
fn references(view: &View, reference: &RefMatch) -> Result<RoaringBitmap, SearchError> {
    let forms = [reference.raw.as_str(), reference.fallback.as_str()];
    let queries: Vec<TextQuery> = forms
        .iter()
        .filter_map(|form| Pattern::new(form, false, 0))
        .map(|pattern| view.text.pattern(&pattern, Scope::Written, &[]))
        .collect();
    if queries.is_empty() {
        return Ok(RoaringBitmap::new());
    }
    Ok(view.text.all(&TextQuery::any_of(queries))?)
}

/// Whether a message is in a set, by ordinal.
pub(super) fn contains(set: &RoaringBitmap, ordinal: Ordinal) -> bool {
    set.contains(ordinal.0)
}
