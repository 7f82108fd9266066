//! The program `postrider`: everything is in the library, see [`postrider::cli`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`; the binding names only the options it holds to be stable.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// How long freed pages are kept before the system gets them back, milliseconds. By default a
/// second: an import, which frees on other threads than it allocates on, then stands 70 MB higher.
const PURGE_DELAY_MS: std::ffi::c_long = 20;

/// From this size on, blocks of the C libraries (LMDB, zstd) go back to the system when they are
/// freed, bytes. The C library raises the bound as it goes, and its heaps then keep what the threads
/// of many mailboxes freed: 640 MB instead of 210 after 600 mailboxes were written.
#[cfg(target_env = "gnu")]
const MAPPED_FROM: std::ffi::c_int = 128 << 10;

#[expect(unsafe_code, reason = "sets options of the allocators before any thread is started")]
fn main() -> ExitCode {
    // SAFETY: the index is below `_mi_option_last` and any value is valid.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
    // SAFETY: no other thread is there that could be allocating.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM)
    };
    postrider::cli::run()
}
