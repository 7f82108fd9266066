//! The list of what was wrong in one message.
//!
//! Bounded, so that a hostile message cannot grow it; holds places and kinds, never content.

use super::message::{Defect, DefectKind};

/// Most defects kept for one message.
const DEFECTS_MAX: usize = 64;

/// Defects in order of discovery; the same kind at the same place is kept once.
#[derive(Debug, Default)]
pub(super) struct Defects(Vec<Defect>);

impl Defects {
    /// Records one defect; beyond 64 the call does nothing.
    pub(super) fn push(&mut self, kind: DefectKind, place: &str) {
        if self.0.len() < DEFECTS_MAX && !self.0.iter().any(|d| d.kind == kind && d.place == place)
        {
            self.0.push(Defect { kind, place: place.to_owned() });
        }
    }

    /// The list, for [`super::Message::defects`].
    pub(super) fn into_vec(self) -> Vec<Defect> {
        self.0
    }
}
