//! Talks to the server that holds the data directory, with the token of its `server.json`.

use std::io::Write;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::ServerFile;
use crate::http::wire::{Envelope, ErrorBody};

use super::failure::Failure;

/// Longest wait for the head of an answer; the server gives up earlier.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

type Http = legacy::Client<HttpConnector, Full<Bytes>>;

/// A server.
pub(super) struct Client {
    http: Http,
    origin: String,
    authorization: String,
}

impl Client {
    /// The server that a `server.json` names; nothing is sent yet.
    pub(super) fn new(file: &ServerFile) -> Result<Self, Failure> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WAIT));
        if !file.token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Failure::environment("server.json is damaged", "restart the server"));
        }
        Ok(Self {
            http: legacy::Client::builder(TokioExecutor::new()).build(connector),
            origin: format!("http://{}", file.address),
            authorization: format!("Bearer {}", file.token),
        })
    }

    /// Where it is, as a URL.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether a server answers at all.
    pub(super) async fn answers(&self) -> bool {
        self.send(Method::GET, "/healthz", Bytes::new()).await.is_ok()
    }

    /// GET, an answer in JSON.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(self.send(Method::GET, path, Bytes::new()).await?).await
    }

    /// POST of JSON, an answer in JSON.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|e| Failure::caller(format!("cannot be sent: {e}"), "use names in UTF-8"))?;
        read(self.send(Method::POST, path, body.into()).await?).await
    }

    /// DELETE, an answer in JSON.
    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(self.send(Method::DELETE, path, Bytes::new()).await?).await
    }

    /// GET, the answer byte for byte into a writer.
    pub(super) async fn copy(&self, path: &str, out: &mut impl Write) -> Result<(), Failure> {
        let mut response = good(self.send(Method::GET, path, Bytes::new()).await?).await?;
        while let Some(frame) = response.body_mut().frame().await {
            let frame = frame.map_err(|e| gone(&e))?;
            if let Some(data) = frame.data_ref() {
                out.write_all(data)?;
            }
        }
        Ok(out.flush()?)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.origin))
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|e| Failure::environment(format!("server.json is damaged: {e}"), ""))?;
        match tokio::time::timeout(ANSWER_WAIT, self.http.request(request)).await {
            Ok(answer) => answer.map_err(|e| gone(&e)),
            Err(_) => Err(Failure::environment("the server does not answer", "restart the server")),
        }
    }
}

fn gone(error: &dyn std::error::Error) -> Failure {
    Failure::environment(
        format!("the server went away: {error}"),
        "see its traces; run the command again",
    )
}

async fn good(response: Response<Incoming>) -> Result<Response<Incoming>, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.into_body().collect().await.map_err(|e| gone(&e))?.to_bytes();
    let error = serde_json::from_slice::<Envelope>(&body).map_or_else(
        |_| {
            let message = format!("something that is no Postrider server answered {status}");
            ErrorBody::new("unavailable", message, "see which process uses that address")
        },
        |envelope| envelope.error,
    );
    Err(error.into())
}

async fn read<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Failure> {
    let body = good(response).await?.into_body().collect().await.map_err(|e| gone(&e))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|e| {
        Failure::environment(
            format!("the server's answer is not understood: {e}"),
            "use the same version of Postrider for server and commands",
        )
    })
}
