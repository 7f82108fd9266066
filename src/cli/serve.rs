//! `postrider serve`.

use crate::config::Config;

use super::args::Serve;
use super::failure::{Exit, Failure};
use super::output::Output;

/// Serves until interrupted.
#[expect(clippy::unused_async, reason = "comes with the HTTP door")]
pub(super) async fn run(_: Config, _: Serve, _: Output) -> Result<Exit, Failure> {
    Err(Failure::caller("serving comes with the HTTP door", ""))
}
