//! The actors: who writes and who drives. Searches never pass through here, they read views.
//!
//! | actor | queue bound | when full |
//! |---|---|---|
//! | `supervisor` | none needed: it only hears of deaths | – |
//! | `log_writer` | requests admitted per mailbox × open mailboxes | mailboxes stop admitting |
//! | `directory` | one request per waiting caller | callers wait |
//! | `mailbox` | [`admission::MAILBOX_REQUESTS_MAX`] requests and the byte budget | importer waits, HTTP is refused |
//! | `projector` | what mailboxes were admitted | the byte budget is held until applied |

pub mod admission;
pub mod decide;
pub mod directory;
pub mod erasure;
pub mod health;
pub mod log_writer;
pub mod mailbox;
pub mod projector;
mod record;
pub mod supervisor;

pub use directory::{MailboxHandle, OpenError};
pub use supervisor::{Actors, Running};
