//! Postrider: mail search on a durable event log.

pub mod actors;
pub mod app;
pub mod attachment_class;
pub mod cli;
pub mod clock;
pub mod compress;
pub mod config;
pub mod crash_point;
pub mod embed;
pub mod events;
pub mod http;
pub mod ids;
pub mod mail;
pub mod projections;
pub mod query;
pub mod search;
