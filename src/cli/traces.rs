//! Traces on standard error; how much is said by `POSTRIDER_LOG`.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

/// Turns traces on. `usual` holds when `POSTRIDER_LOG` is not set or not understood.
pub(super) fn start(usual: &str) {
    let filter = EnvFilter::try_from_env("POSTRIDER_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    // A host program may have set up its own traces; those stay.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init();
}
