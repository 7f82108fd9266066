//! Identifiers and positions, each its own type so that they never mix.
//!
//! Public identifiers are a prefix and a ULID (`msg_01J9…`); positions are plain integers whose
//! base and width are stated at the type. Nothing here reads a clock or a random source: callers
//! pass both in, so that tests are repeatable.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// Number of one mailbox in this data directory: 1-based, never reused, the key prefix of
/// everything the mailbox stores.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MailboxNo(pub u32);

/// Position in one mailbox's stream of events: 1-based and gapless; [`Seq::ZERO`] is the place
/// before the first event.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The place before the first event.
    pub const ZERO: Self = Self(0);

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Dense number of a message in its mailbox: 0-based, fixed at ingest, never reused.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ordinal(pub u32);

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not an identifier of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {prefix}_ followed by 26 characters of a ULID")]
pub struct IdError {
    prefix: &'static str,
}

macro_rules! public_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub Ulid);

        impl $name {
            /// The text before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// The identifier with these 128 bits.
            #[must_use]
            pub fn from_bits(bits: u128) -> Self {
                Self(Ulid(bits))
            }

            /// An identifier from a time (unix ms) and 80 bits of randomness (upper bits ignored).
            #[must_use]
            pub fn from_parts(unix_ms: u64, random: u128) -> Self {
                Self(Ulid::from_parts(unix_ms, random))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .filter(|rest| rest.len() == ulid::ULID_LEN)
                    .and_then(|rest| Ulid::from_string(rest).ok())
                    .map(Self)
                    .ok_or(IdError { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                if s.is_human_readable() {
                    s.collect_str(self)
                } else {
                    self.0.0.serialize(s)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                if d.is_human_readable() {
                    String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
                } else {
                    u128::deserialize(d).map(|bits| Self(Ulid(bits)))
                }
            }
        }
    };
}

public_id!(
    /// Owner of identities.
    TenantId,
    "ten"
);
public_id!(
    /// Owner of one mailbox.
    IdentityId,
    "idn"
);
public_id!(
    /// One message.
    MessageId,
    "msg"
);
public_id!(
    /// One conversation; its ULID is that of the thread's first message.
    ThreadId,
    "thr"
);
public_id!(
    /// One erasure and the proof of it.
    ReceiptId,
    "rcp"
);
public_id!(
    /// One legal hold.
    HoldId,
    "hld"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_refuses_other_kinds() {
        let id = MessageId::from_parts(1_700_000_000_000, 42);
        let text = id.to_string();
        assert!(text.starts_with("msg_"));
        assert_eq!(text.parse::<MessageId>(), Ok(id));
        assert!(text.parse::<ThreadId>().is_err());
        assert!("msg_".parse::<MessageId>().is_err());
        assert!("msg_01J9Z3K8V4QW7X2M5N6P8R0T1".parse::<MessageId>().is_err());
    }

    #[test]
    fn json_uses_the_text_form() {
        let id = IdentityId::from_parts(1, 2);
        let json = serde_json::to_string(&id).expect("plain string");
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<IdentityId>(&json).expect("same"), id);
    }
}
