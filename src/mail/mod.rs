//! Bytes of a message → [`Message`]; `sources` finds those bytes in mailboxes on disk.

pub mod message;
pub mod sources;

pub use message::Message;
