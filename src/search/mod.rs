//! Search: a request and a view → ranked, hydrated hits. Reads views, never a mailbox's queue.

mod filter;
pub mod folders;
mod hits;
mod keyword;
mod plan;
mod ranking;
pub mod request;
pub mod rerank;
pub mod semantic;
pub mod snippet;
pub mod thread;
mod visibility;

pub use hits::MailboxOwner;
pub(crate) use hits::{States, rfc3339, thread_id};
pub use keyword::{Aids, matching, search};
pub use ranking::Fusion;
pub use request::{Hit, SearchError, SearchRequest, SearchResponse, Sort};
pub use thread::{ThreadMessage, ThreadOut};
pub use visibility::Reach;
