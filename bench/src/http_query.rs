//! The queries through HTTP, over one connection that is kept.

use std::path::Path;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use postrider::http::ServerFile;
use postrider::http::wire::path_segment;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::Fallible;
use crate::latency::{Latencies, RUNS, figures};
use crate::queries::{self, Column};
use crate::results::Figures;

/// Hits asked for.
const LIMIT: usize = 10;

struct Server {
    address: String,
    token: String,
}

impl Server {
    fn find(named: &str) -> Fallible<Self> {
        let dir = Path::new(named);
        if dir.is_dir() {
            let file = ServerFile::read(dir).ok_or_else(|| format!("no server.json in {named}"))?;
            return Ok(Self { address: file.address.to_string(), token: file.token });
        }
        let token = std::env::var("POSTRIDER_TOKEN").map_err(|_| "POSTRIDER_TOKEN is not set")?;
        Ok(Self { address: named.to_owned(), token })
    }
}

/// Times from the request to the last byte of the answer; answers are checked outside of that.
pub(crate) fn run(server: &str, mailbox: &str) -> Fallible<Figures> {
    let server = Server::find(server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(ask_all(&server, mailbox))
}

async fn ask_all(server: &Server, mailbox: &str) -> Fallible<Figures> {
    let stream = TcpStream::connect(&server.address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = format!("/v1/identities/{}/search", path_segment(mailbox));
    let queries = queries::of(Column::Native)?;
    let (mut first, mut warm) = (Latencies::default(), Latencies::default());
    let (mut totals, mut hits) = (Vec::new(), 0);
    for run in 0..RUNS {
        for (at, query) in queries.iter().enumerate() {
            let body = serde_json::to_vec(&json!({ "q": query, "limit": LIMIT }))?;
            let (took, answer) = ask(&mut sender, server, &path, body.into()).await?;
            let (total, listed) = read(&answer).map_err(|why| format!("{query}: {why}"))?;
            if run == 0 {
                first.add(took);
                totals.push(total);
                hits += listed;
            } else {
                warm.add(took);
                if totals.get(at) != Some(&total) {
                    return Err(format!("{query}: {total} matches, before it was another").into());
                }
            }
        }
    }
    let mut figures = figures(first, warm, totals);
    figures.insert("hits".into(), hits.into());
    Ok(figures)
}

async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    server: &Server,
    path: &str,
    body: Bytes,
) -> Fallible<(Duration, Bytes)> {
    let request = Request::post(path)
        .header(HOST, &server.address)
        .header(AUTHORIZATION, format!("Bearer {}", server.token))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    let began = Instant::now();
    // One connection: when the server closes it, that is an error and no new handshake.
    let response = sender.send_request(request).await?;
    let status = response.status();
    let answer = response.into_body().collect().await?.to_bytes();
    let took = began.elapsed();
    if status != StatusCode::OK {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&answer)).into());
    }
    // Ready again only when the connection was kept.
    sender.ready().await?;
    Ok((took, answer))
}

/// Matches, and hits listed; every hit must have its snippet.
fn read(answer: &[u8]) -> Result<(u64, usize), String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|e| e.to_string())?;
    let total = answer["total"].as_u64().ok_or("an answer without a total")?;
    let hits = answer["hits"].as_array().ok_or("an answer without hits")?;
    if !hits.iter().all(|hit| hit["snippet"].is_string()) {
        return Err("a hit without a snippet".into());
    }
    let expected = usize::try_from(total).map_or(LIMIT, |total| total.min(LIMIT));
    if hits.len() != expected {
        return Err(format!("{} hits of {total} matches", hits.len()));
    }
    Ok((total, hits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_whole_is_no_figure() {
        let hit = json!({ "snippet": "a" });
        let answer = |total, hits: Vec<Value>| json!({ "total": total, "hits": hits }).to_string();
        assert_eq!(read(answer(1, vec![hit.clone()]).as_bytes()), Ok((1, 1)));
        assert!(read(answer(2, vec![hit]).as_bytes()).is_err());
        assert!(read(answer(1, vec![json!({})]).as_bytes()).is_err());
        assert!(read(b"{}").is_err());
    }
}
