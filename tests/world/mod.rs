//! What tests of the doors share: a data directory that goes away, the sample mail, letters.
//! `door.rs` beside it is for tests that speak HTTP.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Messages in `samples/`, as its README counts them.
pub(crate) const SAMPLES_READ: u64 = 92;
/// Different messages among them.
pub(crate) const SAMPLES_DISTINCT: u64 = 89;

/// A data directory of its own.
pub(crate) struct World {
    dir: TempDir,
}

impl World {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The data directory; not there before something makes it.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A place for files of the test.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    }
}

/// The sources of the sample mail.
pub(crate) fn samples() -> Vec<PathBuf> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    ["archive.mbox", "maildir", "takeout.mbox.gz", "eml"].map(|name| samples.join(name)).to_vec()
}

/// A message of a test, told from others by its subject.
pub(crate) fn letter(subject: &str) -> Vec<u8> {
    let id = subject.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    format!(
        "From: Ada <ada@example.org>\r\nTo: office@example.org\r\nSubject: {subject}\r\n\
         Date: Mon, 03 Mar 2025 10:00:00 +0000\r\nMessage-ID: <{id}@example.org>\r\n\r\n\
         The text of {subject}.\r\n"
    )
    .into_bytes()
}
