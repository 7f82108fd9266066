//! Generations on disk: which build of a projection serves, and whether it can be trusted.
//!
//! ```text
//! <mailbox>/catalog-f1-000001/          the generation that serves: the highest number
//! <mailbox>/catalog-f1-000001.clean     written when it was closed well: its files, sizes, times
//! <mailbox>/catalog-f1-000001.checking  being checked; left behind when the check died
//! <mailbox>/catalog-f1-000002.building  being rebuilt; renamed when it is complete
//! <mailbox>/catalog-f1-000002.copying/  being written anew for a purge
//! <mailbox>/previous-catalog-f1-000001/ served before; kept until the next swap, for going back
//! <mailbox>/set-aside-catalog-…         could not be trusted; kept until the next one
//! ```
//!
//! The mark is taken away when a generation is opened for writing. Without a mark the process
//! died, and the projection is checked as it is opened; with a mark that does not match, somebody
//! else wrote into it, and it is set aside.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ProjectionError;
use crate::ids::Seq;

/// How far the content of a generation may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Closed well and untouched since.
    Clean,
    /// Not closed; check it.
    Unclosed,
    /// Changed by somebody else since it was closed.
    Foreign,
}

/// One kind of projection of one mailbox.
#[derive(Debug, Clone)]
pub struct Generations {
    dir: PathBuf,
    kind: String,
    fingerprint: u32,
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Mark {
    checkpoint: Seq,
    files: Vec<(String, u64, u128)>,
}

impl Generations {
    /// Generations of `kind` in the mailbox's directory, of this program's schema.
    #[must_use]
    pub fn new(dir: &Path, kind: impl Into<String>, fingerprint: u32) -> Self {
        Self { dir: dir.to_owned(), kind: kind.into(), fingerprint }
    }

    fn prefix(&self) -> String {
        format!("{}-f{}-", self.kind, self.fingerprint)
    }

    fn io(&self, source: std::io::Error) -> ProjectionError {
        ProjectionError::Io { path: self.dir.clone(), source }
    }

    fn entries(&self) -> Result<Vec<String>, ProjectionError> {
        let mut names = Vec::new();
        let entries = match std::fs::read_dir(&self.dir) {
            // Nobody has begun one yet.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(names),
            entries => entries.map_err(|e| self.io(e))?,
        };
        for entry in entries {
            names.extend(entry.map_err(|e| self.io(e))?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn numbers(&self) -> Result<Vec<u32>, ProjectionError> {
        let prefix = self.prefix();
        Ok(self
            .entries()?
            .iter()
            .filter_map(|name| name.strip_prefix(&prefix)?.parse().ok())
            .collect())
    }

    fn path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{}{number:06}", self.prefix()))
    }

    /// The generation that serves, `None` when there is none of this schema.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn current(&self) -> Result<Option<PathBuf>, ProjectionError> {
        Ok(self.numbers()?.into_iter().max().map(|n| self.path(n)))
    }

    /// A directory for a generation that is going to be built; what an interrupted build left
    /// there is removed.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn begin(&self) -> Result<PathBuf, ProjectionError> {
        let number = self.numbers()?.into_iter().max().unwrap_or(0) + 1;
        let path = self.path(number).with_extension("building");
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(|e| self.io(e))?;
        }
        std::fs::create_dir_all(&path).map_err(|e| self.io(e))?;
        Ok(path)
    }

