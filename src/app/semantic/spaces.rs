//! Which space of vectors serves, which is being filled, and which served before.
//!
//! One small file in the data directory, replaced as a whole: a change of the model is one rename.
//! Searches read what serves until what is being filled is complete. When the file is lost, what
//! the settings name serves, and its vectors come back out of the log.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::choice::Choice;
use crate::crash_point;
use crate::embed::{Fingerprint, Profile};

const FORMAT: u32 = 1;

/// The spaces of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::app) struct Spaces {
    format: u32,
    /// What the settings named last: naming the same again changes nothing.
    declared: Option<Choice>,
    /// What searches read.
    pub(super) active: Option<Space>,
    /// What is being filled to serve next; written together with the active one.
    pub(super) building: Option<Space>,
    /// What served before the last swap: kept for going back, not written any more.
    pub(super) superseded: Option<Space>,
}

/// One space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Space {
    pub(super) model: Choice,
    /// Known since the model was first loaded; nothing is written before.
    pub(super) vectors: Option<Shape>,
    /// Behind an address: the vector that tells its model from another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<Reference>,
}

/// A vector whose values are kept as their bits, so that spaces can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reference(Vec<u32>);

impl From<&[f32]> for Reference {
    fn from(values: &[f32]) -> Self {
        Self(values.iter().map(|value| value.to_bits()).collect())
    }
}

impl Reference {
    pub(super) fn values(&self) -> Vec<f32> {
        self.0.iter().map(|bits| f32::from_bits(*bits)).collect()
    }
}

/// What its vectors look like on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) fingerprint: Fingerprint,
    pub(super) dimensions: u32,
}

impl Shape {
    pub(super) fn of(profile: &Profile) -> Self {
        Self { fingerprint: profile.fingerprint(), dimensions: profile.dimensions }
    }
}

impl Default for Spaces {
    fn default() -> Self {
        Self { format: FORMAT, declared: None, active: None, building: None, superseded: None }
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("spaces.json")
}

impl Spaces {
    /// What the file says; nothing when there is none or it is not understood.
    pub(super) fn load(data_dir: &Path) -> Self {
        let path = path(data_dir);
        if !path.exists() {
            return Self::default();
        }
        // Anything but a file could keep a reader waiting for ever.
        let read = if path.is_file() { std::fs::read(&path).ok() } else { None };
        let spaces = read.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        spaces.filter(|spaces| spaces.format == FORMAT).unwrap_or_else(|| {
            tracing::warn!("spaces.json is not understood: the model of the settings serves");
            Self::default()
        })
    }

    /// Replaces the file; after a crash it holds the old or the new.
    pub(super) fn save(&self, data_dir: &Path) -> std::io::Result<()> {
        let (path, written) = (path(data_dir), data_dir.join("spaces.json.new"));
        let mut file = std::fs::File::create(&written)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        crash_point::reach("spaces written");
        std::fs::rename(written, path)?;
        crate::events::sync_dir(data_dir)
    }

    /// Takes note of what the settings name. `has_vectors` tells whether any are kept of a space.
    pub(super) fn declare(
        &mut self,
        wanted: &Choice,
        has_vectors: impl FnOnce(Fingerprint) -> bool,
    ) {
        self.take_way(wanted);
        if self.declared.as_ref().is_some_and(|known| known.is_same_space(wanted)) {
            self.declared = Some(wanted.clone());
            return;
        }
        self.declared = Some(wanted.clone());
        self.begin(wanted, has_vectors);
    }

    /// The same space by another way, such as another address: that way is taken from now on.
    pub(super) fn take_way(&mut self, wanted: &Choice) {
        for space in [&mut self.active, &mut self.building, &mut self.superseded] {
            if let Some(space) = space.as_mut().filter(|s| s.model.is_same_space(wanted)) {
                space.model = wanted.clone();
            }
        }
    }

    /// Begins to fill the space of a model, or stops filling another when that model serves.
    pub(super) fn begin(&mut self, wanted: &Choice, has_vectors: impl FnOnce(Fingerprint) -> bool) {
        let is_wanted = |space: &Option<Space>| {
            space.as_ref().is_some_and(|space| space.model.is_same_space(wanted))
        };
        if is_wanted(&self.active) {
            self.building = None;
            return;
        }
        if is_wanted(&self.building) {
            return;
        }
        let serves = self.active.as_ref().and_then(|active| active.vectors);
        let next = if is_wanted(&self.superseded) {
            self.superseded.take()
        } else {
            Some(Space { model: wanted.clone(), vectors: None, reference: None })
        };
        if serves.is_some_and(|vectors| has_vectors(vectors.fingerprint)) {
            self.building = next;
        } else {
            // Nobody reads anything yet.
            (self.active, self.building) = (next, None);
        }
    }

    /// What is being filled serves, what served is kept.
    pub(super) fn swap(&mut self) {
        if let Some(next) = self.building.take() {
            self.superseded = self.active.replace(next);
        }
    }

    /// What served before serves again; false when nothing is kept.
    pub(super) fn roll_back(&mut self) -> bool {
        let Some(previous) = self.superseded.take() else { return false };
        self.superseded = self.active.replace(previous);
        self.building = None;
        true
    }

    /// Stops filling; false when nothing is being filled.
    pub(super) fn cancel(&mut self) -> bool {
        self.building.take().is_some()
    }

    /// Keeps what became known of a model as it was loaded. A model that was replaced in its place
    /// is another space: nothing can be asked of the old one any more.
    pub(super) fn resolve(&mut self, model: &Choice, vectors: Shape) {
        for space in [&mut self.active, &mut self.building, &mut self.superseded] {
            if let Some(space) = space.as_mut().filter(|space| space.model == *model) {
                space.vectors = Some(vectors);
            }
        }
    }

