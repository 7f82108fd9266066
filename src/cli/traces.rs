//! Traces on standard error; how much is said by `POSTRIDER_LOG`.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use super::failure::Failure;

/// Turns traces on. `usual` holds when `POSTRIDER_LOG` is not set.
///
/// # Errors
/// When `POSTRIDER_LOG` is not understood.
pub(super) fn start(usual: &str) -> Result<(), Failure> {
    let wanted = std::env::var("POSTRIDER_LOG").unwrap_or_default();
    let wanted = if wanted.trim().is_empty() { usual } else { wanted.as_str() };
    let filter = EnvFilter::try_new(wanted).map_err(|error| {
        let message = format!("POSTRIDER_LOG is not understood: {error}");
        Failure::caller(message, "write it like `info` or `postrider=debug,warn`")
    })?;
    // A host program may have set up its own traces; those stay.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init();
    Ok(())
}
