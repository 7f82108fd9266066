//! The command-line door. While a server holds the data directory the commands talk to it,
//! otherwise they open the directory themselves.
//!
//! Standard output carries the answer and nothing else; errors, progress and traces go to
//! standard error; the exit code tells how it ended ([`failure::Exit`]).

mod access;
mod args;
mod args_lifecycle;
mod client;
mod count;
mod dump;
mod embed;
mod erase;
mod failure;
mod hold;
mod import;
mod interrupt;
mod job;
mod label;
mod log;
mod maintenance;
mod model;
mod output;
mod own_address;
mod progress;
mod rebuild;
mod receipt;
mod safe;
mod search;
mod serve;
mod settings;
mod show;
mod status;
mod table;
mod thread;
mod traces;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use args::{Arguments, Command};
use failure::{Exit, Failure};
use output::Output;

/// Time given to what still blocks when a command has ended.
const END_WAIT: Duration = Duration::from_secs(2);

/// Reads the command line, does what it says, and tells how it ended.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = Arguments::parse_from(words::mark(std::env::args_os()));
    let json = arguments.global.json;
    match execute(arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.tell(json);
            failure.exit().into()
        }
    }
}

fn execute(arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { global, command } = arguments;
    let config = settings::read(&global)?;
    let out = Output::new(global.json);
    match command {
        // Before there is a runtime: most searches need none.
        Command::Search(search) => search::run(config, &search, out),
        Command::Import(import) => in_runtime(import::run(config, import, out)),
        Command::Show(show) => in_runtime(show::run(config, show, out)),
        Command::Model(model) => model::run(&config, model, out),
        Command::Embed(embed) => in_runtime(embed::run(config, embed, out)),
        Command::Thread(thread) => in_runtime(thread::run(config, thread, out)),
        Command::Status => in_runtime(status::run(config, out)),
        Command::Rebuild(rebuild) => in_runtime(rebuild::run(config, rebuild, out)),
        Command::Dump(of) => in_runtime(dump::run(config, of, out)),
        Command::Label(label) => in_runtime(label::run(config, label, out)),
        Command::Mark(mark) => in_runtime(label::mark(config, mark, out)),
        Command::Erase(erase) => in_runtime(erase::run(config, erase, out)),
        Command::Hold(hold) => in_runtime(hold::run(config, hold, out)),
        Command::Verify(verify) => in_runtime(maintenance::verify(config, verify, out)),
        Command::Compact => in_runtime(maintenance::compact(config, out)),
        Command::Backup(backup) => in_runtime(maintenance::backup(config, backup, out)),
        Command::Restore(restore) => in_runtime(maintenance::restore(config, restore, out)),
        Command::Log(log) => in_runtime(log::run(config, log, out)),
        Command::Receipt(receipt) => in_runtime(receipt::run(config, receipt, out)),
        Command::OwnAddress(own) => in_runtime(own_address::run(config, own, out)),
        Command::Serve(serve) => in_runtime(serve::run(config, serve, out)),
    }
}

/// Runs a command that waits for others.
fn in_runtime(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::environment(format!("no threads can be started: {e}"), ""))?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(END_WAIT);
    ended
}
