//! The truth: an append-only log of events, the sealed content of messages, and the keys that
//! make both readable.
//!
//! Only this folder knows fjall, bincode and the key store. Everything it hands out is a typed
//! value; everything it takes in becomes durable before the call returns.

pub mod codec;
pub mod error;
pub mod event;
pub mod key_store;
pub mod keys;
pub mod log;
pub mod receipt;
pub mod registry;
pub mod seal;

pub use error::LogError;
pub use event::{Event, Placement, Status};
pub(crate) use key_store::sync_dir;
pub use log::{Log, LogOptions, SpaceName};
pub use receipt::Receipt;
