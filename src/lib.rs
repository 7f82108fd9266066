//! Postrider: mail search on a durable event log.

pub mod ids;
pub mod mail;
pub mod query;
