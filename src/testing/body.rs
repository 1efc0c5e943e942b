//! The body of an answer, without a socket.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::{
    answer::{Answer, Part},
    mint,
    wire::frame,
};
use crate::BoxError;

/// The body of a [`ScriptService`](super::ScriptService)'s answer.
#[derive(Debug)]
pub struct ReplyBody {
    parts: VecDeque<Part>,
    trailers: Option<HeaderMap>,
    /// What is left of it, where the head says so.
    left: Option<u64>,
    pause: Option<Pin<Box<Sleep>>>,
    failed: bool,
}

impl ReplyBody {
    pub(super) fn none() -> Self {
        ReplyBody { parts: VecDeque::new(), trailers: None, left: Some(0), pause: None, failed: false }
    }

    pub(super) fn of(answer: &Answer) -> Self {
        let mut parts: VecDeque<_> = answer.parts.iter().cloned().collect();
        let declared = answer.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if let (Some(declared), Some(whole)) = (declared, answer.whole()) {
            if declared > whole {
                // The rest is waited for.
                parts.push_back(Part::Stall);
            }
        }
        let trailers = Some(answer.trailers.clone()).filter(|trailers| !trailers.is_empty());
        let left = declared.or_else(|| answer.whole().filter(|_| trailers.is_none()));
        ReplyBody { parts, trailers, left, pause: None, failed: false }
    }

    /// As much of this as the head allows.
    fn within(&mut self, mut data: Bytes) -> Bytes {
        if let Some(left) = &mut self.left {
            data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= data.len() as u64;
        }
        data
    }

    fn failure(&mut self, bytes: &[u8], end: mint::End) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.failed = true;
        let begun = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n", bytes].concat();
        Poll::Ready(Some(Err(mint::http1(&begun, end).into())))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            if self.is_end_stream() {
                return Poll::Ready(None);
            }
            match self.parts.pop_front() {
                Some(Part::Data(data)) => {
                    let data = self.within(data);
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Some(Part::Pause(time)) => self.pause = Some(Box::pin(sleep(time))),
                Some(Part::Stall) => {
                    self.parts.push_front(Part::Stall);
                    return Poll::Pending;
                }
                Some(Part::Close) => return self.failure(b"", mint::End::Closed),
                Some(Part::Reset) => return self.failure(b"", mint::End::Reset),
                Some(Part::ResetStream(reason)) => {
                    self.failed = true;
                    let reset = frame::encode(frame::RST_STREAM, 1, &reason.code().to_be_bytes());
                    return Poll::Ready(Some(Err(mint::http2(&reset).into())));
                }
                Some(Part::Broken) => return self.failure(b"no size\r\n", mint::End::Closed),
                None => return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let nothing_left = self.left == Some(0) || self.left.is_none() && self.parts.is_empty();
        self.failed || nothing_left && self.trailers.is_none() && self.pause.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
