//! Settings of the built program.

use std::path::PathBuf;

use crate::world::World;

/// Settings that leave searches by meaning out: computing vectors without optimisation takes most
/// of the time of a test that does not look at them.
pub(crate) fn words_only(world: &World) -> PathBuf {
    world.file("words-only.toml", b"embedding = \"off\"\n")
}
