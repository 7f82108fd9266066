//! Bytes of a message → [`Message`]; `sources` finds those bytes in mailboxes on disk.
//!
//! [`read`] is the door. Structure, headers and texts are read by the files of this folder, each with
//! one duty; none of them touches the disk, the clock or the network, none panics on any input.

mod address;
mod attachment;
mod charset;
mod charset_guess;
mod collect;
mod compose;
mod date;
mod defects;
mod encoded_word;
mod flowed;
pub mod guarded;
mod header;
pub mod html;
mod html_element;
mod html_quote;
mod html_sheet;
mod html_style;
mod html_text;
mod html_value;
mod inline_block;
mod invisible;
mod language;
mod list;
pub mod message;
mod message_id;
mod params;
mod plain_text;
mod quote;
mod quote_mark;
mod read;
mod sign_off;
mod smime;
mod sniff;
pub mod sources;
mod structure;
mod text_part;
mod timeline;
mod transfer;

pub use crate::attachment_class::AttachmentClass;
pub use address::address_normal;
pub use guarded::read_guarded;
pub use message::{Message, ReadHints};
pub use message_id::message_id_normal;
pub use read::read;
