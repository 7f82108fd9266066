//! Bytes of a message → [`Message`]; `sources` finds those bytes in mailboxes on disk.

pub mod message;
pub mod sources;
pub mod guarded;

pub use crate::attachment_class::AttachmentClass;
pub use guarded::read_guarded;
pub use message::Message;

pub fn read(raw: &[u8], hints: &message::ReadHints) -> Message { Message::default() }
