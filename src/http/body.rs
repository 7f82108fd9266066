//! Bodies of requests, within limits: JSON with every mistake named by its path, and messages
//! within a budget of bytes for all that are on their way in together.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;
use super::wire::ErrorBody;
use crate::app::Error;

/// Longest body in JSON on a public route, bytes.
pub(super) const JSON_BYTES_MAX: usize = 64 << 10;
/// Longest body in JSON of the administration, bytes: a shell may list many paths.
pub(super) const ADMIN_JSON_BYTES_MAX: usize = 8 << 20;
/// Bytes for which one permit stands.
const PERMIT_BYTES: usize = 1 << 10;

/// The budget of messages on their way in.
#[derive(Clone)]
pub(super) struct BodyBudget {
    permits: Arc<Semaphore>,
    message_bytes_max: usize,
}

impl BodyBudget {
    /// Room for `bytes`, at least for one message of the largest size.
    pub(super) fn new(bytes: usize, message_bytes_max: usize) -> Self {
        let permits = bytes.max(message_bytes_max).div_ceil(PERMIT_BYTES);
        Self { permits: Arc::new(Semaphore::new(permits)), message_bytes_max }
    }

    /// Reads a message; its part of the budget is free again when the permit goes.
    pub(super) async fn message(
        &self,
        request: Request,
    ) -> Result<(Bytes, OwnedSemaphorePermit), Refusal> {
        let limit = self.message_bytes_max;
        let bytes = declared(&request).unwrap_or(limit).min(limit);
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.permits)
            .try_acquire_many_owned(permits)
            .map_err(|_| Refusal::busy())?;
        Ok((bytes_of(request, limit).await?, permit))
    }
}

fn declared(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn bytes_of(request: Request, limit: usize) -> Result<Bytes, Refusal> {
    if declared(&request).is_some_and(|bytes| bytes > limit) {
        return Err(Error::TooLarge { limit }.into());
    }
    let body: Body = request.into_body();
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { limit }.into()),
        Err(_) => Err(Refusal::invalid("", "the body broke off")),
    }
}

/// Reads a body in JSON.
pub(super) async fn json<T>(request: Request, limit: usize) -> Result<T, Refusal>
where
    T: DeserializeOwned,
{
    let bytes = match bytes_of(request, limit).await {
        Err(mut refusal) if refusal.0.code == "payload_too_large" => {
            refusal.0.message = format!("the body is larger than {limit} bytes");
            refusal.0.fix = "send less".into();
            return Err(refusal);
        }
        other => other?,
    };
    decode(&bytes).map_err(|errors| ErrorBody::invalid(&errors).into())
}

/// All mistakes of an object, each with its path. `T` has a default for every field, so that each
/// field can be judged alone.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Vec<(String, String)>> {
    let whole = |message: String| vec![(String::new(), message)];
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| whole(format!("the body is not JSON: {e}")))?;
    let Value::Object(fields) = value else {
        return Err(whole("the body must be a JSON object".to_owned()));
    };
    let all = match T::deserialize(&Value::Object(fields.clone())) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error.to_string(),
    };
    let mut errors = Vec::new();
    for (name, value) in fields {
        let alone = Value::Object(Map::from_iter([(name.clone(), value)]));
        if let Err(error) = T::deserialize(&alone) {
            errors.push((name, complaint(&error)));
        }
    }
    Err(if errors.is_empty() { whole(all) } else { errors })
}

fn complaint(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", ")) {
        Some((_, expected)) => format!("is no field here; {expected}"),
        None => format!("is not understood: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::SearchRequest;

    #[test]
    fn every_mistake_is_named_with_its_path() {
        let errors = decode::<SearchRequest>(br#"{"q":"a","limit":"x","colour":1,"sort":"age"}"#)
            .expect_err("three mistakes");
        let paths: Vec<_> = errors.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["colour", "limit", "sort"]);
        assert!(
            errors[0].1.starts_with("is no field here; expected one of `q`"),
            "{}",
            errors[0].1
        );
        for bad in ["", "[]", "{", "\"q\"", "null"] {
            let errors = decode::<SearchRequest>(bad.as_bytes()).expect_err(bad);
            assert_eq!(errors[0].0, "", "{bad}");
        }
        assert_eq!(decode::<SearchRequest>(b"{}").expect("defaults"), SearchRequest::default());
    }
}
