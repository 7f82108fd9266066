//! The registry: who owns which mailbox. Small records in their own keyspace, versioned.
//!
//! | kind | id | record |
//! |---|---|---|
//! | `T` | tenant ULID u128 BE | [`Tenant`] |
//! | `I` | identity ULID u128 BE | [`Identity`] |
//! | `R` | receipt ULID u128 BE | [`Receipt`] |
//! | `S` | mailbox u32 BE ‖ keyed digest \[16\] | nothing: content that is refused when it comes again |
//! | `X` | identity ULID u128 BE | [`Erased`]: a mailbox that was erased whole |

use serde::{Deserialize, Serialize};

use super::receipt::Receipt;
use super::{LogError, codec};
use crate::ids::{IdentityId, MailboxNo, ReceiptId, TenantId};

/// Version byte in front of every record.
const VERSION: u8 = 1;

/// Owner of identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Public identifier.
    pub id: TenantId,
    /// Name, unique in the data directory.
    pub name: String,
    /// IANA zone in which dates of queries are understood.
    pub time_zone: String,
    /// When it was made, unix ms.
    pub created_ms: i64,
}

/// Owner of one mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Public identifier.
    pub id: IdentityId,
    /// Whose.
    pub tenant: TenantId,
    /// Name of the mailbox, unique in the data directory, as given with `--mailbox`.
    pub name: String,
    /// Number of the mailbox.
    pub mailbox: MailboxNo,
    /// When it was made, unix ms.
    pub created_ms: i64,
}

/// What is left of a mailbox that was erased whole: its number, which is never used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// Number of the mailbox.
    pub mailbox: MailboxNo,
}

/// All records, in order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    /// Tenants.
    pub tenants: Vec<Tenant>,
    /// Identities.
    pub identities: Vec<Identity>,
    /// Numbers of mailboxes that were erased whole.
    pub erased: Vec<MailboxNo>,
}

impl Registry {
    /// The number of the next mailbox: numbers are never reused.
    #[must_use]
    pub fn next_mailbox(&self) -> MailboxNo {
        let living = self.identities.iter().map(|i| i.mailbox.0);
        MailboxNo(living.chain(self.erased.iter().map(|m| m.0)).max().unwrap_or(0) + 1)
    }

    /// An identity by its id or by the name of its mailbox.
    #[must_use]
    pub fn identity(&self, id_or_name: &str) -> Option<&Identity> {
        let id = id_or_name.parse::<IdentityId>().ok();
        self.identities.iter().find(|i| Some(i.id) == id || i.name == id_or_name)
    }

    /// The tenant of an identity.
    #[must_use]
    pub fn tenant_of(&self, identity: &Identity) -> Option<&Tenant> {
        self.tenants.iter().find(|t| t.id == identity.tenant)
    }

    /// Takes in one stored record.
    pub(super) fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), LogError> {
        let (version, body) =
            value.split_first().ok_or(LogError::DamagedRegistry("empty record"))?;
        if *version != VERSION {
            return Err(LogError::DamagedRegistry("record of a newer version of the program"));
        }
        match key.first() {
            Some(b'T') => self.tenants.push(
                codec::decode(body).ok_or(LogError::DamagedRegistry("tenant does not decode"))?,
            ),
            Some(b'I') => self.identities.push(
                codec::decode(body).ok_or(LogError::DamagedRegistry("identity does not decode"))?,
            ),
            Some(b'X') => {
                let erased: Erased = codec::decode(body)
                    .ok_or(LogError::DamagedRegistry("erased mailbox does not decode"))?;
                self.erased.push(erased.mailbox);
            }
            // Many, and only looked up.
            Some(b'R' | b'S') => {}
            _ => return Err(LogError::DamagedRegistry("unknown kind of record")),
        }
        Ok(())
    }
}

/// Key and value of a tenant's record.
pub(super) fn tenant_record(tenant: &Tenant) -> (Vec<u8>, Vec<u8>) {
    record(b'T', tenant.id.0.0, tenant)
}

/// Key and value of an identity's record.
pub(super) fn identity_record(identity: &Identity) -> (Vec<u8>, Vec<u8>) {
    record(b'I', identity.id.0.0, identity)
}

/// Key and value of a receipt's record.
pub(super) fn receipt_record(receipt: &Receipt) -> (Vec<u8>, Vec<u8>) {
    record(b'R', receipt.id.0.0, receipt)
}

/// Key of a receipt's record.
pub(super) fn receipt_key(id: ReceiptId) -> Vec<u8> {
    [&b"R"[..], &id.0.0.to_be_bytes()].concat()
}

/// Prefix of all receipts.
pub(super) const RECEIPTS: &[u8] = b"R";

/// A receipt as it is stored.
pub(super) fn receipt(value: &[u8]) -> Result<Receipt, LogError> {
    let (version, body) = value.split_first().ok_or(LogError::DamagedRegistry("empty record"))?;
    if *version != VERSION {
        return Err(LogError::DamagedRegistry("receipt of a newer version of the program"));
    }
    codec::decode(body).ok_or(LogError::DamagedRegistry("receipt does not decode"))
}

/// Key and value of what is left of an erased mailbox; its identity's record goes.
pub(super) fn erased_record(identity: &Identity) -> (Vec<u8>, Vec<u8>) {
    record(b'X', identity.id.0.0, &Erased { mailbox: identity.mailbox })
}

/// Prefix of the suppression list of a mailbox.
pub(super) fn suppressed_prefix(mailbox: MailboxNo) -> Vec<u8> {
    [&b"S"[..], &mailbox.0.to_be_bytes()].concat()
}

/// Key and value of one entry of a suppression list.
pub(super) fn suppressed_record(mailbox: MailboxNo, digest: &[u8; 16]) -> (Vec<u8>, Vec<u8>) {
    ([&suppressed_prefix(mailbox)[..], digest].concat(), vec![VERSION])
}

fn record<T: Serialize>(kind: u8, id: u128, value: &T) -> (Vec<u8>, Vec<u8>) {
    let key = [&[kind][..], &id.to_be_bytes()].concat();
    let value = [&[VERSION][..], &codec::encode(value)].concat();
    (key, value)
}
