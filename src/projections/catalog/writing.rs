//! The open transaction of a catalog: events are applied to it while they arrive, on a thread of
//! its own because LMDB ties a write transaction to one, so that the text index is fed meanwhile.
//! Nothing of it is seen before [`Writing::finish`]; dropped unfinished, it leaves no trace.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::apply::Batch;
use super::{Catalog, CatalogError, Counters};
use crate::crash_point;
use crate::projections::Applicable;

/// Chunks of events that may wait; the sender is held up when there are more.
const CHUNKS_WAITING_MAX: usize = 8;

enum Step {
    Apply(Vec<Applicable>),
    Commit,
}

/// A transaction that is being filled.
#[derive(Debug)]
pub(in crate::projections) struct Writing {
    steps: SyncSender<Step>,
    thread: JoinHandle<Result<Option<Counters>, CatalogError>>,
}

impl Writing {
    pub(super) fn begin(catalog: &Catalog) -> Result<Self, CatalogError> {
        let (steps, taken) = sync_channel(CHUNKS_WAITING_MAX);
        let part = catalog.part();
        let thread = std::thread::Builder::new()
            .name("catalog".to_owned())
            .spawn(move || fill(&part, &taken))?;
        Ok(Self { steps, thread })
    }

    /// Hands events over, in order. A failure shows in [`Writing::finish`].
    pub(in crate::projections) fn apply(&self, events: Vec<Applicable>) {
        // A thread that failed has let go of its end; what it met is its result.
        let _ = self.steps.send(Step::Apply(events));
    }

    /// Starts the commit, so that other work may go on beside it until [`Writing::finish`].
    pub(in crate::projections) fn start_commit(&self) {
        let _ = self.steps.send(Step::Commit);
    }

    /// Drops what was applied, and waits until the environment is let go.
    pub(in crate::projections) fn abandon(self) {
        drop(self.steps);
        // Whatever it met: nothing of it is kept.
        let _ = self.thread.join();
    }

    /// Commits, waits for it and tells what the catalog knows now.
    pub(super) fn finish(self) -> Result<Counters, CatalogError> {
        self.start_commit();
        drop(self.steps);
        let ended =
            self.thread.join().map_err(|_| CatalogError::Damaged("panicked on applying"))?;
        ended?.ok_or(CatalogError::Damaged("not committed"))
    }
}

/// What the thread needs of its catalog.
pub(super) struct Part {
    pub(super) env: heed::Env<heed::WithoutTls>,
    pub(super) tables: super::Tables,
    pub(super) counters: Counters,
}

fn fill(part: &Part, steps: &Receiver<Step>) -> Result<Option<Counters>, CatalogError> {
    let mut wtxn = part.env.write_txn()?;
    let mut counters = part.counters.clone();
    let mut batch = Batch::new(&part.tables);
    while let Ok(step) = steps.recv() {
        let events = match step {
            Step::Apply(events) => events,
            Step::Commit => {
                batch.finish(&mut wtxn)?;
                counters.store(&part.tables, &mut wtxn)?;
                wtxn.commit()?;
                crash_point::reach("catalog committed");
                return Ok(Some(counters));
            }
        };
        for event in &events {
            if event.seq > counters.checkpoint {
                batch.event(&mut wtxn, &mut counters, event)?;
                counters.checkpoint = event.seq;
            }
        }
    }
    Ok(None)
}
