//! Settings of a command: the file, then the data directory of the command line or environment.

use crate::app::Error;
use crate::config::Config;

use super::args::Global;
use super::failure::Failure;

/// Reads the settings.
pub(super) fn read(global: &Global) -> Result<Config, Failure> {
    let given =
        |path: &Option<std::path::PathBuf>| path.clone().filter(|p| !p.as_os_str().is_empty());
    let mut config = match given(&global.config) {
        Some(path) => Config::from_file(&path).map_err(Error::from)?,
        None => Config::default(),
    };
    if let Some(dir) = given(&global.data_dir) {
        config.data_dir = dir;
    }
    Ok(config)
}