    /// A directory for a copy of the serving generation. Not taken for an unfinished build: it does
    /// not come from the log.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn begin_copy(&self) -> Result<PathBuf, ProjectionError> {
        let path = self.begin()?;
        let copy = path.with_extension("copying");
        if copy.exists() {
            std::fs::remove_dir_all(&copy).map_err(|e| self.io(e))?;
        }
        std::fs::rename(path, &copy).map_err(|e| self.io(e))?;
        Ok(copy)
    }

    /// The directory of a build that was interrupted, if there is one.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn unfinished(&self) -> Result<Option<PathBuf>, ProjectionError> {
        let number = self.numbers()?.into_iter().max().unwrap_or(0) + 1;
        let path = self.path(number).with_extension("building");
        Ok(path.is_dir().then_some(path))
    }

    /// Lets a complete build serve. What served before is kept as the previous generation; those
    /// before it go.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn finish(&self, building: &Path) -> Result<PathBuf, ProjectionError> {
        let path = building.with_extension("");
        std::fs::rename(building, &path).map_err(|e| self.io(e))?;
        crate::events::sync_dir(&self.dir).map_err(|e| self.io(e))?;
        let kept = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let kind = format!("{}-f", self.kind);
        let (mut before, mut rest) = (None, Vec::new());
        for name in self.entries()? {
            if name.starts_with(&format!("previous-{kind}")) {
                rest.push(name);
            } else if name.starts_with(&kind) && name != kept {
                if self.dir.join(&name).is_dir() && !name.contains('.') {
                    // The last one served last; f10 stands before f9 in the order of names.
                    let later = before.as_deref().is_none_or(|known| age(known) < age(&name));
                    rest.extend(if later { before.replace(name) } else { Some(name) });
                } else {
                    rest.push(name);
                }
            }
        }
        for name in rest {
            remove(&self.dir.join(&name)).map_err(|e| self.io(e))?;
        }
        if let Some(name) = before {
            let aside = self.dir.join(format!("previous-{name}"));
            std::fs::rename(self.dir.join(name), aside).map_err(|e| self.io(e))?;
        }
        Ok(path)
    }

    /// The generation that served before the last swap, when this program can read it.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn previous(&self) -> Result<Option<PathBuf>, ProjectionError> {
        let prefix = format!("previous-{}", self.prefix());
        let kept = self.entries()?.into_iter().filter(|name| name.starts_with(&prefix));
        let name = kept.max_by_key(|name| age(name));
        Ok(name.map(|name| self.dir.join(name)))
    }

    /// Lets the previous generation serve again; the one that served goes.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn roll_back(&self, previous: &Path) -> Result<PathBuf, ProjectionError> {
        let numbers = self.numbers()?;
        let path = self.path(numbers.iter().max().unwrap_or(&0) + 1);
        std::fs::rename(previous, &path).map_err(|e| self.io(e))?;
        crate::events::sync_dir(&self.dir).map_err(|e| self.io(e))?;
        for number in numbers {
            let old = self.path(number);
            self.unmark(&old)?;
            remove(&old).map_err(|e| self.io(e))?;
        }
        Ok(path)
    }

    /// Takes a generation out of service without losing what it might tell.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn set_aside(&self, generation: &Path) -> Result<(), ProjectionError> {
        let kind = format!("set-aside-{}-", self.kind);
        for name in self.entries()? {
            if name.starts_with(&kind) {
                remove(&self.dir.join(&name)).map_err(|e| self.io(e))?;
            }
        }
        let name = generation.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let aside = self.dir.join(format!("set-aside-{name}"));
        std::fs::rename(generation, aside).map_err(|e| self.io(e))?;
        let mark = mark_path(generation);
        if mark.exists() {
            std::fs::remove_file(mark).map_err(|e| self.io(e))?;
        }
        Ok(())
    }

    /// Removes everything of this kind but one generation, also what was set aside or half built,
    /// and tells how many directories that were.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn keep_only(&self, generation: &Path) -> Result<u64, ProjectionError> {
        let kept = generation.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let kinds = ["", "set-aside-", "previous-"].map(|kept| format!("{kept}{}-f", self.kind));
        let mut removed = 0;
        for name in self.entries()? {
            if kinds.iter().any(|kind| name.starts_with(kind)) && name != kept {
                let path = self.dir.join(&name);
                removed += u64::from(path.is_dir());
                remove(&path).map_err(|e| self.io(e))?;
            }
        }
        Ok(removed)
    }

    /// How far a generation may be believed; it stays marked.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn trust(&self, generation: &Path) -> Result<(Trust, Seq), ProjectionError> {
        let Ok(text) = std::fs::read_to_string(mark_path(generation)) else {
            return Ok((Trust::Unclosed, Seq::ZERO));
        };
        match serde_json::from_str::<Mark>(&text) {
            Ok(mark) if mark.files == files(generation).map_err(|e| self.io(e))? => {
                Ok((Trust::Clean, mark.checkpoint))
            }
            _ => Ok((Trust::Foreign, Seq::ZERO)),
        }
    }

    /// Takes the mark away: from here on only a good close makes the generation clean.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn unmark(&self, generation: &Path) -> Result<(), ProjectionError> {
        match std::fs::remove_file(mark_path(generation)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(self.io(e)),
            _ => Ok(()),
        }
    }

    /// Notes that a generation is about to be checked. Damage can end the process that reads it
    /// (LMDB maps its file); the note is then still there, and the generation is set aside unread.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn begin_check(&self, generation: &Path) -> Result<(), ProjectionError> {
        std::fs::write(check_path(generation), []).map_err(|e| self.io(e))
    }

    /// Whether a check of a generation began and never ended.
    #[must_use]
    pub fn check_died(&self, generation: &Path) -> bool {
        check_path(generation).exists()
    }

    /// Notes that the check ended, whatever it found.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn end_check(&self, generation: &Path) -> Result<(), ProjectionError> {
        match std::fs::remove_file(check_path(generation)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(self.io(e)),
            _ => Ok(()),
        }
    }

    /// Marks a generation as closed well at a position.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn mark(&self, generation: &Path, checkpoint: Seq) -> Result<(), ProjectionError> {
        let mark = Mark { checkpoint, files: files(generation).map_err(|e| self.io(e))? };
        let text = serde_json::to_string(&mark).map_err(|e| self.io(e.into()))?;
        std::fs::write(mark_path(generation), text).map_err(|e| self.io(e))
    }
}

