//! The HTTP door: parses, authorises, calls [`crate::app`], renders. No logic of its own.

mod rebuild;
mod server_file;
pub mod wire;

pub use rebuild::rebuild_mailboxes;
pub use server_file::ServerFile;
