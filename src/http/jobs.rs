//! Long work of the administration: imports and rebuilds that run while their watchers come and
//! go.
//!
//! Kept in memory, the last [`JOBS_MAX`]; at most [`RUNNING_MAX`] run at once, more are refused.
//! A restart forgets them; an import is continued by running it again.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::watch;
use ulid::Ulid;

use super::rebuild::{RebuildWatch, rebuild_mailboxes};
use super::refusal::Refusal;
use super::wire::{ErrorBody, JobProgress, JobState, JobView, RebuildRequest};
use crate::app::{
    Account, EmbedProgress, Error, ImportOptions, ImportProgress, Postrider, Rebuilt,
    VerifyProgress,
};
use crate::clock::SharedClock;

/// Jobs remembered.
const JOBS_MAX: usize = 100;
/// Jobs at work at once.
const RUNNING_MAX: usize = 8;

/// All jobs.
pub(super) struct Jobs {
    clock: SharedClock,
    list: Mutex<VecDeque<Arc<Job>>>,
}

/// One job.
pub(super) struct Job {
    id: String,
    started: Instant,
    work: Work,
    end: watch::Sender<Option<End>>,
}

enum Work {
    Import(Arc<ImportProgress>),
    Rebuild(Arc<RebuildWatch>),
    Maintenance(Arc<VerifyProgress>),
    Embedding(Arc<EmbedProgress>),
}

enum End {
    Imported(Account),
    Rebuilt(Vec<Rebuilt>),
    Maintained(Value),
    Failed(ErrorBody),
}

impl Jobs {
    /// No job yet.
    pub(super) fn new(clock: SharedClock) -> Self {
        Self { clock, list: Mutex::default() }
    }

    /// Starts an import.
    pub(super) fn import(
        &self,
        postrider: Postrider,
        mailbox: String,
        paths: Vec<std::path::PathBuf>,
        options: ImportOptions,
    ) -> Result<Arc<Job>, Refusal> {
        let job = self.add(Work::Import(Arc::clone(&options.progress)))?;
        job.run(
            async move { postrider.import(&mailbox, &paths, options).await.map(End::Imported) },
        );
        Ok(job)
    }

    /// Starts a rebuild.
    pub(super) fn rebuild(
        &self,
        postrider: Postrider,
        request: RebuildRequest,
    ) -> Result<Arc<Job>, Refusal> {
        let watch = Arc::<RebuildWatch>::default();
        let job = self.add(Work::Rebuild(Arc::clone(&watch)))?;
        job.run(
            async move { rebuild_mailboxes(&postrider, &request, &watch).await.map(End::Rebuilt) },
        );
        Ok(job)
    }

    /// Starts other work, whose outcome is JSON.
    pub(super) fn maintain(
        &self,
        progress: Arc<VerifyProgress>,
        work: impl Future<Output = Result<Value, Error>> + Send + 'static,
    ) -> Result<Arc<Job>, Refusal> {
        let job = self.add(Work::Maintenance(progress))?;
        job.run(async move { work.await.map(End::Maintained) });
        Ok(job)
    }

    /// Starts an embedding, whose outcome is JSON too.
    pub(super) fn embed(
        &self,
        progress: Arc<EmbedProgress>,
        work: impl Future<Output = Result<Value, Error>> + Send + 'static,
    ) -> Result<Arc<Job>, Refusal> {
        let job = self.add(Work::Embedding(progress))?;
        job.run(async move { work.await.map(End::Maintained) });
        Ok(job)
    }

