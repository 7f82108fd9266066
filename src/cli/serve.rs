//! `postrider serve`.

use serde_json::json;

use crate::config::Config;
use crate::http::{Server, StartError};

use super::access::Access;
use super::args::Serve;
use super::failure::{Exit, Failure};
use super::interrupt::Interrupts;
use super::output::Output;
use super::traces;

/// Serves until interrupted; a second interruption aborts.
pub(super) async fn run(mut config: Config, args: Serve, out: Output) -> Result<Exit, Failure> {
    traces::start("warn,postrider=info")?;
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    if !config.listen.ip().is_loopback() {
        tracing::warn!(
            address = %config.listen,
            "whoever reaches this address can read and add mail: there are no keys yet"
        );
    }
    let mut interrupts = Interrupts::listen()?;
    let postrider = match Access::find_or_make(config).await? {
        Access::Here(postrider) => postrider,
        Access::Server(client) => {
            return Err(Failure::environment(
                format!("a server at {} holds the data directory already", client.origin()),
                "use that one, or stop it first",
            ));
        }
    };
    let server = Server::start(postrider).await.map_err(|e| not_started(&e))?;
    let address = server.address();
    let told = if out.json {
        out.value(&json!({ "address": address, "pid": std::process::id() }))
    } else {
        out.text(&format!("listening on http://{address}\n"))
    };
    // Nobody has to read where we listen.
    if !matches!(told, Ok(()) | Err(Failure::NobodyListens)) {
        tracing::warn!("standard output cannot be written");
    }
    tracing::info!(%address, "listening");
    interrupts.next().await;
    tracing::info!("stopping");
    tokio::select! {
        () = server.stop() => Ok(Exit::Fine),
        () = interrupts.next() => std::process::exit(Exit::Interrupted.number().into()),
    }
}

fn not_started(error: &StartError) -> Failure {
    let fix = match error {
        StartError::Listen { .. } => "choose another address with --listen",
        StartError::File { .. } => "see that the data directory can be written",
    };
    Failure::environment(error.to_string(), fix)
}
