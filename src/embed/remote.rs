//! A model behind an address: OpenAI's `POST /v1/embeddings`, as Ollama, llama.cpp, TEI and vLLM
//! speak it too. Plain HTTP.
//!
//! Passing faults (no connection, too slow, 429, 5xx) are tried again, lasting ones (400, 401, 403,
//! 404, another shape of vectors) are not. A batch that is refused is halved until the text that is
//! at fault stands alone. Answers are input from outside: counted, measured, checked for numbers.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use super::activation::to_unit;
use super::{ModelError, Role};

/// Texts of one request.
const BATCH_TEXTS: usize = 32;
/// Longest wait for the vector of a query (Pylota Mail search §8).
const QUERY_WAIT: Duration = Duration::from_secs(1);
/// Tries of one request for passages.
const TRIES: u32 = 3;
/// Pause before the second try; the third waits five times as long.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Largest answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where it is, and what it is asked for.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `http://host:port/v1`; `/embeddings` is added.
    pub url: String,
    /// Name of the model there.
    pub model: String,
    /// Length of its vectors.
    pub dimensions: u32,
    /// The key, if it wants one.
    pub key: Option<String>,
    /// Longest wait for the vectors of a batch of passages.
    pub wait: Duration,
}

type Http = legacy::Client<HttpConnector, Full<Bytes>>;

pub(super) struct Remote {
    endpoint: Endpoint,
    http: Http,
    /// Taken when it is dropped: a runtime may not be dropped where others run.
    runtime: Option<Runtime>,
}

#[derive(Serialize)]
struct Asked<'t> {
    model: &'t str,
    input: &'t [&'t str],
    encoding_format: &'t str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    index: usize,
    embedding: Vec<f32>,
}

/// What became of one request.
enum Fault {
    /// It may go through later; so long the server wants to be left alone.
    Passing(&'static str, Option<Duration>),
    /// It will not.
    Lasting(&'static str),
    /// Something in it is refused; a part of it may not be.
    Refused,
}

impl Remote {
    pub(super) fn new(endpoint: Endpoint) -> Result<Self, ModelError> {
        let plain = endpoint.url.starts_with("http://")
            && endpoint.url.parse::<hyper::Uri>().is_ok_and(|uri| uri.host().is_some());
        if !plain {
            let what = "the address of the model must be like http://127.0.0.1:11434/v1";
            return Err(ModelError::File(what.into()));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|source| ModelError::Io { path: "a thread".into(), source })?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(QUERY_WAIT));
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { endpoint, http, runtime: Some(runtime) })
    }

    /// One vector of length 1 a text, in order. Blocks; not to be called from an async task.
    pub(super) fn embed(&self, role: Role, texts: &[&str]) -> Vec<Result<Vec<f32>, ModelError>> {
        texts.chunks(BATCH_TEXTS).flat_map(|batch| self.batch(role, batch)).collect()
    }

    fn batch(&self, role: Role, texts: &[&str]) -> Vec<Result<Vec<f32>, ModelError>> {
        let all = |what| texts.iter().map(|_| Err(ModelError::Remote(what))).collect();
        match self.tried(role, texts) {
            Ok(vectors) => vectors,
            Err(Fault::Passing(what, _) | Fault::Lasting(what)) => all(what),
            Err(Fault::Refused) if texts.len() == 1 => {
                vec![Err(ModelError::Refused("a text that the model refuses"))]
            }
            Err(Fault::Refused) => {
                let (first, second) = texts.split_at(texts.len() / 2);
                let mut vectors = self.batch(role, first);
                vectors.extend(self.batch(role, second));
                vectors
            }
        }
    }

    fn tried(
        &self,
        role: Role,
        texts: &[&str],
    ) -> Result<Vec<Result<Vec<f32>, ModelError>>, Fault> {
        let tries = if role == Role::Query { 1 } else { TRIES };
        let wait = if role == Role::Query { QUERY_WAIT } else { self.endpoint.wait };
        let Some(runtime) = &self.runtime else { return Err(Fault::Lasting("it is closed")) };
        runtime.block_on(async {
            let mut tried = 0;
            loop {
                tried += 1;
                let answer = tokio::time::timeout(wait, self.ask(texts))
                    .await
                    .unwrap_or(Err(Fault::Passing("the model does not answer in time", None)));
                match answer {
                    Err(Fault::Passing(_, pause)) if tried < tries => {
                        let own = PAUSE * 5_u32.pow(tried - 1);
                        tokio::time::sleep(pause.unwrap_or(own).min(PAUSE_MAX)).await;
                    }
                    other => return other,
                }
            }
        })
    }

    async fn ask(&self, texts: &[&str]) -> Result<Vec<Result<Vec<f32>, ModelError>>, Fault> {
        let Endpoint { url, model, key, .. } = &self.endpoint;
        let body = serde_json::to_vec(&Asked { model, input: texts, encoding_format: "float" })
            .map_err(|_| Fault::Lasting("the request cannot be written"))?;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/embeddings", url.trim_end_matches('/')))
            .header(CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
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
                _ => Fault::Refused,
            });
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|_| Fault::Passing("the answer of the model breaks off", None))?
            .to_bytes();
        let Answer { data } = serde_json::from_slice(&body)
            .map_err(|_| Fault::Lasting("the answer of the model is not understood"))?;
        self.checked(data, texts.len())
    }

    /// Vectors in the order of their texts; one that is none is an error of its own.
    fn checked(
        &self,
        data: Vec<One>,
        count: usize,
    ) -> Result<Vec<Result<Vec<f32>, ModelError>>, Fault> {
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
        for One { index, embedding } in data {
            if embedding.len() != self.endpoint.dimensions as usize {
                return Err(Fault::Lasting("the model gives vectors of another length"));
            }
            match vectors.get_mut(index) {
                Some(slot) => *slot = Some(embedding),
                None => return Err(Fault::Lasting("the model answers what was not asked")),
            }
        }
        let mut checked = Vec::with_capacity(count);
        for vector in vectors {
            // Half a batch is tried again, and not taken for the whole.
            let Some(mut vector) = vector else {
                return Err(Fault::Passing("the model answers only a part", None));
            };
            let whole = vector.iter().all(|value| value.is_finite()) && to_unit(&mut vector);
            checked.push(if whole {
                Ok(vector)
            } else {
                Err(ModelError::Refused("a text whose vector is none"))
            });
        }
        Ok(checked)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
