//! Where a command finds the mail: in the directory itself, or at the server that holds it.

use std::time::Duration;

use tokio::time::Instant;

use crate::app::{Error, Postrider};
use crate::config::Config;
use crate::http::ServerFile;

use super::client::Client;
use super::failure::Failure;
use super::traces;

/// Time a command waits for another one, or for a server that starts or stops.
const WAIT: Duration = Duration::from_secs(3);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Where the mail is.
pub(super) enum Access {
    /// Opened by this process.
    Here(Postrider),
    /// At a server.
    Server(Box<Client>),
}

impl Access {
    /// Opens a data directory that is there, or finds its server.
    pub(super) async fn find(config: Config) -> Result<Self, Failure> {
        exists(&config)?;
        Self::find_or_make(config).await
    }

    /// The same; a directory that is not there is made.
    pub(super) async fn find_or_make(config: Config) -> Result<Self, Failure> {
        traces::start("warn")?;
        let give_up = Instant::now() + WAIT;
        loop {
            match Postrider::open(config.clone()).await {
                Ok(postrider) => return Ok(Self::Here(postrider)),
                Err(Error::InUse(_)) => {}
                Err(error) => return Err(error.into()),
            }
            let file = ServerFile::read(&config.data_dir);
            if let Some(file) = &file {
                let client = Client::new(file)?;
                if client.answers().await {
                    return Ok(Self::Server(Box::new(client)));
                }
            }
            if Instant::now() >= give_up {
                return Err(in_use(&config, file.as_ref()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends the access; what was opened is closed well.
    pub(super) async fn close(self) {
        if let Self::Here(postrider) = self {
            postrider.close().await;
        }
    }
}

/// Refuses a data directory that is not there: looking must not make one.
pub(super) fn exists(config: &Config) -> Result<(), Failure> {
    if config.data_dir.is_dir() {
        return Ok(());
    }
    Err(Failure::caller(
        format!("there is no data directory {}", config.data_dir.display()),
        "`postrider import PATH` makes it; --data-dir or POSTRIDER_DATA name another",
    ))
}

fn in_use(config: &Config, file: Option<&ServerFile>) -> Failure {
    match file {
        None => Error::InUse(config.data_dir.clone()).into(),
        Some(file) => Failure::environment(
            format!(
                "{} is in use, and the server that server.json names ({}, process {}) does not \
                 answer",
                config.data_dir.display(),
                file.address,
                file.pid
            ),
            "see whether that process or another command is at work; \
             a server.json of a dead server goes when the next one starts",
        ),
    }
}