fn check_path(generation: &Path) -> PathBuf {
    generation.with_extension("checking")
}

fn mark_path(generation: &Path) -> PathBuf {
    generation.with_extension("clean")
}

/// Name, size and modification time (ns) of each file that holds data, in order of name; those of
/// directories in it too.
fn files(generation: &Path) -> std::io::Result<Vec<(String, u64, u128)>> {
    let mut found = Vec::new();
    gather(generation, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn gather(dir: &Path, prefix: &str, found: &mut Vec<(String, u64, u128)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Lock files change whenever somebody reads.
        if name == "lock.mdb" || name.ends_with(".lock") {
            continue;
        }
        let meta = entry.metadata()?;
        if meta.is_dir() {
            gather(&entry.path(), &format!("{prefix}{name}/"), found)?;
            continue;
        }
        let modified = meta
            .modified()?
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        found.push((format!("{prefix}{name}"), meta.len(), modified));
    }
    Ok(())
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Makes the files of a directory, their names and its own name durable.
pub(super) fn sync(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        match std::fs::File::open(entry?.path()) {
            Ok(file) => file.sync_all()?,
            // It went meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    crate::events::sync_dir(dir)?;
    dir.parent().map_or(Ok(()), crate::events::sync_dir)
}

/// Bytes of all files below a directory; what vanishes meanwhile counts nothing.
#[must_use]
pub fn disk_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => disk_bytes(&entry.path()),
            // Blocks, not length: LMDB and journals are sparse files.
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Order in which generations of a kind were made: by schema, then by number; names end in
/// `-f2-000001`.
fn age(name: &str) -> (u32, u32) {
    let mut parts = name.rsplit('-');
    let number = parts.next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let schema = parts.next().and_then(|schema| schema.strip_prefix('f')?.parse().ok());
    (schema.unwrap_or_default(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_until_a_file_changes() {
        let dir = tempfile::tempdir().expect("temp dir");
        let generations = Generations::new(dir.path(), "catalog", 7);
        assert_eq!(generations.current().expect("reads"), None);
        let building = generations.begin().expect("begins");
        std::fs::write(building.join("data.mdb"), b"pages").expect("written");
        assert_eq!(generations.current().expect("reads"), None, "not complete yet");
        let path = generations.finish(&building).expect("finishes");
        assert_eq!(generations.current().expect("reads").as_ref(), Some(&path));
        assert_eq!(generations.trust(&path).expect("reads").0, Trust::Unclosed);
        generations.mark(&path, Seq(9)).expect("marks");
        assert_eq!(generations.trust(&path).expect("reads"), (Trust::Clean, Seq(9)));
        std::fs::write(path.join("lock.mdb"), b"reader").expect("written");
        assert_eq!(generations.trust(&path).expect("reads").0, Trust::Clean);
        std::fs::write(path.join("data.mdb"), b"pagez").expect("written");
        assert_eq!(generations.trust(&path).expect("reads").0, Trust::Foreign);
        generations.set_aside(&path).expect("moves");
        assert_eq!(generations.current().expect("reads"), None);
        assert!(dir.path().join("set-aside-catalog-f7-000001").is_dir());
    }

    #[test]
    fn what_served_before_is_kept_once_and_serves_again() {
        let dir = tempfile::tempdir().expect("temp dir");
        let generations = Generations::new(dir.path(), "text", 1);
        for number in 0..3 {
            let building = generations.begin().expect("begins");
            assert_eq!(generations.unfinished().expect("reads").as_ref(), Some(&building));
            std::fs::write(building.join("meta.json"), number.to_string()).expect("written");
            generations.finish(&building).expect("finishes");
        }
        let previous = generations.previous().expect("reads").expect("kept");
        assert_eq!(generations.entries().expect("reads").len(), 2);
        let path = generations.roll_back(&previous).expect("goes back");
        assert_eq!(std::fs::read_to_string(path.join("meta.json")).expect("there"), "1");
        assert_eq!(generations.current().expect("reads"), Some(path));
        assert_eq!(generations.entries().expect("reads").len(), 1);
        assert_eq!(generations.previous().expect("reads"), None);
    }

    #[test]
    fn another_schema_is_not_current_and_goes_when_ours_is_complete() {
        let dir = tempfile::tempdir().expect("temp dir");
        let old = Generations::new(dir.path(), "text", 1);
        let path = old.finish(&old.begin().expect("begins")).expect("finishes");
        let new = Generations::new(dir.path(), "text", 2);
        assert_eq!(new.current().expect("reads"), None);
        assert!(path.exists());
        new.finish(&new.begin().expect("begins")).expect("finishes");
        assert!(!path.exists());
        assert!(dir.path().join("previous-text-f1-000001").is_dir(), "kept for going back");
        assert_eq!(new.previous().expect("reads"), None, "but not by this program");
    }
}
