//! Searching a directory that nobody has open, without opening its log.
//!
//! Closing a directory writes down who owns which mailbox and where each log ends
//! (`closed.json`); opening it takes that away. While the note stands and the projections are
//! marked as closed well at those positions, a search needs nothing but them: a one-shot command
//! answers in milliseconds instead of recovering a journal first.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use super::{Error, Inner};
use crate::actors::directory::mailbox_dir;
use crate::clock::SharedClock;
use crate::config::Config;
use crate::events::registry::{Identity, Registry, Tenant};
use crate::ids::{MailboxNo, Seq};
use crate::projections::generation::{Generations, Trust};
use crate::projections::set::ProjectionSet;
use crate::projections::view::View;
use crate::search::{MailboxOwner, SearchRequest, SearchResponse};

#[derive(Serialize, Deserialize)]
struct Closed {
    tenants: Vec<Tenant>,
    identities: Vec<Identity>,
    heads: BTreeMap<u32, Seq>,
}

fn note(data_dir: &Path) -> PathBuf {
    data_dir.join("closed.json")
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Whether the directory was closed well and has not been opened since.
pub(super) fn is_closed(data_dir: &Path) -> bool {
    note(data_dir).exists()
}

/// Takes the note away before anything may change.
pub(super) fn forget(data_dir: &Path) -> Result<(), Error> {
    match std::fs::remove_file(note(data_dir)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(data_dir, error)),
        _ => Ok(()),
    }
}

/// Writes the note after everything has been closed.
pub(super) fn remember(inner: &Inner) -> Result<(), Error> {
    if inner.running.health.write_failure().is_some() {
        return Ok(());
    }
    inner.log.settle()?;
    let registry = inner.registry.read().unwrap_or_else(PoisonError::into_inner).clone();
    let mut heads = BTreeMap::new();
    for identity in &registry.identities {
        heads.insert(identity.mailbox.0, inner.log.head(identity.mailbox)?);
    }
    let Registry { tenants, identities, erased: _ } = registry;
    let path = note(&inner.config.data_dir);
    let text = serde_json::to_vec(&Closed { tenants, identities, heads })
        .map_err(|e| io(&path, e.into()))?;
    std::fs::write(&path, text).map_err(|e| io(&path, e))
}

/// Answers a search from a directory that was closed well and that nobody has open; `None` when
/// it must be opened for that.
///
/// # Errors
/// What the search says.
pub fn search_closed(
    config: &Config,
    clock: &SharedClock,
    mailbox: &str,
    request: &SearchRequest,
) -> Option<Result<SearchResponse, Error>> {
    let lock = File::open(config.data_dir.join("LOCK")).ok()?;
    lock.try_lock_shared().ok()?;
    let text = std::fs::read(note(&config.data_dir)).ok()?;
    let Closed { tenants, identities, heads } = serde_json::from_slice(&text).ok()?;
    let registry = Registry { tenants, identities, erased: Vec::new() };
    let Some(identity) = registry.identity(mailbox) else {
        return Some(Err(Error::NoSuchMailbox));
    };
    let view = open_view(config, identity.mailbox, *heads.get(&identity.mailbox.0)?)?;
    let zone = registry.tenant_of(identity).map_or("UTC", |t| t.time_zone.as_str());
    let zone = jiff::tz::TimeZone::get(zone).unwrap_or(jiff::tz::TimeZone::UTC);
    let owner = MailboxOwner { identity: identity.id };
    let dir = mailbox_dir(&config.data_dir.join("mailboxes"), identity.mailbox);
    let aids = super::semantic::closed(config, identity, &dir, request);
    let now_ms = clock.now_ms();
    let answer = crate::search::search(&view, &owner, request, &zone, now_ms, &aids);
    if matches!(answer, Err(crate::search::SearchError::Projection(_))) {
        // Damage: without its marks the directory is checked as it is opened, and mended.
        let (catalogs, texts) = ProjectionSet::generations(&dir);
        for generations in [catalogs, texts] {
            if let Ok(Some(path)) = generations.current() {
                let _ = generations.unmark(&path);
            }
        }
        return None;
    }
    Some(answer.map_err(Error::from))
}

fn open_view(config: &Config, mailbox: MailboxNo, head: Seq) -> Option<View> {
    let dir = mailbox_dir(&config.data_dir.join("mailboxes"), mailbox);
    let (catalogs, texts) = ProjectionSet::generations(&dir);
    let catalog = current(&catalogs, head)?;
    let text = current(&texts, head)?;
    View::open_read_only(&catalog, &text).ok().filter(|view| view.seq() == head)
}

/// The serving generation, when it was closed well at `head`.
fn current(generations: &Generations, head: Seq) -> Option<PathBuf> {
    let path = generations.current().ok()??;
    (generations.trust(&path).ok()? == (Trust::Clean, head)).then_some(path)
}
