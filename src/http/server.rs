//! The server itself: listens, serves connections, stops gracefully.
//!
//! At most [`CONNECTIONS_MAX`] connections are open; further ones wait in the system's queue.
//! Stopping: no new connection, imports are asked to end, requests may finish for
//! [`STOP_WAIT`], then the data directory is closed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::body::BodyBudget;
use super::host::Hosts;
use super::jobs::Jobs;
use super::routes::{Context, Shared, router};
use super::server_file::ServerFile;
use crate::app::Postrider;
use crate::clock::{SharedClock, SystemClock};

/// Connections open at once.
const CONNECTIONS_MAX: usize = 512;
/// Longest time for the head of a request; also how long an idle connection is kept.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// Time that requests and jobs have to finish when the server stops.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// Pause after the system could not hand over a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// `server.json` cannot be written.
    #[error("server.json cannot be written to {}: {source}", data_dir.display())]
    File {
        /// Where.
        data_dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A running server.
pub struct Server {
    shared: Shared,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Listens on [`crate::config::Config::listen`] and writes `server.json`. When that fails, the
    /// data directory is closed again.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(postrider: Postrider) -> Result<Self, StartError> {
        match Self::try_start(&postrider).await {
            Ok(server) => Ok(server),
            Err(error) => {
                postrider.close().await;
                Err(error)
            }
        }
    }

    async fn try_start(postrider: &Postrider) -> Result<Self, StartError> {
        let config = postrider.config();
        let failed = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let data_dir = config.data_dir.clone();
        let unwritten = |source| StartError::File { data_dir: data_dir.clone(), source };
        let token = token().map_err(unwritten)?;
        let file = ServerFile {
            address: reachable(address),
            token: token.clone(),
            pid: std::process::id(),
        };
        let dir = config.data_dir.clone();
        tokio::task::spawn_blocking(move || file.write(&dir))
            .await
            .unwrap_or_else(|e| Err(io::Error::other(e)))
            .map_err(unwritten)?;
        let clock: SharedClock = Arc::new(SystemClock);
        let shared = Arc::new(Context {
            postrider: postrider.clone(),
            jobs: Jobs::new(Arc::clone(&clock)),
            token,
            hosts: Hosts::new(address, &config.host_names),
            bodies: BodyBudget::new(config.ingest_budget_bytes, config.message_bytes_max),
            clock,
        });
        let (stop, stopping) = watch::channel(false);
        postrider.embed_in_background();
        let serving = tokio::spawn(serve(listener, router(&shared), stopping));
        Ok(Self { shared, address, stop, serving })
    }

    /// The address listened on, with its real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token of the administration.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// Stops: see the module.
    pub async fn stop(self) {
        let Self { shared, address: _, stop, serving } = self;
        let postrider = shared.postrider.clone();
        let data_dir = postrider.config().data_dir.clone();
        let _ = tokio::task::spawn_blocking(move || ServerFile::remove(&data_dir)).await;
        stop.send_replace(true);
        let jobs = tokio::time::timeout(STOP_WAIT, shared.jobs.end_all());
        let (jobs, _) = tokio::join!(jobs, serving);
        if jobs.is_err() {
            tracing::warn!("a job did not end in time and is broken off");
        }
        drop(shared);
        postrider.close().await;
    }
}

/// 256 random bits.
fn token() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// An address to connect to: who listens on all addresses is reached by loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A server that is gone has stopped, too.
    let _ = stopping.wait_for(|stop| *stop).await;
}

async fn serve(listener: TcpListener, router: Router, mut stopping: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let stop = stopping.clone();
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = stopped(&mut stopping) => break,
            _ = connections.join_next(), if !connections.is_empty() => {}
            (place, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let serving = connection(stream, router.clone(), stop.clone());
                    connections.spawn(async move {
                        serving.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WAIT, finished).await.is_err() {
        tracing::warn!("requests did not finish in time and are broken off");
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, router: Router, mut stopping: watch::Receiver<bool>) {
    // Small answers must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(serving);
    // A connection that breaks concerns its caller alone.
    tokio::select! {
        _ = &mut serving => return,
        () = stopped(&mut stopping) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}