    /// Keeps the vector that tells a model behind an address from another.
    pub(super) fn refer(&mut self, vectors: Shape, reference: &[f32]) {
        for space in [&mut self.active, &mut self.building].into_iter().flatten() {
            if space.vectors == Some(vectors) && space.reference.is_none() {
                space.reference = Some(reference.into());
            }
        }
    }

    /// Whether the same models serve and are being filled.
    pub(super) fn has_roles_of(&self, other: &Self) -> bool {
        let model = |space: &Option<Space>| space.as_ref().map(|space| space.model.clone());
        model(&self.active) == model(&other.active)
            && model(&self.building) == model(&other.building)
    }

    /// Spaces that are written: what serves first.
    pub(super) fn written(&self) -> impl Iterator<Item = &Space> {
        [&self.active, &self.building].into_iter().flatten()
    }

    /// What is kept on disk.
    pub(super) fn kept(&self) -> Vec<Shape> {
        let kept = [&self.active, &self.building, &self.superseded];
        kept.into_iter().flatten().filter_map(|space| space.vectors).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::Builtin;

    fn choice(name: &str) -> Choice {
        Choice::Folder(name.into())
    }

    fn shape(n: u8) -> Shape {
        Shape { fingerprint: Fingerprint([n; 8]), dimensions: 3 }
    }

    fn name(space: &Option<Space>) -> Option<String> {
        space.as_ref().map(|space| space.model.name())
    }

    fn names(spaces: &Spaces) -> [Option<String>; 3] {
        [name(&spaces.active), name(&spaces.building), name(&spaces.superseded)]
    }

    fn some(name: &str) -> Option<String> {
        Some(name.into())
    }

    /// `a` serves and has vectors.
    fn serving() -> Spaces {
        let mut spaces = Spaces::default();
        spaces.declare(&choice("a"), |_| true);
        spaces.resolve(&choice("a"), shape(1));
        spaces
    }

    #[test]
    fn a_change_of_the_model_waits_until_it_is_complete() {
        let mut spaces = serving();
        spaces.declare(&choice("b"), |_| true);
        spaces.resolve(&choice("b"), shape(2));
        assert_eq!(names(&spaces), [some("a"), some("b"), None]);
        assert_eq!(spaces.kept(), [shape(1), shape(2)]);
        let mut later = spaces.clone();
        later.refer(shape(2), &[0.5]);
        assert!(later.has_roles_of(&spaces) && later != spaces);
        later.cancel();
        assert!(!later.has_roles_of(&spaces));
        spaces.swap();
        assert_eq!(names(&spaces), [some("b"), None, some("a")]);
        spaces.swap();
        assert_eq!(names(&spaces), [some("b"), None, some("a")], "nothing is being filled");
        assert!(spaces.roll_back());
        assert_eq!(names(&spaces), [some("a"), None, some("b")]);
        // The settings still name b, and did so before: going back stays.
        spaces.declare(&choice("b"), |_| true);
        assert_eq!(names(&spaces), [some("a"), None, some("b")]);
        spaces.begin(&choice("b"), |_| true);
        assert_eq!(names(&spaces), [some("a"), some("b"), None], "its vectors are used again");
        assert_eq!(spaces.building.as_ref().and_then(|space| space.vectors), Some(shape(2)));
    }

    #[test]
    fn naming_the_old_model_again_cancels() {
        let mut spaces = serving();
        assert!(!spaces.cancel());
        assert!(!spaces.roll_back());
        spaces.declare(&choice("b"), |_| true);
        spaces.declare(&choice("a"), |_| true);
        assert_eq!(names(&spaces), [some("a"), None, None]);
        spaces.declare(&choice("b"), |_| true);
        assert!(spaces.cancel());
        spaces.declare(&choice("b"), |_| true);
        assert_eq!(names(&spaces), [some("a"), None, None], "cancelled is cancelled");
    }

    #[test]
    fn a_model_without_vectors_gives_way_at_once() {
        let mut spaces = serving();
        spaces.declare(&choice("b"), |_| false);
        assert_eq!(names(&spaces), [some("b"), None, None]);
    }

    #[test]
    fn another_address_of_the_same_model_is_the_same_space() {
        let endpoint = |url: &str, dimensions| {
            let text = format!("url = \"{url}\"\nmodel = \"m\"\ndimensions = {dimensions}");
            Choice::Endpoint(toml::from_str(&text).expect("settings"))
        };
        let mut spaces = Spaces::default();
        spaces.declare(&endpoint("http://a/v1", 3), |_| true);
        spaces.resolve(&endpoint("http://a/v1", 3), shape(1));
        spaces.declare(&endpoint("http://b/v1", 3), |_| true);
        let active = spaces.active.clone().expect("serves");
        assert_eq!((active.model, active.vectors), (endpoint("http://b/v1", 3), Some(shape(1))));
        assert_eq!(spaces.building, None);
        spaces.declare(&endpoint("http://b/v1", 4), |_| true);
        assert!(spaces.building.is_some());
    }

    #[test]
    fn comes_back_from_its_file_and_nonsense_is_nothing() {
        let dir = tempfile::tempdir().expect("temp dir");
        assert_eq!(Spaces::load(dir.path()), Spaces::default());
        let mut spaces = serving();
        spaces.declare(&Choice::Builtin(Builtin::Static128), |_| true);
        spaces.save(dir.path()).expect("saved");
        assert_eq!(Spaces::load(dir.path()), spaces);
        std::fs::write(path(dir.path()), b"{\"format\":99}").expect("written");
        assert_eq!(Spaces::load(dir.path()), Spaces::default());
    }
}
