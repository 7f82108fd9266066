//! `GET /v1/admin/dump?mailbox=`: canonical text of a mailbox's projections, as it is written.
//!
//! The writer waits where the reader is slow: a bounded channel of blocks is between them. An
//! error before the first block is a refusal; a later one breaks the connection, so that nobody
//! takes half a dump for a whole one.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context as Polling, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use tokio::sync::mpsc;

use super::refusal::Refusal;
use super::routes::Shared;
use crate::app::MAILBOX_DEFAULT;

/// Blocks between writer and reader.
const BLOCKS_MAX: usize = 4;
/// Bytes of a block.
const BLOCK_BYTES: usize = 64 << 10;

type Block = Result<Bytes, io::Error>;

/// See the module.
pub(super) async fn dump(
    State(shared): State<Shared>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Response, Refusal> {
    let mailbox = parameters
        .into_iter()
        .find_map(|(name, value)| (name == "mailbox").then_some(value))
        .unwrap_or_else(|| MAILBOX_DEFAULT.to_owned());
    let (give, mut blocks) = mpsc::channel(BLOCKS_MAX);
    let writer = BlockWriter { block: Vec::with_capacity(BLOCK_BYTES), give: give.clone() };
    let postrider = shared.postrider.clone();
    let writing = tokio::spawn(async move {
        let written = postrider.dump(&mailbox, writer).await;
        if let Err(error) = &written {
            // Nobody listens any more, or this is the first thing they hear.
            let _ = give.send(Err(io::Error::other(error.to_string()))).await;
        }
        written
    });
    let first = match blocks.recv().await {
        Some(Ok(first)) => first,
        Some(Err(_)) | None => match writing.await {
            Ok(Err(error)) => return Err(error.into()),
            Ok(Ok(())) => Bytes::new(),
            Err(_) => return Err(crate::app::Error::Gone.into()),
        },
    };
    let body = Body::new(Blocks { first: Some(first), rest: blocks });
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response())
}

struct BlockWriter {
    block: Vec<u8>,
    give: mpsc::Sender<Block>,
}

impl Write for BlockWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.extend_from_slice(bytes);
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.give.blocking_send(Ok(block.into())).map_err(gone)
    }
}

struct Blocks {
    first: Option<Bytes>,
    rest: mpsc::Receiver<Block>,
}

impl hyper::body::Body for Blocks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        polling: &mut Polling<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.rest.poll_recv(polling).map(|block| block.map(|b| b.map(Frame::data)))
    }
}
