//! One batch of messages on its way through a model: chosen, computed, kept.
//!
//! Choosing and keeping hold the mailbox's place; computing does not, so that a model that is slow
//! keeps no purge waiting. What was erased or forbidden meanwhile is left out when it is kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use roaring::RoaringBitmap;

use super::embedding::{EmbedProgress, Embedded};
use super::indexes::failed;
use super::spaces::{Shape, Space};
use crate::app::{Error, Inner};
use crate::crash_point;
use crate::embed::chunk::{self, Chunk};
use crate::embed::{Model, ModelError, Role};
use crate::ids::{MailboxNo, Ordinal};
use crate::projections::catalog::prepared::Prepared;
use crate::projections::vectors::Stored;
use crate::projections::view::View;
use crate::search::semantic::eligible;

/// Messages embedded together: what a purge waits for at most.
pub(super) const BATCH_MESSAGES: usize = 64;

/// Where a batch comes from and goes to.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) mailbox: MailboxNo,
    pub(super) dir: PathBuf,
    pub(super) space: Space,
    pub(super) shape: Shape,
}

/// What a batch is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Messages at most.
    pub(super) limit: u64,
    /// Take out what has a refused passage, so that it is asked about again.
    pub(super) begin_again: bool,
    /// Ask again also where what is kept has a refused passage.
    pub(super) ask_again: bool,
}

/// A batch that was chosen.
pub(super) struct Chosen {
    model: Arc<Model>,
    /// Their vectors are kept already.
    ready: Vec<(Ordinal, Stored)>,
    work: Vec<Work>,
}

/// What a model said.
pub(super) struct Computed {
    chosen: Chosen,
    vectors: Vec<(Ordinal, Stored)>,
    fault: Option<&'static str>,
}

/// The passages of one message on their way through a model.
struct Work {
    ordinal: Ordinal,
    digest: [u8; 16],
    chunks: Vec<Chunk>,
    passages: Vec<String>,
}

/// The next messages without vectors, newest first.
pub(super) fn choose(
    inner: &Inner,
    place: &Place,
    view: &View,
    wanted: Wanted,
    progress: &EmbedProgress,
) -> Result<Chosen, Error> {
    let (semantic, mailbox, catalog) = (&inner.semantic, place.mailbox, &view.catalog);
    let (model, Shape { fingerprint, dimensions }) = semantic.model_of(&place.space)?;
    semantic.indexes.keep_only(mailbox, &place.dir, &semantic.spaces().kept())?;
    let index = semantic.indexes.get(mailbox, &place.dir, place.shape)?;
    let never = &semantic.never;
    let stale = index.covered() & never.messages(catalog)?;
    if !stale.is_empty() {
        index.remove(&stale).map_err(failed)?;
        inner.log.drop_embeddings(&inner.log.spaces()?, mailbox, &stale)?;
    }
    if wanted.begin_again {
        index.remove(&index.failed()).map_err(failed)?;
    }
    let pending = eligible(catalog, never)? - index.covered();
    let counts = &progress.counts;
    let total = counts.done.load(Ordering::Relaxed) + pending.len().min(wanted.limit);
    counts.total.fetch_max(total, Ordering::Relaxed);
    let most = BATCH_MESSAGES.min(usize::try_from(wanted.limit).unwrap_or(usize::MAX));
    let mut newest = Vec::with_capacity(most);
    catalog.in_date_order(&pending, true, |_, ordinal| {
        newest.push(ordinal);
        newest.len() < most
    })?;
    let mut chosen = Chosen { model, ready: Vec::new(), work: Vec::new() };
    for message in catalog.prepared(newest)? {
        let one = passages(&message, &chosen.model);
        let kept = inner.log.embedding(fingerprint.0, mailbox, one.ordinal)?;
        let kept = kept.and_then(|bytes| Stored::decode(&bytes, dimensions as usize));
        let kept = kept.filter(|stored| {
            stored.digest == one.digest && !(wanted.ask_again && stored.failed > 0)
        });
        match kept {
            Some(stored) => chosen.ready.push((one.ordinal, stored)),
            None => chosen.work.push(one),
        }
    }
    Ok(chosen)
}

