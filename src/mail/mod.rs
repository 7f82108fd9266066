//! Bytes of a message → [`Message`]; `sources` finds those bytes in mailboxes on disk.

pub mod message;

pub use message::Message;
