//! Search: a request and a view → ranked, hydrated hits. Reads views, never a mailbox's queue.

pub mod folders;
mod hits;
mod keyword;
mod plan;
mod filter;
pub mod request;
pub mod snippet;
mod visibility;

pub use hits::MailboxOwner;
pub use keyword::search;
pub use request::{Hit, SearchError, SearchRequest, SearchResponse, Sort};
