//! `server.json` in the data directory: how the command line finds the server that holds it.
//!
//! Only its owner can read it, because the token in it allows everything. It is written whole
//! (beside, then renamed) and goes when the server stops; one that a killed server left behind is
//! replaced by the next.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const NAME: &str = "server.json";

/// Where the server is and what opens its administration.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Address to connect to.
    pub address: SocketAddr,
    /// Bearer token of the administration.
    pub token: String,
    /// Its process.
    pub pid: u32,
}

impl std::fmt::Debug for ServerFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, token: _, pid } = self;
        f.debug_struct("ServerFile").field("address", address).field("pid", pid).finish()
    }
}

impl ServerFile {
    /// The file in a data directory; `None` when there is none, or none that can be understood.
    #[must_use]
    pub fn read(data_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(data_dir.join(NAME)).ok()?).ok()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let beside = data_dir.join("server.json.new");
        let _ = fs::remove_file(&beside);
        let mut file = private(&beside)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        drop(file);
        fs::rename(beside, path(data_dir))
    }

    /// Takes the file away.
    pub fn remove(data_dir: &Path) {
        let _ = fs::remove_file(path(data_dir));
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_private_and_comes_back_and_goes() {
        let dir = tempfile::tempdir().expect("temp dir");
        let file = ServerFile {
            address: SocketAddr::from(([127, 0, 0, 1], 7)),
            token: "secret".into(),
            pid: 1,
        };
        file.write(dir.path()).expect("written");
        file.write(dir.path()).expect("written over");
        assert_eq!(ServerFile::read(dir.path()), Some(file.clone()));
        assert!(!format!("{file:?}").contains("secret"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(path(dir.path())).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        ServerFile::remove(dir.path());
        assert_eq!(ServerFile::read(dir.path()), None);
    }
}
