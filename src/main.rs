//! The program `postrider`: everything is in the library, see [`postrider::cli`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`; the binding names only the options it holds to be stable.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// How long freed pages are kept before the system gets them back, milliseconds. By default a
/// second: an import, which frees on other threads than it allocates on, then stands 70 MB higher.
const PURGE_DELAY_MS: std::ffi::c_long = 20;

#[expect(unsafe_code, reason = "sets an option of the allocator before any thread is started")]
fn main() -> ExitCode {
    // SAFETY: the index is below `_mi_option_last` and any value is valid.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
    postrider::cli::run()
}
