//! The HTTP door: parses, authorises, calls [`crate::app`], renders. No logic of its own.
//!
//! A request passes, from the outside in: [`request_id`] (its identifier; every refusal becomes
//! the one envelope), [`host`] (who it believes to speak to), [`caller`] (who it comes from; API
//! keys and rate limits will stand there), [`time_limit`], and a thin handler named in [`routes`].
//! No trace holds a query, a body or an address of anybody.

mod admin;
mod body;
mod caller;
mod dump;
mod embeddings;
mod erasures;
mod health;
mod host;
mod jobs;
mod labels;
mod maintenance;
mod messages;
mod rebuild;
mod refusal;
mod request_id;
mod routes;
mod search;
mod server;
mod server_file;
mod time_limit;
pub mod wire;
pub mod wire_lifecycle;

pub use embeddings::{embed_mailboxes, embed_statuses, reembed};
pub use maintenance::verify_mailboxes;
pub use rebuild::{RebuildWatch, rebuild_mailboxes};
pub use server::{Server, StartError};
pub use server_file::ServerFile;
