//! Which messages a search may show: a union of exclusions, each lifted only by its own name.
//!
//! Hidden and throttled mail never; quarantined mail only when asked for and permitted; junk and
//! trash folders only when asked for (`in:anywhere`, `in:junk`, the folder named); a message in no
//! folder at all never.

use roaring::RoaringBitmap;

use super::folders::{Role, role};
use crate::events::Status;
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::{CatalogError, CatalogView};
use crate::query::fold_name;
use crate::query::leaves::Named;

/// How far a query reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What is shown to anybody; quarantined mail only when the query names it.
    Unquarantined,
    /// Quarantined mail too.
    Visible,
    /// Mail of any status: for giving it another one, never for showing it.
    AnyStatus,
}

/// Everything that may be shown to a query that names these parts of the mailbox.
pub(super) fn visible(
    catalog: &CatalogView,
    named: &Named<'_>,
    reach: Reach,
) -> Result<RoaringBitmap, CatalogError> {
    let mut shown = RoaringBitmap::new();
    for (placement, messages) in catalog.placements()? {
        let lifted = match role(&placement.folder) {
            Role::Junk => named.anywhere || named.junk,
            Role::Trash => named.anywhere || named.trash,
            Role::Sent | Role::Other => true,
        };
        if lifted || named.folders.contains(&fold_name(&placement.folder).as_str()) {
            shown |= messages;
        }
    }
    shown &= &*catalog.with(Facet::All, b"")?;
    let status = |status: Status| catalog.with(Facet::Status, &[status as u8]);
    if reach == Reach::AnyStatus {
        return Ok(shown);
    }
    shown -= &*status(Status::Hidden)?;
    shown -= &*status(Status::Throttled)?;
    if reach == Reach::Unquarantined && !named.quarantined {
        shown -= &*status(Status::Quarantined)?;
    }
    Ok(shown)
}
