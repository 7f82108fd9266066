//! The program `postrider`: everything is in the library, see [`postrider::cli`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    postrider::cli::run()
}
