//! Asking a model behind an address: one POST of JSON, over HTTP or HTTPS.
//!
//! Answers are input from outside: their size is bounded, their faults are told apart by whether
//! asking again can help. Nothing that was asked, and no key, is ever part of a fault.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::ModelError;

/// Longest wait for a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// Largest answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where a model is asked, and by which name.
#[derive(Clone)]
pub struct Address {
    /// `http://…` or `https://…`, without the last part of the path.
    pub url: String,
    /// Name of the model there.
    pub model: String,
    /// The key, if it wants one.
    pub key: Option<String>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key.
        write!(f, "Address({})", self.model)
    }
}

impl Address {
    fn is_plausible(&self) -> bool {
        let uri = self.url.parse::<hyper::Uri>();
        uri.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        })
    }
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Fault {
    /// It may go through later; so long the server wants to be left alone.
    Passing(&'static str, Option<Duration>),
    /// It will not.
    Lasting(&'static str),
    /// Something in it is refused; a part of it may not be.
    Refused,
    /// What it may be given is used up: no fault of its own.
    Spent(&'static str),
}

impl From<Fault> for ModelError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Passing(what, _) | Fault::Lasting(what) => Self::Remote(what),
            Fault::Refused => Self::Refused("a text that the model refuses"),
            Fault::Spent(what) => Self::Spent(what),
        }
    }
}

type Http = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client with a thread of its own, so that it can be asked from where nothing may wait.
pub(super) struct Post {
    http: Http,
    /// Taken when it is dropped: a runtime may not be dropped where others run.
    runtime: Option<Runtime>,
    closing: watch::Sender<bool>,
}

impl Post {
    pub(super) fn new<'a>(
        addresses: impl Iterator<Item = &'a Address>,
    ) -> Result<Self, ModelError> {
        for address in addresses {
            if !address.is_plausible() {
                let what = "the address of the model must be like http://127.0.0.1:11434/v1";
                return Err(ModelError::File(what.into()));
            }
        }
        let io = |source| ModelError::Io { path: "a thread".into(), source };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WAIT));
        connector.enforce_http(false);
        let tls = match hyper_rustls::HttpsConnectorBuilder::new().with_native_roots() {
            Ok(tls) => tls,
            // A system without certificates trusts nobody; plain HTTP works all the same.
            Err(_) => hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(
                ClientConfig::builder()
                    .with_root_certificates(RootCertStore::empty())
                    .with_no_client_auth(),
            ),
        };
        let connector = tls.https_or_http().enable_http1().wrap_connector(connector);
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, runtime: Some(runtime.map_err(io)?), closing: watch::Sender::new(false) })
    }

    /// Runs what asks; blocks, not to be called from an async task. Ends early when it is closed.
    pub(super) fn run<R>(
        &self,
        asking: impl Future<Output = Result<R, Fault>>,
    ) -> Result<R, Fault> {
        let Some(runtime) = &self.runtime else { return Err(Fault::Lasting("it is closed")) };
        let mut closing = self.closing.subscribe();
        runtime.block_on(async {
            tokio::select! {
                outcome = asking => outcome,
                _ = closing.wait_for(|closed| *closed) => {
                    Err(Fault::Lasting("the program is about to end"))
                }
            }
        })
    }

    /// Ends whatever is being asked, and everything asked from now on.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// One request. `path` is added to the address.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        address: &Address,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<T, Fault> {
        let Address { url, key, .. } = address;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/{path}", url.trim_end_matches('/')))
            .header(CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|_| Fault::Lasting("its address or key is malformed"))?;
        let response = self
            .http
            .request(request)
            .await
            .map_err(|_| Fault::Passing("the model cannot be reached", None))?;
        let status = response.status();
        if status != StatusCode::OK {
            let pause =
                response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
            return Err(match status.as_u16() {
                429 => {
                    Fault::Passing("the model is asked too often", pause.map(Duration::from_secs))
                }
                500.. => Fault::Passing("the model fails", pause.map(Duration::from_secs)),
                401 | 403 => Fault::Lasting("the model refuses the key"),
                404 => Fault::Lasting("there is no such model or address"),
                300..=399 => Fault::Lasting("the address of the model leads elsewhere"),
                408 => Fault::Passing("the model does not answer in time", None),
                400 | 413 | 422 => Fault::Refused,
                _ => Fault::Lasting("the model refuses to answer"),
            });
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|_| Fault::Passing("the answer of the model breaks off", None))?
            .to_bytes();
        serde_json::from_slice(&body)
            .map_err(|_| Fault::Lasting("the answer of the model is not understood"))
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
