//! The log writer: sole owner of durable writes.
//!
//! Wakes when a mailbox hands it an append. While one batch is being synced everything that
//! arrives gathers; the next batch takes all of it. After one failed write it takes no more, tells
//! every caller why, and the server's health shows it. Never reads the log.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::health::Health;
use crate::events::Log;
use crate::events::log::SealedAppend;

/// Called when the append is durable, or will never be.
pub type Done = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Requests to the log writer.
pub enum Request {
    /// Make this durable.
    Append(SealedAppend, Done),
    /// A batch came back from the disk.
    Written(Result<(), String>, Vec<Done>),
    /// Answer when everything handed in before is durable or failed.
    Drain(tokio::sync::oneshot::Sender<()>),
}

/// See the module.
pub struct LogWriter;

/// State of the actor.
pub struct State {
    log: Arc<Log>,
    health: Arc<Health>,
    waiting: Vec<(SealedAppend, Done)>,
    writing: bool,
    drains: Vec<tokio::sync::oneshot::Sender<()>>,
}

impl Actor for LogWriter {
    type Msg = Request;
    type State = State;
    type Arguments = (Arc<Log>, Arc<Health>);

    async fn pre_start(
        &self,
        _: ActorRef<Request>,
        (log, health): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        Ok(State { log, health, waiting: Vec::new(), writing: false, drains: Vec::new() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Request>,
        request: Request,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match request {
            Request::Append(append, done) => match state.health.write_failure() {
                Some(why) => done(Err(why)),
                None => state.waiting.push((append, done)),
            },
            Request::Written(result, done) => {
                state.writing = false;
                if let Err(why) = &result {
                    state.health.fail_writes(why);
                    tracing::error!("a durable write failed, no further write is accepted");
                    let waiting = std::mem::take(&mut state.waiting);
                    waiting.into_iter().for_each(|(_, done)| done(Err(why.clone())));
                }
                done.into_iter().for_each(|done| done(result.clone()));
            }
            Request::Drain(reply) => state.drains.push(reply),
        }
        if !state.writing && !state.waiting.is_empty() {
            state.writing = true;
            let (appends, done): (Vec<_>, Vec<_>) =
                std::mem::take(&mut state.waiting).into_iter().unzip();
            let log = Arc::clone(&state.log);
            tokio::task::spawn_blocking(move || {
                let result = log.append(&appends).map_err(|e| e.to_string());
                // The actor outlives its batches unless the process is going down.
                let _ = myself.cast(Request::Written(result, done));
            });
        }
        if !state.writing {
            state.drains.drain(..).for_each(|reply| {
                let _ = reply.send(());
            });
        }
        Ok(())
    }
}
