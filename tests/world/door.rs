//! A server in this process, and a plain HTTP client: one connection a request, every header in
//! the test's hand.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use postrider::app::Postrider;
use postrider::config::{Config, Embedding};
use postrider::http::Server;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::world::World;

impl World {
    /// Settings with a port that is free.
    pub(crate) fn config(&self) -> Config {
        Config {
            data_dir: self.data_dir(),
            listen: ([127, 0, 0, 1], 0).into(),
            time_zone: "Europe/London".into(),
            embedding: Embedding::Off,
            ..Config::default()
        }
    }

    /// A server in this process.
    pub(crate) async fn serve(&self) -> Server {
        self.serve_with(self.config()).await
    }

    /// A server with these settings.
    pub(crate) async fn serve_with(&self, config: Config) -> Server {
        let postrider = Postrider::open(config).await.expect("opens");
        Server::start(postrider).await.expect("starts")
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// A header as text; empty when it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

/// Sends one request. A `host` header of the test's replaces the usual one.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    try_send(address, method, path, headers, body).await.expect("an answer")
}

/// The same; `None` when the server goes away before it has answered.
pub(crate) async fn try_send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Option<Answer> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let connection = tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).expect("a request");
    let response = sender.send_request(request).await.ok()?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    connection.abort();
    Some(Answer { status: head.status.as_u16(), headers: head.headers, body })
}

/// GET without anything.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    send(address, "GET", path, &[], Bytes::new()).await
}