/// Asks the model. Holds nothing.
pub(super) fn compute(inner: &Inner, place: &Place, chosen: Chosen) -> Result<Computed, Error> {
    if chosen.model.is_remote() && !(chosen.work.is_empty() && chosen.ready.is_empty()) {
        inner.semantic.refer(&inner.config, &inner.log, &chosen.model, place.shape)?;
    }
    let (vectors, fault) = ask(&chosen.model, &chosen.work);
    if let (Some(what), true) = (fault, chosen.ready.is_empty() && vectors.is_empty()) {
        return Err(Error::Model(what.to_owned()));
    }
    Ok(Computed { chosen, vectors, fault })
}

/// Keeps what was computed, in the log first.
pub(super) fn keep(
    inner: &Inner,
    place: &Place,
    view: &View,
    computed: Computed,
) -> Result<Embedded, Error> {
    let Computed { chosen, mut vectors, fault } = computed;
    let (mut ready, mailbox) = (chosen.ready, place.mailbox);
    let index = inner.semantic.indexes.get(mailbox, &place.dir, place.shape)?;
    // As they are now.
    let eligible: RoaringBitmap = eligible(&view.catalog, &inner.semantic.never)?;
    vectors.retain(|(ordinal, _)| eligible.contains(ordinal.0));
    ready.retain(|(ordinal, _)| eligible.contains(ordinal.0));
    let mut done = Embedded { kept: ready.len() as u64, ..Embedded::default() };
    for (_, stored) in &vectors {
        done.failed += u64::from(stored.failed > 0);
        done.cut += u64::from(stored.cut > 0);
        let is_empty = stored.passages.is_empty() && stored.failed == 0;
        if is_empty { done.empty += 1 } else { done.computed += 1 }
    }
    let bytes: Vec<(Ordinal, Vec<u8>)> =
        vectors.iter().map(|(ordinal, stored)| (*ordinal, stored.encode())).collect();
    inner.log.put_embeddings(place.shape.fingerprint.0, mailbox, &bytes)?;
    crash_point::reach("embedding kept");
    ready.extend(vectors);
    index.add(&ready).map_err(failed)?;
    crash_point::reach("embedding indexed");
    done.pending = (&eligible - index.covered()).len();
    match fault {
        // What was answered is kept; the rest waits.
        Some(what) if done.pending > 0 && done.computed + done.kept + done.empty == 0 => {
            Err(Error::Model(what.to_owned()))
        }
        _ => Ok(done),
    }
}

fn passages(message: &Prepared, model: &Model) -> Work {
    let limits = model.profile().limits();
    let text = message.new_text();
    let chunks = chunk::chunks(&message.subject, &text, limits);
    let passages =
        chunks.iter().map(|c| chunk::passage(&message.subject, &text, c, limits)).collect();
    let digest = chunk::digest(&message.subject, &text, limits);
    Work { ordinal: message.ordinal, digest, chunks, passages }
}

/// Asks the model, on as many threads as it may be asked on. A passage that it refuses is counted
/// and left out; a message that it did not answer for is tried again another time.
fn ask(model: &Model, work: &[Work]) -> (Vec<(Ordinal, Stored)>, Option<&'static str>) {
    let texts: Vec<&str> =
        work.iter().flat_map(|one| one.passages.iter().map(String::as_str)).collect();
    let threads = model.at_once();
    let share = texts.len().div_ceil(threads).max(1);
    let vectors: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = texts
            .chunks(share)
            .map(|part| scope.spawn(move || model.embed(Role::Passage, part)))
            .collect();
        // A thread that died gives nothing; its messages are tried again.
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    if vectors.len() < texts.len() {
        return (Vec::new(), Some("the model died"));
    }
    let mut fault = None;
    let mut vectors = vectors.into_iter();
    let mut computed = Vec::with_capacity(work.len());
    for one in work {
        let (mut places, mut found) = (Vec::new(), Vec::new());
        let (mut answered, mut failed, mut cut) = (true, 0, 0);
        for chunk in &one.chunks {
            match vectors.next() {
                Some(Ok(vector)) => {
                    places.push((chunk.start, chunk.end));
                    cut += u32::from(vector.cut);
                    found.push(vector.values);
                }
                Some(Err(ModelError::Remote(what) | ModelError::Spent(what))) => {
                    (answered, fault) = (false, Some(what));
                }
                Some(Err(ModelError::Refused(_))) => failed += 1,
                _ => {}
            }
        }
        if answered {
            let mut stored = Stored::new(one.digest, places, &found);
            (stored.failed, stored.cut) = (failed, cut);
            computed.push((one.ordinal, stored));
        }
    }
    (computed, fault)
}