    fn add(&self, work: Work) -> Result<Arc<Job>, Refusal> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.iter().filter(|job| job.is_running()).count() >= RUNNING_MAX {
            return Err(Refusal::busy());
        }
        while list.len() >= JOBS_MAX {
            let Some(ended) = list.iter().position(|job| !job.is_running()) else { break };
            list.remove(ended);
        }
        let millis = u64::try_from(self.clock.now_ms()).unwrap_or(0);
        let id = format!("job_{}", Ulid::from_parts(millis, self.clock.random_bits()));
        let job =
            Arc::new(Job { id, started: Instant::now(), work, end: watch::Sender::new(None) });
        list.push_back(Arc::clone(&job));
        Ok(job)
    }

    /// A job by its identifier.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Job>, Refusal> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().find(|job| job.id == id).cloned().ok_or_else(|| {
            let fix = "jobs are forgotten when the server restarts, and after a hundred newer ones";
            Refusal::new("job_not_found", "no such job", fix)
        })
    }

    /// Asks every job to end early, and waits until all jobs have ended.
    pub(super) async fn end_all(&self) {
        let jobs = self.list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for job in &jobs {
            job.ask_to_stop();
        }
        for job in &jobs {
            // The sender is in the job, so this ends when the job does.
            let _ = job.end.subscribe().wait_for(Option::is_some).await;
        }
    }
}

impl Job {
    /// Its identifier.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    fn is_running(&self) -> bool {
        self.end.borrow().is_none()
    }

    fn run(self: &Arc<Self>, work: impl Future<Output = Result<End, Error>> + Send + 'static) {
        let job = Arc::clone(self);
        tokio::spawn(async move {
            let end = match tokio::spawn(work).await {
                Ok(Ok(end)) => end,
                Ok(Err(error)) => End::Failed(ErrorBody::from(&error)),
                Err(_) => End::Failed(ErrorBody::from(&Error::Gone)),
            };
            job.end.send_replace(Some(end));
        });
    }

    /// Asks it to end early.
    pub(super) fn ask_to_stop(&self) {
        match &self.work {
            Work::Import(progress) => progress.stop.store(true, Relaxed),
            Work::Rebuild(watch) => watch.cancel(),
            Work::Embedding(progress) => progress.stop.store(true, Relaxed),
            // Nothing is half done when it is ended by the end of the process.
            Work::Maintenance(_) => {}
        }
    }

    /// Holds it up, or lets it go on; whether it can.
    pub(super) fn pause(&self, pause: bool) -> bool {
        match &self.work {
            Work::Import(_) | Work::Maintenance(_) | Work::Embedding(_) => false,
            Work::Rebuild(watch) => {
                watch.pause(pause);
                true
            }
        }
    }

    fn is_paused(&self) -> bool {
        matches!(&self.work, Work::Rebuild(watch) if watch.is_paused())
    }

    /// How it stands.
    pub(super) fn view(&self) -> JobView {
        let progress = match &self.work {
            Work::Import(progress) => JobProgress::Import {
                bytes_done: progress.bytes_done.load(Relaxed),
                bytes_total: progress.bytes_total.load(Relaxed),
                messages: progress.messages.load(Relaxed),
            },
            Work::Rebuild(watch) => watch.look(),
            Work::Maintenance(progress) => steps(progress),
            Work::Embedding(progress) => steps(&progress.counts),
        };
        let fraction = progress.fraction();
        let elapsed = self.started.elapsed().as_secs_f64();
        let mut view = JobView {
            job_id: self.id.clone(),
            state: if self.is_paused() { JobState::Paused } else { JobState::Running },
            progress,
            percent: fraction.map(|f| (f * 1_000.0).round() / 10.0),
            seconds_left: fraction
                .filter(|f| *f > 0.01)
                .map(|f| (elapsed * (1.0 - f) / f).round() as u64),
            account: None,
            rebuilt: Vec::new(),
            outcome: None,
            error: None,
        };
        match &*self.end.borrow() {
            None => {}
            Some(End::Imported(account)) => {
                view.state = JobState::Done;
                view.account = Some(account.clone());
            }
            Some(End::Rebuilt(rebuilt)) => {
                view.state = JobState::Done;
                view.rebuilt.clone_from(rebuilt);
            }
            Some(End::Maintained(outcome)) => {
                view.state = JobState::Done;
                view.outcome = Some(outcome.clone());
            }
            Some(End::Failed(error)) => {
                view.state = JobState::Failed;
                view.error = Some(error.clone());
            }
        }
        view
    }
}

fn steps(progress: &VerifyProgress) -> JobProgress {
    JobProgress::Maintenance {
        done: progress.done.load(Relaxed),
        total: progress.total.load(Relaxed),
    }
}
