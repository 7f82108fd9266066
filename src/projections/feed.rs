//! Replay: events of the log, with their messages read again, in order and in chunks.
//!
//! Reading runs ahead of applying by a bounded number of chunks and on as many threads as there
//! are processors. An erased message comes without its content; an event that does not open or
//! decode stops the replay and names its place.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::{Applicable, ProjectionError};
use crate::events::codec::Recorded;
use crate::events::event::MessageIngested;
use crate::events::{Event, Log, LogError};
use crate::ids::{MailboxNo, Seq};
use crate::mail::message::ReadHints;
use crate::mail::read_guarded;

/// Events per chunk.
const CHUNK_EVENTS: usize = 256;
/// A chunk closes early at this many raw bytes.
const CHUNK_BYTES: usize = 4 << 20;
/// Chunks read ahead.
const AHEAD: usize = 2;

/// What was known besides the bytes when the message arrived.
#[must_use]
pub fn hints(ingested: &MessageIngested) -> ReadHints {
    ReadHints {
        separator_ms: ingested.separator_ms,
        file_ms: ingested.file_ms,
        arrived_ms: ingested.arrived_ms,
    }
}

/// Hands every event after `after` up to `through` to `take`, in order. Messages are read on
/// `readers`, or where all others are.
///
/// # Errors
/// What the log says, or what `take` says.
pub fn replay(
    log: &Log,
    mailbox: MailboxNo,
    after: Seq,
    through: Seq,
    readers: Option<&ThreadPool>,
    mut take: impl FnMut(Vec<Applicable>) -> Result<(), ProjectionError>,
) -> Result<(), ProjectionError> {
    let mut events = log.read(mailbox, after, through)?;
    thread::scope(|scope| {
        let (give, chunks) = sync_channel::<Result<Vec<Applicable>, LogError>>(AHEAD);
        scope.spawn(move || {
            loop {
                match gather(log, mailbox, &mut events) {
                    Ok(chunk) if chunk.is_empty() => break,
                    Ok(chunk) => {
                        let read = match readers {
                            Some(readers) => readers.install(|| read_all(chunk)),
                            None => read_all(chunk),
                        };
                        if give.send(Ok(read)).is_err() {
                            break;
                        }
                    }
                    Err(error) => {
                        // Nobody listens any more when `take` failed first.
                        let _ = give.send(Err(error));
                        break;
                    }
                }
            }
        });
        for chunk in chunks {
            take(chunk?)?;
        }
        Ok(())
    })
}

type Gathered = (Recorded, Option<Vec<u8>>);

fn gather(
    log: &Log,
    mailbox: MailboxNo,
    events: &mut impl Iterator<Item = Result<Recorded, LogError>>,
) -> Result<Vec<Gathered>, LogError> {
    let mut chunk = Vec::with_capacity(CHUNK_EVENTS);
    let mut bytes = 0;
    while chunk.len() < CHUNK_EVENTS && bytes < CHUNK_BYTES {
        let Some(recorded) = events.next() else { break };
        let recorded = recorded?;
        let raw = match &recorded.event {
            Event::MessageIngested(ingested) => match log.raw(mailbox, ingested.ordinal) {
                Ok(raw) => Some(raw),
                Err(LogError::Erased { .. }) => None,
                Err(other) => return Err(other),
            },
            _ => None,
        };
        bytes += raw.as_ref().map_or(0, Vec::len);
        chunk.push((recorded, raw));
    }
    Ok(chunk)
}

fn read_all(chunk: Vec<Gathered>) -> Vec<Applicable> {
    chunk
        .into_par_iter()
        .map(|(recorded, raw)| {
            let message = match (&recorded.event, raw) {
                (Event::MessageIngested(ingested), Some(raw)) => {
                    Some(Arc::new(read_guarded(&raw, &hints(ingested))))
                }
                _ => None,
            };
            Applicable { seq: recorded.seq, event: recorded.event, message }
        })
        .collect()
}
