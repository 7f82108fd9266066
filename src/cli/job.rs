//! Waiting for long work: shows how far it is, and hands interruptions on.

use std::time::Duration;

use crate::http::wire::{JobProgress, JobState, JobView};

use super::client::Client;
use super::failure::{Exit, Failure};
use super::interrupt::Interrupts;
use super::progress::Bar;

/// Time between two looks at work in this process.
const LOOK_HERE: Duration = Duration::from_millis(100);
/// Time between two looks at a server's job.
const LOOK_SERVER: Duration = Duration::from_millis(100);

/// Waits for work in this process. `progress` tells how far it is; `stop` asks it to end early,
/// or says that it cannot.
pub(super) async fn here<T>(
    work: impl Future<Output = T>,
    bar: Bar,
    progress: impl Fn() -> JobProgress,
    stop: impl Fn() -> bool,
) -> Result<T, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let mut looks = tokio::time::interval(LOOK_HERE);
    let mut stopping = false;
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            _ = looks.tick() => bar.show(&progress()),
            () = interrupts.next() => {
                if stopping || !stop() {
                    abort(bar);
                }
                stopping = true;
                bar.stopping();
            }
        }
    }
}

/// Waits for a job of a server.
pub(super) async fn at_server(client: &Client, job_id: &str, bar: Bar) -> Result<JobView, Failure> {
    let mut interrupts = Interrupts::listen()?;
    let mut looks = tokio::time::interval(LOOK_SERVER);
    let mut stopping = false;
    let path = format!("/v1/admin/jobs/{job_id}");
    loop {
        tokio::select! {
            _ = looks.tick() => {
                let view: JobView = client.get(&path).await?;
                bar.show(&view.progress);
                match (view.state, view.error.clone()) {
                    (JobState::Running | JobState::Paused, _) => {}
                    (JobState::Failed, Some(error)) => return Err(error.into()),
                    _ => return Ok(view),
                }
            }
            () = interrupts.next() => {
                if stopping {
                    abort(bar);
                }
                stopping = true;
                bar.stopping();
                client.post::<JobView>(&format!("{path}/stop"), &serde_json::json!({})).await?;
            }
        }
    }
}

/// The second interruption: ends at once. Whatever was acknowledged is durable.
fn abort(bar: Bar) -> ! {
    drop(bar);
    std::process::exit(i32::from(Exit::Interrupted.number()))
}
